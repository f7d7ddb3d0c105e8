//! A scenario as written: texts with their places, not yet parsed. Flags, files and sweeps all
//! become raw scenarios. Therefore the same code reads them, with the same errors.

use super::impairment;
use super::other_keys::canonical;
use super::path_keys::written;
use super::placed_text::PlacedText;
use super::settings::{SETTINGS, Setting};
use crate::error::{Fault, Place, ScenarioError};
use plait_app::name::nearest;
use std::collections::BTreeMap;
use std::fmt;

/// A path as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawPath {
    /// Its name.
    pub name: PlacedText,
    /// Its fields, in the order written.
    pub fields: Vec<(String, PlacedText)>,
}

/// A scenario as written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RawScenario {
    /// Settings by name.
    pub(crate) settings: BTreeMap<&'static str, Vec<PlacedText>>,
    /// Paths, the primary first.
    pub(crate) paths: Vec<RawPath>,
    /// The file it was read from.
    pub(crate) file: Option<String>,
}

impl RawPath {
    pub(crate) fn field(&self, key: &str) -> Option<&PlacedText> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, given)| given)
    }

    pub(crate) fn fields<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a PlacedText> {
        self.fields.iter().filter(move |(name, _)| name == key).map(|(_, given)| given)
    }

    /// Parses `NAME:key=value,...` or the name of a profile.
    pub(super) fn parse(text: &str, place: &Place) -> RawPath {
        let Some((name, fields)) = text.split_once(':') else {
            let name = PlacedText::new(place, text.trim());
            let profile = name.clone();
            return RawPath { name, fields: vec![("profile".to_owned(), profile)] };
        };
        let name = name.trim();
        // An empty piece between two commas is refused later, when the keys are checked.
        let pieces = fields.split(',').map(str::trim).filter(|_| !fields.trim().is_empty());
        let mut list: Vec<(String, PlacedText)> = Vec::new();
        for piece in pieces {
            let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
            // A parameter of the preceding value, as in loss=ge:p=1%,r=30%.
            if let Some((before, given)) = list.last_mut()
                && impairment::goes_on(before, &given.text, key.trim())
            {
                given.text = format!("{},{piece}", given.text);
                continue;
            }
            let place = match place {
                Place::Argument(argument) => {
                    Place::Argument(format!("{argument} {}:{}", shown(name), shown(key)))
                }
                Place::File { .. } => place.clone(),
            };
            list.push((canonical(key.trim()).to_owned(), PlacedText::new(&place, value.trim())));
        }
        RawPath { name: PlacedText::new(place, name), fields: list }
    }
}

/// Shortens a part of a place, so that error messages stay short.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(32).collect()
}

impl RawScenario {
    /// Returns an empty raw scenario.
    #[must_use]
    pub fn new() -> RawScenario {
        RawScenario::default()
    }

    /// Returns true if a setting is given.
    #[must_use]
    pub fn says(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    /// Removes a setting.
    pub fn forget(&mut self, name: &str) {
        self.settings.remove(name);
    }

    /// Adds the argument `--name text`. It replaces the value of a file. A second value on the
    /// command line is an error, unless the setting repeats. The text of a switch is `on`.
    ///
    /// # Errors
    /// For an unknown name, or a setting given twice.
    pub fn argument(&mut self, name: &str, text: &str) -> Result<(), ScenarioError> {
        let place = Place::Argument(format!("--{}", shown(name)));
        if name == "path" {
            // Paths on the command line replace paths in a file.
            self.paths.retain(|path| matches!(path.name.place, Place::Argument(_)));
            self.paths.push(RawPath::parse(text, &place));
            return Ok(());
        }
        self.set(name, PlacedText::new(&place, text))
    }

    /// Replaces the paths by those of a file of links, and adds its shared links.
    pub fn take_paths(&mut self, links: RawScenario) {
        self.paths = links.paths;
        for (name, values) in links.settings {
            self.settings.entry(name).or_default().extend(values);
        }
    }

    pub(crate) fn set(&mut self, name: &str, given: PlacedText) -> Result<(), ScenarioError> {
        let Some(setting) = Setting::named(name) else {
            return Err(unknown_setting(name, &given));
        };
        let in_file = |given: &PlacedText| matches!(given.place, Place::File { .. });
        let list = self.settings.entry(setting.name).or_default();
        if !in_file(&given) {
            list.retain(|earlier| !in_file(earlier));
        }
        if !setting.repeats() && !list.is_empty() {
            let error = given.error(Fault::Conflict, "the setting is given twice");
            return Err(error.allow(&format!("once: {}", setting.values())));
        }
        list.push(given);
        Ok(())
    }

    /// Returns the value of a setting, or its default.
    pub(crate) fn value(&self, name: &str) -> Option<PlacedText> {
        let said = self.settings.get(name).and_then(|list| list.first()).cloned();
        said.or_else(|| {
            let default = Setting::named(name)?.default;
            let place = Place::Argument(format!("--{name}"));
            (!default.is_empty()).then(|| PlacedText::new(&place, default))
        })
    }

    pub(crate) fn values(&self, name: &str) -> &[PlacedText] {
        self.settings.get(name).map_or(&[], Vec::as_slice)
    }

    /// Replaces all values of a setting.
    pub(crate) fn replace(&mut self, name: &'static str, given: PlacedText) {
        self.settings.insert(name, vec![given]);
    }

    /// Returns its arguments: name without dashes, and text. Paths come first. The text of a switch is `on`.
    /// [`RawScenario::argument`] takes them.
    #[must_use]
    pub fn arguments(&self) -> Vec<(&'static str, String)> {
        let paths = self.paths.iter().map(|path| ("path", path.to_string()));
        let given = |setting: &'static Setting| {
            self.values(setting.name).iter().map(|given| (setting.name, given.text.clone()))
        };
        paths.chain(SETTINGS.iter().flat_map(given)).collect()
    }

    /// Returns the command line that runs it, `plait compare --path ... --workload ...`, quoted for
    /// a POSIX shell.
    #[must_use]
    pub fn command_line(&self) -> String {
        let mut words = vec!["plait compare".to_owned()];
        for (name, text) in self.arguments() {
            words.push(match Setting::named(name).is_some_and(Setting::is_flag) {
                true => format!("--{name}"),
                false => format!("--{name} {}", quoted(&text)),
            });
        }
        words.join(" ")
    }
}

/// Writes `NAME:key=value,...`, or only the name for an unchanged profile under its own name.
impl fmt::Display for RawPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name.text)?;
        if let [(key, profile)] = self.fields.as_slice()
            && key == "profile"
            && profile.text == self.name.text
        {
            return Ok(());
        }
        for (at, (key, given)) in self.fields.iter().enumerate() {
            f.write_str(if at == 0 { ":" } else { "," })?;
            f.write_str(&written(key, &given.text))?;
        }
        Ok(())
    }
}

fn unknown_setting(name: &str, given: &PlacedText) -> ScenarioError {
    let names = || SETTINGS.iter().map(|setting| setting.name).chain(["path"]);
    let mut error = given.unknown("setting", names());
    name.clone_into(&mut error.given);
    error.nearest = nearest(&name.replace('_', "-"), names()).map(str::to_owned);
    error
}

/// Quotes a word for a POSIX shell: in single quotes if it has a special character.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:=/@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them() {
        assert_eq!(quoted("a:rtt=10ms,loss=1%"), "a:rtt=10ms,loss=1%");
        assert_eq!(quoted("a < b"), "'a < b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn an_argument_replaces_a_file_and_conflicts_with_itself() {
        let mut raw = RawScenario::new();
        let place = Place::File { file: "f".into(), line: 1, column: 1, field: "runs".into() };
        raw.set("runs", PlacedText::new(&place, "5")).unwrap();
        raw.argument("runs", "7").unwrap();
        assert_eq!(raw.value("runs").unwrap().text, "7");
        assert_eq!(raw.argument("runs", "8").unwrap_err().fault, Fault::Conflict);
        raw.argument("schedulers", "minrtt").unwrap();
        let error = raw.argument("schedulers", "ecf").unwrap_err().to_string();
        assert!(error.contains("`ecf`: the setting is given twice"), "{error}");
        assert!(error.contains("allowed: once: all, or a list such as"), "{error}");
        assert_eq!(raw.argument("ruins", "8").unwrap_err().nearest.as_deref(), Some("runs"));
        raw.argument("expect", "a < 1").unwrap();
        raw.argument("expect", "b < 1").unwrap();
    }
}
