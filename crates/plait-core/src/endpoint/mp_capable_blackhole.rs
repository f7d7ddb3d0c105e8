//! MP_CAPABLE black holes (RFC 8684 section 3.7). If SYNs with MP_CAPABLE were lost and one without
//! it was answered, later connections omit it for a time that grows with each failure.

use plait_base::{Span, Time};

/// Largest number of times that the wait doubles.
const MAX_DOUBLINGS: u32 = 8;

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct MpCapableBlackhole {
    until: Time,
    times: u32,
}

impl MpCapableBlackhole {
    /// Returns true if MP_CAPABLE must not be offered at `now`.
    pub(super) fn is_active(&self, now: Time) -> bool {
        now < self.until
    }

    /// Notes that a handshake was answered: with MP_CAPABLE, or (`swallowed`) only after SYNs with
    /// it were lost. `first` is the duration of the first wait.
    pub(super) fn learn(&mut self, now: Time, swallowed: bool, first: Span) {
        if swallowed {
            self.until = now + first.times(1 << self.times.min(MAX_DOUBLINGS));
            self.times += 1;
        } else {
            *self = MpCapableBlackhole::default();
        }
    }
}
