//! The TOML form of a scenario: the names and texts of the command line.
//!
//! ```toml
//! workload = "download:512kB"
//! schedulers = ["minrtt", "ecf:beta=0.5"]     # or "minrtt,ecf:beta=0.5"
//! runs = 30
//!
//! [[path]]
//! name = "wifi"
//! rtt = "25ms"
//! rate = "25mbit"
//! down = ["1s..3s", "8s..9s"]
//! gone = "4s..5s"
//!
//! [[path]]
//! name = "lte-att"
//! profile = "lte-att"
//! backup = true
//! ```

use super::Scenario;
use super::other_keys::{canonical, unknown_key};
use super::path_keys::{PATH_KEYS, PathKey};
use super::path_parse::Reader;
use super::placed_text::PlacedText;
use super::raw_scenario::{RawPath, RawScenario};
use super::settings::{SETTINGS, Setting};
use crate::error::{Fault, Place, ScenarioError, unreadable};
use plait_base::SubflowId;
use std::fmt::Write as _;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

type Result<T> = core::result::Result<T, ScenarioError>;

/// Most values of a setting that may be given several times.
const MOST_VALUES: usize = 1_000;

/// A file while it is read.
pub(crate) struct Source<'a> {
    /// Its name, for messages.
    pub(crate) name: &'a str,
    /// Its content.
    pub(crate) text: &'a str,
    lines: Lines,
}

/// Index of lines and columns. Each entry of a file needs its place, so the lookup must be fast.
struct Lines {
    /// The first byte of each line.
    starts: Vec<usize>,
    /// Number of characters before each block of [`Lines::BLOCK`] bytes.
    characters: Vec<usize>,
}

impl Lines {
    /// Bytes per block.
    const BLOCK: usize = 256;

    fn of(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = core::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        let mut count = 0;
        let characters = text.as_bytes().chunks(Lines::BLOCK).map(|block| {
            let before = count;
            count += characters_in(block);
            before
        });
        Lines { starts, characters: characters.collect() }
    }

    /// Returns the number of characters before a byte of the text.
    fn characters(&self, text: &str, at: usize) -> usize {
        let block = at / Lines::BLOCK;
        let start = (block * Lines::BLOCK).min(text.len());
        let before = self.characters.get(block).copied();
        // If `at` is the end of the text, its block may not exist.
        let Some(before) = before else { return text.chars().count() };
        before + characters_in(&text.as_bytes()[start..at])
    }

    /// Returns line and column, in characters from 1. A character must begin at byte `at`.
    fn place(&self, text: &str, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        (line, self.characters(text, at) - self.characters(text, start) + 1)
    }
}

/// Returns the number of characters that begin in these bytes of UTF-8.
fn characters_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

impl RawScenario {
    /// Reads a scenario file; `name` is for messages. Arguments added afterwards override the file.
    ///
    /// # Errors
    /// If it is not TOML, has an unknown key, or a value is not a text, a whole number or a switch.
    /// The error has line and column. [`RawScenario::build`] checks the texts themselves.
    pub fn from_toml(name: &str, text: &str) -> Result<RawScenario> {
        let source = Source::new(name, text);
        let document = source.parse()?;
        let mut raw = RawScenario { file: Some(name.to_owned()), ..RawScenario::new() };
        for (key, value) in in_order(document.get_ref()) {
            source.entry(key, value, &mut raw)?;
        }
        Ok(raw)
    }

    /// Reads the scenario file `name` through `read`.
    ///
    /// # Errors
    /// As [`RawScenario::from_toml`], and if the file cannot be read.
    pub fn from_file(name: &str, read: Reader<'_>) -> Result<RawScenario> {
        let text = read(name).map_err(|error| {
            let place = Place::Argument("--scenario".to_owned());
            ScenarioError::new(&place, Fault::Unreadable, name, &unreadable(&error))
                .allow("a scenario file (TOML), as --save-scenario writes it")
        })?;
        RawScenario::from_toml(name, &text)
    }

    /// Returns the TOML form; [`RawScenario::from_toml`] reads it back.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut out = String::from("# plait compare --scenario THIS_FILE\n");
        for setting in SETTINGS {
            let values = self.values(setting.name);
            match (values, setting.repeats()) {
                ([], _) => {}
                (values, true) => {
                    let texts: Vec<String> = values.iter().map(|it| string(&it.text)).collect();
                    line(&mut out, setting.name, &format!("[{}]", texts.join(", ")));
                }
                ([given, ..], false) => {
                    line(&mut out, setting.name, &literal(setting, &given.text));
                }
            }
        }
        for path in &self.paths {
            out.push_str("\n[[path]]\n");
            line(&mut out, "name", &string(&path.name.text));
            for (key, given) in &path.fields {
                match PathKey::named(key) {
                    Some(key) if key.repeats => {}
                    Some(known) if known.is_switch() => line(&mut out, key, bool_of(&given.text)),
                    _ => line(&mut out, key, &string(&given.text)),
                }
            }
            for PathKey { name, .. } in PATH_KEYS.iter().filter(|key| key.repeats) {
                let spans: Vec<String> = path.fields(name).map(|it| string(&it.text)).collect();
                if !spans.is_empty() {
                    line(&mut out, name, &format!("[{}]", spans.join(", ")));
                }
            }
        }
        out
    }
}

impl Scenario {
    /// Returns the TOML form. [`RawScenario::from_toml`] and [`RawScenario::build`] restore the
    /// scenario.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.raw().to_toml()
    }
}

impl<'a> Source<'a> {
    /// Wraps a file called `name` with the content `text`.
    pub(crate) fn new(name: &'a str, text: &'a str) -> Source<'a> {
        Source { name, text, lines: Lines::of(text) }
    }

    /// Parses the file as TOML.
    pub(crate) fn parse(&self) -> Result<Spanned<DeTable<'a>>> {
        DeTable::parse(self.text).map_err(|error| {
            let place = self.place(&error.span().unwrap_or(0..0), "");
            ScenarioError::new(&place, Fault::Invalid, "", error.message())
        })
    }

    /// Reads an entry of a scenario: its paths, or a setting.
    pub(crate) fn entry(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        raw: &mut RawScenario,
    ) -> Result<()> {
        if key.get_ref() == "path" {
            return self.paths(value, raw);
        }
        let place = self.place(&value.span(), key.get_ref());
        let repeats = Setting::named(key.get_ref()).is_some_and(Setting::repeats);
        let texts = self.texts(value, key.get_ref(), repeats).map_err(|error| {
            // An unknown key is a better error than a bad value.
            let place = self.place(&key.span(), key.get_ref());
            let given = PlacedText { place, text: String::new() };
            let refusal = raw.set(key.get_ref(), given).err();
            refusal.filter(|refusal| refusal.fault == Fault::Unknown).unwrap_or(error)
        })?;
        for text in texts {
            let given = PlacedText { place: place.clone(), text };
            raw.set(key.get_ref(), given).map_err(|mut error| {
                // The error of an unknown key points at the key, not at its value.
                if error.fault == Fault::Unknown {
                    error.place = self.place(&key.span(), key.get_ref());
                }
                error
            })?;
        }
        Ok(())
    }

    /// Returns line and column, in characters from 1, of the start of a span.
    pub(crate) fn place(&self, span: &Range<usize>, field: &str) -> Place {
        let mut at = span.start.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let (line, column) = self.lines.place(self.text, at);
        Place::File { file: self.name.to_owned(), line, column, field: field.to_owned() }
    }

    fn paths(&self, value: &Spanned<DeValue<'_>>, raw: &mut RawScenario) -> Result<()> {
        let allowed = "[[path]] tables, or texts such as \"wifi:rtt=25ms,rate=25mbit\"";
        let Some(list) = value.get_ref().as_array() else {
            let place = self.place(&value.span(), "path");
            let problem = format!("this {} is not a list of paths", value.get_ref().type_str());
            return Err(ScenarioError::new(&place, Fault::Invalid, "", &problem).allow(allowed));
        };
        if let Some(beyond) = list.get(SubflowId::MAX) {
            let place = self.place(&beyond.span(), &format!("path[{}]", SubflowId::MAX));
            let problem = format!("{} paths are given", list.len());
            return Err(ScenarioError::new(&place, Fault::Invalid, "", &problem)
                .allow(&super::build::most_paths()));
        }
        for (at, path) in list.iter().enumerate() {
            let field = format!("path[{at}]");
            let place = self.place(&path.span(), &field);
            raw.paths.push(match path.get_ref() {
                DeValue::String(text) => RawPath::parse(text, &place),
                DeValue::Table(table) => self.path(table, &field, &place)?,
                other => {
                    let problem = format!("this {} is not a path", other.type_str());
                    return Err(
                        ScenarioError::new(&place, Fault::Invalid, "", &problem).allow(allowed)
                    );
                }
            });
        }
        Ok(())
    }

    fn path(&self, table: &DeTable<'_>, field: &str, place: &Place) -> Result<RawPath> {
        let mut name = None;
        let mut fields = Vec::new();
        for (key, value) in in_order(table) {
            let field = format!("{field}.{}", key.get_ref());
            let place = self.place(&value.span(), &field);
            if key.get_ref() == "name" {
                let DeValue::String(text) = value.get_ref() else {
                    return Err(self.mistyped(value, &field, "a text"));
                };
                name = Some(PlacedText::new(&place, text));
                continue;
            }
            let spelled = canonical(&key.get_ref().replace('-', "_")).to_owned();
            let known = PathKey::named(&spelled);
            if known.is_none() {
                let place = self.place(&key.span(), &field);
                let names = PathKey::names().chain(["name"]);
                return Err(unknown_key(&place, "path", key.get_ref(), names));
            }
            for text in self.texts(value, &field, known.is_some_and(|key| key.repeats))? {
                fields.push((spelled.clone(), PlacedText { place: place.clone(), text }));
            }
        }
        let name = name.ok_or_else(|| {
            ScenarioError::new(place, Fault::Missing, "", "the path has no name")
                .allow("name = \"wifi\"")
        })?;
        Ok(RawPath { name, fields })
    }

    /// Returns the place of a byte of a text. If the text has escapes, the place is approximate.
    pub(crate) fn place_within(
        &self,
        value: &Spanned<DeValue<'_>>,
        at: usize,
        field: &str,
    ) -> Place {
        let span = value.span();
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let quotes = ["\"\"\"\r\n", "\"\"\"\n", "\"\"\"", "'''\r\n", "'''\n", "'''", "\"", "'"];
        let opening = quotes.into_iter().find(|quote| raw.starts_with(quote)).map_or(0, str::len);
        let start = (span.start + opening + at).min(span.end.max(span.start));
        self.place(&(start..start), field)
    }

    /// Returns the value as the command line would write it. A list gives several texts if the
    /// setting repeats, and otherwise one text with commas.
    pub(crate) fn texts(
        &self,
        value: &Spanned<DeValue<'_>>,
        field: &str,
        repeats: bool,
    ) -> Result<Vec<String>> {
        let Some(list) = value.get_ref().as_array() else {
            return Ok(vec![self.text(value, field)?]);
        };
        if let Some(beyond) = list.get(MOST_VALUES) {
            let problem = format!("{} values are given", list.len());
            let place = self.place(&beyond.span(), field);
            return Err(ScenarioError::new(&place, Fault::Invalid, "", &problem)
                .allow(&format!("at most {MOST_VALUES} values")));
        }
        let texts: Result<Vec<String>> = list.iter().map(|item| self.text(item, field)).collect();
        if repeats { texts } else { Ok(vec![texts?.join(",")]) }
    }

    pub(crate) fn text(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => {
                Ok(number.as_str().replace('_', "").trim_start_matches('+').to_owned())
            }
            // A quantity refuses this later, as a number without a unit.
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            DeValue::Boolean(on) => Ok(if *on { "on" } else { "off" }.to_owned()),
            _ => Err(self.mistyped(value, field, "a text, a whole number, true or false")),
        }
    }

    pub(crate) fn mistyped(
        &self,
        value: &Spanned<DeValue<'_>>,
        field: &str,
        allowed: &str,
    ) -> ScenarioError {
        let problem = format!("this {} does not fit here", value.get_ref().type_str());
        let place = self.place(&value.span(), field);
        ScenarioError::new(&place, Fault::Invalid, "", &problem).allow(allowed)
    }
}

/// Returns the entries of a table in file order, so that the first mistake is reported first.
pub(crate) fn in_order<'a, 'i>(
    table: &'a DeTable<'i>,
) -> Vec<(&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn line(out: &mut String, key: &str, value: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(out, "{key} = {value}");
}

fn string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn bool_of(text: &str) -> &'static str {
    if matches!(text, "off" | "false") { "false" } else { "true" }
}

/// Writes whole numbers and switches without quotes, all other texts with quotes.
fn literal(setting: &Setting, text: &str) -> String {
    if setting.is_flag() {
        return bool_of(text).to_owned();
    }
    let canonical = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    if canonical { text.to_owned() } else { string(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_as_a_look_at_the_whole_text_does() {
        // Lines of many lengths, with characters of one to four bytes across the blocks.
        let word = ["a", "\u{e9}", "\u{20ac}", "\u{1f600}"];
        let text: String = (0..900_usize)
            .map(|at| if at % 97 == 0 { "\n".to_owned() } else { word[at * 7 % 4].repeat(at % 5) })
            .collect();
        let source = Source::new("f", &text);
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let before = &text[..at];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            assert_eq!(source.lines.place(&text, at), (line, column), "byte {at}");
        }
    }
}
