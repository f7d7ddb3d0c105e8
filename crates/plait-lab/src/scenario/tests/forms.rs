//! The forms of a scenario: command line, sweep, file.

use super::*;

#[test]
fn the_command_line_says_what_differs() {
    let it = build(&[
        ("path", "wifi-home"),
        ("path", "lte:owd_down=20ms,owd_up=30ms,rate_down=8mbit,rate_up=2mbit,backup"),
        ("workload", "stream:10kB@20ms,for=2s"),
        ("schedulers", "lrf,ecf:beta=0.5,blest+rp"),
        ("cc", "coupled,cubic"),
        ("rcvbuf", "6291456B"),
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
fn a_sweep_replaces_one_setting() {
    let it = build(&[
        ("path", "wifi-home"),
        ("path", "lte:rtt=40ms,rate=8mbit,loss=1%"),
        ("workload", "download:1MB"),
        ("vary", "lte.rtt=40ms..400ms:10"),
    ])
    .unwrap();
    let points = it.points_with(&read).unwrap();
    assert_eq!(points.len(), 10);
    assert_eq!((points[9].name.as_str(), points[9].value.as_str()), ("lte.rtt", "400ms"));
    assert_eq!(points[9].scenario.paths[1].report(false).rtt_us, 400_000);
    assert_eq!(points[9].scenario.paths[0], it.paths[0]);
    assert_eq!(points[1].scenario.vary, None);
    assert_eq!(from_line(&points[1].scenario.command_line()), points[1].scenario);
    let buffers = build(&[
        ("path", "a:rtt=40ms,trace=a.down"),
        ("workload", "download:1MB"),
        ("vary", "rcvbuf=64KiB,1MiB"),
    ]);
    let buffers = buffers.unwrap().points_with(&read).unwrap();
    assert_eq!(buffers[1].scenario.connection(true).rcvbuf, 1 << 20);
    let owd = build(&[
        ("path", "a:rtt=40ms,rate=1mbit"),
        ("workload", "download:1MB"),
        ("vary", "a.owd_up=10ms,20ms,30ms"),
    ]);
    let owd = owd.unwrap().points_with(&read).unwrap();
    assert_eq!(owd[2].scenario.paths[0].report(false).rtt_us, 50_000);
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
    let file = Draft::from_toml("home.toml", TOML).unwrap();
    let scenario = file.build_with(&read).unwrap();
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
    let changed = changed.build_with(&read).unwrap();
    assert_eq!((changed.runs, changed.paths.len()), (5, 1));
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
        let built = Draft::from_toml("home.toml", &text).and_then(|it| it.build_with(&read));
        let error = built.unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
        assert!(error.lines().count() <= 3, "{error}");
    }
}
