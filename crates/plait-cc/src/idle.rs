//! Restart of the window after an idle period (RFC 5681 section 4.1, RFC 2861).

use crate::Settings;
use crate::books::Sizes;
use plait_base::{Slim, Span};

/// The rule for the window after an idle period, which counts from the last data sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum IdleRestart {
    /// For each RTO of idling begun after the first, the window is halved in whole segments. It
    /// does not fall below the initial window. The threshold keeps three quarters of the window
    /// (RFC 2861, as in Linux).
    #[default]
    Linux,
    /// The window returns to the initial window after one RTO (RFC 5681 section 4.1).
    Rfc5681,
    /// The window does not change.
    Off,
}

/// A reduction of the window after an idle period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleReset {
    /// Window before this reduction, in bytes.
    pub before: u64,
    /// Window after it, in bytes.
    pub after: u64,
}

/// Window and threshold after an idle period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restarted {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `None` is infinite.
    pub ssthresh: Option<u64>,
}

/// Applies the rule of [`IdleRestart`] in one step. Returns the window and threshold after `idle`
/// with nothing in flight.
#[must_use]
pub fn restart(
    mode: IdleRestart,
    settings: &Settings,
    window: Restarted,
    idle: Span,
    rto: Span,
) -> Restarted {
    IdlePeriod::default().advance(mode, &Sizes::from(settings), window, idle, rto)
}

/// State of one idle period. It records the reductions already made, so that many calls have the
/// same result as one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct IdlePeriod {
    /// Idle time already counted.
    seen: Span,
    /// Restart window, set by the first call after more than one RTO.
    floor: Slim<u64>,
    /// Number of halvings made.
    halvings: u64,
}

impl IdlePeriod {
    /// Returns the part of `idle` that no earlier call has counted.
    pub(crate) fn unseen(&mut self, idle: Span) -> Span {
        let more = idle.minus(self.seen);
        self.seen += more;
        more
    }

    /// Returns the window and threshold after the total idle time `idle`.
    pub(crate) fn advance(
        &mut self,
        mode: IdleRestart,
        sizes: &Sizes,
        window: Restarted,
        idle: Span,
        rto: Span,
    ) -> Restarted {
        if idle <= rto || mode == IdleRestart::Off {
            return window;
        }
        let Restarted { mut cwnd, mut ssthresh } = window;
        let initial = sizes.initial_bytes();
        if mode == IdleRestart::Rfc5681 {
            return Restarted { cwnd: cwnd.min(initial), ssthresh };
        }
        let floor = match self.floor.value() {
            Some(floor) => floor,
            None => {
                let three_quarters = cwnd - cwnd.div_ceil(4);
                ssthresh = ssthresh.map(|bytes| bytes.max(three_quarters));
                self.floor = Slim::some(cwnd.min(initial));
                cwnd.min(initial)
            }
        };
        let due = idle.as_nanos().div_ceil(rto.as_nanos().max(1)) - 1;
        for _ in self.halvings..due {
            if cwnd <= floor {
                break;
            }
            cwnd = halved(cwnd, sizes).max(floor);
        }
        self.halvings = self.halvings.max(due);
        Restarted { cwnd, ssthresh }
    }

    /// Returns the idle time after which a call finds `cwnd` at the initial window. It counts from
    /// the start of the period. Returns `None` if the window is there already or never gets there.
    pub(crate) fn until_initial(
        &self,
        mode: IdleRestart,
        sizes: &Sizes,
        cwnd: u64,
        rto: Span,
    ) -> Option<Span> {
        let initial = sizes.initial_bytes();
        if cwnd <= initial {
            return None;
        }
        let whole_rtos = match mode {
            IdleRestart::Off => return None,
            IdleRestart::Rfc5681 => 1,
            IdleRestart::Linux => {
                let mut window = cwnd;
                let mut halvings = self.halvings;
                while window > initial {
                    window = halved(window, sizes);
                    halvings = halvings.saturating_add(1);
                }
                halvings
            }
        };
        Some(rto.times(whole_rtos) + Span::from_nanos(1))
    }
}

/// Returns half of a window, rounded down to whole segments.
fn halved(cwnd: u64, sizes: &Sizes) -> u64 {
    let mss = sizes.segment();
    (cwnd / mss / 2) * mss
}
