//! Reads rows, their settings, and the changes of a quick run.

use super::super::{Row, RowSubject};
use super::{NOT_OURS, RESERVED, ROW_KEYS, Reader, Result};
use crate::error::{Fault, ScenarioError};
use crate::scenario::{PlacedText, SETTINGS, Setting};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeString, DeValue};

/// Largest number of rows of an experiment.
const MOST_ROWS: usize = 1_000;

/// Returns true if a statement can use this name for a row.
fn names_a_row(name: &str) -> bool {
    let part = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let number = name.starts_with(|c: char| c.is_ascii_digit());
    !number && name.split('-').all(part) && !RESERVED.contains(&name)
}

impl Reader<'_> {
    pub(super) fn row(
        &mut self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
    ) -> Result<()> {
        let name = key.get_ref().to_string();
        let place = self.source.place(&key.span(), field);
        if self.experiment.rows.len() == MOST_ROWS {
            let problem = format!("more than {MOST_ROWS} rows");
            return Err(ScenarioError::new(&place, Fault::Invalid, &name, &problem)
                .allow(&format!("at most {MOST_ROWS} rows")));
        }
        if !names_a_row(&name) {
            return Err(ScenarioError::new(&place, Fault::Invalid, &name, "not a name of a row")
                .allow(
                    "a letter, then letters, digits, `_` and `-` inside; not row, for, and, at",
                ));
        }
        let mut row = Row {
            name: name.clone(),
            subject: RowSubject::Single(String::new()),
            settings: Vec::new(),
            only: BTreeMap::new(),
            given: PlacedText { place: place.clone(), text: name.clone() },
        };
        let mut subjects = 0;
        for (key, value) in self.entries(value, field)? {
            let field = format!("{field}.{}", key.get_ref());
            match key.get_ref().as_ref() {
                subject @ ("scheduler" | "single") => {
                    let text = self.text(value, &field)?;
                    let place = self.source.place(&value.span(), &field);
                    row.given = PlacedText { place, text: text.clone() };
                    row.subject = match subject {
                        "single" => RowSubject::Single(text),
                        _ => RowSubject::Scheduler(text),
                    };
                    subjects += 1;
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

    /// Reads a setting that replaces one of the experiment.
    fn setting<'b>(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        field: &str,
        names: impl Iterator<Item = &'b str>,
    ) -> Result<(String, PlacedText)> {
        let known = Setting::named(key.get_ref()).filter(|it| !it.repeats());
        let ours = |name: &str| !NOT_OURS.contains(&name) && name != "schedulers";
        let Some(setting) = known.filter(|it| ours(it.name)) else {
            return Err(self.unknown(key, "setting", names.filter(|name| ours(name))));
        };
        let text = self.source.texts(value, field, false)?.join(",");
        let place = self.source.place(&value.span(), field);
        Ok((setting.name.to_owned(), PlacedText { place, text }))
    }

    pub(super) fn quick(
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

    /// Checks the subjects of the rows, after all rows were read.
    pub(super) fn finish_rows(&mut self) -> Result<()> {
        let paths = self.experiment.raw.paths.iter().map(|path| path.name.text.clone());
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
}
