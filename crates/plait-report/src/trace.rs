//! Recorded links as text and as documents.

use crate::Error;
use crate::render::{chart, millis, rate};
use plait_base::{Rate, Span};
use plait_link::{OPPORTUNITY_BYTES, Trace};
use schemars::JsonSchema;
use serde::Serialize;

/// Shortest silence that is reported.
const OUTAGE: Span = Span::from_secs(1);
/// Greatest number of bins in the search for silences.
const FINEST: u64 = 100_000;
/// Lines of the drawing, and columns to its left.
const HEIGHT: usize = 6;
const SCALE: usize = 12;
/// Greatest number of lines of a converted trace.
const MOST_LINES: u64 = 10_000_000;
/// Greatest number of silences in the text.
const LISTED: usize = 5;

/// `plait trace show --json`.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(title = "Document")]
pub struct TraceDocument {
    /// Always `plait.trace/1`.
    schema: &'static str,
    /// The file as given.
    file: String,
    /// mahimahi or csv.
    format: &'static str,
    /// Length of the recording, after which it repeats.
    duration_ms: f64,
    /// Mean rate: capacity divided by length.
    mean_bps: u64,
    /// Lowest rate over one second.
    min_bps: u64,
    /// Highest rate over one second.
    max_bps: u64,
    /// Silences of at least one second.
    outages: Vec<Silence>,
    /// Length of the bins of `rate_bps`.
    bin_ms: f64,
    /// Mean rate in each bin; the last may be shorter.
    rate_bps: Vec<u64>,
}

/// A time without delivery.
#[derive(Serialize, JsonSchema, Clone, PartialEq, Debug)]
pub struct Silence {
    /// Start.
    from_ms: f64,
    /// End.
    to_ms: f64,
}

/// Returns the trace in Mahimahi's format.
///
/// # Errors
/// If it has too many lines.
pub fn mahimahi(trace: &Trace) -> Result<String, Error> {
    let bytes = trace.mean_rate().bytes_in(trace.duration());
    let lines = bytes / u64::from(OPPORTUNITY_BYTES);
    if lines > MOST_LINES {
        return Err(Error::Refused(format!(
            "{}: {lines} lines of {OPPORTUNITY_BYTES} bytes each\n  allowed: at most {MOST_LINES} lines; \
             cut the trace, or lower its rates",
            trace.name()
        )));
    }
    Ok(trace.to_mahimahi())
}

/// Describes a recording for `width` columns of text.
#[must_use]
pub fn describe(trace: &Trace, width: usize) -> TraceDocument {
    let columns = width.min(100).saturating_sub(SCALE);
    let duration = trace.duration();
    let second = Span::from_secs(1).min(duration);
    let rates = trace.rate_per_bin(second);
    let bps = |rates: &[Rate]| rates.iter().map(|rate| rate.as_bps()).collect::<Vec<_>>();
    // A bin has whole milliseconds if possible, because it is easier to read.
    let bin = duration.as_nanos().div_ceil(columns.max(1) as u64);
    let bin = Span::from_nanos(bin.next_multiple_of(1_000_000).max(1));
    TraceDocument {
        schema: "plait.trace/1",
        file: trace.name().to_owned(),
        format: trace.format().name(),
        duration_ms: duration.as_millis_f64(),
        mean_bps: trace.mean_rate().as_bps(),
        min_bps: bps(&rates).into_iter().min().unwrap_or(0),
        max_bps: bps(&rates).into_iter().max().unwrap_or(0),
        outages: silences(trace),
        bin_ms: bin.as_millis_f64(),
        rate_bps: bps(&trace.rate_per_bin(bin)),
    }
}

/// Returns the silences of at least a second, to a tenth of a second if the length allows it.
fn silences(trace: &Trace) -> Vec<Silence> {
    let least = trace.duration().as_nanos().div_ceil(FINEST);
    let bin = Span::from_nanos(least.next_multiple_of(100_000_000));
    let mut found = Vec::new();
    let mut quiet_since: Option<u64> = None;
    let rates = trace.rate_per_bin(bin);
    let end_of =
        |nth: usize| (bin.as_nanos().saturating_mul(nth as u64)).min(trace.duration().as_nanos());
    for (nth, silent) in rates.iter().map(|rate| *rate == Rate::ZERO).chain([false]).enumerate() {
        match (silent, quiet_since) {
            (true, None) => quiet_since = Some(end_of(nth)),
            (false, Some(from)) => {
                if end_of(nth) - from >= OUTAGE.as_nanos() {
                    let ms = |nanos: u64| Span::from_nanos(nanos).as_millis_f64();
                    found.push(Silence { from_ms: ms(from), to_ms: ms(end_of(nth)) });
                }
                quiet_since = None;
            }
            _ => {}
        }
    }
    found
}

/// Draws a described recording.
#[must_use]
pub fn drawing(document: &TraceDocument) -> String {
    let silence = match document.outages.as_slice() {
        [] => "none of 1 s or more".to_owned(),
        list => {
            let total: f64 = list.iter().map(|s| s.to_ms - s.from_ms).sum();
            let part =
                |s: &Silence| format!("{} at {}", millis(s.to_ms - s.from_ms), millis(s.from_ms));
            let listed: Vec<String> = list.iter().take(LISTED).map(part).collect();
            let more = if list.len() > LISTED { ", ..." } else { "" };
            format!("{} in {}: {}{more}", millis(total), list.len(), listed.join(", "))
        }
    };
    let mut text = format!(
        "{}\n  format    {}\n  duration  {}, then it repeats\n  rate      mean {}, lowest {} and highest {} over a second\n  silence   {silence}\n\n",
        document.file,
        document.format,
        millis(document.duration_ms),
        rate(document.mean_bps),
        rate(document.min_bps),
        rate(document.max_bps),
    );
    let values: Vec<f64> = document.rate_bps.iter().map(|bps| *bps as f64).collect();
    let peak = document.rate_bps.iter().copied().max().unwrap_or(0);
    for (nth, line) in chart(&values, peak as f64, HEIGHT).iter().enumerate() {
        let label = match nth {
            0 => rate(peak),
            n if n == HEIGHT / 2 => rate(peak / 2),
            _ => String::new(),
        };
        text.push_str(format!("{label:>11} {line}").trim_end());
        text.push('\n');
    }
    let end = millis(document.duration_ms);
    let room = document.rate_bps.len().saturating_sub(1);
    text.push_str(&format!("{:SCALE$}0{end:>room$}\n", ""));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp() -> Trace {
        let rows: String = (1..=40)
            .map(|t| format!("{t},{}\n", if (11..=13).contains(&t) { 0 } else { t * 25_000 }))
            .collect();
        Trace::parse("link.csv", &rows).unwrap()
    }

    #[test]
    fn a_recording_reads_at_a_glance() {
        let trace = ramp();
        insta::assert_snapshot!(drawing(&describe(&trace, 40 + SCALE)));
    }

    #[test]
    fn silences_have_their_place() {
        assert_eq!(silences(&ramp()), [Silence { from_ms: 10_000.0, to_ms: 13_000.0 }]);
        // Stamps at 0.1 s and 3 s: the silence reaches from the bin after the first to the bin of
        // the second.
        let trace = Trace::parse("t", "100\n3000\n").unwrap();
        assert_eq!(silences(&trace), [Silence { from_ms: 100.0, to_ms: 2_900.0 }]);
    }

    #[test]
    fn rates_are_over_a_second() {
        let document = describe(&ramp(), 40 + SCALE);
        assert_eq!((document.min_bps, document.max_bps), (0, 8_000_000));
        assert_eq!(document.rate_bps.len(), 40);
    }
}
