//! `plait race`: every sender and workload over emulated links. Times have only a lower bound here, which holds on a
//! busy machine too.
#![allow(unreachable_pub)]

mod real;

use crate::{PLAIT, ended, problem};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::process::Command;

const PATHS: [&str; 4] =
    ["--path", "fast:rate=20mbit,rtt=20ms,queue=100ms", "--path", "slow:rate=10mbit,rtt=40ms"];
/// Rate of both links in bits per millisecond.
const BOTH: f64 = 30_000.0;

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("a_race_compares_live_runs_and_predictions", download),
        Trial::test("the_client_of_a_race_sends_an_upload", upload),
        Trial::test("a_late_run_of_a_race_does_not_count", late),
        Trial::test("the_links_of_a_race_begin_with_its_first_syn/step", before_the_step),
        Trial::test("the_links_of_a_race_begin_with_its_first_syn/outage", within_the_outage),
        Trial::test("a_race_without_privileges_names_them", unprivileged),
    ];
    for (workload, measure) in [
        ("stream:8kB@50ms,for=1s", "message_delay_p99_ms"),
        ("bulk:1s", "goodput_mbps"),
        ("maps:3s", "message_delay_median_ms"),
        ("web:google,think=off", "page_load_ms"),
        ("video:paper,for=2s", "bit_rate_mbps"),
    ] {
        let name = format!("a_workload_runs_over_sockets/{}", workload.split(':').next().unwrap());
        trials.push(Trial::test(name, move || over_sockets(workload, measure)));
    }
    trials.extend(real::trials());
    trials
}

/// Runs a race and returns its document and its progress.
fn race(flags: &[&str]) -> Result<(Value, String), Failed> {
    let output = Command::new(PLAIT)
        .arg("race")
        .args(PATHS)
        .args(["--json", "--late", "1s"])
        .args(flags)
        .output()?;
    let output = ended(0, output);
    Ok((serde_json::from_slice(&output.stdout)?, problem(&output)))
}

fn rows(document: &Value) -> &[Value] {
    document["heats"][0]["rows"].as_array().unwrap()
}

fn median(row: &Value, of: &str) -> f64 {
    row["measures"][0][of]["median"].as_f64().unwrap_or_else(|| panic!("{row}"))
}

fn download() -> Result<(), Failed> {
    let flags =
        ["--workload", "download:1MB", "--runs", "2", "--schedulers", "minrtt,kernel:cubic"];
    let (document, progress) = race(&flags)?;
    assert_eq!(document["schema"], "plait.race/1");
    assert!(progress.contains("1/2 kernel:cubic: completion_ms="), "{progress}");
    let rows = rows(&document);
    let names: Vec<&str> = rows.iter().map(|row| row["sender"].as_str().unwrap()).collect();
    assert_eq!(names, ["minrtt", "kernel:cubic", "tcp:fast", "tcp:slow"]);
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row["counted"], 2, "{row}");
        let rate = [BOTH, BOTH, 20_000.0, 10_000.0][at];
        for of in ["live", "predicted"] {
            // Without headers, and with two round trips.
            assert!(median(row, of) > 8e6 / rate + 40.0, "{of}: {row}");
        }
        let slow = row["path_share"]["slow"].as_f64().unwrap();
        match at {
            0 | 1 => assert!(slow > 0.05 && slow < 0.7 && row["joined"] == 2, "{row}"),
            // The other path may have carried nothing at all.
            2 => assert_eq!(slow, 0.0, "{row}"),
            _ => assert_eq!(slow, 1.0, "{row}"),
        }
    }
    assert_eq!(document["heats"][0]["best_path"], "tcp:fast");
    assert!(rows[3]["measures"][0]["paired_vs_best_path"]["ratio"].as_f64().unwrap() > 1.0);
    Ok(())
}

/// Over the links from the client to the server, plait is the client.
fn upload() -> Result<(), Failed> {
    let flags = ["--workload", "upload:1MB", "--runs", "1", "--schedulers", "minrtt,kernel:cubic"];
    let (document, _) = race(&flags)?;
    for (row, rate) in rows(&document).iter().zip([BOTH, BOTH, 20_000.0, 10_000.0]) {
        assert!(median(row, "live") > 8e6 / rate + 20.0, "{row}");
        let shares = row["path_share"].as_object().unwrap().values();
        assert!((shares.map(|it| it.as_f64().unwrap()).sum::<f64>() - 1.0).abs() < 1e-9, "{row}");
    }
    let slow = rows(&document)[0]["path_share"]["slow"].as_f64().unwrap();
    assert!(slow > 0.05 && rows(&document)[0]["joined"] == 1, "{}", rows(&document)[0]);
    Ok(())
}

fn over_sockets(workload: &str, measure: &str) -> Result<(), Failed> {
    let flags = ["--workload", workload, "--runs", "1", "--schedulers", "minrtt,kernel:cubic"];
    let (document, _) = race(&flags)?;
    for row in rows(&document) {
        let measures = row["measures"].as_array().unwrap();
        let found = measures.iter().find(|it| it["name"] == measure).unwrap();
        for of in ["live", "predicted"] {
            assert!(found[of]["median"].as_f64().unwrap() > 0.0, "{of}: {row}");
        }
    }
    Ok(())
}

/// Returns the live and the predicted median of plain TCP over one path.
fn alone(path: &str, workload: &str) -> Result<[f64; 2], Failed> {
    let flags = ["--late", "1s", "--runs", "1", "--json", "--path", path, "--workload", workload];
    let output = ended(0, Command::new(PLAIT).arg("race").args(flags).output()?);
    let document: Value = serde_json::from_slice(&output.stdout)?;
    Ok(["live", "predicted"].map(|of| median(&rows(&document)[0], of)))
}

/// The transfer takes 280 ms, and ends before the rate falls. At the lower rate it would take four seconds.
fn before_the_step() -> Result<(), Failed> {
    let path = "fast:rate=20mbit@0s/1mbit@600ms,rtt=22ms";
    let medians = alone(path, "download:500kB")?;
    assert!(medians.iter().all(|ms| (200.0..1_500.0).contains(ms)), "{medians:?}");
    Ok(())
}

/// The first SYN is lost, and the second one follows after a second.
fn within_the_outage() -> Result<(), Failed> {
    let medians = alone("fast:rate=20mbit,rtt=22ms,down=0s..400ms", "download:10kB")?;
    assert!(medians.iter().all(|ms| (1_000.0..1_900.0).contains(ms)), "{medians:?}");
    Ok(())
}

/// The message is that of the first thing that it needs, and not about a controller.
fn unprivileged() -> Result<(), Failed> {
    let race = ["race", "--path", "a:rate=1mbit,rtt=9ms", "--workload", "download:1kB"];
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", PLAIT];
    let output = Command::new("setpriv").args(nobody).args(race).output()?;
    let told = problem(&ended(3, output));
    assert!(told.contains("run it as root") && !told.contains("sysctl"), "{told}");
    Ok(())
}

/// No run is as punctual as this flag requires, because packets wait for the emulator.
fn late() -> Result<(), Failed> {
    let path = ["--path", "only:rate=200mbit,rtt=2ms"];
    let flags = ["--workload", "download:2MB", "--runs", "1", "--late", "100us", "--json"];
    let output = Command::new(PLAIT).arg("race").args(path).args(flags).output()?;
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let row = &rows(&document)[0];
    assert_eq!(row["sender"], "tcp:only");
    match row["counted"].as_u64() {
        Some(0) => {
            assert_eq!(output.status.code(), Some(4));
            assert!(
                row["failures"][0].as_str().unwrap().contains("the emulator was late"),
                "{row}"
            );
            assert_eq!(row["repeated"], 8);
        }
        _ => assert!(row["worst_late_us"].as_u64().unwrap() <= 100, "{row}"),
    }
    Ok(())
}
