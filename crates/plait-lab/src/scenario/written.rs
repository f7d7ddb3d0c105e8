//! A scenario as it could have been written.

use super::Scenario;
use super::path::Path;
use super::placed_text::PlacedText;
use super::raw_scenario::{RawPath, RawScenario};
use super::settings::SETTINGS;
use crate::error::Place;

impl Scenario {
    /// The line that runs it again, quoted for a POSIX shell: settings at their default are left
    /// out, the seed and the number of runs never.
    #[must_use]
    pub fn command_line(&self) -> String {
        self.raw().command_line()
    }

    /// The scenario as it could have been written on a command line: [`RawScenario::build`] gives it
    /// back.
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

/// A path as it could have been written.
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
