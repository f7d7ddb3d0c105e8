//! Reads pictures.

use super::super::axis::Axis;
use super::super::extra::OF_TIMES;
use super::super::names::Names;
use super::super::{PANELS, Picture, PictureKind};
use super::{Entry, PICTURE_KEYS, Reader, Result};
use crate::error::{Fault, Place, ScenarioError};
use toml::Spanned;
use toml::de::DeValue;

/// A picture as the file describes it.
#[derive(Default)]
struct Written {
    kind: String,
    title: String,
    measure: String,
    measured: Option<Place>,
    rows: Vec<usize>,
    x: Option<usize>,
    y: Option<usize>,
    pooled: Vec<(usize, Place)>,
    log: (bool, bool),
    against: Option<usize>,
    benefit: Vec<usize>,
}

impl Reader<'_> {
    pub(super) fn picture(
        &mut self,
        whole: &Spanned<DeValue<'_>>,
        entries: &[Entry<'_, '_>],
        field: &str,
    ) -> Result<()> {
        let mut written = Written::default();
        for entry in entries {
            self.picture_key(entry, field, &mut written)?;
        }
        let place = self.source.place(&whole.span(), field);
        if written.kind.is_empty() || written.measure.is_empty() {
            let problem = "a picture has a kind and a measure";
            return Err(ScenarioError::new(&place, Fault::Missing, "", problem));
        }
        let measured = written.measured.take().unwrap_or_else(|| place.clone());
        let picture = self.drawn(written, &place, &measured)?;
        self.experiment.pictures.push(picture);
        self.places.pictures.push(measured);
        Ok(())
    }

    fn picture_key(
        &self,
        (key, value): &Entry<'_, '_>,
        field: &str,
        written: &mut Written,
    ) -> Result<()> {
        let field = format!("{field}.{}", key.get_ref());
        let place = self.source.place(&value.span(), &field);
        let text = || self.text(value, &field);
        let rows = || -> Result<Vec<usize>> {
            let texts = self.placed(value, &field)?;
            texts.iter().map(|(text, place)| self.row_of(text, place)).collect()
        };
        match key.get_ref().as_ref() {
            "kind" => {
                written.kind = text()?;
                if !PictureKind::NAMES.contains(&written.kind.as_str()) {
                    let known = PictureKind::NAMES;
                    return Err(ScenarioError::unknown(&place, "picture", &written.kind, known));
                }
            }
            "title" => written.title = self.prose(value, &field)?,
            "measure" => {
                written.measure = text()?;
                written.measured = Some(place);
            }
            "rows" => written.rows = rows()?,
            "benefit" => written.benefit = rows()?,
            "x" => written.x = Some(self.axis_of(&text()?, &place)?),
            "y" => written.y = Some(self.axis_of(&text()?, &place)?),
            "pool" => {
                for (text, place) in self.placed(value, &field)? {
                    written.pooled.push((self.axis_of(&text, &place)?, place));
                }
            }
            "against" => written.against = Some(self.row_of(&text()?, &place)?),
            "log" => {
                for (text, place) in self.placed(value, &field)? {
                    match text.as_str() {
                        "x" => written.log.0 = true,
                        "y" => written.log.1 = true,
                        "xy" => written.log = (true, true),
                        _ => {
                            let (what, known) = ("axis of a picture", ["x", "y", "xy"]);
                            return Err(ScenarioError::unknown(&place, what, &text, known));
                        }
                    }
                }
            }
            _ => return Err(self.unknown(key, "key of a picture", PICTURE_KEYS.iter().copied())),
        }
        Ok(())
    }

    fn row_of(&self, text: &str, place: &Place) -> Result<usize> {
        let rows = || self.experiment.rows.iter().map(|row| row.name.as_str());
        let found = rows().position(|row| row == text);
        found.ok_or_else(|| ScenarioError::unknown(place, "row", text, rows()))
    }

    fn axis_of(&self, text: &str, place: &Place) -> Result<usize> {
        let axes = || self.experiment.axes.iter().map(|axis| axis.name.as_str());
        let found = axes().position(|axis| axis == text);
        found.ok_or_else(|| ScenarioError::unknown(place, "axis", text, axes()))
    }

    /// Returns the picture for a description at `place` with its measure at `measured`.
    fn drawn(&self, written: Written, place: &Place, measured: &Place) -> Result<Picture> {
        let axes = &self.experiment.axes;
        let Written {
            kind: name, title, measure, rows, x, y, pooled, log, against, benefit, ..
        } = written;
        let measure = match name.as_str() {
            "time" => over_time(&measure, measured)?,
            _ => {
                let rows = self.experiment.row_names();
                let names = Names { rows: &rows, axes, paths: &self.experiment.paths };
                let parts: Vec<&str> = measure.split('.').collect();
                let (first, more) = parts.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
                names.measure(first, more, measured)?.0
            }
        };
        let kind = PictureKind::new(&name, x, y, against).map_err(|(fault, has)| {
            let problem = format!("a picture of the kind {name} has {has}");
            let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            let allowed = match fault {
                Fault::Missing => format!("x = AXIS, y = AXIS; the axes are {}", known.join(", ")),
                _ => "pool = [AXIS, ...] takes the runs of an axis together".to_owned(),
            };
            ScenarioError::new(place, fault, "", &problem).allow(&allowed)
        })?;
        if !benefit.is_empty() && measure != "goodput_mbps" {
            let place = below(place, "benefit");
            let problem = "the benefit of several paths is defined only for goodput";
            return Err(ScenarioError::new(&place, Fault::Conflict, &measure, problem)
                .allow("measure = \"goodput_mbps\""));
        }
        let rows = match rows.is_empty() {
            true => (0..self.experiment.rows.len()).collect(),
            false => rows,
        };
        let (pool, panels) = self.panels(&kind, &pooled, place)?;
        Ok(Picture { kind, title, measure, rows, pool, panels, log, benefit })
    }

    /// Returns the combinations of points to pool, and the combinations with a panel each.
    fn panels(
        &self,
        kind: &PictureKind,
        pooled: &[(usize, Place)],
        place: &Place,
    ) -> Result<(Vec<AxisPoints>, Vec<AxisPoints>)> {
        let axes = &self.experiment.axes;
        let mut drawn: Vec<usize> = kind.x().into_iter().chain(kind.y()).collect();
        for (axis, place) in pooled {
            if drawn.contains(axis) {
                let problem = "an axis can be used only once, as x, as y or in pool";
                return Err(ScenarioError::new(place, Fault::Conflict, &axes[*axis].name, problem));
            }
            drawn.push(*axis);
        }
        let panels = places(axes, &|axis| !drawn.contains(&axis));
        if panels.len() > PANELS {
            let rest = (0..axes.len()).filter(|it| !drawn.contains(it));
            let rest: Vec<&str> = rest.map(|it| axes[it].name.as_str()).collect();
            let (count, rest) = (panels.len().to_string(), rest.join(", "));
            let problem = format!("{PANELS} panels at most, one for each point of {rest}");
            return Err(ScenarioError::new(place, Fault::Conflict, &count, &problem)
                .allow("x = AXIS draws an axis, pool = [AXIS, ...] takes its runs together"));
        }
        Ok((places(axes, &|axis| pooled.iter().any(|(it, _)| *it == axis)), panels))
    }
}

/// Points, each as axis and point.
type AxisPoints = Vec<(usize, usize)>;

/// Returns the same place with `name` below its field.
fn below(place: &Place, name: &str) -> Place {
    let mut place = place.clone();
    if let Place::File { field, .. } = &mut place {
        *field = format!("{field}.{name}");
    }
    place
}

/// Returns the measure of a picture over time.
fn over_time(measure: &str, place: &Place) -> Result<String> {
    if OF_TIMES.iter().any(|known| known.name == measure) {
        return Ok(measure.to_owned());
    }
    let known = OF_TIMES.iter().map(|known| known.name);
    Err(ScenarioError::unknown(place, "measure over the time", measure, known))
}

/// Returns every combination of the points of the selected axes; one empty combination if there are none.
fn places(axes: &[Axis], these: &dyn Fn(usize) -> bool) -> Vec<AxisPoints> {
    let mut places = vec![Vec::new()];
    for (axis, known) in axes.iter().enumerate().filter(|(axis, _)| these(*axis)) {
        let more = |place: &AxisPoints| -> Vec<AxisPoints> {
            (0..known.points.len())
                .map(|point| place.iter().copied().chain([(axis, point)]).collect())
                .collect()
        };
        places = places.iter().flat_map(more).collect();
    }
    places
}
