//! Settings of the connection and of the comparison.

use super::*;
use plait_core::{Config, JoinTiming, RtoMode};

#[test]
fn settings_become_a_connection() {
    let it = build(&[
        ("path", "a:rtt=10ms,rate=1mbit,loss=1%"),
        ("workload", "download:1MB"),
        ("ssthresh", "45seg"),
        ("rcvbuf", "6seg"),
        ("sndbuf", "64KiB"),
        ("initial-window", "4"),
        ("join", "simultaneous"),
        ("prr", "rfc6937"),
        ("loss-detection", "sack"),
        ("rto", "rfc"),
        ("idle-restart", "off"),
        ("slow-start", "rfc5681"),
        ("delayed-ack", "off"),
        ("runs", "7"),
    ])
    .unwrap();
    let multipath = it.connection(true);
    assert_eq!((multipath.buffers.rcvbuf, multipath.buffers.sndbuf), (6 * 1428, 65_536));
    assert_eq!(it.connection(false).window.ssthresh, Some(65_160));
    assert_eq!(
        (multipath.joins.timing, multipath.recovery.rto),
        (JoinTiming::Simultaneous, RtoMode::Rfc)
    );
    assert_eq!(multipath.recovery.prr, plait_core::Prr::Rfc6937);
    assert_eq!(multipath.recovery.loss_detection, plait_core::LossDetection::Sack);
    assert_eq!(multipath.window.slow_start_limit, 1);
    assert!(!multipath.delayed_ack && multipath.window.initial == 4);
    assert_eq!((it.effective_runs(), it.deadline()), (7, Span::from_secs(3_600)));
}

/// The first and the largest size of both buffers. A first size that is left out is that of `auto`,
/// and a command line has the same buffers as its scenario.
#[test]
fn buffers_are_fixed_or_grow() {
    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;
    let with = |settings: &[(&str, &str)]| {
        let mut list = vec![("path", "a:rtt=9ms,rate=1mbit"), ("workload", "download:1MB")];
        list.extend(settings);
        build(&list).unwrap()
    };
    let sizes = |it: &Scenario| {
        let buffers = it.connection(true).buffers;
        let receive = (buffers.rcvbuf_first, buffers.rcvbuf);
        (receive, (buffers.sndbuf_first, buffers.sndbuf))
    };
    let usual = ((Some(6 * MB), 32 * MB), (Some(4 * MB), 32 * MB));
    assert_eq!(sizes(&with(&[])), usual);
    let live = Config::default().buffers;
    assert_eq!((live.rcvbuf_first, live.sndbuf_first), (usual.0.0, usual.1.0));
    assert_eq!((live.rcvbuf, live.sndbuf), (usual.0.1, usual.1.1));
    for (receive, send, sizes_of) in [
        ("6MiB", "4MiB", ((None, 6 * MB), (None, 4 * MB))),
        ("auto", "auto", ((Some(64 * KB), 6 * MB), usual.1)),
        ("auto:1MiB", "auto:64MiB", ((Some(64 * KB), MB), (Some(4 * MB), 64 * MB))),
        ("auto:1MiB:2MiB", "auto:64KiB:1MiB", ((Some(MB), 2 * MB), (Some(64 * KB), MB))),
        ("auto:2seg:9seg", "1seg", ((Some(2 * 1_428), 9 * 1_428), (None, 1_428))),
    ] {
        let it = with(&[("rcvbuf", receive), ("sndbuf", send)]);
        assert_eq!(sizes(&it), sizes_of, "{receive} {send}");
        assert_eq!(sizes(&from_line(&it.command_line())), sizes_of, "{}", it.command_line());
    }
    assert!(!with(&[]).command_line().contains("buf"), "{}", with(&[]).command_line());
    // The kernels of the papers had buffers that did not grow beyond these.
    let old = with(&[("kernel", "4.4"), ("sndbuf", "1MiB")]);
    assert_eq!(sizes(&old), ((None, 6 * MB), (None, MB)));
}

#[test]
fn subflows_are_counted() {
    let with = |paths: usize, subflows: &str| {
        let names = ["a:rtt=9ms,rate=1mbit", "b:rtt=9ms,rate=1mbit", "c:rtt=9ms,rate=1mbit"];
        let mut list: Vec<(&str, &str)> = names[..paths].iter().map(|it| ("path", *it)).collect();
        list.extend([("workload", "download:1MB"), ("subflows", subflows)]);
        build(&list)
    };
    assert_eq!(with(2, "4").unwrap().connection(true).joins.per_pair, 4);
    let mesh = with(2, "mesh4").unwrap();
    assert_eq!((mesh.connection(true).joins.per_pair, mesh.transport.subflows.count(2)), (1, 4));
    assert!(mesh.command_line().contains("--subflows mesh4"), "{}", mesh.command_line());
    for (paths, text, part) in [
        (3, "mesh4", "mesh4 takes two paths, 3 given"),
        (2, "5", "10 subflows in all"),
        (2, "0", "1 to 8, or mesh4"),
        (2, "mesh", "1 to 8, or mesh4"),
    ] {
        let message = with(paths, text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn an_unknown_page_has_a_near_one() {
    let error = build(&[("path", "a:rtt=1ms,rate=1mbit"), ("workload", "web:amzon")]).unwrap_err();
    assert_eq!(error.fault, Fault::Invalid, "{error}");
    assert!(error.to_string().contains("did you mean `amazon`?"), "{error}");
}

#[test]
fn settings_are_refused_with_what_is_allowed() {
    for (name, text, part) in [
        ("runs", "0", "a whole number from 1"),
        ("runs", "many", "a whole number from 1"),
        ("seed", "-1", "a whole number from 0"),
        ("seed", "18446744073709551616", "a whole number from 0 to 18446744073709551615"),
        ("schedulers", "blst", "did you mean `blest`?"),
        ("schedulers", "minrtt,lrf", "given twice"),
        ("schedulers", "", "name is missing"),
        ("schedulers", "ecf:bta=1", "did you mean `beta`?"),
        ("schedulers", "minrtt+rq", "did you mean `rp`?"),
        ("schedulers", "ecf,mine:Spare", "a class needs the `plait` of the Python package"),
        ("cc", "cubik", "did you mean `cubic`?"),
        ("mtu", "575", "576"),
        ("mtu", "70000", "65535"),
        ("rcvbuf", "0B", "above zero"),
        ("rcvbuf", "2GB", "a TCP window"),
        ("rcvbuf", "65536", "no unit"),
        ("rcvbuf", "automatic", "auto:6MiB:32MiB"),
        ("sndbuf", "atuo", "auto:6MiB:32MiB"),
        ("rcvbuf", "auto:7MiB:6MiB", "FIRST at most MAX"),
        ("sndbuf", "auto:", "a size is missing"),
        ("sndbuf", "auto:1MiB:2GB", "a TCP window"),
        ("sndbuf", "auto:1MiB:2MiB:3MiB", "--sndbuf"),
        ("ssthresh", "0seg", "above zero"),
        ("join", "before", "after-data"),
        ("rto", "linus", "did you mean `linux`?"),
        ("until", "2s2", "--until"),
        ("until", "0s", "above 0s"),
        ("jobs", "0", "from 1"),
        ("initial-window", "0", "from 1"),
        ("subflows", "9", "1 to 8, or mesh4"),
        ("expect", "minrtt.completion_ms < 1", "one path has no row of a scheduler"),
        ("vary", "a.rt=1ms,2ms", "did you mean `rtt`?"),
        ("vary", "b.rtt=1ms,2ms", "unknown path"),
        ("vary", "a.rtt=1ms..2ms", "the number of points is missing"),
        ("vary", "a.rtt=1ms,2", "no unit"),
        ("vary", "runs=1,2", "unknown setting for a sweep"),
    ] {
        let list = [("path", "a:rtt=1ms,rate=1mbit"), ("workload", "download:1MB"), (name, text)];
        let message = build(&list).unwrap_err().to_string();
        assert!(message.contains(part), "{name} {text}: {message}");
        assert!(message.lines().count() <= 3, "{message}");
    }
    let (a, b) = (("path", "a:rtt=1ms,rate=1mbit"), ("path", "b:rtt=1ms,rate=1mbit"));
    let misspelt = ("expect", "minrt.completion_ms < 1");
    let message = build(&[a, b, ("workload", "download:1MB"), misspelt]).unwrap_err().to_string();
    assert!(message.contains("did you mean `minrtt`?"), "{message}");
    assert_eq!(build(&[]).unwrap_err().fault, Fault::Missing);
    let nine: Vec<String> = (0..9).map(|n| format!("p{n}:rtt=1ms,rate=1mbit")).collect();
    let nine: Vec<(&str, &str)> = nine.iter().map(|path| ("path", path.as_str())).collect();
    assert!(build(&nine).unwrap_err().to_string().contains("at most 8 paths"));
    let twice = build(&[("path", "wifi-home"), ("path", "wifi-home")]).unwrap_err();
    assert_eq!(twice.fault, Fault::Conflict);
    let none = build(&[("path", "wifi-home")]).unwrap_err().to_string();
    assert!(none.contains("no workload"), "{none}");
}

/// A scheduler with `+price` keeps its own goal. So a goal beside it is refused, also in a file.
#[test]
fn a_goal_and_a_scheduler_with_price_exclude_each_other() {
    let with = |goal: Option<&str>, schedulers: &str| {
        let mut list = vec![("path", "a:rtt=9ms,rate=1mbit,cost=1"), ("workload", "download:1MB")];
        list.push(("schedulers", schedulers));
        list.extend(goal.map(|goal| ("goal", goal)));
        build(&list)
    };
    for schedulers in ["slot+price:goal=aggregate", "minrtt,slot+price:copies=2"] {
        let error = with(Some("thrifty"), schedulers).unwrap_err().to_string();
        assert!(error.starts_with("--goal: `thrifty`: `slot+price"), "{error}");
        assert!(error.contains("has the goal aggregate by its `+price`\n"), "{error}");
        assert!(error.ends_with("write the goal there: +price:goal=thrifty"), "{error}");
        with(None, schedulers).unwrap();
    }
    with(Some("aggregate"), "slot+price:goal=thrifty").unwrap_err();
    with(Some("thrifty"), "minrtt,slot+rp").unwrap();
    let file = "goal = \"thrifty\"\nschedulers = \"slot+price\"\nworkload = \"download:1MB\"\n\
                [[path]]\nname = \"a\"\nrtt = \"9ms\"\nrate = \"1mbit\"\n";
    let error = RawScenario::from_toml("home.toml", file).unwrap().build().unwrap_err();
    assert!(
        error.to_string().starts_with("home.toml:1:8: goal: `thrifty`: `slot+price`"),
        "{error}"
    );
}
