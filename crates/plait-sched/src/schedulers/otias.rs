//! OTIAS: out-of-order transmission for in-order arrival.

use crate::ahead::{self, Task};
use crate::arrival::{self, Arrival, BACK};
use crate::rules;
use crate::{Decision, Entry, Kind, Needs, Outcome, Param, Reason, Scheduler, SubflowView, View};
use alloc::boxed::Box;
use core::cmp::Ordering;

const WAIT: Param = Param {
    name: "wait",
    kind: Kind::Word { words: &["code", "paper"], default: "code" },
    unit: "",
    help: "wait of a segment in whole RTTs (kernel code), or as a fraction of them (paper)",
    clause: "Yang et al. 2014; the port in the kernel of the ToN paper",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    name: "otias",
    aliases: &[],
    idea: "each segment where it would arrive first, even if that window is full",
    page: "\
For each segment OTIAS predicts when it would arrive on every subflow, behind what is assigned there
already, and assigns it to the one where that is soonest. A full subflow thus gets a queue of its
own, which is sent in order as its window opens, and is not looked at again.

    can   = max(0, cwnd - inflight)
    wait  = 0                                    if queued < can
          = ceil((queued - can + 1) / cwnd)      otherwise, in RTTs
    T     = wait * srtt + srtt / 2
    choose  argmin T  over the live subflows that small queues (TSQ) do not hold back

Counts are in segments. Only what the send window takes is assigned. What is assigned is taken back
when a subflow comes, fails or recovers. With `back` it is also taken back from a full window of four
segments or less. Small queues (TSQ) may hold the better subflow back for microseconds, while all that was
written is assigned to another one. So with small queues it is also taken back from any full window whose
queue takes more than twice as long as the queue of each other subflow and the slowest round trip. What is
taken back goes where there is room, the first first, as long as T of the next segment is less there. With
`back=off` a queue of hundreds of segments may be left to a window of one. With `wait=paper` the wait is (queued - can) / cwnd, not rounded: the
paper of 2014 says no more than that.

Numbers  arrival_ms of each subflow: T.
Papers   \"Low-Latency Scheduling in MPTCP\" (IEEE/ACM ToN), section III.B, on Yang, Amer and
         Ekiz, \"Out-of-Order Transmission for In-Order Arrival Scheduling for Multipath TCP\" (2014).
Good at  unlike paths whose RTTs and windows hold still.
Bad at   change: little takes a segment back from a queue that has become slow. Losses, and
         windows in slow start, which it takes for constant.
",
    params: &[WAIT, BACK],
    state: &[],
    queues_ahead: true,
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
