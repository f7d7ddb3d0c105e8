//! The axes of a sweep, and the names and texts of their points.

use super::design;
use crate::scenario::sweep::{Number, Unit};
use plait_base::RandomStream;
use std::collections::BTreeMap;

/// An axis of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Name of the axis. `{name}` in a text of the file is replaced by the point.
    pub name: String,
    /// Label in figures, with its unit if the points have none. If empty, figures use the name.
    pub label: String,
    /// Its points, in order.
    pub points: Vec<Point>,
    /// The design that the points were drawn from, if there is one.
    pub(crate) design: Option<Design>,
}

/// Points that fill some ranges evenly.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Design {
    /// Number of points in one draw.
    pub(crate) count: usize,
    /// The seed of the first draw.
    pub(crate) seed: u64,
    /// True if the points are a sample of networks. Another seed then draws other networks, more runs draw
    /// more of them, and intervals include the variation between networks.
    pub(crate) sample: bool,
    /// Name, least and greatest value. The ranges in one list share a coordinate.
    pub(crate) ranges: Vec<Vec<(String, Number, Number)>>,
    /// Fields that are computed from others.
    pub(crate) derived: Vec<Derived>,
}

/// A field of a point that is a share of the least of some other fields.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Derived {
    /// Name of the field.
    pub(crate) name: String,
    /// The fields that it is computed from.
    pub(crate) of: Vec<String>,
    /// Share of the least of them.
    pub(crate) share: f64,
    /// Upper limit of the field.
    pub(crate) most: Number,
}

/// A point of an axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Name of the point, and the text that replaces the placeholder.
    pub text: String,
    /// Further texts by name: `{axis.field}`.
    pub fields: BTreeMap<String, String>,
}

impl Point {
    /// Returns a point whose name is its text.
    #[must_use]
    pub fn plain(text: &str) -> Point {
        Point { text: text.trim().to_owned(), fields: BTreeMap::new() }
    }

    /// Returns the text of the point, or of one of its fields, as a number. Times are in ms, rates
    /// in Mbit/s, and sizes in bytes. Shares stay as they are.
    #[must_use]
    pub fn number(&self, field: Option<&str>) -> Option<f64> {
        match field {
            Some(field) => number(self.fields.get(field)?),
            None => number(&self.text),
        }
    }
}

impl Axis {
    /// Returns the index of the point with this text, or with the same quantity in another unit.
    #[must_use]
    pub fn position(&self, text: &str) -> Option<usize> {
        let same = |point: &Point| point.text == text;
        self.points.iter().position(same).or_else(|| {
            let wanted = Number::parse(text).ok()?;
            self.points.iter().position(|point| Number::parse(&point.text) == Ok(wanted))
        })
    }

    /// Returns an axis without a design.
    #[must_use]
    pub fn plain(name: &str, points: Vec<Point>) -> Axis {
        Axis { name: name.to_owned(), label: String::new(), points, design: None }
    }

    /// Returns true if the points are a sample of networks.
    #[must_use]
    pub fn is_sample(&self) -> bool {
        self.design.as_ref().is_some_and(|design| design.sample)
    }

    /// Returns an axis with the points of a design.
    #[must_use]
    pub(crate) fn designed(name: &str, design: Design) -> Axis {
        let points = design.draws(1);
        Axis { name: name.to_owned(), label: String::new(), points, design: Some(design) }
    }

    /// Draws `times` as many networks from `seed`. With the seed of the design, the first networks stay the
    /// same. An axis that is not a sample does not change.
    pub(super) fn redraw(&mut self, seed: u64, times: usize) {
        if let Some(design) = self.design.as_mut().filter(|design| design.sample) {
            design.seed = seed;
            self.points = design.draws(times);
        }
    }
}

impl Design {
    fn draws(&self, times: usize) -> Vec<Point> {
        (0..times).flat_map(|draw| self.draw(draw)).collect()
    }

    /// Returns the points of one draw. Draw 0 uses the seed itself.
    fn draw(&self, draw: usize) -> Vec<Point> {
        let seed = match draw {
            0 => self.seed,
            _ => RandomStream::new(self.seed, &["networks", &draw.to_string()]).bits(),
        };
        let place = |(at, unit_cube): (usize, Vec<f64>)| {
            let field = |(name, low, high): &(String, Number, Number), share: f64| {
                let span = high.amount.saturating_sub(low.amount) as f64;
                let amount = low.amount + (span * share) as u64;
                (name.clone(), Number { amount, unit: low.unit }.to_string())
            };
            let shared = self.ranges.iter().zip(&unit_cube);
            let mut fields: BTreeMap<String, String> = shared
                .flat_map(|(list, share)| list.iter().map(|range| field(range, *share)))
                .collect();
            for derived in &self.derived {
                let of = derived.of.iter().filter_map(|name| Number::parse(fields.get(name)?).ok());
                let least = of.map(|it| it.amount).min().unwrap_or(u64::MAX);
                let amount = ((least as f64 * derived.share) as u64).min(derived.most.amount);
                let text = Number { amount, unit: derived.most.unit }.to_string();
                fields.insert(derived.name.clone(), text);
            }
            let number = (draw * self.count + at + 1) as u64;
            // Seeds other random choices of the point, such as the sessions of an application.
            let own = match self.seed {
                1 => number,
                seed => RandomStream::new(seed, &["session", &number.to_string()]).below(1 << 32),
            };
            fields.insert("seed".to_owned(), own.to_string());
            Point { text: number.to_string(), fields }
        };
        let points = design::points(self.ranges.len(), self.count, seed);
        points.into_iter().enumerate().map(place).collect()
    }
}

/// Returns a text as a number in the unit of the measures.
fn number(text: &str) -> Option<f64> {
    let number =
        Number::parse(text).ok().or_else(|| Number::parse(text.split(':').nth(1)?).ok())?;
    let amount = number.amount as f64;
    Some(match number.unit {
        Unit::Time | Unit::Rate => amount / 1e6,
        Unit::Percent => amount / 1e9,
        Unit::Bytes | Unit::Packets | Unit::Segments | Unit::None => amount,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_numbers_in_the_units_of_measures() {
        let number = |text: &str| Point::plain(text).number(None);
        assert_eq!(number("40ms"), Some(40.0));
        assert_eq!(number("30mbit"), Some(30.0));
        assert_eq!(number("64KiB"), Some(65_536.0));
        assert_eq!(number("download:64KiB"), Some(65_536.0));
        assert_eq!(number("1%"), Some(0.01));
        assert_eq!((number("15"), number("on")), (Some(15.0), None));
    }

    #[test]
    fn a_point_is_found_in_another_unit() {
        let axis = Axis::plain("rtt", ["10ms", "1s"].map(Point::plain).into());
        assert_eq!(axis.position("1000ms"), Some(1));
        assert_eq!(axis.position("10ms"), Some(0));
        assert_eq!(axis.position("11ms"), None);
    }
}
