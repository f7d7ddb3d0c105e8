use crate::Span;
use core::fmt;

/// A data rate in bits per second, counted over whole IP packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(u64);

impl Rate {
    /// No limit.
    pub const INFINITE: Rate = Rate(u64::MAX);
    /// No bytes pass.
    pub const ZERO: Rate = Rate(0);

    /// Returns a rate of `bps` bits per second.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// Returns bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Returns true if there is no limit.
    #[must_use]
    pub const fn is_infinite(self) -> bool {
        self.0 == u64::MAX
    }

    /// Returns the time that `bytes` take, rounded up to whole nanoseconds; [`Span::MAX`] at rate
    /// zero.
    #[must_use]
    pub const fn time_for(self, bytes: u64) -> Span {
        if self.0 == u64::MAX || bytes == 0 {
            return Span::ZERO;
        }
        if self.0 == 0 {
            return Span::MAX;
        }
        // Up to 2.3 GB the product fits 64 bits. Every packet takes this fast path.
        if bytes <= u64::MAX / 8_000_000_000 {
            Span::from_nanos((bytes * 8_000_000_000).div_ceil(self.0))
        } else {
            let nanos = (bytes as u128 * 8_000_000_000).div_ceil(self.0 as u128);
            Span::from_nanos(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 })
        }
    }

    /// Returns the whole bytes that pass in `span`.
    #[must_use]
    pub const fn bytes_in(self, span: Span) -> u64 {
        if self.0 == u64::MAX {
            return u64::MAX;
        }
        let bytes = self.0 as u128 * span.as_nanos() as u128 / 8_000_000_000;
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

/// Writes the shortest exact form: `25mbit`, `1.5gbit`, `inf`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_infinite() {
            return f.write_str("inf");
        }
        let (unit, name) = match self.0 {
            n if n >= 1_000_000_000 => (1_000_000_000, "gbit"),
            n if n >= 1_000_000 => (1_000_000, "mbit"),
            n if n >= 1_000 => (1_000, "kbit"),
            _ => (1, "bit"),
        };
        let (whole, mut rest) = (self.0 / unit, self.0 % unit);
        if rest == 0 {
            return write!(f, "{whole}{name}");
        }
        let mut width = match unit {
            1_000_000_000 => 9,
            1_000_000 => 6,
            _ => 3,
        };
        while rest % 10 == 0 {
            rest /= 10;
            width -= 1;
        }
        write!(f, "{whole}.{rest:0width$}{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_full_packet_at_25_mbit_takes_480_us() {
        assert_eq!(Rate::from_bps(25_000_000).time_for(1500), Span::from_micros(480));
        assert_eq!(Rate::from_bps(25_000_000).bytes_in(Span::from_micros(480)), 1500);
    }

    #[test]
    fn the_ends_of_the_scale_do_not_overflow() {
        assert_eq!(Rate::ZERO.time_for(1), Span::MAX);
        assert_eq!(Rate::INFINITE.time_for(u64::MAX), Span::ZERO);
        assert_eq!(Rate::from_bps(1).time_for(u64::MAX), Span::MAX);
    }

    #[test]
    fn rates_print_with_their_unit() {
        assert_eq!(Rate::from_bps(25_000_000).to_string(), "25mbit");
        assert_eq!(Rate::from_bps(1_500_000_000).to_string(), "1.5gbit");
        assert_eq!(Rate::from_bps(1_234_500).to_string(), "1.2345mbit");
    }
}
