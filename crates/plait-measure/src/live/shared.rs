//! Whether paths share a bottleneck: their rates together against their rates alone.

use super::result::Bottleneck;
use crate::estimate::Estimate;

/// Share of the smallest rate that is lost in total if the paths share a bottleneck; a smaller one is chance.
const SHARED_ABOVE: f64 = 0.5;
/// Share below which the paths have bottlenecks of their own.
const OWN_BELOW: f64 = 0.25;

/// The rates of all paths together, and of each alone.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Together {
    /// Rates alone in bits per second.
    pub(super) alone: Vec<Estimate>,
    /// Rates of all together, window by window.
    pub(super) windows: Vec<f64>,
}

impl Together {
    /// Returns the rate of all together; `None` without a window.
    pub(super) fn rate(&self) -> Option<Estimate> {
        Estimate::mean_of(&self.windows)
    }

    /// Returns the part of the smallest rate that is missing in the sum, with its interval. The errors of the rates are
    /// independent, so they add by squares.
    pub(super) fn missing(&self) -> Option<Estimate> {
        let together = self.rate()?;
        let smallest =
            self.alone.iter().map(|it| it.value).reduce(f64::min).filter(|it| *it > 0.0)?;
        let missing = self.alone.iter().map(|it| it.value).sum::<f64>() - together.value;
        let error = |alone: fn(&Estimate) -> f64, together: f64| {
            let squares = self.alone.iter().map(alone).map(|it| it * it).sum::<f64>();
            libm::sqrt(squares + together * together)
        };
        let below = error(|it| it.value - it.low, together.high - together.value);
        let above = error(|it| it.high - it.value, together.value - together.low);
        let share = |rate: f64| rate / smallest;
        Some(Estimate {
            value: share(missing),
            low: share(missing - below),
            high: share(missing + above),
        })
    }

    /// Returns the verdict.
    pub(super) fn verdict(&self) -> Bottleneck {
        match self.missing() {
            Some(missing) if missing.low > SHARED_ABOVE => Bottleneck::Shared,
            Some(missing) if missing.high < OWN_BELOW => Bottleneck::Own,
            _ => Bottleneck::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(alone: [f64; 2], windows: &[f64]) -> Bottleneck {
        let alone = alone.map(|rate| Estimate { value: rate, low: rate * 0.98, high: rate * 1.02 });
        Together { alone: alone.into(), windows: windows.to_vec() }.verdict()
    }

    #[test]
    fn the_sum_shows_a_shared_bottleneck() {
        assert_eq!(verdict([20.0, 10.0], &[29.8, 30.1, 29.9, 30.2]), Bottleneck::Own);
        assert_eq!(verdict([20.0, 20.0], &[20.1, 19.9, 20.0, 20.0]), Bottleneck::Shared);
        assert_eq!(verdict([20.0, 10.0], &[26.0, 26.2, 25.8, 26.0]), Bottleneck::Unclear);
        assert_eq!(verdict([20.0, 20.0], &[]), Bottleneck::Unclear);
        // Too noisy.
        assert_eq!(verdict([20.0, 20.0], &[40.0, 20.0]), Bottleneck::Unclear);
    }
}
