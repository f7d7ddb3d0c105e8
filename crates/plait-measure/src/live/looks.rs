//! How the rates of paths vary: each alone, all together, and each alone once more.

use super::result::{Bottleneck, Measured, PathResult};
use super::shared::Together;
use crate::estimate::Estimate;

/// The later rates of a path in bits per second.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Later {
    /// Together with the other paths, window by window.
    pub(super) together: Vec<f64>,
    /// Alone.
    pub(super) alone: Option<f64>,
}

/// Adds the later rates to the ranges of the paths. Returns the rates of all paths together, if they were measured.
///
/// If each path has its own bottleneck, its rate together with the others counts too.
pub(super) fn add(paths: &mut [PathResult], later: &[Later]) -> Option<Together> {
    let first: Vec<Option<Estimate>> = paths.iter().map(rate_bps).collect();
    for ((path, first), later) in paths.iter_mut().zip(&first).zip(later) {
        widen(path, *first, &later.alone.into_iter().collect::<Vec<f64>>());
    }
    let together = together(paths, later)?;
    if together.verdict() == Bottleneck::Own {
        for ((path, first), later) in paths.iter_mut().zip(&first).zip(later) {
            let looks = [Estimate::mean_of(&later.together).map(|it| it.value), later.alone];
            widen(path, *first, &looks.into_iter().flatten().collect::<Vec<f64>>());
        }
    }
    Some(together)
}

fn rate_bps(path: &PathResult) -> Option<Estimate> {
    path.down.rate_mbps.map(|it| it.estimate().times(1e6))
}

/// Returns the rates alone and the sum together; `None` without one of them.
fn together(paths: &[PathResult], later: &[Later]) -> Option<Together> {
    let alone: Option<Vec<Estimate>> = paths.iter().map(rate_bps).collect();
    let count = later.iter().map(|it| it.together.len()).min().filter(|it| *it > 0)?;
    let sum = |at: usize| later.iter().filter_map(|it| it.together.get(at)).sum();
    Some(Together { alone: alone?, windows: (0..count).map(sum).collect() })
}

/// Sets the rate of a path from server to client by the first rate and later ones. The range of the other direction,
/// which was loaded once, gets at least as wide.
fn widen(path: &mut PathResult, first: Option<Estimate>, later: &[f64]) {
    let Some(first) = first else { return };
    let rate = first.with_later(later);
    let factor = |it: Estimate| (it.high / it.value).max(it.value / it.low);
    if factor(rate) > factor(first) {
        let up = path.up.rate_mbps.map(|it| it.estimate().at_least(factor(rate)));
        path.up.rate_mbps = up.map(Measured::from);
    }
    path.down.rate_mbps = Some(rate.times(1e-6).into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::result::WayResult;

    fn path(mbps: f64) -> PathResult {
        let way = |mbps| WayResult {
            rate_mbps: Some(Estimate::spread(mbps, 1.02).into()),
            ..WayResult::default()
        };
        PathResult { down: way(mbps), up: way(5.0), ..PathResult::default() }
    }

    /// Returns the paths with the later rates of each, in Mbit/s: together and alone.
    fn after(paths: &[(f64, f64, f64)]) -> (Vec<PathResult>, Option<Bottleneck>) {
        let mut results: Vec<PathResult> = paths.iter().map(|it| path(it.0)).collect();
        let later = |(_, together, alone): &(f64, f64, f64)| Later {
            together: vec![together * 1e6; 5],
            alone: Some(alone * 1e6),
        };
        let later: Vec<Later> = paths.iter().map(later).collect();
        let together = add(&mut results, &later);
        (results, together.map(|it| it.verdict()))
    }

    #[test]
    fn a_constant_rate_keeps_its_range() {
        let (paths, verdict) = after(&[(20.0, 20.0, 20.0), (10.0, 10.0, 10.0)]);
        let rate = paths[0].down.rate_mbps.unwrap();
        assert!((rate.value - 20.0).abs() < 1e-9, "{rate:?}");
        assert!(
            (rate.low - 20.0 / 1.02).abs() < 1e-9 && (rate.high - 20.4).abs() < 1e-9,
            "{rate:?}"
        );
        assert_eq!(verdict, Some(Bottleneck::Own));
    }

    #[test]
    fn a_rate_that_varies_has_a_wide_range_in_both_directions() {
        let (paths, _) = after(&[(20.0, 16.0, 25.0), (10.0, 10.0, 10.0)]);
        let [down, up] = [paths[0].down.rate_mbps.unwrap(), paths[0].up.rate_mbps.unwrap()];
        assert!(down.low < 14.0 && down.high > 28.0, "{down:?}");
        assert!(up.value == 5.0 && up.low < 3.5 && up.high > 7.0, "{up:?}");
        let steady = paths[1].down.rate_mbps.unwrap();
        assert!(steady.high / steady.low < 1.05, "{steady:?}");
    }

    /// One of two paths of their own is slow while both are loaded. Alone it is slow then, too.
    #[test]
    fn a_slow_moment_is_no_shared_bottleneck() {
        let (_, verdict) = after(&[(23.0, 9.0, 11.0), (40.0, 40.0, 40.0)]);
        assert_ne!(verdict, Some(Bottleneck::Shared));
        // If it is fast again as soon as it is alone, they share one.
        let (paths, verdict) = after(&[(23.0, 9.0, 23.0), (20.0, 14.0, 20.0)]);
        assert_eq!(verdict, Some(Bottleneck::Shared));
        // The rates together say nothing about a path alone then.
        let rate = paths[0].down.rate_mbps.unwrap();
        assert!((rate.value - 23.0).abs() < 1e-9 && rate.high < 24.0, "{rate:?}");
    }

    #[test]
    fn without_later_rates_nothing_changes() {
        let mut paths = [path(20.0), path(10.0)];
        let before = paths.clone();
        assert!(add(&mut paths, &[Later::default(), Later::default()]).is_none());
        for (path, before) in paths.iter().zip(&before) {
            let [now, then] = [path, before].map(|it| it.down.rate_mbps.unwrap());
            assert!((now.value - then.value).abs() < 1e-9 && (now.high - then.high).abs() < 1e-9);
        }
    }
}
