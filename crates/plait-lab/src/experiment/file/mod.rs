//! Reads an experiment file. It has the keys of a scenario file, and [`KEYS`].

mod claim;
mod picture;
mod row;
mod sweep;

use super::check::{Places, check};
use super::{Differs, Experiment, Quick, Row, RowSubject};
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::file::{Source, in_order};
use crate::scenario::{PlacedText, RawScenario, SETTINGS, Setting};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeString, DeValue};

type Result<T> = core::result::Result<T, ScenarioError>;
type Entry<'a, 'i> = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>);

/// A key of an experiment that scenarios do not have.
pub(in crate::experiment) struct Key {
    pub(in crate::experiment) name: &'static str,
    /// The keys of each of its tables; empty if it is not a list of tables.
    pub(in crate::experiment) members: &'static [&'static str],
    /// Description of the key; empty if the members are enough.
    pub(in crate::experiment) help: &'static str,
}

const fn key(name: &'static str, members: &'static [&'static str], help: &'static str) -> Key {
    Key { name, members, help }
}

/// The keys of an experiment that scenarios do not have.
pub(in crate::experiment) const KEYS: &[Key] = &[
    key("title", &[], "the subject of the experiment, in one line"),
    key("reported", &[], "the result that the paper reports"),
    key("notes", &[], "the decisions that had to be made, a list of texts"),
    key(
        "kernel",
        &[],
        "the kernel of the paper's experiment, one of those of --kernel (`plait run --help`)",
    ),
    key(
        "differs",
        DIFFERS_KEYS,
        "a setting of the kernel that differs in this figure, and the passage of the paper that \
         requires it",
    ),
    key(
        "sweep",
        &[],
        "the axes: AXIS = [points], a range FROM..TO:POINTS, or { design = COUNT, ... }",
    ),
    key(
        "label",
        &[],
        "[label] AXIS = TEXT: the name of an axis in figures, with its unit if its points have none",
    ),
    key(
        "row",
        &[],
        "[row.NAME]: scheduler = TEXT or single = PATH, settings that differ, only = { AXIS = \
         [points] }",
    ),
    key("claim", CLAIM_KEYS, ""),
    key("picture", PICTURE_KEYS, ""),
    key(
        "quick",
        &[],
        "the reduced form for a quick run: settings, and sweep = { AXIS = [points] or a number of \
         them }",
    ),
];
/// Keys of a row that are not settings.
pub(in crate::experiment) const ROW_KEYS: &[&str] = &["scheduler", "single", "only"];
/// Keys of a claim.
pub(in crate::experiment) const CLAIM_KEYS: &[&str] = &["id", "kind", "core", "says", "holds"];
/// Keys of a difference from the kernel.
pub(in crate::experiment) const DIFFERS_KEYS: &[&str] = &["setting", "is", "because"];
/// Keys of a picture.
pub(in crate::experiment) const PICTURE_KEYS: &[&str] =
    &["kind", "title", "measure", "rows", "x", "y", "pool", "log", "against", "benefit"];
/// Settings of a scenario that an experiment expresses differently.
pub(in crate::experiment) const NOT_OURS: &[&str] = &["vary", "expect", "jobs"];
/// Words of a statement that cannot be names of rows or axes.
const RESERVED: &[&str] = &["row", "for", "and", "at"];
/// Largest number of points of an axis.
const MOST_POINTS: usize = 1_000;

impl Experiment {
    /// Reads an experiment. `name` is the name of the file, which messages quote; its stem is the name of the
    /// experiment.
    ///
    /// # Errors
    /// If the text is not TOML, has an unknown key or an invalid value; the error has line and column.
    /// [`super::Plan::of`] reads the values of the settings.
    pub fn from_toml(name: &str, text: &str) -> Result<Experiment> {
        let source = Source::new(name, text);
        let document = source.parse()?;
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let mut reader = Reader {
            source: &source,
            places: Places::default(),
            kernel: None,
            experiment: Experiment {
                id: file.trim_end_matches(".toml").to_owned(),
                title: String::new(),
                reported: String::new(),
                notes: Vec::new(),
                axes: Vec::new(),
                rows: Vec::new(),
                claims: Vec::new(),
                pictures: Vec::new(),
                quick: Quick::default(),
                kernel: None,
                differs: Vec::new(),
                raw: RawScenario::new(),
                paths: Vec::new(),
            },
        };
        let entries = in_order(document.get_ref());
        // Definitions are read before their uses, in any order of the file.
        for (key, value) in &entries {
            reader.plain(key, value)?;
        }
        for wanted in ["sweep", "label", "row", "quick", "picture", "claim"] {
            if let Some((_, value)) = entries.iter().find(|(key, _)| key.get_ref() == wanted) {
                reader.table(wanted, value)?;
            }
            if wanted == "row" {
                reader.finish_rows()?;
            }
        }
        let whole = source.place(&(0..0), "");
        super::kernels::apply(&mut reader.experiment, reader.kernel.as_ref(), &whole)?;
        if reader.experiment.title.is_empty() {
            let place = source.place(&(0..0), "");
            return Err(ScenarioError::new(&place, Fault::Missing, "", "it has no title")
                .allow("title = \"...\""));
        }
        check(&reader.experiment, &reader.places)?;
        Ok(reader.experiment)
    }
}

struct Reader<'a> {
    source: &'a Source<'a>,
    places: Places,
    /// The kernel that the file names.
    kernel: Option<PlacedText>,
    experiment: Experiment,
}

impl Reader<'_> {
    /// Reads an entry that is not a table of the experiment: its texts, and the scenario.
    fn plain(&mut self, key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        let name = key.get_ref().as_ref();
        match name {
            "title" => self.experiment.title = self.prose(value, name)?,
            "reported" => self.experiment.reported = self.prose(value, name)?,
            "kernel" => {
                let place = self.source.place(&value.span(), name);
                self.kernel = Some(PlacedText { place, text: self.text(value, name)? });
            }
            "differs" => self.differs(value, name)?,
            "notes" => self.experiment.notes = self.texts(value, name)?,
            "sweep" | "label" | "row" | "claim" | "picture" | "quick" => {}
            "schedulers" => {
                for (text, place) in self.placed(value, name)? {
                    let given = PlacedText { place, text: text.clone() };
                    self.experiment.rows.push(Row {
                        name: text.clone(),
                        subject: RowSubject::Scheduler(text),
                        settings: Vec::new(),
                        only: BTreeMap::new(),
                        given,
                    });
                }
            }
            _ => {
                let known = Setting::named(name).is_some() || name == "path";
                if !known || NOT_OURS.contains(&name) {
                    let settings = SETTINGS.iter().map(|it| it.name);
                    let names = KEYS.iter().map(|it| it.name).chain(["path"]).chain(settings);
                    let names = names.filter(|it| !NOT_OURS.contains(it));
                    return Err(self.unknown(key, "key of an experiment", names));
                }
                self.source.entry(key, value, &mut self.experiment.raw)?;
            }
        }
        Ok(())
    }

    fn table(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Result<()> {
        match name {
            "claim" | "picture" => {
                let Some(list) = value.get_ref().as_array() else {
                    return Err(self.source.mistyped(value, name, &format!("[[{name}]]")));
                };
                for (at, item) in list.iter().enumerate() {
                    let field = format!("{name}[{at}]");
                    let table = self.entries(item, &field)?;
                    if name == "claim" {
                        self.claim(item, &table, &field)?;
                    } else {
                        self.picture(item, &table, &field)?;
                    }
                }
                Ok(())
            }
            _ => {
                for (key, value) in self.entries(value, name)? {
                    let field = format!("{name}.{}", key.get_ref());
                    match name {
                        "sweep" => self.axis(key, value, &field)?,
                        "label" => self.label(key, value, &field)?,
                        "row" => self.row(key, value, &field)?,
                        _ => self.quick(key, value, &field)?,
                    }
                }
                Ok(())
            }
        }
    }

    /// Reads `[[differs]]`: setting, is, because.
    fn differs(&mut self, value: &Spanned<DeValue<'_>>, name: &str) -> Result<()> {
        let Some(list) = value.get_ref().as_array() else {
            return Err(self.source.mistyped(value, name, "[[differs]]"));
        };
        for (at, item) in list.iter().enumerate() {
            let field = format!("{name}[{at}]");
            let mut texts: BTreeMap<&str, String> = BTreeMap::new();
            for (key, value) in self.entries(item, &field)? {
                let known = DIFFERS_KEYS.iter().find(|known| **known == *key.get_ref());
                let Some(known) = known else {
                    let names = DIFFERS_KEYS.iter().copied();
                    return Err(self.unknown(key, "key of a difference", names));
                };
                texts.insert(known, self.text(value, &format!("{field}.{known}"))?);
            }
            let mut take = |key: &str| {
                let text = texts.remove(key).filter(|text| !text.is_empty());
                let place = self.source.place(&item.span(), &field);
                let problem = format!("the difference has no `{key}`");
                text.ok_or_else(|| ScenarioError::new(&place, Fault::Missing, key, &problem))
            };
            let because = take("because")?;
            let differs = Differs { setting: take("setting")?, is: take("is")?, because };
            self.experiment.differs.push(differs);
        }
        Ok(())
    }

    fn entries<'b, 'i>(
        &self,
        value: &'b Spanned<DeValue<'i>>,
        field: &str,
    ) -> Result<Vec<Entry<'b, 'i>>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(in_order(table)),
            _ => Err(self.source.mistyped(value, field, "a table")),
        }
    }

    fn unknown<'b>(
        &self,
        key: &Spanned<DeString<'_>>,
        what: &str,
        names: impl IntoIterator<Item = &'b str>,
    ) -> ScenarioError {
        let place = self.source.place(&key.span(), key.get_ref());
        ScenarioError::unknown(&place, what, key.get_ref(), names)
    }

    fn text(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<String> {
        let text = self.source.text(value, field)?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Reads a text; numbers and switches are refused.
    fn prose(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<String> {
        match value.get_ref() {
            DeValue::String(_) => self.text(value, field),
            _ => Err(self.source.mistyped(value, field, "a text, \"...\"")),
        }
    }

    fn texts(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<Vec<String>> {
        Ok(self.placed(value, field)?.into_iter().map(|(text, _)| text).collect())
    }

    /// Reads a list of texts, or a single text.
    fn placed(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<Vec<(String, Place)>> {
        let one = |item: &Spanned<DeValue<'_>>| {
            Ok((self.source.text(item, field)?, self.source.place(&item.span(), field)))
        };
        match value.get_ref().as_array() {
            Some(list) => list.iter().map(one).collect(),
            None => Ok(vec![one(value)?]),
        }
    }
}
