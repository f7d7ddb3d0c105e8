//! `--vary`: repeats a comparison for each value of a setting. Two varied settings make a grid.
//!
//! ```text
//! lte.rtt=40ms..400ms:10      ten values from 40 to 400 ms, evenly spaced, both ends included
//! lte.rtt=40ms,80ms,160ms     these values
//! rcvbuf=64KiB,256KiB,1MiB    a setting that belongs to no path
//! ```

use super::vary::{Point, Target, Vary};
use super::{
    Path, PathKey, PlacedText, RawScenario, SETTINGS, Scenario, Setting, canonical, nearest_key,
};
use crate::error::{Fault, Place, ScenarioError};
use plait_app::quantity::{self, Bytes, Percent};
use plait_base::{Chance, Rate, Span};
use std::fmt;

/// Maximum number of values of a sweep.
const MAX_VALUES: u64 = 100;

/// Maximum number of varied settings: the axes of a grid.
pub(crate) const MAX_VARIED: usize = 2;

/// Maximum number of points of a grid.
pub(crate) const MAX_POINTS: usize = 400;

const GRAMMAR: &str = "PATH.KEY=FROM..TO:POINTS or PATH.KEY=A,B,C, such as lte.rtt=40ms..400ms:10 or \
     rcvbuf=64KiB,1MiB";

impl Vary {
    /// Reads a sweep over a setting of this scenario.
    ///
    /// # Errors
    /// If it does not follow the grammar, or names a path or key that does not exist or cannot be
    /// varied. The values are not checked here, except that the ends of a range must be quantities
    /// of the same kind.
    pub(crate) fn parse(given: &PlacedText, scenario: &Scenario) -> Result<Vary, ScenarioError> {
        let malformed = |problem: &str| given.error(Fault::Invalid, problem).allow(GRAMMAR);
        let Some((name, values)) = given.text.split_once('=') else {
            return Err(malformed("not a sweep"));
        };
        let name = name.trim();
        let target = target(name, given, &scenario.paths)?;
        let key = if let Target::Path(_, key) = target { PathKey::named(key) } else { None };
        let spans = key.is_some_and(|key| key.spans);
        let points = if values.contains("..") && !spans {
            range(values).map_err(|problem| malformed(&problem))?
        } else {
            listed(values)
        };
        if points.iter().any(String::is_empty) {
            return Err(malformed("a value is missing"));
        }
        if points.len() as u64 > MAX_VALUES {
            return Err(malformed(&format!("more than {MAX_VALUES} values")));
        }
        let repeated = points.iter().enumerate().find(|(at, value)| points[..*at].contains(value));
        if let Some((_, value)) = repeated {
            let error = given.error(Fault::Conflict, &format!("`{value}` stands there twice"));
            return Err(error.allow("each value once"));
        }
        Ok(Vary { given: given.clone(), name: name.to_owned(), target, points })
    }

    /// Returns the place of its values: `--vary a.rtt`.
    fn place_of_values(&self) -> Place {
        let mut place = self.given.place.clone();
        let (Place::Argument(text) | Place::File { field: text, .. }) = &mut place;
        *text = format!("{text} {}", self.name);
        place
    }

    /// Returns the raw scenario with this value. If the value replaces a key for both directions,
    /// the other direction keeps its present value.
    pub(crate) fn apply(&self, raw: &RawScenario, scenario: &Scenario, value: &str) -> RawScenario {
        let mut raw = raw.clone();
        let given = PlacedText { place: self.place_of_values(), text: value.to_owned() };
        match self.target {
            Target::Setting(name) => raw.replace(name, given),
            Target::Path(index, key) => {
                let Some(key) = PathKey::named(key) else { return raw };
                let (Some(path), Some(now)) = (raw.paths.get_mut(index), scenario.paths.get(index))
                else {
                    return raw;
                };
                // The other direction keeps the value that was given for both.
                let other = match key.name {
                    "owd_down" => Some(("owd_up", now.delay.up.to_string())),
                    "owd_up" => Some(("owd_down", now.delay.down.to_string())),
                    "trace" if path.field("trace_up").is_none() => {
                        path.field("rate").map(|rate| ("rate_up", rate.text.clone()))
                    }
                    _ => None,
                };
                let goes = |name: &str| name == key.name || key.displaces.contains(&name);
                path.fields.retain(|(name, _)| !goes(name));
                if let Some((other, text)) = other.filter(|other| path.field(other.0).is_none()) {
                    path.fields.push((other.to_owned(), PlacedText { text, ..given.clone() }));
                }
                path.fields.push((key.name.to_owned(), given));
            }
        }
        raw
    }
}

impl Scenario {
    /// Returns the points of the sweep, in order; none without `--vary`. `read` gives the traces
    /// again.
    ///
    /// # Errors
    /// If a value is invalid, or a trace can no longer be read.
    pub fn points(&self, read: crate::scenario::Reader<'_>) -> Result<Vec<Point>, ScenarioError> {
        if self.vary.is_empty() {
            return Ok(Vec::new());
        }
        let mut raw = self.raw();
        raw.settings.remove("vary");
        grid(&self.vary, &raw, self, read)
    }
}

/// Returns the points of a grid. The values of the last setting vary fastest.
pub(crate) fn grid(
    varied: &[Vary],
    raw: &RawScenario,
    scenario: &Scenario,
    read: crate::scenario::Reader<'_>,
) -> Result<Vec<Point>, ScenarioError> {
    let mut places: Vec<(Vec<(String, String)>, RawScenario)> = vec![(Vec::new(), raw.clone())];
    for vary in varied {
        let along = |(values, raw): &(Vec<(String, String)>, RawScenario)| {
            let at = |value: &String| {
                let mut values = values.clone();
                values.push((vary.name.clone(), value.clone()));
                (values, vary.apply(raw, scenario, value))
            };
            vary.points.iter().map(at).collect::<Vec<_>>()
        };
        places = places.iter().flat_map(along).collect();
    }
    let built = |(values, raw): (Vec<(String, String)>, RawScenario)| {
        Ok(Point { values, scenario: raw.build_point(read)? })
    };
    places.into_iter().map(built).collect()
}

fn target(name: &str, given: &PlacedText, paths: &[Path]) -> Result<Target, ScenarioError> {
    let Some((path, key)) = name.rsplit_once('.') else {
        let known = Setting::named(name);
        return match known {
            Some(setting) if setting.varies => Ok(Target::Setting(setting.name)),
            _ => {
                let what = if known.is_some() { "setting for a sweep" } else { "setting" };
                let names = SETTINGS.iter().filter(|it| it.varies).map(|it| it.name);
                Err(ScenarioError::unknown(&given.place, what, name, names))
            }
        };
    };
    let Some(index) = paths.iter().position(|known| known.name == path) else {
        let names = paths.iter().map(|known| known.name.as_str());
        return Err(ScenarioError::unknown(&given.place, "path", path, names));
    };
    let Some(key) = PathKey::named(canonical(key)) else {
        let names = PathKey::names();
        let error = ScenarioError::unknown(&given.place, "key for a sweep", key, names.clone());
        return Err(nearest_key(error, names));
    };
    Ok(Target::Path(index, key.name))
}

/// Splits a list of values. A parameter belongs to the value before it: `0%,ge:p=1%,r=30%,bad=50%`.
fn listed(values: &str) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for piece in values.split(',').map(str::trim) {
        match list
            .last_mut()
            .filter(|before| !before.is_empty() && plait_params::is_parameter(piece))
        {
            Some(before) => *before = format!("{before},{piece}"),
            None => list.push(piece.to_owned()),
        }
    }
    list
}

/// Reads `FROM..TO:POINTS`.
pub(crate) fn range(text: &str) -> Result<Vec<String>, String> {
    let (from, rest) = text.split_once("..").ok_or("not a range")?;
    let (to, points) = rest.rsplit_once(':').ok_or("the number of points is missing")?;
    let points: u64 = points.trim().parse().map_err(|_| "not a number of points")?;
    if !(2..=MAX_VALUES).contains(&points) {
        return Err(format!("a range has from 2 to {MAX_VALUES} points"));
    }
    let (from, to) = (Number::parse(from)?, Number::parse(to)?);
    if from.unit != to.unit {
        return Err("both ends need units of one kind".to_owned());
    }
    let value = |at: u64| {
        let (low, high) = (i128::from(from.amount), i128::from(to.amount));
        let steps = i128::from(points) - 1;
        let amount = low + ((high - low) * i128::from(at)).div_euclid(steps);
        Number { amount: u64::try_from(amount).unwrap_or(from.amount), unit: from.unit }
    };
    Ok((0..points).map(|at| value(at).to_string()).collect())
}

/// A quantity in its base unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number {
    pub(crate) amount: u64,
    pub(crate) unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Time,
    Rate,
    Bytes,
    Percent,
    Packets,
    Segments,
    None,
}

impl Number {
    pub(crate) fn parse(text: &str) -> Result<Number, String> {
        let text = text.trim();
        let number = |unit, amount| Ok(Number { amount, unit });
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            let amount = text.parse().map_err(|_| format!("`{text}` is too large"))?;
            return number(Unit::None, amount);
        }
        if let Ok(span) = quantity::time(text) {
            return number(Unit::Time, span.as_nanos());
        }
        if let Ok(rate) = quantity::rate(text)
            && !rate.is_infinite()
        {
            return number(Unit::Rate, rate.as_bps());
        }
        if let Ok(bytes) = quantity::bytes(text) {
            return number(Unit::Bytes, bytes);
        }
        if let Ok(chance) = quantity::percent(text) {
            return number(Unit::Percent, u64::from(chance.as_ppb()));
        }
        if let Ok(packets) = quantity::packets(text) {
            return number(Unit::Packets, u64::from(packets));
        }
        if let Ok(segments) = quantity::segments(text) {
            return number(Unit::Segments, u64::from(segments));
        }
        Err(format!("an end of the range is not a number with a unit: `{text}`"))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = self.amount;
        match self.unit {
            Unit::Time => Span::from_nanos(amount).fmt(f),
            Unit::Rate => Rate::from_bps(amount).fmt(f),
            Unit::Bytes => Bytes(amount).fmt(f),
            Unit::Percent => {
                Percent(Chance::from_ppb(u32::try_from(amount).unwrap_or(u32::MAX))).fmt(f)
            }
            Unit::Packets => write!(f, "{amount}pkt"),
            Unit::Segments => write!(f, "{amount}seg"),
            Unit::None => write!(f, "{amount}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_linear_and_has_both_ends() {
        let ten = range("40ms..400ms:10").unwrap();
        assert_eq!(ten[..3], ["40ms", "80ms", "120ms"]);
        assert_eq!((ten.len(), ten[9].as_str()), (10, "400ms"));
        assert_eq!(range("1%..2%:3").unwrap(), ["1%", "1.5%", "2%"]);
        assert_eq!(range("10mbit..5mbit:3").unwrap(), ["10mbit", "7.5mbit", "5mbit"]);
        assert_eq!(range("10..30:3").unwrap(), ["10", "20", "30"]);
        assert_eq!(range("5seg..15seg:3").unwrap(), ["5seg", "10seg", "15seg"]);
    }

    #[test]
    fn a_bad_range_says_why() {
        for bad in ["1ms..2s", "1ms..2mbit:3", "1ms..2ms:1", "1ms..2ms:9999", "..:3", "a..b:2"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
