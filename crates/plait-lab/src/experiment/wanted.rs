//! Estimates how many runs would decide an undecided claim.
//!
//! The confidence of a relation is a distance from its bound in standard errors: a confidence of 84 % is one.
//! With `k` times the runs this distance grows by the square root of `k`, if the estimate stays where it is.
//! So the estimate is rough. It says whether twice or a thousand times the runs are needed.

use crate::stats::{deviation, normal};

/// Largest factor that is tried. A claim that needs more is so close to its bound that runs do not decide it.
const LARGEST_FACTOR: f64 = 1_000.0;

/// The confidences of the relations of a statement, or of one relation at several points.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sure {
    /// True if one of them is enough.
    pub(super) any: bool,
    /// How sure each one holds, 0 to 1.
    pub(super) confidences: Vec<f64>,
}

/// Returns how many times the runs would decide a claim that holds now (or does not) at this confidence.
/// Returns `None` if a thousand times the runs are too few.
pub(super) fn factor(groups: &[Sure], true_now: bool, confidence: f64) -> Option<f64> {
    let decided = |factor: f64| decides(groups, true_now, 1.0 - confidence, libm::sqrt(factor));
    if !decided(LARGEST_FACTOR) {
        return None;
    }
    let (mut low, mut high) = (1.0, LARGEST_FACTOR);
    while high / low > 1.05 {
        let middle = libm::sqrt(low * high);
        if decided(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// Returns true if the claim is decided once each relation is `stretch` times as far from its bound.
fn decides(groups: &[Sure], true_now: bool, doubt: f64, stretch: f64) -> bool {
    let stretched = |sure: f64| match sure {
        sure if sure <= 0.0 || sure >= 1.0 => sure,
        sure => normal(stretch * deviation(sure)),
    };
    if true_now {
        let broken = |group: &Sure| -> f64 {
            let doubts = group.confidences.iter().map(|it| 1.0 - stretched(*it));
            if group.any {
                group.confidences.len() as f64 * doubts.fold(1.0, f64::min)
            } else {
                doubts.sum()
            }
        };
        return groups.iter().map(broken).sum::<f64>() <= doubt;
    }
    let units: usize = groups.iter().map(|it| if it.any { 1 } else { it.confidences.len() }).sum();
    let refuted = |sure: &f64| stretched(*sure) <= doubt / units.max(1) as f64;
    groups.iter().any(|it| match it.any {
        true => it.confidences.iter().all(refuted),
        false => it.confidences.iter().any(refuted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(confidence: f64) -> [Sure; 1] {
        [Sure { any: false, confidences: vec![confidence] }]
    }

    #[test]
    fn one_standard_error_needs_as_many_runs_as_the_square_of_the_normal_quantile() {
        // 95 % on one side are 1.645 standard errors, and 1.645 squared is 2.71.
        let holds = factor(&one(normal(1.0)), true, 0.95).expect("decided");
        assert!((2.6..=2.9).contains(&holds), "{holds}");
        let fails = factor(&one(normal(-1.0)), false, 0.95).expect("decided");
        assert!((2.6..=2.9).contains(&fails), "{fails}");
    }

    #[test]
    fn a_claim_at_its_bound_is_not_decided_by_runs() {
        assert_eq!(factor(&one(0.5), true, 0.95), None);
        assert_eq!(factor(&one(0.51), true, 0.95), None);
    }

    #[test]
    fn the_least_sure_relation_counts_unless_one_is_enough() {
        let sure = |any| [Sure { any, confidences: vec![normal(1.0), normal(0.2)] }];
        let all = factor(&sure(false), true, 0.95).expect("decided");
        // 1.645 over 0.2, squared.
        assert!((65.0..=72.0).contains(&all), "{all}");
        let any = factor(&sure(true), true, 0.95).expect("decided");
        // Two points share the doubt: 1.96 squared.
        assert!((3.7..=4.1).contains(&any), "{any}");
    }
}
