//! Names that were nearly right.

/// The name of `known` that is closest to `given`, if it is close enough to be what was meant: a
/// different case, or no more edits than a third of the letters (at least one).
///
/// Ties go to the name that comes first.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody mistypes a name of this length, and the distance takes quadratic time.
    if given.is_empty() || given.len() > 64 {
        return None;
    }
    let lower = given.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let edits = strsim::damerau_levenshtein(&lower, &name.to_lowercase());
        let allowed = (name.chars().count().max(lower.chars().count()) / 3).max(1);
        if edits <= allowed && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, name));
        }
    }
    best.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["minrtt", "blest", "ecf"];
        assert_eq!(nearest("blset", known), Some("blest"));
        assert_eq!(nearest("ECF", known), Some("ecf"));
        assert_eq!(nearest("min-rtt", known), Some("minrtt"));
        assert_eq!(nearest("polkadot", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"e".repeat(10_000), known), None);
    }
}
