//! State of one subflow's window: its settings, its phase, and the part that can be saved.

use crate::HyStart;

/// Settings that every algorithm shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Payload bytes of a full segment; zero counts as one.
    pub mss: u32,
    /// Initial window in segments (RFC 6928); zero counts as one.
    pub initial_window: u32,
    /// Initial slow start threshold in bytes; `None` is infinite. It is rounded down to whole
    /// segments, and is at least one.
    pub ssthresh: Option<u64>,
    /// L of RFC 3465: slow start grows by at most this many segments per ACK, and by one after a
    /// timeout. With [`u32::MAX`] there is no limit in either case.
    pub slow_start_limit: u32,
    /// The rule that ends slow start before a loss.
    pub hystart: HyStart,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mss: 1448,
            initial_window: 10,
            ssthresh: None,
            slow_start_limit: 2,
            hystart: HyStart::Off,
        }
    }
}

impl Settings {
    /// Returns the bytes of a full segment, at least one.
    pub(crate) fn segment(&self) -> u64 {
        Sizes::from(self).segment()
    }
}

/// The settings that matter after the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) mss: u32,
    initial_window: u32,
    pub(crate) slow_start_limit: u32,
}

impl From<&Settings> for Sizes {
    fn from(settings: &Settings) -> Sizes {
        let Settings { mss, initial_window, slow_start_limit, .. } = *settings;
        Sizes { mss, initial_window, slow_start_limit }
    }
}

impl Sizes {
    /// Returns the bytes of a full segment, at least one.
    pub(crate) fn segment(&self) -> u64 {
        u64::from(self.mss.max(1))
    }

    /// Returns the initial window in bytes.
    pub(crate) fn initial_bytes(&self) -> u64 {
        u64::from(self.initial_window.max(1)) * self.segment()
    }
}

/// The phase of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The window is below the threshold. After a timeout it grows by one segment per ACK, if
    /// [`Settings::slow_start_limit`] is not [`u32::MAX`].
    SlowStart {
        /// True if a timeout began this slow start.
        after_timeout: bool,
    },
    /// Congestion avoidance: the algorithm changes the window.
    Avoidance,
    /// A loss is being repaired. The window does not change.
    Recovery,
}

/// Bytes acknowledged between losses (draft-khalili-mptcp-congestion-control-05 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LossIntervals {
    /// Since the last loss, or the start.
    pub since_last: u64,
    /// Between the last two losses.
    pub between_last_two: u64,
}

impl LossIntervals {
    /// Starts a new interval, unless nothing was acknowledged in the present one.
    pub(crate) fn on_loss(&mut self) {
        if self.since_last > 0 {
            self.between_last_two = self.since_last;
            self.since_last = 0;
        }
    }

    /// Returns the longer of the two intervals, in bytes.
    #[must_use]
    pub fn longer(&self) -> u64 {
        self.since_last.max(self.between_last_two)
    }
}

/// The saved state of a subflow's window, from which a run can continue. An idle period in
/// progress, HyStart, and the state for an undo are not saved.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Books {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Fraction of a byte that belongs to the window, from 0 to below 1.
    pub fraction: f64,
    /// Slow start threshold in bytes; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// The phase of the window.
    pub phase: Phase,
    /// Bytes acknowledged between losses.
    pub intervals: LossIntervals,
}
