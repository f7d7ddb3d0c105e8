//! A citation resolves: the RFC or the paper is in the list of sources, and the file is in the tree.

use crate::prose::{Paragraph, Word};
use std::collections::BTreeSet;
use std::path::Path;

/// The page with every RFC and paper that the repository cites.
pub(crate) const SOURCES: &str = "docs/sources.md";

/// First directories of paths that comments and pages cite.
const DIRECTORIES: [&str; 8] =
    ["benches/", "crates/", "docs/", "examples/", "experiments/", "fuzz/", "src/", "tests/"];

/// Returns the numbers of the RFCs that a text cites: "RFC 8684", "RFCs 7323 and 8985".
pub(crate) fn rfcs(words: &[Word]) -> Vec<(usize, u32)> {
    let mut found = Vec::new();
    let mut listing = false;
    for pair in words.windows(2) {
        let [word, next] = pair else { continue };
        listing &= word.bare().parse::<u32>().is_ok() || word.bare() == "and";
        listing |= ["rfc", "rfcs"].contains(&word.bare().as_str());
        let number = next.bare().parse::<u32>().ok();
        // "RFC 8684, 20 of them" is no list: a list has no number below the first RFC that is cited.
        found.extend(number.filter(|it| listing && *it > 99).map(|it| (next.line, it)));
    }
    found
}

/// Returns whether a word may be the name of a conference or journal: "IMC", "CoNEXT", "ToN".
fn is_venue(word: &str) -> bool {
    let letters = word.chars().all(|it| it.is_ascii_alphabetic());
    letters && word.chars().filter(char::is_ascii_uppercase).count() >= 2
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.parse::<u32>().is_ok_and(|it| (1960..2030).contains(&it))
}

/// Returns the papers and drafts that a text cites: by venue and year, by the first author, or by the name of the draft.
pub(crate) fn papers(words: &[Word]) -> Vec<(usize, String)> {
    let bare = |word: &Word| word.text.trim_matches(|it: char| !it.is_alphanumeric()).to_owned();
    let mut found = Vec::new();
    for at in 1..words.len() {
        let (before, word) = (bare(&words[at - 1]), bare(&words[at]));
        let divided = words[at - 1].text.ends_with([',', '.', ';', ':', ')']);
        // A year in brackets is that of the title before it.
        let of_title = words[at].text.starts_with('(');
        if is_year(&word) && is_venue(&before) && !divided && !of_title {
            found.push((words[at].line, format!("{before} {word}")));
        }
        if word.starts_with("draft-") {
            let version = word.trim_end_matches(|it: char| it.is_ascii_digit());
            found.push((words[at].line, version.trim_end_matches('-').to_owned()));
        }
        let next = words.get(at + 1).map(bare);
        if word == "et" && next.as_deref() == Some("al") {
            found.push((words[at].line, before));
        }
    }
    found
}

/// Returns complaints about RFCs and papers that `sources`, the text of the list, does not have.
pub(crate) fn judge_sources(paragraphs: &[Paragraph], sources: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for Paragraph { file, words, .. } in paragraphs {
        let rfcs = rfcs(words).into_iter().map(|(line, number)| (line, format!("RFC {number}")));
        for (line, name) in rfcs.chain(papers(words)) {
            if !has(sources, &name) {
                complaints.push(format!(
                    "{file}:{line}: {name} is not in {SOURCES}: add its title there, or cite a source of that list"
                ));
            }
        }
    }
    complaints
}

/// Returns the RFCs that have a row in `sources`.
fn listed(sources: &str) -> Vec<String> {
    let rows = sources.lines().filter_map(|line| line.strip_prefix("| [RFC "));
    rows.filter_map(|row| Some(format!("RFC {}", row.split_once(']')?.0))).collect()
}

/// Returns complaints about rows of `sources` that none of `texts` cites.
pub(crate) fn judge_rows(sources: &str, texts: &str) -> Vec<String> {
    let unused = listed(sources).into_iter().filter(|name| !has(texts, name));
    unused.map(|name| format!("{SOURCES}: nothing cites {name}: remove its row")).collect()
}

/// Returns whether `text` has the words `name`, and not only as the begin of a longer word.
fn has(text: &str, name: &str) -> bool {
    let next = |at: usize| text[at + name.len()..].chars().next();
    text.match_indices(name).any(|(at, _)| !next(at).is_some_and(char::is_alphanumeric))
}

/// Returns complaints about files that do not exist. `files` are the paths of all files of the tree.
pub(crate) fn judge_files(paragraphs: &[Paragraph], files: &BTreeSet<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for Paragraph { file, raw, .. } in paragraphs {
        for (line, text) in raw {
            for cited in cited(text) {
                if !exists(file, cited, files) {
                    complaints.push(format!(
                        "{file}:{line}: no file `{cited}`: cite a path that exists, from the root of the repository"
                    ));
                }
            }
        }
    }
    complaints
}

/// Returns the files that a line cites: paths below `DIRECTORIES`, and names of sources and pages.
fn cited(text: &str) -> impl Iterator<Item = &str> {
    let ends = |it: char| it.is_whitespace() || "`\"'()[],;|<>=".contains(it);
    let words = text.split(ends).map(|word| {
        let word = word.split(['#', ':']).next().unwrap_or_default();
        word.trim_end_matches(['.', '?', '!'])
    });
    words.filter(|word| {
        let word = word.trim_start_matches("../").trim_start_matches("./");
        let below = DIRECTORIES.iter().any(|it| word.starts_with(it) && word.len() > it.len());
        let source = word.len() > 3 && (word.ends_with(".rs") || word.ends_with(".md"));
        below || (source && !word.starts_with(['*', '/', '$', '.']))
    })
}

/// Returns whether `cited` names a file or a directory, seen from `file`, from a directory above it, or by the end of
/// its path. The part from a place holder on (`NAME`, `*`, `{a,b}`) may be anything.
fn exists(file: &str, cited: &str, files: &BTreeSet<String>) -> bool {
    let holds_place = |part: &str| {
        let name = part.split('.').next().unwrap_or_default();
        part.contains(['*', '{', '$', '\u{2026}'])
            || part.contains("...")
            || (name.len() > 1
                && name.chars().all(|it| it.is_ascii_uppercase())
                && name != "README")
                && !["ARCHITECTURE", "CHANGELOG", "CONTRIBUTING"].contains(&name)
    };
    let cited = cited.trim_end_matches('/').trim_start_matches("../").trim_start_matches("./");
    let known: Vec<&str> = cited.split('/').take_while(|part| !holds_place(part)).collect();
    let known = known.join("/");
    if known.is_empty() {
        return true;
    }
    let is = |path: &str| {
        let inside = format!("{path}/");
        files.contains(path)
            || files.range(inside.clone()..).next().is_some_and(|it| it.starts_with(&inside))
    };
    let above = Path::new(file).ancestors().skip(1);
    let end = format!("/{known}");
    above.map(|it| it.join(&known)).any(|it| it.to_str().is_some_and(is))
        || files.iter().any(|it| it.ends_with(&end) || it.contains(&format!("{end}/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose;
    use crate::tree::File;

    fn page(text: &str) -> Vec<Paragraph> {
        prose::of_page(&File { path: "docs/cc/a.md".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn a_source_that_is_not_listed_is_found() {
        let sources = "| [RFC 8684](x) | MPTCP |\n| [RFC 7323](x) | TCP |\n| ECF, CoNEXT 2017 |\n| Huang et al. |\n| draft-a-b |\n";
        let good = "RFC 8684 section 3.1, RFCs 7323 and 8684; ECF (CoNEXT 2017), \"TCP\" (2014); Huang et al.; draft-a-b-04.";
        assert_eq!(judge_sources(&page(good), sources), Vec::<String>::new());
        let bad =
            "RFC 868,\nRFCs 7323, 7322 and 8685.\nECF (CoNEXT 2016), Young et al. and draft-c-01";
        let complaint = |line: usize, name: &str| {
            format!(
                "docs/cc/a.md:{line}: {name} is not in docs/sources.md: add its title there, or cite a source of that list"
            )
        };
        let expected = [
            complaint(1, "RFC 868"),
            complaint(2, "RFC 7322"),
            complaint(2, "RFC 8685"),
            complaint(3, "CoNEXT 2016"),
            complaint(3, "Young"),
            complaint(3, "draft-c"),
        ];
        assert_eq!(judge_sources(&page(bad), sources), expected);
    }

    #[test]
    fn a_source_that_nothing_cites_is_found() {
        let sources = "| [RFC 8684](x) | MPTCP |\n| [RFC 868](x) | time |\n";
        let expected = ["docs/sources.md: nothing cites RFC 868: remove its row"];
        assert_eq!(judge_rows(sources, "RFC 8684 section 3"), expected);
    }

    #[test]
    fn a_file_that_does_not_exist_is_found() {
        let files = [
            "docs/cc/a.md",
            "crates/x/src/lib.rs",
            "crates/x/tests/big/main.rs",
            "crates/x/experiments/a.toml",
        ];
        let files: BTreeSet<String> = files.map(str::to_owned).into();
        let good = "See `crates/x/src/lib.rs:12`, tests/big, (experiments/a.toml) and docs/cc/a.md#title.\n\
                    Also docs/NAME.md, crates/x/tests/*.rs, `lib.rs`, `a.md`, https://a.b/tests/c.rs and /tmp/b.rs.";
        assert_eq!(judge_files(&page(good), &files), Vec::<String>::new());
        let bad = "See crates/x/src/main.rs,\n`tests/small`, docs/gone/NAME.md and `notes.md`.";
        let complaint = |line: usize, name: &str| {
            format!(
                "docs/cc/a.md:{line}: no file `{name}`: cite a path that exists, from the root of the repository"
            )
        };
        let expected = [
            complaint(1, "crates/x/src/main.rs"),
            complaint(2, "tests/small"),
            complaint(2, "docs/gone/NAME.md"),
            complaint(2, "notes.md"),
        ];
        assert_eq!(judge_files(&page(bad), &files), expected);
    }
}
