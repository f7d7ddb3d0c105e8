//! Estimates with ranges that hold the true value in eight of ten cases.

use plait_lab::advise::{LOSSLESS_ONE_OF, USUAL_LOSSES};
use plait_lab::links::Known;
use plait_lab::stats::percentile;

/// Deviation of the normal distribution with 90 % below it.
const Z: f64 = 1.281_552;
/// Student's t with 90 % below it, for one degree of freedom and more.
const STUDENT: [f64; 4] = [3.077_684, 1.885_618, 1.637_744, 1.533_206];
/// Largest rate of a link in bits per second, and the largest time that a scenario takes, in milliseconds.
const LARGEST_RATE: f64 = 1e12;
const LARGEST_TIME: f64 = 600_000.0;
/// Steps of the integral over the usual losses.
const STEPS: u32 = 1_000;

/// An estimate and its range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The best estimate.
    pub value: f64,
    /// One case in ten is below it.
    pub low: f64,
    /// One case in ten is above it.
    pub high: f64,
}

/// Where a value comes from: its source and its day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The program that measured it.
    pub source: String,
    /// The day of the measurement.
    pub date: String,
}

impl Estimate {
    /// Returns an estimate whose range reaches from `value / factor` to `value * factor`.
    #[must_use]
    pub fn spread(value: f64, factor: f64) -> Estimate {
        Estimate { value, low: value / factor, high: value * factor }
    }

    /// Widens the range, so that it reaches at least from `value / factor` to `value * factor`.
    #[must_use]
    pub fn at_least(self, factor: f64) -> Estimate {
        let Estimate { value, low, high } = self;
        Estimate { value, low: low.min(value / factor), high: high.max(value * factor) }
    }

    /// Returns the estimate with each number multiplied.
    #[must_use]
    pub fn times(self, factor: f64) -> Estimate {
        let Estimate { value, low, high } = self;
        Estimate { value: value * factor, low: low * factor, high: high * factor }
    }

    /// Returns the mean of samples with the interval of that mean; `None` without a sample.
    #[must_use]
    pub fn mean_of(samples: &[f64]) -> Option<Estimate> {
        let count = samples.len() as f64;
        let value = samples.iter().sum::<f64>() / count;
        let squares = samples.iter().map(|it| (it - value) * (it - value)).sum::<f64>();
        let error = match samples {
            [] => return None,
            [_] => 0.0,
            _ => libm::sqrt(squares / (count - 1.0) / count),
        };
        Some(Estimate { value, low: value - Z * error, high: value + Z * error })
    }

    /// Returns the estimate of the next value of a quantity that varies, by this estimate and `later` values, with the
    /// factor by which it varies. The value is the mean by logarithms. The factor reaches to either end of the interval
    /// of Student's t for one more value. The range is as wide as before, or as that interval.
    #[must_use]
    pub fn with_later(self, later: &[f64]) -> (Estimate, f64) {
        let all = core::iter::once(self.value).chain(later.iter().copied());
        let logs: Vec<f64> = all.filter(|it| *it > 0.0).map(libm::log).collect();
        let count = logs.len() as f64;
        let Some(freedom) = logs.len().checked_sub(2) else { return (self, 1.0) };
        let student = STUDENT.get(freedom).or(STUDENT.last()).copied().unwrap_or(Z);
        let middle = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|it| (it - middle) * (it - middle)).sum();
        let deviation = libm::sqrt(squares / (count - 1.0) * (1.0 + 1.0 / count));
        let (value, varies) = (libm::exp(middle), libm::exp(student * deviation));
        (self.times(value / self.value).at_least(varies), varies)
    }

    /// Returns the median of samples with the range that holds eight of ten of them.
    #[must_use]
    pub fn spread_of(samples: &[f64]) -> Option<Estimate> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |percent| percentile(&sorted, percent);
        Some(Estimate { value: at(50.0)?, low: at(10.0)?, high: at(90.0)? })
    }

    /// Returns the share of lost packets in percent, with its interval (Wilson's; if nothing is lost, nine of ten links
    /// are below its upper end by what is usual); `None` if none was sent.
    #[must_use]
    pub fn loss_percent(lost: u64, sent: u64) -> Option<Estimate> {
        if sent == 0 {
            return None;
        }
        let (count, share) = (sent as f64, lost.min(sent) as f64 / sent as f64);
        if lost == 0 {
            return Some(Estimate { value: 0.0, low: 0.0, high: 100.0 * unseen_loss(count) });
        }
        let squared = Z * Z;
        let middle = (share + squared / (2.0 * count)) / (1.0 + squared / count);
        let spread = Z / (1.0 + squared / count)
            * libm::sqrt(share * (1.0 - share) / count + squared / (4.0 * count * count));
        let (low, high) = ((middle - spread).max(0.0), (middle + spread).min(1.0));
        Some(Estimate { value: 100.0 * share, low: 100.0 * low, high: 100.0 * high })
    }

    /// Returns it as a rate; its numbers are bits per second.
    #[must_use]
    pub fn rate(self, origin: &Origin) -> Known {
        self.known(origin, (LARGEST_RATE, "bit/s"), |bps| match bps {
            bps if bps >= 1e6 => format!("{:.3}mbit", bps / 1e6),
            bps => format!("{:.0}bit", bps.max(1.0)),
        })
    }

    /// Returns it as a time; its numbers are milliseconds.
    #[must_use]
    pub fn time(self, origin: &Origin) -> Known {
        self.known(origin, (LARGEST_TIME, "ms"), |ms| format!("{:.3}ms", ms.max(0.001)))
    }

    /// Returns it as a share; its numbers are percent.
    #[must_use]
    pub fn share(self, origin: &Origin) -> Known {
        self.known(origin, (100.0, "%"), |percent| format!("{percent:.5}%"))
    }

    /// Returns it as text. No link has a value below zero, above `largest`, or that is no number.
    fn known(
        self,
        origin: &Origin,
        (largest, unit): (f64, &str),
        text: impl Fn(f64) -> String,
    ) -> Known {
        let Estimate { value, low, high } = self;
        if !(0.0..=largest).contains(&value) {
            let why = format!("{}: no link has {value} {unit}", origin.source);
            return Known::unknown(&why, &origin.date);
        }
        let (low, high) = (low.max(0.0).min(value), high.max(value).min(largest));
        let (value, low, high) = (text(value), text(low), text(high));
        match low == high {
            true => Known::exact(&value, &origin.source, &origin.date),
            false => Known::within(&value, &low, &high, &origin.source, &origin.date),
        }
    }
}

/// Returns the least and the largest usual loss of lossy links, as shares.
fn usual_losses() -> (f64, f64) {
    (USUAL_LOSSES.0 / 100.0, USUAL_LOSSES.1 / 100.0)
}

/// Returns the loss that one of ten links exceeds, of usual ones on which `count` packets arrived and none was lost.
fn unseen_loss(count: f64) -> f64 {
    let (least, largest) = usual_losses();
    let lossless = 1.0 / LOSSLESS_ONE_OF as f64;
    let at = |step: u32| {
        let share = (f64::from(step) + 0.5) / f64::from(STEPS);
        largest * libm::pow(least / largest, share)
    };
    // The weight of a link is the chance that it loses none of the packets.
    let weight = |loss: f64| (1.0 - lossless) / f64::from(STEPS) * libm::pow(1.0 - loss, count);
    let all = lossless + (0..STEPS).map(|step| weight(at(step))).sum::<f64>();
    let mut above = 0.0;
    for loss in (0..STEPS).map(at) {
        above += weight(loss);
        if above >= 0.1 * all {
            return loss;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_values_widen_the_range_by_students_t() {
        let first = Estimate::spread(20.0, 1.02);
        assert_eq!(first.with_later(&[]), (first, 1.0));
        // Two values that differ by a factor of e: their deviation is 1 / sqrt(2), and that of the next value from their
        // mean is sqrt(3 / 2) times as large.
        let (wide, varies) = first.with_later(&[20.0 * core::f64::consts::E]);
        let factor = libm::exp(3.077_684 * libm::sqrt(0.5 * 1.5));
        assert!((wide.value - 20.0 * libm::exp(0.5)).abs() < 1e-9, "{wide:?}");
        assert!((wide.high / wide.value - factor).abs() < 1e-6, "{wide:?} {factor}");
        assert!((wide.value / wide.low - factor).abs() < 1e-6, "{wide:?} {factor}");
        assert!((varies - factor).abs() < 1e-6, "{varies}");
        // A third value leaves less doubt.
        let (_, less) = first.with_later(&[20.0 * core::f64::consts::E, wide.value]);
        assert!(less < factor / 2.0, "{less}");
        // The range never gets smaller.
        let (same, varies) = first.with_later(&[20.0, 20.0, 20.0, 20.0]);
        assert!((same.low - first.low).abs() < 1e-9 && (same.high - first.high).abs() < 1e-9);
        assert!((varies - 1.0).abs() < 1e-9, "{varies}");
    }

    #[test]
    fn intervals_of_a_loss_agree_with_the_tables() {
        // Wilson's interval for 10 of 1000 at 80 %, computed by hand: 0.67 % to 1.49 %.
        let some = Estimate::loss_percent(10, 1_000).unwrap();
        assert!((some.value - 1.0).abs() < 1e-9, "{some:?}");
        assert!((some.low - 0.668).abs() < 0.01 && (some.high - 1.494).abs() < 0.01, "{some:?}");
        assert_eq!(Estimate::loss_percent(0, 0), None);
    }

    /// Of usual links without a lost packet, one of ten has a greater loss. The integral here is over the loss, not over
    /// its logarithm.
    #[test]
    fn the_upper_end_without_a_loss_is_that_of_usual_links() {
        let (least, largest) = usual_losses();
        let lossless = 1.0 / LOSSLESS_ONE_OF as f64;
        let width = (largest - least) / 300_000.0;
        for count in [50_u32, 1_000, 20_000] {
            let none = Estimate::loss_percent(0, u64::from(count)).unwrap();
            let (mut all, mut above) = (lossless, 0.0);
            for step in 0..300_000 {
                let loss = least + (f64::from(step) + 0.5) * width;
                let usual = (1.0 - lossless) / (loss * libm::log(largest / least)) * width;
                let weight = usual * libm::exp(f64::from(count) * libm::log1p(-loss));
                all += weight;
                above += if loss * 100.0 > none.high { weight } else { 0.0 };
            }
            assert!((above / all - 0.1).abs() < 0.003, "{count}: {above} of {all}, {none:?}");
            assert!(none.low == 0.0 && none.value == 0.0);
        }
    }

    #[test]
    fn impossible_values_are_unknown() {
        let origin = Origin { source: "ping: a.txt".to_owned(), date: "2026-01-02".to_owned() };
        for value in [-1.0, f64::NAN, f64::INFINITY, 1e13] {
            let estimate = Estimate::spread(value, 2.0);
            for known in [estimate.rate(&origin), estimate.time(&origin), estimate.share(&origin)] {
                assert!(known.is_unknown(), "{known:?}");
                assert!(known.source.starts_with("ping: a.txt: no link has "), "{known:?}");
            }
        }
        let known = Estimate { value: 99.0, low: -1.0, high: 120.0 }.share(&origin);
        assert_eq!(known.range, Some(("0.00000%".to_owned(), "100.00000%".to_owned())));
    }

    #[test]
    fn the_interval_of_a_mean_has_its_error() {
        let mean = Estimate::mean_of(&[9.0, 10.0, 11.0, 10.0]).unwrap();
        // The deviation is 0.8165, that of the mean 0.4082.
        assert!((mean.high - mean.value - 1.281_552 * 0.408_248).abs() < 1e-5, "{mean:?}");
        assert_eq!(Estimate::mean_of(&[]), None);
        let spread = Estimate::spread_of(&(0..=100).map(f64::from).collect::<Vec<_>>()).unwrap();
        assert_eq!((spread.low, spread.value, spread.high), (10.0, 50.0, 90.0));
    }
}
