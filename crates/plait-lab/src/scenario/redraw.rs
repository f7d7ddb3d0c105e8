//! A rate that is drawn again at random times: `0.3mbit/1.1mbit/8.6mbit~40s`.

use super::placed_text::PlacedText;
use crate::error::{Fault, ScenarioError};
use plait_base::{RandomStream, Rate, Span, Time};
use std::fmt;

/// Rates are drawn for this long. The last rate then holds.
const HORIZON: Span = Span::from_secs(3_600);
/// Minimum of the mean time between two draws.
const MIN_SPAN: Span = Span::from_millis(10);
/// Maximum number of rates.
const MAX_RATES: usize = 64;

/// Rates to draw from, and the mean time that a drawn rate holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redraw {
    rates: Vec<Rate>,
    every: Span,
}

impl Redraw {
    /// Reads `RATE/RATE~TIME`. `rate` and `time` read the parts.
    pub(super) fn parse(
        given: &PlacedText,
        rate: impl Fn(&str) -> Result<Rate, ScenarioError>,
        time: impl Fn(&str) -> Result<Span, ScenarioError>,
    ) -> Result<Redraw, ScenarioError> {
        let refused = |problem: &str| {
            let allowed = "rates and the mean time between two draws: 1mbit/4mbit/8mbit~40s";
            Err(given.error(Fault::Invalid, problem).allow(allowed))
        };
        let Some((rates, every)) = given.text.split_once('~') else {
            return refused("not a list of rates with a mean time");
        };
        let rates = rates.split('/').map(rate).collect::<Result<Vec<Rate>, _>>()?;
        if rates.len() < 2 || rates.len() > MAX_RATES {
            return refused("two to 64 rates can be drawn from");
        }
        if rates.contains(&Rate::INFINITE) {
            return refused("an infinite rate has no mean");
        }
        let every = time(every)?;
        if every < MIN_SPAN {
            return refused("the mean time is below 10ms");
        }
        Ok(Redraw { rates, every })
    }

    /// Returns the mean of the rates.
    pub(super) fn mean(&self) -> Rate {
        let sum: u128 = self.rates.iter().map(|rate| u128::from(rate.as_bps())).sum();
        let mean = sum / self.rates.len().max(1) as u128;
        Rate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Returns the steps of one run on the path of this name. Both directions share them. All rates
    /// are equally likely at each draw, and the times between draws are exponential.
    pub(super) fn steps(&self, seed: u64, path: &str) -> Vec<(Time, Rate)> {
        let mut stream = RandomStream::new(seed, &["path", path, "redraw"]);
        let mut steps = Vec::new();
        let mut at = Time::ZERO;
        while at.since(Time::ZERO) < HORIZON {
            let rate = self.rates[stream.below(self.rates.len() as u64) as usize];
            steps.push((at, rate));
            let factor = -libm::log(1.0 - stream.unit());
            at += Span::from_nanos((self.every.as_nanos() as f64 * factor) as u64 + 1);
        }
        steps
    }
}

impl fmt::Display for Redraw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, rate) in self.rates.iter().enumerate() {
            write!(f, "{}{rate}", if position == 0 { "" } else { "/" })?;
        }
        write!(f, "~{}", self.every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_come_at_exponential_times_and_each_rate_as_often() {
        let mbit = |it: u64| Rate::from_bps(it * 1_000_000);
        let redraw = Redraw { rates: vec![mbit(1), mbit(4), mbit(7)], every: Span::from_secs(4) };
        assert_eq!(redraw.mean(), mbit(4));
        let draws: Vec<Vec<(Time, Rate)>> = (0..20).map(|seed| redraw.steps(seed, "a")).collect();
        let count: usize = draws.iter().map(Vec::len).sum();
        // 20 hours with 900 draws per hour.
        assert!((17_000..19_000).contains(&count), "{count}");
        for rate in &redraw.rates {
            let of = draws.iter().flatten().filter(|step| step.1 == *rate).count();
            assert!((of * 3).abs_diff(count) < count / 20, "{of} of {count}");
        }
        // A share of exp(-1) of the times is longer than the mean.
        let long = |steps: &Vec<(Time, Rate)>| {
            steps.windows(2).filter(|pair| pair[1].0.since(pair[0].0) > redraw.every).count()
        };
        let part = draws.iter().map(long).sum::<usize>() as f64 / count as f64;
        assert!((part - 0.368).abs() < 0.015, "{part}");
        assert_eq!(draws[3], redraw.steps(3, "a"));
        assert_ne!(draws[3], redraw.steps(3, "b"));
        assert_eq!(draws[3][0].0, Time::ZERO);
    }
}
