//! Estimates of when a segment would arrive on each path.

use super::Lane;
use super::flights::Flight;
use super::loss::LossShare;
use super::rate::{MAX_HELD_BACK, RateSource};
use crate::rules::segment_len;
use crate::{Outcome, SubflowView, View};
use plait_base::{Span, SubflowId, SubflowSet, Time};

/// Time beyond twice the RTT variation after which an acknowledgement counts as overdue.
const OVERDUE: Span = Span::from_millis(10);
/// Time by which a copy must arrive sooner than the first transmission.
const SOONER: Span = Span::from_millis(1);
/// Time for which a host gathers segments and acknowledgements (Linux lets 1 ms of a flow wait in its devices).
const HOST: Span = Span::from_millis(1);
/// Doublings of a window beyond which it counts as unlimited.
const MAX_DOUBLINGS: u64 = 20;

/// The parameters of the estimates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether the data in flight is limited to that which the rate needs.
    pub(super) cap: bool,
    /// Percent of the bandwidth-delay product that the main path may hold.
    pub(super) main_percent: u64,
    /// Percent of the bandwidth-delay product that each other path may hold.
    pub(super) side_percent: u64,
    /// Time beyond the variation after which data counts as late.
    pub(super) late: Span,
    /// Whether windows in slow start are expected to double in each round trip.
    pub(super) growth: bool,
    /// Whether the RTT variation delays the arrival on paths other than the main one.
    pub(super) doubt: bool,
    /// Percent of the expected delay by losses that a path other than the main one must save.
    pub(super) risk_percent: u64,
    /// Whether a path other than the main one carries only copies until its rate is known.
    pub(super) probe: bool,
    /// Whether late data is not copied if its own path repairs it in time.
    pub(super) patient: bool,
    /// Whether data counts as late sooner if nothing new can be sent.
    pub(super) eager: bool,
    /// Time of a path's rate for which one decision holds.
    pub(super) burst: Span,
}

/// What the connection may send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Bytes from the left edge to the end of the send window.
    pub(super) window: u64,
    pub(super) unsent: u64,
    /// Unsent bytes within the send window.
    pub(super) at_hand: u64,
    /// Whether data waits for room in the receive window or the send buffer.
    pub(super) limited: bool,
}

/// The estimate of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate<'a> {
    pub(super) view: &'a SubflowView,
    /// Bytes a second; zero if unknown.
    pub(super) rate: u64,
    min_rtt: Span,
    /// The smoothed RTT. On an idle path its queue drains.
    srtt: Span,
    /// Bytes a second that the path is expected to carry.
    pace: u64,
    /// The wait in queues that the latest RTT sample shows.
    seen: Span,
    /// Time since the path last made progress, if it is longer than its RTT variation allows.
    overdue: Span,
    /// Time until a full segment arrives.
    arrival: Span,
    /// Length of a full segment.
    segment: u64,
    pub(super) main: bool,
    source: RateSource,
    losses: LossShare,
    /// Whether it has carried the connection alone.
    proven: bool,
}

/// The estimates of all paths, in the order of arrival of a full segment.
#[derive(Debug)]
pub(super) struct Paths<'p, 'a> {
    list: &'p [Option<Estimate<'a>>],
    /// Their subflows.
    carriers: SubflowSet,
    now: Time,
    mss: u64,
    rules: Rules,
    work: Work,
}

/// Returns the bytes that a rate of bytes a second gives in `span`.
fn bytes_in(rate: u64, span: Span) -> u64 {
    rate.saturating_mul(span.as_micros()) / 1_000_000
}

/// Returns the time that `bytes` take at a rate of bytes a second.
fn time_for(bytes: u64, rate: u64) -> Span {
    Span::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1))
}

/// Returns the RTT of a path without a sample: the remembered one, or else `unsampled`.
#[cold]
fn first_rtt(remembered: Span, unsampled: &dyn Fn() -> Span) -> Span {
    if remembered == Span::ZERO { unsampled() } else { remembered }
}

impl<'a> Estimate<'a> {
    /// Estimates a path. One without an RTT sample counts as one whose RTT is `unsampled`.
    #[inline]
    fn new(
        view: &'a SubflowView,
        lane: &Lane,
        now: Time,
        mss: u64,
        unsampled: &dyn Fn() -> Span,
    ) -> Estimate<'a> {
        let rate = lane.rate.rate();
        let own = view.min_rtt.or(view.srtt);
        let min_rtt = own.unwrap_or_else(|| first_rtt(lane.min_rtt, unsampled));
        let busy = view.inflight > 0;
        let age = now.since(view.rtt_at);
        let seen = view.last_rtt.unwrap_or_default().minus(min_rtt).minus(age);
        let held_back = if view.inflight < 2 * mss { MAX_HELD_BACK } else { Span::ZERO };
        let overdue = now.since(lane.progress).minus(view.rttvar.times(2) + OVERDUE + held_back);
        let pace = match (rate, view.srtt) {
            (0, Some(srtt)) => {
                let window = view.cwnd.min(view.cap);
                window.saturating_mul(1_000_000) / srtt.as_micros().max(1)
            }
            (rate, _) => rate,
        };
        let mut estimate = Estimate {
            view,
            rate,
            min_rtt,
            pace,
            srtt: view.srtt.unwrap_or(min_rtt).minus(if busy { Span::ZERO } else { age }),
            seen: if busy { seen } else { Span::ZERO },
            overdue: if busy { overdue } else { Span::ZERO },
            arrival: Span::ZERO,
            segment: mss,
            main: false,
            source: lane.rate.source,
            losses: lane.losses,
            proven: lane.proven,
        };
        estimate.arrival = estimate.arrives_behind(estimate.held_with(mss));
        estimate
    }

    /// Returns the time until the last of `len` bytes arrives, all sent now.
    pub(super) fn last_arrives_in(&self, len: u64) -> Span {
        self.arrives_behind(self.held_with(len))
    }

    /// Returns the bytes that the path holds after `len` more.
    fn held_with(&self, len: u64) -> u64 {
        self.view.inflight.saturating_add(self.view.queued).saturating_add(len)
    }

    /// Returns the time until a segment of `len` bytes arrives.
    pub(super) fn arrives_in(&self, len: u64) -> Span {
        if len == self.segment { self.arrival } else { self.arrives_behind(self.held_with(len)) }
    }

    /// Returns the time until the last of `held` bytes arrives, if the path holds these.
    pub(super) fn arrives_behind(&self, held: u64) -> Span {
        let queue = match self.rate {
            0 => self.srtt.minus(self.min_rtt),
            rate => time_for(held, rate).minus(self.min_rtt),
        };
        self.min_rtt.over(2) + queue.max(self.seen) + self.overdue
    }

    /// Returns the bytes that the path delivers before `time` from now on, ahead of other data sent now.
    fn delivers(&self, time: Span, mss: u64, growth: bool) -> u64 {
        if time <= self.arrival {
            return 0;
        }
        let left = time.minus(self.arrival);
        let window = self.view.cwnd.min(self.view.cap);
        let srtt = self.view.srtt.unwrap_or_default().as_micros().max(1);
        let thousandths = left.as_micros().saturating_mul(1_000) / srtt;
        let slow_start = self.view.ssthresh.is_none_or(|it| self.view.cwnd < it);
        let factor = match growth && slow_start {
            // 2^x - 1, on a line between whole numbers.
            true => {
                let (whole, part) = (thousandths / 1_000, thousandths % 1_000);
                (1_u64 << whole.min(MAX_DOUBLINGS)) * (1_000 + part) - 1_000
            }
            false => thousandths,
        };
        let free = self.view.room().saturating_add(window.saturating_mul(factor) / 1_000);
        match self.rate {
            0 => free,
            rate => free.min(bytes_in(rate, left).saturating_add(mss)),
        }
    }

    /// Returns the most bytes that the path may hold: those that its rate needs.
    fn limit(&self, rules: &Rules, mss: u64) -> u64 {
        // A remembered rate may be far too low. Its path must get enough data for a sample.
        if !rules.cap || self.rate == 0 || self.source != RateSource::Own {
            return u64::MAX;
        }
        let (base, spare, variations, percent) = match self.main {
            true => (10, 4, 2, rules.main_percent),
            false => (4, 3, 1, rules.side_percent),
        };
        // A queue that drains varies the RTT too, and needs no more data for that.
        let varies = self.view.rttvar.min(self.min_rtt.over(2));
        let span = self.min_rtt + varies.times(variations);
        let held = bytes_in(self.rate, span).saturating_mul(percent) / 100;
        let spare = (spare * mss).max(bytes_in(self.rate, HOST));
        (base * mss).max(held.saturating_add(spare))
    }

    /// Returns the bytes a second that the window allows.
    fn window_pace(&self) -> u64 {
        let window = self.view.cwnd.min(self.view.cap);
        let srtt = self.view.srtt.unwrap_or(self.min_rtt).as_micros().max(1);
        window.saturating_mul(1_000_000) / srtt
    }

    /// Returns true if the time that a segment saves on this path is worth the risk: the delay until a loss
    /// is repaired on `main`, less the time for which the window and the unsent data keep `main` busy.
    ///
    /// If data waits for room, a loss stops all of it. An earlier arrival then saves no time.
    fn is_worth(&self, main: &Estimate<'_>, rules: &Rules, work: Work, mss: u64) -> bool {
        let varies = self.view.rttvar.times(4).min(self.min_rtt.times(2));
        let repair = self.min_rtt.over(2) + varies + rules.late + main.min_rtt.over(2);
        let loss_ppm = self.losses.ppm();
        let least = |delay: Span| {
            let delay = delay.as_nanos().saturating_mul(loss_ppm) / 1_000_000;
            delay.saturating_mul(rules.risk_percent) / 100
        };
        let sooner = match work.limited {
            true => 0,
            false => main.arrival.minus(self.arrival).as_nanos(),
        };
        let most = least(repair);
        // Most paths pass here, without a division by a rate.
        if sooner >= most || mss.saturating_mul(1_000_000_000) >= most.saturating_mul(main.pace) {
            return true;
        }
        let pace = main.pace.min(main.window_pace());
        let holds = bytes_in(main.pace, main.min_rtt).min(main.view.cwnd.min(main.view.cap));
        let busy = time_for(work.window.saturating_sub(holds).min(work.unsent), pace);
        time_for(mss, pace).as_nanos().max(sooner) >= least(repair.minus(busy))
    }

    /// Returns true if the path holds as much as its rate needs without a queue.
    pub(super) fn is_filled(&self) -> bool {
        self.rate > 0 && self.view.inflight >= bytes_in(self.rate, self.min_rtt)
    }
}

/// Sorts by arrival.
fn sort(paths: &mut [Option<Estimate<'_>>], main: usize, doubts: bool) {
    let varies = match paths.get(main) {
        Some(Some(main)) => main.view.rttvar,
        _ => Span::ZERO,
    };
    let key = |path: &Option<Estimate<'_>>| match path {
        Some(path) if doubts && !path.main => path.arrival + path.view.rttvar.max(varies),
        Some(path) => path.arrival,
        None => Span::MAX,
    };
    match paths {
        [_] => {}
        [first, second] if key(second) >= key(first) => {}
        [first, second] => core::mem::swap(first, second),
        _ => paths.sort_unstable_by_key(key),
    }
}

impl<'p, 'a> Paths<'p, 'a> {
    /// Estimates each candidate of the view, in the places of `list`. There are as many places as subflows
    /// or more.
    pub(super) fn new(
        list: &'p mut [Option<Estimate<'a>>],
        view: &View<'a>,
        lanes: &[Lane],
        rules: Rules,
        work: Work,
    ) -> Paths<'p, 'a> {
        let (now, mss) = (view.now, segment_len(view));
        // The candidates of the view. Backups take data only if no other subflow is alive.
        let regular = view.subflows.iter().any(|it| !it.backup && it.alive());
        let candidates = view.subflows.iter().filter(|it| it.backup != regular && it.alive());
        let sampled = || candidates.clone().filter_map(|it| it.min_rtt.or(it.srtt));
        let unsampled = || sampled().max().unwrap_or_default();
        // The main path has the largest pace.
        let (mut count, mut main, mut pace, mut carriers) = (0, 0, 0, SubflowSet::EMPTY);
        for (place, view) in list.iter_mut().zip(candidates.clone()) {
            let Some(lane) = lanes.get(view.id.index()) else { continue };
            let estimate = place.insert(Estimate::new(view, lane, now, mss, &unsampled));
            if estimate.pace > pace {
                (main, pace) = (count, estimate.pace);
            }
            carriers.insert(view.id);
            count += 1;
        }
        let list = &mut list[..count];
        if let Some(Some(main)) = list.get_mut(main) {
            main.main = true;
        }
        sort(list, main, rules.doubt);
        Paths { list, carriers, now, mss, rules, work }
    }

    /// Returns true if a path may carry new data. Another path than the main one may do so only if that is
    /// worth its risk.
    fn is_worth(&self, path: &Estimate<'_>) -> bool {
        let Some(main) = self.iter().find(|it| it.main && !path.main) else { return true };
        // Without copies, only new data shows the rate.
        let unknown = self.rules.probe
            && path.view.price.cost == 0
            && main.source.is_known()
            && !path.source.is_known()
            && !path.proven;
        !unknown && path.is_worth(main, &self.rules, self.work, self.mss)
    }

    /// Returns true if the path may take a segment of `len` bytes.
    fn has_room(&self, path: &Estimate<'_>, view: &View<'_>, len: u64) -> bool {
        path.view.usable(len.max(view.next_len()), view.tsq)
            && path.held_with(len) <= path.limit(&self.rules, self.mss)
    }

    /// Returns true if the path may take a copy of `len` bytes.
    fn may_copy(&self, path: &Estimate<'_>, view: &View<'_>, len: u64) -> bool {
        path.view.price.copies && self.has_room(path, view, len)
    }

    /// Returns the paths; a full segment arrives first on the one in front.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Estimate<'a>> {
        self.list.iter().flatten()
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
    pub(super) fn taking(
        &self,
        at: usize,
        view: &View<'_>,
        len: u64,
    ) -> Option<(&Estimate<'a>, u64)> {
        let (before, rest) = self.list.split_at_checked(at)?;
        let path = rest.first()?.as_ref()?;
        if !self.has_room(path, view, len) || !self.is_worth(path) {
            return None;
        }
        let mut ahead: u64 = 0;
        for other in before.iter().flatten() {
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

    /// Returns true if a segment may be late. This excludes most segments at a small cost.
    #[inline]
    pub(super) fn may_be_late(&self, flight: &Flight) -> bool {
        flight.lost
            || self.now > flight.arrives + self.rules.late
            || !self.carriers.contains(flight.subflow)
    }

    /// Returns true if the acknowledgement of a segment is overdue, or its subflow counts it as lost.
    pub(super) fn is_late(&self, view: &View<'_>, flight: &Flight) -> bool {
        let Some(path) = self.iter().find(|it| it.view.id == flight.subflow) else {
            return self.is_late_at_rest(view, flight);
        };
        let varies = path.view.rttvar.times(4).min(path.min_rtt.times(2));
        flight.lost || self.now > flight.arrives + path.min_rtt.over(2) + varies + self.rules.late
    }

    /// As `is_late`, if nothing new can be sent. A copy then takes the place of no other data.
    pub(super) fn is_due(&self, view: &View<'_>, flight: &Flight) -> bool {
        let path = self.iter().find(|it| it.view.id == flight.subflow);
        let Some(path) = path.filter(|_| self.rules.eager) else {
            return self.is_late(view, flight);
        };
        flight.lost || self.now > flight.arrives + path.min_rtt.over(2) + path.view.rttvar + SOONER
    }

    /// As `is_late`, for a segment whose carrier takes no more data. It has time only if that is due to
    /// the price.
    fn is_late_at_rest(&self, view: &View<'_>, flight: &Flight) -> bool {
        let carrier = view.subflow(flight.subflow).filter(|it| it.price.resting && !it.pf);
        carrier.is_none_or(|it| {
            let srtt = it.srtt.unwrap_or_default();
            let varies = it.rttvar.times(4).min(srtt.times(2));
            flight.lost || self.now > flight.arrives + srtt.over(2) + varies + self.rules.late
        })
    }

    /// Returns true if the carrier of a late segment makes progress, and repairs the segment before the
    /// paths have sent the data at hand. A copy would then only take the place of other data.
    ///
    /// The retransmission of a segment that counts as lost leaves now. The loss of any other is noticed
    /// within a round trip.
    pub(super) fn repairs_in_time(&self, flight: &Flight) -> bool {
        let carrier = self.iter().find(|it| it.view.id == flight.subflow);
        let Some(carrier) = carrier.filter(|it| self.rules.patient && it.overdue == Span::ZERO)
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

    /// Returns a path with room that carries only copies because its rate is unknown.
    pub(super) fn unknown(&self, view: &View<'_>, len: u64) -> Option<&Estimate<'a>> {
        let new = |it: &&Estimate<'_>| {
            (!it.source.is_known() || it.losses.is_clean()) && !self.is_worth(it)
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
        let spare = path.limit(&self.rules, self.mss).saturating_sub(path.held_with(0));
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
