//! Sizes of objects if only their total is known.

use plait_base::RandomStream;

/// Standard deviation of the logarithm of an object's size, from web objects in the SURGE model
/// (Barford and Crovella 1998).
const SIGMA: f64 = 1.318;
/// Minimum size of an object in bytes, if the total allows.
const MIN_OBJECT_BYTES: u64 = 43;

/// Returns `count` log-normal sizes whose sum is exactly `total`. The same `name` gives the same
/// sizes.
pub(super) fn log_normal(name: &str, count: usize, total: u64) -> Vec<u64> {
    if count == 0 {
        return Vec::new();
    }
    let mut stream = RandomStream::new(0, &["web", "sizes", name]);
    let mut normal = || {
        // Box and Muller; the argument of the logarithm is never zero.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
        radius * libm::cos(core::f64::consts::TAU * stream.unit())
    };
    let weights: Vec<f64> = (0..count).map(|_| libm::exp(SIGMA * normal())).collect();
    let sum: f64 = weights.iter().sum();
    let least = MIN_OBJECT_BYTES.min(total / count as u64);
    let free = total - least * count as u64;
    let size = |weight: &f64| least + (free as f64 * weight / sum) as u64;
    let mut sizes: Vec<u64> = weights.iter().map(size).collect();
    // The largest object absorbs the rounding error.
    if let Some(largest) = (0..count).max_by_key(|index| sizes[*index]) {
        let others: u64 = sizes.iter().sum::<u64>() - sizes[largest];
        sizes[largest] = total.saturating_sub(others);
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sizes_add_up(count in 1usize..300, total in 0u64..1 << 40) {
            let sizes = log_normal("any", count, total);
            prop_assert_eq!(sizes.len(), count);
            prop_assert_eq!(sizes.iter().sum::<u64>(), total);
        }
    }

    #[test]
    fn sizes_are_spread_as_logarithms_of_web_objects_are() {
        let sizes = log_normal("many", 20_000, 20_000 * 30_000);
        let logs: Vec<f64> = sizes.iter().map(|size| libm::log(*size as f64 - 42.5)).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let spread = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>();
        let sigma = libm::sqrt(spread / logs.len() as f64);
        assert!((sigma - SIGMA).abs() < 0.03, "{sigma}");
        assert_eq!(log_normal("a", 9, 5_000), log_normal("a", 9, 5_000));
        assert_ne!(log_normal("a", 9, 5_000), log_normal("b", 9, 5_000));
    }
}
