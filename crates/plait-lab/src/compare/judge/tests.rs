use crate::compare::{Cell, Control, RunOutcome, World, compare};
use crate::report::{Report, Row};
use crate::scenario::no_files;
use crate::{KeepRuns, RawScenario};
use plait_app::Measures;
use plait_app::measure::{Distribution, PathMeasures};
use plait_base::{RandomStream, Span};
use std::sync::atomic::AtomicBool;

/// A world with made-up measures, computed from the name of the row and a random stream of the seed.
struct Fake<F>(F);

impl<F: Fn(&str, &mut RandomStream) -> Measures + Sync> World for Fake<F> {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        let name = format!("{cell}/{}", cell.cc.name());
        let measures = (self.0)(&name, &mut RandomStream::new(seed, &["fake", &name]));
        RunOutcome {
            measures,
            competing: Vec::new(),
            habits: None,
            length: Span::from_secs(1),
            hash: seed,
            completed: true,
            broke: None,
            violation: None,
        }
    }
}

fn completion(ms: f64) -> Measures {
    Measures { complete: true, completion_ms: Some(ms), ..Measures::default() }
}

fn report(
    more: &[(&str, &str)],
    of: impl Fn(&str, &mut RandomStream) -> Measures + Sync,
) -> Report {
    let mut raw = RawScenario::new();
    let base = [
        ("path", "wifi:rtt=20ms,rate=25mbit,loss=1%"),
        ("path", "lte:rtt=60ms,rate=10mbit"),
        ("workload", "download:512kB"),
        ("schedulers", "minrtt,ecf,blest"),
    ];
    let replaced = |name: &str| name != "path" && more.iter().any(|(other, _)| *other == name);
    for (name, text) in base.iter().filter(|(name, _)| !replaced(name)).chain(more) {
        raw.argument(name, text).unwrap();
    }
    let never = AtomicBool::new(false);
    let control = Control::unwatched(&never);
    let scenario = raw.build().unwrap();
    compare(&scenario, &KeepRuns(Fake(of)), &control, &no_files).unwrap().points.remove(0)
}

fn row<'a>(report: &'a Report, name: &str) -> &'a Row {
    report.rows.iter().find(|row| row.scheduler == name).unwrap()
}

/// Returns completion times by row, with `percent` per cent of scatter.
fn scattered(percent: f64) -> impl Fn(&str, &mut RandomStream) -> Measures + Sync {
    move |name, stream| {
        let base = match name.split('/').next() {
            Some("minrtt") => 100.0,
            Some("ecf") => 100.4,
            Some("blest") => 120.0,
            Some("tcp:wifi") => 110.0,
            _ => 300.0,
        };
        completion(base * (1.0 + percent / 100.0 * (stream.unit() - 0.5)))
    }
}

#[test]
fn schedulers_form_groups_and_paths_do_not() {
    let report = report(&[], scattered(4.0));
    let groups =
        ["minrtt", "ecf", "blest", "tcp:wifi"].map(|name| row(&report, name).standing.group);
    assert_eq!(groups, [Some(1), Some(1), Some(2), None]);
    let first = report.rows.iter().filter(|row| row.standing.group == Some(1));
    assert_eq!(first.filter(|row| row.standing.paired_vs_best.is_none()).count(), 1);
    let blest = row(&report, "blest").standing.paired_vs_best.unwrap();
    let [low, high] = blest.ci95.unwrap();
    assert!(blest.told_apart && low < 1.2 && 1.19 < high && high - low < 0.04, "{blest:?}");
    let path = row(&report, "minrtt").standing.paired_vs_best_path.unwrap();
    assert!(path.told_apart && path.ratio < 0.93, "{path:?}");
    assert!(
        report.findings.identical.is_empty()
            && report.findings.tails.is_empty()
            && report.findings.limits.is_empty()
    );
    assert_eq!(report.each_run.len(), 5 * 30);
    assert_eq!(report.each_run[31].values[0].0, "completion_ms");
}

#[test]
fn controllers_share_the_best_path_of_all() {
    let report = report(&[("cc", "cubic,lia"), ("runs", "5")], |name, _| {
        completion(match name {
            "tcp:wifi/cubic" => 200.0,
            "tcp:wifi/lia" => 100.0,
            name if name.starts_with("tcp") => 400.0,
            _ => 50.0,
        })
    });
    assert_eq!(report.findings.best_path.as_deref(), Some("tcp:wifi"));
    assert_eq!(report.findings.best_path_cc.as_deref(), Some("lia"));
    let speedups: Vec<Option<f64>> =
        report.rows.iter().map(|row| row.standing.speedup_vs_best_path).collect();
    let ours = [Some(2.0); 3];
    assert_eq!(speedups[..3], ours);
    assert_eq!(speedups[5..8], ours, "with lia too");
    assert_eq!((speedups[3], speedups[8]), (Some(0.5), Some(1.0)));
    // All scheduler rows are identical to the bit, but differ from the paths.
    assert_eq!(report.findings.identical[0].len(), 6);
    assert!(report.findings.identical[0].contains(&"ecf (lia)".to_owned()));
}

#[test]
fn a_tail_that_the_median_hides_is_told() {
    // A third of the runs of blest have a timeout.
    let report = report(&[("runs", "60")], |name, stream| {
        let base = 100.0 + stream.unit();
        let timeout = name.starts_with("blest") || name.starts_with("tcp");
        let hit = stream.below(3) == 0;
        completion(if timeout && hit { base + 300.0 } else { base })
    });
    let groups = ["minrtt", "ecf", "blest"].map(|name| row(&report, name).standing.group);
    assert_eq!(groups, [Some(1); 3], "the typical run is the same");
    for other in ["blest", "tcp:"] {
        let told = report.findings.tails.iter().find(|it| it.other.starts_with(other)).unwrap();
        assert!(told.percentile == 95 && !told.of_messages, "{told:?}");
        assert!((3.9..4.1).contains(&told.times), "{told:?}");
    }
}

#[test]
fn messages_are_pooled_over_runs() {
    let millis =
        |list: &[u64]| -> Vec<Span> { list.iter().map(|it| Span::from_millis(*it)).collect() };
    let more = [("workload", "stream:8KiB@50ms,for=1s"), ("runs", "2"), ("schedulers", "ecf")];
    let calls = std::sync::atomic::AtomicU64::new(0);
    let report = report(&more, |name, _| {
        // The first run of a row has delays of 1 to 4 ms, the second of 10 to 40 ms.
        let call = calls
            .fetch_add(u64::from(name.starts_with("ecf")), std::sync::atomic::Ordering::SeqCst);
        let scale = if name.starts_with("ecf") && call > 0 { 10 } else { 1 };
        let mut delays = millis(&[scale, 2 * scale, 3 * scale, 4 * scale]);
        Measures {
            complete: true,
            message_delay_ms: Distribution::exact(&mut delays),
            message_delays: delays,
            ..Measures::default()
        }
    });
    let messages = row(&report, "ecf").messages.unwrap();
    // 1 2 3 4 10 20 30 40: the median is 7, rank 6.93 is 30 + 0.93 x 10.
    assert_eq!((messages.median_ms, messages.max_ms, messages.n), (7.0, 40.0, 8));
    assert!((messages.p99_ms - 39.3).abs() < 1e-9, "{messages:?}");
}

#[test]
fn bytes_of_a_path_have_copies_and_copies_have_a_share() {
    let report = report(&[("runs", "2")], |_, _| {
        let path = |sent_bytes: u64, share: f64| PathMeasures {
            sent_bytes,
            path_share: Some(share),
            ..PathMeasures::default()
        };
        Measures {
            reinjected_share: Some(0.4),
            retransmitted_share: Some(0.1),
            sndbuf_blocked_ms: Some(950.0),
            rwnd_blocked_ms: Some(50.0),
            paths: vec![path(600, 1.0), path(400, 0.0)],
            ..completion(10.0)
        }
    });
    let ecf = row(&report, "ecf");
    assert_eq!((ecf.traffic.path_bytes["wifi"], ecf.traffic.path_bytes["lte"]), (600.0, 400.0));
    // 40 % of all bytes are copies, and 50 % are first transmissions.
    assert!((ecf.traffic.extra_share.unwrap() - 0.8).abs() < 1e-12);
    let [limit] = report.findings.limits.as_slice() else { panic!("{:?}", report.findings.limits) };
    assert_eq!(
        (limit.flag.as_str(), limit.size_bytes, limit.rows.len()),
        ("--sndbuf", 32 << 20, 5)
    );
    assert!((limit.longest_share - 0.95).abs() < 1e-12);
}

#[test]
fn runs_are_added_until_the_intervals_are_narrow() {
    let settings = |until: &'static str| [("runs", "10"), ("until", until)];
    let narrow = report(&settings("ci=2%"), scattered(20.0));
    let precision = narrow.precision.unwrap();
    assert!(precision.reached && precision.widest.unwrap() <= 0.02, "{precision:?}");
    // The ratio scatters by 20 % / sqrt(12) x sqrt(2) = 8 %. A precision of 2 % needs 64 runs, and more if
    // trimmed.
    assert!((50..200).contains(&narrow.runs), "{}", narrow.runs);
    assert_eq!(narrow.rows[0].measures["completion_ms"].n, narrow.runs);
    let again = report(&settings("ci=2%"), scattered(20.0));
    assert_eq!((again.runs, &again.digest), (narrow.runs, &narrow.digest));
    let wide = report(&settings("ci=50%"), scattered(20.0));
    assert_eq!(wide.runs, 10, "the first runs are enough");
}

#[test]
fn steps_double_at_most_and_end_at_the_limit() {
    let precision = |widest: Option<f64>, reached: bool| crate::report::Precision {
        wanted: 0.02,
        widest,
        reached,
        max_runs: 1_000,
    };
    // An interval twice as wide as wanted needs four times the runs, plus a tenth.
    assert_eq!(precision(Some(0.04), false).next(30), Some(60));
    assert_eq!(precision(Some(0.022), false).next(100), Some(133));
    assert_eq!(precision(None, false).next(1), Some(11));
    assert_eq!(precision(Some(0.5), false).next(900), Some(1_000));
    assert_eq!(precision(Some(0.5), false).next(1_000), None);
    assert_eq!(precision(Some(0.01), true).next(30), None);
}
