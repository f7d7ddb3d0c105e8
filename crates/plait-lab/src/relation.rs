//! Relations between two numbers, for expectations and claims.

/// A relation between two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Differs,
}

impl Relation {
    /// Every relation with its sign; a longer sign comes before its prefix.
    pub(crate) const ALL: &'static [(&'static str, Relation)] = &[
        ("<=", Relation::AtMost),
        (">=", Relation::AtLeast),
        ("==", Relation::Equal),
        ("!=", Relation::Differs),
        ("<", Relation::Less),
        (">", Relation::Greater),
    ];

    /// Returns the relation whose sign starts the text, and that sign.
    pub(crate) fn leading(text: &str) -> Option<(&'static str, Relation)> {
        Relation::ALL.iter().copied().find(|(sign, _)| text.starts_with(sign))
    }

    pub(crate) fn sign(self) -> &'static str {
        Relation::ALL.iter().find(|(_, relation)| *relation == self).map_or("", |(sign, _)| sign)
    }

    /// Returns true if the relation holds. Decimal sums may differ in the last bit, so nearly equal numbers
    /// are equal.
    pub(crate) fn holds(self, left: f64, right: f64) -> bool {
        let scale = left.abs().max(right.abs());
        let close = scale.is_finite() && (left - right).abs() <= 1e-9 * scale;
        let equal = close || left == right;
        match self {
            _ if left.is_nan() || right.is_nan() => false,
            Relation::Less => left < right && !equal,
            Relation::AtMost => left <= right || equal,
            Relation::Greater => left > right && !equal,
            Relation::AtLeast => left >= right || equal,
            Relation::Equal => equal,
            Relation::Differs => !equal,
        }
    }

    /// Returns the distance to the opposite answer, relative to the numbers; negative if the relation does
    /// not hold.
    pub(crate) fn margin(self, left: f64, right: f64) -> f64 {
        let scale = left.abs().max(right.abs()).max(f64::MIN_POSITIVE);
        let difference = (right - left) / scale;
        match self {
            _ if difference.is_nan() => f64::NEG_INFINITY,
            Relation::Less | Relation::AtMost => difference,
            Relation::Greater | Relation::AtLeast => -difference,
            Relation::Equal => -difference.abs(),
            Relation::Differs => difference.abs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Relation;

    #[test]
    fn what_differs_in_the_last_bit_is_equal() {
        let sum = 0.1 + 0.2;
        assert!(Relation::Equal.holds(sum, 0.3) && Relation::AtMost.holds(sum, 0.3));
        assert!(!Relation::Greater.holds(sum, 0.3) && !Relation::Differs.holds(sum, 0.3));
        assert!(Relation::Less.holds(0.3, 0.300_001));
    }

    #[test]
    fn infinite_numbers_compare_and_missing_ones_do_not() {
        assert!(Relation::Less.holds(1.0, f64::INFINITY));
        assert!(!Relation::AtMost.holds(f64::INFINITY, 1.0));
        assert!(Relation::Equal.holds(f64::INFINITY, f64::INFINITY));
        assert!(Relation::ALL.iter().all(|(_, relation)| !relation.holds(f64::NAN, 1.0)));
    }

    #[test]
    fn the_longer_sign_is_found_first() {
        assert_eq!(Relation::leading("<=1"), Some(("<=", Relation::AtMost)));
        assert_eq!(Relation::leading("<1"), Some(("<", Relation::Less)));
        assert_eq!(Relation::leading("=1"), None);
    }
}
