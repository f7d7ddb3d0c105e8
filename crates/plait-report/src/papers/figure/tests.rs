//! Tests of the contents of figures.

use super::*;
use plait_lab::experiment::{Experiment, Plan, RunRecord};
use plait_lab::scenario::no_files;

#[test]
fn aggregation_benefit_is_over_the_medians_of_the_single_paths() {
    let text = r#"
title = "Two paths"
workload = "bulk:1s"
runs = 3
[[path]]
name = "a"
rtt = "20ms"
rate = "20mbit"
[[path]]
name = "b"
rtt = "20ms"
rate = "8mbit"
[row]
one = { single = "a" }
other = { single = "b" }
both = { scheduler = "minrtt" }
[[picture]]
kind = "bars"
measure = "goodput_mbps"
rows = ["both"]
benefit = ["one", "other"]
"#;
    let plan =
        Plan::of(&Experiment::from_toml("two.toml", text).unwrap(), false, &no_files).unwrap();
    let run = |goodput: f64| {
        let values = [("goodput_mbps".to_owned(), goodput)].into_iter().collect();
        Some(RunRecord { values, ..RunRecord::default() })
    };
    let runs = [[19.0, 20.0, 99.0], [1.0, 8.0, 9.0], [10.0, 24.0, 28.0]];
    let runs = runs.map(|row| row.map(run).to_vec()).to_vec();
    let drawn = drawing(&Results { runs, plan });
    let svg = &drawn[0].svg;
    assert!(svg.contains("both, : 0.5<") && svg.contains("aggregation benefit"), "{svg}");
}

/// One box pools the runs of all networks; a line continues from second to second.
#[test]
fn runs_are_taken_together_over_an_axis_and_followed_over_time() {
    let text = r#"
title = "Two paths"
workload = "bulk:3s"
runs = 2
[[path]]
name = "a"
rtt = "{net.rtt}"
rate = "20mbit"
[[path]]
name = "b"
rtt = "20ms"
rate = "8mbit"
[sweep.net]
design = 30
seed = 1
rtt = "10ms..20ms"
[row]
both = { scheduler = "stms-a" }
[[picture]]
kind = "box"
measure = "goodput_mbps"
pool = ["net"]
[[picture]]
kind = "time"
measure = "gap_seg"
pool = ["net"]
"#;
    let plan =
        Plan::of(&Experiment::from_toml("two.toml", text).unwrap(), false, &no_files).unwrap();
    let run = |cell: usize| {
        let cell = cell as f64;
        let values = [("goodput_mbps", cell), ("gap_seg.0s", cell), ("gap_seg.2s", 100.0 + cell)];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Some(RunRecord { values, ..RunRecord::default() })
    };
    let runs = (0..30).map(|cell| vec![run(cell), run(cell)]).collect();
    let drawn = drawing(&Results { runs, plan });
    assert_eq!(drawn.len(), 2);
    assert!(drawn[0].svg.contains("both, : median 14.5<"), "{}", drawn[0].svg);
    let lines = drawn[1].svg.matches("<polyline").count() + drawn[1].svg.matches("<path").count();
    assert!(lines == 1 && drawn[1].svg.contains("STMS gap (segments)"), "{lines} {}", drawn[1].svg);
}

const TWO_POINTS: &str = r#"
title = "Two paths"
workload = "bulk:1s"
runs = 4
[[path]]
name = "a"
rtt = "{rtt}"
rate = "20mbit"
[[path]]
name = "b"
rtt = "20ms"
rate = "8mbit"
[sweep]
rtt = ["20ms", "160ms"]
[row]
both = { scheduler = "minrtt" }
[[picture]]
kind = "line"
measure = "rtt_ms.b"
x = "rtt"
[[picture]]
kind = "cdf"
measure = "rtt_ms.b"
x = "rtt"
"#;

fn two_points(of: impl Fn(usize, usize) -> Option<f64>) -> Vec<Drawn> {
    let plan = Plan::of(&Experiment::from_toml("two.toml", TWO_POINTS).unwrap(), false, &no_files)
        .unwrap();
    let run = |cell: usize, run: usize| {
        let value = of(cell, run).map(|it| ("rtt_ms.b".to_owned(), it));
        Some(RunRecord { values: value.into_iter().collect(), ..RunRecord::default() })
    };
    let runs = (0..2).map(|cell| (0..4).map(|it| run(cell, it)).collect()).collect();
    drawing(&Results { runs, plan })
}

/// A cell with some runs without a value is drawn with the other runs.
#[test]
fn a_cell_is_drawn_with_the_runs_that_have_a_value() {
    let drawn = two_points(|cell, run| (cell == 0 || run > 0).then_some(10.0 + run as f64));
    assert_eq!(drawn.len(), 2);
    assert!(drawn[0].svg.contains("both, 160ms: 12<"), "{}", drawn[0].svg);
    let note = &drawn[0].note;
    assert!(note.ends_with("both at 160ms: 3 of 4 runs have a value."), "{note}");
    assert!(!note.contains("points of"), "{note}");
    // A point counts as run even if none of its runs has a value.
    let drawn = two_points(|cell, _| (cell == 0).then_some(10.0));
    let note = &drawn[0].note;
    assert!(note.ends_with("both at 160ms: 0 of 4 runs have a value."), "{note}");
    assert!(!note.contains("points of"), "{note}");
}

/// The note names lines over the runs only if the figure has them.
#[test]
fn a_note_tells_what_its_own_figure_shows() {
    let note = |of: fn(usize) -> f64| two_points(|_, run| Some(of(run))).remove(0).note;
    assert!(note(|run| run as f64).contains("the lines through them span"));
    assert_eq!(note(|_| 5.0), "Dots are medians; all runs of a point have the same value.");
}
