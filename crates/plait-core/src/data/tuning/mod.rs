//! A receive window that starts small and grows with the data read, as Linux's dynamic right-sizing
//! (`tcp_rcv_space_adjust` of 3.12 to 4.18; its Multipath TCP uses the longest RTT of the
//! subflows).

pub(crate) mod memory;

use plait_base::{Dsn, Span, Time};

/// Segments in addition to twice the data read: room for data in flight when the window is
/// advertised.
const SEGMENTS_BESIDE: u64 = 16;
/// Segments that count as read in the round trip before the first.
const FIRST_READ_SEGMENTS: u64 = 10;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// Largest window.
    most: u64,
    /// Largest number of bytes read in a round trip.
    space: u64,
    /// Read position and time at the start of this round trip.
    read: Dsn,
    at: Time,
    rtt: Span,
}

impl Tuning {
    pub(crate) fn new(most: u64, mss: u64) -> Tuning {
        Tuning {
            most,
            space: FIRST_READ_SEGMENTS * mss,
            read: Dsn::ZERO,
            at: Time::ZERO,
            rtt: Span::ZERO,
        }
    }

    /// Returns true if a round trip is over.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now.since(self.at) >= self.rtt
    }

    /// Returns the window after a round trip with `window`; the application has read up to `read`.
    /// `rtt` is the longest of the subflows. The window never shrinks.
    pub(crate) fn turn(&mut self, now: Time, read: Dsn, rtt: Span, mss: u64, window: u64) -> u64 {
        let first = self.rtt == Span::ZERO;
        let copied = read.saturating_sub(self.read);
        (self.read, self.at, self.rtt) = (read, now, rtt);
        if first || copied <= self.space {
            return window;
        }
        let mut wanted = copied.saturating_mul(2).saturating_add(SEGMENTS_BESIDE * mss);
        // The growth of the data read shows how fast the sender grows.
        if copied >= self.space + self.space / 2 {
            wanted = wanted.saturating_mul(2);
        } else if copied >= self.space + self.space / 4 {
            wanted = wanted.saturating_add(wanted / 2);
        }
        self.space = copied;
        window.max(wanted.min(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Round trips of 50 ms in which 8, 20, 24, 26 and 10 segments are read.
    #[test]
    fn the_window_follows_what_is_read_and_never_shrinks() {
        let rtt = Span::from_millis(50);
        let mut tuning = Tuning::new(1 << 20, MSS);
        let mut window = 64_000;
        assert!(tuning.is_due(at(10)));
        window = tuning.turn(at(10), Dsn::ZERO, rtt, MSS, window);
        assert!(!tuning.is_due(at(59)) && tuning.is_due(at(60)));
        let mut read = 0;
        let mut windows = [0; 5];
        for ((n, segments), told) in (1..).zip([8, 20, 24, 26, 10]).zip(&mut windows) {
            read += segments * MSS;
            window = tuning.turn(at(10 + 50 * n), Dsn::new(read), rtt, MSS, window);
            *told = window;
        }
        // 20 is twice the 10 before: 2 (2 x 20 + 16). 24 and 26 are 20 and 8 % more: 2 x 26 + 16 is
        // less than the current window.
        assert_eq!(windows, [64_000, 112_000, 112_000, 112_000, 112_000]);
    }

    #[test]
    fn the_buffer_bounds_it() {
        let mut tuning = Tuning::new(200_000, MSS);
        let rtt = Span::from_millis(1);
        tuning.turn(at(0), Dsn::ZERO, rtt, MSS, 64_000);
        assert_eq!(tuning.turn(at(1), Dsn::new(90_000), rtt, MSS, 64_000), 200_000);
        assert_eq!(tuning.turn(at(2), Dsn::MAX, rtt, MSS, 200_000), 200_000);
    }
}
