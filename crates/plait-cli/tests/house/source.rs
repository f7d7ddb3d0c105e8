//! Reads the sources of the workspace without test-only code.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A crate of the workspace.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) files: Vec<SourceFile>,
}

/// A file below `src/` that is compiled outside of tests.
pub(crate) struct SourceFile {
    /// Path from the root of the repository, with `/` between names.
    pub(crate) path: String,
    /// Module of the file: names from the root of the crate, which is empty.
    pub(crate) module: Vec<String>,
    /// Lines before the first module of tests.
    pub(crate) lines: usize,
    pub(crate) tokens: TokenStream,
    pub(crate) syntax: syn::File,
}

impl SourceFile {
    /// Parses `text`, the file at `path` (`crates/NAME/src/...`).
    pub(crate) fn parse(path: &str, text: &str) -> SourceFile {
        read_file(path, text).0
    }
}

/// All crates of the workspace, in the order of their names.
pub(crate) fn workspace() -> Vec<Crate> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut dirs: Vec<PathBuf> =
        fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()).collect();
    dirs.retain(|dir| dir.join("src").is_dir());
    dirs.sort();
    dirs.iter().map(|dir| read_crate(dir)).collect()
}

fn read_crate(dir: &Path) -> Crate {
    let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
    let (mut files, mut tests) = (Vec::new(), BTreeSet::new());
    let mut dirs = vec![(dir.join("src"), format!("crates/{name}/src"))];
    while let Some((dir, path)) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{path}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                dirs.push((entry.path(), path));
            } else if path.ends_with(".rs") {
                let text = fs::read_to_string(entry.path()).unwrap();
                let (file, found) = read_file(&path, &text);
                tests.extend(found.files.iter().map(|name| beside(&path, name)));
                files.push(file);
            }
        }
    }
    files.retain(|file| {
        let stem = file.path.strip_suffix(".rs").unwrap();
        !tests.iter().any(|test| {
            stem.strip_prefix(test.as_str()).is_some_and(|it| it.is_empty() || it.starts_with('/'))
        })
    });
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Crate { name, files }
}

/// Test-only parts of a file.
#[derive(Default)]
struct Tests {
    /// Line of the first inline module of tests.
    begin: Option<usize>,
    /// Modules of tests in their own files: the name, or the path given by an attribute.
    files: Vec<String>,
}

fn read_file(path: &str, text: &str) -> (SourceFile, Tests) {
    let mut tests = Tests::default();
    let whole: TokenStream = text.parse().unwrap_or_else(|err| panic!("{path}: {err}"));
    let tokens = without_tests(whole, &mut tests);
    let syntax = syn::parse2(tokens.clone()).unwrap_or_else(|err| panic!("{path}: {err}"));
    let lines = tests.begin.map_or(text.lines().count(), |line| line - 1);
    (SourceFile { path: path.to_owned(), module: module(path), lines, tokens, syntax }, tests)
}

/// Returns the directory of the submodules of the file at `path`.
fn directory(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    match stem.rsplit_once('/') {
        Some((dir, "mod" | "lib" | "main")) => dir.to_owned(),
        _ => stem.to_owned(),
    }
}

/// Path without `.rs` of the module of tests `name` that the file at `path` declares.
fn beside(path: &str, name: &str) -> String {
    match name.strip_suffix(".rs") {
        Some(stem) => format!("{}/{stem}", path.rsplit_once('/').unwrap().0),
        None => format!("{}/{name}", directory(path)),
    }
}

/// Names from the root of the crate to the module at `path`.
fn module(path: &str) -> Vec<String> {
    directory(path).split('/').skip(3).map(str::to_owned).collect()
}

/// Returns `tokens` without the items, fields and statements under `#[cfg(test)]`.
fn without_tests(tokens: TokenStream, tests: &mut Tests) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut kept = Vec::new();
    while let Some(token) = tokens.next() {
        match (&token, tokens.peek()) {
            (TokenTree::Punct(hash), Some(TokenTree::Group(attribute)))
                if hash.as_char() == '#' && is_cfg_test(attribute) =>
            {
                let line = hash.span().start().line;
                // Doc comments and other attributes before it are removed as well.
                while let [.., TokenTree::Punct(hash), TokenTree::Group(_)] = kept.as_slice()
                    && hash.as_char() == '#'
                {
                    kept.truncate(kept.len() - 2);
                }
                skip_item(&mut tokens, line, tests);
            }
            (TokenTree::Group(group), _) => {
                let mut inner = Group::new(group.delimiter(), without_tests(group.stream(), tests));
                inner.set_span(group.span());
                kept.push(TokenTree::Group(inner));
            }
            _ => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

fn is_cfg_test(attribute: &Group) -> bool {
    attribute.delimiter() == Delimiter::Bracket && attribute.stream().to_string() == "cfg (test)"
}

/// Skips the code after `#[cfg(test)]`, which begins at `line`: further attributes and one item, field or
/// statement.
fn skip_item(tokens: &mut impl Iterator<Item = TokenTree>, line: usize, tests: &mut Tests) {
    let (mut words, mut path) = (Vec::new(), None);
    let mut in_attribute = true;
    for token in tokens {
        match &token {
            TokenTree::Group(group) if in_attribute => {
                path = path_attribute(group).or(path);
                in_attribute = false;
            }
            TokenTree::Punct(mark) if mark.as_char() == '#' && words.is_empty() => {
                in_attribute = true;
            }
            TokenTree::Ident(word) => words.push(word.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == ';' => {
                let name = words.iter().skip_while(|word| *word != "mod").nth(1);
                tests.files.extend(name.map(|name| path.unwrap_or(name.clone())));
                return;
            }
            TokenTree::Punct(mark) if mark.as_char() == ',' && !is_item(&words) => return,
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Brace && !ends_with_semicolon(&words) =>
            {
                if words.iter().any(|word| word == "mod") {
                    tests.begin.get_or_insert(line);
                }
                return;
            }
            _ => {}
        }
    }
}

/// Value of `path = "..."`.
fn path_attribute(attribute: &Group) -> Option<String> {
    let text = attribute.stream().to_string();
    Some(text.strip_prefix("path = \"")?.strip_suffix('"')?.to_owned())
}

fn is_item(words: &[String]) -> bool {
    let kinds = ["fn", "impl", "struct", "enum", "trait", "type", "use", "const", "static", "let"];
    words.iter().any(|word| kinds.contains(&word.as_str()))
}

fn ends_with_semicolon(words: &[String]) -> bool {
    let kinds = ["use", "const", "static", "let"];
    words.iter().any(|word| kinds.contains(&word.as_str())) && !words.iter().any(|it| it == "fn")
}

#[test]
fn test_code_is_left_out() {
    let text = "\
fn kept(a: u8) -> u8 { a }
/// Of tests.
#[cfg(test)]
#[allow(dead_code)]
pub(crate) fn dropped(a: u8, b: u8) -> Vec<u8> { vec![a, b] }
struct S { a: u8, #[cfg(test)] b: u8, c: u8 }
#[cfg(test)]
use std::{fs, io};
#[cfg(test)]
#[path = \"aside.rs\"]
mod far;
#[cfg(test)]
mod near;
#[cfg(test)]
mod tests {
    fn one() {}
}
";
    let (file, tests) = read_file("crates/x/src/a/b.rs", text);
    let kept = file.tokens.to_string();
    assert_eq!(kept, "fn kept (a : u8) -> u8 { a } struct S { a : u8 , c : u8 }");
    assert_eq!((file.lines, file.module.join("::").as_str()), (13, "a::b"));
    let files: Vec<String> = tests.files.iter().map(|name| beside(&file.path, name)).collect();
    assert_eq!(files, ["crates/x/src/a/aside", "crates/x/src/a/b/near"]);
}
