use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use plait_base::Rate;

use super::{NANOS_PER_SEC, TraceError, TraceFormat};
use crate::schedule::Schedule;

/// Longest recording: a week. Stamps beyond it are a mistake, such as seconds since 1970.
const MAX_SECONDS: u64 = 7 * 24 * 3600;
/// Highest rate: 10 Tbit/s.
const MAX_BYTES_PER_SECOND: u64 = 1_250_000_000_000;

const STAMP: &str = "one whole number of milliseconds a line, from 0 to 604800000 (7 days)";
const ROW: &str = "two numbers, `seconds,bytes_per_second`";
const SECONDS: &str =
    "seconds as a plain decimal, above 0 and the row before, at most 604800 (7 days)";
const BYTES: &str = "bytes per second as a plain decimal, from 0 to 1250000000000 (10 Tbit/s)";
const SOME_ROWS: &str = "a Mahimahi trace (one millisecond stamp a line) or CSV rows of \
                         `seconds,bytes_per_second`";

/// Lines with their numbers from 1, trimmed, without the empty ones at the end.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end();
    text.lines().map(str::trim).enumerate().map(|(index, line)| (index + 1, line))
}

fn error(name: &str, line: usize, found: String, allowed: &'static str) -> TraceError {
    TraceError { name: name.into(), line, found, allowed }
}

/// `text` as it is shown in a message: on one line, and short.
fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    format!("`{shown}`")
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A plain decimal such as `12` or `0.25` in billionths, rounded down; `None` for anything else.
fn billionths(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let mut value: u128 = whole.parse::<u64>().ok()?.into();
    for place in 0..9 {
        let digit = part.as_bytes().get(place).map_or(0, |byte| byte - b'0');
        value = value * 10 + u128::from(digit);
    }
    Some(value)
}

/// The format that the first line is in.
pub(super) fn sniff(name: &str, text: &str) -> Result<TraceFormat, TraceError> {
    match lines(text).next() {
        Some((_, line)) if line.contains(',') => Ok(TraceFormat::Csv),
        // Anything with digits in front is meant as a stamp, so the error can say what a stamp is.
        Some((_, line)) if line.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            Ok(TraceFormat::Mahimahi)
        }
        Some((number, line)) if !line.is_empty() => {
            Err(error(name, number, quoted(line), SOME_ROWS))
        }
        Some((number, _)) => Err(error(name, number, "an empty line".into(), SOME_ROWS)),
        None => Err(error(name, 1, "nothing".into(), SOME_ROWS)),
    }
}

/// The stamps of a Mahimahi trace.
pub(super) fn mahimahi(name: &str, text: &str) -> Result<Vec<u32>, TraceError> {
    let mut stamps = Vec::new();
    let mut before = 0;
    for (number, line) in lines(text) {
        let stamp = Some(line)
            .filter(|line| is_digits(line))
            .and_then(|line| line.parse::<u32>().ok())
            .filter(|stamp| u64::from(*stamp) <= MAX_SECONDS * 1000)
            .ok_or_else(|| error(name, number, quoted(line), STAMP))?;
        if stamp < before {
            let found = format!("{} after `{before}`", quoted(line));
            return Err(error(name, number, found, "a stamp not below the one before"));
        }
        before = stamp;
        stamps.push(stamp);
    }
    match stamps.last() {
        None => Err(error(name, 1, "nothing".into(), STAMP)),
        Some(0) => Err(error(
            name,
            stamps.len(),
            "`0` as the last stamp".into(),
            "a last stamp above 0, as it is the time after which the trace repeats",
        )),
        Some(_) => Ok(stamps),
    }
}

/// The rows of a CSV trace.
pub(super) fn csv(name: &str, text: &str) -> Result<Schedule, TraceError> {
    let mut rows = Vec::new();
    let mut before = 0;
    let mut last_line = 1;
    for (number, line) in lines(text) {
        last_line = number;
        if number == 1 && is_header(line) {
            continue;
        }
        let fields = line.split_once(',').filter(|(_, rate)| !rate.contains(','));
        let Some((time, rate)) = fields else {
            return Err(error(name, number, quoted(line), ROW));
        };
        let (time, rate) = (time.trim(), rate.trim());
        let end = billionths(time)
            .and_then(|nanos| u64::try_from(nanos).ok())
            .filter(|nanos| *nanos <= MAX_SECONDS * NANOS_PER_SEC)
            .ok_or_else(|| error(name, number, quoted(time), SECONDS))?;
        if end <= before {
            let place =
                if rows.is_empty() { "in the first row" } else { "not after the row before" };
            return Err(error(name, number, format!("{} {place}", quoted(time)), SECONDS));
        }
        let bytes = billionths(rate)
            .filter(|bytes| *bytes <= u128::from(MAX_BYTES_PER_SECOND) * u128::from(NANOS_PER_SEC))
            .ok_or_else(|| error(name, number, quoted(rate), BYTES))?;
        before = end;
        rows.push((end, Rate::from_bps((bytes * 8 / u128::from(NANOS_PER_SEC)) as u64)));
    }
    if rows.is_empty() {
        return Err(error(name, last_line, "no rows".into(), ROW));
    }
    Schedule::repeating(rows).ok_or_else(|| {
        let allowed = "at least one row above zero, or nothing is ever delivered";
        error(name, last_line, "only rates of zero".into(), allowed)
    })
}

/// A header has a word where a row has the seconds.
fn is_header(line: &str) -> bool {
    let first = line.split(',').next().unwrap_or("").trim().trim_start_matches('"');
    line.contains(',') && first.starts_with(|c: char| c.is_alphabetic() || c == '#')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trace;
    use alloc::string::ToString;
    use plait_base::Span;
    use proptest::prelude::*;

    #[track_caller]
    fn refused(text: &str, line: usize, found: &str, allowed: &str) {
        let error = Trace::parse("t", text).unwrap_err();
        assert_eq!((error.line(), error.found()), (line, found), "{error}");
        assert!(error.allowed().contains(allowed), "{error}");
    }

    #[test]
    fn both_formats_are_recognised() {
        let trace = Trace::parse("a", "0\n3\n3\n10\n").unwrap();
        assert_eq!((trace.format(), trace.name()), (TraceFormat::Mahimahi, "a"));
        assert_eq!(trace.duration(), Span::from_millis(10));
        // 4 x 1500 bytes in 10 ms.
        assert_eq!(trace.mean_rate(), Rate::from_bps(4_800_000));

        let trace = Trace::parse("b", "1,1440\n2,0\n3,5000000").unwrap();
        assert_eq!((trace.format(), trace.duration()), (TraceFormat::Csv, Span::from_secs(3)));
        assert_eq!(trace.mean_rate(), Rate::from_bps(8 * 5_001_440 / 3));
    }

    #[test]
    fn headers_marks_blanks_and_line_ends_are_no_obstacle() {
        let text = "\u{feff}seconds,bytes_per_second\r\n 0.5 , 100.5\r\n2,0\r\n\r\n \n";
        let trace = Trace::parse("t", text).unwrap();
        assert_eq!(trace.duration(), Span::from_secs(2));
        assert_eq!(trace.mean_rate(), Rate::from_bps(804 / 4));
        assert_eq!(Trace::parse("t", "7\r\n 8 \r\n\r\n").unwrap().duration(), Span::from_millis(8));
    }

    #[test]
    fn errors_say_where_what_and_what_else() {
        refused("", 1, "nothing", "Mahimahi");
        refused(" \n\n", 1, "nothing", "CSV");
        refused("hello", 1, "`hello`", "seconds,bytes_per_second");
        refused("\n5", 1, "an empty line", "Mahimahi");
        refused("1\n\n5", 2, "``", "milliseconds");
        refused("1\nx\n", 2, "`x`", "milliseconds");
        refused("-3\n", 1, "`-3`", "from 0");
        refused("1\n+2\n", 2, "`+2`", "from 0");
        refused("1.5\n", 1, "`1.5`", "whole number");
        refused("5\n7\n6\n", 3, "`6` after `7`", "not below");
        refused("0\n0\n", 2, "`0` as the last stamp", "above 0");
        refused("1700000000000\n", 1, "`1700000000000`", "7 days");
        refused("99999999999999999999999\n", 1, "`99999999999999999999999`", "7 days");
        refused("1,2,3\n", 1, "`1,2,3`", "two numbers");
        refused("1,2\n2\n", 2, "`2`", "two numbers");
        refused("0,5\n", 1, "`0` in the first row", "above 0");
        refused("1,5\n1,5\n", 2, "`1` not after the row before", "above 0 and the row before");
        refused("1700000000,5\n", 1, "`1700000000`", "604800");
        refused("1,-5\n", 1, "`-5`", "from 0");
        refused("1,1e6\n", 1, "`1e6`", "plain decimal");
        refused("1,\n", 1, "``", "plain decimal");
        refused("1,9999999999999\n", 1, "`9999999999999`", "10 Tbit/s");
        refused("1,5\ntime,rate\n", 2, "`time`", "plain decimal");
        refused("time,rate\n", 1, "no rows", "two numbers");
        refused("t,r\n1,0\n2,0.0\n", 3, "only rates of zero", "above zero");
        refused(&"x".repeat(99), 1, &format!("`{}...`", "x".repeat(40)), "Mahimahi");
    }

    #[test]
    fn an_error_reads_as_one_line() {
        let error = Trace::parse("lte.down", "5\n4\u{1b}[31m\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "lte.down:2: found `4\\u{1b}[31m`; allowed: one whole number of milliseconds a line, \
             from 0 to 604800000 (7 days)"
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = Trace::parse("t", &text);
            for format in TraceFormat::ALL {
                let _ = Trace::parse_as(format, "t", &text);
            }
        }

        #[test]
        fn nor_does_text_that_is_nearly_right(text in "([0-9]{0,22}[.,\n-]?){0,12}") {
            let lines = text.trim_end().lines().count();
            for format in TraceFormat::ALL {
                match Trace::parse_as(format, "t", &text) {
                    Ok(trace) => prop_assert!(trace.duration() > Span::ZERO),
                    Err(error) => prop_assert!((1..=lines.max(1)).contains(&error.line())),
                }
            }
        }
    }
}
