//! Finds the prose in Markdown and in comments: paragraphs, items of lists and headings, without code, tables and
//! markup.

use crate::comments::comments;
use crate::tree::File;

/// A word of prose with its line.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Word {
    /// Line in its file, from 1.
    pub(crate) line: usize,
    /// The word with the marks around it. Code is `CODE`.
    pub(crate) text: String,
}

/// Stands for code in a sentence.
pub(crate) const CODE: &str = "\u{1}";

impl Word {
    /// Returns the word without the marks around it, in lower case.
    pub(crate) fn bare(&self) -> String {
        self.text.trim_matches(|it: char| !it.is_alphanumeric()).to_lowercase()
    }

    /// Returns whether it counts as a word: a dash or an operator does not.
    pub(crate) fn counts(&self) -> bool {
        self.text.chars().any(|it| it.is_alphanumeric()) || self.text.contains(CODE)
    }
}

/// A paragraph, an item of a list or a heading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Paragraph {
    pub(crate) file: String,
    pub(crate) words: Vec<Word>,
    /// The text with its code and its links, by line.
    pub(crate) raw: Vec<(usize, String)>,
}

impl Paragraph {
    /// Returns the words on one line.
    pub(crate) fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|it| it.text.as_str()).collect();
        words.join(" ")
    }
}

/// Returns the prose of the comments of a Rust file.
pub(crate) fn of_rust(file: &File) -> Vec<Paragraph> {
    let comments = comments(&file.text);
    let paragraphs = comments.iter().flat_map(|comment| {
        let lines = comment.lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line));
        paragraphs(&file.path, comment.line, lines)
    });
    paragraphs.collect()
}

/// Returns the prose of a page.
pub(crate) fn of_page(file: &File) -> Vec<Paragraph> {
    paragraphs(&file.path, 1, file.text.lines())
}

/// Returns the rows of the tables of a page, without words: they cite, but they are no sentences.
pub(crate) fn tables_of_page(file: &File) -> Paragraph {
    let lines = file.text.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
    let raw = lines.map(|(at, line)| (at + 1, line.to_owned())).collect();
    Paragraph { file: file.path.clone(), words: Vec::new(), raw }
}

/// Returns the prose of a help text of `command`. Lines in columns are a table. A line with another indent than the one
/// before begins a paragraph.
pub(crate) fn of_help(command: &str, help: &str) -> Vec<Paragraph> {
    let mut text = String::new();
    let mut last_indent = 0;
    for line in help.lines() {
        let body = line.trim();
        let indent = line.len() - line.trim_start().len();
        if indent != last_indent || body.contains("  ") {
            text.push('\n');
        }
        // `<N>` is no tag of HTML.
        text += &if body.contains("  ") { String::new() } else { body.replace('<', "< ") };
        text.push('\n');
        last_indent = indent;
    }
    paragraphs(command, 1, text.lines())
}

/// Divides Markdown into its paragraphs.
struct Divider {
    file: String,
    done: Vec<Paragraph>,
    open: Vec<(usize, String)>,
    /// The fence that ends the present block of code.
    fence: Option<&'static str>,
    in_list: bool,
    in_html: bool,
}

fn paragraphs<'a>(
    file: &str,
    first_line: usize,
    lines: impl Iterator<Item = &'a str>,
) -> Vec<Paragraph> {
    let (done, open) = (Vec::new(), Vec::new());
    let mut divider =
        Divider { file: file.to_owned(), done, open, fence: None, in_list: false, in_html: false };
    for (at, line) in lines.enumerate() {
        divider.take(first_line + at, line);
    }
    divider.end();
    divider.done
}

impl Divider {
    fn take(&mut self, number: usize, line: &str) {
        let text = line.trim_start().trim_start_matches("> ").trim_end();
        let indent = line.len() - line.trim_start().len();
        if let Some(fence) = self.fence {
            if text.starts_with(fence) {
                self.fence = None;
            }
            return;
        }
        if let Some(fence) = ["```", "~~~"].into_iter().find(|fence| text.starts_with(fence)) {
            self.end();
            self.fence = Some(fence);
            self.in_list &= indent > 0;
            return;
        }
        if text.is_empty() {
            self.end();
            self.in_html = false;
            return;
        }
        if indent == 0 && self.open.is_empty() {
            self.in_list = false;
        }
        let begins_html = text.starts_with('<') && !text.starts_with("<http");
        self.in_html |= begins_html && self.open.is_empty();
        let code_indent = if self.in_list { 8 } else { 4 };
        let is_code = self.open.is_empty() && indent >= code_indent;
        if self.in_html || is_code || is_mark(text) {
            self.end();
        } else if text.starts_with('#') {
            self.end();
            self.open.push((number, text.trim_start_matches('#').to_owned()));
            self.end();
            self.in_list = false;
        } else if let Some(item) = item_of(text, self.in_list || self.open.is_empty()) {
            self.end();
            self.in_list = true;
            self.open.push((number, item.to_owned()));
        } else {
            self.open.push((number, text.to_owned()));
        }
    }

    /// Ends the present paragraph.
    fn end(&mut self) {
        let raw = std::mem::take(&mut self.open);
        let Some((first_line, _)) = raw.first() else { return };
        let lines: Vec<&str> = raw.iter().map(|(_, line)| line.as_str()).collect();
        let text = plain(&lines.join("\n"));
        let lines = text.split('\n').enumerate();
        let words = lines.flat_map(|(at, line)| {
            let line_of = move |text: &str| Word { line: first_line + at, text: text.to_owned() };
            line.split_whitespace().map(line_of)
        });
        let words: Vec<Word> = words.collect();
        self.done.push(Paragraph { file: self.file.clone(), words, raw });
    }
}

/// Returns whether a line is a row of a table, a rule, or the target of a link.
fn is_mark(text: &str) -> bool {
    let target = text.starts_with('[') && text.contains("]: ") && !text.contains(". ");
    text.starts_with('|') || target || text.chars().all(|it| "-=*_+".contains(it))
}

/// Returns the text of an item of a list. A number begins an item only if `numbers` is set, since a line of prose
/// may begin with one.
fn item_of(text: &str, numbers: bool) -> Option<&str> {
    let bullet = ["* ", "- ", "+ "].into_iter().find_map(|mark| text.strip_prefix(mark));
    let digits = text.len() - text.trim_start_matches(|it: char| it.is_ascii_digit()).len();
    let number = text[digits..].strip_prefix(". ").filter(|_| numbers && (1..=2).contains(&digits));
    bullet.or(number)
}

/// Returns Markdown without its markup: code is `CODE`, a link is its text, and a comment is nothing. The lines
/// stay.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let (length, shown) = match next {
            '`' => code(rest).unwrap_or((1, "`")),
            '<' => tag(rest).unwrap_or((1, "<")),
            ']' => (link_end(rest), ""),
            '[' | '*' => (1, ""),
            _ => (next.len_utf8(), &rest[..next.len_utf8()]),
        };
        plain.push_str(shown);
        if length > 1 {
            plain.extend(rest[..length].chars().filter(|it| *it == '\n'));
        }
        at += length;
    }
    plain
}

/// Returns the length of a code span, and its place holder.
fn code(rest: &str) -> Option<(usize, &'static str)> {
    let marks = rest.len() - rest.trim_start_matches('`').len();
    let end = rest[marks..].find(&rest[..marks])?;
    Some((end + 2 * marks, CODE))
}

/// Returns the length of a tag or a comment of HTML.
fn tag(rest: &str) -> Option<(usize, &'static str)> {
    if rest.starts_with("<!--") {
        return rest.find("-->").map(|end| (end + 3, ""));
    }
    let begins = rest[1..].starts_with(|it: char| it.is_ascii_alphabetic() || it == '/');
    let end = rest.find('>').filter(|end| begins && !rest[..*end].contains('\n'))?;
    Some((end + 1, if rest.starts_with("<http") { CODE } else { "" }))
}

/// Returns the length of `](TARGET)`, `][TARGET]` or `]`.
fn link_end(rest: &str) -> usize {
    let end = match rest[1..].chars().next() {
        Some('(') => rest.find(')'),
        Some('[') => rest[1..].find(']').map(|end| end + 1),
        _ => None,
    };
    end.map_or(1, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(paragraphs: &[Paragraph]) -> Vec<String> {
        let text =
            |it: &Paragraph| format!("{}: {}", it.words[0].line, it.text().replace(CODE, "CODE"));
        paragraphs.iter().map(text).collect()
    }

    #[test]
    fn prose_is_divided_and_code_and_tables_are_left_out() {
        let text = "\
# A title
A [link](to/it.md#there) and `code with words`,
and *more*<!-- not
this -->.

| a | table |
|---|---|

1. One.
2. Two,
   of two lines.

```sh
plait run
```

    indented code

* [x]: no target. A sentence.

<picture>
  <img alt=\"text\">
</picture>

Last one
- with an item
";
        let page = File { path: "a.md".to_owned(), text: text.to_owned() };
        let expected = [
            "1: A title",
            "2: A link and CODE, and more .",
            "9: One.",
            "10: Two, of two lines.",
            "19: x: no target. A sentence.",
            "25: Last one",
            "26: with an item",
        ];
        assert_eq!(shown(&of_page(&page)), expected);
    }

    #[test]
    fn a_help_is_prose_without_its_columns() {
        let help = "Runs it.\nTwice.\n\n  -s, --seed <N>\n          The seed\n          of all.\n\nkey      its meaning\n";
        assert_eq!(
            shown(&of_help("run", help)),
            ["1: Runs it. Twice.", "5: -s, --seed < N>", "7: The seed of all."]
        );
    }

    #[test]
    fn comments_are_prose() {
        let text = "/// Returns it.\n///\n///     code\n///\n/// Units: bytes.\nfn f() {} // why\n";
        let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
        assert_eq!(shown(&of_rust(&file)), ["1: Returns it.", "5: Units: bytes.", "6: why"]);
    }
}
