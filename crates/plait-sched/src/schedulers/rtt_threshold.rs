//! RTT threshold: the first subflow whose RTT is below a limit.

use crate::rules::{self, Task};
use crate::{
    About, Decision, Entry, Needs, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    SubflowView, View,
};
use alloc::boxed::Box;
use plait_base::Span;

const THRESHOLD: Param = Param {
    name: "threshold",
    kind: ParamKind::Real { min: 0.0, max: 60_000.0, default: 100.0 },
    unit: "ms",
    help: "use only subflows whose smoothed RTT is below this, if there is one",
    clause: "draft-bonaventure-iccrg-schedulers-02 (gives no value)",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
        name: "rtt-threshold",
        aliases: &[],
        idea: "use the first subflow whose RTT is below a threshold, and none above it",
        page: "\
Each segment goes to the first candidate, by id, that has room and a smoothed RTT below the
threshold. While at least one candidate is below it, the candidates above stay idle, even if all
below are full. If none is below, or no RTT is known, the lowest-RTT rule decides among all.

    low     = candidates with srtt < threshold
    choose  the lowest id in low with  inflight + queued + len <= cwnd
            if low is empty, the lowest srtt of all with room
    wait    if none has room, or if the segment ends beyond the send window

Numbers  srtt_ms (of the chosen one, or of the one waited for), threshold_ms.
Paper    draft-bonaventure-iccrg-schedulers-02, RTT threshold. It does not say what happens if no
         path is below. Stopping for ever is useless. Using only the fastest path would keep one
         segment in flight if two RTTs alternate as the lowest and idle windows are reset.
Good at  a delay that must stay below a known bound.
Bad at   throughput: a path just above the threshold carries nothing. A path whose own queue lifts
         its RTT above it stays idle until the RTT is measured again.
",
        params: &[THRESHOLD],
        state: &[],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |params| Box::new(RttThreshold::new(params)),
};

/// The scheduler. It has no state.
#[derive(Debug)]
struct RttThreshold {
    threshold: Span,
}

impl RttThreshold {
    fn new(params: &Params) -> RttThreshold {
        // Millionths of a millisecond are nanoseconds.
        RttThreshold { threshold: Span::from_nanos(params.millionths(&THRESHOLD)) }
    }
}

impl Scheduler for RttThreshold {
    fn needs(&self) -> Needs {
        Needs { data_acks: true, ..Needs::LEAST }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let segment = match rules::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        let candidates = view.candidates();
        let all = || view.subflows.iter().filter(|it| candidates.contains(it.id));
        let low = |it: &&SubflowView| it.srtt.is_some_and(|srtt| srtt < self.threshold);
        out.note("threshold_ms", None, self.threshold.as_millis_f64());
        let (first, chosen, reason) = match all().find(low) {
            Some(first) => {
                let chosen = all().filter(low).find(|it| it.usable(segment.len(), view.tsq));
                (Some(first), chosen, Reason::BelowThreshold)
            }
            None => {
                let usable = |it: &&SubflowView| it.usable(segment.len(), view.tsq);
                (None, rules::fastest(all().filter(usable)), Reason::NoneBelowThreshold)
            }
        };
        if let Some(chosen) = chosen {
            out.note("srtt_ms", Some(chosen.id), chosen.srtt_or_max().as_millis_f64());
            return rules::run_on(view, chosen, segment, reason);
        }
        match first {
            Some(first) if all().any(|it| it.usable(segment.len(), view.tsq)) => {
                out.note("srtt_ms", Some(first.id), first.srtt_or_max().as_millis_f64());
                Decision::Wait { on: Some(first.id), reason: Reason::AboveThreshold }
            }
            _ => rules::none_usable(view),
        }
    }
}
