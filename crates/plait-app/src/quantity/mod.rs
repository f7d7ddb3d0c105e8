//! Numbers with their units: sizes, times, rates, probabilities, packets, segments.
//!
//! A number always carries its unit. Decimals are exact: `1.5gbit` is 1,500,000,000 bit/s. A number
//! finer than the smallest unit, such as half a byte, is an error and is never rounded. Every value
//! prints as text that reads back as the same value.

mod error;
mod value;

pub use error::{Problem, QuantityError};
pub use value::{Binary, Bytes, Limit, Percent, Size};

use crate::name::nearest;
use plait_base::{Chance, Rate, Span};

/// The kind of a quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuantityKind {
    /// Bytes, or segments of the connection that carries the data.
    Size,
    /// Bytes only.
    Bytes,
    /// A length of time.
    Time,
    /// Bits per second.
    Rate,
    /// A probability.
    Percent,
    /// A number of packets.
    Packets,
    /// A number of segments.
    Segments,
    /// The limit of a queue: a time at the rate of the link, bytes, or packets.
    Limit,
}

/// A unit: its name, its value in base units, and the base unit.
type Unit = (&'static str, u64, Base);

/// The base unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    Byte,
    Segment,
    Nanosecond,
    BitPerSecond,
    PartPerBillion,
    Packet,
}

const BYTES: [Unit; 7] = [
    ("B", 1, Base::Byte),
    ("kB", 1_000, Base::Byte),
    ("MB", 1_000_000, Base::Byte),
    ("GB", 1_000_000_000, Base::Byte),
    ("KiB", 1 << 10, Base::Byte),
    ("MiB", 1 << 20, Base::Byte),
    ("GiB", 1 << 30, Base::Byte),
];
const SEGMENTS: [Unit; 1] = [("seg", 1, Base::Segment)];
const TIMES: [Unit; 5] = [
    ("ns", 1, Base::Nanosecond),
    ("us", 1_000, Base::Nanosecond),
    ("ms", 1_000_000, Base::Nanosecond),
    ("s", 1_000_000_000, Base::Nanosecond),
    ("min", 60_000_000_000, Base::Nanosecond),
];
const RATES: [Unit; 4] = [
    ("bit", 1, Base::BitPerSecond),
    ("kbit", 1_000, Base::BitPerSecond),
    ("mbit", 1_000_000, Base::BitPerSecond),
    ("gbit", 1_000_000_000, Base::BitPerSecond),
];
const PERCENT: [Unit; 1] = [("%", 10_000_000, Base::PartPerBillion)];
/// Common spellings of a unit that are not accepted, and the unit that an error suggests.
const WORDS: [(&str, &str); 16] = [
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
    ("msecs", "ms"),
    ("usec", "us"),
    ("m", "min"),
    ("mins", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("p", "pkt"),
    ("packet", "pkt"),
    ("packets", "pkt"),
    ("segment", "seg"),
    ("segments", "seg"),
];
const PACKETS: [Unit; 1] = [("pkt", 1, Base::Packet)];

impl QuantityKind {
    /// Returns the names of all accepted units.
    pub fn units(self) -> impl Iterator<Item = &'static str> {
        self.tables().iter().flat_map(|table| table.iter()).map(|unit| unit.0)
    }

    const fn tables(self) -> &'static [&'static [Unit]] {
        match self {
            QuantityKind::Size => &[&BYTES, &SEGMENTS],
            QuantityKind::Bytes => &[&BYTES],
            QuantityKind::Time => &[&TIMES],
            QuantityKind::Rate => &[&RATES],
            QuantityKind::Percent => &[&PERCENT],
            QuantityKind::Packets => &[&PACKETS],
            QuantityKind::Segments => &[&SEGMENTS],
            QuantityKind::Limit => &[&TIMES, &BYTES, &PACKETS],
        }
    }

    const fn takes_infinity(self) -> bool {
        matches!(self, QuantityKind::Rate | QuantityKind::Limit)
    }

    const fn noun(self) -> &'static str {
        match self {
            QuantityKind::Size => "a size",
            QuantityKind::Bytes => "a number of bytes",
            QuantityKind::Time => "a time",
            QuantityKind::Rate => "a rate",
            QuantityKind::Percent => "a percentage",
            QuantityKind::Packets => "a number of packets",
            QuantityKind::Segments => "a number of segments",
            QuantityKind::Limit => "a queue limit",
        }
    }

    const fn example(self) -> &'static str {
        match self {
            QuantityKind::Size | QuantityKind::Bytes => "512kB",
            QuantityKind::Time => "25ms",
            QuantityKind::Rate => "25mbit",
            QuantityKind::Percent => "0.5%",
            QuantityKind::Packets => "50pkt",
            QuantityKind::Segments => "15seg",
            QuantityKind::Limit => "50ms",
        }
    }
}

/// Reads a size: `512kB` (1000), `64KiB` (1024), `15seg`.
///
/// # Errors
/// Returns an error if the text is not exactly one number and one unit of size, or if the value is
/// too large.
pub fn size(text: &str) -> Result<Size, QuantityError> {
    match read(text, QuantityKind::Size)? {
        (count, Base::Segment) => Ok(Size::Segments(narrow(count, text, QuantityKind::Size)?)),
        (count, _) => Ok(Size::Bytes(count)),
    }
}

/// Reads a number of bytes: a size without `seg`.
///
/// # Errors
/// See [`size`].
pub fn bytes(text: &str) -> Result<u64, QuantityError> {
    Ok(read(text, QuantityKind::Bytes)?.0)
}

/// Reads a time: `25ms`, `1.5s`, `2min`.
///
/// # Errors
/// See [`size`]. A time finer than one nanosecond is also an error.
pub fn time(text: &str) -> Result<Span, QuantityError> {
    Ok(Span::from_nanos(read(text, QuantityKind::Time)?.0))
}

/// Reads a rate per second: `25mbit`, `1.5gbit`, `inf`. Other common spellings are accepted if they
/// are unambiguous: `25Mbit/s`, `25mbps`, `25Mb/s`.
///
/// # Errors
/// See [`size`]. A unit that counts bytes, or may do so (`20MB/s`, `20M`), is an error that states
/// both possible rates.
pub fn rate(text: &str) -> Result<Rate, QuantityError> {
    if text.trim() == "inf" {
        return Ok(Rate::INFINITE);
    }
    Ok(Rate::from_bps(read(text, QuantityKind::Rate)?.0))
}

/// Replaces the `/s` of each rate in a list separated by slashes: `1Mbit/s/4Mbit/s` becomes
/// `1Mbitps/4Mbitps`.
#[must_use]
pub fn per_second_without_slash(text: &str) -> String {
    let mut pieces = text.split('/');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let word = piece.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let seconds = ["s", "sec", "second"].contains(&&piece[..piece.len() - word.len()]);
        let after_unit = out.ends_with(|c: char| c.is_ascii_alphabetic());
        if !(seconds && after_unit) {
            out.push('/');
            out.push_str(piece);
        } else {
            out.push_str("ps");
            out.push_str(word);
        }
    }
    out
}

/// Meaning of the unit of a rate.
enum RateUnit {
    /// Bits; the value is the number of bits per second in one unit.
    Bits(u64),
    /// Bytes, or possibly bytes. The number is the factor of the prefix; `true` means that the unit
    /// can only mean bytes.
    Bytes(u64, bool),
}

/// Reads the common spellings of a unit of rate.
fn rate_unit(unit: &str) -> Option<RateUnit> {
    let per_second = |text: &str| {
        let cut =
            ["/second", "/sec", "/s", "ps"].into_iter().find_map(|end| text.strip_suffix(end));
        cut.map(str::to_owned)
    };
    let (word, in_seconds) = match per_second(unit) {
        Some(word) => (word, true),
        None => (unit.to_owned(), false),
    };
    let shouted = unit.strip_suffix("PS").is_some();
    let word = if shouted { word[..word.len() - 2].to_owned() } else { word };
    let factor: u64 = match word.chars().next() {
        Some('k' | 'K') => 1_000,
        Some('m' | 'M') => 1_000_000,
        Some('g' | 'G') => 1_000_000_000,
        _ => 1,
    };
    let rest = if factor > 1 { &word[1..] } else { word.as_str() };
    // `MiB` counts bytes in powers of 1024.
    let binary = match factor {
        1 => None,
        _ => rest.strip_prefix('i').map(|rest| (rest, 1 << (10 * (factor.ilog10() / 3)))),
    };
    let (rest, factor) = binary.unwrap_or((rest, factor));
    match rest {
        "" if factor > 1 => Some(RateUnit::Bytes(factor, false)),
        "b" if in_seconds => Some(RateUnit::Bits(factor)),
        "b" => Some(RateUnit::Bytes(factor, false)),
        "B" if shouted => Some(RateUnit::Bytes(factor, false)),
        "B" => Some(RateUnit::Bytes(factor, true)),
        _ => match rest.to_ascii_lowercase().as_str() {
            "bit" | "bits" => Some(RateUnit::Bits(factor)),
            "byte" | "bytes" => Some(RateUnit::Bytes(factor, true)),
            _ => None,
        },
    }
}

/// Reads a probability: `1%`, `0.5%`; at most `100%`.
///
/// # Errors
/// See [`size`]. A value above 100 % is also an error.
pub fn percent(text: &str) -> Result<Chance, QuantityError> {
    let ppb: u32 = narrow(read(text, QuantityKind::Percent)?.0, text, QuantityKind::Percent)?;
    if ppb > Chance::ALWAYS.as_ppb() {
        return Err(error(text, QuantityKind::Percent, Problem::TooLarge));
    }
    Ok(Chance::from_ppb(ppb))
}

/// Reads a number of packets: `50pkt`.
///
/// # Errors
/// See [`size`].
pub fn packets(text: &str) -> Result<u32, QuantityError> {
    narrow(read(text, QuantityKind::Packets)?.0, text, QuantityKind::Packets)
}

/// Reads a number of segments: `15seg`.
///
/// # Errors
/// See [`size`].
pub fn segments(text: &str) -> Result<u32, QuantityError> {
    narrow(read(text, QuantityKind::Segments)?.0, text, QuantityKind::Segments)
}

/// Reads the limit of a queue: `50ms`, `64KiB`, `100pkt`, `inf`.
///
/// # Errors
/// See [`size`].
pub fn limit(text: &str) -> Result<Limit, QuantityError> {
    if text.trim() == "inf" {
        return Ok(Limit::Infinite);
    }
    match read(text, QuantityKind::Limit)? {
        (count, Base::Nanosecond) => Ok(Limit::Time(Span::from_nanos(count))),
        (count, Base::Packet) => Ok(Limit::Packets(narrow(count, text, QuantityKind::Limit)?)),
        (count, _) => Ok(Limit::Bytes(count)),
    }
}

fn error(given: &str, kind: QuantityKind, problem: Problem) -> QuantityError {
    QuantityError { given: shortened(given), kind, problem }
}

/// Returns at most 40 characters of a text, for messages.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

fn narrow(count: u64, text: &str, kind: QuantityKind) -> Result<u32, QuantityError> {
    u32::try_from(count).map_err(|_| error(text, kind, Problem::TooLarge))
}

/// Returns the number in base units, and the base unit. Never returns [`u64::MAX`], which means "no
/// limit" in [`Rate`] and [`Span`].
fn read(text: &str, kind: QuantityKind) -> Result<(u64, Base), QuantityError> {
    let fail = |problem| Err(error(text, kind, problem));
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return fail(Problem::Empty);
    }
    if let Some(rest) = trimmed.strip_prefix('-')
        && rest.starts_with(|c: char| c.is_ascii_digit())
    {
        return fail(Problem::Negative);
    }
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return fail(Problem::NoNumber);
    }
    if unit.is_empty() {
        return fail(Problem::NoUnit);
    }
    let tables = kind.tables().iter().flat_map(|table| table.iter());
    let known = tables.copied().find(|known| known.0 == unit);
    let written = if kind == QuantityKind::Rate { rate_unit(unit) } else { None };
    let known = known.or(match written {
        Some(RateUnit::Bits(worth)) => Some(("bit", worth, Base::BitPerSecond)),
        _ => None,
    });
    if let (None, Some(RateUnit::Bytes(factor, bytes))) = (known, written) {
        let rate = |worth| scaled(whole, fraction, worth).map(Rate::from_bps);
        return match (rate(factor), rate(8 * factor)) {
            (Ok(bits), Ok(all)) => {
                let unit = shortened(unit);
                fail(Problem::BitsOrBytes { unit, bytes, write: [bits, all] })
            }
            (Err(problem), _) | (_, Err(problem)) => fail(problem),
        };
    }
    let Some((_, worth, base)) = known else {
        // Units with another first letter differ in magnitude, so they are no suggestion: `h` is
        // not `s`.
        let meant = unit.trim().replace(['\u{b5}', '\u{3bc}'], "u");
        let first = |unit: &str| unit.chars().next().map(|c| c.to_ascii_lowercase());
        let known = kind.units().filter(|known| first(known) == first(&meant));
        let word = WORDS.iter().find(|(word, _)| *word == meant.to_ascii_lowercase());
        let word = word.map(|(_, unit)| *unit).filter(|unit| kind.units().any(|it| it == *unit));
        let nearest = word.or_else(|| nearest(&meant, known));
        return fail(Problem::UnknownUnit { unit: shortened(unit), nearest });
    };
    match scaled(whole, fraction, worth) {
        Ok(count) => Ok((count, base)),
        Err(problem) => fail(problem),
    }
}

/// Returns `whole.fraction * worth`, exactly.
fn scaled(whole: &str, fraction: &str, worth: u64) -> Result<u64, Problem> {
    let fraction = fraction.trim_end_matches('0');
    // Decimal units need at most 11 digits. Longer fractions are refused, even the few that are
    // exact in MiB or GiB.
    if fraction.len() > 18 {
        return Err(Problem::TooFine);
    }
    let whole = whole.trim_start_matches('0');
    let whole: u128 = match whole.len() {
        0 => 0,
        1..=20 => whole.parse().map_err(|_| Problem::TooLarge)?,
        _ => return Err(Problem::TooLarge),
    };
    let parts: u128 = if fraction.is_empty() { 0 } else { fraction.parse().unwrap_or(0) };
    let scale = 10u128.pow(fraction.len() as u32);
    let product = parts * u128::from(worth);
    if !product.is_multiple_of(scale) {
        return Err(Problem::TooFine);
    }
    match u64::try_from(whole * u128::from(worth) + product / scale) {
        Ok(count) if count != u64::MAX => Ok(count),
        _ => Err(Problem::TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_unit_has_its_worth() {
        assert_eq!(size("512kB"), Ok(Size::Bytes(512_000)));
        assert_eq!(size("64KiB"), Ok(Size::Bytes(65_536)));
        assert_eq!(size("4MB"), Ok(Size::Bytes(4_000_000)));
        assert_eq!(size("1.5MiB"), Ok(Size::Bytes(1_572_864)));
        assert_eq!(size("2GB"), Ok(Size::Bytes(2_000_000_000)));
        assert_eq!(size("1GiB"), Ok(Size::Bytes(1 << 30)));
        assert_eq!(size("15seg"), Ok(Size::Segments(15)));
        assert_eq!(bytes("7B"), Ok(7));
        assert_eq!(time("25ms"), Ok(Span::from_millis(25)));
        assert_eq!(time("0.1us"), Ok(Span::from_nanos(100)));
        assert_eq!(time("1.5min"), Ok(Span::from_secs(90)));
        assert_eq!(time("0s"), Ok(Span::ZERO));
        assert_eq!(rate("25mbit"), Ok(Rate::from_bps(25_000_000)));
        assert_eq!(rate("1.5gbit"), Ok(Rate::from_bps(1_500_000_000)));
        assert_eq!(rate("inf"), Ok(Rate::INFINITE));
        assert_eq!(percent("0.5%"), Ok(Chance::from_ppb(5_000_000)));
        assert_eq!(percent("100%"), Ok(Chance::ALWAYS));
        assert_eq!(packets("50pkt"), Ok(50));
        assert_eq!(segments("3seg"), Ok(3));
        assert_eq!(limit("50ms"), Ok(Limit::Time(Span::from_millis(50))));
        assert_eq!(limit("64KiB"), Ok(Limit::Bytes(65_536)));
        assert_eq!(limit("100pkt"), Ok(Limit::Packets(100)));
        assert_eq!(limit("inf"), Ok(Limit::Infinite));
    }

    #[test]
    fn decimals_are_exact_or_refused() {
        // 0.3 has no exact binary representation.
        assert_eq!(rate("0.3gbit"), Ok(Rate::from_bps(300_000_000)));
        assert_eq!(time("0.000000001s"), Ok(Span::from_nanos(1)));
        assert_eq!(time("0.0000000010000s"), Ok(Span::from_nanos(1)));
        assert_eq!(time("0.0000000001s").unwrap_err().problem, Problem::TooFine);
        assert_eq!(bytes("1.5B").unwrap_err().problem, Problem::TooFine);
        assert_eq!(bytes("0.1KiB").unwrap_err().problem, Problem::TooFine);
        assert_eq!(size("1.5seg").unwrap_err().problem, Problem::TooFine);
    }

    #[test]
    fn the_end_of_the_scale_is_an_error_not_a_wrap() {
        assert_eq!(bytes("18446744073709551614B"), Ok(u64::MAX - 1));
        for text in ["18446744073709551615B", "18446744073709551616B", "99999999999999GiB"] {
            assert_eq!(bytes(text).unwrap_err().problem, Problem::TooLarge, "{text}");
        }
        assert_eq!(size("4294967296seg").unwrap_err().problem, Problem::TooLarge);
        assert_eq!(percent("100.1%").unwrap_err().problem, Problem::TooLarge);
        assert_eq!(percent("5000%").unwrap_err().problem, Problem::TooLarge);
        assert_eq!(bytes(&format!("{}B", "9".repeat(500))).unwrap_err().problem, Problem::TooLarge);
        assert_eq!(bytes(&format!("{}7B", "0".repeat(500))), Ok(7));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let message = |result: Result<Rate, QuantityError>| result.unwrap_err().to_string();
        assert_eq!(
            message(rate("25")),
            "`25` has no unit: a rate needs one of bit, kbit, mbit, gbit (or `inf`)"
        );
        assert_eq!(
            message(rate("25mbti")),
            "`25mbti`: unknown unit `mbti`, did you mean `mbit`? \
             a rate takes bit, kbit, mbit, gbit (or `inf`)"
        );
        assert_eq!(
            message(rate("-1mbit")),
            "`-1mbit` is below zero: expected a rate such as `25mbit`"
        );
        assert_eq!(message(rate("")), "a rate is missing, such as `25mbit`");
        assert_eq!(message(rate("fast")), "`fast` is not a rate: expected one such as `25mbit`");
        assert_eq!(time("25 ms").unwrap_err().problem, unknown(" ms", Some("ms")));
        assert_eq!(bytes("5KB").unwrap_err().problem, unknown("KB", Some("kB")));
        assert_eq!(bytes("15seg").unwrap_err().problem, unknown("seg", None));
        assert_eq!(time("5\u{b5}s").unwrap_err().problem, unknown("\u{b5}s", Some("us")));
        assert_eq!(time("1h").unwrap_err().problem, unknown("h", None));
        assert_eq!(time("10sec").unwrap_err().problem, unknown("sec", Some("s")));
        assert_eq!(time("1m").unwrap_err().problem, unknown("m", Some("min")));
        assert_eq!(limit("100packets").unwrap_err().problem, unknown("packets", Some("pkt")));
        assert_eq!(bytes(".5kB").unwrap_err().problem, Problem::NoNumber);
        assert_eq!(bytes("1.2.3kB").unwrap_err().problem, Problem::NoNumber);
    }

    #[test]
    fn rates_as_people_write_them_are_read_or_met_with_both_meanings() {
        let mega = Rate::from_bps(20_000_000);
        for text in [
            "20Mbit/s",
            "20mbit/s",
            "20Mbit",
            "20MBit/sec",
            "20mbps",
            "20Mbps",
            "20Mb/s",
            "20Mbits/s",
            "20000kbps",
            "20000Kbit",
            "0.02Gbps",
            "0.02gbit/s",
            "20000000bps",
            "20000000b/s",
        ] {
            assert_eq!(rate(text), Ok(mega), "{text}");
        }
        let message = |text: &str| rate(text).unwrap_err().to_string();
        for (text, unit) in [("20M", "M"), ("20m", "m"), ("20Mb", "Mb"), ("20MBPS", "MBPS")] {
            assert_eq!(
                message(text),
                format!(
                    "`{text}`: the unit `{unit}` may mean bits or bytes: write `20mbit` or `160mbit`"
                )
            );
        }
        for text in ["20MB/s", "20MBps", "20MB", "20Mbyte/s"] {
            assert_eq!(
                message(text),
                format!("`{text}` counts bytes: write `160mbit`, or `20mbit` if bits are meant")
            );
        }
        assert_eq!(
            message("1.5kB/s"),
            "`1.5kB/s` counts bytes: write `12kbit`, or `1.5kbit` if bits are meant"
        );
        assert_eq!(
            message("1MiB/s"),
            "`1MiB/s` counts bytes: write `8.388608mbit`, or `1.048576mbit` if bits are meant"
        );
        for text in ["20ps", "20/s", "20iB/s", "20s", "20kk", "20PS"] {
            assert!(
                matches!(rate(text).unwrap_err().problem, Problem::UnknownUnit { .. }),
                "{text}"
            );
        }
        // A size without segments is a number of bytes.
        assert_eq!(bytes("20Mbit").unwrap_err().problem, unknown("Mbit", None));
        assert_eq!(bytes("20M").unwrap_err().problem, unknown("M", Some("MB")));
    }

    #[test]
    fn slashes_of_seconds_are_told_from_those_of_steps() {
        for (text, plain) in [
            ("20Mbit/s", "20Mbitps"),
            ("10mbit/s@0s/4Mb/s@20s", "10mbitps@0s/4Mbps@20s"),
            ("1mbit/4mbit/sec~40s", "1mbit/4mbitps~40s"),
            ("10mbit@0s/4mbit@20s", "10mbit@0s/4mbit@20s"),
            ("1/s/2/s", "1/s/2/s"),
            ("/s", "/s"),
        ] {
            assert_eq!(per_second_without_slash(text), plain);
        }
    }

    fn unknown(unit: &str, nearest: Option<&'static str>) -> Problem {
        Problem::UnknownUnit { unit: unit.to_owned(), nearest }
    }

    #[test]
    fn sizes_print_in_their_largest_whole_unit() {
        let text = |bytes| Bytes(bytes).to_string();
        assert_eq!(text(512_000), "512kB");
        assert_eq!(text(65_536), "64KiB");
        assert_eq!(text(6 << 20), "6MiB");
        assert_eq!(text(1448), "1448B");
        assert_eq!(text(0), "0B");
        assert_eq!(Percent(Chance::from_ppb(5_000_000)).to_string(), "0.5%");
        assert_eq!(Percent(Chance::from_ppb(1)).to_string(), "0.0000001%");
        assert_eq!(Percent(Chance::ALWAYS).to_string(), "100%");
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(n in 0..u64::MAX, zeros in 0u32..40, ppb in 0u32..=1_000_000_000) {
            // Values with trailing zero bits print in binary units.
            let n = (n >> zeros) << zeros;
            prop_assert_eq!(bytes(&Bytes(n).to_string()), Ok(n));
            prop_assert_eq!(size(&Size::Bytes(n).to_string()), Ok(Size::Bytes(n)));
            prop_assert_eq!(size(&Size::Segments(ppb).to_string()), Ok(Size::Segments(ppb)));
            prop_assert_eq!(time(&Span::from_nanos(n).to_string()), Ok(Span::from_nanos(n)));
            prop_assert_eq!(rate(&Rate::from_bps(n).to_string()), Ok(Rate::from_bps(n)));
            let chance = Chance::from_ppb(ppb);
            prop_assert_eq!(percent(&Percent(chance).to_string()), Ok(chance));
            for value in [Limit::Time(Span::from_nanos(n)), Limit::Bytes(n), Limit::Packets(ppb), Limit::Infinite] {
                prop_assert_eq!(limit(&value.to_string()), Ok(value));
            }
        }

        #[test]
        fn decimals_agree_with_long_division(whole in 0u64..1_000_000, milli in 0u64..1000) {
            let text = format!("{whole}.{milli:03}ms");
            prop_assert_eq!(time(&text), Ok(Span::from_nanos(whole * 1_000_000 + milli * 1000)));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}", near in "-?[0-9.]{0,25}[a-zA-Z% ]{0,5}") {
            for text in [&text, &near] {
                let _ = (size(text), bytes(text), time(text), rate(text));
                let _ = (percent(text), packets(text), segments(text));
                if let Err(error) = limit(text) {
                    prop_assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
