//! Reads and writes the file of results, and computes statistics.

use super::measure::Run;
use super::pairs::{Load, Pair};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One run, measured or simulated.
#[derive(Clone, Debug)]
pub struct Seen {
    pub completion_ms: f64,
    /// Percentiles of the delay of messages. `None` for a download.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Share of the second link in the IP bytes that reached the client.
    pub second_share: f64,
    /// Packets that the queues dropped on the way to the client.
    pub dropped: [u64; 2],
}

/// A line of the file of measurements.
#[derive(Clone, Debug)]
pub struct Measured {
    pub pair: String,
    pub cc: String,
    pub seen: Seen,
    /// Greatest lateness of the emulator, in us.
    pub late_us: u64,
}

/// Columns of the file.
const HEADER: &str = "group,pair,cc,completion_ms,p50_ms,p99_ms,bytes_first,bytes_second,\
                      dropped_first,dropped_second,reinjected,late_us";

/// Returns the path of the file of measurements.
pub fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/kernel-model.csv")
}

/// Adds a run to the file.
pub fn append(file: &Path, pair: &Pair, cc: &str, run: &Run) -> io::Result<()> {
    let mut text = fs::read_to_string(file).unwrap_or_else(|_| format!("{HEADER}\n"));
    let mut delays = run.delays_ms.clone();
    delays.sort_by(f64::total_cmp);
    let percentile = |percent| match pair.load {
        Load::Download { .. } => String::new(),
        Load::Stream { .. } => format!("{:.2}", interpolated(&delays, percent)),
    };
    let [first, second] = run.delivered;
    let [dropped_first, dropped_second] = run.dropped;
    let _ = writeln!(
        text,
        "{},{},{cc},{:.2},{},{},{first},{second},{dropped_first},{dropped_second},{},{}",
        pair.group.name(),
        pair.name,
        run.completion_ms,
        percentile(50.0),
        percentile(99.0),
        run.reinjected,
        run.late_us
    );
    fs::write(file, text)
}

/// Reads all measurements of the file.
pub fn load(file: &Path) -> io::Result<Vec<Measured>> {
    let text = fs::read_to_string(file)?;
    let bad = |line: &str| io::Error::other(format!("{}: bad line: {line}", file.display()));
    let lines = text.lines().skip(1).filter(|line| !line.is_empty());
    lines.map(|line| parse(line).ok_or_else(|| bad(line))).collect()
}

fn parse(line: &str) -> Option<Measured> {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
    let whole = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let (first, second) = (number(6)?, number(7)?);
    Some(Measured {
        pair: (*fields.get(1)?).to_owned(),
        cc: (*fields.get(2)?).to_owned(),
        seen: Seen {
            completion_ms: number(3)?,
            p50_ms: number(4),
            p99_ms: number(5),
            second_share: second / (first + second),
            dropped: [whole(8)?, whole(9)?],
        },
        late_us: whole(11)?,
    })
}

/// Returns a percentile of sorted values, interpolated linearly as in `plait compare`.
pub fn interpolated(sorted: &[f64], percent: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let rank = last as f64 * percent / 100.0;
    let (low, part) = (rank as usize, rank.fract());
    let above = sorted[(low + 1).min(last)];
    sorted[low] + (above - sorted[low]) * part
}

/// Returns the median of unsorted values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    interpolated(&sorted, 50.0)
}

/// The name of a measure, and its value in a run.
pub type Measure = (&'static str, fn(&Seen) -> f64);

/// Returns the measures of a load.
pub fn measures(load: Load) -> Vec<Measure> {
    match load {
        Load::Download { .. } => vec![("completion", |seen| seen.completion_ms)],
        Load::Stream { .. } => vec![
            ("p50", |seen| seen.p50_ms.unwrap_or(f64::NAN)),
            ("p99", |seen| seen.p99_ms.unwrap_or(f64::NAN)),
        ],
    }
}
