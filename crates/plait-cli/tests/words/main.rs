//! Words stay plain: comments, pages, help texts and the subjects of commits keep the rules of CONTRIBUTING.md.
//! Citations and links lead to something that a reader has.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod citations;
mod comments;
#[path = "../help/mod.rs"]
mod help;
mod links;
mod prose;
mod rates;
mod sentences;
mod subjects;
mod tree;

use prose::Paragraph;
use std::io::Write as _;
use std::sync::LazyLock;

/// Subjects of later commits keep the rule. The history before stays as it is.
const FIRST_COMMIT: &str = "c3923a3";

/// A record of the past, which may name files that are gone.
const CHANGELOG: &str = "CHANGELOG.md";

static COMMENTS: LazyLock<Vec<Paragraph>> =
    LazyLock::new(|| tree::files("rs").iter().flat_map(prose::of_rust).collect());

static PAGES: LazyLock<Vec<Paragraph>> =
    LazyLock::new(|| tree::files("md").iter().flat_map(prose::of_page).collect());

static HELP: LazyLock<Vec<Paragraph>> = LazyLock::new(|| {
    let mut found = Vec::new();
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(command) = commands.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let text = help::help(&words);
        found.extend(prose::of_help(&format!("plait {} --help", words.join(" ")), &text));
        let inner = help::commands_of(&text).into_iter();
        commands.extend(inner.map(|name| [command.clone(), vec![name]].concat()));
    }
    found
});

/// Fails with the complaints, one a line.
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn no_sentence_of_a_comment_is_too_long() {
    none(&sentences::judge(&COMMENTS));
}

#[test]
fn no_sentence_of_a_page_is_too_long() {
    none(&sentences::judge(&PAGES));
}

#[test]
fn no_sentence_of_a_help_is_too_long() {
    assert!(HELP.len() > 300, "only {} paragraphs were found", HELP.len());
    none(&sentences::judge(&HELP));
}

#[test]
fn comments_keep_the_rates_of_words() {
    let mut names: Vec<&str> = COMMENTS.iter().map(|it| crate_of(&it.file)).collect();
    names.dedup();
    let mut complaints = rates::judge("comments", &COMMENTS.iter().collect::<Vec<_>>());
    for name in names {
        let own: Vec<&Paragraph> =
            COMMENTS.iter().filter(|it| crate_of(&it.file) == name).collect();
        complaints.extend(rates::judge(name, &own));
    }
    none(&complaints);
}

/// Returns the first two names of a path: `crates/NAME`.
fn crate_of(path: &str) -> &str {
    path.match_indices('/').nth(1).map_or(path, |(at, _)| &path[..at])
}

#[test]
fn pages_keep_the_rates_of_words() {
    let pages: Vec<&Paragraph> = PAGES.iter().filter(|it| it.file != CHANGELOG).collect();
    none(&rates::judge("pages", &pages));
}

#[test]
fn rfcs_and_papers_are_in_the_list_of_sources() {
    let sources = std::fs::read_to_string(tree::root().join(citations::SOURCES)).unwrap();
    let mut complaints = citations::judge_sources(&COMMENTS, &sources);
    complaints.extend(citations::judge_sources(&PAGES, &sources));
    complaints.extend(citations::judge_sources(&HELP, &sources));
    // Help texts and tables cite as well, and a citation may be on two lines.
    let files = ["rs", "toml"].into_iter().flat_map(tree::files).map(|it| it.text);
    let prose = COMMENTS.iter().chain(&*PAGES).filter(|it| it.file != citations::SOURCES);
    let texts: Vec<String> = prose.map(Paragraph::text).chain(files).collect();
    complaints.extend(citations::judge_rows(&sources, &texts.join("\n")));
    none(&complaints);
}

#[test]
fn files_that_are_cited_exist() {
    let files = tree::paths();
    let mut complaints = citations::judge_files(&COMMENTS, &files);
    complaints.extend(citations::judge_files(&PAGES, &files));
    let tables: Vec<Paragraph> = tree::files("md").iter().map(prose::tables_of_page).collect();
    complaints.extend(citations::judge_files(&tables, &files));
    complaints.retain(|it| !it.starts_with(CHANGELOG));
    none(&complaints);
}

#[test]
fn links_of_pages_lead_to_a_file_and_a_heading() {
    none(&links::judge(&tree::files("md"), &tree::paths()));
}

/// Returns the places of lines that a merge left in a text: both versions of a passage, and what divides them.
fn marks_of_a_merge(file: &str, text: &str) -> Vec<String> {
    let begins = |line: &str| line.starts_with(&"<".repeat(7)) || line.starts_with(&">".repeat(7));
    let lines = text.lines().enumerate().filter(|(_, line)| begins(line));
    lines.map(|(at, _)| format!("{file}:{}: a merge has left this line", at + 1)).collect()
}

#[test]
fn no_file_has_the_marks_of_a_merge() {
    let mut found = Vec::new();
    for path in tree::paths() {
        // Some files are no text.
        if let Ok(text) = std::fs::read_to_string(tree::root().join(&path)) {
            found.extend(marks_of_a_merge(&path, &text));
        }
    }
    none(&found);
}

#[test]
fn the_marks_of_a_merge_are_found() {
    let text =
        format!("a\n{} one\nb\n{}\nc\n{} two\n", "<".repeat(7), "=".repeat(7), ">".repeat(7));
    assert_eq!(marks_of_a_merge("x", &text).len(), 2);
    assert_eq!(marks_of_a_merge("x", "a <<<<<<< b\n======\n"), [""; 0]);
}

/// The compiler refuses public items without a comment, in every crate.
#[test]
fn public_items_have_a_summary() {
    let read = |path: &str| std::fs::read_to_string(tree::root().join(path)).unwrap();
    assert!(
        read("Cargo.toml").contains("\nmissing_docs = \"warn\"\n"),
        "Cargo.toml: `missing_docs` is gone"
    );
    let manifests = tree::paths()
        .into_iter()
        .filter(|it| it.starts_with("crates/") && it.ends_with("/Cargo.toml"));
    for manifest in manifests {
        // plait-py is a workspace of its own; `floors` compares its lints.
        let own = manifest == "crates/plait-py/Cargo.toml";
        let lints =
            if own { "\nmissing_docs = \"warn\"\n" } else { "\n[lints]\nworkspace = true\n" };
        let has = read(&manifest).contains(lints);
        assert!(
            has,
            "{manifest}: add `[lints]` with `workspace = true`, so that `missing_docs` counts here"
        );
    }
    let files = tree::files("rs");
    none(
        &files
            .iter()
            .flat_map(|it| comments::without_summary(&it.path, &it.text))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn subjects_of_commits_keep_the_rule() {
    match subjects::since(&tree::root(), FIRST_COMMIT) {
        Ok(commits) => {
            let complaints = commits.iter().filter_map(|it| subjects::judge(it));
            none(&complaints.collect::<Vec<_>>());
        }
        Err(why) => {
            writeln!(std::io::stdout(), "\nskipped: subjects of commits: {why}").unwrap();
        }
    }
}
