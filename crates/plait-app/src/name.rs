//! Suggestions for misspelt names.

/// Returns the name in `known` that is closest to `given`, or `None` if no name is close enough. A
/// name is close enough if it needs at most a third of the letters as edits (at least one edit is
/// allowed). Case is ignored.
///
/// If several names are equally close, one that begins with `given` is preferred, and then the first one.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A longer name is not a typing error, and the distance takes quadratic time.
    if given.is_empty() || given.len() > 64 {
        return None;
    }
    let lower = given.to_lowercase();
    let mut best: Option<((usize, bool), &str)> = None;
    for name in known {
        let spelled = name.to_lowercase();
        let edits = strsim::damerau_levenshtein(&lower, &spelled);
        let allowed = (name.chars().count().max(lower.chars().count()) / 3).max(1);
        let distance = (edits, !spelled.starts_with(&lower));
        if edits <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
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
        assert_eq!(nearest("rat", ["rtt", "rate", "trace"]), Some("rate"));
        assert_eq!(nearest("polkadot", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"e".repeat(10_000), known), None);
    }
}
