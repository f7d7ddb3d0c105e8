//! The subject of a commit is `area: what changes`, imperative and short.

use std::path::Path;
use std::process::Command;

/// Most characters of a subject.
const MOST_CHARS: usize = 72;

/// Imperatives that end like another form of a verb or a noun.
const IMPERATIVES: [&str; 16] = [
    "bring", "embed", "exceed", "feed", "focus", "heed", "need", "proceed", "seed", "shed",
    "speed", "spring", "string", "succeed", "swing", "wing",
];

/// Returns the commits after `start` that HEAD has, as "ID SUBJECT", or the reason why they are unknown.
pub(crate) fn since(root: &Path, start: &str) -> Result<Vec<String>, String> {
    let range = format!("{start}..HEAD");
    let output = Command::new("git")
        .args(["log", "--no-merges", "--format=%h %s", &range])
        .current_dir(root)
        .output()
        .map_err(|err| format!("git does not run: {err}"))?;
    if !output.status.success() {
        // An archive has no history, and a shallow clone only a part of it.
        let problem = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git log {range}: {}", problem.lines().next().unwrap_or_default()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Returns a complaint about a commit, given as "ID SUBJECT".
pub(crate) fn judge(commit: &str) -> Option<String> {
    let (id, subject) = commit.split_once(' ').unwrap_or((commit, ""));
    let problem = problem(subject)?;
    Some(format!("commit {id}: `{subject}`: {problem}"))
}

fn problem(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > MOST_CHARS {
        return Some(format!(
            "{length} characters, and at most {MOST_CHARS} are allowed: move the reason to the body"
        ));
    }
    let Some((area, change)) = subject.split_once(": ").filter(|(area, _)| is_area(area)) else {
        return Some(
            "no area: write `area: what changes`, such as `core: time out idle subflows`"
                .to_owned(),
        );
    };
    if subject.contains(';') {
        return Some("a `;` joins two changes: make a commit of each".to_owned());
    }
    if subject.ends_with('.') {
        return Some("it ends with a period: remove it".to_owned());
    }
    let verb = change.split([' ', ',']).next().unwrap_or_default();
    if !is_imperative(verb) {
        return Some(format!(
            "`{verb}` is no imperative: write `{area}: add ...`, not `adds`, `added` or `adding`"
        ));
    }
    None
}

/// Returns whether a text is one area or several: `core`, `docs, lab`.
fn is_area(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|it: char| it.is_ascii_lowercase())
            && name
                .chars()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || "-_/".contains(it))
    };
    text.split(", ").all(is_name)
}

fn is_imperative(verb: &str) -> bool {
    let other_form = verb.ends_with("ed")
        || verb.ends_with("ing")
        || (verb.ends_with('s') && !verb.ends_with("ss"));
    verb.starts_with(|it: char| it.is_ascii_lowercase())
        && (!other_form || IMPERATIVES.contains(&verb))
}

#[test]
fn a_subject_off_the_rule_is_found() {
    for good in [
        "core: time out idle subflows",
        "docs, lab: pass on the seed: it counts",
        "cc: bring, and add",
    ] {
        assert_eq!(judge(&format!("1234abc {good}")), None);
    }
    let long = format!("core: {}", "a".repeat(67));
    for (bad, problem) in [
        (long.as_str(), "73 characters"),
        ("time out idle subflows", "no area"),
        ("Core: time out idle subflows", "no area"),
        ("core: time out; count", "joins two changes"),
        ("core: time out.", "ends with a period"),
        ("core: Time out", "`Time` is no imperative"),
        ("core: times out", "`times` is no imperative"),
        ("core: timed out", "`timed` is no imperative"),
        ("core: timing out", "write `core: add ...`"),
    ] {
        let found = judge(&format!("1234abc {bad}")).unwrap();
        assert!(found.starts_with("commit 1234abc: ") && found.contains(problem), "{found}");
    }
}

#[test]
fn an_unknown_start_is_a_reason_to_skip() {
    let none = since(&crate::tree::root(), "0000000000000000000000000000000000000000");
    assert!(none.is_err(), "{none:?}");
}
