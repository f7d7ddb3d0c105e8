//! Joins the results of several files about one link.

use super::finding::{Finding, Worth};
use crate::estimate::{Estimate, Origin};
use plait_lab::links::{Known, Link};

/// What several files say about a link.
#[derive(Clone, PartialEq, Debug)]
pub struct Joined {
    /// The link.
    pub link: Link,
    /// Remarks for the reader about files that contradict each other.
    pub remarks: Vec<String>,
}

/// The values of a key that count.
struct Group<'a> {
    key: &'static str,
    worth: Worth,
    values: Vec<&'a Known>,
}

/// Joins the findings of one link; their order does not matter. Of the values of a key, those that were measured for their
/// own sake count. If there are several, the value is their mean, and the range holds the ranges of all.
#[must_use]
pub fn join(name: &str, findings: &[Finding]) -> Joined {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (key, known, worth) in findings.iter().flat_map(|it| &it.values) {
        match groups.iter_mut().find(|it| it.key == *key) {
            Some(group) if *worth < group.worth => {}
            Some(group) if *worth == group.worth => group.values.push(known),
            Some(group) => (group.worth, group.values) = (*worth, vec![known]),
            None => groups.push(Group { key, worth: *worth, values: vec![known] }),
        }
    }
    let mut joined = Joined { link: Link::new(name), remarks: Vec::new() };
    // A trace is a rate, so a mean rate beside it is left out.
    for (rate, trace) in [("rate_down", "trace"), ("rate_up", "trace_up")] {
        let Some(trace) = groups.iter().find(|it| it.key == trace) else { continue };
        let source = trace.sources();
        let left_out = groups.iter().find(|it| it.key == rate && it.worth > Worth::Nothing);
        joined.remarks.extend(left_out.map(|it| {
            let sources = it.sources();
            format!(
                "{rate}: the trace counts ({source}), and the mean rate is left out ({sources})"
            )
        }));
        groups.retain(|it| it.key != rate);
    }
    for group in &groups {
        joined.remarks.extend(group.contradiction());
        joined.link.set(group.key, group.known());
    }
    joined
}

impl Group<'_> {
    /// Returns the sources of the values.
    fn sources(&self) -> String {
        let mut sources: Vec<&str> = self.values.iter().map(|it| it.source.as_str()).collect();
        sources.sort_unstable();
        sources.dedup();
        sources.join(", ")
    }

    /// Returns the values as numbers, with the unit; `None` if one is no number.
    fn estimates(&self) -> Option<(Vec<Estimate>, Unit)> {
        let unit = Unit::of(self.values.first()?.value.as_deref()?)?;
        let number = |known: &&Known| {
            let value = unit.number(known.value.as_deref()?)?;
            let Some((low, high)) = &known.range else {
                return Some(Estimate { value, low: value, high: value });
            };
            Some(Estimate { value, low: unit.number(low)?, high: unit.number(high)? })
        };
        Some((self.values.iter().map(number).collect::<Option<_>>()?, unit))
    }

    /// Returns the joint value.
    fn known(&self) -> Known {
        // The day of the latest file, whatever their order.
        let latest = self.values.iter().max_by_key(|it| (&it.date, &it.source, &it.value));
        let Some(latest) = latest else { return Known::unknown("", "") };
        let Some((estimates, unit)) = self.estimates().filter(|it| it.0.len() > 1) else {
            return (*latest).clone();
        };
        let origin = Origin { source: self.sources(), date: latest.date.clone() };
        unit.known(joint(&estimates), &origin)
    }

    /// Returns a remark if the ranges have no common value.
    fn contradiction(&self) -> Option<String> {
        let differ = match self.estimates() {
            Some((all, _)) => {
                let lows = all.iter().map(|it| it.low);
                let highs = all.iter().map(|it| it.high);
                lows.fold(0.0, f64::max) > highs.fold(f64::INFINITY, f64::min)
            }
            None => self.values.iter().any(|it| it.value != self.values[0].value),
        };
        let mut each: Vec<String> = self
            .values
            .iter()
            .map(|it| format!("{} ({})", it.value.as_deref().unwrap_or_default(), it.source))
            .collect();
        each.sort();
        let values = each.join(" and ");
        let consequence = match self.estimates() {
            Some(_) => "the range holds all",
            None => "the one of the latest file counts",
        };
        differ.then(|| format!("{}: the files disagree: {values}; {consequence}", self.key))
    }
}

/// Returns the mean of the estimates, with the range that holds all of theirs. The mean is geometric, unless one is zero.
fn joint(estimates: &[Estimate]) -> Estimate {
    let count = estimates.len() as f64;
    let value = match estimates.iter().all(|it| it.value > 0.0) {
        true => libm::exp(estimates.iter().map(|it| libm::log(it.value)).sum::<f64>() / count),
        false => estimates.iter().map(|it| it.value).sum::<f64>() / count,
    };
    let low = estimates.iter().map(|it| it.low).fold(value, f64::min);
    let high = estimates.iter().map(|it| it.high).fold(value, f64::max);
    Estimate { value, low, high }
}

/// The units that [`Estimate`] writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Bits,
    Milliseconds,
    Percent,
}

impl Unit {
    fn of(text: &str) -> Option<Unit> {
        [Unit::Bits, Unit::Milliseconds, Unit::Percent]
            .into_iter()
            .find(|unit| unit.number(text).is_some())
    }

    /// Returns the number of a text in bits per second, milliseconds or percent.
    fn number(self, text: &str) -> Option<f64> {
        let (number, factor) = match self {
            Unit::Bits => match text.strip_suffix("mbit") {
                Some(number) => (number, 1e6),
                None => (text.strip_suffix("bit")?, 1.0),
            },
            Unit::Milliseconds => (text.strip_suffix("ms")?, 1.0),
            Unit::Percent => (text.strip_suffix('%')?, 1.0),
        };
        number.parse::<f64>().ok().map(|it| it * factor)
    }

    fn known(self, estimate: Estimate, origin: &Origin) -> Known {
        match self {
            Unit::Bits => estimate.rate(origin),
            Unit::Milliseconds => estimate.time(origin),
            Unit::Percent => estimate.share(origin),
        }
    }
}
