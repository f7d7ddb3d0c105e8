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
    /// Names of the schedulers that `all` does not stand for.
    apart: &'static [&'static str],
    next: OnceRef<'static, Stage>,
}

/// The list of the built-in schedulers.
static BUILT_IN: Stage = Stage { entries: SCHEDULERS, apart: &[], next: OnceRef::new() };

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

/// Returns the schedulers that the word `all` stands for: those of [`schedulers`] without those of [`register_apart`].
pub fn all() -> impl Iterator<Item = &'static Entry> {
    let Stage { entries, apart, .. } = newest();
    entries.iter().filter(|entry| !apart.contains(&entry.about.name))
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
    add(entries, false)
}

/// Adds schedulers as [`register`] does, but `all` does not stand for them, so later comparisons stay as they are. One with
/// the name of an earlier call of this function takes its place.
///
/// # Errors
/// Returns a [`RegisterError`] if a name is not valid or taken. The list is then unchanged.
pub fn register_apart(entries: &[Entry]) -> Result<(), RegisterError> {
    add(entries, true)
}

fn add(entries: &[Entry], apart: bool) -> Result<(), RegisterError> {
    let new: Vec<&'static str> = entries.iter().map(|entry| entry.about.name).collect();
    loop {
        let stage = newest();
        let replaced = |name: &str| apart && stage.apart.contains(&name) && new.contains(&name);
        let kept = stage.entries.iter().filter(|entry| !replaced(entry.about.name));
        let mut taken: Vec<&str> = kept.clone().flat_map(names_of).chain(RESERVED).collect();
        for name in entries.iter().flat_map(names_of) {
            check(&taken, name)?;
            taken.push(name);
        }
        let all: Vec<Entry> = kept.chain(entries).copied().collect();
        let mut set_apart: Vec<&'static str> = stage.apart.to_vec();
        set_apart.extend(new.iter().filter(|name| apart && !stage.apart.contains(name)));
        let (entries, apart) = (Vec::leak(all), Vec::leak(set_apart));
        let next = Box::leak(Box::new(Stage { entries, apart, next: OnceRef::new() }));
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
    use crate::About;

    #[test]
    fn schedulers_apart_are_known_and_not_part_of_all() {
        let made = |idea| {
            let minrtt = SCHEDULERS[0];
            Entry { about: About { name: "apart", aliases: &[], idea, ..minrtt.about }, ..minrtt }
        };
        let idea = || {
            let mut named = schedulers().iter().filter(|entry| entry.about.name == "apart");
            (named.next().map(|entry| entry.about.idea), named.count())
        };
        register_apart(&[made("first")]).unwrap();
        assert_eq!(idea(), (Some("first"), 0));
        register_apart(&[made("second")]).unwrap();
        assert_eq!(idea(), (Some("second"), 0));
        assert!(all().all(|entry| entry.about.name != "apart"));
        assert_eq!(register(&[made("third")]), Err(RegisterError::Taken("apart")));
        assert_eq!(register_apart(&[SCHEDULERS[0]]), Err(RegisterError::Taken("minrtt")));
    }

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
