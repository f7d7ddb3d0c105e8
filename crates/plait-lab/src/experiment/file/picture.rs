//! Pictures.

use super::super::axis::Axis;
use super::super::extra::OF_TIMES;
use super::super::names::Names;
use super::super::{PANELS, PICTURES, Picture};
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
            pool: Vec::new(),
            panels: Vec::new(),
            log: (false, false),
            against: None,
            benefit: Vec::new(),
        };
        let rows = self.experiment.row_names();
        let axes = &self.experiment.axes;
        let names = Names { rows: &rows, axes, paths: &self.experiment.paths };
        let (mut measure, mut pooled) = (String::new(), Vec::new());
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
            let axis = |text: &str, place: &Place| {
                names.axis(text).ok_or_else(|| {
                    let known = axes.iter().map(|axis| axis.name.as_str());
                    ScenarioError::unknown(place, "axis", text, known)
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
                    measure = self.text(value, &field)?;
                    measured = place;
                }
                "rows" => picture.rows = some_rows(self)?,
                "benefit" => picture.benefit = some_rows(self)?,
                "x" => picture.x = Some(axis(&self.text(value, &field)?, &place)?),
                "y" => picture.y = Some(axis(&self.text(value, &field)?, &place)?),
                "pool" => {
                    for (text, place) in self.placed(value, &field)? {
                        pooled.push((axis(&text, &place)?, place));
                    }
                }
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
        if picture.kind.is_empty() || measure.is_empty() {
            let place = self.source.place(&whole.span(), field);
            let problem = "a picture has a kind and a measure";
            return Err(ScenarioError::new(&place, Fault::Missing, "", problem));
        }
        picture.measure = match picture.kind.as_str() {
            "time" => over_time(&measure, &measured)?,
            _ => {
                let parts: Vec<&str> = measure.split('.').collect();
                let (first, more) = parts.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
                names.measure(first, more, &measured)?.0
            }
        };
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
        let needless = match picture.kind.as_str() {
            "time" if picture.x.is_some() || picture.y.is_some() => "neither x nor y",
            "heat" | "time" => "",
            _ if picture.y.is_some() => "no y",
            _ => "",
        };
        if !needless.is_empty() {
            let place = self.source.place(&whole.span(), field);
            let problem = format!("a picture of the kind {} has {needless}", picture.kind);
            return Err(ScenarioError::new(&place, Fault::Conflict, "", &problem)
                .allow("pool = [AXIS, ...] takes the runs of an axis together"));
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
        let mut drawn: Vec<usize> = picture.x.into_iter().chain(picture.y).collect();
        for (axis, place) in &pooled {
            if drawn.contains(axis) {
                let problem = "an axis is drawn, or its runs are taken together, once";
                return Err(ScenarioError::new(place, Fault::Conflict, &axes[*axis].name, problem));
            }
            drawn.push(*axis);
        }
        let is_pooled = |axis: usize| pooled.iter().any(|(it, _)| *it == axis);
        picture.pool = places(axes, &is_pooled);
        picture.panels = places(axes, &|axis| !drawn.contains(&axis));
        if picture.panels.len() > PANELS {
            let place = self.source.place(&whole.span(), field);
            let (count, rest) = (picture.panels.len(), (0..axes.len()));
            let rest: Vec<&str> =
                rest.filter(|it| !drawn.contains(it)).map(|it| axes[it].name.as_str()).collect();
            let problem =
                format!("{PANELS} panels at most, one for each point of {}", rest.join(", "));
            return Err(ScenarioError::new(&place, Fault::Conflict, &count.to_string(), &problem)
                .allow("x = AXIS draws an axis, pool = [AXIS, ...] takes its runs together"));
        }
        self.experiment.pictures.push(picture);
        self.places.pictures.push(measured);
        Ok(())
    }
}

/// The measure of a time line.
fn over_time(measure: &str, place: &Place) -> Result<String> {
    if OF_TIMES.iter().any(|known| known.0 == measure) {
        return Ok(measure.to_owned());
    }
    let known = OF_TIMES.iter().map(|known| known.0);
    Err(ScenarioError::unknown(place, "measure over the time", measure, known))
}

/// Each combination of the points of some axes; one without any where there are none.
fn places(axes: &[Axis], these: &dyn Fn(usize) -> bool) -> Vec<Vec<(usize, usize)>> {
    let mut places = vec![Vec::new()];
    for (axis, known) in axes.iter().enumerate().filter(|(axis, _)| these(*axis)) {
        let more = |place: &Vec<(usize, usize)>| -> Vec<Vec<(usize, usize)>> {
            (0..known.points.len())
                .map(|point| place.iter().copied().chain([(axis, point)]).collect())
                .collect()
        };
        places = places.iter().flat_map(more).collect();
    }
    places
}
