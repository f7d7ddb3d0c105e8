//! Distributions with bounded memory.

use std::collections::BTreeMap;

/// Classes for each doubling of a value.
const CLASSES: f64 = 32.0;

/// A distribution of positive values. A quantile is exact to 1.1 %, because a class spans 2.2 %.
#[derive(Clone, Default, Debug)]
pub(crate) struct Histogram {
    classes: BTreeMap<i32, u64>,
    count: u64,
    least: Option<f64>,
}

impl Histogram {
    pub(crate) fn add(&mut self, value: f64) {
        self.add_weighted(value, 1);
    }

    /// Adds a value that counts `weight` times. Values that are not positive are left out.
    pub(crate) fn add_weighted(&mut self, value: f64, weight: u64) {
        if !(value > 0.0 && value.is_finite()) {
            return;
        }
        let class = libm::floor(libm::log2(value) * CLASSES) as i32;
        *self.classes.entry(class).or_default() += weight;
        self.count += weight;
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the smallest value.
    pub(crate) const fn least(&self) -> Option<f64> {
        self.least
    }

    /// Returns the value below which the share `share` (0 to 1) of the values is.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let target = libm::ceil(share * self.count as f64).max(1.0) as u64;
        let mut below = 0;
        for (class, count) in &self.classes {
            below += count;
            if below >= target {
                let middle = libm::exp2((f64::from(*class) + 0.5) / CLASSES);
                return Some(middle.max(self.least.unwrap_or(0.0)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_a_class() {
        let mut values = Histogram::default();
        (1..=1_000).for_each(|value| values.add(f64::from(value)));
        for (share, exact) in [(0.5, 500.0), (0.95, 950.0), (1.0, 1_000.0)] {
            let found = values.quantile(share).unwrap();
            assert!((found / exact - 1.0).abs() < 0.012, "{share}: {found}");
        }
        assert_eq!((values.least(), values.count()), (Some(1.0), 1_000));
        values.add(0.0);
        values.add(f64::NAN);
        assert_eq!(values.count(), 1_000);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
