//! Reads the axes of a sweep and their points.

use super::super::axis::{Axis, Derived, Design, Point};
use super::{MOST_POINTS, RESERVED, Reader, Result};
use crate::error::{Fault, ScenarioError};
use crate::scenario::PlacedText;
use crate::scenario::file::in_order;
use crate::scenario::sweep::{Number, range};
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

impl Reader<'_> {
    pub(super) fn axis(
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
        if !word(name) || RESERVED.contains(&name) {
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
                Axis::plain(name, points.iter().map(|it| Point::plain(it)).collect())
            }
            DeValue::Array(list) => {
                let points: Result<Vec<Point>> =
                    list.iter().map(|item| self.point(item, field)).collect();
                Axis::plain(name, points?)
            }
            _ => Axis::plain(name, vec![self.point(value, field)?]),
        };
        let mut seen = BTreeSet::new();
        let twice = axis.points.iter().find(|it| !seen.insert(it.text.as_str()));
        let problem = match twice {
            Some(point) => format!("the point `{}` is given twice", point.text),
            None if axis.points.is_empty() => "an axis has at least one point".to_owned(),
            None if axis.points.len() > MOST_POINTS => {
                format!("{} points, and at most {MOST_POINTS} are read", axis.points.len())
            }
            None => {
                self.experiment.axes.push(axis);
                self.places.axes.push(place);
                return Ok(());
            }
        };
        Err(ScenarioError::new(&place, Fault::Invalid, "", &problem)
            .allow("[\"10ms\", \"40ms\"], a range \"10ms..100ms:4\", or { design = 200, ... }"))
    }

    /// Reads the names of axes in figures.
    pub(super) fn label(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
    ) -> Result<()> {
        let label = self.prose(value, field)?;
        let axes = &self.experiment.axes;
        let Some(at) = axes.iter().position(|axis| axis.name == *key.get_ref()) else {
            return Err(self.unknown(key, "axis", axes.iter().map(|axis| axis.name.as_str())));
        };
        self.experiment.axes[at].label = label;
        Ok(())
    }

    /// Reads a text, or `{ is = TEXT, field = TEXT, ... }`.
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

    /// Reads `{ design = COUNT, seed = NUMBER, sample = true, FIELD = "FROM..TO", ... }`. For one coordinate
    /// in several ranges, `FIELD = { low = "FROM..TO", high = "FROM..TO" }` defines `FIELD_low` and
    /// `FIELD_high`.
    fn design(
        &self,
        name: &str,
        table: &DeTable<'_>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
    ) -> Result<Axis> {
        let (mut count, mut seed, mut sample) = (0, 1, false);
        let (mut ranges, mut derived) = (Vec::new(), Vec::new());
        for (key, value) in in_order(table) {
            let field = format!("{field}.{}", key.get_ref());
            let given = |value: &Spanned<DeValue<'_>>| {
                let text = self.source.text(value, &field)?;
                Ok(PlacedText { place: self.source.place(&value.span(), &field), text })
            };
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("design", _) => count = given(value)?.count(1, MOST_POINTS as u64)?,
                ("seed", _) => seed = given(value)?.count(0, u64::MAX)?,
                ("sample", _) => sample = given(value)?.switch()?,
                (name, DeValue::Table(parts)) if parts.contains_key("of") => {
                    derived.push(self.derived(name, parts, &field)?);
                }
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
        let design = Design { count: count as usize, seed, sample, ranges, derived };
        Ok(Axis::designed(name, design))
    }

    /// Reads `FIELD = { of = "FIELD,FIELD", share = "10%", most = "500kbit" }`.
    fn derived(&self, name: &str, parts: &DeTable<'_>, field: &str) -> Result<Derived> {
        const FORM: &str = "{ of = \"FIELD,FIELD\", share = \"10%\", most = \"500kbit\" }";
        let (mut of, mut share, mut most) = (Vec::new(), None, None);
        for (key, value) in in_order(parts) {
            let text = self.source.text(value, field)?;
            let place = self.source.place(&value.span(), field);
            let wrong = || {
                let problem = "not a part of a derived field";
                ScenarioError::new(&place, Fault::Invalid, &text, problem).allow(FORM)
            };
            match key.get_ref().as_ref() {
                "of" => of = text.split(',').map(|it| it.trim().to_owned()).collect(),
                "share" => {
                    let percent = text.trim().strip_suffix('%').ok_or_else(wrong)?;
                    let percent: f64 = percent.parse().map_err(|_| wrong())?;
                    share = Some(percent / 100.0).filter(|it| (0.0..=1.0).contains(it));
                }
                "most" => most = Some(Number::parse(text.trim()).map_err(|_| wrong())?),
                other => {
                    let names = ["of", "share", "most"];
                    return Err(ScenarioError::unknown(&place, "part", other, names));
                }
            }
        }
        match (share, most) {
            (Some(share), Some(most)) => Ok(Derived { name: name.to_owned(), of, share, most }),
            _ => Err(ScenarioError::new(
                &self.source.place(&(0..0), field),
                Fault::Missing,
                name,
                "a share or a limit is missing",
            )
            .allow(FORM)),
        }
    }

    /// Reads points of a known axis, or a number of points that are evenly spaced on it.
    pub(super) fn points(
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
            let given = PlacedText {
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
        if points.is_empty() {
            let place = self.source.place(&value.span(), field);
            let problem = "no point of the axis is left";
            return Err(ScenarioError::new(&place, Fault::Invalid, "", problem)
                .allow("at least one of its points"));
        }
        Ok((at, points))
    }
}

/// Reads `FROM..TO`.
fn ends(given: &PlacedText, name: &str) -> Result<(String, Number, Number)> {
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
