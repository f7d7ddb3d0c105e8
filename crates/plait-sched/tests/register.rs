//! Schedulers that a program registers. The list is one for each process, so this file has one test.
#![allow(clippy::unwrap_used, reason = "a test")]

use plait_sched::{About, Entry, Listed, RegisterError, SCHEDULERS, Spec, register, schedulers};

#[test]
fn schedulers_are_added_to_the_list_at_any_time() {
    let copy = |name, aliases| {
        let about = About { name, aliases, ..SCHEDULERS[0].about };
        Entry { about, ..SCHEDULERS[0] }
    };
    let (mine, other) = (copy("mine", &["my-own"]), copy("other", &[]));
    for (entries, error) in [
        (vec![copy("minrtt", &[])], RegisterError::Taken("minrtt")),
        (vec![copy("fresh", &["lrf"])], RegisterError::Taken("lrf")),
        (vec![mine, mine], RegisterError::Taken("mine")),
        (vec![copy("mine", &["mine"])], RegisterError::Taken("mine")),
        (vec![copy("all", &[])], RegisterError::Taken("all")),
        (vec![mine, copy("a b", &[])], RegisterError::Name("a b")),
    ] {
        assert_eq!(register(&entries), Err(error));
    }
    assert_eq!(register(&[mine, other]), Ok(()));
    let names: Vec<&str> = schedulers().iter().map(|entry| entry.about.name).collect();
    let built_in = SCHEDULERS.iter().map(|entry| entry.about.name);
    assert_eq!(names, built_in.chain(["mine", "other"]).collect::<Vec<_>>());
    assert!(Entry::names().any(|name| name == "my-own"));
    assert_eq!(Spec::parse("my-own+rp").unwrap().to_string(), "mine+rp");
    let unknown = Spec::parse("thrid").unwrap_err();
    assert!(unknown.allowed().ends_with(&["mine", "my-own", "other"]));
    // A name that was read stays, and a later one is added.
    let before = Spec::parse("mine").unwrap();
    assert_eq!(register(&[copy("other", &[])]), Err(RegisterError::Taken("other")));
    assert_eq!(register(&[copy("third", &[])]), Ok(()));
    assert_eq!(Spec::parse("mine"), Ok(before));
    assert_eq!(schedulers().len(), names.len() + 1);
    assert_eq!(Spec::parse("third").unwrap().to_string(), "third");
}
