use super::*;
use crate::RawScenario;
use crate::scenario::no_files;
use plait_app::Measures;
use plait_app::measure::PathMeasures;
use plait_base::Span;
use std::sync::atomic::AtomicBool;

/// Completion time depends on the row and the seed, and optionally on chance.
struct Fake;

impl World for Fake {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        let name = cell.to_string();
        let base = match name.as_str() {
            "minrtt" => 100.0,
            "ecf" => 50.0,
            "tcp:wifi" => 80.0,
            _ => 400.0,
        };
        let noise = RandomStream::new(seed, &["noise"]).unit();
        let rtt = cell.scenario.paths.iter().map(|path| path.delay.down.start.as_millis_f64());
        let completion_ms = Some(base + noise + rtt.sum::<f64>());
        let share = PathMeasures { path_share: Some(0.5), ..PathMeasures::default() };
        let measures = Measures {
            complete: true,
            completion_ms,
            reinjected_share: Some(0.25),
            paths: vec![share; cell.scenario.paths.len()],
            ..Measures::default()
        };
        // minrtt does not finish with every third seed.
        let failed = name == "minrtt" && seed.is_multiple_of(3);
        let violation = (cell.scenario.check && failed).then(|| "snd_una ahead".to_owned());
        let completed = !failed || violation.is_some();
        let (competing, habits, hash) = (Vec::new(), None, seed);
        let length = Span::from_secs(1);
        let broke = None;
        RunOutcome { measures, competing, habits, length, hash, completed, broke, violation }
    }
}

fn scenario(more: &[(&str, &str)]) -> Scenario {
    let mut raw = RawScenario::new();
    let base = [
        ("path", "wifi:rtt=20ms,rate=25mbit,loss=1%"),
        ("path", "lte:rtt=60ms,rate=10mbit"),
        ("workload", "download:512kB"),
        ("schedulers", "minrtt,ecf"),
        ("runs", "8"),
    ];
    let replaced = |name: &str| name != "path" && more.iter().any(|(other, _)| *other == name);
    for (name, text) in base.iter().filter(|(name, _)| !replaced(name)).chain(more) {
        raw.argument(name, text).unwrap();
    }
    raw.build().unwrap()
}

fn run(scenario: &Scenario) -> ComparisonDocument {
    let never = AtomicBool::new(false);
    let control = Control::unwatched(&never);
    compare(scenario, &Fake, &control, &no_files).unwrap()
}

fn only(mut document: ComparisonDocument) -> Report {
    assert!(document.single().is_some());
    document.points.remove(0)
}

#[test]
fn rows_are_in_order_and_speedups_above_one_are_better() {
    let report = only(run(&scenario(&[])));
    let names: Vec<&str> = report.rows.iter().map(|row| row.scheduler.as_str()).collect();
    assert_eq!(names, ["minrtt", "ecf", "tcp:wifi", "tcp:lte"]);
    assert_eq!(report.findings.best_path.as_deref(), Some("tcp:wifi"));
    let ecf = &report.rows[1];
    let (row, best) = (ecf.measures["completion_ms"], report.rows[2].measures["completion_ms"]);
    assert_eq!(ecf.standing.speedup_vs_best_path, Some(best.median / row.median));
    assert!(ecf.standing.speedup_vs_best_path.unwrap() > 1.0);
    assert_eq!(report.rows[2].standing.speedup_vs_best_path, Some(1.0));
    assert!(report.rows[3].standing.speedup_vs_best_path.unwrap() < 0.5);
    assert_eq!(
        (row.n, ecf.traffic.reinjected_share, ecf.traffic.path_share["lte"]),
        (8, Some(0.25), 0.5)
    );
    assert!(!ecf.measures.contains_key("goodput_mbps"));
}

#[test]
fn unfinished_runs_are_counted_and_in_no_statistic() {
    let report = only(run(&scenario(&[("expect", "minrtt.completion_ms < 1000")])));
    let minrtt = &report.rows[0];
    let unfinished = (0..8).filter(|run| run_seed(1, *run).is_multiple_of(3)).count() as u32;
    assert!((1..8).contains(&unfinished));
    let counts = (minrtt.incomplete, minrtt.measures["completion_ms"].n);
    assert_eq!(counts, (unfinished, 8 - unfinished));
    assert_eq!(minrtt.standing.speedup_vs_best_path, None);
    assert!(!report.findings.expectations[0].holds);
    assert_eq!(minrtt.failures.len(), unfinished as usize);
    assert!(minrtt.failures[0].seed.is_multiple_of(3));
    assert_eq!(minrtt.failures[0].reason, "not finished after 3600s");
}

#[test]
fn a_violated_invariant_is_a_failure_with_its_seed() {
    let report = only(run(&scenario(&[("check", "on")])));
    let minrtt = &report.rows[0];
    assert!(minrtt.incomplete > 0);
    assert_eq!(minrtt.failures[0].reason, "invariant violated: snd_una ahead");
    assert!(report.rows[1].failures.is_empty());
}

#[test]
fn the_report_does_not_depend_on_jobs_but_on_the_seed() {
    let digest = |more: &[(&str, &str)]| only(run(&scenario(more))).digest;
    let one = only(run(&scenario(&[("jobs", "1")])));
    let mut four = only(run(&scenario(&[("jobs", "4")])));
    four.command.clone_from(&one.command);
    assert_eq!(one, four);
    assert_eq!(one.digest.len(), 64);
    assert_ne!(one.digest, digest(&[("seed", "2")]));
    assert_ne!(one.digest, digest(&[("runs", "7")]));
    assert_ne!(one.digest, digest(&[("schedulers", "ecf,minrtt")]));
}

#[test]
fn runs_of_neighbouring_seeds_are_not_shared() {
    let seeds = |seed: u64| (0..100).map(move |run| run_seed(seed, run));
    assert_eq!(run_seed(7, 0), 7);
    let all: std::collections::BTreeSet<u64> = seeds(1).chain(seeds(2)).collect();
    assert_eq!(all.len(), 200);
}

#[test]
fn without_chance_one_run_is_made() {
    let mut raw = RawScenario::new();
    for (name, text) in [
        ("path", "wifi:rtt=20ms,rate=25mbit"),
        ("workload", "download:512kB"),
        ("cc", "cubic,lia"),
        ("exact", "on"),
    ] {
        raw.argument(name, text).unwrap();
    }
    let report = only(run(&raw.build().unwrap()));
    // With one path, the connection is plain TCP.
    let names: Vec<String> =
        report.rows.iter().map(|row| format!("{}/{}", row.scheduler, row.cc)).collect();
    assert_eq!(names, ["tcp:wifi/cubic", "tcp:wifi/lia"]);
    let summary = report.rows[0].measures["completion_ms"];
    assert_eq!((report.runs, summary.n, summary.ci95), (1, 1, [summary.mean; 2]));
}

#[test]
fn a_cancelled_comparison_reports_what_it_has() {
    let cancelled = AtomicBool::new(false);
    let stop = |done: usize, total: usize| {
        assert!(done <= total && total == 32);
        if done == 4 {
            cancelled.store(true, Ordering::Relaxed);
        }
    };
    let control = Control { progress: &stop, ..Control::unwatched(&cancelled) };
    let report = only(compare(&scenario(&[("jobs", "1")]), &Fake, &control, &no_files).unwrap());
    assert!(report.interrupted);
    assert!(report.rows.iter().all(|row| row.measures["completion_ms"].n == 1));
}

#[test]
fn a_sweep_has_a_report_a_point_and_checks_each() {
    let document = run(&scenario(&[
        ("vary", "lte.rtt=40ms..400ms:10"),
        ("expect", "ecf.completion_ms < 100"),
    ]));
    assert!(!document.holds());
    let sweep = &document;
    assert_eq!(sweep.points.len(), 10);
    assert_eq!(sweep.points[9].vary["lte.rtt"], "400ms");
    assert_eq!(sweep.points[9].paths[1].delays.rtt_us, 400_000);
    assert!(
        sweep.points[0].findings.expectations[0].holds
            && !sweep.points[9].findings.expectations[0].holds
    );
    assert!(sweep.command.contains("--vary") && !sweep.points[0].command.contains("--vary"));
}

#[test]
fn the_json_has_the_documented_shape_and_reads_back() {
    let document = run(&scenario(&[]));
    let value = serde_json::to_value(&document).unwrap();
    assert_eq!(value["schema"], "plait.compare/1");
    assert_eq!(value["paths"][0]["rate_down_bps"], 25_000_000);
    assert_eq!(value["paths"][0]["rtt_us"], 20_000);
    assert_eq!(value["rows"][1]["scheduler"], "ecf");
    for key in ["mean", "median", "p95", "min", "max", "ci95", "n"] {
        assert!(!value["rows"][1]["measures"]["completion_ms"][key].is_null(), "{key}");
    }
    assert!(value["rows"][1]["measures"].get("goodput_mbps").is_none());
    let mut written = document.clone();
    // The document does not contain the single runs.
    written.points.iter_mut().for_each(|point| point.each_run.clear());
    assert_eq!(serde_json::from_value::<ComparisonDocument>(value.clone()).unwrap(), written);
    let sweep = serde_json::to_value(run(&scenario(&[("vary", "lte.rtt=40ms,50ms")]))).unwrap();
    let keys = |value: &serde_json::Value| {
        value.as_object().unwrap().keys().cloned().collect::<Vec<String>>()
    };
    assert_eq!(keys(&sweep), keys(&value));
    assert_eq!(keys(&sweep["points"][0]), keys(&value["points"][0]));
    assert_eq!(sweep["rows"].as_array().unwrap().len(), 8);
    assert_eq!(
        (&sweep["rows"][5]["point"], &sweep["rows"][5]["vary"]["lte.rtt"]),
        (&1.into(), &"50ms".into())
    );
    let schema = crate::schema("compare").unwrap().to_string();
    for key in ["speedup_vs_best_path", "path_share", "ci95", "digest", "points"] {
        assert!(schema.contains(key), "{key}");
    }
    assert_eq!(crate::schema("nothing"), None);
}

/// Counts segments, and cancels the run at the hundredth.
struct Cancels<'a>(u64, &'a AtomicBool);

impl plait_sim::Watch for Cancels<'_> {
    fn on_segment(
        &mut self,
        _: plait_base::Time,
        _: plait_sim::Hop,
        _: plait_base::PathId,
        _: plait_sim::Direction,
        _: &plait_wire::Segment,
    ) {
        self.0 += 1;
        if self.0 == 100 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_cancelled_run_stops_within_a_bounded_number_of_events() {
    let scenario = scenario(&[("workload", "bulk:3600s"), ("check", "off")]);
    let cancelled = AtomicBool::new(false);
    let mut watch = Cancels(0, &cancelled);
    let outcome = crate::simulate_unless(&cells(&scenario)[0], 1, &mut watch, &cancelled);
    assert!(outcome.is_none());
    // One event sends at most one window of segments.
    assert!((100..100 * plait_sim::EVENTS_BETWEEN_LOOKS).contains(&watch.0), "{}", watch.0);
    let control = Control::unwatched(&cancelled);
    let report = only(compare(&scenario, &crate::Simulator, &control, &no_files).unwrap());
    assert!(report.interrupted && report.rows.iter().all(|row| row.measures.is_empty()));
}

#[test]
fn every_run_is_handed_on_with_its_outcome() {
    let seen = Mutex::new(Vec::new());
    let each_run = |run: EndedRun<'_>| {
        let value = serde_json::to_value(run.outcome).unwrap();
        assert_eq!(
            (&value["hash"], &value["length_ns"]),
            (&run.seed.into(), &1_000_000_000.into())
        );
        assert_eq!(run.seed, run_seed(1, run.run));
        seen.lock().unwrap().push((run.run, run.row, run.cell.to_string()));
    };
    let never = AtomicBool::new(false);
    let control = Control { each_run: &each_run, ..Control::unwatched(&never) };
    compare(&scenario(&[]), &Fake, &control, &no_files).unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    let rows = ["minrtt", "ecf", "tcp:wifi", "tcp:lte"];
    let all = |run| rows.iter().enumerate().map(move |(row, name)| (run, row, (*name).to_owned()));
    assert!(seen.into_iter().eq((0..8).flat_map(all)));
}

#[test]
fn a_command_line_names_a_class_and_the_address_does_not() {
    let minrtt = plait_sched::SCHEDULERS[0];
    let about = plait_sched::About { name: "lab-class", aliases: &[], ..minrtt.about };
    let entry = plait_sched::Entry { about, ..minrtt };
    let cell = || cells(&scenario(&[("schedulers", "lab-class+copy")])).swap_remove(0);
    plait_sched::register_apart(&[entry]).unwrap();
    let (before, address) = (cell(), cell().address(&no_files).unwrap());
    plait_sched::register_class(entry, "mine:LabClass").unwrap();
    assert_eq!((cell().address(&no_files), cell().to_string()), (Ok(address), before.to_string()));
    assert_eq!((before.class(), cell().class()), (Some("mine:LabClass"), Some("mine:LabClass")));
    let line = cell().command_line("plait run");
    assert!(line.contains(" --scheduler mine:LabClass+copy "), "{line}");
    let again = RawScenario::from_toml("again", &cell().scenario.to_toml()).unwrap();
    assert_eq!(&again.build().unwrap(), &*cell().scenario);
}

#[test]
fn an_address_is_of_what_a_run_depends_on() {
    let at = |more: &[(&str, &str)]| cells(&scenario(more))[0].address(&no_files).unwrap();
    let address = at(&[]);
    for same in [("schedulers", "minrtt,blest"), ("runs", "9"), ("seed", "5"), ("jobs", "3")] {
        assert_eq!(at(&[same]), address, "{same:?}");
    }
    for same in [("expect", "minrtt.completion_ms < 1"), ("cc", "cubic,lia"), ("until", "ci=2%")] {
        assert_eq!(at(&[same]), address, "{same:?}");
    }
    for other in
        [("schedulers", "ecf"), ("workload", "download:1MB"), ("cc", "lia"), ("mtu", "1400")]
    {
        assert_ne!(at(&[other]), address, "{other:?}");
    }
    assert_eq!((address.to_string().len(), address.of_run(1, "plait").len()), (64, 32));
    assert_ne!(address.of_run(1, "plait"), address.of_run(2, "plait"));
    let trace = |text: &str| {
        let read = |_: &str| Ok(text.to_owned());
        let mut raw = RawScenario::new();
        raw.argument("path", "a:rtt=9ms,trace=link.down").unwrap();
        raw.argument("workload", "bulk:1s").unwrap();
        cells(&raw.build_with(&read).unwrap())[0].address(&read).unwrap()
    };
    assert_eq!(trace("5\n10\n"), trace("5\n10\n"));
    assert_ne!(trace("5\n10\n"), trace("5\n20\n"));
}

#[test]
fn a_scenario_that_names_a_file_needs_a_reader() {
    for (name, text) in [("path", "a:rtt=9ms,trace=link.down"), ("workload", "web:page.har")] {
        let mut raw = RawScenario::new();
        raw.argument("path", "b:rtt=9ms,rate=1mbit").unwrap();
        raw.argument(name, text).unwrap();
        let error = raw.build().unwrap_err().to_string();
        assert!(error.contains("files cannot be read here"), "{error}");
    }
}
