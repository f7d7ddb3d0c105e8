//! The estimates of all paths, and the choices that compare them.

use super::estimate::{Copying, Estimate, Moment, Rules, SOONER, bytes_in, time_for};
use super::flights::Flight;
use super::memory::Lane;
use super::way::Way;
use crate::rules::segment_len;
use crate::{Outcome, View};
use arrayvec::ArrayVec;
use plait_base::{Span, SubflowId, SubflowSet, Time};

/// What the connection may send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Bytes from the left edge to the end of the send window.
    pub(super) window: u64,
    /// Bytes that are sent and not acknowledged at most: the receive window, or the send buffer if that is smaller.
    pub(super) room: u64,
    pub(super) unsent: u64,
    /// Unsent bytes within the send window.
    pub(super) at_hand: u64,
    /// Whether data waits for room in the receive window or the send buffer.
    pub(super) limited: bool,
    /// Whether the send buffer is full.
    pub(super) full: bool,
}

/// A place for the estimate of each subflow.
pub(super) type Estimates<'a> = ArrayVec<Estimate<'a>, { SubflowId::MAX }>;

/// The estimates of all paths, in the order of arrival of a full segment.
#[derive(Debug)]
pub(super) struct Paths<'p, 'a> {
    list: &'p [Estimate<'a>],
    /// Their subflows.
    candidates: SubflowSet,
    now: Time,
    mss: u64,
    pub(super) rules: &'p Rules,
    work: Work,
}

/// Which segments of one subflow need no copy, by the time at which they should arrive.
#[derive(Clone, Copy)]
pub(super) struct Calm {
    /// A segment that should have arrived before is late.
    from: Time,
    /// Only a segment that should arrive later may arrive sooner elsewhere.
    until: Time,
}

impl Calm {
    /// Without this, all segments are late.
    const NONE: Calm = Calm { from: Time::NEVER, until: Time::ZERO };

    /// Returns true if a segment is late.
    pub(super) fn is_late(self, flight: &Flight) -> bool {
        flight.lost || flight.arrives < self.from
    }

    /// Returns true if a segment may need a copy.
    pub(super) fn may_end(self, flight: &Flight) -> bool {
        self.is_late(flight) || flight.arrives > self.until
    }
}

/// The subflows of a connection, each with its calm.
pub(super) struct Calms([Calm; SubflowId::MAX]);

impl Calms {
    #[inline]
    pub(super) fn of(&self, subflow: SubflowId) -> Calm {
        self.0.get(subflow.index()).copied().unwrap_or(Calm::NONE)
    }
}

/// Sorts by arrival.
fn sort(paths: &mut [Estimate<'_>], varies: Span, doubts: bool) {
    let key = |path: &Estimate<'_>| match doubts && !path.main {
        true => path.arrival + path.view.rttvar.max(varies),
        false => path.arrival,
    };
    match paths {
        [_] => {}
        [first, second] if key(second) >= key(first) => {}
        [first, second] => core::mem::swap(first, second),
        _ => paths.sort_unstable_by_key(key),
    }
}

impl<'p, 'a> Paths<'p, 'a> {
    /// Estimates each candidate of the view, in the empty `list`.
    #[inline(always)]
    pub(super) fn new(
        list: &'p mut Estimates<'a>,
        view: &View<'a>,
        lanes: &[Lane; SubflowId::MAX],
        rules: &'p Rules,
        work: Work,
    ) -> Paths<'p, 'a> {
        let (now, mss, candidates) = (view.now, segment_len(view), view.candidates());
        let subflows = view.subflows;
        let moment = Moment { now, mss, backlog: rules.backlog, candidates, subflows };
        // The main path has the largest pace of those that are tried.
        let (mut main, mut most, mut any_tried) = (0, 0, false);
        for subflow in view.subflows {
            if !candidates.contains(subflow.id) {
                continue;
            }
            let Some(lane) = lanes.get(subflow.id.index()) else { continue };
            if list.is_full() {
                break;
            }
            let path = Estimate::new(subflow, lane, &moment);
            let tried = path.tried || !rules.probe;
            let pace = if rules.within { path.pace_within(work.window) } else { path.pace };
            if tried & !any_tried || (tried == any_tried && pace > most) {
                (main, most, any_tried) = (list.len(), pace, tried);
            }
            list.push(path);
        }
        if let Some(main) = list.get_mut(main) {
            main.main = true;
            let varies = main.view.rttvar;
            sort(list, varies, rules.doubt);
        }
        Paths { list, candidates, now, mss, rules, work }
    }

    /// Returns true if a path may carry new data. Another path than the main one may do so only if that is
    /// worth its risk, and does not hold up other data.
    #[inline(always)]
    fn is_worth(&self, path: &Estimate<'_>) -> bool {
        path.main || (self.is_worth_its_risk(path) && !self.holds_up(path))
    }

    fn main(&self) -> Option<&Estimate<'a>> {
        self.iter().find(|it| it.main)
    }

    #[inline(never)]
    fn is_worth_its_risk(&self, path: &Estimate<'_>) -> bool {
        let Some(main) = self.main() else { return true };
        // A path with a cost gets no copies, so only new data shows its rate.
        let copies_only =
            self.rules.probe && path.view.price.cost == 0 && main.tried && !path.tried;
        !copies_only && path.is_worth(main, self.rules, &self.work, self.mss)
    }

    /// Returns true if data waits for room, and new data on a path would take more room than it is worth.
    fn holds_up(&self, path: &Estimate<'_>) -> bool {
        let main = self.main().filter(|_| self.rules.hold && self.work.limited);
        main.is_some_and(|main| path.holds_up(main, self.work.room))
    }

    /// Returns true if the path may take a segment of `len` bytes.
    #[inline]
    fn has_room(&self, path: &Estimate<'_>, view: &View<'_>, len: u64) -> bool {
        path.view.room() >= len.max(view.next_len())
            && !(view.tsq && path.view.tsq_blocked)
            && path.held_with(len) <= path.limit(self.rules, self.mss)
    }

    /// Returns true if the path may take a copy of `len` bytes.
    pub(super) fn may_copy(&self, path: &Estimate<'_>, view: &View<'_>, len: u64) -> bool {
        path.view.price.copies && self.has_room(path, view, len)
    }

    /// Returns the paths; a full segment arrives first on the one in front.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Estimate<'a>> {
        self.list.iter()
    }

    /// Writes the numbers behind a decision.
    pub(super) fn explain(&self, out: &mut Outcome) {
        for path in self.iter() {
            out.note("arrival_ms", Some(path.view.id), path.arrival.as_nanos() as f64 / 1e6);
            if path.rate > 0 {
                out.note("rate_mbit", Some(path.view.id), path.rate as f64 * 8e-6);
            }
        }
    }

    /// Returns the path at this place of the order if it may take a new segment of `len` bytes, with the bytes
    /// that the paths before it deliver until a segment sent there now arrives.
    #[inline(always)]
    pub(super) fn taking(
        &self,
        at: usize,
        view: &View<'_>,
        len: u64,
    ) -> Option<(&Estimate<'a>, u64)> {
        let (before, rest) = self.list.split_at_checked(at)?;
        let path = rest.first()?;
        if !self.has_room(path, view, len) || !self.is_worth(path) {
            return None;
        }
        let mut ahead: u64 = 0;
        for other in before {
            if self.is_worth(other) {
                let delivers = other.delivers(path.arrival, self.mss, self.rules.growth);
                ahead = ahead.saturating_add(delivers);
            }
        }
        Some((path, ahead))
    }

    /// Returns the number of paths.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns a test for segments that may be late. This excludes most segments at a small cost.
    #[inline]
    pub(super) fn may_be_late(&self) -> impl Fn(&Flight) -> bool + use<> {
        let before = self.now - self.rules.copying.late;
        let candidates = self.candidates;
        move |flight| flight.lost | (flight.arrives < before) | !candidates.contains(flight.subflow)
    }

    /// Returns true if the acknowledgement of a segment is overdue, or its subflow counts it as lost.
    pub(super) fn is_late(&self, view: &View<'_>, flight: &Flight) -> bool {
        let patience = self.patience(view, flight.subflow);
        patience.is_none_or(|it| flight.lost || self.now > flight.arrives + it)
    }

    /// Returns the time after its arrival for which a segment of a subflow is not late; `None` if that has no time.
    ///
    /// A carrier that takes no more data has time only if that is due to the price.
    fn patience(&self, view: &View<'_>, carrier: SubflowId) -> Option<Span> {
        let path = self.iter().find(|it| it.view.id == carrier).map(|it| (it.view, it.min_rtt));
        let resting = || {
            let it = view.subflow(carrier).filter(|it| it.price.resting && !it.pf)?;
            Some((it, it.srtt.unwrap_or_default()))
        };
        let (subflow, rtt) = path.or_else(resting)?;
        Some(rtt.over(2) + subflow.rttvar.times(4).min(rtt.times(2)) + self.rules.copying.late)
    }

    /// Returns for each subflow which of its segments need no copy, if a copy takes the place of no other data: the
    /// paths have sent all the data at hand.
    pub(super) fn calms(&self, view: &View<'_>, ways: &[Way; SubflowId::MAX]) -> Calms {
        let least = self.iter().map(|it| it.arrival).min().unwrap_or_default();
        let eager = self.rules.copying.eager && self.work.at_hand < self.mss;
        let mut list = [Calm::NONE; SubflowId::MAX];
        for subflow in view.subflows {
            let id = subflow.id;
            let (Some(calm), Some(way)) = (list.get_mut(id.index()), ways.get(id.index())) else {
                continue;
            };
            let patience = match self.iter().find(|it| eager && it.view.id == id) {
                Some(path) => Some(path.min_rtt.over(2) + subflow.rttvar + SOONER),
                None => self.patience(view, id),
            };
            let ago = |it: Span| Time::from_nanos(view.now.since(Time::ZERO).minus(it).as_nanos());
            calm.from = patience.map_or(Time::NEVER, ago);
            let others = self.iter().filter(|it| it.view.id != id && self.may_copy(it, view, 1));
            let elsewhere = others.map(|it| it.last_arrives_in(1)).min().unwrap_or(Span::MAX);
            let until = view.now + elsewhere.max(least);
            // Segments behind a repair arrive with it.
            calm.until = if way.repair > until { Time::ZERO } else { until };
        }
        Calms(list)
    }

    /// Returns true if the carrier of a late segment makes progress, and repairs the segment before the
    /// paths have sent the data at hand. A copy would then only take the place of other data.
    ///
    /// The retransmission of a segment that counts as lost leaves now. The loss of any other is noticed
    /// within a round trip.
    pub(super) fn repairs_in_time(&self, flight: &Flight) -> bool {
        let carrier = self.iter().find(|it| it.view.id == flight.subflow);
        let Some(carrier) =
            carrier.filter(|it| self.rules.copying.patient && it.overdue == Span::ZERO)
        else {
            return false;
        };
        let noticed = if flight.lost { Span::ZERO } else { carrier.min_rtt };
        let pace = self.iter().filter(|it| self.is_worth(it)).map(|it| it.pace);
        let busy = time_for(self.work.at_hand, pace.fold(0, u64::saturating_add));
        busy >= noticed + carrier.arrives_in(flight.range.len())
    }

    /// Returns true if another path with room delivers a segment sooner than its carrier.
    pub(super) fn is_sooner_elsewhere(&self, view: &View<'_>, flight: &Flight) -> bool {
        let other = self.fastest_except(view, flight.subflow, flight.range.len());
        other.is_some_and(|it| {
            let margin = it.view.rttvar.over(4) + SOONER;
            flight.arrives > self.now + it.arrives_in(flight.range.len()) + margin
        })
    }

    /// Returns the paths with room that may hedge, in order of arrival; those without an RTT sample come
    /// first.
    pub(super) fn for_hedge(
        &self,
        view: &View<'_>,
        len: u64,
    ) -> impl Iterator<Item = &Estimate<'a>> {
        let able =
            move |it: &&Estimate<'_>| self.may_copy(it, view, len) && (it.main || !it.is_filled());
        let (new, sampled) = (self.iter(), self.iter());
        let new = new.filter(|it| it.view.srtt.is_none());
        new.chain(sampled.filter(|it| it.view.srtt.is_some())).filter(able)
    }

    /// Returns the bytes of copies in advance that a path may carry in a minute.
    pub(super) fn hedge_budget(&self) -> u64 {
        let Copying { spare, full, .. } = self.rules.copying;
        if self.work.full { spare.min(full) } else { spare }
    }

    /// Returns a path with room that carries only copies because its rate is unknown.
    pub(super) fn unknown(&self, view: &View<'_>, len: u64) -> Option<&Estimate<'a>> {
        let new = |it: &&Estimate<'_>| {
            !it.main
                && (!it.source.is_known() || it.losses.is_clean())
                && !self.is_worth_its_risk(it)
        };
        self.iter().find(|it| new(it) && self.may_copy(it, view, len))
    }

    /// Returns the bytes that a path with room may take by one decision, if they are more than one segment.
    #[inline]
    pub(super) fn burst(&self, path: &Estimate<'_>) -> Option<u64> {
        let len = bytes_in(path.rate, self.rules.burst);
        if len < 2 * self.mss {
            return None;
        }
        let spare = path.limit(self.rules, self.mss).saturating_sub(path.held_with(0));
        Some(len.min(path.view.room()).min(spare))
    }

    /// Returns the path with room on which a segment arrives first, except on `carrier`.
    pub(super) fn fastest_except(
        &self,
        view: &View<'_>,
        carrier: SubflowId,
        len: u64,
    ) -> Option<&Estimate<'a>> {
        let others = self.iter().filter(|it| it.view.id != carrier && self.may_copy(it, view, len));
        others.min_by_key(|it| it.arrives_in(len))
    }
}
