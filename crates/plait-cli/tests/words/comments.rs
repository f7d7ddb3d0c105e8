//! Finds the comments of Rust source text.

/// Comments on lines that follow each other, without their marks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    /// Line of the first one, from 1.
    pub(crate) line: usize,
    /// `///`, `//!`, `//` or `/*`.
    pub(crate) mark: &'static str,
    pub(crate) lines: Vec<String>,
}

/// One comment as it stands in the text.
struct Found {
    line: usize,
    mark: &'static str,
    /// Whether no code is before it on its line.
    alone: bool,
    text: String,
}

/// Returns the comments of `source`. Comments of one kind on consecutive lines are one comment. A comment
/// behind code is one by itself.
pub(crate) fn comments(source: &str) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut last: Option<(usize, &str)> = None;
    for found in scan(source) {
        let lines: Vec<String> = match found.mark {
            "/*" => {
                found.text.lines().map(|it| it.trim().trim_start_matches('*').to_owned()).collect()
            }
            _ => vec![found.text],
        };
        match comments.last_mut() {
            Some(open) if found.alone && last == Some((found.line - 1, found.mark)) => {
                open.lines.extend(lines);
            }
            _ => comments.push(Comment { line: found.line, mark: found.mark, lines }),
        }
        last = (found.alone && found.mark != "/*").then_some((found.line, found.mark));
    }
    comments
}

/// Returns a complaint for each doc comment of `source` that does not begin with a sentence, because rustdoc shows
/// that sentence as the summary of the item.
pub(crate) fn without_summary(file: &str, source: &str) -> Vec<String> {
    let docs =
        comments(source).into_iter().filter(|it| it.mark.starts_with("///") || it.mark == "//!");
    let bad = docs.filter(|it| {
        let first = it.lines[0].trim();
        first.is_empty()
            || ["#", "```", "|", "- ", "* ", "<"].iter().any(|mark| first.starts_with(mark))
    });
    let place = |it: Comment| format!("{file}:{}", it.line);
    bad.map(|it| {
        format!("{}: no summary: begin the comment with a sentence on one line", place(it))
    })
    .collect()
}

fn scan(source: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let (mut line, mut at, mut line_begin) = (1, 0, 0);
    while let Some(next) = source[at..].chars().next() {
        let rest = &source[at..];
        let alone = || source[line_begin..at].trim().is_empty();
        let plain = if at == line_begin { plain_length(rest) } else { None };
        let length = if let Some(length) = plain {
            length
        } else if rest.starts_with("//") {
            let whole = rest.lines().next().unwrap_or_default();
            found.push(line_comment(line, alone(), whole));
            whole.len()
        } else if rest.starts_with("/*") {
            let length = block_length(rest);
            let text = rest[..length].trim_start_matches("/*").trim_end_matches("*/").to_owned();
            found.push(Found { line, mark: "/*", alone: alone(), text });
            length
        } else {
            literal_length(&source[..at], rest).unwrap_or(next.len_utf8())
        };
        for (offset, _) in rest[..length].match_indices('\n') {
            line += 1;
            line_begin = at + offset + 1;
        }
        at += length;
    }
    found
}

/// Returns the length of the first line if it has neither comments nor literals, as most lines.
fn plain_length(rest: &str) -> Option<usize> {
    let length = rest.find('\n')? + 1;
    let special = ['/', '"', '\''].into_iter().any(|mark| rest[..length].contains(mark));
    (!special).then_some(length)
}

fn line_comment(line: usize, alone: bool, whole: &str) -> Found {
    let mark = ["///", "//!"].into_iter().find(|mark| whole.starts_with(mark)).unwrap_or("//");
    Found { line, mark, alone, text: whole[mark.len()..].to_owned() }
}

/// Returns the length of the comment that `/*` begins. Such comments nest.
fn block_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    at.min(rest.len())
}

/// Returns the length of the string or character at the begin of `rest`, or `None` if there is no such literal.
fn literal_length(before: &str, rest: &str) -> Option<usize> {
    let in_name = before.ends_with(|it: char| it.is_alphanumeric() || it == '_');
    if rest.starts_with('"') {
        return Some(escaped_length(rest, '"'));
    }
    if let Some(inner) = rest.strip_prefix('\'') {
        let mut chars = inner.chars();
        let first = chars.next()?;
        return match first {
            '\\' => Some(escaped_length(rest, '\'')),
            _ => (chars.next() == Some('\'')).then(|| 2 + first.len_utf8()),
        };
    }
    let raw = ["br", "cr", "r"].into_iter().find_map(|prefix| rest.strip_prefix(prefix));
    let raw = raw.filter(|_| !in_name)?;
    let marks = raw.len() - raw.trim_start_matches('#').len();
    let body = raw[marks..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(rest.len() - body.len() + length)
}

/// Returns the length of a literal that begins and ends with `quote`, which `\` may escape within it.
fn escaped_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, next) in rest.char_indices().skip(1) {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if next == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[test]
fn comments_are_found_and_strings_are_none() {
    let source = "\
//! Of the file,
//! both lines.
fn f<'a>(it: &'a str) -> char { // behind code
    // why
    let _ = (\"// none\", r#\"// none \" \"#, '\"', '\\'', \"\\\" // none\");
    /* a /* nested */ block
     * of two lines */
    /// Of an item.
    // Another kind.
    b'x'
}
";
    let comment = |line, mark, lines: &[&str]| Comment {
        line,
        mark,
        lines: lines.iter().map(|line| (*line).to_owned()).collect(),
    };
    let expected = [
        comment(1, "//!", &[" Of the file,", " both lines."]),
        comment(3, "//", &[" behind code"]),
        comment(4, "//", &[" why"]),
        comment(6, "/*", &["a /* nested */ block", " of two lines"]),
        comment(8, "///", &[" Of an item."]),
        comment(9, "//", &[" Another kind."]),
    ];
    assert_eq!(comments(source), expected);
}

#[test]
fn a_doc_comment_without_a_summary_is_found() {
    let source = "//! # A heading\n\n/// `code` begins it.\nfn f() {}\n///\n/// Late.\nfn g() {}\n// - no doc\n";
    let complaint =
        |line| format!("a.rs:{line}: no summary: begin the comment with a sentence on one line");
    assert_eq!(without_summary("a.rs", source), [complaint(1), complaint(5)]);
}
