//! STMS-C: slide together, with a calculated gap.

use crate::gap::{self, Lanes};
use crate::rules::{self, Task};
use crate::{
    About, Decision, Entry, Needs, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    View,
};
use alloc::boxed::Box;
use plait_base::SubflowId;

pub(super) const TAIL: Param = Param {
    name: "tail_use_slow",
    kind: ParamKind::Switch { default: false },
    unit: "",
    help: "if less data than the gap is unsent, the slow subflow takes the last segment",
    clause: "STMS, ATC 2018, section 4: the subflow skips its turn",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "stms-c",
    aliases: &[],
    idea: "give the slow subflow data that lies a calculated gap ahead, so that it arrives in order",
    page: "\
F is the subflow with the lowest RTT, S the other. F takes the first of the unsent data. While F has
no room, S takes the data that lies `gap` segments further on. When it arrives, F has delivered the
data before it. The segments of the gap stay reserved for F.

    F has room   unsent[0] on F
    else         unsent[gap] on S, if it is written and ends within the send window; else wait for F
    gap          floor(cwnd_F * (srtt_S - srtt_F) / (2 * srtt_F)), calculated after each segment on S

With more than two subflows (our extension), the gap of each is the sum of this formula over all
faster subflows.

Numbers  gap.ID in segments, of S; calculated.ID, the next one, not rounded.
Paper    \"STMS: Improving MPTCP Throughput Under Heterogeneous Networks\" (ATC 2018), sections 3.1
         and 4, equation 2.
Good at  bulk transfers over heterogeneous paths: data arrives in order, so small buffers do not
         stall.
Bad at   short transfers: if less data than the gap is unsent, S sends nothing. One-way delays are
         taken as half the RTTs, and the rate of F as cwnd/srtt. A burst or a queue on F makes the
         gap wrong (see stms-a).
",
    params: &[TAIL],
    state: &[("gap.ID", "gap of the slow subflow ID, in segments")],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |params| Box::new(StmsC::new(params)),
};

/// The scheduler.
#[derive(Debug)]
struct StmsC {
    tail: bool,
    /// The gap of each slow subflow in segments, by id.
    gap: [Option<u64>; SubflowId::MAX],
}

impl StmsC {
    fn new(params: &Params) -> StmsC {
        StmsC { tail: params.switch(&TAIL), gap: [None; SubflowId::MAX] }
    }

    /// Sets each gap that is not known yet, once all RTTs are known.
    fn start(&mut self, view: &View<'_>, lanes: Lanes<'_>) {
        for slow in lanes.slow() {
            if let Some(gap @ None) = self.gap.get_mut(slow.id.index()) {
                *gap = lanes.calculated(view, slow);
            }
        }
    }
}

impl Scheduler for StmsC {
    fn needs(&self) -> Needs {
        Needs { pacing_rate: false, ..Needs::ALL }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let segment = match rules::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        let Some(lanes) = Lanes::of(view) else { return rules::none_usable(view) };
        self.start(view, lanes);
        let gap = |slow: &crate::SubflowView| {
            self.gap.get(slow.id.index()).copied().flatten().unwrap_or_default()
        };
        let decision = gap::pick(view, lanes, segment, self.tail, gap, out);
        if let Decision::Send { subflow, reason: Reason::AheadByGap, .. } = decision
            && let Some(slow) = view.subflow(subflow)
            && let Some(calculated) = lanes.calculated(view, slow)
            && let Some(gap) = self.gap.get_mut(subflow.index())
        {
            *gap = Some(calculated);
            if out.explain {
                out.note("calculated", Some(slow.id), lanes.calculated_real(view, slow));
            }
        }
        decision
    }

    fn on_notice(&mut self, _: &View<'_>, notice: Notice) {
        crate::state::forget(notice, &mut self.gap);
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        crate::state::save_each("gap.", "", &self.gap, write, |gap| gap.map(|gap| gap as f64));
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        match crate::state::slot("gap.", "", name, &mut self.gap) {
            Some(gap) => {
                *gap = (value >= 0.0).then(|| crate::exact::nearest(value));
                true
            }
            None => false,
        }
    }
}
