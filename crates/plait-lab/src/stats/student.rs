//! Quantiles of Student's t distribution.

use core::f64::consts::FRAC_PI_2;

/// Returns the value that |T| exceeds with probability `error`, for T with `freedom` degrees of
/// freedom: 2.045 for 29 and 0.05.
///
/// `error` is clamped to (0, 1). The result is finite for at least one degree of freedom, and infinite for
/// none.
#[must_use]
pub(crate) fn critical(freedom: usize, error: f64) -> f64 {
    if freedom == 0 {
        return f64::INFINITY;
    }
    let error = error.clamp(1e-12, 1.0 - 1e-12);
    let whole = power_integral(freedom - 1, FRAC_PI_2);
    // With T = sqrt(freedom) tan(angle), P(|T| > t) is the share of the integral of cos^(freedom - 1)
    // that lies beyond the angle. It falls with the angle, so bisection finds the angle.
    let beyond = |angle: f64| 1.0 - power_integral(freedom - 1, angle) / whole;
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if beyond(middle) > error { low = middle } else { high = middle }
    }
    libm::tan((low + high) / 2.0) * libm::sqrt(freedom as f64)
}

/// Returns the integral of cos^`power` from 0 to `angle`, by the reduction formula `m I(m) = cos^(m-1) sin +
/// (m - 1) I(m - 2)`.
fn power_integral(power: usize, angle: f64) -> f64 {
    let (sin, cos) = (libm::sin(angle), libm::cos(angle));
    let (mut integral, mut reached, mut cosines) =
        if power.is_multiple_of(2) { (angle, 0, cos) } else { (sin, 1, cos * cos) };
    while reached < power {
        reached += 2;
        let order = reached as f64;
        integral = (cosines * sin + (order - 1.0) * integral) / order;
        cosines *= cos * cos;
    }
    integral
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Two-sided values of printed tables.
        for (freedom, error, expected) in [
            (1, 0.05, 12.706),
            (2, 0.05, 4.303),
            (4, 0.001, 8.610),
            (17, 0.001, 3.965),
            (29, 0.05, 2.045),
            (29, 0.01, 2.756),
            (120, 0.05, 1.980),
            (100_000, 0.05, 1.960),
        ] {
            let found = critical(freedom, error);
            assert!((found - expected).abs() < 6e-4, "{freedom} {error}: {found}");
        }
        assert_eq!(critical(0, 0.05), f64::INFINITY);
    }
}
