//! The clock of TCP timestamps (RFC 7323 section 5.4).

use plait_base::Time;

/// Counts milliseconds from an offset, as most stacks do.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct StampClock {
    offset: u32,
}

impl StampClock {
    pub(crate) const fn new(offset: u32) -> StampClock {
        StampClock { offset }
    }

    pub(crate) const fn at(self, now: Time) -> u32 {
        self.offset.wrapping_add((now.as_nanos() / 1_000_000) as u32)
    }
}

/// Returns true if `a` is before `b` on a 32-bit clock (RFC 7323 section 5.2).
pub(crate) const fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) >= 1 << 31
}
