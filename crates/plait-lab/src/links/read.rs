//! Reads a file of links, and makes the paths of a scenario of it.

use super::amount::{Kind, Range, amount};
use super::{Known, Link, LinkFile, SCHEMA, UNKNOWN};
use crate::error::{Fault, Place, ScenarioError, unreadable};
use crate::scenario::file::{Source, in_order};
use crate::scenario::path_build;
use crate::scenario::{
    PATH_KEYS, PathKey, PlacedText, RawPath, RawScenario, Reader, canonical, nearest_key,
};
use plait_base::SubflowId;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Result<T> = core::result::Result<T, ScenarioError>;

/// The fields of a value that has a table.
const FIELDS: [&str; 5] = ["value", "low", "high", "source", "date"];
/// Remedy for an unknown rate.
const HOW_TO_GET_A_RATE: &str = "a rate; measure it with `plait measure HOST --from DEVICE`, or add a test's \
                                 result with `plait measure import`";

/// Which value of a link a scenario gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// The best estimate. An unknown rate is an error.
    Middle,
    /// The range, `LOW..HIGH`, if there is one. A path with an unknown rate has none in that direction.
    Ranges,
}

impl LinkFile {
    /// Reads a file of links; `name` is for messages. A scenario file is read too: only its paths and its shared
    /// links count.
    ///
    /// # Errors
    /// If it is not TOML, or has an unknown key. The error has line and column.
    pub fn from_toml(name: &str, text: &str) -> Result<LinkFile> {
        let source = Source::new(name, text);
        let document = source.parse()?;
        let mut file = LinkFile::default();
        // Settings of a scenario file are read for their errors.
        let mut raw = RawScenario::new();
        for (key, value) in in_order(document.get_ref()) {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("schema", given) => {
                    let place = source.place(&value.span(), "schema");
                    let given = given.as_str().unwrap_or_default();
                    if given != SCHEMA {
                        let problem = "this plait does not read such a file";
                        return Err(ScenarioError::new(&place, Fault::Invalid, given, problem)
                            .allow(&format!("schema = \"{SCHEMA}\"")));
                    }
                }
                ("path", DeValue::Array(list)) => {
                    for (at, path) in list.iter().enumerate() {
                        file.links.push(link(&source, path, at)?);
                    }
                }
                _ => source.entry(key, value, &mut raw)?,
            }
        }
        file.shared = raw.values("link").iter().map(|it| it.text.clone()).collect();
        file.shared_place = raw.values("link").first().map(|it| it.place.clone());
        let place = source.place(&(0..0), "");
        if file.links.is_empty() {
            let error = ScenarioError::new(&place, Fault::Missing, "", "the file has no link");
            return Err(error.allow("a table [[path]] for each link"));
        }
        if file.links.len() > SubflowId::MAX {
            let problem = format!("the file has {} links", file.links.len());
            let error = ScenarioError::new(&place, Fault::Invalid, "", &problem);
            return Err(error.allow(&format!("at most {}", SubflowId::MAX)));
        }
        Ok(file)
    }

    /// Reads the file `name` through `read`.
    ///
    /// # Errors
    /// As [`LinkFile::from_toml`], and if the file cannot be read.
    pub fn from_file(name: &str, read: Reader<'_>) -> Result<LinkFile> {
        let text = read(name).map_err(|error| {
            let place = Place::Argument("--links".to_owned());
            ScenarioError::new(&place, Fault::Unreadable, name, &unreadable(&error))
                .allow("a file of links (TOML), as `plait measure` writes it")
        })?;
        LinkFile::from_toml(name, &text)
    }

    /// Returns a scenario that has only the paths and the shared links.
    ///
    /// # Errors
    /// If a range is invalid, or if a rate is unknown and must be known.
    pub fn scenario(&self, values: Values) -> Result<RawScenario> {
        let mut raw = RawScenario::new();
        for text in &self.shared {
            match &self.shared_place {
                Some(place) => raw.set("link", PlacedText::new(place, text))?,
                None => raw.argument("link", text)?,
            }
        }
        for link in &self.links {
            raw.paths.push(link.path(values)?);
        }
        Ok(raw)
    }
}

impl Link {
    fn path(&self, values: Values) -> Result<RawPath> {
        let mut fields = Vec::new();
        for (key, known) in &self.values {
            if let Some(text) = known.text(key, values)? {
                fields.push((key.clone(), PlacedText { place: known.place.clone(), text }));
            }
        }
        let lost = self.values.iter().find(|(key, known)| Kind::is_rate(key) && known.is_unknown());
        if let (Some((key, known)), Values::Middle) = (lost, values) {
            return Err(self.unknown_rate(key, known));
        }
        let name = PlacedText { place: self.place.clone(), text: self.name.clone() };
        Ok(RawPath { name, fields })
    }

    fn unknown_rate(&self, key: &str, known: &Known) -> ScenarioError {
        let why = match known.source.as_str() {
            "" => String::new(),
            source => format!(" ({source})"),
        };
        let what = match key {
            "rate_down" => "rate from server to client",
            "rate_up" => "rate from client to server",
            _ => "rate",
        };
        let problem = format!("the {what} of path {} is unknown{why}", self.name);
        ScenarioError::new(&known.place, Fault::Missing, "", &problem).allow(HOW_TO_GET_A_RATE)
    }
}

impl Known {
    /// Returns the text for a scenario; `None` if it is unknown.
    fn text(&self, key: &str, values: Values) -> Result<Option<String>> {
        let Some((low, high)) = &self.range else { return Ok(self.value.clone()) };
        let Some(kind) = Kind::of(key) else { return Ok(self.value.clone()) };
        let given = |text: String| PlacedText { place: self.place.clone(), text };
        let range = Range::read(kind, &given(format!("{low}..{high}")), low, high)?;
        let Some(value) = &self.value else {
            return Ok(Some(match values {
                Values::Ranges => format!("{low}..{high}"),
                Values::Middle => range.unit.written(range.middle()),
            }));
        };
        let (middle, unit) = amount(kind, &given(value.clone()), value)?;
        if unit != range.unit || !(range.low..=range.high).contains(&middle) {
            let problem = "the value is outside its range";
            let error = given(value.clone()).error(Fault::Conflict, problem);
            return Err(error.allow(&format!("low <= value <= high, here {low} to {high}")));
        }
        Ok(Some(match values {
            Values::Ranges if range.high > range.low => format!("{low}..{high}"),
            _ => value.clone(),
        }))
    }
}

/// Checks the name of a link that `argument` has.
///
/// # Errors
/// If a path cannot have the name.
pub fn check_name(argument: &str, name: &str) -> Result<()> {
    let place = Place::Argument(argument.to_owned());
    path_build::check_name(&PlacedText::new(&place, name), "path")
}

/// Reads a link: a table, or a text as for `--path`.
fn link(source: &Source<'_>, given: &Spanned<DeValue<'_>>, at: usize) -> Result<Link> {
    let field = format!("path[{at}]");
    let place = source.place(&given.span(), &field);
    match given.get_ref() {
        DeValue::Table(table) => of_table(source, table, &field, &place),
        DeValue::String(text) => {
            let mut raw = RawScenario::new();
            raw.argument("path", text)?;
            let Some(path) = raw.paths.pop() else { return Ok(Link::new("")) };
            let known = |(key, given): (String, PlacedText)| {
                let known = plain(&key, given.text, place.clone());
                (key, known)
            };
            let values = path.fields.into_iter().map(known).collect();
            Ok(Link { name: path.name.text, values, place: place.clone() })
        }
        other => {
            let problem = format!("this {} is not a link", other.type_str());
            let error = ScenarioError::new(&place, Fault::Invalid, "", &problem);
            Err(error.allow("a table [[path]], or a text such as \"wifi:rtt=25ms,rate=25mbit\""))
        }
    }
}

fn of_table(source: &Source<'_>, table: &DeTable<'_>, field: &str, place: &Place) -> Result<Link> {
    let mut link = Link { name: String::new(), values: Vec::new(), place: place.clone() };
    for (key, value) in in_order(table) {
        let field = format!("{field}.{}", key.get_ref());
        if key.get_ref() == "name" {
            let DeValue::String(text) = value.get_ref() else {
                return Err(source.mistyped(value, &field, "a text"));
            };
            link.name = text.to_string();
            link.place = source.place(&value.span(), &field);
            continue;
        }
        let spelled = canonical(&key.get_ref().replace('-', "_")).to_owned();
        let known = PATH_KEYS.iter().find(|known| known.name == spelled);
        let Some(known) = known else {
            let place = source.place(&key.span(), &field);
            let names = PATH_KEYS.iter().map(|known| known.name).chain(["name"]);
            let what = "key of a path";
            let error = ScenarioError::unknown(&place, what, key.get_ref(), names.clone());
            return Err(nearest_key(error, names));
        };
        values(source, known, value, &field, &mut link)?;
    }
    if link.name.is_empty() {
        let error = ScenarioError::new(place, Fault::Missing, "", "the link has no name");
        return Err(error.allow("name = \"wifi\""));
    }
    Ok(link)
}

/// Reads the value of a key: a table with its range and origin, or a text.
fn values(
    source: &Source<'_>,
    key: &PathKey,
    value: &Spanned<DeValue<'_>>,
    field: &str,
    link: &mut Link,
) -> Result<()> {
    let place = source.place(&value.span(), field);
    if let DeValue::Table(table) = value.get_ref() {
        let known = measured(source, key, table, field, &place)?;
        link.values.push((key.name.to_owned(), known));
        return Ok(());
    }
    for text in source.texts(value, field, key.repeats)? {
        link.values.push((key.name.to_owned(), plain(key.name, text, place.clone())));
    }
    Ok(())
}

/// Reads a value without an origin: a text, a range, or `unknown`.
fn plain(key: &str, text: String, place: Place) -> Known {
    let steps = text.contains(['@', '/', '~', ':']);
    let range = text.split_once("..").filter(|_| Kind::of(key).is_some() && !steps);
    let range = range.map(|(low, high)| (low.trim().to_owned(), high.trim().to_owned()));
    let known = text.trim() != UNKNOWN && range.is_none();
    Known { value: known.then_some(text), range, source: String::new(), date: String::new(), place }
}

fn measured(
    source: &Source<'_>,
    key: &PathKey,
    table: &DeTable<'_>,
    field: &str,
    place: &Place,
) -> Result<Known> {
    let mut texts: [Option<String>; 5] = Default::default();
    for (name, value) in in_order(table) {
        let field = format!("{field}.{}", name.get_ref());
        let Some(at) = FIELDS.iter().position(|known| *known == name.get_ref()) else {
            let place = source.place(&name.span(), &field);
            return Err(ScenarioError::unknown(&place, "field of a value", name.get_ref(), FIELDS));
        };
        texts[at] = Some(source.text(value, &field)?);
    }
    let [value, low, high, origin, date] = texts;
    let wrong = |problem: &str| {
        let error = ScenarioError::new(place, Fault::Invalid, "", problem);
        Err(error.allow("value = \"22ms\", and low and high together, or value = \"unknown\""))
    };
    let range = match (low, high) {
        (Some(low), Some(high)) => Some((low, high)),
        (None, None) => None,
        _ => return wrong("one end of the range is missing"),
    };
    if range.is_some() && Kind::of(key.name).is_none() {
        return wrong(&format!("`{}` has no range", key.name));
    }
    let unknown = value.as_deref().map(str::trim) == Some(UNKNOWN);
    match (&value, &range) {
        (None, None) => return wrong("there is no value"),
        (Some(_), Some(_)) if unknown => return wrong("an unknown value has a range"),
        _ => {}
    }
    Ok(Known {
        value: value.filter(|_| !unknown),
        range,
        source: origin.unwrap_or_default(),
        date: date.unwrap_or_default(),
        place: place.clone(),
    })
}
