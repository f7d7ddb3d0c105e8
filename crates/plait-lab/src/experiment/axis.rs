//! The axes of a sweep: what their points are called, and what they stand for.

use super::design;
use crate::vary::{Number, Unit};
use std::collections::BTreeMap;

/// An axis of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Its name: `{name}` in a text of the file stands for the point.
    pub name: String,
    /// Its points, in order.
    pub points: Vec<Point>,
}

/// A point of an axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// What it is called, and the text that it stands for.
    pub text: String,
    /// Further texts by name: `{axis.field}`.
    pub fields: BTreeMap<String, String>,
}

impl Point {
    /// A point that is its text.
    #[must_use]
    pub fn plain(text: &str) -> Point {
        Point { text: text.trim().to_owned(), fields: BTreeMap::new() }
    }

    /// Its text, or one of its fields, as a number: times in ms, rates in Mbit/s, sizes in bytes,
    /// shares as such.
    #[must_use]
    pub fn number(&self, field: Option<&str>) -> Option<f64> {
        match field {
            Some(field) => number(self.fields.get(field)?),
            None => number(&self.text),
        }
    }
}

impl Axis {
    /// The place of a point by what it is called, or by the same quantity in another unit.
    #[must_use]
    pub fn position(&self, text: &str) -> Option<usize> {
        let same = |point: &Point| point.text == text;
        self.points.iter().position(same).or_else(|| {
            let wanted = Number::parse(text).ok()?;
            self.points.iter().position(|point| Number::parse(&point.text) == Ok(wanted))
        })
    }

    /// The points of a design: its ranges, each with its name. Ranges of one list share a coordinate.
    #[must_use]
    pub(crate) fn designed(
        name: &str,
        count: usize,
        seed: u64,
        ranges: &[Vec<(String, Number, Number)>],
    ) -> Axis {
        let place = |(at, unit_cube): (usize, Vec<f64>)| {
            let field = |(name, low, high): &(String, Number, Number), share: f64| {
                let span = high.amount.saturating_sub(low.amount) as f64;
                let amount = low.amount + (span * share) as u64;
                (name.clone(), Number { amount, unit: low.unit }.to_string())
            };
            let shared = ranges.iter().zip(&unit_cube);
            let fields = shared
                .flat_map(|(list, share)| list.iter().map(|range| field(range, *share)))
                .collect();
            Point { text: (at + 1).to_string(), fields }
        };
        let points = design::points(ranges.len(), count, seed);
        Axis { name: name.to_owned(), points: points.into_iter().enumerate().map(place).collect() }
    }
}

/// A text as a number in the unit that measures have.
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
        let axis = Axis { name: "rtt".into(), points: ["10ms", "1s"].map(Point::plain).into() };
        assert_eq!(axis.position("1000ms"), Some(1));
        assert_eq!(axis.position("10ms"), Some(0));
        assert_eq!(axis.position("11ms"), None);
    }
}
