//! Schedulers that a program adds to the list.

use crate::{Entry, SCHEDULERS};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use once_cell::race::OnceRef;
use thiserror::Error;

/// Words with their own meaning in a list of schedulers: every scheduler, and plain TCP on a path.
const RESERVED: [&str; 2] = ["all", "tcp"];

/// The list, and the longer list that has taken its place. Once read, a list does not change.
struct Stage {
    entries: &'static [Entry],
    /// The schedulers that `all` does not stand for.
    apart: &'static [Apart],
    next: OnceRef<'static, Stage>,
}

/// A scheduler that `all` does not stand for.
#[derive(Clone, Copy)]
struct Apart {
    name: &'static str,
    /// The class, `module:Class`, if it is one.
    class: Option<&'static str>,
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
    entries.iter().filter(|entry| !apart.iter().any(|it| it.name == entry.about.name))
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
    add(entries, None)
}

/// Adds schedulers as [`register`] does, but `all` does not stand for them, so later comparisons stay as they are. One with
/// the name of an earlier call of this function takes its place.
///
/// # Errors
/// Returns a [`RegisterError`] if a name is not valid or taken. The list is then unchanged.
pub fn register_apart(entries: &[Entry]) -> Result<(), RegisterError> {
    add(entries, Some(None))
}

/// Adds a scheduler as [`register_apart`] does. It is the class `class` of another language, `module:Class`, and
/// [`Spec::parse`](crate::Spec::parse) takes this text as its name.
///
/// # Errors
/// Returns a [`RegisterError`] if a name is not valid or taken. The list is then unchanged.
pub fn register_class(entry: Entry, class: &'static str) -> Result<(), RegisterError> {
    add(&[entry], Some(Some(class)))
}

/// Returns the class, `module:Class`, that the scheduler with this canonical name is.
pub(crate) fn class_named(name: &str) -> Option<&'static str> {
    newest().apart.iter().find(|it| it.name == name)?.class
}

/// Returns the newest scheduler that a text names by its class, and the rest of the text: its parameters.
pub(crate) fn of_class(text: &str) -> Option<(&'static str, &str)> {
    newest().apart.iter().rev().find_map(|it| {
        let rest = text.strip_prefix(it.class?)?;
        (rest.is_empty() || rest.starts_with(':')).then_some((it.name, rest))
    })
}

/// Finds a class that is not registered, `module:Class`, and registers it. Returns the name of its scheduler, or why there is
/// none.
pub type FindClass = fn(&str) -> Result<String, String>;

static FIND_CLASS: OnceRef<'static, FindClass> = OnceRef::new();

/// Takes the function that finds classes. Only the first call has an effect.
pub fn find_classes_with(find: &'static FindClass) {
    let _ = FIND_CLASS.set(find);
}

/// Finds a class that is not registered; `None` if the program knows no classes.
pub(crate) fn find_class(text: &str) -> Option<Result<String, String>> {
    FIND_CLASS.get().map(|find| find(text))
}

/// Adds entries. `apart` has their class, if `all` does not stand for them.
fn add(entries: &[Entry], apart: Option<Option<&'static str>>) -> Result<(), RegisterError> {
    let is_new = |name: &str| entries.iter().any(|entry| entry.about.name == name);
    loop {
        let stage = newest();
        let was_apart = |name: &str| stage.apart.iter().any(|it| it.name == name);
        let replaced = |name: &str| apart.is_some() && was_apart(name) && is_new(name);
        let kept = stage.entries.iter().filter(|entry| !replaced(entry.about.name));
        let mut taken: Vec<&str> = kept.clone().flat_map(names_of).chain(RESERVED).collect();
        for name in entries.iter().flat_map(names_of) {
            check(&taken, name)?;
            taken.push(name);
        }
        let all: Vec<Entry> = kept.chain(entries).copied().collect();
        let kept = stage.apart.iter().filter(|it| !replaced(it.name)).copied();
        let class = apart.into_iter().flat_map(|class| {
            entries.iter().map(move |entry| Apart { name: entry.about.name, class })
        });
        let set_apart: Vec<Apart> = kept.chain(class).collect();
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
    use alloc::string::ToString;

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
    fn a_class_is_named_by_its_own_text_too() {
        let minrtt = SCHEDULERS[0];
        let entry =
            Entry { about: About { name: "spare", aliases: &[], ..minrtt.about }, ..minrtt };
        register_class(entry, "mine:Spare").unwrap();
        let spec = crate::Spec::parse("mine:Spare+copy").unwrap();
        assert_eq!(spec, crate::Spec::parse("spare+copy").unwrap());
        assert_eq!(
            (spec.to_string(), spec.written()),
            ("spare+copy".into(), "mine:Spare+copy".into())
        );
        assert_eq!(spec.class(), Some("mine:Spare"));
        // A later class of the name takes its place.
        register_class(entry, "spare:Spare").unwrap();
        assert_eq!(crate::Spec::parse("spare:Spare").unwrap().written(), "spare:Spare");
        assert!(crate::Spec::parse("mine:Spare").is_err());
        assert_eq!(crate::Spec::parse("minrtt").unwrap().written(), "minrtt");
        // A class that has changed its name: the text is the newest one.
        let about = About { name: "spare2", ..entry.about };
        register_class(Entry { about, ..entry }, "spare:Spare").unwrap();
        assert_eq!(crate::Spec::parse("spare:Spare").unwrap().to_string(), "spare2");
        let older = crate::Spec::parse("spare").unwrap();
        assert_eq!((older.written(), older.class()), ("spare".into(), Some("spare:Spare")));
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
