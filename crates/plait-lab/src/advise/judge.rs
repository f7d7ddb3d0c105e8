//! What the runs say: the gain by workload, and the advice that follows.

use super::links::{UPPER, Unknown};
use super::{Advice, Gain, Line, Load, Verdict, goals};
use crate::stats::{deviation, median, percentile};

/// Smallest typical gain that is worth a second path, and smallest loss that speaks against it.
pub(super) const NOTABLE: f64 = 1.05;

impl Gain {
    /// Returns the gain of live transfers over the values `alone`: that of the draws, with the error of the simulator
    /// for this load in the interval. Independent errors add by squares.
    pub(super) fn live(ratios: &[f64], alone: &[f64], load: &Load) -> Option<Gain> {
        let draws = Gain::of(ratios)?;
        let model = deviation(UPPER) * load.model.deviation(median(alone)?);
        let wider = |end: f64| libm::exp(libm::hypot(libm::log(end / draws.median), model));
        let (low, high) = (draws.median / wider(draws.low), draws.median * wider(draws.high));
        Some(Gain { low, high, ..draws })
    }

    /// Returns the median and the 80 % interval of the ratios of all draws; `None` without a ratio.
    pub(super) fn of(ratios: &[f64]) -> Option<Gain> {
        let mut sorted: Vec<f64> = ratios.iter().copied().filter(|it| it.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        Some(Gain {
            median: median(&sorted)?,
            low: percentile(&sorted, 10.0)?,
            high: percentile(&sorted, 90.0)?,
        })
    }

    /// Returns what the interval says.
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            _ if self.low > 1.0 && self.median >= NOTABLE => Verdict::Gain,
            _ if self.high < 1.0 && self.median <= 1.0 / NOTABLE => Verdict::Loss,
            _ if self.low >= 1.0 / NOTABLE && self.high <= NOTABLE => Verdict::Nothing,
            // A typical draw changes little, and a bad one loses little.
            _ if self.low >= 1.0 / NOTABLE && self.median < NOTABLE => Verdict::Nothing,
            _ if self.low >= 1.0 / NOTABLE => Verdict::Gain,
            _ => Verdict::Unclear,
        }
    }
}

/// Returns true if the other paths keep the load of a line alive while its best path is down.
pub(super) fn is_kept_alive(line: &Line) -> bool {
    line.outage && line.verdict == Verdict::Gain && line.backup.is_some()
}

/// Returns the answer if rates are unknown: the paths with the direction and the remedy of the first one.
pub(super) fn unknown(paths: &[(String, Unknown)]) -> String {
    let Some((_, first)) = paths.first() else { return String::new() };
    let same = paths.iter().filter(|it| it.1 == *first);
    let names: Vec<&str> = same.map(|it| it.0.as_str()).collect();
    let names = list(&names);
    let (what, key, test) = match first {
        Unknown::Both => {
            return format!(
                "Cannot tell: the rate of {names} is unknown. A ping does not show it; give rate=, or measure it \
                 (plait measure)."
            );
        }
        Unknown::Down => ("from server to client", "rate_down", "iperf3 -c HOST -J -R"),
        Unknown::Up => ("from client to server", "rate_up", "iperf3 -c HOST -J"),
    };
    format!(
        "Cannot tell: the rate of {names} {what} is unknown. Give {key}=, or measure it: {test} and plait measure \
         import, or plait measure."
    )
}

/// Returns the advice in a sentence: whether to bond, and for which workloads.
pub(super) fn answer(advice: &Advice) -> String {
    if advice.lines.is_empty() {
        return "Cannot tell: interrupted before the first draw ended.".to_owned();
    }
    let with = |verdict: Verdict| -> Vec<&str> {
        let lines = advice.lines.iter().filter(|it| !it.outage && it.verdict == verdict);
        lines.map(|it| it.name.as_str()).collect()
    };
    let (gains, losses, unclear) =
        (with(Verdict::Gain), with(Verdict::Loss), with(Verdict::Unclear));
    let of_loads = || advice.lines.iter().filter(|it| !it.outage);
    let loads = of_loads().count();
    if of_loads().all(|it| it.fails(it.alone) && it.fails(it.bonded)) {
        return "Don't bond the links: no load finishes on them, neither on one path alone nor on all.".to_owned();
    }
    // Two links with one bottleneck cannot be faster together. A wide interval comes from their uncertain rates then.
    let nothing =
        gains.is_empty() && advice.lines.iter().all(|it| it.outage || it.gain.median < NOTABLE);
    let mut text = match (gains.is_empty(), losses.is_empty(), unclear.is_empty()) {
        _ if nothing && advice.shared.is_some() => {
            let link = advice.shared.as_deref().unwrap_or_default();
            let slower = match losses.is_empty() {
                true => String::new(),
                false => format!(", and {} get slower", list(&losses)),
            };
            format!(
                "Don't bond the links for speed: nothing is to be gained, because all paths share one \
                 bottleneck ({link}){slower}."
            )
        }
        (false, true, true) if gains.len() == loads => {
            "Bond the links: every load gains.".to_owned()
        }
        (false, true, true) => {
            format!("Bond the links: {} gain, and the other loads change little.", list(&gains))
        }
        (false, true, false) => {
            format!(
                "Bond the links: {} gain. It is not clear for {}.",
                list(&gains),
                list(&unclear)
            )
        }
        (false, false, _) => {
            format!("Bond the links for {}, but not for {}.", list(&gains), list(&losses))
        }
        (true, false, _) => format!("Don't bond the links: {} get slower.", list(&losses)),
        (true, true, true) => "Don't bond the links for speed: nothing is to be gained.".to_owned(),
        (true, true, false) => {
            format!("Cannot tell: the links are not known well enough for {}.", list(&unclear))
        }
    };
    if let Some(first) = advice.first.as_ref().filter(|_| !gains.is_empty()) {
        text += &format!(" Begin on {} (as the first --from or --path).", first.path);
    }
    if gains.is_empty() {
        text += &kept_alive(advice);
    }
    let slower = slower_in_outages(advice);
    if !slower.is_empty() {
        text += &format!(" But {} get slower.", list(&slower));
    }
    text
}

/// Returns the sentence about an outage of the best path that the other paths bridge.
fn kept_alive(advice: &Advice) -> String {
    let Some(line) = advice.lines.iter().find(|it| is_kept_alive(it)) else {
        return String::new();
    };
    let best = &line.best_path;
    let others: Vec<&str> =
        advice.paths.iter().filter(|it| *it != best).map(String::as_str).collect();
    let (role, verb) = match others.len() {
        1 => ("a backup", "keeps"),
        _ => ("backups", "keep"),
    };
    format!(" As {role}, {} {verb} connections alive while {best} is down.", list(&others))
}

/// Returns the outages that get worse with the goal to take.
fn slower_in_outages(advice: &Advice) -> Vec<&str> {
    let Some(goal) = advice.take.as_ref().map(|it| it.goal.as_str()) else { return Vec::new() };
    // Without prices only one path at a time differs from the lines, and it begins on the path that is best alone.
    if advice.goals.is_empty() && goal == goals::ONE_AT_A_TIME {
        return Vec::new();
    }
    let verdict = |line: &Line| {
        let of_goal = advice.goals.iter().find(|it| it.load == line.name && it.goal == goal);
        of_goal.map_or(line.verdict, |it| it.gain.verdict())
    };
    let lines = advice.lines.iter().filter(|it| it.outage && verdict(it) == Verdict::Loss);
    lines.map(|it| it.name.as_str()).collect()
}

/// Joins names as in a sentence.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::loads::CALLS;
    use super::*;

    fn gain(low: f64, median: f64, high: f64) -> Verdict {
        Gain { median, low, high }.verdict()
    }

    #[test]
    fn the_interval_decides() {
        assert_eq!(gain(1.1, 1.3, 1.5), Verdict::Gain);
        assert_eq!(gain(0.97, 1.2, 1.5), Verdict::Gain);
        assert_eq!(gain(0.6, 0.8, 0.95), Verdict::Loss);
        assert_eq!(gain(0.98, 1.01, 1.03), Verdict::Nothing);
        assert_eq!(gain(0.97, 1.01, 1.4), Verdict::Nothing);
        assert_eq!(gain(0.7, 1.0, 1.5), Verdict::Unclear);
        assert_eq!(gain(0.8, 0.97, 1.02), Verdict::Unclear);
    }

    #[test]
    fn the_interval_has_the_error_of_the_simulator() {
        // Without any uncertainty of the links, it is 1.2816 deviations.
        let sure = Gain::live(&[1.5; 9], &[90.0; 9], &CALLS).unwrap();
        let end = libm::exp(1.281_552 * CALLS.model.deviation(90.0));
        assert!((sure.high / 1.5 - end).abs() < 1e-6, "{sure:?}");
        assert!((1.5 / sure.low - end).abs() < 1e-6, "{sure:?}");
        assert_eq!(sure.median, 1.5);
        // A wide interval hardly changes.
        let ratios: Vec<f64> = (50..=150).map(|it| f64::from(it) / 100.0).collect();
        let (draws, wide) =
            (Gain::of(&ratios).unwrap(), Gain::live(&ratios, &ratios, &CALLS).unwrap());
        assert!(wide.low < draws.low && draws.low / wide.low < 1.001, "{draws:?} {wide:?}");
        assert!(wide.high > draws.high && wide.high / draws.high < 1.001, "{draws:?} {wide:?}");
    }

    #[test]
    fn the_quantiles_are_those_of_the_draws() {
        let ratios: Vec<f64> = (0..=100).map(f64::from).collect();
        let found = Gain::of(&ratios).unwrap();
        assert_eq!((found.low, found.median, found.high), (10.0, 50.0, 90.0));
        assert_eq!(Gain::of(&[]), None);
    }
}
