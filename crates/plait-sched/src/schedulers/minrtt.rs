//! minRTT: the lowest RTT first.

use crate::ahead;
use crate::rules::{self, Place, Task};
use crate::{
    About, Decision, Entry, Needs, Outcome, Param, ParamKind, Params, Reason, Scheduler, View,
    WhenFull,
};
use alloc::boxed::Box;
use plait_base::SubflowSet;

const TSQ: Param = Param {
    name: "tsq",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "skip a subflow whose data fills the host's own queue; off: assign data to it, which waits there",
    clause: "ToN, section V: on up to about kernel v0.91, off later",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
        name: "minrtt",
        aliases: &["lrf", "lowrtt"],
        idea: "fill the window of the subflow with the lowest RTT first",
        page: "\
Each segment goes to the subflow with the lowest smoothed RTT that has room in its congestion
window. Backup subflows are used only while every other subflow is down.

    choose  argmin srtt(s)  over the live s with  inflight + queued + len <= cwnd
    wait    if none has room, or if the segment ends beyond the send window

It is the default scheduler of the out-of-tree Linux MPTCP. The papers call it LRF, LowRTT or
minRTT. The complete default of that kernel is `minrtt+rp`.

Papers   \"Experimental Evaluation of Multipath TCP Schedulers\" (CSWS 2014), \"Low-Latency
         Scheduling in MPTCP\" (IEEE/ACM ToN), both as the baseline.
Good at  bulk transfers with large windows; similar paths.
Bad at   short transfers over heterogeneous paths: as soon as the fast window is full, the tail of a
         burst goes over the slow path, and the receiver waits for it. Small receive windows.
",
        params: &[TSQ],
        state: &[],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |params| Box::new(MinRtt::new(params)),
};

/// The scheduler. It has no state.
#[derive(Debug)]
struct MinRtt {
    tsq: bool,
}

impl MinRtt {
    fn new(params: &Params) -> MinRtt {
        MinRtt { tsq: params.switch(&TSQ) }
    }
}

impl Scheduler for MinRtt {
    fn needs(&self) -> Needs {
        let when_full = if self.tsq { WhenFull::Never } else { WhenFull::Always };
        Needs { when_full, ..Needs::LEAST }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        if !self.tsq {
            return place_anyway(view, out);
        }
        let segment = match rules::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        match rules::lowest_rtt(view, segment.len(), SubflowSet::EMPTY) {
            Place::On(subflow) | Place::Again(subflow) => {
                out.note("srtt_ms", Some(subflow.id), subflow.srtt_or_max().as_millis_f64());
                rules::run_on(view, subflow, segment, Reason::LowestRtt)
            }
            Place::Untried(_) | Place::None => rules::none_usable(view),
        }
    }
}

/// Decides without regard to the host's queue. Data that cannot be sent at once is assigned to the
/// subflow and waits there.
fn place_anyway(view: &View<'_>, out: &mut Outcome) -> Decision {
    let segment = match ahead::task(view) {
        ahead::Task::Settled(decision) => return decision,
        ahead::Task::Place(segment) => segment,
    };
    if let Some(decision) = ahead::beyond_window(view, segment) {
        return decision;
    }
    let looked = View { tsq: false, ..*view };
    match rules::lowest_rtt(&looked, segment.len(), SubflowSet::EMPTY) {
        Place::On(subflow) | Place::Again(subflow) => {
            out.note("srtt_ms", Some(subflow.id), subflow.srtt_or_max().as_millis_f64());
            ahead::place(view, subflow, segment, Reason::LowestRtt, out)
        }
        Place::Untried(_) | Place::None => ahead::waits(view),
    }
}
