//! The columns of a CSV trace. A header names their units.

use alloc::string::String;
use alloc::vec::Vec;

/// Words that may accompany the unit of a time. Without a unit they mean seconds.
const TIME_WORDS: [&str; 8] = ["at", "elapsed", "end", "offset", "t", "time", "timestamp", "in"];
/// Words that may accompany the unit of a rate; alone they name no unit.
const RATE_WORDS: [&str; 16] = [
    "bandwidth",
    "bw",
    "capacity",
    "dl",
    "down",
    "downlink",
    "download",
    "goodput",
    "in",
    "rate",
    "speed",
    "throughput",
    "ul",
    "up",
    "uplink",
    "upload",
];
/// Units of time and their nanoseconds.
const TIME_UNITS: [(&str, u64); 16] = [
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("secs", 1_000_000_000),
    ("second", 1_000_000_000),
    ("seconds", 1_000_000_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("millis", 1_000_000),
    ("millisecond", 1_000_000),
    ("milliseconds", 1_000_000),
    ("us", 1_000),
    ("usec", 1_000),
    ("microseconds", 1_000),
    ("ns", 1),
    ("nsec", 1),
    ("nanoseconds", 1),
];
/// Prefixes of a rate's unit and their factors.
const PREFIXES: [(&str, u64); 9] = [
    ("kilo", 1_000),
    ("mega", 1_000_000),
    ("giga", 1_000_000_000),
    ("k", 1_000),
    ("K", 1_000),
    ("m", 1_000_000),
    ("M", 1_000_000),
    ("g", 1_000_000_000),
    ("G", 1_000_000_000),
];
/// Spellings of "second" in a rate.
const SECONDS: [&str; 4] = ["s", "sec", "second", "seconds"];

/// The units of the columns of a CSV trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Columns {
    /// Nanoseconds of one unit of the time.
    pub(super) time_nanos: u64,
    /// Bits per second of one unit of the rate.
    pub(super) rate_bps: u64,
}

impl Columns {
    /// The columns of a trace without a header: `seconds,bytes_per_second`.
    pub(super) const USUAL: Columns = Columns { time_nanos: 1_000_000_000, rate_bps: 8 };

    /// Reads a header of two names. Returns `None` if it does not name both units.
    pub(super) fn read(header: &str) -> Option<Columns> {
        let header = header.trim().trim_start_matches('#');
        let (time, rate) = header.split_once(',')?;
        Some(Columns { time_nanos: time_unit(time)?, rate_bps: rate_unit(rate)? })
    }
}

/// Splits the name of a column into words.
fn words(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

fn time_unit(name: &str) -> Option<u64> {
    let words = words(name);
    let mut unit = None;
    for word in &words {
        let word = word.to_ascii_lowercase();
        let known = TIME_UNITS.iter().find(|known| known.0 == word);
        match known {
            Some((_, nanos)) if unit.is_none() => unit = Some(*nanos),
            None if TIME_WORDS.contains(&word.as_str()) => {}
            _ => return None,
        }
    }
    // A time without a unit is in seconds.
    unit.or_else(|| (!words.is_empty()).then_some(Columns::USUAL.time_nanos))
}

/// Returns the bits per second of a unit such as `mbps`, `Mbit/s`, `MB/s`, `bytes_per_second`.
fn rate_unit(name: &str) -> Option<u64> {
    let mut words = words(name);
    words.retain(|word| !RATE_WORDS.contains(&word.to_ascii_lowercase().as_str()));
    let (first, rest) = words.split_first()?;
    let rest: Vec<String> = rest.iter().map(|word| word.to_ascii_lowercase()).collect();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let in_seconds = match rest.as_slice() {
        [] => false,
        [second] | ["per", second] => SECONDS.contains(second).then_some(true)?,
        _ => return None,
    };
    per_second(first, in_seconds)
}

/// Reads a unit. `in_seconds` is true if `/s` follows, so that the word need not include it.
fn per_second(word: &str, in_seconds: bool) -> Option<u64> {
    // `mbps` and `Mbps` are bits and `MBps` bytes; `MBPS` may be either.
    let (word, in_seconds) = match word.strip_suffix("ps") {
        Some(word) if !in_seconds => (word, true),
        _ => (word, in_seconds),
    };
    let plain =
        PREFIXES.iter().find_map(|(prefix, factor)| Some((word.strip_prefix(prefix)?, *factor)));
    let candidates = [Some((word, 1)), plain];
    let lower = word.to_ascii_lowercase();
    let long = PREFIXES.iter().find_map(|(prefix, factor)| {
        Some((lower.strip_prefix(&prefix.to_ascii_lowercase())?, *factor))
    });
    let spelled = [Some((lower.as_str(), 1)), long];
    let short = candidates.into_iter().flatten().find_map(|(unit, factor)| match unit {
        "b" if in_seconds => Some(factor),
        "B" if in_seconds => Some(8 * factor),
        _ => None,
    });
    short.or_else(|| {
        spelled.into_iter().flatten().find_map(|(unit, factor)| match unit {
            "bit" | "bits" => Some(factor),
            "byte" | "bytes" if in_seconds => Some(8 * factor),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_units_are_understood() {
        for (header, time_nanos, rate_bps) in [
            ("seconds,bytes_per_second", 1_000_000_000, 8),
            ("time,mbps", 1_000_000_000, 1_000_000),
            ("time_ms,Mbps", 1_000_000, 1_000_000),
            ("Time (ms), Throughput (Mbit/s)", 1_000_000, 1_000_000),
            ("\"elapsed\",\"rate_bps\"", 1_000_000_000, 1),
            ("t,kbps", 1_000_000_000, 1_000),
            ("timestamp_us,gbit", 1_000, 1_000_000_000),
            ("# s,MB/s", 1_000_000_000, 8_000_000),
            ("sec,MBps", 1_000_000_000, 8_000_000),
            ("sec,Mb/s", 1_000_000_000, 1_000_000),
            ("seconds,downlink kilobits per second", 1_000_000_000, 1_000),
            ("seconds,megabytes/sec", 1_000_000_000, 8_000_000),
            ("seconds,Bps", 1_000_000_000, 8),
            ("NS,Gigabit/s", 1, 1_000_000_000),
        ] {
            assert_eq!(Columns::read(header), Some(Columns { time_nanos, rate_bps }), "{header}");
        }
    }

    #[test]
    fn headers_that_leave_the_unit_open_are_not() {
        for header in [
            "time,rate",
            "time,throughput",
            "t,r",
            "time,MBPS",
            "time,BPS",
            "time,MB",
            "time,bytes",
            "time,packets",
            "rtt,mbps",
            "date,mbps",
            "mbps,time",
            "time,mbps,rtt",
            "ms s,mbps",
            "time,mbps per minute",
            ",mbps",
            "time,",
            "hours,mbps",
            "time,mb",
        ] {
            assert_eq!(Columns::read(header), None, "{header}");
        }
    }
}
