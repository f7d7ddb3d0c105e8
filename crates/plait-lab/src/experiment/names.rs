//! The names that a statement may use.

use super::axis::Axis;
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

    /// The name under which a measure is kept, and the parts that follow it: those of a path come
    /// with the path's name.
    pub(super) fn measure<'b, 'c>(
        &self,
        name: &str,
        more: &'c [&'b str],
        place: &Place,
    ) -> Result<(String, &'c [&'b str]), ScenarioError> {
        if name == COMPETING {
            return Ok((name.to_owned(), more));
        }
        let Some(entry) = MEASURES.iter().find(|entry| entry.name == name) else {
            let names = MEASURES.iter().map(|entry| entry.name).chain([COMPETING]);
            return Err(ScenarioError::unknown(place, "measure", name, names));
        };
        let Value::Path(_) = entry.value else { return Ok((name.to_owned(), more)) };
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
