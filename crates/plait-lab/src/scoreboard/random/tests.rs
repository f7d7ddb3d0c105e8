//! Random scoreboards over a world with known outcomes, and bounds over random links.

use super::judge::by_harm;
use super::*;
use crate::Simulator;
use std::sync::atomic::AtomicBool;

fn options(count: u32, schedulers: &str) -> RandomOptions {
    RandomOptions {
        count,
        seed: 5,
        order: PathOrder::Startable,
        runs: 1,
        schedulers: schedulers.to_owned(),
        settings: Vec::new(),
        jobs: None,
        command: "plait scoreboard --random".to_owned(),
    }
}

fn board(options: &RandomOptions) -> RandomBoard {
    let never = AtomicBool::new(false);
    let control =
        RandomControl { progress: &|_, _| (), cancelled: &never, known: &|_| None, keep: &|_| () };
    random_scoreboard(options, &Simulator, &control).unwrap()
}

fn played(number: u32, classes: &[&str], values: &[(&str, f64)]) -> Played {
    Played {
        number,
        command: format!("plait compare {number}"),
        classes: classes.iter().map(|class| (*class).to_owned()).collect(),
        rate_ratio: 2.0,
        rtt_ratio: 0.1,
        comparisons: vec![Comparison {
            measure: "completion_ms".to_owned(),
            first: 150.0,
            known: 100.0,
            startable: 120.0,
            again: 126.0,
            bound: Some(60.0),
            values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        }],
        extra: BTreeMap::new(),
    }
}

#[test]
fn a_share_of_ten_per_cent_weighs_more_than_any_of_two() {
    let standing = |name: &str, worse_10: f64, worse_2: f64, vs_best: f64| {
        let against = Against { worse_2, worse_10, worst: 2.0, worst_cell: 0, median: 1.0 };
        Standing {
            scheduler: name.to_owned(),
            against: BTreeMap::from([(Baseline::Startable, against)]),
            vs_best,
            of_bound: None,
            extra: 0.0,
        }
    };
    let mut standings = [
        standing("d", 0.001, 0.0, 1.0),
        standing("c", 0.000_5, 0.9, 1.2),
        standing("b", 0.000_5, 0.9, 1.1),
        standing("a", 0.000_5, 0.8, 2_000.0),
    ];
    standings.sort_by(by_harm);
    assert_eq!(standings.map(|it| it.scheduler), ["a", "b", "c", "d"]);
}

#[test]
fn schedulers_are_ranked_by_how_often_they_harm() {
    let cells = vec![
        played(0, &["loss"], &[("fair", 121.0), ("wild", 60.0)]),
        played(1, &[], &[("fair", 123.0), ("wild", 240.0)]),
    ];
    let board = judge(&options(2, "minrtt"), cells, Vec::new(), false);
    let names: Vec<&str> = board.standings.iter().map(|it| it.scheduler.as_str()).collect();
    assert_eq!(names, ["fair", "wild"]);
    let fair = &board.standings[0].against;
    let startable = &fair[&Baseline::Startable];
    assert_eq!((startable.worse_2, startable.worse_10), (0.5, 0.0));
    assert_eq!((startable.worst, startable.worst_cell), (123.0 / 120.0, 1));
    assert_eq!((fair[&Baseline::Known].worse_10, fair[&Baseline::First].worse_2), (1.0, 0.0));
    let wild = &board.standings[1];
    assert_eq!(wild.against[&Baseline::Startable].worse_10, 0.5);
    // Against the best of each cell: 1 and 240 / 123.
    assert!((wild.vs_best - libm::sqrt(240.0 / 123.0)).abs() < 1e-12);
    assert_eq!(wild.of_bound, Some((1.0 + 0.25) / 2.0));
    // 126 against 120 is 5 % more.
    let again = board.again.unwrap();
    assert_eq!((again.worse_2, again.worse_10, again.worst), (1.0, 0.0, 1.05));
    assert_eq!(
        (board.classes[0].class.as_str(), board.classes[0].comparisons),
        ("best path first", 0)
    );
    let loss = board.classes.iter().find(|it| it.class == "loss").unwrap();
    assert_eq!((loss.comparisons, loss.against["wild"].worse_2), (1, 0.0));
    assert_eq!(board.worst[0].command, "plait compare 1");
    let within = board.map.iter().find(|it| it.comparisons > 0).unwrap();
    assert_eq!(within.rate_ratio, [Some(1.5), Some(4.0)]);
    assert_eq!(within.rtt_ratio, [Some(1.0 / 16.0), Some(0.25)]);
}

#[test]
fn every_drawn_cell_is_a_scenario_and_the_draw_is_varied() {
    let options = options(400, "minrtt");
    let mut classes = std::collections::BTreeSet::new();
    for number in 0..400 {
        let drawn = draw(options.seed, number);
        assert_eq!(drawn, draw(options.seed, number));
        classes.extend(drawn.classes.clone());
        scenario(&options, &drawn.settings).unwrap();
    }
    for class in ["download", "upload", "page", "requests", "jitter", "outage", "rate step"] {
        assert!(classes.contains(class), "{class} in {classes:?}");
    }
    assert!(classes.contains("shared bottleneck") && classes.contains("three paths"));
}

#[test]
fn the_best_path_is_first_if_it_is_known() {
    let known = RandomOptions { order: PathOrder::Known, ..options(12, "minrtt") };
    for cell in board(&known).cells {
        // The order follows the first measure of a load.
        let first = &cell.comparisons[0];
        assert_eq!(first.first, first.known, "{}", cell.command);
        assert_eq!(first.startable, first.known);
    }
}

#[test]
fn kept_cells_are_not_run_again() {
    let options = options(6, "minrtt,blest");
    let kept = Mutex::new(Vec::new());
    let never = AtomicBool::new(false);
    let keep = |cell: &Played| kept.lock().unwrap().push(cell.clone());
    let control =
        RandomControl { progress: &|_, _| (), cancelled: &never, known: &|_| None, keep: &keep };
    let first = random_scoreboard(&options, &Simulator, &control).unwrap();
    let known = |number| kept.lock().unwrap().iter().find(|it| it.number == number).cloned();
    let refuse = |_: &Played| panic!("a cell was run again");
    let again = RandomControl { known: &known, keep: &refuse, ..control };
    assert_eq!(random_scoreboard(&options, &Simulator, &again).unwrap(), first);
    assert!(!first.interrupted && first.missing.is_empty());
    // One thread gives the same board as several.
    let alone = RandomOptions { jobs: NonZeroUsize::new(1), ..options };
    assert_eq!(random_scoreboard(&alone, &Simulator, &control).unwrap(), first);
}

/// With several runs a value is their median, and only chance makes further runs of plain TCP differ.
#[test]
fn a_value_is_the_median_of_the_runs() {
    let of = |runs: u32, seed: u64| {
        let options = RandomOptions { runs, seed, ..options(16, "minrtt") };
        board(&options).cells
    };
    let three = of(3, 5);
    let mut random = 0;
    for cell in &three {
        let raw = draw(5, cell.number);
        let made = scenario(&options(16, "minrtt"), &raw.settings).unwrap();
        let it = &cell.comparisons[0];
        if !made.is_random() {
            assert_eq!(it.again, it.startable, "{}", cell.command);
            continue;
        }
        let is_scheduler = |it: &Cell| matches!(it.subject, Subject::Scheduler(_));
        let minrtt = cells(&made).into_iter().find(is_scheduler).unwrap();
        let never = AtomicBool::new(false);
        let seed = 5 + u64::from(cell.number);
        let runs = Runs { world: &Simulator, cancelled: &never, first: seed, count: 3 };
        let mut values: Vec<f64> = runs
            .of(&minrtt)
            .unwrap()
            .iter()
            .map(|run| value(std::slice::from_ref(run), &it.measure, &made))
            .collect();
        values.sort_by(f64::total_cmp);
        assert_eq!(it.values["minrtt"], values[1], "{}", cell.command);
        random += usize::from(values[0] < values[2]);
    }
    assert!(random > 3, "{random}");
}

#[test]
fn a_setting_that_is_refused_stops_it_before_it_begins() {
    let never = AtomicBool::new(false);
    let control = RandomControl {
        progress: &|_, _| panic!("it ran"),
        cancelled: &never,
        known: &|_| None,
        keep: &|_| (),
    };
    let unknown =
        RandomOptions { settings: vec![("cc", "cubic,remo".to_owned())], ..options(2, "minrtt") };
    for refused in [options(2, "minrt"), unknown] {
        assert!(random_scoreboard(&refused, &Simulator, &control).is_err());
    }
}

/// The cells stay the same, and each one has the numbers of a board with its controller alone.
#[test]
fn of_several_controllers_each_cell_has_one() {
    let with = |cc: &str| {
        let settings = vec![("cc", cc.to_owned())];
        board(&RandomOptions { settings, ..options(12, "minrtt") }).cells
    };
    let (cubic, bbr, both) = (with("cubic"), with("bbr"), with("cubic,bbr"));
    let mut drawn = [0, 0];
    for (at, cell) in both.iter().enumerate() {
        let is_bbr = cell.classes.iter().any(|class| class == "bbr");
        assert_ne!(is_bbr, cell.classes.iter().any(|class| class == "cubic"));
        let alone = if is_bbr { &bbr[at] } else { &cubic[at] };
        assert_eq!((&cell.command, &cell.comparisons), (&alone.command, &alone.comparisons));
        drawn[usize::from(is_bbr)] += 1;
    }
    assert!(drawn.iter().all(|count| *count > 2), "{drawn:?}");
}

/// No run of any scheduler, and none of plain TCP, beats the bound.
#[test]
fn no_run_beats_the_bound() {
    let board = board(&options(120, "minrtt,roundrobin,ecf+copy,stms-a,redundant"));
    let mut compared = 0;
    for cell in &board.cells {
        for it in &cell.comparisons {
            let Some(bound) = it.bound else { continue };
            let least = it.values.values().copied().fold(it.known, f64::min);
            assert!(bound <= least * (1.0 + 1e-6), "{bound} > {least}: {}", cell.command);
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}
