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
    let alone = |(first, later): (&Option<Estimate>, &Later)| {
        first.map(|it| it.with_later(&later.alone.into_iter().collect::<Vec<f64>>()))
    };
    let varying: Vec<Option<(Estimate, f64)>> = first.iter().zip(later).map(alone).collect();
    let together = together(&varying, later);
    let own = together.as_ref().is_some_and(|it| it.verdict() == Bottleneck::Own);
    let all = |(first, later): (&Option<Estimate>, &Later)| {
        let together = Estimate::mean_of(&later.together).map(|it| it.value);
        let rates: Vec<f64> = [together, later.alone].into_iter().flatten().collect();
        first.map(|it| it.with_later(&rates))
    };
    let varying = if own { first.iter().zip(later).map(all).collect() } else { varying };
    for (path, rate) in paths.iter_mut().zip(varying) {
        if let Some((rate, varies)) = rate {
            set(path, rate, varies);
        }
    }
    together
}

fn rate_bps(path: &PathResult) -> Option<Estimate> {
    path.down.rate_mbps.map(|it| it.estimate().times(1e6))
}

/// Returns the rates alone and the sum together; `None` without one of them.
fn together(varying: &[Option<(Estimate, f64)>], later: &[Later]) -> Option<Together> {
    let alone: Option<Vec<Estimate>> = varying.iter().map(|it| it.map(|it| it.0)).collect();
    let count = later.iter().map(|it| it.together.len()).min().filter(|it| *it > 0)?;
    let sum = |at: usize| later.iter().filter_map(|it| it.together.get(at)).sum();
    Some(Together { alone: alone?, windows: (0..count).map(sum).collect() })
}

/// Sets the rate of a path from server to client. The other direction was loaded once, and is taken to vary as much.
fn set(path: &mut PathResult, rate: Estimate, varies: f64) {
    path.down.rate_mbps = Some(rate.times(1e-6).into());
    let up = path.up.rate_mbps.map(|it| it.estimate().at_least(varies));
    path.up.rate_mbps = up.map(Measured::from);
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
        // The first range of the other direction stays if it is wider.
        let mut known = [path(20.0), path(10.0)];
        known[0].up.rate_mbps = Some(Estimate { value: 5.0, low: 4.9, high: 15.0 }.into());
        add(&mut known, &[Later { together: vec![20e6; 5], alone: Some(20e6) }, Later::default()]);
        assert_eq!(known[0].up.rate_mbps.map(|it| it.high), Some(15.0));
        let steady = paths[1].down.rate_mbps.unwrap();
        assert!(steady.high / steady.low < 1.05, "{steady:?}");
    }

    /// One of two paths of their own is slow while both are loaded. Alone it is slow then, too.
    #[test]
    fn a_slow_moment_is_no_shared_bottleneck() {
        let (_, verdict) = after(&[(23.0, 9.0, 11.0), (40.0, 40.0, 40.0)]);
        assert_ne!(verdict, Some(Bottleneck::Shared));
        // Rates that vary by a tenth do not hide a shared one.
        let (_, verdict) = after(&[(20.0, 10.2, 22.0), (20.0, 10.2, 20.0)]);
        assert_eq!(verdict, Some(Bottleneck::Shared));
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
