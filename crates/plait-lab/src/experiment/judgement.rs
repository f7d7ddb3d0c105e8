//! Verdicts by the interval over runs. A claim holds if its whole statement holds with the wanted confidence.
//! It fails if the negation does, and is undecided otherwise.
//!
//! The method is the bootstrap. Each resample draws the runs of every cell again, the same runs for all
//! cells, because runs are paired by seed. If an axis is a sample of networks, its points are drawn again as
//! well, the same for all rows. Then the *whole* statement is evaluated, so counts, ratios, quantiles and
//! maxima need no formula of their own:
//!
//! * **holds** if the statement is true in at least the wanted share of resamples, and so is each of its
//!   relations. The share of a relation is corrected for its bias, because maxima and absolute values of
//!   noisy numbers are biased (Efron's bias-corrected percentile). A conjunction is as sure as its least sure
//!   part (intersection-union test).
//! * **fails** if the statement is true in at most the remaining share of resamples, and one of its relations
//!   fails beyond chance. Chance is corrected for the number of relations (Bonferroni).
//!
//! A bound on the largest (or least) of several cells is judged as a bound on each of them. If any of several
//! cells is enough, one of them must hold beyond chance, with the same correction.
//!
//! Few runs underestimate their own spread, so the wanted shares follow Student's distribution (the expanded
//! percentile interval of Hesterberg 2015). With ten runs, a confidence of 95 % requires 96.7 % of the
//! resamples.
//!
//! A bound on each network of a sample fails if nearly every resample of networks has one that surely breaks
//! it, by its own runs. That takes four such networks or more.
//!
//! Two results decide nothing, because runs are missing. If no run has a value for a relation, the relation
//! is neither true nor false. If both sides of `a < b` are equal in every resample, the runs may have missed
//! a rare event that separates them. Such a tie refutes the relation only if the runs show that at least 95 %
//! of all runs are tied.
//!
//! Two statistics need another rule. The largest and the least value of the runs cannot be resampled. A bound
//! on them is a statement about every run. One run refutes it. It is accepted if the runs show that at least
//! 95 % of all runs keep it (zero failures, binomial). A share of the runs is drawn from the Beta
//! distribution of its counts (Jeffreys), because resampled runs that all agree would leave no doubt at all.

use super::eval::{Cells, Evaluator};
use super::evidence::{Evidence, agrees};
use super::finding::{Atom, Group, RelationResult};
use super::names::Names;
use super::results::Results;
use super::statement::{Statistic, Value};
use super::wanted::{self, Sure};
use super::{Claim, ClaimKind};
use crate::stats::{deviation, normal, percentile};
use plait_base::RandomStream;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Confidence of a verdict with a single look.
pub const CONFIDENCE: f64 = 0.95;
/// Resamples of a claim; fewer if the first ones all agree.
const RESAMPLES: usize = 2_000;
/// Resamples after which unanimous answers are enough.
const UNANIMOUS_RESAMPLES: usize = 1_000;
/// Largest correction of a bias, in standard deviations.
const LARGEST_BIAS: f64 = 1.0;
/// Share of resamples equal to the estimate above which the estimate is too discrete to correct.
const DISCRETE_SHARE: f64 = 0.1;

/// The answer of the runs to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    Holds,
    Fails,
    Undecided,
}

/// A decision and its evidence.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Judgement {
    pub(super) decision: Decision,
    /// Share of the resamples in which the statement holds; absent if nothing was resampled.
    pub(super) share: Option<f64>,
    /// The relations; for an undecided claim each at the point with the least confidence.
    pub(super) shown: Vec<RelationResult>,
    /// The 95 % interval of the left value of each relation.
    pub(super) intervals: Vec<Option<[f64; 2]>>,
    /// Estimated factor of runs that would decide an undecided claim; absent if there is none.
    pub(super) factor: Option<f64>,
}

/// Decides a claim at this confidence. `shown` are its relations over all runs, each at the point with the
/// smallest margin.
pub(super) fn decide(
    results: &Results,
    names: Names<'_>,
    claim: &Claim,
    shown: Vec<RelationResult>,
    confidence: f64,
) -> Judgement {
    let true_now = !shown.is_empty() && shown.iter().all(|it| it.holds);
    let decided = |holds| if holds { Decision::Holds } else { Decision::Fails };
    let evidence = Evidence::of(results, claim);
    // An exact claim is an identity: it is computed, not estimated.
    if claim.kind == ClaimKind::Exact || !evidence.random {
        let decision = decided(true_now);
        return Judgement { decision, share: None, shown, intervals: Vec::new(), factor: None };
    }
    let drawn = Resamples::draw(results, names, claim, &evidence);
    let decision = match (drawn.answer(true_now, confidence, &evidence), true_now) {
        // A refuted bound needs no minimum number of runs; an estimate does.
        (Decision::Fails, false) if evidence.enough || drawn.certain => Decision::Fails,
        (Decision::Holds, true) if evidence.enough && evidence.kept(confidence) => Decision::Holds,
        _ => Decision::Undecided,
    };
    let (shown, factor) = match decision {
        Decision::Undecided => {
            let sure = drawn.sure();
            let factor = wanted::factor(&sure, true_now, confidence);
            let factor = factor.map(|it| it.max(evidence.least_factor(confidence)));
            let confidences: Vec<f64> = sure.into_iter().flat_map(|it| it.confidences).collect();
            let of = |atom: usize| confidences.get(atom).copied().unwrap_or(0.0);
            (Evaluator { names, cells: results }.judge_by(&claim.holds, &of), factor)
        }
        Decision::Holds | Decision::Fails => (shown, None),
    };
    let intervals = shown.iter().map(|it| drawn.interval(it)).collect();
    Judgement { decision, share: Some(drawn.share), shown, intervals, factor }
}

/// How often each relation of a statement held, over all resamples.
struct Resamples {
    count: usize,
    /// Share in which the whole statement held.
    share: f64,
    groups: Vec<Tallies>,
    /// True if all resamples gave the same answer to every relation.
    certain: bool,
}

/// The atoms of a relation over all resamples.
struct Tallies {
    any: bool,
    atoms: Vec<Tally>,
    /// If each atom is of one network of a sample: the same with only the runs resampled. Otherwise empty.
    each_network: Vec<Tally>,
}

/// One atom over all resamples.
#[derive(Clone, Default)]
struct Tally {
    now: f64,
    held: usize,
    below: usize,
    equal: usize,
    /// Resamples in which both sides are equal although the relation is strict.
    tied: usize,
    /// True if one of its values is missing.
    absent: bool,
    lefts: Vec<f64>,
}

impl Resamples {
    fn draw(results: &Results, names: Names<'_>, claim: &Claim, evidence: &Evidence) -> Resamples {
        let known = ValueCache::default();
        let tally =
            |atom: &Atom| Tally { now: atom.margin, absent: atom.absent, ..Tally::default() };
        let now = Evaluator { names, cells: results }.groups(&claim.holds);
        let mut groups: Vec<Tallies> = now
            .iter()
            .map(|group| {
                let each = group.atoms.iter().filter(|_| group.over_networks);
                Tallies {
                    any: group.any,
                    atoms: group.atoms.iter().map(tally).collect(),
                    each_network: each.map(tally).collect(),
                }
            })
            .collect();
        let mut stream = RandomStream::new(0, &["claim", &claim.id]);
        let (mut count, mut whole) = (0, 0);
        while count < RESAMPLES {
            let cells = Resampled::draw(results, &known, evidence, &mut stream);
            let found = Evaluator { names, cells: &cells }.groups(&claim.holds);
            count += 1;
            whole += usize::from(!found.is_empty() && found.iter().all(Group::holds));
            for (tallies, group) in groups.iter_mut().zip(&found) {
                add(&mut tallies.atoms, group);
            }
            if count == UNANIMOUS_RESAMPLES && (whole == 0 || whole == count) {
                break;
            }
        }
        if groups.iter().any(|it| !it.each_network.is_empty()) {
            for _ in 0..count {
                let cells = Resampled::of_runs(results, &known, &mut stream);
                let found = Evaluator { names, cells: &cells }.groups(&claim.holds);
                for (tallies, group) in groups.iter_mut().zip(&found) {
                    add(&mut tallies.each_network, group);
                }
            }
        }
        let mut atoms = groups.iter().flat_map(|it| &it.atoms);
        Resamples {
            count,
            share: whole as f64 / count as f64,
            certain: atoms.all(|it| it.held == 0 || it.held == count),
            groups,
        }
    }

    fn answer(&self, true_now: bool, confidence: f64, evidence: &Evidence) -> Decision {
        // One resample is the finest share.
        let one = 1.0 / self.count as f64;
        let level =
            |doubt: f64, among: usize| evidence.expanded(doubt / among.max(1) as f64).max(one);
        let doubt = 1.0 - confidence;
        let whole = level(doubt, 1);
        let sure = |tally: &Tally| tally.confidence(self.count);
        let holds = |group: &Tallies| {
            let each = if group.any { level(doubt, group.atoms.len()) } else { whole };
            let mut atoms = group.atoms.iter();
            match group.any {
                false => atoms.all(|it| sure(it) >= 1.0 - each),
                true => atoms.any(|it| sure(it) >= 1.0 - each),
            }
        };
        // The units of which one must fail: relations at a point, or a whole relation if any point is enough.
        let units = self.groups.iter().map(|it| if it.any { 1 } else { it.atoms.len() }).sum();
        let chance = level(doubt, units);
        let ties_count = agrees(evidence.size, confidence);
        let refuted = |tally: &Tally| {
            let tied = tally.tied == self.count && !ties_count;
            sure(tally) <= chance && !tally.absent && !tied
        };
        // The share of resamples of the networks without any network that breaks the bound.
        let kept = |networks: &[Tally]| {
            let all = networks.len() as f64;
            let broken = networks.iter().filter(|it| refuted(it)).count() as f64;
            libm::pow(1.0 - broken / all, all)
        };
        let bounds = self.groups.iter().filter(|it| !it.any && !it.each_network.is_empty()).count();
        let seldom_kept =
            |networks: &[Tally]| !networks.is_empty() && kept(networks) <= level(doubt, bounds);
        let fails = |group: &Tallies| match group.any {
            false => seldom_kept(&group.each_network) || group.atoms.iter().any(refuted),
            true => group.atoms.iter().all(refuted),
        };
        if true_now && self.share >= 1.0 - whole && self.groups.iter().all(holds) {
            Decision::Holds
        } else if !true_now && self.share <= whole && self.groups.iter().any(fails) {
            Decision::Fails
        } else {
            Decision::Undecided
        }
    }

    /// Returns the confidence of each atom, by relation.
    fn sure(&self) -> Vec<Sure> {
        let confidences =
            |it: &Tallies| it.atoms.iter().map(|it| it.confidence(self.count)).collect();
        self.groups.iter().map(|it| Sure { any: it.any, confidences: confidences(it) }).collect()
    }

    /// Returns the 95 % interval of the left value of a relation. A value of one network varies only with the
    /// runs of this network.
    fn interval(&self, shown: &RelationResult) -> Option<[f64; 2]> {
        let mut atoms = self.groups.iter().flat_map(|it| match it.each_network.is_empty() {
            true => &it.atoms,
            false => &it.each_network,
        });
        let tally = atoms.nth(shown.atom).filter(|_| !shown.sign.is_empty())?;
        let mut values = tally.lefts.clone();
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        Some([percentile(&values, 2.5)?, percentile(&values, 97.5)?])
    }
}

fn add(tallies: &mut [Tally], group: &Group) {
    for (tally, atom) in tallies.iter_mut().zip(&group.atoms) {
        tally.add(atom);
    }
}

impl Tally {
    fn add(&mut self, atom: &Atom) {
        self.held += usize::from(atom.holds);
        self.below += usize::from(atom.margin < self.now);
        self.equal += usize::from(atom.margin == self.now);
        self.tied += usize::from(atom.margin == 0.0 && !atom.holds);
        self.lefts.push(atom.left);
    }

    /// Returns the confidence that the relation holds: the share of resamples in which it holds, corrected by
    /// the distance of their median from the estimate.
    fn confidence(&self, count: usize) -> f64 {
        let all = count as f64;
        let broken = 1.0 - self.held as f64 / all;
        let discrete = self.equal as f64 > DISCRETE_SHARE * all;
        if broken <= 0.0 || broken >= 1.0 || discrete {
            return 1.0 - broken;
        }
        let below = (self.below as f64 + 0.5 * self.equal as f64) / all;
        let bias = deviation(below).clamp(-LARGEST_BIAS, LARGEST_BIAS);
        1.0 - normal(deviation(broken) - 2.0 * bias)
    }
}

/// Row, points, measure, and whether the statistic is an extreme.
type Key = (usize, Vec<usize>, String, bool);

/// Cache of the values that a claim uses.
#[derive(Default)]
struct ValueCache(RefCell<BTreeMap<Key, Rc<[f64]>>>);

impl ValueCache {
    fn values(&self, results: &Results, row: usize, at: &[usize], value: &Value) -> Rc<[f64]> {
        let extreme = value.statistic.is_extreme();
        let key = (row, at.to_vec(), value.measure.clone(), extreme);
        let mut known = self.0.borrow_mut();
        let found = known.entry(key);
        found.or_insert_with(|| Cells::values(results, row, at, value).into()).clone()
    }
}

/// The same cells with resampled runs and networks.
struct Resampled<'a> {
    results: &'a Results,
    known: &'a ValueCache,
    /// The network that replaces each one, by axis.
    networks: BTreeMap<usize, BTreeMap<usize, usize>>,
    stream: RefCell<RandomStream>,
    /// Draws by number of runs: cells with the same number of runs get the same draw.
    picks: RefCell<BTreeMap<usize, Rc<[usize]>>>,
}

impl<'a> Resampled<'a> {
    fn draw(
        results: &'a Results,
        known: &'a ValueCache,
        evidence: &Evidence,
        stream: &mut RandomStream,
    ) -> Resampled<'a> {
        let mut networks = BTreeMap::new();
        for (axis, points) in &evidence.sampled {
            let drawn =
                |point: &usize| (*point, points[stream.below(points.len() as u64) as usize]);
            networks.insert(*axis, points.iter().map(drawn).collect());
        }
        Resampled { networks, ..Resampled::of_runs(results, known, stream) }
    }

    /// Resamples only the runs, with the same networks.
    fn of_runs(
        results: &'a Results,
        known: &'a ValueCache,
        stream: &mut RandomStream,
    ) -> Resampled<'a> {
        let stream = RandomStream::new(stream.bits(), &["runs"]);
        Resampled {
            results,
            known,
            networks: BTreeMap::new(),
            stream: RefCell::new(stream),
            picks: RefCell::default(),
        }
    }

    fn picks(&self, runs: usize) -> Rc<[usize]> {
        let mut picks = self.picks.borrow_mut();
        let found = picks.entry(runs).or_insert_with(|| {
            let mut stream = self.stream.borrow_mut();
            (0..runs).map(|_| stream.below(runs as u64) as usize).collect()
        });
        found.clone()
    }
}

impl Cells for Resampled<'_> {
    fn only(&self, row: usize, axis: usize) -> Option<&[usize]> {
        self.results.only(row, axis)
    }

    fn runs(&self, row: usize, at: &[usize]) -> usize {
        Cells::runs(self.results, row, at)
    }

    fn values(&self, row: usize, at: &[usize], value: &Value) -> Vec<f64> {
        let at: Vec<usize> =
            at.iter().enumerate().map(|(axis, point)| self.point(axis, *point)).collect();
        let values = self.known.values(self.results, row, &at, value);
        match value.statistic {
            // An extreme is taken over all runs, not resampled.
            extreme if extreme.is_extreme() => values.to_vec(),
            _ if values.len() < 2 => values.to_vec(),
            Statistic::Runs => self.picks(values.len()).iter().map(|run| values[*run]).collect(),
            // Drawing one run fewer than there are makes the variance of a mean unbiased.
            _ => self.picks(values.len())[1..].iter().map(|run| values[*run]).collect(),
        }
    }

    fn point(&self, axis: usize, point: usize) -> usize {
        self.networks.get(&axis).and_then(|it| it.get(&point)).copied().unwrap_or(point)
    }

    fn share(&self, held: usize, all: usize) -> f64 {
        let mut stream = self.stream.borrow_mut();
        let held_part = half_gamma(held, &mut stream);
        held_part / (held_part + half_gamma(all - held, &mut stream))
    }
}

/// Returns a draw from the Gamma distribution of shape `count` + 1/2.
fn half_gamma(count: usize, stream: &mut RandomStream) -> f64 {
    let exponential = |stream: &mut RandomStream| -libm::log(1.0 - stream.unit());
    let turn = libm::cos(core::f64::consts::TAU * stream.unit());
    // Half of the square of a normal variable (Box and Muller).
    let half = exponential(stream) * turn * turn;
    (0..count).map(|_| exponential(stream)).sum::<f64>() + half
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the mean and spread of a Beta distribution of k + 1/2 and n - k + 1/2.
    #[test]
    fn a_share_of_runs_keeps_the_doubt_of_its_count() {
        let mut stream = RandomStream::new(1, &["beta"]);
        let draws: Vec<f64> = (0..20_000)
            .map(|_| {
                let held = half_gamma(9, &mut stream);
                held / (held + half_gamma(1, &mut stream))
            })
            .collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 9.5 / 11.0).abs() < 0.005, "{mean}");
        let below = draws.iter().filter(|it| **it < 0.9).count() as f64 / draws.len() as f64;
        // The Beta distribution (9.5, 1.5) has 0.5615 below 0.9, by numerical integration.
        assert!((below - 0.5615).abs() < 0.015, "{below}");
    }
}
