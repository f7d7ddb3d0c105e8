//! OTIAS: out-of-order transmission for in-order arrival.

use crate::ahead::{self, Task};
use crate::exact;
use crate::rules;
use crate::{Decision, Entry, Kind, Needs, Outcome, Param, Reason, Scheduler, SubflowView, View};
use alloc::boxed::Box;
use core::cmp::Ordering;
use plait_base::ByteRange;

const WAIT: Param = Param {
    name: "wait",
    kind: Kind::Word { words: &["code", "paper"], default: "code" },
    unit: "",
    help: "wait of a segment in whole RTTs (kernel code), or as a fraction of them (paper)",
    clause: "Yang et al. 2014; the port in the kernel of the ToN paper",
};

const BACK: Param = Param {
    name: "back",
    kind: Kind::Switch { default: true },
    unit: "",
    help: "on: what is assigned to a window of one or two segments goes where it arrives sooner; off: it stays",
    clause: "ours",
};

/// What the registry says of it.
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
when a subflow comes, fails or recovers, and where a window has come down to one or two segments
(`back`): then what another subflow has room for goes there, the first first, as long as T of the
next segment is less there. With `back=off` a queue of hundreds of segments may be left to a window of one. With `wait=paper` the wait is (queued - can) / cwnd, not rounded: the
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

/// The scheduler; it remembers nothing: the queues are the connection's.
#[derive(Debug)]
struct Otias {
    whole_rtts: bool,
    takes_back: bool,
}

/// A predicted arrival: `halves / of` half RTTs times the RTT in ns; without an RTT sample, which is
/// zero here, never.
#[derive(Clone, Copy)]
struct Arrival {
    srtt: u64,
    halves: u64,
    of: u64,
}

impl Arrival {
    /// Half RTTs in ns times `of`.
    fn scaled(&self) -> u128 {
        u128::from(self.srtt) * u128::from(self.halves)
    }

    fn order(&self, other: &Arrival) -> Ordering {
        if self.srtt == 0 || other.srtt == 0 {
            return (self.srtt == 0).cmp(&(other.srtt == 0));
        }
        // Whole RTTs: no fractions to compare.
        if self.of == other.of {
            return self.scaled().cmp(&other.scaled());
        }
        exact::compare(self.scaled(), other.of.into(), other.scaled(), self.of.into())
    }

    fn millis(&self) -> Option<f64> {
        let halves = self.srtt as f64 * self.halves as f64 / self.of as f64;
        (self.srtt > 0).then_some(halves / 2e6)
    }
}

impl Otias {
    /// When the next segment would arrive over `subflow`.
    fn arrival(&self, subflow: &SubflowView) -> Arrival {
        let srtt = subflow.srtt.map_or(0, exact::whole_nanos);
        // With nothing assigned the counts need not be known: either a segment fits, or it is the
        // first of those that wait.
        if subflow.queued == 0 && self.whole_rtts {
            let fits = subflow.cwnd.saturating_sub(subflow.inflight) >= ahead::mss(subflow);
            return Arrival { srtt, halves: if fits { 1 } else { 3 }, of: 1 };
        }
        let counts = [ahead::free_segments, ahead::queued_segments, ahead::window_segments];
        // Far below the end of the numbers, so that twice one of them and another is too.
        let [can, queued, cwnd] = counts.map(|count| count(subflow).min(1 << 60));
        let (halves, of) = match queued.checked_sub(can) {
            None => (1, 1),
            Some(behind) if self.whole_rtts => (2 * (behind + 1).div_ceil(cwnd) + 1, 1),
            Some(behind) => (2 * behind + cwnd, cwnd),
        };
        Arrival { srtt, halves, of }
    }

    /// The first of what is assigned to a subflow whose window has come down to a segment or two, for
    /// one that has room and would have the next segment across sooner.
    fn take_back(&self, view: &View<'_>, out: &mut Outcome) -> Option<Decision> {
        // One that has room sends what it has: were that taken too, two of them could pass it to and
        // fro for ever.
        let is_stuck = |it: &&SubflowView| {
            it.queued > 0 && it.cwnd <= 2 * ahead::mss(it) && ahead::free_segments(it) == 0
        };
        let owner = view.subflows.iter().find(is_stuck).filter(|_| self.takes_back)?;
        let there = self.arrival(owner);
        let candidates = view.candidates();
        let takes = |it: &&SubflowView| {
            let free = it.queued == 0 && it.usable(ahead::mss(it), view.tsq);
            let sooner = self.arrival(it).order(&there) == Ordering::Less;
            candidates.contains(it.id) && free && sooner
        };
        let order = |a: &&SubflowView, b: &&SubflowView| self.arrival(a).order(&self.arrival(b));
        let taker = view.subflows.iter().filter(takes).min_by(order)?;
        let mut at = view.connection.snd_una;
        let first = loop {
            let (range, holder) = view.queue.assigned_from(at)?;
            if holder == owner.id {
                break range;
            }
            at = range.end;
        };
        let room = ahead::free_segments(taker) * ahead::mss(taker);
        let taken = ByteRange::with_len(first.start, room.min(first.len()));
        out.plan.push((taken, taker.id));
        Some(Decision::Assign { reason: Reason::EarliestArrival })
    }
}

impl Scheduler for Otias {
    fn needs(&self) -> Needs {
        Needs { pacing_rate: false, ..Needs::ALL }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        if let Some(decision) = self.take_back(view, out) {
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
            // Ids ascend, so that the first of equals stands.
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
