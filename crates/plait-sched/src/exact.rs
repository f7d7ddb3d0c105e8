//! Comparisons without rounding: ratios are compared by cross-multiplication in 256 bits.

use core::cmp::Ordering;
use plait_base::Span;

/// Limit of spans in ns (36 years) and byte counts (an exabyte) in formulas; larger values are cut
/// to it. Products of two of them, with a small factor, then fit in 128 bits.
const LIMIT: u64 = 1 << 60;

/// One, in parts per million.
pub(crate) const MILLION: u64 = 1_000_000;

/// Returns a span as a factor or divisor: nanoseconds, at least one.
pub(crate) fn nanos(span: Span) -> u128 {
    u128::from(whole_nanos(span))
}

/// As [`nanos`], in 64 bits.
pub(crate) fn whole_nanos(span: Span) -> u64 {
    span.as_nanos().clamp(1, LIMIT)
}

/// Returns a byte count as a factor.
pub(crate) fn bytes(count: u64) -> u128 {
    u128::from(count.min(LIMIT))
}

/// Compares `a * b` with `c * d`.
#[inline]
pub(crate) fn compare(a: u128, b: u128, c: u128, d: u128) -> Ordering {
    // If no product can exceed 128 bits, a few multiplications without carries suffice.
    let bits = |it: u128| 128 - it.leading_zeros();
    if bits(a | c) + bits(b | d) <= 128 {
        return (a * b).cmp(&(c * d));
    }
    product(a, b).cmp(&product(c, d))
}

/// Returns `a / b`, rounded down. If both fit in 64 bits, one division costs a tenth of one in 128
/// bits.
#[inline]
pub(crate) fn quotient(a: u128, b: u128) -> u128 {
    match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => u128::from(a / b),
        _ => a / b,
    }
}

/// Returns `a * b` as its high and low half.
fn product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a_high, a_low, b_high, b_low) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (low, cross, other) = (a_low * b_low, a_low * b_high, a_high * b_low);
    let middle = (low >> 64) + (cross & LOW) + (other & LOW);
    let high = a_high * b_high + (cross >> 64) + (other >> 64) + (middle >> 64);
    (high, (middle << 64) | (low & LOW))
}

/// Returns the nearest whole number; zero if the value is negative.
pub(crate) fn nearest(value: f64) -> u64 {
    // A cast of a float saturates and turns NaN into zero.
    (value + 0.5) as u64
}

/// Converts milliseconds to nanoseconds, rounded.
pub(crate) fn nanos_of_millis(millis: f64) -> u64 {
    nearest(millis * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_product_is_exact() {
        // (2^128 - 1)^2 = 2^256 - 2^129 + 1.
        assert_eq!(product(u128::MAX, u128::MAX), (u128::MAX - 1, 1));
        assert_eq!(compare(u128::MAX, 2, u128::MAX - 1, 2), Ordering::Greater);
    }

    proptest! {
        #[test]
        fn small_products_agree_with_plain_arithmetic(a: u64, b: u64, c: u64, d: u64) {
            let [a, b, c, d] = [a, b, c, d].map(u128::from);
            prop_assert_eq!(product(a, b), (0, a * b));
            prop_assert_eq!(compare(a, b, c, d), (a * b).cmp(&(c * d)));
        }

        #[test]
        fn quotients_agree_on_both_sides_of_64_bits(a: u128, b in 1..u128::MAX, by in 0u32..128) {
            let (a, b) = (a >> by, (b >> by).max(1));
            prop_assert_eq!(quotient(a, b), a / b);
        }

        #[test]
        fn products_commute_and_grow(a: u128, b in 1..u128::MAX) {
            prop_assert_eq!(product(a, b), product(b, a));
            if a < u128::MAX {
                prop_assert!(product(a, b) < product(a + 1, b));
            }
        }
    }
}
