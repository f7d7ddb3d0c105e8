use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use plait_base::Rate;

use super::columns::Columns;
use super::{NANOS_PER_SEC, TraceError, TraceFormat};
use crate::schedule::Schedule;

/// Longest recording: a week. Longer ones are an error; their stamps may be seconds since 1970.
const MAX_SECONDS: u64 = 7 * 24 * 3600;
/// Highest rate: 10 Tbit/s.
const MAX_BPS: u64 = 10_000_000_000_000;
/// Maximum number of rows or stamps of a recording.
const MAX_ROWS: usize = 10_000_000;
/// A time from here on is a date in seconds since 1970, in the year 2001 or later.
const EPOCH_SECONDS: u64 = 1_000_000_000;

const STAMP: &str = "a whole number of milliseconds per line, from 0 to 604800000 (7 days)";
const ROW: &str = "two numbers, `seconds,bytes_per_second`, or those that the header names";
const TWO_COLUMNS: &str = "two columns, a time and a rate (`cut -d, -f1,2` keeps the first two)";
const HEADER: &str = "a header with two units: a time in s, ms, us or ns, and a rate in bps, kbps, \
                      Mbps, Gbps, B/s, kB/s, MB/s or GB/s, such as `seconds,bytes_per_second` or \
                      `time_ms,mbps`";
const SECONDS: &str = "a time as a plain decimal, above the row before, at most 604800 s (7 days) \
                       after the start";
const RATE: &str =
    "a rate as a plain decimal, from 0 to 10 Tbit/s (1250000000000 bytes per second)";
const FEWER: &str = "at most 10000000 lines";
const SOME_ROWS: &str = "a Mahimahi trace (a time in milliseconds per line) or CSV rows of \
                         `seconds,bytes_per_second`";

/// Returns trimmed lines with their numbers from 1, without empty lines at the end.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end();
    text.lines().map(str::trim).enumerate().map(|(index, line)| (index + 1, line))
}

fn error(name: &str, line: usize, found: String, allowed: &'static str) -> TraceError {
    TraceError { name: name.into(), line, found, allowed }
}

/// Returns `text` for a message: on one line, and shortened.
fn quoted(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 40;
    let mut shown: String =
        text.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    format!("`{shown}`")
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a plain decimal such as `12` or `0.25` to billionths, rounded down; `None` for anything else.
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

/// Recognises the format by the first line.
pub(super) fn sniff(name: &str, text: &str) -> Result<TraceFormat, TraceError> {
    match lines(text).next() {
        Some((_, line)) if line.contains(',') => Ok(TraceFormat::Csv),
        // A first line with a leading digit is read as a stamp, so that the error describes stamps.
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

/// Parses the stamps of a Mahimahi trace.
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
        if stamps.len() == MAX_ROWS {
            return Err(error(name, number, "more lines than the limit".into(), FEWER));
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

/// A row of the file.
struct Row {
    line: usize,
    nanos: u64,
    rate: Rate,
}

/// Parses the rows of a CSV trace.
pub(super) fn csv(name: &str, text: &str) -> Result<Schedule, TraceError> {
    let mut columns = Columns::USUAL;
    let mut rows: Vec<Row> = Vec::new();
    let mut last_line = 1;
    for (number, line) in lines(text) {
        last_line = number;
        if number == 1 && is_header(line) {
            let error = |allowed| error(name, number, quoted(line), allowed);
            if line.matches(',').count() > 1 {
                return Err(error(TWO_COLUMNS));
            }
            columns = Columns::read(line).ok_or_else(|| error(HEADER))?;
            continue;
        }
        if rows.len() == MAX_ROWS {
            return Err(error(name, number, "more rows than the limit".into(), FEWER));
        }
        let row = row(name, (number, line), columns)?;
        let date = row.nanos >= EPOCH_SECONDS * NANOS_PER_SEC;
        let start = match rows.first() {
            Some(first) => first.nanos,
            None if date => row.nanos,
            None => 0,
        };
        if row.nanos.saturating_sub(start) > MAX_SECONDS * NANOS_PER_SEC {
            return Err(error(name, number, quoted(time_of(line)), SECONDS));
        }
        if rows.last().is_some_and(|before| row.nanos <= before.nanos) {
            let found = format!("{} not after the row before", quoted(time_of(line)));
            return Err(error(name, number, found, SECONDS));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(error(name, last_line, "no rows".into(), ROW));
    }
    let ends = ends(name, &rows)?;
    Schedule::repeating(ends).ok_or_else(|| {
        let allowed = "at least one row above zero, or nothing is ever delivered";
        error(name, last_line, "only rates of zero".into(), allowed)
    })
}

/// Returns the end of each rate, in nanoseconds from the start, and the rate.
fn ends(name: &str, rows: &[Row]) -> Result<Vec<(u64, Rate)>, TraceError> {
    let first = rows.first().map_or(0, |row| row.nanos);
    if first > 0 && first < EPOCH_SECONDS * NANOS_PER_SEC {
        return Ok(rows.iter().map(|row| (row.nanos, row.rate)).collect());
    }
    // If the first row is at 0 or is a date, a rate holds from its own time on.
    let [.., before, last] = rows else {
        let found = "one row, at the start".into();
        let allowed = "a second row, or the time at which the rate ends in place of 0";
        return Err(error(name, rows.first().map_or(1, |row| row.line), found, allowed));
    };
    let end = last.nanos - first + (last.nanos - before.nanos);
    let next = rows.iter().skip(1).map(|row| row.nanos - first).chain([end]);
    Ok(next.zip(rows).map(|(end, row)| (end, row.rate)).collect())
}

/// Parses a line with its number.
fn row(name: &str, (number, line): (usize, &str), columns: Columns) -> Result<Row, TraceError> {
    let Some((time, rate)) = line.split_once(',') else {
        return Err(error(name, number, quoted(line), ROW));
    };
    if rate.contains(',') {
        return Err(error(name, number, quoted(line), TWO_COLUMNS));
    }
    let (time, rate) = (time.trim(), rate.trim());
    let billion = u128::from(NANOS_PER_SEC);
    let nanos = billionths(time)
        .map(|units| units * u128::from(columns.time_nanos) / billion)
        .and_then(|nanos| u64::try_from(nanos).ok())
        .ok_or_else(|| error(name, number, quoted(time), SECONDS))?;
    let bps = billionths(rate)
        .map(|units| units * u128::from(columns.rate_bps))
        .filter(|bits| *bits <= u128::from(MAX_BPS) * billion)
        .ok_or_else(|| error(name, number, quoted(rate), RATE))?;
    Ok(Row { line: number, nanos, rate: Rate::from_bps((bps / billion) as u64) })
}

/// Returns the first field of a row.
fn time_of(line: &str) -> &str {
    line.split(',').next().unwrap_or_default().trim()
}

/// Returns true if the line is a header: it starts with a word or `#` instead of the seconds.
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
    fn a_header_names_the_units() {
        // 96 Mbit/s for a second, then 48 Mbit/s for half a second.
        for text in ["time,mbps\n1,96\n1.5,48\n", "time_ms,MB/s\n1000,12\n1500,6\n"] {
            let trace = Trace::parse("t", text).unwrap();
            assert_eq!(trace.duration(), Span::from_millis(1_500), "{text}");
            assert_eq!(trace.mean_rate(), Rate::from_bps(80_000_000), "{text}");
        }
    }

    #[test]
    fn rows_from_the_start_or_from_a_date_hold_from_their_time_on() {
        let until = Trace::parse("t", "1,1000\n3,2000\n5,3000\n").unwrap();
        for text in
            ["0,1000\n1,2000\n3,3000\n", "1700000000,1000\n1700000001,2000\n1700000003,3000\n"]
        {
            let from = Trace::parse("t", text).unwrap();
            assert_eq!(from.to_csv(), until.to_csv(), "{text}");
        }
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
        refused("1,2,3\n", 1, "`1,2,3`", "two columns");
        refused("time,mbps,rtt\n1,2,3\n", 1, "`time,mbps,rtt`", "cut -d, -f1,2");
        refused("1,2\n2\n", 2, "`2`", "two numbers");
        refused("0,5\n", 1, "one row, at the start", "a second row");
        refused("1,5\n1,5\n", 2, "`1` not after the row before", "above the row before");
        refused("700000,5\n", 1, "`700000`", "604800");
        refused("1700000000,5\n1700700000,5\n", 2, "`1700700000`", "604800");
        refused("1,-5\n", 1, "`-5`", "from 0");
        refused("1,1e6\n", 1, "`1e6`", "plain decimal");
        refused("1,\n", 1, "``", "plain decimal");
        refused("1,9999999999999\n", 1, "`9999999999999`", "10 Tbit/s");
        refused("1,5\ntime,rate\n", 2, "`time`", "plain decimal");
        refused("time,rate\n", 1, "`time,rate`", "Mbps");
        refused("time,bps\n", 1, "no rows", "two numbers");
        refused("t,mbps\n1,0\n2,0.0\n", 3, "only rates of zero", "above zero");
        refused(&"x".repeat(99), 1, &format!("`{}...`", "x".repeat(40)), "Mahimahi");
    }

    #[test]
    fn an_error_reads_as_one_line() {
        let error = Trace::parse("lte.down", "5\n4\u{1b}[31m\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "lte.down:2: found `4\\u{1b}[31m`; allowed: a whole number of milliseconds per line, \
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
