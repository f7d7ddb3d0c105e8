//! Reading an experiment file. Beside the keys of a scenario file it has those of [`KEYS`].

use super::axis::{Axis, Point};
use super::names::Names;
use super::statement::Statement;
use super::{Claim, Experiment, Kind, PICTURES, Picture, Quick, Row, RowSubject};
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::file::{Source, in_order};
use crate::scenario::{Draft, Given, SETTINGS};
use crate::vary::{Number, range};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

type Result<T> = core::result::Result<T, ScenarioError>;
type Entry<'a, 'i> = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>);

/// The keys of an experiment beside those of a scenario, and what they are.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("title", "what it shows, in a line"),
    ("reported", "what the paper reports"),
    ("notes", "what had to be decided, a list of texts"),
    ("sweep", "the axes: AXIS = [points], a range FROM..TO:POINTS, or { design = COUNT, ... }"),
    (
        "row",
        "[row.NAME]: scheduler = TEXT or single = PATH, settings that differ, only = { AXIS = [points] }",
    ),
    ("claim", "[[claim]]: id, kind, core, says, holds"),
    ("picture", "[[picture]]: kind, title, measure, rows, x, y, log, against"),
    (
        "quick",
        "what a quick run makes do with: settings, and sweep = { AXIS = [points] or a number of them }",
    ),
];
/// Keys of a row that are no settings.
pub(super) const ROW_KEYS: &[&str] = &["scheduler", "single", "only"];
/// Keys of a claim.
pub(super) const CLAIM_KEYS: &[&str] = &["id", "kind", "core", "says", "holds"];
/// Keys of a picture.
pub(super) const PICTURE_KEYS: &[&str] =
    &["kind", "title", "measure", "rows", "x", "y", "log", "against"];
/// Settings of a scenario that an experiment says in another way.
pub(super) const NOT_OURS: &[&str] = &["vary", "expect", "jobs"];
/// Most points of an axis.
const MOST_POINTS: usize = 1_000;

impl Experiment {
    /// Reads an experiment; `name` is the file's, for messages, and its stem is the experiment's
    /// name.
    ///
    /// # Errors
    /// Where it is no TOML, has an unknown key or a value that cannot be taken, with line and
    /// column. What the settings say is read by [`super::Plan::of`].
    pub fn from_toml(name: &str, text: &str) -> Result<Experiment> {
        let source = Source { name, text };
        let document = source.parse()?;
        let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let mut reader = Reader {
            source: &source,
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
                draft: Draft::new(),
                paths: Vec::new(),
            },
        };
        let entries = in_order(document.get_ref());
        // What is named comes before what names it, in whatever order they stand.
        for (key, value) in &entries {
            reader.plain(key, value)?;
        }
        for wanted in ["sweep", "row", "quick", "picture", "claim"] {
            if let Some((_, value)) = entries.iter().find(|(key, _)| key.get_ref() == wanted) {
                reader.table(wanted, value)?;
            }
            if wanted == "row" {
                reader.finish_rows()?;
            }
        }
        if reader.experiment.title.is_empty() {
            let place = source.place(&(0..0), "");
            return Err(ScenarioError::new(&place, Fault::Missing, "", "it has no title")
                .allow("title = \"...\""));
        }
        Ok(reader.experiment)
    }
}

struct Reader<'a> {
    source: &'a Source<'a>,
    experiment: Experiment,
}

impl Reader<'_> {
    /// Takes what is no table of an experiment: its texts, and the scenario.
    fn plain(&mut self, key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) -> Result<()> {
        let name = key.get_ref().as_ref();
        match name {
            "title" => self.experiment.title = self.text(value, name)?,
            "reported" => self.experiment.reported = self.text(value, name)?,
            "notes" => self.experiment.notes = self.texts(value, name)?,
            "sweep" | "row" | "claim" | "picture" | "quick" => {}
            "schedulers" => {
                for (text, place) in self.placed(value, name)? {
                    let given = Given { place, text: text.clone() };
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
                let spelled = name.replace('_', "-");
                let known = SETTINGS.iter().any(|it| it.name == spelled) || name == "path";
                if !known || NOT_OURS.contains(&name) {
                    let settings = SETTINGS.iter().map(|it| it.name);
                    let names = KEYS.iter().map(|it| it.0).chain(["path"]).chain(settings);
                    let names = names.filter(|it| !NOT_OURS.contains(it));
                    return Err(self.unknown(key, "key of an experiment", names));
                }
                self.source.entry(key, value, &mut self.experiment.draft)?;
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
                        "row" => self.row(key, value, &field)?,
                        _ => self.quick(key, value, &field)?,
                    }
                }
                Ok(())
            }
        }
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

    fn texts(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<Vec<String>> {
        Ok(self.placed(value, field)?.into_iter().map(|(text, _)| text).collect())
    }

    /// The texts of a list, or the one that stands in its place.
    fn placed(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<Vec<(String, Place)>> {
        let one = |item: &Spanned<DeValue<'_>>| {
            Ok((self.source.text(item, field)?, self.source.place(&item.span(), field)))
        };
        match value.get_ref().as_array() {
            Some(list) => list.iter().map(one).collect(),
            None => Ok(vec![one(value)?]),
        }
    }

    fn axis(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
    ) -> Result<()> {
        let name = key.get_ref().as_ref();
        let place = self.source.place(&key.span(), field);
        let word = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !word(name) || ["row", "for", "and", "at"].contains(&name) {
            return Err(ScenarioError::new(&place, Fault::Invalid, name, "not a name of an axis")
                .allow("letters, digits and `_`; not row, for, and, at"));
        }
        let axis = match value.get_ref() {
            DeValue::Table(table) if table.contains_key("design") => {
                self.design(name, table, value, field)?
            }
            DeValue::String(text) if text.contains("..") => {
                let points = range(text).map_err(|problem| {
                    let place = self.source.place(&value.span(), field);
                    ScenarioError::new(&place, Fault::Invalid, text, &problem)
                        .allow("FROM..TO:POINTS, such as 40ms..400ms:10")
                })?;
                Axis {
                    name: name.to_owned(),
                    points: points.iter().map(|it| Point::plain(it)).collect(),
                }
            }
            DeValue::Array(list) => {
                let points: Result<Vec<Point>> =
                    list.iter().map(|item| self.point(item, field)).collect();
                Axis { name: name.to_owned(), points: points? }
            }
            _ => Axis { name: name.to_owned(), points: vec![self.point(value, field)?] },
        };
        let twice = (1..axis.points.len())
            .find(|at| axis.points[..*at].iter().any(|it| it.text == axis.points[*at].text));
        let problem = match twice {
            Some(at) => format!("the point `{}` is given twice", axis.points[at].text),
            None if axis.points.is_empty() => "an axis has at least one point".to_owned(),
            None if axis.points.len() > MOST_POINTS => format!("more than {MOST_POINTS} points"),
            None => {
                self.experiment.axes.push(axis);
                return Ok(());
            }
        };
        Err(ScenarioError::new(&place, Fault::Invalid, "", &problem))
    }

    /// A text, or `{ is = TEXT, field = TEXT, ... }`.
    fn point(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<Point> {
        let DeValue::Table(table) = value.get_ref() else {
            return Ok(Point::plain(&self.source.text(value, field)?));
        };
        let mut fields = BTreeMap::new();
        for (key, value) in in_order(table) {
            let text = self.source.text(value, &format!("{field}.{}", key.get_ref()))?;
            fields.insert(key.get_ref().to_string(), text);
        }
        let Some(text) = fields.remove("is") else {
            let place = self.source.place(&value.span(), field);
            return Err(ScenarioError::new(&place, Fault::Missing, "", "the point has no name")
                .allow("is = \"...\""));
        };
        Ok(Point { fields, ..Point::plain(&text) })
    }

    /// `{ design = COUNT, seed = NUMBER, FIELD = "FROM..TO", ... }`; for one coordinate in several
    /// ranges `FIELD = { low = "FROM..TO", high = "FROM..TO" }`, which are `FIELD_low`, `FIELD_high`.
    fn design(
        &self,
        name: &str,
        table: &DeTable<'_>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
    ) -> Result<Axis> {
        let (mut count, mut seed, mut ranges) = (0, 1, Vec::new());
        for (key, value) in in_order(table) {
            let field = format!("{field}.{}", key.get_ref());
            let given = |value: &Spanned<DeValue<'_>>| {
                let text = self.source.text(value, &field)?;
                Ok(Given { place: self.source.place(&value.span(), &field), text })
            };
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("design", _) => count = given(value)?.count(1, MOST_POINTS as u64)?,
                ("seed", _) => seed = given(value)?.count(0, u64::MAX)?,
                (name, DeValue::Table(several)) => {
                    let mut list = Vec::new();
                    for (key, value) in in_order(several) {
                        list.push(ends(&given(value)?, &format!("{name}_{}", key.get_ref()))?);
                    }
                    ranges.push(list);
                }
                (name, _) => ranges.push(vec![ends(&given(value)?, name)?]),
            }
        }
        if ranges.is_empty() {
            let place = self.source.place(&value.span(), field);
            let problem = "the design has no ranges";
            return Err(ScenarioError::new(&place, Fault::Missing, "", problem)
                .allow("rate = \"1mbit..100mbit\""));
        }
        Ok(Axis::designed(name, count as usize, seed, &ranges))
    }

    fn row(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
    ) -> Result<()> {
        let name = key.get_ref().to_string();
        let place = self.source.place(&key.span(), field);
        let mut row = Row {
            name: name.clone(),
            subject: RowSubject::Single(String::new()),
            settings: Vec::new(),
            only: BTreeMap::new(),
            given: Given { place: place.clone(), text: name.clone() },
        };
        let mut subjects = 0;
        for (key, value) in self.entries(value, field)? {
            let field = format!("{field}.{}", key.get_ref());
            match key.get_ref().as_ref() {
                "scheduler" => {
                    let text = self.text(value, &field)?;
                    row.given = Given {
                        place: self.source.place(&value.span(), &field),
                        text: text.clone(),
                    };
                    (row.subject, subjects) = (RowSubject::Scheduler(text), subjects + 1);
                }
                "single" => {
                    let text = self.text(value, &field)?;
                    row.given = Given {
                        place: self.source.place(&value.span(), &field),
                        text: text.clone(),
                    };
                    (row.subject, subjects) = (RowSubject::Single(text), subjects + 1);
                }
                "only" => {
                    for (axis, points) in self.entries(value, &field)? {
                        let (axis, points) = self.points(axis, points, &field)?;
                        row.only.insert(axis, points);
                    }
                }
                _ => {
                    let names = SETTINGS.iter().map(|it| it.name).chain(ROW_KEYS.iter().copied());
                    row.settings.push(self.setting(key, value, &field, names)?);
                }
            }
        }
        if subjects != 1 {
            let problem = "a row has one scheduler, or one single path";
            return Err(ScenarioError::new(&place, Fault::Missing, &name, problem)
                .allow("scheduler = \"minrtt\", or single = \"wifi\""));
        }
        if self.experiment.rows.iter().any(|known| known.name == name) {
            return Err(ScenarioError::new(&place, Fault::Conflict, &name, "given twice"));
        }
        self.experiment.rows.push(row);
        Ok(())
    }

    /// A setting in the place of that of the experiment.
    fn setting<'b>(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
        names: impl Iterator<Item = &'b str>,
    ) -> Result<(String, Given)> {
        let spelled = key.get_ref().replace('_', "-");
        let known = SETTINGS.iter().find(|it| it.name == spelled && !it.repeats);
        let ours = |name: &str| !NOT_OURS.contains(&name) && name != "schedulers";
        let Some(setting) = known.filter(|it| ours(it.name)) else {
            return Err(self.unknown(key, "setting", names.filter(|name| ours(name))));
        };
        let text = self.source.texts(value, field, false)?.join(",");
        let place = self.source.place(&value.span(), field);
        Ok((setting.name.to_owned(), Given { place, text }))
    }

    /// Points of an axis that is there, or how many of them, evenly spaced.
    fn points(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
    ) -> Result<(usize, Vec<usize>)> {
        let axes = &self.experiment.axes;
        let Some(at) = axes.iter().position(|axis| axis.name == *key.get_ref()) else {
            return Err(self.unknown(key, "axis", axes.iter().map(|axis| axis.name.as_str())));
        };
        let all = &axes[at];
        if let DeValue::Integer(_) = value.get_ref() {
            let given = Given {
                place: self.source.place(&value.span(), field),
                text: self.text(value, field)?,
            };
            let count = given.count(1, all.points.len() as u64)? as usize;
            return Ok((at, (0..count).map(|it| it * all.points.len() / count).collect()));
        }
        let mut points = Vec::new();
        for (text, place) in self.placed(value, field)? {
            points.push(all.position(text.trim()).ok_or_else(|| {
                let names = all.points.iter().map(|it| it.text.as_str());
                ScenarioError::unknown(&place, "point", text.trim(), names)
            })?);
        }
        Ok((at, points))
    }

    fn quick(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
    ) -> Result<()> {
        if key.get_ref() == "sweep" {
            for (axis, points) in self.entries(value, field)? {
                let (axis, points) = self.points(axis, points, field)?;
                self.experiment.quick.points.insert(axis, points);
            }
            return Ok(());
        }
        let names = SETTINGS.iter().map(|it| it.name).chain(["sweep"]);
        let setting = self.setting(key, value, field, names)?;
        self.experiment.quick.settings.push(setting);
        Ok(())
    }

    /// What rows stand for is checked once all are there.
    fn finish_rows(&mut self) -> Result<()> {
        let paths = self.experiment.draft.paths.iter().map(|path| path.name.text.clone());
        self.experiment.paths = paths.collect();
        for row in &self.experiment.rows {
            if let RowSubject::Single(path) = &row.subject
                && !self.experiment.paths.contains(path)
            {
                let names = self.experiment.paths.iter().map(String::as_str);
                return Err(row.given.unknown("path", names));
            }
        }
        if self.experiment.rows.is_empty() {
            let place = self.source.place(&(0..0), "");
            return Err(ScenarioError::new(&place, Fault::Missing, "", "it has no rows")
                .allow("schedulers = [...], or [row.NAME]"));
        }
        Ok(())
    }

    fn claim(
        &mut self,
        whole: &Spanned<DeValue<'_>>,
        entries: &[Entry<'_, '_>],
        field: &str,
    ) -> Result<()> {
        let (mut id, mut kind, mut core, mut says, mut holds) =
            (String::new(), None, false, String::new(), None);
        for (key, value) in entries {
            let field = format!("{field}.{}", key.get_ref());
            let text = self.text(value, &field)?;
            let given = Given { place: self.source.place(&value.span(), &field), text };
            match key.get_ref().as_ref() {
                "id" => id = given.text,
                "core" => core = given.switch()?,
                "says" => says = given.text,
                "kind" => {
                    let kinds = [Kind::Exact, Kind::Hard, Kind::Soft];
                    let found = kinds.into_iter().find(|kind| kind.name() == given.text);
                    let names = || kinds.iter().map(|kind| kind.name());
                    kind = Some(found.ok_or_else(|| given.unknown("kind", names()))?);
                }
                "holds" => {
                    let rows = self.experiment.row_names();
                    let names = Names {
                        rows: &rows,
                        axes: &self.experiment.axes,
                        paths: &self.experiment.paths,
                    };
                    holds = Some(Statement::parse(&given.text, &given.place, &names)?);
                }
                _ => return Err(self.unknown(key, "key of a claim", CLAIM_KEYS.iter().copied())),
            }
        }
        let place = self.source.place(&whole.span(), field);
        let missing = |what: &str| {
            ScenarioError::new(&place, Fault::Missing, "", &format!("the claim has no `{what}`"))
        };
        if id.is_empty() || says.is_empty() {
            return Err(missing(if id.is_empty() { "id" } else { "says" }));
        }
        let claim = Claim {
            id,
            kind: kind.ok_or_else(|| missing("kind"))?,
            core,
            says,
            holds: holds.ok_or_else(|| missing("holds"))?,
        };
        self.experiment.claims.push(claim);
        Ok(())
    }

    fn picture(
        &mut self,
        whole: &Spanned<DeValue<'_>>,
        entries: &[Entry<'_, '_>],
        field: &str,
    ) -> Result<()> {
        let mut picture = Picture {
            kind: String::new(),
            title: String::new(),
            measure: String::new(),
            rows: Vec::new(),
            x: None,
            y: None,
            panels: Vec::new(),
            log: (false, false),
            against: None,
        };
        let rows = self.experiment.row_names();
        let axes = &self.experiment.axes;
        let names = Names { rows: &rows, axes, paths: &self.experiment.paths };
        for (key, value) in entries {
            let field = format!("{field}.{}", key.get_ref());
            let place = self.source.place(&value.span(), &field);
            let row = |text: &str, place: &Place| {
                rows.iter().position(|row| row == text).ok_or_else(|| {
                    ScenarioError::unknown(place, "row", text, rows.iter().map(String::as_str))
                })
            };
            let axis = |text: &str| {
                names.axis(text).ok_or_else(|| {
                    let known = axes.iter().map(|axis| axis.name.as_str());
                    ScenarioError::unknown(&place, "axis", text, known)
                })
            };
            match key.get_ref().as_ref() {
                "kind" => {
                    let text = self.text(value, &field)?;
                    if !PICTURES.contains(&text.as_str()) {
                        let known = PICTURES.iter().copied();
                        return Err(ScenarioError::unknown(&place, "picture", &text, known));
                    }
                    picture.kind = text;
                }
                "title" => picture.title = self.text(value, &field)?,
                "measure" => {
                    let text = self.text(value, &field)?;
                    let parts: Vec<&str> = text.split('.').collect();
                    let (first, more) = parts.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
                    picture.measure = names.measure(first, more, &place)?.0;
                }
                "rows" => {
                    let list = self.placed(value, &field)?;
                    let list: Result<Vec<usize>> =
                        list.iter().map(|(text, place)| row(text, place)).collect();
                    picture.rows = list?;
                }
                "x" => picture.x = Some(axis(&self.text(value, &field)?)?),
                "y" => picture.y = Some(axis(&self.text(value, &field)?)?),
                "against" => picture.against = Some(row(&self.text(value, &field)?, &place)?),
                "log" => {
                    let text = self.texts(value, &field)?.concat();
                    picture.log = (text.contains('x'), text.contains('y'));
                }
                _ => {
                    let known = PICTURE_KEYS.iter().copied();
                    return Err(self.unknown(key, "key of a picture", known));
                }
            }
        }
        if picture.kind.is_empty() || picture.measure.is_empty() {
            let place = self.source.place(&whole.span(), field);
            let problem = "a picture has a kind and a measure";
            return Err(ScenarioError::new(&place, Fault::Missing, "", problem));
        }
        if picture.rows.is_empty() {
            picture.rows = (0..rows.len()).collect();
        }
        picture.panels = panels(axes, &[picture.x, picture.y]);
        self.experiment.pictures.push(picture);
        Ok(())
    }
}

/// `FROM..TO`
fn ends(given: &Given, name: &str) -> Result<(String, Number, Number)> {
    let ends = given
        .text
        .split_once("..")
        .and_then(|(low, high)| Some((Number::parse(low).ok()?, Number::parse(high).ok()?)));
    match ends {
        Some((low, high)) if low.unit == high.unit && low.amount <= high.amount => {
            Ok((name.to_owned(), low, high))
        }
        _ => Err(given
            .error(Fault::Invalid, "not a range")
            .allow("FROM..TO, such as 1mbit..100mbit")),
    }
}

/// The points of the axes that are not drawn: each combination is a panel.
fn panels(axes: &[Axis], drawn: &[Option<usize>]) -> Vec<Vec<(usize, usize)>> {
    let mut panels = vec![Vec::new()];
    for (axis, known) in axes.iter().enumerate().filter(|(axis, _)| !drawn.contains(&Some(*axis))) {
        let more = |panel: &Vec<(usize, usize)>| -> Vec<Vec<(usize, usize)>> {
            (0..known.points.len())
                .map(|point| panel.iter().copied().chain([(axis, point)]).collect())
                .collect()
        };
        panels = panels.iter().flat_map(more).collect();
    }
    panels
}
