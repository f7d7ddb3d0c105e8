//! Quantities that print as text, and read back as the same value.

use super::{BYTES, Unit};
use core::fmt;
use plait_base::{Chance, Span};

/// A size: bytes, or full segments of the connection that carries it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Full segments. A full segment carries the payload left after TCP options.
    Segments(u32),
}

impl Size {
    /// Returns the size in bytes if a full segment carries `segment_payload` bytes.
    #[must_use]
    pub const fn bytes(self, segment_payload: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::Segments(segments) => (segments as u64).saturating_mul(segment_payload),
        }
    }

    /// Returns whether the size is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        matches!(self, Size::Bytes(0) | Size::Segments(0))
    }
}

/// Prints `512kB`, `64KiB` or `15seg`.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Bytes(bytes) => fmt::Display::fmt(&Bytes(*bytes), f),
            Size::Segments(segments) => write!(f, "{segments}seg"),
        }
    }
}

/// A number of bytes. It prints as a whole number of the largest possible unit, decimal units
/// first: `512kB`, `64KiB`, `1448B`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |unit: &&Unit| self.0 != 0 && self.0.is_multiple_of(unit.1) && unit.1 > 1;
        let unit = BYTES[..4].iter().rfind(whole).or_else(|| BYTES[4..].iter().rfind(whole));
        match unit {
            Some((name, worth, _)) => write!(f, "{}{name}", self.0 / worth),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// A limit in bytes. It prints as `64 MiB` or `1500 bytes`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Binary(pub u64);

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |unit: &&Unit| self.0 != 0 && self.0.is_multiple_of(unit.1);
        match BYTES[4..].iter().rfind(whole) {
            Some((name, worth, _)) => write!(f, "{} {name}", self.0 / worth),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// A probability. It prints as a percentage: `0.5%`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Percent(pub Chance);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut rest) = (self.0.as_ppb() / 10_000_000, self.0.as_ppb() % 10_000_000);
        if rest == 0 {
            return write!(f, "{whole}%");
        }
        let mut width = 7;
        while rest.is_multiple_of(10) {
            rest /= 10;
            width -= 1;
        }
        write!(f, "{whole}.{rest:0width$}%")
    }
}

/// The limit of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// The bytes that the link sends in this time.
    Time(Span),
    /// Bytes.
    Bytes(u64),
    /// Packets.
    Packets(u32),
    /// No limit.
    Infinite,
}

/// Prints `50ms`, `64KiB`, `100pkt` or `inf`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Time(time) => fmt::Display::fmt(time, f),
            Limit::Bytes(bytes) => fmt::Display::fmt(&Bytes(*bytes), f),
            Limit::Packets(packets) => write!(f, "{packets}pkt"),
            Limit::Infinite => f.write_str("inf"),
        }
    }
}
