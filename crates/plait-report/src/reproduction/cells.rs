//! The values of the cells of an experiment, as JSON.

use plait_lab::experiment::Results;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A row at a point of the sweep, over its runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CellValues {
    /// Its experiment.
    experiment: String,
    /// Its row.
    row: String,
    /// Its point of each axis.
    point: BTreeMap<String, String>,
    /// Number of runs.
    runs: usize,
    /// Number of runs that did not finish or broke an invariant. They are in no value.
    failed: usize,
    /// Each measure of its runs, over the runs that have it.
    measures: BTreeMap<String, Values>,
}

/// A measure over the runs of a cell. The unit is at the end of its name.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Values {
    /// Mean.
    mean: f64,
    /// Median.
    median: f64,
    /// Minimum.
    min: f64,
    /// Maximum.
    max: f64,
    /// Number of runs that have it.
    n: usize,
}

impl Values {
    fn of(mut values: Vec<f64>) -> Option<Values> {
        values.sort_by(f64::total_cmp);
        Some(Values {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            median: plait_lab::stats::percentile(&values, 50.0)?,
            min: *values.first()?,
            max: *values.last()?,
            n: values.len(),
        })
    }
}

/// Returns the cells of an experiment with their values.
pub(super) fn cells(results: &Results) -> Vec<CellValues> {
    let experiment = &results.plan.experiment;
    let cell = |(at, planned): (usize, &plait_lab::experiment::Planned)| {
        let made = || results.runs[at].iter().flatten();
        let mut names: Vec<&String> = made().flat_map(|run| run.values.keys()).collect();
        names.sort();
        names.dedup();
        let point = experiment.axes.iter().zip(&planned.at);
        let measures = names.into_iter();
        CellValues {
            experiment: experiment.id.clone(),
            row: experiment.rows[planned.row].name.clone(),
            point: point
                .map(|(axis, point)| (axis.name.clone(), axis.points[*point].text.clone()))
                .collect(),
            runs: made().count(),
            failed: made().filter(|run| run.failure.is_some()).count(),
            measures: measures
                .filter_map(|name| Some((name.clone(), Values::of(results.present(at, name))?)))
                .collect(),
        }
    };
    results.plan.cells.iter().enumerate().map(cell).collect()
}

impl CellValues {
    /// Returns a line of CSV for each measure: the experiment, the row, its points, the measure,
    /// its values.
    pub(crate) fn csv(&self, axes: &[String]) -> Vec<Vec<String>> {
        let line = |(name, it): (&String, &Values)| {
            let mut line = vec![self.experiment.clone(), self.row.clone()];
            line.extend(axes.iter().map(|axis| self.point.get(axis).cloned().unwrap_or_default()));
            line.push(name.clone());
            line.extend([it.mean, it.median, it.min, it.max].iter().map(f64::to_string));
            line.push(it.n.to_string());
            line
        };
        self.measures.iter().map(line).collect()
    }
}
