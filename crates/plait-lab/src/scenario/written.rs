//! Converts a scenario back to a raw scenario and a command line.

use super::Scenario;
use super::path::Path;
use super::placed_text::PlacedText;
use super::raw_scenario::{RawPath, RawScenario};
use super::settings::SETTINGS;
use crate::error::Place;

impl Scenario {
    /// Returns the command line that runs it again, quoted for a POSIX shell. Settings at their
    /// default are omitted, except the seed and the number of runs.
    #[must_use]
    pub fn command_line(&self) -> String {
        self.raw().command_line()
    }

    /// Returns the scenario as command-line arguments. [`RawScenario::build`] restores it.
    #[must_use]
    pub fn raw(&self) -> RawScenario {
        let mut raw = RawScenario::new();
        for path in &self.paths {
            raw.paths.push(raw_path(path, "--path"));
        }
        for setting in SETTINGS {
            let place = Place::Argument(format!("--{}", setting.name));
            let texts = setting.texts(self);
            if !texts.is_empty() {
                let placed = texts.iter().map(|text| PlacedText::new(&place, text)).collect();
                raw.settings.insert(setting.name, placed);
            }
        }
        raw
    }
}

/// Returns a path as command-line arguments.
fn raw_path(path: &Path, argument: &str) -> RawPath {
    let place = Place::Argument(argument.to_owned());
    let field = |(key, text): &(&'static str, String)| {
        let place = Place::Argument(format!("{argument} {}:{key}", path.name));
        ((*key).to_owned(), PlacedText::new(&place, text))
    };
    RawPath {
        name: PlacedText::new(&place, &path.name),
        fields: path.fields().iter().map(field).collect(),
    }
}
