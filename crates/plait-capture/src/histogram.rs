//! Distributions with bounded memory.

/// Classes for each doubling of a value.
const CLASSES: f64 = 32.0;
/// Bits of the weight of a class. The class has the bits above them, and its sign is the first one.
const WEIGHT_BITS: u32 = 47;
const MAX_WEIGHT: u64 = (1 << WEIGHT_BITS) - 1;
/// The memory grows by so many classes.
const STEP: usize = 8;

/// A distribution of positive values. A quantile is exact to 1.1 %, because a class spans 2.2 %.
#[derive(Clone, Default, Debug)]
pub(crate) struct Histogram {
    /// Classes in order, each with its weight.
    classes: Vec<Class>,
    count: u64,
    least: Option<f64>,
}

/// A class and its weight, in 8 bytes. The weight is at most 2^47 - 1, which is 140 TB.
#[derive(Clone, Copy, Debug)]
struct Class(i64);

impl Class {
    fn new(class: i32, weight: u64) -> Class {
        Class(i64::from(class) << WEIGHT_BITS | weight.min(MAX_WEIGHT) as i64)
    }

    const fn class(self) -> i32 {
        (self.0 >> WEIGHT_BITS) as i32
    }

    const fn weight(self) -> u64 {
        self.0 as u64 & MAX_WEIGHT
    }
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
        match self.classes.binary_search_by_key(&class, |it| it.class()) {
            Ok(at) => {
                let known = &mut self.classes[at];
                *known = Class::new(class, known.weight() + weight);
            }
            Err(at) => {
                if self.classes.len() == self.classes.capacity() {
                    self.classes.reserve_exact(STEP);
                }
                self.classes.insert(at, Class::new(class, weight));
            }
        }
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
        for class in &self.classes {
            below += class.weight();
            if below >= target {
                let middle = libm::exp2((f64::from(class.class()) + 0.5) / CLASSES);
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

    #[test]
    fn a_class_takes_8_bytes() {
        let mut values = Histogram::default();
        for value in [1e-300, 1e-3, 1.0, 1e9, 1e300] {
            values.add_weighted(value, 1 << 40);
        }
        assert_eq!(size_of_val(&values.classes[..]), 5 * 8);
        for (nth, value) in [(1, 1e-300), (2, 1e-3), (3, 1.0), (4, 1e9), (5, 1e300)] {
            let found = values.quantile(f64::from(nth) / 5.0).unwrap();
            assert!((found / value - 1.0).abs() < 0.012, "{value}: {found}");
        }
    }
}
