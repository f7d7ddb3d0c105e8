//! Pictures.

use super::super::axis::Axis;
use super::super::names::Names;
use super::super::{PICTURES, Picture};
use super::{Entry, PICTURE_KEYS, Reader, Result};
use crate::error::{Fault, Place, ScenarioError};
use toml::Spanned;
use toml::de::DeValue;

impl Reader<'_> {
    pub(super) fn picture(
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
            benefit: Vec::new(),
        };
        let rows = self.experiment.row_names();
        let axes = &self.experiment.axes;
        let names = Names { rows: &rows, axes, paths: &self.experiment.paths };
        let mut measured = self.source.place(&whole.span(), field);
        for (key, value) in entries {
            let field = format!("{field}.{}", key.get_ref());
            let place = self.source.place(&value.span(), &field);
            let row = |text: &str, place: &Place| {
                rows.iter().position(|row| row == text).ok_or_else(|| {
                    ScenarioError::unknown(place, "row", text, rows.iter().map(String::as_str))
                })
            };
            let some_rows = |reader: &Self| -> Result<Vec<usize>> {
                reader.placed(value, &field)?.iter().map(|(text, place)| row(text, place)).collect()
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
                "title" => picture.title = self.prose(value, &field)?,
                "measure" => {
                    let text = self.text(value, &field)?;
                    let parts: Vec<&str> = text.split('.').collect();
                    let (first, more) = parts.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
                    picture.measure = names.measure(first, more, &place)?.0;
                    measured = place;
                }
                "rows" => picture.rows = some_rows(self)?,
                "benefit" => picture.benefit = some_rows(self)?,
                "x" => picture.x = Some(axis(&self.text(value, &field)?)?),
                "y" => picture.y = Some(axis(&self.text(value, &field)?)?),
                "against" => picture.against = Some(row(&self.text(value, &field)?, &place)?),
                "log" => {
                    for (text, place) in self.placed(value, &field)? {
                        match text.as_str() {
                            "x" => picture.log.0 = true,
                            "y" => picture.log.1 = true,
                            "xy" => picture.log = (true, true),
                            _ => {
                                return Err(ScenarioError::unknown(
                                    &place,
                                    "axis of a picture",
                                    &text,
                                    ["x", "y", "xy"],
                                ));
                            }
                        }
                    }
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
        let wanted = match picture.kind.as_str() {
            "line" if picture.x.is_none() => "x",
            "heat" if picture.x.is_none() || picture.y.is_none() => "x and y",
            _ => "",
        };
        if !wanted.is_empty() {
            let place = self.source.place(&whole.span(), field);
            let problem = format!("a picture of the kind {} has {wanted}", picture.kind);
            let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            return Err(ScenarioError::new(&place, Fault::Missing, "", &problem)
                .allow(&format!("x = AXIS, y = AXIS; the axes are {}", known.join(", "))));
        }
        if !picture.benefit.is_empty() && picture.measure != "goodput_mbps" {
            let place = self.source.place(&whole.span(), &format!("{field}.benefit"));
            let problem = "what several paths gain is a matter of goodput";
            return Err(ScenarioError::new(&place, Fault::Conflict, &picture.measure, problem)
                .allow("measure = \"goodput_mbps\""));
        }
        if picture.rows.is_empty() {
            picture.rows = (0..rows.len()).collect();
        }
        picture.panels = panels(axes, &[picture.x, picture.y]);
        self.experiment.pictures.push(picture);
        self.places.pictures.push(measured);
        Ok(())
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
