//! The names that a statement may use.

use super::axis::Axis;
use super::extra::{OF_PATHS, OF_RUNS, OF_TIMES, begins_part};
use crate::error::{Fault, Place, ScenarioError};
use crate::report::COMPETING;
use plait_app::MEASURES;
use plait_app::measure::Value;

/// Names of an experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) rows: &'a [String],
    pub(super) axes: &'a [Axis],
    pub(super) paths: &'a [String],
}

impl Names<'_> {
    pub(super) fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }

    /// Returns the stored name of a measure, and the remaining parts. The stored name of a path's measure
    /// includes the path, and that of a part of the time includes its start.
    pub(super) fn measure<'b, 'c>(
        &self,
        name: &str,
        more: &'c [&'b str],
        place: &Place,
    ) -> Result<(String, &'c [&'b str]), ScenarioError> {
        if let Some(extra) = OF_TIMES.iter().find(|known| known.name == name) {
            let seconds = extra.part_s;
            return match more.split_first() {
                Some((part, more)) if begins_part(part, seconds) => {
                    Ok((format!("{name}.{part}"), more))
                }
                _ => {
                    let problem = "a measure of a part of the time needs the start of that part";
                    let allowed = format!(".0s, .{seconds}s, .{}s and so on", 2 * seconds);
                    Err(ScenarioError::new(place, Fault::Missing, name, problem).allow(&allowed))
                }
            };
        }
        let known = MEASURES.iter().map(|it| (it.name, matches!(it.value, Value::Path(_))));
        let extra = OF_RUNS
            .iter()
            .map(|it| (it.name, false))
            .chain(OF_PATHS.iter().map(|it| (it.name, true)));
        let mut all = known.chain(extra).chain([(COMPETING, false)]);
        let Some((_, of_path)) = all.clone().find(|known| known.0 == name) else {
            return Err(ScenarioError::unknown(
                place,
                "measure",
                name,
                all.by_ref().map(|it| it.0).chain(OF_TIMES.iter().map(|it| it.name)),
            ));
        };
        if !of_path {
            return Ok((name.to_owned(), more));
        }
        let paths = || self.paths.iter().map(String::as_str);
        match more.split_first() {
            Some((path, more)) if paths().any(|known| known == *path) => {
                Ok((format!("{name}.{path}"), more))
            }
            Some((path, _)) => Err(ScenarioError::unknown(place, "path", path, paths())),
            None => {
                let problem = "a measure of each path is followed by `.PATH`";
                let allowed: Vec<&str> = paths().collect();
                Err(ScenarioError::new(place, Fault::Missing, name, problem)
                    .allow(&allowed.join(", ")))
            }
        }
    }
}
