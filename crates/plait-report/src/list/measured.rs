//! Measurements of each scheduler, next to minrtt and plain TCP on the best path alone. They are a
//! stored table, which a test measures again. Pages print their part of it.

use plait_app::measure::is_higher_better;
use schemars::JsonSchema;
use serde::Serialize;

/// The stored table: a line for each scheduler, a column for each of [`CASES`], medians.
pub(super) const STORED: &str = include_str!("measured.txt");
/// The scheduler that all others are compared with.
const BASELINE: &str = "minrtt";
/// The rows of plain TCP: the paths of [`PATHS`] have these names.
const ALONE: [&str; 2] = ["tcp:fast", "tcp:slow"];

/// Paths with their command-line arguments; the name is for the table.
pub(super) const PATHS: [(&str, &str); 4] = [
    ("unlike", "--path fast:rate=25mbit,rtt=25ms --path slow:rate=4mbit,rtt=75ms"),
    ("far", "--path fast:rate=10mbit,rtt=10ms --path slow:rate=10mbit,rtt=100ms"),
    ("deep", "--path fast:rate=25mbit,rtt=25ms --path slow:rate=4mbit,rtt=75ms,queue=2s"),
    ("lossy", "--path fast:rate=25mbit,rtt=25ms,loss=1% --path slow:rate=4mbit,rtt=75ms --runs 15"),
];

/// A measured case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// Column of the stored table: one word, unique.
    pub(super) column: &'static str,
    /// Name in [`PATHS`].
    pub(super) paths: &'static str,
    /// The workload and further settings, as after `--workload`.
    pub(super) workload: &'static str,
    /// The primary measure of the workload.
    pub(super) measure: &'static str,
}

const fn case(
    column: &'static str,
    paths: &'static str,
    workload: &'static str,
    measure: &'static str,
) -> Case {
    Case { column, paths, workload, measure }
}

/// All measured cases.
pub(super) const CASES: [Case; 10] = [
    case("unlike/512kB", "unlike", "download:512kB", "completion_ms"),
    case("unlike/4MB", "unlike", "download:4MB", "completion_ms"),
    case("unlike/stream", "unlike", "stream:30kB@50ms,for=10s", "message_delay_ms"),
    case("far/burst", "far", "burst:30seg", "message_delay_ms"),
    case("far/512kB", "far", "download:512kB", "completion_ms"),
    case("far/stream", "far", "stream:30kB@50ms,for=10s", "message_delay_ms"),
    case("far/window", "far", "bulk:10s --rcvbuf 128kB", "goodput_mbps"),
    case("deep/window", "deep", "bulk:10s --rcvbuf 512kB", "goodput_mbps"),
    case("deep/stream", "deep", "stream:160kB@50ms,for=10s", "message_delay_ms"),
    case("lossy/stream", "lossy", "stream:30kB@50ms,for=10s", "message_delay_ms"),
];

impl Case {
    /// Returns the arguments of its command line, without the schedulers.
    pub(super) fn arguments(&self) -> String {
        let paths = PATHS.iter().find(|(name, _)| *name == self.paths);
        let paths = paths.map_or("", |(_, settings)| settings);
        format!("{paths} --workload {}", self.workload)
    }

    fn better(&self, value: f64, than: f64) -> bool {
        if is_higher_better(self.measure) { value > than } else { value < than }
    }
}

/// A scheduler in one case, with minrtt and the best path for comparison.
#[derive(Serialize, JsonSchema, Clone, PartialEq, Debug)]
pub(super) struct Measurement {
    /// Arguments of `plait compare`, without the schedulers; the seed is 1.
    pub(super) arguments: String,
    /// Name of the paths in the table.
    #[serde(skip)]
    pub(super) paths: &'static str,
    /// The workload, with settings beside it.
    #[serde(skip)]
    pub(super) workload: &'static str,
    /// The measure, with its unit.
    pub(super) measure: &'static str,
    /// The measured scheduler; a decorator is measured around minrtt.
    pub(super) scheduler: String,
    /// Its median.
    pub(super) median: f64,
    /// The median of minrtt.
    pub(super) minrtt: f64,
    /// The best path alone, with plain TCP.
    pub(super) best_path: &'static str,
    /// The median of plain TCP there.
    pub(super) best_path_alone: f64,
}

/// Returns the rows of a stored table: a name and its fields.
fn rows(table: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next().map(|name| (name, words.collect()))
    })
}

/// Returns the name of the row that measures an entry: a decorator (`+rp`) is measured around
/// minrtt.
pub(super) fn row_of(name: &str) -> String {
    if name.starts_with('+') { format!("{BASELINE}{name}") } else { name.to_owned() }
}

/// Returns every measured row, in the order of the registries.
#[cfg(test)]
pub(super) fn row_names() -> Vec<String> {
    let bases = plait_sched::SCHEDULERS.iter().map(|entry| entry.about.name.to_owned());
    let decorators = plait_sched::DECORATORS.iter().map(|entry| format!("+{}", entry.about.name));
    let alone = ALONE.iter().map(ToString::to_string);
    bases.chain(decorators.map(|name| row_of(&name))).chain(alone).collect()
}

/// Returns the measurements of a scheduler or decorator in `table`; empty if it was not measured.
pub(super) fn of(name: &str, table: &str) -> Vec<Measurement> {
    let row = row_of(name);
    let header: Vec<&str> = rows(table).next().map(|(_, columns)| columns).unwrap_or_default();
    let value = |row: &str, case: &Case| -> Option<f64> {
        let at = header.iter().position(|column| *column == case.column)?;
        let (_, fields) = rows(table).find(|(name, _)| *name == row)?;
        fields.get(at)?.parse().ok()
    };
    let measurement = |case: &Case| {
        let [fast, slow] = ALONE.map(|row| value(row, case));
        let (fast, slow) = (fast?, slow?);
        let (best_path, best_path_alone) =
            if case.better(slow, fast) { ("slow", slow) } else { ("fast", fast) };
        Some(Measurement {
            arguments: case.arguments(),
            paths: case.paths,
            workload: case.workload,
            measure: case.measure,
            scheduler: row.clone(),
            median: value(&row, case)?,
            minrtt: value(BASELINE, case)?,
            best_path,
            best_path_alone,
        })
    };
    CASES.iter().filter_map(measurement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
# A comment.
scheduler  far/window  gone  unlike/4MB
minrtt           10.0   1.0       100.0
ecf               9.0   1.0        90.0
minrtt+rp           -   1.0        99.5
tcp:fast          8.0   1.0        80.0
tcp:slow          8.5   1.0       800.0
";

    #[test]
    fn columns_are_found_by_name_and_the_best_path_by_the_measure() {
        let found = of("ecf", TABLE);
        let seen: Vec<_> = found
            .iter()
            .map(|it| (it.measure, it.median, it.minrtt, it.best_path, it.best_path_alone))
            .collect();
        assert_eq!(
            seen,
            [
                ("completion_ms", 90.0, 100.0, "fast", 80.0),
                ("goodput_mbps", 9.0, 10.0, "slow", 8.5),
            ]
        );
    }

    #[test]
    fn a_decorator_is_measured_around_minrtt_and_what_is_missing_left_out() {
        let found = of("+rp", TABLE);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].scheduler.as_str(), found[0].median), ("minrtt+rp", 99.5));
        assert!(of("nobody", TABLE).is_empty() && of("ecf", "").is_empty());
    }

    #[test]
    fn cases_have_a_column_of_their_own_and_known_paths() {
        for (index, case) in CASES.iter().enumerate() {
            assert!(CASES[..index].iter().all(|other| other.column != case.column));
            assert!(!case.column.contains(char::is_whitespace));
            assert!(case.arguments().starts_with("--path fast:"), "{}", case.column);
        }
    }
}
