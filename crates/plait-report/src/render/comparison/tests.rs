mod priced;

use super::tables::COLUMNS;
use super::*;
use plait_lab::stats::Summary;
use plait_lab::{
    BufferLimit, Difference, Findings, Messages, PathDelays, PathLosses, PathRates, PathReport,
    RunRecord, Standing, TailDifference, Traffic, Varied,
};

fn difference(ratio: f64, told_apart: bool) -> Difference {
    Difference {
        ratio,
        ci95: Some([ratio - 0.004, ratio + 0.005]),
        told_apart,
        differing_runs: None,
    }
}

fn row(scheduler: &str, median: f64, speedup: Option<f64>, group: u32, wifi_bytes: f64) -> Row {
    let summary = Summary {
        mean: median * 1.02,
        median,
        p95: median * 1.2,
        min: median * 0.9,
        max: median * 1.3,
        ci95: [median * 0.99, median * 1.05],
        n: 30,
    };
    Row {
        scheduler: scheduler.to_owned(),
        cc: "cubic".to_owned(),
        measures: [("completion_ms".to_owned(), summary)].into(),
        traffic: Traffic {
            path_share: [("wifi".to_owned(), 0.8), ("lte".to_owned(), 0.2)].into(),
            path_bytes: [("wifi".to_owned(), wifi_bytes), ("lte".to_owned(), 512e3 - wifi_bytes)]
                .into(),
            path_sent_share: [("wifi".to_owned(), wifi_bytes / 512e3)]
                .into_iter()
                .chain([("lte".to_owned(), 1.0 - wifi_bytes / 512e3)])
                .collect(),
            extra_share: Some(0.004),
            reinjected_share: Some(0.004),
            retransmitted_share: Some(0.012),
            ..Traffic::default()
        },
        standing: Standing {
            speedup_vs_best_path: speedup,
            paired_vs_best_path: speedup.map(|it| difference(1.0 / it, (it - 1.0).abs() > 0.01)),
            paired_vs_best: speedup.map(|it| difference(1.3187 / it, group > 1)),
            group: speedup.map(|_| group).filter(|_| !scheduler.starts_with("tcp:")),
            aggregation_benefit: None,
            of_bound: None,
        },
        ..Row::default()
    }
}

fn report() -> Report {
    let path = |name: &str, mbit: u64, rtt_us: u64| PathReport {
        name: name.to_owned(),
        rates: PathRates {
            rate_down_bps: Some(mbit * 1_000_000),
            rate_up_bps: Some(mbit * 1_000_000),
        },
        delays: PathDelays { rtt_us, ..PathDelays::default() },
        queue: "60kB".to_owned(),
        losses: PathLosses { loss: 0.016, loss_up: 0.0 },
        ..PathReport::default()
    };
    let mut slow = row("daps", 900.0, None, 0, 256e3);
    slow.incomplete = 2;
    let mut best = row("ecf", 455.0, Some(1.3187), 1, 410e3);
    best.standing.paired_vs_best = None;
    Report {
        command: "plait compare --path wifi:rate=25mbit,rtt=25ms --path lte:rate=10mbit,rtt=80ms \
                  --workload download:512kB --runs 30 --seed 1"
            .to_owned(),
        seed: 1,
        runs: 30,
        workload: "download:512kB".to_owned(),
        primary_measure: "completion_ms".to_owned(),
        paths: vec![path("wifi", 25, 25_000), path("lte", 10, 80_000)],
        rows: vec![
            slow,
            row("roundrobin", 700.0, Some(0.85714), 4, 281e3),
            row("minrtt", 500.0, Some(1.2), 2, 358e3),
            row("strict", 500.0, Some(1.2), 2, 358e3),
            best,
            row("blest", 457.0, Some(1.3129), 1, 404e3),
            row("tcp:wifi", 600.0, Some(1.0), 3, 512e3),
            row("tcp:lte", 1300.0, Some(0.4615), 5, 0.0),
        ],
        findings: Findings {
            best_path: Some("tcp:wifi".to_owned()),
            best_path_cc: Some("cubic".to_owned()),
            identical: vec![vec!["minrtt".to_owned(), "strict".to_owned()]],
            ..Findings::default()
        },
        ..Report::default()
    }
}

fn document(report: Report) -> ComparisonDocument {
    let command = report.command.clone();
    ComparisonDocument { command, varied: Vec::new(), points: vec![report], digest: String::new() }
}

/// Checks every line except lines with one word wider than `width`.
fn fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn a_comparison_reads_at_a_glance() {
    insta::assert_snapshot!(text(&document(report()), 130, false));
}

#[test]
fn eighty_columns_have_groups_intervals_bytes_and_copies() {
    let narrow = text(&document(report()), 80, false);
    fits(&narrow, 80);
    insta::assert_snapshot!(narrow);
    fits(&text(&document(report()), 66, false), 66);
}

#[test]
fn streams_show_percentiles_of_messages_and_what_the_tail_tells() {
    let mut stream = report();
    stream.workload = "stream:30kB@50ms,for=20s".to_owned();
    stream.primary_measure = "message_delay_ms".to_owned();
    for (at, row) in stream.rows.iter_mut().enumerate() {
        let mut summary = row.measures["completion_ms"];
        summary.median = 99.0;
        row.measures = [("message_delay_ms".to_owned(), summary)].into();
        let median_ms = 40.0 + at as f64;
        let (p95_ms, p99_ms, max_ms) = (50.0, 41.0 * 12.0, 2_009.0);
        row.messages = Some(Messages { median_ms, p95_ms, p99_ms, max_ms, n: 12_000 });
    }
    stream.findings.tails = vec![TailDifference {
        row: "blest".to_owned(),
        other: "ecf".to_owned(),
        percentile: 99,
        of_messages: true,
        value: 41.0,
        other_value: 492.0,
        times: 12.0,
    }];
    stream.findings.limits = vec![BufferLimit {
        flag: "--sndbuf".to_owned(),
        size_bytes: 4 << 20,
        grows: false,
        longest_share: 0.95,
        rows: vec!["ecf".to_owned(), "minrtt".to_owned()],
    }];
    stream.host_jitter_us = Some(200);
    let text = text(&document(stream), 80, false);
    fits(&text, 80);
    insta::assert_snapshot!(text);
}

#[test]
fn markdown_and_csv_carry_the_numbers() {
    insta::assert_snapshot!(markdown(&document(report())));
    let csv = csv(&document(report()));
    assert!(csv.starts_with("scheduler,cc,measure,mean,median,p95,"), "{csv}");
    for line in [
        "ecf,cubic,path_share.wifi,0.8,,,,,,,",
        "ecf,cubic,path_bytes.wifi,410000,,,,,,,",
        "ecf,cubic,extra_share,0.004,,,,,,,",
        "ecf,cubic,speedup_vs_best_path,1.3187,,,,,,,",
        "ecf,cubic,group,1,,,,,,,",
        "tcp:wifi,cubic,paired_vs_best_path,1,,,,,0.996,1.005,",
    ] {
        assert!(csv.lines().any(|found| found == line), "{line}\n{csv}");
    }
    assert!(csv.contains("\necf,cubic,completion_ms,464.1,455,546,409.5,591.5,"), "{csv}");
}

#[test]
fn a_line_for_each_run_has_a_column_for_each_measure() {
    let mut one = report();
    let record = |row: usize, failure: Option<&str>, values: &[(&str, f64)]| RunRecord {
        row,
        run: 0,
        seed: 1,
        failure: failure.map(str::to_owned),
        values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
    };
    one.vary = [("lte.rtt".to_owned(), "80ms".to_owned())].into();
    one.each_run = vec![
        record(1, Some("not finished"), &[]),
        record(4, None, &[("completion_ms", 455.5), ("path_share.wifi", 0.5)]),
    ];
    let mut document = document(one);
    document.varied = vec![Varied { name: "lte.rtt".to_owned(), values: vec!["80ms".to_owned()] }];
    assert_eq!(
        csv_of_runs(&document),
        "lte.rtt,scheduler,cc,run,seed,completed,failure,completion_ms,path_share.wifi\n\
         80ms,roundrobin,cubic,0,1,false,not finished,,\n\
         80ms,ecf,cubic,0,1,true,,455.5,0.5\n"
    );
}

/// Creates a sweep over these values of each setting.
fn sweep(varied: &[(&str, &[&str])]) -> ComparisonDocument {
    let mut places: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for (name, values) in varied {
        let along = |place: &Vec<(String, String)>| {
            let at = |value: &&str| {
                [place.clone(), vec![((*name).to_owned(), (*value).to_owned())]].concat()
            };
            values.iter().map(at).collect::<Vec<_>>()
        };
        places = places.iter().flat_map(along).collect();
    }
    let point = |place: Vec<(String, String)>| {
        let mut point = report();
        if place.iter().any(|(_, value)| value == "400ms") {
            for row in &mut point.rows {
                row.standing.speedup_vs_best_path =
                    row.standing.speedup_vs_best_path.map(|it| it / 2.0);
                let typical =
                    row.standing.speedup_vs_best_path.map(|it| difference(1.0 / it, true));
                row.standing.paired_vs_best_path = typical;
            }
        }
        point.vary = place.into_iter().collect();
        point
    };
    let varied = varied.iter().map(|(name, values)| Varied {
        name: (*name).to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    });
    ComparisonDocument {
        command: "plait compare ...".to_owned(),
        varied: varied.collect(),
        points: places.into_iter().map(point).collect(),
        digest: String::new(),
    }
}

#[test]
fn a_sweep_marks_the_first_rows_of_each_line() {
    let text = text(&sweep(&[("lte.rtt", &["80ms", "400ms"])]), 80, false);
    fits(&text, 80);
    insta::assert_snapshot!(text);
}

#[test]
fn a_grid_has_a_map_of_who_is_first() {
    let grid = sweep(&[("lte.rtt", &["80ms", "400ms"]), ("wifi.loss", &["0%", "1%", "2%"])]);
    let text = text(&grid, 80, false);
    fits(&text, 80);
    insta::assert_snapshot!(text);
}

#[test]
fn the_verdict_names_groups_and_is_honest_if_nothing_wins() {
    let said = verdict(&report());
    assert!(
        said.starts_with(
            "Tied first (no significant difference above 1 %): ecf, blest; 1.31x to 1.32x faster \
             than tcp:wifi, the best path alone. Slower than the best path alone: roundrobin (1.17x \
             slower). Identical in every run: minrtt, strict."
        ),
        "{said}"
    );
    let mut lost = report();
    lost.rows.retain(|row| !["ecf", "blest", "minrtt", "strict"].contains(&row.scheduler.as_str()));
    lost.rows.iter_mut().find(|it| it.scheduler == "roundrobin").unwrap().standing.group = Some(1);
    let said = verdict(&lost);
    assert!(
        said.starts_with(
            "No scheduler reaches tcp:wifi, the best path alone; roundrobin comes closest: 1.17x \
             slower."
        ),
        "{said}"
    );
    let roundrobin = lost.rows.iter_mut().find(|it| it.scheduler == "roundrobin").unwrap();
    roundrobin.standing.paired_vs_best_path = Some(difference(1.0099, false));
    roundrobin.standing.speedup_vs_best_path = Some(0.99);
    let said = verdict(&lost);
    assert!(
        said.starts_with(
            "No scheduler is distinguished by more than 1 % from tcp:wifi, the best path alone; \
             roundrobin is first, 1.01x slower. None is measurably slower than the best path alone."
        ),
        "{said}"
    );
}

#[test]
fn the_line_to_run_again_is_broken_before_flags_and_can_be_pasted() {
    let command = "plait compare --path wifi:rate=25mbit --workload download:512kB --seed 1";
    let broken = super::super::again(command, 60);
    assert_eq!(
        broken,
        "Run again:\n  plait compare --path wifi:rate=25mbit \\\n      --workload download:512kB \
         --seed 1"
    );
    assert_eq!(super::super::again("plait x", 80), "Run again: plait x");
    let classes =
        "plait x --path __main__:rtt=9ms --schedulers 'a:f.<locals>.B,__main__:C:d=1+copy,e:F'";
    let only = "This runs only in the program that has the class `a:f.<locals>.B` and the class `__main__:C`.";
    assert_eq!(super::super::again(classes, 120), format!("Run again: {classes}\n{only}"));
}

/// The verdict covers every row of the first group, and agrees with the table.
#[test]
fn a_verdict_does_not_contradict_itself() {
    let said = |report: Report| text(&document(report), 400, false);
    let mut tied = report();
    // ecf and blest do not differ significantly from the path; minrtt and strict are significantly
    // slower.
    for row in &mut tied.rows {
        let ratio = match row.scheduler.as_str() {
            "ecf" => Some((0.995, false)),
            "blest" => Some((1.003, false)),
            "minrtt" | "strict" => Some((1.2, true)),
            _ => None,
        };
        if let Some((ratio, told_apart)) = ratio {
            row.standing.paired_vs_best_path = Some(difference(ratio, told_apart));
        }
    }
    // The interval of a small difference excludes 1.
    let small = Difference { ci95: Some([0.994, 0.996]), ..difference(0.995, false) };
    let wide = Difference { ci95: Some([0.99, 1.01]), ..difference(1.001, false) };
    let few_runs = Difference { ci95: Some([0.7, 0.9]), ..difference(0.8, false) };
    let mut close = tied.clone();
    close.rows[4].standing.paired_vs_best_path = Some(few_runs);
    let text = said(close.clone());
    assert!(text.contains("None of group 1 is distinguished from tcp:wifi"), "{text}");
    close.rows[4].standing.paired_vs_best_path = Some(small);
    let text = said(close.clone());
    assert!(text.contains("None of group 1 is distinguished by more than 1 % from tcp"), "{text}");
    assert!(text.contains("; ecf, blest are tied first (no significant difference"), "{text}");
    close.rows[5].standing.paired_vs_best = Some(wide);
    let text = said(close);
    assert!(text.contains("ecf, blest are tied first (not distinguished by 30 runs)"), "{text}");
    let text = said(tied.clone());
    assert!(text.contains("None of group 1 is distinguished from tcp:wifi"), "{text}");
    assert!(
        !text.contains("No scheduler is distinguished") && text.contains("are tied first"),
        "{text}"
    );
    assert!(text.contains("minrtt (1.20x slower)"), "{text}");
    assert!(
        text.lines().any(|it| it.contains(" minrtt ") && it.contains("1.20x slower")),
        "{text}"
    );
    // One row of the first group is slower.
    tied.rows[5].standing.paired_vs_best_path = Some(difference(1.03, true));
    let text = said(tied);
    assert!(text.contains("ecf is not distinguished from tcp:wifi"), "{text}");
    assert!(text.contains("blest (1.03x slower)"), "{text}");
}

#[test]
fn slower_rows_have_the_smaller_number_first() {
    let mut slow = report();
    for row in &mut slow.rows {
        let ratio = match row.scheduler.as_str() {
            "ecf" => 1.01,
            "blest" => 1.2,
            _ => continue,
        };
        row.standing.paired_vs_best_path = Some(difference(ratio + 0.01, true));
    }
    let text = text(&document(slow), 400, false);
    assert!(text.contains("come closest"), "{text}");
    assert!(text.contains("1.02x to 1.21x slower"), "{text}");
}

#[test]
fn rows_that_differ_in_a_few_runs_are_named() {
    let mut few = report();
    let found = Difference { differing_runs: Some(3), ..difference(1.0, false) };
    few.rows[5].standing.paired_vs_best = Some(found);
    let text = text(&document(few), 400, false);
    assert!(text.contains("Typically equal to the best: blest (3 of 30 runs differ)."), "{text}");
}

#[test]
fn a_sweep_tells_its_precision() {
    let point = |rtt: &str, reached: bool| {
        let vary = [("lte.rtt".to_owned(), rtt.to_owned())].into();
        let precision =
            plait_lab::Precision { wanted: 0.02, widest: Some(0.03), reached, max_runs: 1_000 };
        Report { vary, precision: Some(precision), ..report() }
    };
    let values = vec!["40ms".to_owned(), "80ms".to_owned()];
    let varied = vec![Varied { name: "lte.rtt".to_owned(), values }];
    let mut sweep = ComparisonDocument { varied, ..document(report()) };
    sweep.points = vec![point("40ms", true), point("80ms", false)];
    let said = text(&sweep, 400, false);
    assert!(said.contains("of +-2.0 % is not reached at 1 of 2 points"), "{said}");
    assert!(said.contains("lte.rtt=80ms (+-3.0 %)"), "{said}");
    sweep.points = vec![point("40ms", true), point("80ms", true)];
    let said = text(&sweep, 400, false);
    assert!(said.contains("Every point has the precision of +-2.0 %, after 30 runs."), "{said}");
}

#[test]
fn csv_has_each_number_once() {
    let mut twice = report();
    let summary = twice.rows[4].measures["completion_ms"];
    twice.rows[4].measures.insert("reinjected_share".to_owned(), summary);
    let csv = csv(&document(twice));
    let of_ecf = csv.lines().filter(|it| it.starts_with("ecf,cubic,reinjected_share,"));
    assert_eq!(of_ecf.count(), 1, "{csv}");
}

/// Plain TCP is first at a point if it is ahead, and tied first if the difference is not
/// significant.
#[test]
fn a_sweep_marks_plain_tcp_that_is_first() {
    let point = |ratio: f64, told_apart: bool| {
        let mut report = report();
        report.rows.retain(|row| ["ecf", "tcp:wifi"].contains(&row.scheduler.as_str()));
        report.rows[0].standing.paired_vs_best_path = Some(difference(ratio, told_apart));
        let median = 600.0 * ratio;
        report.rows[0].measures.get_mut("completion_ms").unwrap().median = median;
        report.vary = [("lte.rtt".to_owned(), format!("{ratio}"))].into();
        report
    };
    let ratios = [(0.5, true), (1.1, true), (1.04, false)];
    let values = ratios.iter().map(|it| it.0.to_string()).collect();
    let varied = vec![Varied { name: "lte.rtt".to_owned(), values }];
    let mut sweep = ComparisonDocument { varied, ..document(report()) };
    sweep.points = ratios.map(|(ratio, told_apart)| point(ratio, told_apart)).to_vec();
    let text = text(&sweep, 100, false);
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().map(cells).collect();
    let wanted =
        [["0.5", "*300.0", "600.0"], ["1.1", "660.0", "*600.0"], ["1.04", "*624.0", "*600.0"]];
    for line in wanted {
        assert!(lines.iter().any(|it| it == &line), "{line:?} in {text}");
    }
}

/// Each title has a line in the table of docs/compare.md, and each line a title.
#[test]
fn the_page_on_comparisons_explains_every_column() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compare.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## Columns\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let first_cells =
        section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let explained: Vec<&str> =
        first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let titles: Vec<String> =
        COLUMNS.iter().map(|shown| shown.title(&report(), "reno@wifi*2")).collect();
    let name = |title: &String| title.trim().trim_end_matches(" ms").to_owned();
    // The drawing has no title.
    let names: Vec<String> = titles.iter().map(name).filter(|name| !name.is_empty()).collect();
    for name in &names {
        assert!(explained.contains(&name.as_str()), "docs/compare.md lacks a line for `{name}`");
    }
    for line in explained {
        assert!(names.iter().any(|name| name == line), "`{line}` of docs/compare.md is no column");
    }
}
