//! Tests verdicts over runs with a known distribution: how often they are wrong, and that they are reached.

use plait_app::measure::Measures;
use plait_base::RandomStream;
use plait_lab::experiment::{
    ClaimKind, ClaimVerdict, Experiment, Judged, Looks, Misses, Progress, Settled, Store, again,
    settle,
};
use plait_lab::scenario::no_files;
use plait_lab::{Cell, RunOutcome, Subject, World};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A world with normally distributed completion times, by scheduler and network.
struct Normal {
    /// Mean of `minrtt` minus mean of `ecf`, in ms.
    effect_ms: f64,
    /// Standard deviation over the runs of a network, in ms.
    run_sd_ms: f64,
    /// Standard deviation of the effect over networks, in ms.
    network_sd_ms: f64,
}

fn normal(seed: u64, purpose: &[&str]) -> f64 {
    let mut stream = RandomStream::new(seed, purpose);
    // The sum of twelve uniform numbers has a variance of 1.
    (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
}

impl World for Normal {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        let row = cell.to_string();
        let network = cell.scenario.paths[0].report(false).rates.rate_down_bps.unwrap_or(0);
        let mut mean = 100.0;
        if matches!(&cell.subject, Subject::Scheduler(spec) if spec.to_string() == "minrtt") {
            let apart = normal(network, &["network"]) * self.network_sd_ms;
            mean += self.effect_ms + apart;
        }
        let rate = network.to_string();
        let measures = Measures {
            complete: true,
            completion_ms: Some(mean + self.run_sd_ms * normal(seed, &[&row, &rate])),
            ..Measures::default()
        };
        RunOutcome {
            measures,
            competing: Vec::new(),
            habits: None,
            hash: 0,
            length: plait_base::Span::ZERO,
            completed: true,
            broke: None,
            violation: None,
        }
    }
}

fn file(runs: u32, rate: &str, holds: &str) -> Experiment {
    let text = format!(
        "title = \"Known\"\nworkload = \"download:1MB\"\nruns = {runs}\n\
         [[path]]\nname = \"one\"\nrtt = \"20ms\"\nrate = \"{{net.rate}}\"\nloss = \"1%\"\n\
         [[path]]\nname = \"two\"\nrtt = \"40ms\"\nrate = \"10mbit\"\n\
         [sweep]\nnet = {rate}\n[row]\na = {{ scheduler = \"minrtt\" }}\nb = {{ scheduler = \"ecf\" }}\n\
         [[claim]]\nid = \"x-h1\"\nkind = \"hard\"\nsays = \"s\"\nholds = \"{holds}\"\n"
    );
    Experiment::from_toml("x.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// One network.
const ONE: &str = "[{ is = \"1\", rate = \"20mbit\" }]";
/// Five networks.
const FIVE: &str = "[{ is = \"1\", rate = \"20mbit\" }, { is = \"2\", rate = \"21mbit\" }, \
    { is = \"3\", rate = \"22mbit\" }, { is = \"4\", rate = \"23mbit\" }, { is = \"5\", rate = \"24mbit\" }]";

fn settled(experiment: &Experiment, world: &impl World, seed: u64, most: u32) -> Settled {
    let misses = Misses::default();
    let looks =
        Looks { seed, quick: false, claims_only: false, most, misses: &misses, read: &no_files };
    let progress = Progress {
        told: &|_, _, _| (),
        cancelled: &AtomicBool::new(false),
        jobs: std::num::NonZero::new(1),
    };
    let store = Store::in_memory("1");
    settle(std::slice::from_ref(experiment), &looks, world, &store, &progress).unwrap()
}

/// Returns how often each verdict results over `count` seeds, in per cent.
fn verdicts(
    experiment: &Experiment,
    world: &impl World,
    most: u32,
    count: u64,
) -> BTreeMap<&'static str, f64> {
    let mut tally = BTreeMap::new();
    for seed in 1..=count {
        let standing = settled(experiment, world, seed, most).judged[0].standing.name();
        *tally.entry(standing).or_insert(0.0) += 100.0 / count as f64;
    }
    tally
}

fn share(tally: &BTreeMap<&'static str, f64>, standing: &str) -> f64 {
    tally.get(standing).copied().unwrap_or(0.0)
}

const NOISE: Normal = Normal { effect_ms: 0.0, run_sd_ms: 5.0, network_sd_ms: 0.0 };

/// The hardest case: the true difference is on the edge, so either verdict is a mistake. 5 % of 200 seeds are
/// 10 seeds. More than 18 (9 %) would occur by chance once in 200 times.
#[test]
fn at_the_edge_either_verdict_is_rare() {
    let plain = file(10, ONE, "a.completion_ms.mean < b.completion_ms.mean");
    for most in [1, 8] {
        let tally = verdicts(&plain, &NOISE, most, 200);
        let (held, failed) = (share(&tally, "holds"), share(&tally, "fails"));
        assert!(held <= 9.0 && failed <= 9.0, "{most}: {tally:?}");
    }
    // A conjunction of five relations, all on the edge. Its negation must not result merely from testing five
    // times.
    let five = file(10, FIVE, "a.completion_ms.mean <= b.completion_ms.mean");
    let tally = verdicts(&five, &NOISE, 1, 200);
    assert!(share(&tally, "fails") <= 9.0 && share(&tally, "holds") <= 1.0, "{tally:?}");
    // The true maximum of five equal means is 100, but nearly every sample exceeds it.
    let most = file(10, FIVE, "max(b.completion_ms.mean) <= 100");
    let tally = verdicts(&most, &NOISE, 1, 200);
    assert!(share(&tally, "fails") <= 9.0, "{tally:?}");
}

/// A true difference of one standard deviation of a run needs about 20 runs for 98.75 %. Ten runs do not
/// decide it, and two or four times as many do.
#[test]
fn a_difference_is_found_with_as_many_runs_as_it_needs() {
    let world = Normal { effect_ms: 5.0, ..NOISE };
    let true_one = file(10, ONE, "a.completion_ms > b.completion_ms");
    let tally = verdicts(&true_one, &world, 16, 100);
    assert!(share(&tally, "holds") >= 95.0, "{tally:?}");
    let false_one = file(10, ONE, "a.completion_ms.mean <= b.completion_ms.mean");
    let tally = verdicts(&false_one, &world, 16, 100);
    assert!(share(&tally, "fails") >= 95.0, "{tally:?}");
    let took: Vec<u32> =
        (1..=40).map(|seed| settled(&true_one, &world, seed, 16).judged[0].runs).collect();
    assert!(took.iter().any(|runs| *runs > 10) && took.iter().all(|runs| *runs <= 160), "{took:?}");
    // Counts, ratios, absolute values and quantiles over networks, far from their edge.
    for (holds, standing) in [
        ("count(a.completion_ms > b.completion_ms) >= 4", "holds"),
        ("count(a.completion_ms > b.completion_ms) <= 1", "fails"),
        ("abs(a.completion_ms / b.completion_ms - 1) <= 15%", "holds"),
        ("abs(a.completion_ms / b.completion_ms - 1) <= 1%", "fails"),
        ("quantile(a.completion_ms, 25%) > quantile(b.completion_ms, 75%)", "holds"),
        ("share(a.completion_ms.runs[net=1] > b.completion_ms.runs[net=1]) >= 60%", "holds"),
        ("increasing(a.completion_ms, 5%)", "holds"),
        ("for net: a.completion_ms - b.completion_ms >= 1", "holds"),
    ] {
        let world = Normal { effect_ms: 10.0, ..NOISE };
        let tally = verdicts(&file(30, FIVE, holds), &world, 4, 10);
        assert!(share(&tally, standing) >= 90.0, "{holds}: {tally:?}");
    }
}

/// Few runs decide nothing, however large the difference.
#[test]
fn a_verdict_needs_runs() {
    let world = Normal { effect_ms: 50.0, ..NOISE };
    let claim = "a.completion_ms > b.completion_ms";
    for (runs, standing) in [(1, "undecided"), (5, "undecided"), (10, "holds")] {
        let judged = settled(&file(runs, ONE, claim), &world, 1, 1).judged;
        assert_eq!(judged[0].standing.name(), standing, "{runs}");
    }
}

/// One run refutes a bound on every run; accepting it takes many.
#[test]
fn the_largest_run_is_not_resampled() {
    let far = file(30, ONE, "b.completion_ms.max < 200");
    for (most, standing) in [(1, "undecided"), (2, "undecided"), (4, "holds")] {
        // 59 runs without a failure show with 95 % confidence that 95 % of all runs have none; four looks
        // require more.
        assert_eq!(settled(&far, &NOISE, 1, most).judged[0].standing.name(), standing, "{most}");
    }
    let broken = file(30, ONE, "b.completion_ms.max < 100");
    assert_eq!(settled(&broken, &NOISE, 1, 1).judged[0].standing, ClaimVerdict::Fails);
    // One run proves that some run exceeds a bound.
    let some = file(10, ONE, "b.completion_ms.max > 100");
    assert_eq!(settled(&some, &NOISE, 1, 1).judged[0].standing, ClaimVerdict::Holds);
}

/// A world in which `minrtt` takes longer than 100 ms in one of twenty runs, and `ecf` never.
/// Optionally, no run has a value.
struct Rare {
    without: bool,
}

impl World for Rare {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        let mut outcome = NOISE.run(cell, seed);
        let slow =
            cell.to_string() == "minrtt" && RandomStream::new(seed, &["rare"]).below(20) == 0;
        let took = if slow { 150.0 } else { 100.0 };
        outcome.measures.completion_ms = (!self.without).then_some(took);
        outcome
    }
}

/// A world in which about every other run has no value.
struct EveryOther;

impl World for EveryOther {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        let without = RandomStream::new(seed, &["some"]).below(2) == 0;
        Rare { without }.run(cell, seed)
    }
}

/// If no run shows a rare event, nothing is refuted.
#[test]
fn a_tie_of_few_runs_refutes_nothing() {
    let more = file(10, ONE, "a.completion_ms.mean > b.completion_ms.mean");
    let tally = verdicts(&more, &Rare { without: false }, 1, 100);
    assert_eq!(share(&tally, "fails"), 0.0, "{tally:?}");
    // If two rows never differ, a hundred runs refute that one is greater.
    let same = file(100, ONE, "b.completion_ms.mean > b.completion_ms.median");
    let tally = verdicts(&same, &Rare { without: false }, 1, 5);
    assert_eq!(share(&tally, "fails"), 100.0, "{tally:?}");
}

/// A run without a value does not affect the maximum. If no run has a value, the bound is neither kept nor
/// broken.
#[test]
fn without_a_value_there_is_no_verdict() {
    let most = file(100, ONE, "a.completion_ms.max <= 200 and b.completion_ms.max <= 200");
    let judged = settled(&most, &EveryOther, 1, 1).judged;
    assert_eq!(judged[0].standing, ClaimVerdict::Holds, "{judged:?}");
    for holds in ["a.completion_ms.max <= 200", "a.completion_ms < b.completion_ms"] {
        let tally = verdicts(&file(10, ONE, holds), &Rare { without: true }, 8, 3);
        assert_eq!(share(&tally, "undecided"), 100.0, "{holds}: {tally:?}");
    }
}

/// Drawn networks are a sample: their spread counts although the runs of each agree.
#[test]
fn the_spread_over_networks_counts() {
    let world = Normal { effect_ms: 0.0, run_sd_ms: 0.1, network_sd_ms: 5.0 };
    let draw = |sample: bool| {
        let net = format!("{{ design = 10, sample = {sample}, rate = '10mbit..30mbit' }}");
        file(10, &net, "mean(a.completion_ms) > mean(b.completion_ms)")
    };
    let tally = verdicts(&draw(true), &world, 1, 100);
    assert!(share(&tally, "undecided") >= 85.0, "{tally:?}");
    // If the claim is about these very networks, the same runs decide it.
    let tally = verdicts(&draw(false), &world, 1, 20);
    assert!(share(&tally, "undecided") <= 20.0, "{tally:?}");
    // A bound on each network fails if some networks surely break it, even if the others keep it.
    let bound = |bound: u32| {
        let net = "{ design = 40, sample = true, rate = '10mbit..30mbit' }";
        file(10, net, &format!("max(a.completion_ms) <= {bound}"))
    };
    // The effect has a standard deviation of 5 ms. One network of six is therefore above 105 ms,
    // and one of 3 million above 125 ms.
    let tally = verdicts(&bound(105), &world, 1, 40);
    assert!(share(&tally, "fails") >= 75.0 && share(&tally, "holds") == 0.0, "{tally:?}");
    let tally = verdicts(&bound(125), &world, 1, 20);
    assert_eq!(share(&tally, "holds"), 100.0, "{tally:?}");
    // The value of one network has the interval of its own runs, and not of other networks.
    let judged = settled(&bound(105), &world, 1, 1).judged;
    let (shown, interval) = (&judged[0].shown[0], judged[0].intervals[0].unwrap());
    let [low, high] = interval;
    assert!(low <= shown.left_value && shown.left_value <= high, "{interval:?} {shown:?}");
    assert!(high - low < 1.0, "{interval:?}");
    // If all networks are on the edge, half of the means exceed it by chance. That refutes nothing, and
    // neither does a network without a value.
    let edge = Normal { effect_ms: 0.0, run_sd_ms: 5.0, network_sd_ms: 0.0 };
    let tally = verdicts(&bound(100), &edge, 1, 40);
    assert!(share(&tally, "fails") <= 9.0 && share(&tally, "holds") <= 9.0, "{tally:?}");
    let tally = verdicts(&bound(125), &Rare { without: true }, 1, 3);
    assert_eq!(share(&tally, "undecided"), 100.0, "{tally:?}");
    // Another seed draws other networks. More runs draw more networks, and the first ones stay.
    let [one, other] = [1, 2].map(|seed| draw(true).enlarged(seed, 1).unwrap());
    let more = draw(true).enlarged(1, 4).unwrap();
    assert!(one.axes[0].points[0].fields != other.axes[0].points[0].fields);
    assert_eq!((one.axes[0].points.len(), more.axes[0].points.len()), (10, 40));
    assert_eq!(one.axes[0].points, more.axes[0].points[..10]);
    assert_eq!(draw(false).enlarged(2, 4).unwrap().axes, draw(false).axes);
    let large = Normal { effect_ms: 3.0, ..world };
    let judged = settled(&draw(true), &large, 3, 8).judged;
    assert!(
        judged[0].standing == ClaimVerdict::Holds && judged[0].networks > Some(10),
        "{judged:?}"
    );
}

/// An interrupted run gives no verdict on a claim with missing runs, counts included.
#[test]
fn an_interrupted_run_has_no_verdict() {
    struct Stops<'a>(AtomicUsize, &'a AtomicBool);
    impl World for Stops<'_> {
        fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
            if self.0.fetch_add(1, Ordering::Relaxed) == 30 {
                self.1.store(true, Ordering::Relaxed);
            }
            NOISE.run(cell, seed)
        }
    }
    for holds in ["count(a.completion_ms > 0) >= 4", "a.completion_ms > 0", "a.completion_ms < 0"] {
        let cancelled = AtomicBool::new(false);
        let world = Stops(AtomicUsize::new(0), &cancelled);
        let misses = Misses::default();
        let looks = Looks {
            seed: 1,
            quick: false,
            claims_only: false,
            most: 8,
            misses: &misses,
            read: &no_files,
        };
        let one = std::num::NonZero::new(1);
        let progress = Progress { told: &|_, _, _| (), cancelled: &cancelled, jobs: one };
        let experiment = file(10, FIVE, holds);
        let store = Store::in_memory("1");
        let settled = settle(&[experiment], &looks, &world, &store, &progress).unwrap();
        assert_eq!(settled.judged[0].standing, ClaimVerdict::Unknown, "{holds}");
    }
}

/// Claims that hold are judged again with the next seeds, only on the points that they use. Claims that do
/// not hold, and claims without randomness, are left out.
#[test]
fn what_holds_is_judged_again_with_further_seeds() {
    let text = "title = \"Known\"\nworkload = \"download:1MB\"\nruns = 10\n\
        [[path]]\nname = \"one\"\nrtt = \"20ms\"\nrate = \"{rate}mbit\"\nloss = \"1%\"\n\
        [[path]]\nname = \"two\"\nrtt = \"40ms\"\nrate = \"10mbit\"\n\
        [sweep]\nrate = [20, 21]\n[row]\na = { scheduler = \"minrtt\" }\nb = { scheduler = \"ecf\" }\n";
    let claim = |id: &str, kind: &str, holds: &str| {
        let head = format!("[[claim]]\nid = \"{id}\"\nkind = \"{kind}\"\nsays = \"s\"\n");
        format!("{head}holds = \"{holds}\"\n")
    };
    let text = text.to_owned()
        + &claim("x-h1", "hard", "a.completion_ms[rate=20] < 150")
        + &claim("x-h2", "hard", "a.completion_ms > 150")
        + &claim("x-u1", "exact", "b.completion_ms > 0");
    let experiment = Experiment::from_toml("x.toml", &text).unwrap();
    let first = settled(&experiment, &NOISE, 7, 1);
    let names = |judged: &[Judged]| -> Vec<(String, ClaimVerdict)> {
        judged.iter().map(|it| (it.claim.id.clone(), it.standing.clone())).collect()
    };
    let held = ("x-h1".to_owned(), ClaimVerdict::Holds);
    assert!(names(&first.judged).contains(&held) && first.judged.len() == 3);
    let seeds = std::sync::Mutex::new(std::collections::BTreeSet::new());
    struct Noted<'a>(&'a std::sync::Mutex<std::collections::BTreeSet<u64>>);
    impl World for Noted<'_> {
        fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
            assert!(self.0.lock().unwrap().insert(seed), "{seed} twice");
            NOISE.run(cell, seed)
        }
    }
    let misses = Misses::default();
    let looks = Looks {
        seed: 7,
        quick: false,
        claims_only: false,
        most: 1,
        misses: &misses,
        read: &no_files,
    };
    let progress = Progress {
        told: &|_, _, _| (),
        cancelled: &AtomicBool::new(false),
        jobs: std::num::NonZero::new(1),
    };
    let store = Store::in_memory("1");
    let all = [experiment];
    let found = again(&all, &first.judged, &looks, 3, &Noted(&seeds), &store, &progress).unwrap();
    assert_eq!(found.iter().map(|it| it.seed).collect::<Vec<_>>(), [8, 9, 10]);
    for it in &found {
        assert_eq!((names(&it.judged), it.runs), (vec![held.clone()], 10));
    }
    let seeds = seeds.into_inner().unwrap();
    assert!(seeds.len() == 30 && [8, 9, 10].iter().all(|seed| seeds.contains(seed)));
}

/// The true value is the bound, so no number of runs decides. A hard claim gets all the runs that it may
/// have.
#[test]
fn an_undecided_soft_claim_gets_no_further_runs() {
    let hard = file(10, ONE, "a.completion_ms < 100");
    let mut soft = hard.clone();
    soft.claims[0].kind = ClaimKind::Soft;
    let runs = |experiment| {
        let settled = settled(experiment, &NOISE, 3, 4);
        assert_eq!(settled.judged[0].standing, ClaimVerdict::Undecided);
        settled.runs
    };
    // First both rows run, then only the row that the claim uses.
    assert_eq!((runs(&soft), runs(&hard)), (20, 20 + 20 + 40));
}
