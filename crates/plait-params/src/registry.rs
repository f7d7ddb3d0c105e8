//! Registries: lists of named entries.

use crate::Param;

/// Description of an entry.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The canonical name.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// The idea in one line.
    pub idea: &'static str,
    /// The page: the idea, the rule as a formula, strengths and weaknesses.
    pub page: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Names and meanings of the values in a saved state.
    pub state: &'static [(&'static str, &'static str)],
}

/// An entry of a registry.
pub trait Listed: Sized + 'static {
    /// The word for an entry in an error: `scheduler`.
    const WHAT: &'static str;

    /// Returns every entry, in the order of help and documentation.
    fn list() -> &'static [Self];

    /// Returns the description of this entry.
    fn about(&self) -> About;

    /// Returns the entry with this name or alias.
    #[must_use]
    fn find(name: &str) -> Option<&'static Self> {
        Self::list().iter().find(|entry| {
            let about = entry.about();
            about.name == name || about.aliases.contains(&name)
        })
    }

    /// Returns every name and alias, in the order of the list.
    fn names() -> impl Iterator<Item = &'static str> {
        Self::list()
            .iter()
            .map(Self::about)
            .flat_map(|about| core::iter::once(about.name).chain(about.aliases.iter().copied()))
    }
}
