//! The normal distribution.

/// Returns the cumulative distribution function of the standard normal distribution.
pub(crate) fn normal(deviation: f64) -> f64 {
    0.5 * libm::erfc(-deviation / core::f64::consts::SQRT_2)
}

/// Returns the inverse of [`normal`], within 8 standard deviations.
pub(crate) fn deviation(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if normal(middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_and_its_inverse_agree_with_the_tables() {
        for (share, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.05, -1.644_854), (0.999, 3.090_232)] {
            assert!((deviation(share) - z).abs() < 1e-5, "{share}");
            assert!((normal(z) - share).abs() < 1e-6, "{z}");
        }
    }
}
