//! Forms of a scenario: command line, sweep, file.

use super::*;

#[test]
fn the_command_line_says_what_differs() {
    let it = build(&[
        ("path", "wifi-home"),
        ("path", "lte:owd_down=20ms,owd_up=30ms,rate_down=8mbit,rate_up=2mbit,backup"),
        ("workload", "stream:10kB@20ms,for=2s"),
        ("schedulers", "lrf,ecf:beta=0.5,blest+rp"),
        ("cc", "coupled,cubic"),
        ("rcvbuf", "auto:6144KiB:33554432B"),
        ("expect", "ecf:beta=0.5/lia.message_delay_ms.p95 < 1"),
        ("vary", "lte.rate_up=1mbit..2mbit:3"),
    ])
    .unwrap();
    let line = it.command_line();
    assert_eq!(
        line,
        "plait compare --path wifi-home --path \
         lte:owd_down=20ms,owd_up=30ms,rate_down=8mbit,rate_up=2mbit,backup --workload \
         stream:10kB@20ms,for=2s --schedulers minrtt,ecf:beta=0.5,blest+rp --cc lia,cubic --runs \
         30 --seed 1 --vary lte.rate_up=1mbit..2mbit:3 --expect \
         'ecf:beta=0.5/lia.message_delay_ms.p95 < 1'"
    );
    assert_eq!(from_line(&line), it);
}

#[test]
fn two_sweeps_make_a_grid() {
    let base = [
        ("path", "wifi:rtt=20ms,rate=20mbit"),
        ("path", "lte:rtt=40ms,rate=8mbit"),
        ("workload", "download:1MB"),
        ("vary", "lte.rtt=40ms,80ms"),
    ];
    let with = |more: &[(&'static str, &'static str)]| build(&[&base[..], more].concat());
    let it = with(&[("vary", "wifi.loss=0%..2%:3")]).unwrap();
    let points = it.points(&read).unwrap();
    let places: Vec<String> = points
        .iter()
        .map(|point| point.values.iter().map(|it| it.1.as_str()).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(places, ["40ms 0%", "40ms 1%", "40ms 2%", "80ms 0%", "80ms 1%", "80ms 2%"]);
    let last = &points[5].scenario;
    assert_eq!((last.paths[1].report(false).delays.rtt_us, last.is_random()), (80_000, true));
    assert_eq!(from_line(&it.command_line()), it);
    for (more, problem) in [
        (&[("vary", "lte.rtt=1ms,2ms")][..], "varied twice"),
        (&[("vary", "wifi.rtt=1ms,2ms,1ms")], "`1ms` stands there twice"),
        (&[("vary", "wifi.rtt=1ms,2ms"), ("vary", "lte.loss=1%,2%")], "at most 2 settings"),
        (&[("vary", "lte.rate=1mbit..9mbit:99"), ("vary", "wifi.rtt=1ms..9ms:99")], "points"),
    ] {
        let error = with(more).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_precision_stands_beside_the_end_of_a_run() {
    let base = [("path", "wifi:rtt=20ms,rate=20mbit"), ("workload", "download:1MB")];
    let with = |more: &[(&'static str, &'static str)]| build(&[&base[..], more].concat());
    let it = with(&[("until", "ci=2%"), ("until", "60s")]).unwrap();
    assert_eq!((it.budget.precision, it.deadline()), (Some(0.02), plait_base::Span::from_secs(60)));
    assert_eq!(from_line(&it.command_line()), it);
    for (more, problem) in [
        (&[("until", "ci=2%"), ("until", "ci=3%")][..], "given twice"),
        (&[("until", "1s"), ("until", "2s")], "given twice"),
        (&[("until", "ci=0%")], "ci=0.1%"),
        (&[("until", "ci=2")], "unit"),
        (&[("until", "2%")], "ci=2%"),
    ] {
        let error = with(more).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_sweep_replaces_one_setting() {
    let it = build(&[
        ("path", "wifi-home"),
        ("path", "lte:rtt=40ms,rate=8mbit,loss=1%"),
        ("workload", "download:1MB"),
        ("vary", "lte.rtt=40ms..400ms:10"),
    ])
    .unwrap();
    let points = it.points(&read).unwrap();
    assert_eq!(points.len(), 10);
    assert_eq!(points[9].values, [("lte.rtt".to_owned(), "400ms".to_owned())]);
    assert_eq!(points[9].scenario.paths[1].report(false).delays.rtt_us, 400_000);
    assert_eq!(points[9].scenario.paths[0], it.paths[0]);
    assert!(points[1].scenario.vary.is_empty());
    assert_eq!(from_line(&points[1].scenario.command_line()), points[1].scenario);
    let buffers = build(&[
        ("path", "a:rtt=40ms,trace=a.down"),
        ("workload", "download:1MB"),
        ("vary", "rcvbuf=64KiB,1MiB"),
    ]);
    let buffers = buffers.unwrap().points(&read).unwrap();
    assert_eq!(buffers[1].scenario.connection(true).buffers.rcvbuf, 1 << 20);
    let owd = build(&[
        ("path", "a:rtt=40ms,rate=1mbit"),
        ("workload", "download:1MB"),
        ("vary", "a.owd_up=10ms,20ms,30ms"),
    ]);
    let owd = owd.unwrap().points(&read).unwrap();
    assert_eq!(owd[2].scenario.paths[0].report(false).delays.rtt_us, 50_000);
}

const TOML: &str = r#"
workload = "download:512kB"
schedulers = ["minrtt", "ecf:beta=0.5,floor=off"]
cc = "cubic"
runs = 3
delayed_ack = false
check = true
expect = ["minrtt.completion_ms.p95 < 1"]

[[path]]
name = "wifi"
rtt = "25ms"
rate = "25mbit"
down = ["1s..3s", "8s..9s"]
gone = "4s..5s"

[[path]]
name = "lte-att"
profile = "lte-att"
backup = true
"#;

#[test]
fn a_file_says_the_same_as_arguments() {
    let file = RawScenario::from_toml("home.toml", TOML).unwrap();
    let scenario = file.build_point(&read).unwrap();
    let same = build(&[
        ("path", "wifi:rtt=25ms,rate=25mbit,down=1s..3s,down=8s..9s,gone=4s..5s"),
        ("path", "lte-att:profile=lte-att,backup"),
        ("workload", "download:512kB"),
        ("schedulers", "minrtt,ecf:beta=0.5,floor=off"),
        ("runs", "3"),
        ("delayed-ack", "off"),
        ("check", "on"),
        ("expect", "minrtt.completion_ms.p95 < 1"),
    ]);
    assert_eq!(scenario, same.unwrap());
    let mut changed = file;
    changed.argument("runs", "5").unwrap();
    changed.argument("path", "wifi-home").unwrap();
    // One path has no row of a scheduler.
    assert!(changed.build_point(&read).unwrap_err().to_string().contains("`minrtt`: unknown row"));
    changed.argument("expect", "tcp:wifi-home.completion_ms.p95 < 1").unwrap();
    let changed = changed.build_point(&read).unwrap();
    assert_eq!((changed.budget.runs, changed.paths.len()), (5, 1));
}

#[test]
fn a_mistake_in_a_file_has_its_line_and_column() {
    for (from, to, message) in [
        ("runs = 3", "ruins = 3", "home.toml:5:1: ruins: `ruins`: unknown setting"),
        ("runs = 3", "runs = 0", "home.toml:5:8: runs: `0`: not a number that fits"),
        ("runs = 3", "runs = [[1]]", "home.toml:5:9: runs: this array does not fit here"),
        (
            "[[path]]\nname = \"wifi\"",
            "[[paths]]\nname = \"wifi\"",
            "home.toml:10:3: paths: `paths`",
        ),
        ("\"25ms\"", "25", "home.toml:12:7: path[0].rtt: `25` has no unit"),
        ("rate = ", "rat = ", "home.toml:13:1: path[0].rat: `rat`: unknown key of a path"),
        ("\"lte-att\"\nprofile", "\"x\"\nprofil", "home.toml:19:1: path[1].profil"),
        ("name = \"wifi\"\n", "", "home.toml:10:1: path[0]: the path has no name"),
        ("rate = \"25mbit\"", "rate = ", "home.toml:13:"),
        ("runs = 3", "runs = 3\nruns = 4", "home.toml:6:1"),
    ] {
        let text = TOML.replacen(from, to, 1);
        assert_ne!(text, TOML);
        let built = RawScenario::from_toml("home.toml", &text).and_then(|it| it.build_point(&read));
        let error = built.unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
        assert!(error.lines().count() <= 3, "{error}");
    }
}
