//! The results of the runs of an experiment.

use super::eval::Cells;
use super::plan::Plan;
use super::statement::Value as Named;
use crate::compare::RunOutcome;
use crate::report::COMPETING;
use crate::scenario::Scenario;
use crate::stats::Summary;
use plait_app::MEASURES;
use plait_app::measure::Value;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The result of one run.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct RunRecord {
    /// Why the run counts in no statistic: it did not finish, or broke an invariant.
    pub failure: Option<String>,
    /// Measures by name; the measures of a path as `path_share.wifi`.
    pub values: BTreeMap<String, f64>,
    /// Running hash over every segment sent and delivered.
    #[serde(skip)]
    pub hash: u64,
}

impl RunRecord {
    /// Returns the record of an outcome.
    #[must_use]
    pub fn of(outcome: &RunOutcome, scenario: &Scenario) -> RunRecord {
        let mut values = BTreeMap::new();
        for entry in MEASURES {
            match entry.value {
                Value::Run(of) => {
                    values.extend(of(&outcome.measures).map(|it| (entry.name.to_owned(), it)));
                }
                Value::Path(of) => {
                    for (path, measures) in scenario.paths.iter().zip(&outcome.measures.paths) {
                        let name = format!("{}.{}", entry.name, path.name);
                        values.extend(of(measures).map(|it| (name, it)));
                    }
                }
            }
        }
        let competing: Vec<f64> = outcome.competing.concat();
        if !competing.is_empty() {
            let mean = competing.iter().sum::<f64>() / competing.len() as f64;
            values.insert(COMPETING.to_owned(), mean);
        }
        RunRecord { failure: outcome.failure(scenario), values, hash: outcome.hash }
    }

    /// Returns the record as a line of the [`Store`](super::Store).
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut line = format!("{:016x} ", self.hash);
        for (name, value) in &self.values {
            // `{:?}` prints the shortest text that reads back as the same number.
            let _ = write!(line, "{name}={value:?} ");
        }
        match &self.failure {
            None => line.push_str("ok"),
            Some(why) => {
                let _ = write!(line, "failed {}", why.replace(['\n', '\r'], " "));
            }
        }
        line
    }

    /// Reads a line that [`RunRecord::to_line`] has written.
    #[must_use]
    pub fn from_line(line: &str) -> Option<RunRecord> {
        let (hash, mut rest) = line.split_once(' ')?;
        let hash = u64::from_str_radix(hash, 16).ok()?;
        let mut record = RunRecord { hash, ..RunRecord::default() };
        loop {
            if rest == "ok" {
                return Some(record);
            }
            if let Some(why) = rest.strip_prefix("failed ") {
                record.failure = Some(why.to_owned());
                return Some(record);
            }
            let (value, after) = rest.split_once(' ')?;
            let (name, number) = value.split_once('=')?;
            record.values.insert(name.to_owned(), number.parse().ok()?);
            rest = after;
        }
    }
}

/// The results of a plan, by cell, then run.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// The plan.
    pub plan: Plan,
    /// The runs of each cell; `None` for a run that was cancelled.
    pub runs: Vec<Vec<Option<RunRecord>>>,
}

impl Results {
    /// Returns true if runs are missing.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.runs.iter().flatten().any(Option::is_none)
    }

    /// Returns the measure of every run of a cell; `None` if a run is missing, failed or lacks the measure.
    #[must_use]
    pub fn values(&self, cell: usize, measure: &str) -> Option<Vec<f64>> {
        let of = |run: &Option<RunRecord>| {
            let run = run.as_ref().filter(|run| run.failure.is_none())?;
            run.values.get(measure).copied()
        };
        self.runs.get(cell)?.iter().map(of).collect()
    }

    /// Returns the measure of the runs of a cell that have it. Missing and failed runs, and runs without the
    /// measure, are left out.
    #[must_use]
    pub fn present(&self, cell: usize, measure: &str) -> Vec<f64> {
        let runs = self.runs.get(cell).into_iter().flatten().flatten();
        let counted = runs.filter(|run| run.failure.is_none());
        counted.filter_map(|run| run.values.get(measure).copied()).collect()
    }

    /// Returns the number of runs that were made of a cell.
    #[must_use]
    pub fn made(&self, cell: usize) -> usize {
        self.runs.get(cell).map_or(0, |runs| runs.iter().flatten().count())
    }

    /// Returns the summary of a measure over the runs of a cell that have it.
    #[must_use]
    pub fn summary(&self, cell: usize, measure: &str) -> Option<Summary> {
        let planned = self.plan.cells.get(cell)?;
        let values = self.present(cell, measure);
        let purpose = format!("{}/{}/{measure}", planned.cell, planned.cell.cc);
        Summary::of(&values, planned.cell.scenario.seed, &purpose)
    }

    /// Returns the measures that some run has, sorted by name.
    #[must_use]
    pub fn measures(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .runs
            .iter()
            .filter_map(|runs| runs.iter().flatten().next())
            .flat_map(|run| run.values.keys().cloned())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns a CSV table with one line a run: the points, the row, the run, its seed and every measure.
    #[must_use]
    pub fn csv(&self) -> String {
        let experiment = &self.plan.experiment;
        let measures = self.measures();
        let mut out = String::from("experiment,row");
        for axis in &experiment.axes {
            let _ = write!(out, ",{}", axis.name);
        }
        out.push_str(",run,seed,failure");
        for name in &measures {
            let _ = write!(out, ",{name}");
        }
        out.push('\n');
        for (planned, runs) in self.plan.cells.iter().zip(&self.runs) {
            for (run, record) in
                (0u32..).zip(runs).filter_map(|(run, it)| Some((run, it.as_ref()?)))
            {
                let _ =
                    write!(out, "{},{}", experiment.id, field(&experiment.rows[planned.row].name));
                for (axis, point) in experiment.axes.iter().zip(&planned.at) {
                    let _ = write!(out, ",{}", field(&axis.points[*point].text));
                }
                let seed = crate::run_seed(planned.cell.scenario.seed, run);
                let why = record.failure.as_deref().map(field).unwrap_or_default();
                let _ = write!(out, ",{run},{seed},{why}");
                for name in &measures {
                    match record.values.get(name) {
                        Some(value) => {
                            let _ = write!(out, ",{value:?}");
                        }
                        None => out.push(','),
                    }
                }
                out.push('\n');
            }
        }
        out
    }

    /// Returns the same as JSON, one object a line.
    #[must_use]
    pub fn json_lines(&self) -> String {
        let experiment = &self.plan.experiment;
        let mut out = String::new();
        for (planned, runs) in self.plan.cells.iter().zip(&self.runs) {
            let points: serde_json::Map<String, serde_json::Value> = experiment
                .axes
                .iter()
                .zip(&planned.at)
                .map(|(axis, point)| (axis.name.clone(), axis.points[*point].text.clone().into()))
                .collect();
            for (run, record) in
                (0u32..).zip(runs).filter_map(|(run, it)| Some((run, it.as_ref()?)))
            {
                let mut line = serde_json::json!({
                    "experiment": experiment.id,
                    "row": experiment.rows[planned.row].name,
                    "at": points,
                    "run": run,
                    "seed": crate::run_seed(planned.cell.scenario.seed, run),
                    "measures": record.values,
                });
                if let (Some(why), Some(object)) = (&record.failure, line.as_object_mut()) {
                    object.insert("failure".to_owned(), why.clone().into());
                }
                let _ = writeln!(out, "{line}");
            }
        }
        out
    }
}

/// Returns a field of a CSV line, quoted if necessary.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

impl Cells for Results {
    fn only(&self, row: usize, axis: usize) -> Option<&[usize]> {
        self.plan.experiment.rows[row].only.get(&axis).map(Vec::as_slice)
    }

    fn runs(&self, row: usize, at: &[usize]) -> usize {
        self.plan.position(row, at).map_or(0, |cell| self.plan.cells[cell].runs as usize)
    }

    fn values(&self, row: usize, at: &[usize], value: &Named) -> Vec<f64> {
        let Some(cell) = self.plan.position(row, at) else { return Vec::new() };
        let counted = |run: &Option<RunRecord>| run.as_ref().is_some_and(|it| it.failure.is_none());
        // A run without the measure, such as one that never used the path, does not affect an extreme.
        if value.statistic.is_extreme() && self.runs[cell].iter().all(counted) {
            return self.present(cell, &value.measure);
        }
        Results::values(self, cell, &value.measure).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_to_the_last_bit() {
        let values = [("a", 0.1 + 0.2), ("b.wifi", 1e-300), ("c", 5.0)];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        for failure in [None, Some("not finished after 1h".to_owned())] {
            let record =
                RunRecord { failure, values: BTreeMap::clone(&values), hash: u64::MAX - 7 };
            assert_eq!(RunRecord::from_line(&record.to_line()), Some(record));
        }
        assert_eq!(RunRecord::from_line("7f a=1.0 b=2"), None);
        assert_eq!(RunRecord::from_line("7f a=x ok"), None);
        assert_eq!(RunRecord::from_line("a=1.0 ok"), None);
    }
}
