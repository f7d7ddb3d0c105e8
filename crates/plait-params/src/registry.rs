//! What a registry says of its entries.

use crate::Param;

/// What every list says of an entry.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The canonical name.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// The idea in one line.
    pub idea: &'static str,
    /// The page: idea, rule as a formula, what it is good and bad at.
    pub page: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Names and meanings of the values of a saved state.
    pub state: &'static [(&'static str, &'static str)],
}

/// An entry of a registry.
pub trait Listed: Sized + 'static {
    /// What an entry is called in an error: `scheduler`.
    const WHAT: &'static str;

    /// Every entry, in the order of help and documentation.
    fn list() -> &'static [Self];

    /// What the list says of this entry.
    fn about(&self) -> About;

    /// The entry of that name or alias.
    #[must_use]
    fn find(name: &str) -> Option<&'static Self> {
        Self::list().iter().find(|entry| {
            let about = entry.about();
            about.name == name || about.aliases.contains(&name)
        })
    }

    /// Every name and alias, in the order of the list.
    fn names() -> impl Iterator<Item = &'static str> {
        Self::list()
            .iter()
            .map(Self::about)
            .flat_map(|about| core::iter::once(about.name).chain(about.aliases.iter().copied()))
    }
}
