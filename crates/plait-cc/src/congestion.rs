//! The window of one subflow, except for the formulas of the algorithms.

mod outside;
mod rated;
mod undo;

use crate::books::Sizes;
use crate::hystart::{Detector, Growth};
use crate::idle::IdlePeriod;
use crate::{
    Ack, Algorithm, Books, Flow, Flows, IdleReset, IdleRestart, LossIntervals, Phase, Restarted,
    Settings, View,
};
use alloc::boxed::Box;
use plait_base::{Slim, Span, Time};
use undo::Before;

/// What determines the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// Slow start and the formulas of the algorithm.
    Formulas,
    /// The same. The threshold is that of an earlier connection.
    Recalled,
    /// It is an [`Algorithm::fixed_window`].
    Fixed,
    /// The [`Algorithm::rate_control`].
    Rate,
}

/// The congestion window of one subflow.
///
/// The transport reports events in order, and time never goes back. The type handles slow start,
/// the minimum of one segment, fractions of bytes, loss intervals and idle restart. Its
/// [`Algorithm`] returns the growth in congestion avoidance and the threshold after a loss.
///
/// Of the given [`Flows`] it reads the siblings, and the RTT of its own entry. It keeps the other
/// values of its own flow itself.
///
/// The transport sends `cwnd / mss` whole segments; the fraction stays in the window. In recovery
/// [`cwnd`](Congestion::cwnd) is already the reduced window. The transport applies proportional
/// rate reduction (RFC 6937) to it.
#[derive(Debug)]
pub struct Congestion {
    sizes: Sizes,
    algorithm: Box<dyn Algorithm>,
    /// Result of [`Algorithm::watches`].
    watches: bool,
    /// Result of [`Algorithm::couples`].
    couples: bool,
    owner: Owner,
    cwnd: u64,
    /// Fraction of a byte that belongs to `cwnd`, from 0 to below 1.
    fraction: f64,
    ssthresh: Slim<u64>,
    phase: Phase,
    intervals: LossIntervals,
    idle: IdlePeriod,
    hystart: Option<Box<Detector>>,
    /// State for [`Congestion::undo`]; set at the first reduction.
    before: Option<Box<Option<Before>>>,
}

impl Congestion {
    /// Creates the state of a subflow that has sent nothing: the initial window, in slow start.
    #[must_use]
    pub fn new(settings: Settings, algorithm: Box<dyn Algorithm>) -> Congestion {
        let sizes = Sizes::from(&settings);
        let mss = sizes.segment();
        let ssthresh = settings.ssthresh.map(|bytes| (bytes / mss * mss).max(mss));
        let mut algorithm = algorithm;
        let rated = algorithm.rate_control().is_some();
        let mut congestion = Congestion {
            sizes,
            watches: algorithm.watches(),
            couples: algorithm.couples(),
            owner: if rated { Owner::Rate } else { Owner::Formulas },
            algorithm,
            cwnd: sizes.initial_bytes(),
            fraction: 0.0,
            ssthresh: ssthresh.filter(|_| !rated).into(),
            phase: Phase::SlowStart { after_timeout: false },
            intervals: LossIntervals::default(),
            idle: IdlePeriod::default(),
            hystart: Detector::of(settings.hystart).filter(|_| !rated).map(Box::new),
            before: None,
        };
        congestion.fix();
        congestion
    }

    /// Creates the state of a subflow in use, with the window, threshold, recovery and loss
    /// interval of `flow`. All other state of the algorithm is initial.
    #[must_use]
    pub fn resumed(settings: Settings, algorithm: Box<dyn Algorithm>, flow: &Flow) -> Congestion {
        let phase = match flow.in_recovery {
            true => Phase::Recovery,
            false => Phase::SlowStart { after_timeout: false },
        };
        let intervals = LossIntervals { since_last: flow.loss_interval, between_last_two: 0 };
        let Flow { cwnd, ssthresh, .. } = *flow;
        let books = Books { cwnd, fraction: 0.0, ssthresh, phase, intervals };
        Congestion::continued(settings, algorithm, &books)
    }

    /// Restores a subflow from its saved state; `algorithm` has restored its own. A window below
    /// one segment becomes one segment.
    #[must_use]
    pub fn continued(
        settings: Settings,
        algorithm: Box<dyn Algorithm>,
        books: &Books,
    ) -> Congestion {
        let mut congestion = Congestion::new(settings, algorithm);
        congestion.intervals = books.intervals;
        if congestion.fixed().is_none() {
            congestion.cwnd = books.cwnd.max(congestion.sizes.segment());
            congestion.fraction =
                if (0.0..1.0).contains(&books.fraction) { books.fraction } else { 0.0 };
            congestion.ssthresh = books.ssthresh.into();
            congestion.phase = books.phase;
        }
        congestion
    }

    /// Returns the state to save.
    #[must_use]
    pub fn books(&self) -> Books {
        let Congestion { cwnd, fraction, phase, intervals, .. } = *self;
        Books { cwnd, fraction, ssthresh: self.ssthresh(), phase, intervals }
    }

    /// Returns the algorithm, for its state and its numbers.
    #[must_use]
    pub fn algorithm(&self) -> &dyn Algorithm {
        self.algorithm.as_ref()
    }

    /// Returns the congestion window in bytes, at least one segment.
    #[must_use]
    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// Returns the payload bytes of a full segment.
    #[must_use]
    pub const fn mss(&self) -> u32 {
        self.sizes.mss
    }

    /// Returns the slow start threshold in bytes; `None` is infinite.
    #[must_use]
    pub fn ssthresh(&self) -> Option<u64> {
        self.ssthresh.value()
    }

    /// Returns true if the algorithm reads the siblings: [`Algorithm::couples`].
    #[must_use]
    pub fn couples(&self) -> bool {
        self.couples
    }

    /// Returns true if the window is below its threshold, outside recovery.
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.phase != Phase::Recovery && self.below_threshold()
    }

    /// Returns true while a loss is being repaired. That is after [`on_loss`](Congestion::on_loss),
    /// until [`on_recovered`](Congestion::on_recovered) or a timeout.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// Returns the initial window of the subflow in bytes.
    #[must_use]
    pub fn initial_window(&self) -> u64 {
        self.fixed().unwrap_or_else(|| self.sizes.initial_bytes())
    }

    /// Returns true if the window never changes.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.owner == Owner::Fixed
    }

    /// Returns true if slow start and the formulas of the algorithm determine the window.
    fn has_formulas(&self) -> bool {
        matches!(self.owner, Owner::Formulas | Owner::Recalled)
    }

    /// Returns the larger of two byte counts: acknowledged since the last loss, and between the
    /// last two.
    #[must_use]
    pub fn loss_interval(&self) -> u64 {
        self.intervals.longer()
    }

    /// Returns the subflow as its siblings read it. `live` is true if the subflow is alive; `srtt` is the
    /// smoothed RTT, if there is a sample.
    #[must_use]
    pub fn flow(&self, srtt: Option<Span>, live: bool) -> Flow {
        Flow {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh(),
            srtt,
            mss: self.sizes.mss,
            in_recovery: self.in_recovery(),
            live,
            loss_interval: self.loss_interval(),
        }
    }

    /// Takes in an acknowledgement of new data. Call it in recovery too: the window does not change
    /// then, but the loss interval grows.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &Ack, flows: Flows<'_>) {
        self.intervals.since_last = self.intervals.since_last.saturating_add(ack.bytes);
        if self.watches {
            self.watch(ack, flows);
        }
        let start = self.judge_start(ack);
        if self.phase == Phase::Recovery || !ack.cwnd_limited || !self.has_formulas() {
            return;
        }
        let mut bytes = ack.bytes;
        if self.below_threshold() {
            bytes = self.slow_start(bytes, start);
            if self.below_threshold() {
                return;
            }
        }
        if self.phase != Phase::Avoidance {
            self.phase = Phase::Avoidance;
            if let Some(hystart) = &mut self.hystart {
                hystart.on_avoidance(ack.now);
            }
            self.algorithm.on_avoidance(ack.now, &self.flow(Some(ack.srtt), true));
        }
        if bytes > 0 {
            let view = View::new(self.own(flows), flows);
            let growth = self.algorithm.increase(ack, bytes, &view);
            self.grow(growth);
        }
    }

    /// Takes in a detected loss with `inflight` bytes in flight. The window falls to the new
    /// threshold, and recovery begins. Further losses change nothing until recovery ends.
    ///
    /// The window never rises here, except to the minimum threshold of two segments. `inflight` may
    /// exceed the window if the window was reduced from outside.
    pub fn on_loss(&mut self, now: Time, inflight: u64, flows: Flows<'_>) {
        if self.phase == Phase::Recovery {
            return;
        }
        self.remember();
        self.intervals.on_loss();
        match self.owner {
            Owner::Fixed => return,
            Owner::Rate => return self.begin_rated_recovery(),
            Owner::Formulas | Owner::Recalled => {}
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.on_loss();
        }
        let threshold = self.reduce_threshold(now, inflight, flows);
        let most = self.cwnd.max(2 * self.sizes.segment());
        self.cwnd = threshold.min(most);
        self.fraction = 0.0;
        self.phase = Phase::Recovery;
    }

    /// Ends recovery: all data in flight when the loss was detected is repaired. After a timeout it
    /// matters to a [`RateControl`](crate::RateControl) only.
    pub fn on_recovered(&mut self, now: Time) {
        if self.owner == Owner::Rate {
            return self.end_rated_recovery();
        }
        if self.phase != Phase::Recovery {
            return;
        }
        self.phase = self.phase_by_threshold();
        self.algorithm.on_recovered(now, &self.flow(None, true));
    }

    /// Takes in an expired retransmission timer with `inflight` bytes in flight. The window falls
    /// to one segment. The threshold changes only on the `first_expiry` for a segment (RFC 5681
    /// section 3.1).
    pub fn on_timeout(&mut self, now: Time, inflight: u64, first_expiry: bool, flows: Flows<'_>) {
        if first_expiry {
            self.remember();
        }
        self.intervals.on_loss();
        match self.owner {
            Owner::Fixed => return,
            Owner::Rate => return self.time_out_rated(),
            Owner::Formulas | Owner::Recalled => {}
        }
        if first_expiry {
            self.reduce_threshold(now, inflight, flows);
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.on_timeout(now);
        }
        self.phase = Phase::SlowStart { after_timeout: true };
        self.put(self.sizes.segment());
    }

    /// Takes in that data was sent, which ends an idle period.
    pub fn on_send(&mut self) {
        self.idle = IdlePeriod::default();
    }

    /// Applies an idle period of `idle` since the last data was sent, with nothing in flight. Call
    /// it before each use of the window. Several calls have the same effect as one with the full
    /// time. Returns the reduction, if this call made one.
    pub fn idle(
        &mut self,
        now: Time,
        idle: Span,
        rto: Span,
        mode: IdleRestart,
    ) -> Option<IdleReset> {
        let more = self.idle.unseen(idle);
        if more > Span::ZERO {
            self.algorithm.on_idle(now, more);
        }
        if !self.has_formulas() {
            return None;
        }
        let before = self.cwnd;
        let window = Restarted { cwnd: before, ssthresh: self.ssthresh() };
        let after = self.idle.advance(mode, &self.sizes, window, idle, rto);
        self.ssthresh = after.ssthresh.into();
        if after.cwnd == before {
            return None;
        }
        self.forget();
        self.put(after.cwnd);
        Some(IdleReset { before, after: after.cwnd })
    }

    /// Reduces a window that was not used up for one RTO, with at most `used` bytes in use. It
    /// falls halfway to `used`, or halfway to the initial window if that is larger. A finite
    /// threshold keeps three quarters of the window (RFC 2861 section 3.2, as in Linux). Returns
    /// the reduction, if any.
    pub fn reduce_unused(&mut self, used: u64) -> Option<IdleReset> {
        let (before, segment) = (self.cwnd, self.sizes.segment());
        let used = used.max(self.sizes.initial_bytes());
        if !self.has_formulas() || used >= before {
            return None;
        }
        let three_quarters = before / 2 + before / 4;
        self.ssthresh = self.ssthresh().map(|bytes| bytes.max(three_quarters)).into();
        self.forget();
        // The algorithm gets no notice: its curve continues, as in Linux.
        self.cwnd = (used.midpoint(before) / segment * segment).max(segment);
        Some(IdleReset { before, after: self.cwnd })
    }

    /// Returns the idle time, since data was last sent, after which the window falls to the initial
    /// one. Returns `None` if it is there already, or if no idle time reduces it to that.
    #[must_use]
    pub fn idle_until_initial(&self, rto: Span, mode: IdleRestart) -> Option<Span> {
        if !self.has_formulas() {
            return None;
        }
        self.idle.until_initial(mode, &self.sizes, self.cwnd, rto)
    }

    /// Sets the window that never changes, if the algorithm has one for this segment size.
    fn fix(&mut self) -> bool {
        let window = self.fixed();
        if let Some(window) = window {
            self.owner = Owner::Fixed;
            (self.cwnd, self.ssthresh) = (window, Slim::some(window));
        } else if self.is_fixed() {
            self.owner = Owner::Formulas;
        }
        window.is_some()
    }

    fn fixed(&self) -> Option<u64> {
        let window = self.algorithm.fixed_window(self.sizes.mss.max(1))?;
        Some(window.max(self.sizes.segment()))
    }

    fn below_threshold(&self) -> bool {
        self.ssthresh().is_none_or(|ssthresh| self.cwnd < ssthresh)
    }

    /// Returns the own flow, with the RTT that only the connection knows.
    fn own(&self, flows: Flows<'_>) -> Flow {
        self.flow(flows.all.get(flows.own).and_then(|flow| flow.srtt), true)
    }

    /// Grows to the threshold and returns the bytes of growth beyond it.
    fn slow_start(&mut self, acked: u64, start: Growth) -> u64 {
        let after_timeout = self.phase == Phase::SlowStart { after_timeout: true };
        self.phase = Phase::SlowStart { after_timeout };
        let limit = match self.sizes.slow_start_limit {
            // RFC 3465 section 2.3 is conservative after a timeout. Linux is not.
            limit if after_timeout && limit != u32::MAX => 1,
            limit => limit.max(1),
        };
        let most = acked.min(u64::from(limit) * self.sizes.segment());
        let growth = match start {
            Growth::Part(of) => most / of,
            _ => most,
        };
        let room = self.ssthresh().map_or(u64::MAX, |ssthresh| ssthresh - self.cwnd);
        let taken = growth.min(room);
        self.cwnd = self.cwnd.saturating_add(taken);
        growth - taken
    }

    /// Passes an acknowledgement to the algorithm and applies the result.
    fn watch(&mut self, ack: &Ack, flows: Flows<'_>) {
        let view = View::new(self.own(flows), flows);
        let Some(change) = self.algorithm.watch(ack, &view) else { return };
        let kept = self.phase == Phase::Recovery || change > 0.0 && !ack.cwnd_limited;
        if kept || !self.has_formulas() {
            return;
        }
        self.grow(change);
        if self.below_threshold() {
            self.ssthresh = Slim::some(self.cwnd);
        }
    }

    /// Passes an acknowledgement in slow start to HyStart. If HyStart ends slow start, the
    /// threshold is set.
    fn judge_start(&mut self, ack: &Ack) -> Growth {
        if self.hystart.is_none() || !self.in_slow_start() {
            return Growth::Full;
        }
        let (segments, first) = (self.cwnd / self.sizes.segment(), self.ssthresh.is_none());
        let Some(hystart) = &mut self.hystart else { return Growth::Full };
        let growth = hystart.on_ack(ack, segments, first);
        if growth == Growth::End {
            self.set_threshold(self.cwnd);
        }
        growth
    }

    /// Applies a change from the algorithm. If the window shrinks without a loss, the threshold
    /// shrinks too: otherwise slow start would undo the change at once.
    fn grow(&mut self, bytes: f64) {
        let total = self.fraction + bytes;
        if !total.is_finite() {
            return;
        }
        let mut whole = libm::floor(total);
        let mut fraction = total - whole;
        if fraction >= 1.0 {
            // A negative sum too close to zero rounds to a fraction of one.
            (whole, fraction) = (whole + 1.0, 0.0);
        }
        self.fraction = fraction;
        self.cwnd = if whole < 0.0 {
            self.cwnd.saturating_sub((-whole) as u64)
        } else {
            self.cwnd.saturating_add(whole as u64)
        };
        let least = self.sizes.segment();
        if self.cwnd < least {
            (self.cwnd, self.fraction) = (least, 0.0);
        }
        self.ssthresh = self.ssthresh().map(|ssthresh| ssthresh.min(self.cwnd)).into();
    }

    fn reduce_threshold(&mut self, now: Time, inflight: u64, flows: Flows<'_>) -> u64 {
        let view = View::new(self.own(flows), flows);
        let threshold = self.algorithm.threshold(now, inflight, &view).max(self.sizes.segment());
        self.set_threshold(threshold);
        threshold
    }

    /// Sets a threshold of this connection.
    fn set_threshold(&mut self, bytes: u64) {
        self.ssthresh = Slim::some(bytes);
        self.forget_recalled();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a subflow with a window of ten segments of 1,000 bytes and a threshold of an earlier
    /// connection.
    fn recalled(ssthresh: u64) -> Congestion {
        let settings = Settings { mss: 1_000, initial_window: 10, ..Settings::default() };
        let mut cc = Congestion::new(settings, crate::Spec::parse("cubic").unwrap().build());
        cc.recall(ssthresh);
        cc
    }

    fn acked(cc: &mut Congestion, bytes: u64) {
        let ms = Span::from_millis;
        let (rtt, srtt, min_rtt) = (Some(ms(20)), ms(20), ms(20));
        let now = Time::ZERO + ms(20);
        let ack = Ack {
            now,
            bytes,
            rtt,
            srtt,
            min_rtt,
            cwnd_limited: true,
            round: false,
            acked: 0,
            sent: 0,
        };
        let own = [cc.flow(Some(srtt), true)];
        cc.on_ack(&ack, Flows { all: &own, own: 0 });
    }

    #[test]
    fn a_threshold_of_an_earlier_connection_ends_slow_start_if_a_queue_grows() {
        let mut cc = recalled(20_700);
        assert_eq!(cc.ssthresh(), Some(20_000));
        // Below the threshold there is nothing to judge.
        cc.doubt_recalled(false);
        assert!(cc.is_recalled());
        (0..10).for_each(|_| acked(&mut cc, 1_000));
        cc.doubt_recalled(true);
        assert!(!cc.is_recalled() && !cc.in_slow_start());
        cc.doubt_recalled(false);
        assert_eq!(cc.ssthresh(), Some(20_000));
    }

    #[test]
    fn a_threshold_of_an_earlier_connection_is_dropped_if_there_is_room() {
        for ssthresh in [0, 3_000, 20_000] {
            let mut cc = recalled(ssthresh);
            (0..10).for_each(|_| acked(&mut cc, 1_000));
            cc.doubt_recalled(false);
            assert_eq!((cc.ssthresh(), cc.is_recalled()), (None, false));
            let before = cc.cwnd();
            acked(&mut cc, 1_000);
            assert_eq!(cc.cwnd(), before + 1_000, "slow start continues");
        }
    }

    #[test]
    fn a_configured_threshold_and_one_after_a_loss_are_the_own_ones() {
        let settings = Settings { ssthresh: Some(50_000), ..Settings::default() };
        let mut cc = Congestion::new(settings, crate::Spec::parse("reno").unwrap().build());
        cc.recall(20_000);
        assert!(!cc.is_recalled());
        let mut cc = recalled(40_000);
        let own = [cc.flow(None, true)];
        cc.on_loss(Time::ZERO, 10_000, Flows { all: &own, own: 0 });
        cc.on_recovered(Time::ZERO);
        let own = cc.ssthresh();
        assert!(!cc.is_recalled() && own < Some(40_000));
        cc.doubt_recalled(false);
        assert_eq!(cc.ssthresh(), own);
    }

    /// RFC 2861 section 3.2: halfway to the used bytes, and three quarters for the threshold.
    #[test]
    fn an_unused_window_falls_half_the_way() {
        let settings = Settings {
            mss: 1_000,
            initial_window: 10,
            ssthresh: Some(20_000),
            ..Settings::default()
        };
        let mut cc = Congestion::new(settings, crate::Spec::parse("cubic").unwrap().build());
        cc.penalise(60_000, Some(20_000));
        assert_eq!(cc.reduce_unused(30_000), Some(IdleReset { before: 60_000, after: 45_000 }));
        assert_eq!(cc.ssthresh(), Some(45_000));
        // The initial window counts as used.
        assert_eq!(cc.reduce_unused(1_000), Some(IdleReset { before: 45_000, after: 27_000 }));
        assert_eq!(cc.reduce_unused(27_000), None);
    }
}
