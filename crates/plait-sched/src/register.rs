//! Schedulers that a program adds to the list.

use crate::{Entry, SCHEDULERS};
use alloc::boxed::Box;
use alloc::vec::Vec;
use once_cell::race::OnceRef;
use thiserror::Error;

/// Words with their own meaning in a list of schedulers: every scheduler, and plain TCP on a path.
const RESERVED: [&str; 2] = ["all", "tcp"];

/// The list, and the longer list that has taken its place. Once read, a list does not change.
struct Stage {
    entries: &'static [Entry],
    next: OnceRef<'static, Stage>,
}

/// The list of the built-in schedulers.
static BUILT_IN: Stage = Stage { entries: SCHEDULERS, next: OnceRef::new() };

/// The reason why a scheduler cannot be registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum RegisterError {
    /// The name or alias has a character that its text form does not allow.
    #[error(
        "`{0}` cannot name a scheduler: a name starts with a lower-case letter and has only \
         lower-case letters, digits, `-` and `_`"
    )]
    Name(&'static str),
    /// Another scheduler has the name or alias, or it is a reserved word.
    #[error("the name `{0}` is taken: choose another one for this scheduler")]
    Taken(&'static str),
}

/// Returns all schedulers: [`SCHEDULERS`], then the registered ones.
#[must_use]
pub fn schedulers() -> &'static [Entry] {
    newest().entries
}

fn newest() -> &'static Stage {
    let mut stage = &BUILT_IN;
    while let Some(next) = stage.next.get() {
        stage = next;
    }
    stage
}

/// Adds schedulers to the end of the list, so that their names can be used wherever a built-in
/// scheduler's name can. A call keeps the memory of the longer list for the rest of the program, so a program
/// should register few times.
///
/// # Errors
/// Returns a [`RegisterError`] if a name is not valid or taken. The list is then unchanged.
///
/// # Examples
/// ```
/// use plait_sched::{About, Entry, Listed, Spec};
///
/// // The built-in `minrtt` under another name.
/// let minrtt = *plait_sched::SCHEDULERS.first().unwrap();
/// let about = About { name: "mine", aliases: &[], ..minrtt.about };
/// plait_sched::register(&[Entry { about, ..minrtt }])?;
/// assert_eq!(Spec::parse("mine+copy").unwrap().to_string(), "mine+copy");
/// assert!(Entry::names().any(|name| name == "mine"));
/// # Ok::<(), plait_sched::RegisterError>(())
/// ```
pub fn register(entries: &[Entry]) -> Result<(), RegisterError> {
    loop {
        let stage = newest();
        let mut taken: Vec<&str> =
            stage.entries.iter().flat_map(names_of).chain(RESERVED).collect();
        for name in entries.iter().flat_map(names_of) {
            check(&taken, name)?;
            taken.push(name);
        }
        let all: &'static [Entry] = Vec::leak([stage.entries, entries].concat());
        let next = Box::leak(Box::new(Stage { entries: all, next: OnceRef::new() }));
        // If another thread was first, the names are checked against its list.
        if stage.next.set(next).is_ok() {
            return Ok(());
        }
    }
}

fn names_of(entry: &Entry) -> impl Iterator<Item = &'static str> {
    core::iter::once(entry.about.name).chain(entry.about.aliases.iter().copied())
}

/// Checks that `name` is valid and not one of `taken`.
fn check(taken: &[&str], name: &'static str) -> Result<(), RegisterError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(allowed) {
        return Err(RegisterError::Name(name));
    }
    if taken.contains(&name) { Err(RegisterError::Taken(name)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_be_valid_and_free() {
        for name in SCHEDULERS.iter().flat_map(names_of) {
            assert_eq!(check(&[], name), Ok(()));
            assert_eq!(check(&["x", name], name), Err(RegisterError::Taken(name)));
        }
        for name in ["", "Mine", "my scheduler", "a,b", "a:b", "a+b", "a.b", "1st", "-a"] {
            assert_eq!(check(&[], name), Err(RegisterError::Name(name)));
        }
        assert_eq!(check(&["own"], "my-own_2"), Ok(()));
    }
}
