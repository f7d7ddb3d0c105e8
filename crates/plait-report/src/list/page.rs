//! The page of an entry, as text for a terminal and as Markdown for `docs/`.
//!
//! A page consists of paragraphs, formulas (indented, after a blank line) and labelled lines (`Good
//! at bulk transfers`). Continuation lines of a label are indented.

use super::measured::{Measurement, PATHS};
use super::{Item, Setting, StateValue};
use crate::render::{Align, Column, Emphasis, Table, wrap};
use std::fmt::Write;

/// The labels of labelled lines.
const LABELS: [&str; 8] =
    ["Measured", "Numbers", "Papers", "Paper", "Source", "Follows", "Good at", "Bad at"];
/// Width of running text.
const WIDTH: usize = 100;
/// Columns of a page on a terminal.
const TEXT_WIDTH: usize = 80;
/// Width of a label, including the space after it.
const LABEL_WIDTH: usize = 9;

/// Returns the sentence about the default scheduler.
fn live_default(default: &str) -> String {
    format!("`{default}` is the default of each command that takes one scheduler.\n")
}

/// A part of a page.
#[derive(Clone, PartialEq, Debug)]
enum Block {
    /// Running text.
    Paragraph(String),
    /// Verbatim lines without their common indentation.
    Formula(Vec<String>),
    /// A label and its text.
    Labelled(&'static str, String),
}

/// Returns the label of a line and its text, which follows a colon or at least two spaces.
pub(super) fn label(line: &str) -> Option<(&'static str, &str)> {
    LABELS.iter().find_map(|label| {
        let rest = line.strip_prefix(label)?;
        let text = rest.strip_prefix(": ").or_else(|| rest.strip_prefix("  "))?;
        Some((*label, text.trim()))
    })
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    // True if the next line may continue the last block.
    let mut open = false;
    for line in page.lines() {
        let (indented, text) = (line.starts_with("  "), line.trim());
        if text.is_empty() {
            open = false;
            continue;
        }
        let last = blocks.last_mut().filter(|_| open);
        match (last, label(line)) {
            (_, Some((label, text))) => blocks.push(Block::Labelled(label, text.to_owned())),
            (Some(Block::Formula(lines)), _) if indented => lines.push(line.to_owned()),
            (Some(Block::Labelled(_, so_far)), _) if indented => {
                so_far.push(' ');
                so_far.push_str(text);
            }
            (Some(Block::Paragraph(so_far)), _) if !indented => {
                so_far.push(' ');
                so_far.push_str(text);
            }
            _ if indented => blocks.push(Block::Formula(vec![line.to_owned()])),
            _ => blocks.push(Block::Paragraph(text.to_owned())),
        }
        open = true;
    }
    for block in &mut blocks {
        if let Block::Formula(lines) = block {
            let indent = |line: &String| line.len() - line.trim_start().len();
            let common = lines.iter().map(indent).min().unwrap_or(0);
            for line in lines {
                line.replace_range(..common, "");
            }
        }
    }
    blocks
}

/// An output format of a page. [`walk`] fixes the order of the parts.
trait Form {
    /// Writes the name and the summary.
    fn title(&mut self, name: &str, summary: &str);
    /// Writes the other names.
    fn aliases(&mut self, names: &[String]);
    /// Writes the default scheduler that contains the entry.
    fn live_default(&mut self, default: &str);
    /// Writes the grammar of the entry.
    fn grammar(&mut self, grammar: &str);
    /// Writes an empty line.
    fn gap(&mut self);
    /// Writes a part of the page.
    fn block(&mut self, block: &Block);
    /// Writes the measurements, and the commands that repeat them.
    fn measured(&mut self, table: &Table, again: &[String]);
    /// Writes the parameters.
    fn params(&mut self, params: &[Setting]);
    /// Writes the saved values.
    fn state(&mut self, values: &[StateValue]);
}

/// Writes the page of `item`. All formats have the same order of parts.
fn walk(item: &Item, form: &mut impl Form) {
    form.title(&item.name, &item.summary);
    if !item.aliases.is_empty() {
        form.aliases(&item.aliases);
    }
    if let Some(default) = item.live_default {
        form.live_default(default);
    }
    if !item.grammar.is_empty() {
        form.grammar(&item.grammar);
    }
    let mut labelled = false;
    for block in &blocks(&item.page) {
        let label = matches!(block, Block::Labelled(..));
        // Adjacent labelled lines have no gap.
        if !(labelled && label) {
            form.gap();
        }
        labelled = label;
        form.block(block);
    }
    if !item.measured.is_empty() {
        form.gap();
        form.measured(&measured(&item.measured), &command(&item.measured));
    }
    if !item.params.is_empty() {
        form.gap();
        form.params(&item.params);
    }
    if !item.state.is_empty() {
        form.gap();
        form.state(&item.state);
    }
}

/// Returns the page as text.
pub(super) fn text(item: &Item) -> String {
    let mut form = Text(String::new());
    walk(item, &mut form);
    form.0
}

/// Returns the page as Markdown.
pub(super) fn markdown(item: &Item) -> String {
    let mut form = Markdown(String::new());
    walk(item, &mut form);
    form.0
}

/// For a terminal.
struct Text(String);

impl Form for Text {
    fn title(&mut self, name: &str, summary: &str) {
        let _ = writeln!(self.0, "{name}: {summary}");
    }

    fn aliases(&mut self, names: &[String]) {
        let _ = writeln!(self.0, "Also called {}.", names.join(", "));
    }

    fn live_default(&mut self, default: &str) {
        self.0.push_str(&live_default(default));
    }

    fn grammar(&mut self, grammar: &str) {
        let _ = writeln!(self.0, "Written {grammar}");
    }

    fn gap(&mut self) {
        self.0.push('\n');
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(text) => lines(&mut self.0, "", wrap(text, TEXT_WIDTH)),
            Block::Formula(formula) => lines(&mut self.0, "    ", formula),
            Block::Labelled(label, text) => {
                for (nth, line) in wrap(text, TEXT_WIDTH - LABEL_WIDTH).iter().enumerate() {
                    let label = if nth == 0 { label } else { "" };
                    let _ = writeln!(self.0, "{label:<LABEL_WIDTH$}{line}");
                }
            }
        }
    }

    fn measured(&mut self, table: &Table, again: &[String]) {
        self.0.push_str("Measured (medians; cubic, seed 1)\n");
        lines(&mut self.0, "", table.to_text(TEXT_WIDTH, false).lines());
        self.gap();
        lines(&mut self.0, "", again);
    }

    fn params(&mut self, params: &[Setting]) {
        self.0.push_str("Parameters\n");
        for param in params {
            let from = match param.clause {
                "" => String::new(),
                clause => format!(" [{clause}]"),
            };
            let _ = writeln!(self.0, "  {}  ({})", written(param), param.allowed);
            lines(&mut self.0, "      ", wrap(&format!("{}{from}", param.help), TEXT_WIDTH - 6));
        }
    }

    fn state(&mut self, values: &[StateValue]) {
        self.0.push_str("State (plait decide)\n");
        for value in values {
            let _ = writeln!(self.0, "  {}: {}", value.name, value.meaning);
        }
    }
}

/// For `docs/`.
struct Markdown(String);

/// Formats text as inline code.
fn code(text: &str) -> String {
    format!("`{text}`")
}

impl Form for Markdown {
    fn title(&mut self, name: &str, summary: &str) {
        let _ = write!(self.0, "# {name}\n\n{}.\n", sentence(summary));
    }

    fn aliases(&mut self, names: &[String]) {
        let names: Vec<String> = names.iter().map(|name| code(name)).collect();
        let _ = writeln!(self.0, "Also called {}.", names.join(", "));
    }

    fn live_default(&mut self, default: &str) {
        self.0.push_str(&live_default(default));
    }

    fn grammar(&mut self, grammar: &str) {
        let _ = writeln!(self.0, "Written {}.", code(grammar));
    }

    fn gap(&mut self) {
        self.0.push('\n');
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(text) => prose(&mut self.0, "", text),
            Block::Formula(formula) => fenced(&mut self.0, formula),
            Block::Labelled(label, text) => {
                prose(&mut self.0, "* ", &format!("**{label}**: {text}"));
            }
        }
    }

    fn measured(&mut self, table: &Table, again: &[String]) {
        self.0.push_str("## Measured\n\nMedians; controller cubic, seed 1.\n\n");
        self.0.push_str(&table.to_markdown());
        self.gap();
        fenced(&mut self.0, again);
    }

    fn params(&mut self, params: &[Setting]) {
        let mut table = left(&["parameter, default", "allowed", "meaning", "from"]);
        for param in params {
            let (help, clause) = (param.help.to_owned(), param.clause.to_owned());
            table.row(
                Emphasis::None,
                vec![code(&written(param)), param.allowed.clone(), help, clause],
            );
        }
        let _ = write!(self.0, "## Parameters\n\n{}", table.to_markdown());
    }

    fn state(&mut self, values: &[StateValue]) {
        let mut table = left(&["value", "meaning"]);
        for value in values {
            table.row(Emphasis::None, vec![code(value.name), value.meaning.to_owned()]);
        }
        let _ = write!(self.0, "## State (`plait decide`)\n\n{}", table.to_markdown());
    }
}

/// Returns `beta=0.25`, with its unit.
fn written(param: &Setting) -> String {
    let unit = if param.unit.is_empty() { String::new() } else { format!(" {}", param.unit) };
    format!("{}={}{unit}", param.name, param.default)
}

fn left(titles: &[&str]) -> Table {
    Table::new(titles.iter().map(|title| Column::new(title, Align::Left)).collect())
}

/// Returns the measurements of one scheduler. `minrtt` is not compared with itself.
fn measured(list: &[Measurement]) -> Table {
    let name = list.first().map_or("", |first| first.scheduler.as_str());
    let mut columns: Vec<Column> =
        ["paths", "workload", "measure"].map(|title| Column::new(title, Align::Left)).into();
    let names = [name, "minrtt", "best path"];
    let own = name != "minrtt";
    let kept = names.iter().enumerate().filter(|(at, _)| *at != 1 || own);
    columns.extend(kept.map(|(_, title)| Column::new(title, Align::Right)));
    let mut table = Table::new(columns);
    for it in list {
        let mut cells = vec![it.paths.to_owned(), it.workload.to_owned(), it.measure.to_owned()];
        cells.push(format!("{:.1}", it.median));
        if own {
            cells.push(format!("{:.1}", it.minrtt));
        }
        cells.push(format!("{:.1} {}", it.best_path_alone, it.best_path));
        table.row(Emphasis::None, cells);
    }
    table
}

/// Returns the legend of the paths, and the command that repeats a row.
fn command(list: &[Measurement]) -> Vec<String> {
    let name = list.first().map_or("", |first| first.scheduler.as_str());
    let others = if name == "minrtt" { "" } else { ",minrtt" };
    let again = format!("plait compare PATHS --workload WORKLOAD --schedulers {name}{others}");
    std::iter::once(again).chain(legend()).collect()
}

/// Returns the names of the paths, each with its settings.
pub(super) fn legend() -> impl Iterator<Item = String> {
    PATHS.iter().map(|(name, settings)| format!("{name:<7} {settings}"))
}

/// Capitalizes the first letter.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn lines(page: &mut String, indent: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) {
    for line in lines {
        let _ = writeln!(page, "{}", format!("{indent}{}", line.as_ref()).trim_end());
    }
}

pub(super) fn fenced(page: &mut String, formula: impl IntoIterator<Item = impl AsRef<str>>) {
    page.push_str("```text\n");
    lines(page, "", formula);
    page.push_str("```\n");
}

/// Writes running text in Markdown, with `lead` before its first line. No line begins with Markdown
/// syntax.
fn prose(page: &mut String, lead: &str, text: &str) {
    let indent = " ".repeat(lead.len());
    for (nth, line) in wrap(text, WIDTH - lead.len()).iter().enumerate() {
        let indent = if nth == 0 { lead } else { &indent };
        let mark = nth > 0 && line.starts_with(['*', '+', '-', '=', '#', '>']);
        let _ = writeln!(page, "{indent}{}{line}", if mark { "\\" } else { "" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
A paragraph
of two lines.

    x = 1
      + 2

Good at  one thing
         and another.
Bad at: formulas.

The end.";

    fn item() -> Item {
        Item {
            name: "ecf".to_owned(),
            summary: "first things first".to_owned(),
            page: PAGE.to_owned(),
            ..Item::default()
        }
    }

    #[test]
    fn a_page_falls_into_blocks() {
        let text = |text: &str| text.to_owned();
        assert_eq!(
            blocks(PAGE),
            [
                Block::Paragraph(text("A paragraph of two lines.")),
                Block::Formula(vec![text("x = 1"), text("  + 2")]),
                Block::Labelled("Good at", text("one thing and another.")),
                Block::Labelled("Bad at", text("formulas.")),
                Block::Paragraph(text("The end.")),
            ]
        );
    }

    #[test]
    fn words_of_a_sentence_are_no_labels() {
        let page = "Paper is patient.\nGood at heart.\n\nNumbers";
        let expected = ["Paper is patient. Good at heart.", "Numbers"]
            .map(|text| Block::Paragraph(text.to_owned()));
        assert_eq!(blocks(page), expected);
    }

    #[test]
    fn both_forms_say_the_same() {
        assert_eq!(
            text(&item()),
            "ecf: first things first\n\nA paragraph of two lines.\n\n    x = 1\n      + 2\n\n\
             Good at  one thing and another.\nBad at   formulas.\n\nThe end.\n"
        );
        assert_eq!(
            markdown(&item()),
            "# ecf\n\nFirst things first.\n\nA paragraph of two lines.\n\n```text\nx = 1\n  + 2\n\
             ```\n\n* **Good at**: one thing and another.\n* **Bad at**: formulas.\n\nThe end.\n"
        );
    }

    #[test]
    fn a_wrapped_line_is_no_list() {
        let mut page = String::new();
        let word = "w".repeat(WIDTH);
        prose(&mut page, "", &format!("{word} * {word}"));
        assert_eq!(page, format!("{word}\n\\*\n{word}\n"));
    }
}
