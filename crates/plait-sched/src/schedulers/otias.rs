//! OTIAS: out-of-order transmission for in-order arrival.

use crate::ahead::{self, Task};
use crate::arrival::{self, Arrival, BACK};
use crate::rules;
use crate::{
    About, Decision, Entry, Needs, Outcome, Param, ParamKind, Reason, Scheduler, SubflowView, View,
};
use alloc::boxed::Box;
use core::cmp::Ordering;

const WAIT: Param = Param {
    name: "wait",
    kind: ParamKind::Word { words: &["code", "paper"], default: "code" },
    unit: "",
    help: "wait of a segment: whole RTTs (kernel code), or fractions of an RTT (paper)",
    clause: "Yang et al. 2014; the port in the kernel of the ToN paper",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "otias",
    aliases: &[],
    idea: "assign each segment to the subflow on which it arrives first, even if that window is full",
    page: "\
For each segment, OTIAS predicts the arrival on every subflow, behind the data already assigned
there. It assigns the segment to the subflow with the earliest arrival. A full subflow thus gets a
queue of its own, which it sends in order as its window opens.

    can   = max(0, cwnd - inflight)
    wait  = 0                                    if queued < can
          = ceil((queued - can + 1) / cwnd)      otherwise, in RTTs
    T     = wait * srtt + srtt / 2
    choose  argmin T  over the live subflows that small queues (TSQ) do not hold back

Counts are in segments. Only data within the send window is assigned. Assigned data is taken back
when a subflow joins, fails or recovers. `back` takes it back in two more cases:

    small    it waits for a full window of four segments or less
    overdue  with small queues (TSQ), it waits for a full window, and its queue takes more than
             2 * (longest drain time of another subflow + highest RTT)

The second case exists because TSQ may hold the better subflow back for microseconds. Meanwhile
OTIAS assigns all written data to another one. Data that is taken back goes, in order, to a subflow with room
if T of the next segment is lower there. With `back=off`, hundreds of segments may wait for a window
of one segment.

With `wait=paper` the wait is (queued - can) / cwnd, not rounded. The paper of 2014 does not define
it further.

Numbers  arrival_ms of each subflow: T.
Papers   \"Low-Latency Scheduling in MPTCP\" (IEEE/ACM ToN), section III.B, on Yang, Amer and
         Ekiz, \"Out-of-Order Transmission for In-Order Arrival Scheduling for Multipath TCP\" (2014).
Good at  heterogeneous paths with stable RTTs and windows.
Bad at   changes: data seldom leaves the queue of a subflow that has become slow. Losses, and windows
         in slow start, which OTIAS takes as constant.
",
    params: &[WAIT, BACK],
    state: &[],
    },
    queues_ahead: true,
    spreads_bursts: false,
    build: |params| Box::new(Otias {
            whole_rtts: params.word(&WAIT) == "code",
            takes_back: params.switch(&BACK),
        }),
};

/// The scheduler. It has no state: the queues belong to the connection.
#[derive(Debug)]
struct Otias {
    whole_rtts: bool,
    takes_back: bool,
}

impl Otias {
    /// Predicts when the next segment would arrive on `subflow`.
    fn arrival(&self, subflow: &SubflowView) -> Arrival {
        match self.whole_rtts {
            true => Arrival::next_on(subflow),
            false => Arrival::in_parts(subflow),
        }
    }
}

impl Scheduler for Otias {
    fn needs(&self) -> Needs {
        Needs { pacing_rate: false, ..Needs::ALL }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let late = |owner: &SubflowView| {
            arrival::is_small(owner) || view.tsq && arrival::is_overdue(view, owner)
        };
        if self.takes_back
            && let Some(decision) = arrival::take_back(view, late, |it| self.arrival(it), out)
        {
            return decision;
        }
        let segment = match ahead::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        if let Some(decision) = ahead::beyond_window(view, segment) {
            return decision;
        }
        let candidates = view.candidates();
        let mut best: Option<(Arrival, &SubflowView)> = None;
        for subflow in view.subflows.iter().filter(|it| candidates.contains(it.id)) {
            let arrival = self.arrival(subflow);
            if out.explain
                && let Some(millis) = arrival.millis()
            {
                out.note("arrival_ms", Some(subflow.id), millis);
            }
            if view.tsq && subflow.tsq_blocked {
                continue;
            }
            // Ids ascend, so the first of equal subflows stays.
            if best.is_none_or(|(least, _)| arrival.order(&least) == Ordering::Less) {
                best = Some((arrival, subflow));
            }
        }
        match best {
            Some((_, subflow)) => {
                ahead::place(view, subflow, segment, Reason::EarliestArrival, out)
            }
            None => rules::none_usable(view),
        }
    }
}
