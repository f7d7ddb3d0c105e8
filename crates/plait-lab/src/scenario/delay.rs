//! Propagation delay in a scenario: constant, or with steps.

use super::path::Both;
use super::path_parse::{bounded, steps_of};
use super::placed_text::PlacedText;
use crate::error::ScenarioError;
use plait_base::{Span, Time};
use std::fmt;

/// The propagation delay of one direction, or of a round trip.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Delay {
    /// The initial delay.
    pub start: Span,
    /// Later delays, each from its time on, in the order of time.
    pub steps: Vec<(Time, Span)>,
}

impl From<Span> for Delay {
    fn from(start: Span) -> Delay {
        Delay { start, steps: Vec::new() }
    }
}

impl Delay {
    /// Reads `25ms`, or `25ms@0s/80ms@10s`.
    pub(super) fn parse(given: &PlacedText) -> Result<Delay, ScenarioError> {
        if !given.text.contains(['@', '/']) {
            return bounded(given, &given.text).map(Delay::from);
        }
        let example = "25ms@0s/80ms@10s";
        let mut list = steps_of(given, example, |text| bounded(given, text))?.into_iter();
        let start = list.next().map_or(Span::ZERO, |(_, span)| span);
        Ok(Delay { start, steps: list.collect() })
    }

    /// Splits a round trip evenly. An odd nanosecond goes to the way up.
    pub(super) fn split(&self) -> Both<Delay> {
        let half = |span: Span| span.over(2);
        let rest = |span: Span| span.minus(span.over(2));
        Both { down: self.each(half), up: self.each(rest) }
    }

    fn each(&self, change: impl Fn(Span) -> Span) -> Delay {
        let steps = self.steps.iter().map(|(at, span)| (*at, change(*span))).collect();
        Delay { start: change(self.start), steps }
    }
}

impl Both<Delay> {
    /// Returns the initial round trip.
    #[must_use]
    pub fn round_trip(&self) -> Span {
        self.down.start + self.up.start
    }

    /// Returns the round trip that splits into these two delays, if there is one.
    pub(super) fn whole(&self) -> Option<Delay> {
        let Both { down, up } = self;
        let pairs = down.steps.iter().zip(&up.steps);
        let steps = pairs.map(|(down, up)| (down.0, down.1 + up.1)).collect();
        let whole = Delay { start: self.round_trip(), steps };
        (whole.split() == *self).then_some(whole)
    }
}

/// Writes it as a path has it: `25ms`, or `25ms@0s/80ms@10s`.
impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.start)?;
        if !self.steps.is_empty() {
            f.write_str("@0s")?;
        }
        self.steps.iter().try_for_each(|(at, span)| write!(f, "/{span}@{}", at.since(Time::ZERO)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Place;

    fn parse(text: &str) -> Result<Delay, ScenarioError> {
        Delay::parse(&PlacedText::new(&Place::Argument("--path a:rtt".to_owned()), text))
    }

    #[test]
    fn a_delay_is_written_as_it_is_read() {
        for text in ["25ms", "25ms@0s/80ms@10s", "0s@0s/3ns@1ms/1ms@2s"] {
            let delay = parse(text).unwrap();
            assert_eq!(delay.to_string(), text);
            assert_eq!(delay.split().whole(), Some(delay));
        }
        assert_eq!(parse("25ms@0s").unwrap(), Span::from_millis(25).into());
        for (text, part) in [
            ("25ms/80ms@10s", "a step has no time"),
            ("25ms@1s/80ms@10s", "the first step is not at 0s"),
            ("25ms@0s/80ms@10s/9ms@10s", "the steps do not ascend"),
            ("25ms@0s/80@10s", "unit"),
            ("25ms@0s/601s@10s", "at most 600s"),
            ("25ms@0s/", "a step has no time"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
