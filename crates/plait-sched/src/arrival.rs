//! When a segment would arrive behind what is assigned already, and what follows where that is too
//! late: data that waits for a window of a few segments goes where it arrives sooner.

use crate::{CaState, Decision, Kind, Outcome, Param, Reason, SubflowView, View, ahead, exact};
use core::cmp::Ordering;
use plait_base::{DataRange, SubflowId};

/// What every scheduler that takes back has for it.
pub(crate) const BACK: Param = Param {
    name: "back",
    kind: Kind::Switch { default: true },
    unit: "",
    help: "on: what is assigned to a window of four segments or less, or to one that is far behind the others, goes where it arrives sooner; off: it stays",
    clause: "ours",
};

/// A predicted arrival: `halves / of` half RTTs times the RTT in ns; without an RTT sample, which is
/// zero here, never.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    srtt: u64,
    halves: u64,
    of: u64,
}

impl Arrival {
    /// Of the next segment over `subflow`, which waits for whole RTTs.
    pub(crate) fn next_on(subflow: &SubflowView) -> Arrival {
        // With nothing assigned the counts need not be known: either a segment fits, or it is the
        // first of those that wait.
        if subflow.queued == 0 {
            let fits = subflow.cwnd.saturating_sub(subflow.inflight) >= ahead::mss(subflow);
            let srtt = subflow.srtt.map_or(0, exact::whole_nanos);
            return Arrival { srtt, halves: if fits { 1 } else { 3 }, of: 1 };
        }
        Arrival::behind(subflow, |behind, cwnd| (2 * (behind + 1).div_ceil(cwnd) + 1, 1))
    }

    /// Of what goes over `subflow` before all that is assigned to it, once its full window moves on.
    fn first_on(subflow: &SubflowView) -> Arrival {
        let srtt = subflow.srtt.map_or(0, exact::whole_nanos);
        Arrival { srtt, halves: 3, of: 1 }
    }

    /// [`Arrival::next_on`], but it waits for fractions of RTTs too.
    pub(crate) fn in_parts(subflow: &SubflowView) -> Arrival {
        Arrival::behind(subflow, |behind, cwnd| (2 * behind + cwnd, cwnd))
    }

    /// `waits` tells the half RTTs, and of what they are parts, behind so many segments with such a
    /// window.
    fn behind(subflow: &SubflowView, waits: impl Fn(u64, u64) -> (u64, u64)) -> Arrival {
        let counts = [ahead::free_segments, ahead::queued_segments, ahead::window_segments];
        // Far below the end of the numbers, so that twice one of them and another is too.
        let [can, queued, cwnd] = counts.map(|count| count(subflow).min(1 << 60));
        let (halves, of) = match queued.checked_sub(can) {
            None => (1, 1),
            Some(behind) => waits(behind, cwnd),
        };
        Arrival { srtt: subflow.srtt.map_or(0, exact::whole_nanos), halves, of }
    }

    /// Half RTTs in ns times `of`.
    fn scaled(&self) -> u128 {
        u128::from(self.srtt) * u128::from(self.halves)
    }

    pub(crate) fn order(&self, other: &Arrival) -> Ordering {
        if self.srtt == 0 || other.srtt == 0 {
            return (self.srtt == 0).cmp(&(other.srtt == 0));
        }
        // Whole RTTs: no fractions to compare.
        if self.of == other.of {
            return self.scaled().cmp(&other.scaled());
        }
        exact::compare(self.scaled(), other.of.into(), other.scaled(), self.of.into())
    }

    pub(crate) fn millis(&self) -> Option<f64> {
        let halves = self.srtt as f64 * self.halves as f64 / self.of as f64;
        (self.srtt > 0).then_some(halves / 2e6)
    }
}

/// The first of what is assigned to a subflow whose window is full, for
/// one that would have it across sooner: with room, or, while a timeout is being repaired there,
/// with nothing assigned but what lies beyond it, which then goes after it. `from` tells of whom it
/// may be taken.
pub(crate) fn take_back(
    view: &View<'_>,
    from: impl Fn(&SubflowView) -> bool,
    arrival: impl Fn(&SubflowView) -> Arrival,
    out: &mut Outcome,
) -> Option<Decision> {
    for owner in view.subflows.iter().filter(|it| is_stuck(it) && from(it)) {
        let Some(first) = first_assigned(view, owner.id) else { continue };
        let (there, silenced) = (arrival(owner), owner.ca == CaState::Loss && is_small(owner));
        let candidates = view.candidates();
        let here = |it: &SubflowView| {
            let beyond = || first_assigned(view, it.id).is_some_and(|own| first.end <= own.start);
            match it.queued {
                0 if it.usable(ahead::mss(it), view.tsq) => Some(arrival(it)),
                1.. if silenced && !(is_stuck(it) && is_small(it)) && beyond() => {
                    Some(Arrival::first_on(it))
                }
                _ => None,
            }
        };
        let takers = view.subflows.iter().filter(|it| candidates.contains(it.id));
        let takers = takers.filter_map(|it| Some((it, here(it)?)));
        let sooner = takers.filter(|(_, at)| at.order(&there) == Ordering::Less);
        let Some((taker, _)) = sooner.min_by(|a, b| a.1.order(&b.1)) else { continue };
        let mss = ahead::mss(taker);
        let room = if taker.queued > 0 { taker.cwnd } else { taker.room() } / mss * mss;
        let taken = DataRange::with_len(first.start, room.min(first.len()));
        out.plan.push((taken, taker.id));
        return Some(Decision::Assign { reason: Reason::EarliestArrival });
    }
    None
}

/// The lowest range that is assigned to `holder` and not sent.
fn first_assigned(view: &View<'_>, holder: SubflowId) -> Option<DataRange> {
    let mut at = view.connection.snd_una;
    loop {
        let (range, id) = view.queue.assigned_from(at)?;
        if id == holder {
            return Some(range);
        }
        at = range.end;
    }
}

/// The most segments of a small window: what the kernel's opportunistic retransmission takes for one.
const SMALL: u64 = 4;

/// Whether what is assigned waits for a full window. A subflow that has room sends what it has: if that were
/// taken too, two subflows could pass it to and fro for ever.
fn is_stuck(subflow: &SubflowView) -> bool {
    let window = subflow.cwnd.min(subflow.cap);
    subflow.queued > 0 && window < subflow.inflight.saturating_add(ahead::mss(subflow))
}

/// Whether the window has a few segments at most.
pub(crate) fn is_small(subflow: &SubflowView) -> bool {
    subflow.cwnd.min(subflow.cap) <= SMALL * ahead::mss(subflow)
}

/// Whether `owner` takes more than twice as long for what is assigned to it as each other subflow takes for
/// its own and the slowest round trip. As long as windows stay as they are, no plan is so uneven.
pub(crate) fn is_overdue(view: &View<'_>, owner: &SubflowView) -> bool {
    let slowest = view.subflows.iter().filter_map(|it| it.srtt).max().unwrap_or_default();
    let others = view.subflows.iter().filter(|it| it.id != owner.id).map(drain);
    let even = others.max().unwrap_or_default().saturating_add(slowest.as_nanos());
    drain(owner) > even.saturating_mul(2)
}

/// How long, in ns, a subflow takes to send what is assigned to it, a window in each round trip.
fn drain(subflow: &SubflowView) -> u64 {
    if subflow.queued == 0 {
        return 0;
    }
    let window = exact::bytes(subflow.cwnd.min(subflow.cap)).max(1);
    let nanos = exact::bytes(subflow.queued) * exact::nanos(subflow.srtt_or_max()) / window;
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
