//! Pacing: the segments of a window are spread over the round trip. As in Linux's internal pacing,
//! each segment sets the earliest time of the next one.

use crate::config::Pacing;
use crate::tcp::rated::Rated;
use alloc::boxed::Box;
use plait_base::{Span, Time};

/// Returns the rate in bytes per second: `start_percent` of a window per round trip while the
/// window is below half of ssthresh, `percent` after. Zero before the first RTT sample.
#[must_use]
pub(crate) fn rate(cwnd: u64, ssthresh: Option<u64>, srtt: Option<Span>, pacing: Pacing) -> u64 {
    let Some(nanos) = srtt.map(|srtt| srtt.as_nanos().max(1)) else { return 0 };
    let starting = ssthresh.is_none_or(|ssthresh| cwnd < ssthresh / 2);
    let percent = if starting { pacing.start_percent } else { pacing.percent };
    let scale = u64::from(percent) * 10_000_000;
    // Windows below a gigabyte need no wide division.
    match cwnd.checked_mul(scale) {
        Some(product) => product / nanos,
        None => {
            let rate = u128::from(cwnd) * u128::from(scale) / u128::from(nanos);
            u64::try_from(rate).unwrap_or(u64::MAX)
        }
    }
}

/// The longest wait at the rate of a controller (sch_fq of Linux). The rate may rise at any time: a reader that
/// was slow for a while leaves a rate of some bytes per second.
const LONGEST_WAIT: Span = Span::from_secs(1);

/// Bursts of a host in a second: it may send the data of 1 ms at once (as `tcp_tso_autosize` of Linux).
const HOST_BURSTS: u64 = 1_000;

/// Holds a subflow back until its release time.
#[derive(Debug)]
pub(crate) struct Pacer {
    settings: Pacing,
    /// Bytes that may still be sent without pacing.
    credit: u64,
    /// Most of these.
    burst: u64,
    /// Most of these after a loss.
    small_burst: u64,
    release: Time,
    held: bool,
    /// Unsent bytes of the connection when the latest segment was sent.
    pub(super) backlog: u64,
    /// Set if the controller sets the rate.
    pub(super) rated: Option<Box<Rated>>,
}

impl Pacer {
    /// Returns a pacer of segments with `mss` bytes.
    pub(crate) const fn new(settings: Pacing, mss: u64) -> Pacer {
        let burst = settings.burst as u64 * mss;
        Pacer {
            settings,
            credit: burst,
            burst,
            small_burst: settings.small_burst as u64 * mss,
            release: Time::ZERO,
            held: false,
            backlog: 0,
            rated: None,
        }
    }

    /// Returns a pacer whose rate the controller sets.
    pub(super) fn rated() -> Pacer {
        Pacer { rated: Some(Box::new(Rated::new())), ..Pacer::new(Pacing::default(), 0) }
    }

    /// Returns its settings.
    pub(crate) const fn settings(&self) -> Pacing {
        self.settings
    }

    /// Returns true if the release time has not come.
    pub(crate) const fn is_held(&self) -> bool {
        self.held
    }

    /// Lets only small bursts leave at once from now on.
    pub(super) fn limit_bursts(&mut self) {
        self.burst = self.burst.min(self.small_burst);
        self.credit = self.credit.min(self.burst);
    }

    /// Takes the credit for a sent segment of `len` bytes. Returns false if there is too little.
    pub(super) const fn pay(&mut self, len: u64) -> bool {
        let pays = self.credit >= len;
        if pays {
            self.credit -= len;
        }
        pays
    }

    /// Returns true if a burst is being spread.
    pub(super) fn is_spreading(&self, now: Time) -> bool {
        self.settings.ack_clocked && self.release > now
    }

    /// Notes that an acknowledgement has clocked out a segment of `len` bytes while a burst is being spread at
    /// `rate` bytes per second. The rest of the burst waits longer, so that both together do not exceed the rate.
    pub(super) fn postpone(&mut self, now: Time, len: u64, rate: u64) {
        if rate > 0 {
            self.release = (self.release + gap(len, rate)).min(now + LONGEST_WAIT);
        }
    }

    /// Notes that acknowledgements have clocked out `clocked` bytes, at a rate of bytes per second. Returns true if
    /// segments of `mss` bytes were held and no longer are.
    pub(super) fn on_acked(&mut self, clocked: u64, mss: u64, rate: impl Fn() -> u64) -> bool {
        if !self.settings.ack_clocked || self.rated.is_some() {
            return false;
        }
        self.credit = self.credit.saturating_add(clocked);
        if self.credit > self.burst {
            self.credit = self.credit.min(self.burst.max(rate() / HOST_BURSTS));
        }
        let frees = self.held && self.credit >= mss;
        self.held &= !frees;
        frees
    }

    /// Notes a sent segment of `len` bytes at `rate` bytes per second, for which there was no credit. Returns
    /// when the next one may be sent; `None` for at once.
    pub(crate) fn on_sent(&mut self, now: Time, len: u64, rate: u64) -> Option<Time> {
        if rate == 0 {
            return None;
        }
        self.release = self.release.max(now) + gap(len, rate);
        self.held = self.release > now;
        self.held.then_some(self.release)
    }

    /// As [`Pacer::on_sent`], at the rate of the controller. The segments of a send quantum leave at once.
    pub(super) fn on_sent_rated(&mut self, now: Time, len: u64) -> Option<Time> {
        let rated = self.rated.as_mut()?;
        if self.release <= now {
            rated.renew_quantum();
        }
        let release = self.release.max(now) + gap(len, rated.rate());
        self.release = release.min(now + LONGEST_WAIT);
        self.held = rated.use_quantum(len) && self.release > now;
        self.held.then_some(self.release)
    }

    /// Notes that the release time has come.
    pub(crate) fn release(&mut self) {
        self.held = false;
        if let Some(rated) = &mut self.rated {
            rated.renew_quantum();
        }
    }
}

/// Returns the time of `len` bytes at `rate` bytes per second.
fn gap(len: u64, rate: u64) -> Span {
    let nanos = u128::from(len) * 1_000_000_000 / u128::from(rate.max(1));
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_at_once_then_one_a_gap() {
        let mut pacer = Pacer::new(Pacing::default(), 1_448);
        let at = |nanos| Time::from_nanos(nanos);
        for _ in 0..10 {
            assert!(pacer.pay(1_448));
        }
        assert!(!pacer.pay(1_448));
        assert_eq!(pacer.on_sent(at(5), 1_448, 1_448_000), Some(at(1_000_005)));
        // A probe does not wait, but postpones the release.
        assert_eq!(pacer.on_sent(at(10), 724, 1_448_000), Some(at(1_500_005)));
        assert!(pacer.is_held());
        pacer.release();
        // Idle time is not saved up.
        assert_eq!(pacer.on_sent(at(9_000_000), 1_448, 1_448_000), Some(at(10_000_000)));
    }

    #[test]
    fn a_loss_leaves_small_bursts() {
        let mut pacer = Pacer::new(Pacing { burst: 20, small_burst: 4, ..Pacing::BURSTS }, 1_000);
        let paid = |pacer: &mut Pacer| (0..100).take_while(|_| pacer.pay(1_000)).count();
        assert_eq!(paid(&mut pacer), 20);
        pacer.on_acked(30_000, 1_000, || 0);
        pacer.limit_bursts();
        assert_eq!(paid(&mut pacer), 4);
        pacer.on_acked(30_000, 1_000, || 0);
        assert_eq!(paid(&mut pacer), 4);
        // A burst that is smaller by its setting stays.
        let mut pacer = Pacer::new(Pacing { burst: 2, ..Pacing::BURSTS }, 1_000);
        pacer.limit_bursts();
        assert_eq!(paid(&mut pacer), 2);
    }

    #[test]
    fn acknowledgements_clock_out_segments_up_to_a_burst() {
        let mut pacer = Pacer::new(Pacing { burst: 4, ..Pacing::BURSTS }, 1_000);
        while pacer.pay(1_000) {}
        assert_eq!(
            pacer.on_sent(Time::ZERO, 1_000, 100_000),
            Some(Time::ZERO + Span::from_millis(10))
        );
        assert!(pacer.is_held());
        // A segment frees one, and nothing more is held.
        assert!(pacer.on_acked(1_000, 1_000, || 0));
        assert!(!pacer.is_held());
        assert!(pacer.pay(1_000));
        assert!(!pacer.pay(1_000));
        // The credit has a limit, so that a stall ends with a small burst.
        assert!(!pacer.on_acked(1_000_000, 1_000, || 0));
        assert_eq!((0..100).take_while(|_| pacer.pay(1_000)).count(), 4);
        // At a high rate the limit is the data of a millisecond.
        assert!(!pacer.on_acked(1_000_000, 1_000, || 9_000_000));
        assert_eq!((0..100).take_while(|_| pacer.pay(1_000)).count(), 9);
    }

    /// Clocked segments and the rest of a burst together leave at the rate.
    #[test]
    fn a_clocked_segment_postpones_the_rest_of_a_burst() {
        let mut pacer = Pacer::new(Pacing { burst: 1, ..Pacing::BURSTS }, 1_000);
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        assert!(pacer.pay(1_000) && !pacer.is_spreading(at(0)));
        assert_eq!(pacer.on_sent(at(0), 1_000, 100_000), Some(at(10)));
        assert!(pacer.on_acked(1_000, 1_000, || 0) && pacer.pay(1_000));
        assert!(pacer.is_spreading(at(9)) && !pacer.is_spreading(at(10)));
        pacer.postpone(at(9), 1_000, 100_000);
        assert_eq!(pacer.on_sent(at(10), 1_000, 100_000), Some(at(30)));
        // Without a rate nothing waits.
        pacer.postpone(at(11), 1_000, 0);
        assert!(!pacer.is_spreading(at(30)));
    }

    #[test]
    fn without_the_clock_acknowledgements_free_nothing() {
        let mut pacer = Pacer::new(Pacing { burst: 0, ..Pacing::default() }, 1_000);
        pacer.on_sent(Time::ZERO, 1_000, 100_000);
        assert!(!pacer.on_acked(10_000, 1_000, || 0));
        assert!(pacer.is_held() && !pacer.pay(1_000));
    }

    /// A quantum of two segments leaves at once, and the next one after the time of both.
    #[test]
    fn a_quantum_at_once_then_one_a_gap() {
        let mut pacer = Pacer::rated();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        if let Some(rated) = &mut pacer.rated {
            rated.set(100_000, 2_000);
        }
        assert_eq!(pacer.on_sent_rated(at(5), 1_000), None);
        assert_eq!(pacer.on_sent_rated(at(5), 1_000), Some(at(25)));
        assert!(pacer.is_held());
        pacer.release();
        assert_eq!(pacer.on_sent_rated(at(25), 1_000), None);
        // The rest of the quantum ends with its time.
        assert_eq!(pacer.on_sent_rated(at(40), 1_000), None);
        assert_eq!(pacer.on_sent_rated(at(40), 1_000), Some(at(60)));
        // Ten bytes per second are not waited for.
        pacer.release();
        if let Some(rated) = &mut pacer.rated {
            rated.set(10, 1_000);
        }
        assert_eq!(pacer.on_sent_rated(at(60), 1_000), Some(at(1_060)));
    }

    #[test]
    fn without_an_rtt_nothing_is_held() {
        let mut pacer = Pacer::new(Pacing { burst: 0, ..Pacing::default() }, 1_448);
        assert_eq!(
            pacer.on_sent(Time::ZERO, 1_448, rate(14_480, None, None, Pacing::default())),
            None
        );
        assert!(!pacer.is_held());
    }
}
