//! Tests recorded links: runs differ, and runs through silent periods complete.

use crate::common::{recorded, report, skipped};
use plait_lab::Report;
use std::fs;
use std::path::Path;

/// Returns the pairs of recordings: `7_1` and so on.
fn pairs(data: &Path) -> Vec<String> {
    let Ok(files) = fs::read_dir(data) else { return Vec::new() };
    let names = files.filter_map(|file| {
        let name = file.ok()?.file_name().into_string().ok()?;
        Some(name.strip_prefix("pair_")?.strip_suffix("_wifi.csv")?.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn compared(wifi: &Path, cellular: &Path, rest: &str) -> Report {
    report(&format!(
        "--path wifi:rtt=30ms,trace={},offset=random --path lte:rtt=60ms,trace={},offset=random \
         {rest}",
        wifi.display(),
        cellular.display()
    ))
}

/// Checks that every run finishes, runs differ, and the shares add up to one.
fn sound(report: &Report) {
    for row in &report.rows {
        let told = format!("{}\n{}", row.scheduler, report.command);
        assert_eq!(row.incomplete, 0, "{:?} of {told}", row.failures);
        let primary = &row.measures[&report.primary_measure];
        assert!(primary.min < primary.max, "every run gives {}: {told}", primary.min);
        let share: f64 = row.traffic.path_share.values().sum();
        assert!((share - 1.0).abs() < 1e-9, "{share} of {told}");
        assert!(
            row.traffic.reinjected_share.is_some_and(|share| (0.0..0.51).contains(&share)),
            "{told}"
        );
    }
}

fn over_every_pair(rest: &[&str]) {
    let Some(data) = recorded() else { return };
    let pairs = pairs(&data);
    assert!(!pairs.is_empty(), "no pair_*_wifi.csv in {}", data.display());
    for pair in pairs {
        let file = |kind: &str| data.join(format!("pair_{pair}_{kind}.csv"));
        for rest in rest {
            sound(&compared(&file("wifi"), &file("cellular"), rest));
        }
    }
}

#[test]
fn every_pair_in_short() {
    let schedulers = "--schedulers minrtt,ecf --runs 2";
    over_every_pair(&[
        &format!("--workload bulk:3s {schedulers}"),
        &format!("--workload download:4MB {schedulers}"),
    ]);
}

/// Takes minutes; `make soak` enables it with PLAIT_SOAK.
#[test]
fn every_pair_in_full_when_asked() {
    if std::env::var_os("PLAIT_SOAK").is_none() {
        return;
    }
    over_every_pair(&["--workload bulk:60s --runs 20", "--workload download:64MB --runs 20"]);
}

#[test]
fn a_pair_of_packet_traces() {
    let Some(data) = recorded() else { return };
    let (one, other) = (data.join("Verizon-LTE-short.down"), data.join("TMobile-LTE-short.down"));
    if !(one.exists() && other.exists()) {
        skipped(&format!("tests over packet traces: {} is absent", one.display()));
        return;
    }
    sound(&compared(&one, &other, "--workload download:4MB --runs 3 --check"));
    sound(&compared(&one, &other, "--workload bulk:5s --runs 2 --schedulers minrtt,blest"));
}

/// The recordings of a walk away from the access point have seconds without delivery.
#[test]
fn a_run_through_a_silent_link_completes() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let wifi = dir.join("silent-wifi.csv");
    let rows: String = (1..=30)
        .map(|second| {
            format!("{second},{}\n", if (4..12).contains(&second) { 0 } else { 3_000_000 })
        })
        .collect();
    fs::write(&wifi, rows).unwrap();
    let report = report(&format!(
        "--path wifi:rtt=30ms,trace={} --path lte:rtt=60ms,rate=8mbit --workload download:16MB \
         --check",
        wifi.display()
    ));
    for row in &report.rows {
        assert_eq!(row.incomplete, 0, "{}: {:?}", row.scheduler, row.failures);
    }
}
