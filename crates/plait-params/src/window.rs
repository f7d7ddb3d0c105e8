//! A constant congestion window, as the value of a parameter.

use core::fmt;

/// A constant congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FixedWindow {
    /// This many bytes.
    Bytes(u64),
    /// This many full segments of the connection.
    Segments(u32),
    /// The path's bandwidth times its RTT. The caller computes the bytes.
    Bdp,
}

/// Units of sizes and their bytes.
const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

impl FixedWindow {
    /// Parses `BDP`, `20seg`, or a size such as `64KiB`, `1.5MB` or `14600B`. A whole number
    /// without a unit counts segments. Returns `None` for all other texts, for zero, and for a
    /// fraction of a byte or segment.
    #[must_use]
    pub fn parse(text: &str) -> Option<FixedWindow> {
        if text.eq_ignore_ascii_case("bdp") {
            return Some(FixedWindow::Bdp);
        }
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        if matches!(unit, "seg" | "") {
            let segments = number.parse().ok().filter(|segments| *segments > 0)?;
            return Some(FixedWindow::Segments(segments));
        }
        let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let part = fraction.parse::<u64>().ok()?.checked_mul(*bytes)?;
        let total = whole.parse::<u64>().ok()?.checked_mul(*bytes)?.checked_add(part / scale)?;
        (part % scale == 0 && total > 0).then_some(FixedWindow::Bytes(total))
    }
}

impl fmt::Display for FixedWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FixedWindow::Bytes(bytes) => write!(f, "{bytes}B"),
            FixedWindow::Segments(segments) => write!(f, "{segments}seg"),
            FixedWindow::Bdp => f.write_str("BDP"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FixedWindow::{self, Bdp, Bytes, Segments};

    #[test]
    fn windows_read_and_what_is_none_does_not() {
        let read = [
            ("BDP", Bdp),
            ("bdp", Bdp),
            ("20seg", Segments(20)),
            ("20", Segments(20)),
            ("64KiB", Bytes(65_536)),
            ("1.5MB", Bytes(1_500_000)),
            ("0.5KiB", Bytes(512)),
            ("14600B", Bytes(14_600)),
        ];
        for (text, window) in read {
            assert_eq!(FixedWindow::parse(text), Some(window), "{text}");
        }
        let refused = [
            "",
            "0",
            "1.5",
            ".",
            "5000000000",
            "0seg",
            "0B",
            "1.5seg",
            "-3seg",
            "1.5B",
            ".5kB",
            "1.kB",
            "1.2.3kB",
            "20 seg",
            "20kb",
            "seg",
            "99999999999999999999GiB",
            "18446744073709551615KiB",
            "5000000000seg",
            "0.000000000000000000000000000000001GiB",
        ];
        for text in refused {
            assert_eq!(FixedWindow::parse(text), None, "{text}");
        }
    }
}
