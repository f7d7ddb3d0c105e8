//! The keys of a path. Flags and their help, scenario files, sweeps, the schema of experiments and
//! the names in errors all read [`PATH_KEYS`]. To add a key, add an entry to a table below this
//! folder and use the value.

mod impairments;
mod interface;
mod key;
mod rates;

use super::path::Path;
use super::tables::{count, joined};
pub use interface::HIGHEST_COST;
pub use key::PathKey;

const TABLES: [&[PathKey]; 3] = [rates::PATH_KEYS, impairments::PATH_KEYS, interface::PATH_KEYS];
const ALL: [PathKey; count(&TABLES)] = joined(key::BLANK, &TABLES);

/// Every key, in the order in which a path is written and read.
pub const PATH_KEYS: &[PathKey] = &ALL;

impl PathKey {
    /// Returns the key of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static PathKey> {
        PATH_KEYS.iter().find(|key| key.name == name)
    }

    /// Returns the names of all keys.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        PATH_KEYS.iter().map(|key| key.name)
    }
}

impl Path {
    /// Returns the fields that differ from the profile, in the order of the documentation. Reading
    /// them again gives the same path.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let base = match self.profile {
            Some(profile) => Path::from_profile(&self.name, profile),
            None => Path::blank(&self.name),
        };
        let texts = |key: &'static PathKey| {
            key.texts(self, &base).into_iter().map(move |text| (key.name, text))
        };
        PATH_KEYS.iter().flat_map(texts).collect()
    }

    /// Returns the fields as written in a path.
    pub(super) fn written(&self) -> Vec<String> {
        self.fields().iter().map(|(key, text)| written(key, text)).collect()
    }
}

/// Writes a field of a path: `rtt=25ms`, `backup`.
pub(super) fn written(key: &str, text: &str) -> String {
    match text {
        "on" if PathKey::named(key).is_some_and(PathKey::is_switch) => key.to_owned(),
        _ => format!("{key}={text}"),
    }
}
