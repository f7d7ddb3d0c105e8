//! The list of misses: claims that are known not to hold, with the reasons.

use super::embedded::refusal;
use super::{Experiment, Proven};
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::file::{Source, in_order};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::DeValue;

const MISSES: &str = include_str!("../../experiments/misses.toml");
/// The form of an entry, for error messages.
const FORM: &str = "[ton-h8], and below it why = \"the reason why it does not hold\"";

/// Claims that are known not to hold, with the reasons.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Misses(pub BTreeMap<String, Miss>);

/// A claim that is known not to hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Miss {
    /// The reason.
    pub why: String,
    /// Whether the claim fails in quick runs only. Full runs must find that it holds.
    pub quick: bool,
    /// Position of the entry.
    pub place: Place,
}

impl Misses {
    /// Returns the misses of the project.
    ///
    /// # Errors
    /// If the file is malformed.
    pub fn embedded() -> Result<Misses, ScenarioError> {
        Misses::from_toml("crates/plait-lab/experiments/misses.toml", MISSES)
    }

    /// Returns the misses in `DIR/misses.toml`. Without a directory or such a file, returns the misses of the
    /// project, because the directory may have some of its experiments.
    ///
    /// # Errors
    /// If the file cannot be read, is malformed, or lists a claim that none of `experiments` makes.
    pub fn beside(
        directory: Option<&Path>,
        experiments: &[Experiment],
        proven: &Proven,
    ) -> Result<Misses, ScenarioError> {
        let own = directory.map(|it| it.join("misses.toml")).filter(|it| it.exists());
        let Some(file) = own else { return Misses::embedded() };
        let text = plait_app::file::settings(&file).map_err(|error| refusal(&file, &error))?;
        let misses = Misses::from_toml(&file.display().to_string(), &text)?;
        misses.check(experiments, proven)?;
        Ok(misses)
    }

    /// Reads `[CLAIM] why = "..."` tables.
    ///
    /// # Errors
    /// If the text is not TOML, has other keys, or gives no reason.
    pub fn from_toml(name: &str, text: &str) -> Result<Misses, ScenarioError> {
        let source = Source::new(name, text);
        let document = source.parse().map_err(|error| error.allow(FORM))?;
        let mut list = BTreeMap::new();
        for (key, value) in in_order(document.get_ref()) {
            let id = key.get_ref().to_string();
            let place = source.place(&key.span(), "");
            let (why, quick) = entry(&source, &id, &place, value)?;
            list.insert(id, Miss { why, quick, place });
        }
        Ok(Misses(list))
    }

    /// Returns the misses of a quick run or of a full one.
    #[must_use]
    pub fn of_run(mut self, quick: bool) -> Misses {
        self.0.retain(|_, miss| quick || !miss.quick);
        self
    }

    /// Checks that every entry is a claim of these experiments.
    ///
    /// # Errors
    /// The first entry that is not a claim of these experiments, because it could never hold again.
    fn check(&self, experiments: &[Experiment], proven: &Proven) -> Result<(), ScenarioError> {
        let claims = || experiments.iter().flat_map(|it| &it.claims).map(|it| it.id.as_str());
        let stale = self.0.iter().filter(|(id, _)| !claims().any(|known| known == *id));
        let line = |place: &Place| match place {
            Place::File { line, .. } => *line,
            Place::Argument(_) => 0,
        };
        let Some((id, miss)) = stale.min_by_key(|(_, miss)| line(&miss.place)) else {
            return Ok(());
        };
        let mut error = ScenarioError::unknown(&miss.place, "claim", id, claims());
        if let Some(test) = proven.0.get(id) {
            error.problem = format!(
                "no experiment there judges this claim: the test {} of {} proves it",
                test.test, test.file
            );
            error.nearest = None;
        }
        Err(error.allow("a claim that an experiment there judges, or no such entry"))
    }
}

/// Returns the reason of an entry in one line, and whether the entry is for quick runs only.
fn entry(
    source: &Source<'_>,
    id: &str,
    place: &Place,
    entry: &Spanned<DeValue<'_>>,
) -> Result<(String, bool), ScenarioError> {
    let DeValue::Table(table) = entry.get_ref() else {
        return Err(source.mistyped(entry, id, FORM));
    };
    let (mut why, mut quick) = (None, false);
    for (key, value) in in_order(table) {
        let field = format!("{id}.{}", key.get_ref());
        if key.get_ref() == "quick" {
            let DeValue::Boolean(is) = value.get_ref() else {
                return Err(source.mistyped(value, &field, "quick = true"));
            };
            quick = *is;
            continue;
        }
        if key.get_ref() != "why" {
            let place = source.place(&key.span(), &field);
            let keys = ["why", "quick"];
            let error = ScenarioError::unknown(&place, "key of a miss", key.get_ref(), keys);
            return Err(error.allow(FORM));
        }
        let DeValue::String(text) = value.get_ref() else {
            return Err(source.mistyped(value, &field, FORM));
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            let place = source.place(&value.span(), &field);
            let problem = "a miss has a reason, and this one is empty";
            return Err(ScenarioError::new(&place, Fault::Missing, "", problem).allow(FORM));
        }
        why = Some(text);
    }
    let why = why.ok_or_else(|| {
        ScenarioError::new(place, Fault::Missing, id, "the miss has no `why`").allow(FORM)
    })?;
    Ok((why, quick))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_miss_has_its_place_and_what_an_entry_looks_like() {
        for (text, start) in [
            ("[a]\nwhy = \"x\"\n[b]\nwhat = \"y\"\n", "m.toml:4:1: b.what: `what`: unknown key"),
            ("ton-h8 = \"abc\"\n", "m.toml:1:10: ton-h8: this string does not fit"),
            ("[a]\nwhy = 5\n", "m.toml:2:7: a.why: this integer does not fit"),
            ("[a]\nwhy = \" \\n\"\n", "m.toml:2:7: a.why: a miss has a reason"),
            ("\n[a]\n", "m.toml:2:2: `a`: the miss has no `why`"),
            ("[a\n", "m.toml:1:"),
        ] {
            let error = Misses::from_toml("m.toml", text).unwrap_err().to_string();
            assert!(error.starts_with(start), "{text}: {error}");
            assert!(error.contains("allowed: [ton-h8], and below it why ="), "{text}: {error}");
        }
    }

    #[test]
    fn a_miss_of_quick_runs_is_none_of_full_runs() {
        let text = "[a]\nwhy = \"x\"\n[b]\nwhy = \"y\"\nquick = true\n";
        let misses = Misses::from_toml("m.toml", text).unwrap();
        assert_eq!(misses.clone().of_run(true), misses);
        let full = misses.of_run(false);
        assert_eq!(full.0.keys().collect::<Vec<_>>(), ["a"]);
        let error = Misses::from_toml("m.toml", "[a]\nquick = 1\n").unwrap_err().to_string();
        assert!(error.starts_with("m.toml:2:9: a.quick: this integer does not fit"), "{error}");
    }

    #[test]
    fn the_projects_list_is_one_of_claims_that_its_experiments_judge() {
        let (all, proven) = (crate::experiment::experiments(None).unwrap(), Proven::embedded());
        Misses::embedded().unwrap().check(&all, &proven.unwrap()).unwrap();
    }
}
