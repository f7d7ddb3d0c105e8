//! Scoreboards over a world with known outcomes.

use super::*;
use crate::compare::{Cell as Row, RunOutcome};
use crate::scenario::no_files;
use plait_app::Measures;
use plait_app::measure::{Distribution, PathMeasures};
use std::sync::atomic::AtomicBool;

/// Results of a run by row, in ms. `minrtt` is good at downloads and bad at the tail of a stream. `ecf` is a
/// little slower than the best path everywhere. `blest` does not finish streams.
struct Known;

impl World for Known {
    fn run(&self, row: &Row, seed: u64) -> RunOutcome {
        let stream = matches!(row.scenario.workload, Workload::Stream { .. });
        let (middle, tail) = match row.to_string().as_str() {
            "minrtt" => (80.0, 400.0),
            "ecf" => (101.0, 125.0),
            "blest" => (100.0, 100.0),
            "tcp:fast" => (100.0, 100.0),
            _ => (900.0, 900.0),
        };
        let delay =
            Distribution { mean: middle, median: middle, p95: tail, p99: tail, max: tail, n: 9 };
        let measures = Measures {
            complete: true,
            completion_ms: (!stream).then_some(middle),
            message_delay_ms: stream.then_some(delay),
            paths: vec![PathMeasures::default(); row.scenario.paths.len()],
            ..Measures::default()
        };
        let completed = !(stream && row.to_string() == "blest");
        let (competing, habits, hash) = (Vec::new(), None, seed);
        let (length, broke, violation) = (plait_base::Span::from_secs(1), None, None);
        RunOutcome { measures, competing, habits, length, hash, completed, broke, violation }
    }
}

fn options(links: &str) -> Options {
    Options {
        grounds: select(measured(), links).unwrap(),
        missing: vec!["recorded pairs: none".to_owned()],
        settings: vec![("schedulers", "minrtt,ecf,blest".to_owned())],
        command: "plait scoreboard".to_owned(),
    }
}

fn board(links: &str) -> Board {
    let never = AtomicBool::new(false);
    let control = Control::unwatched(&never);
    scoreboard(&options(links), &Known, &control, &no_files).unwrap()
}

#[test]
fn the_best_worst_cell_is_first_and_its_worst_cell_too() {
    let board = board("A,E");
    let told: Vec<_> = board
        .standings
        .iter()
        .map(|it| (it.scheduler.as_str(), it.worst, it.worst_cell.as_str(), it.slower))
        .collect();
    assert_eq!(
        told,
        [("ecf", 0.8, "E p99", 1), ("minrtt", 0.25, "E p99", 1), ("blest", 0.0, "E p50", 2)]
    );
    let cells: Vec<&str> = board.cells.iter().map(|cell| cell.cell.as_str()).collect();
    assert_eq!(cells, ["E p99", "A", "E p50"]);
    let minrtt = board.standings.iter().find(|it| it.scheduler == "minrtt").unwrap();
    assert_eq!((minrtt.best, minrtt.median), (1.25, 1.25));
    assert_eq!(board.missing, ["recorded pairs: none"]);
    let tail = &board.cells[0];
    assert_eq!((tail.best_path.as_str(), tail.best_path_median), ("tcp:fast", 100.0));
    assert_eq!(tail.scores["blest"], Score { median: None, ratio: 0.0 });
}

#[test]
fn progress_goes_over_all_grounds_and_a_cancelled_board_says_so() {
    let (seen, cancelled) = (std::sync::Mutex::new(Vec::new()), AtomicBool::new(false));
    let advance = |done: usize, total: usize| {
        seen.lock().unwrap().push((done, total));
        // Ground A has five runs.
        if done == 6 {
            cancelled.store(true, Ordering::Relaxed);
        }
    };
    let mut options = options("A,E");
    options.settings.push(("jobs", "1".to_owned()));
    let control = Control { progress: &advance, ..Control::unwatched(&cancelled) };
    let board = scoreboard(&options, &Known, &control, &no_files).unwrap();
    assert_eq!(*seen.lock().unwrap(), (1..=6).map(|done| (done, 10)).collect::<Vec<_>>());
    assert!(board.interrupted);
    assert_eq!(board.cells.len(), 1, "what was interrupted is left out");
}

#[test]
fn a_setting_that_is_refused_stops_it_before_it_begins() {
    let mut options = options("A");
    options.settings.push(("cc", "cubik".to_owned()));
    let never = AtomicBool::new(false);
    let control = Control { progress: &|_, _| panic!("it ran"), ..Control::unwatched(&never) };
    assert!(scoreboard(&options, &Known, &control, &no_files).is_err());
}

/// A scoreboard has no bytes by path, so it says nothing about a path with a price.
#[test]
fn a_path_with_a_price_is_refused() {
    let never = AtomicBool::new(false);
    let control = Control::unwatched(&never);
    let measured = |price: &str| {
        let paths =
            ["wifi:rate=20mbit,rtt=22ms".to_owned(), format!("lte:rate=10mbit,rtt=60ms{price}")];
        let grounds = own(&paths, &["download:1MB".to_owned()]).unwrap();
        scoreboard(&Options { grounds, ..options("A") }, &Known, &control, &no_files)
    };
    for price in [",cost=1", ",quota=1MB"] {
        let error = measured(price).unwrap_err().to_string();
        assert!(
            error.starts_with("--path or --links: `lte`: a scoreboard ranks by speed"),
            "{error}"
        );
        assert!(error.contains("`plait compare --goal` has the bytes of each path"), "{error}");
    }
    measured("").unwrap();
}
