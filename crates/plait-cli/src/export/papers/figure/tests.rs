//! What pictures show.

use super::*;
use plait_lab::experiment::{Experiment, Plan, RunRecord};

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
    let plan = Plan::of(&Experiment::from_toml("two.toml", text).unwrap(), false).unwrap();
    let run = |goodput: f64| {
        let values = [("goodput_mbps".to_owned(), goodput)].into_iter().collect();
        Some(RunRecord { failure: None, values })
    };
    let runs = [[19.0, 20.0, 99.0], [1.0, 8.0, 9.0], [10.0, 24.0, 28.0]];
    let runs = runs.map(|row| row.map(run).to_vec()).to_vec();
    let drawn = draw(&Results { runs, plan });
    let svg = &drawn[0].svg;
    assert!(svg.contains("both, : 0.5<") && svg.contains("aggregation benefit"), "{svg}");
}
