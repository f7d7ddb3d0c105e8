//! Settings of the connection and of the comparison.

use super::*;
use plait_core::{JoinTiming, RtoMode};

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
fn known_words_of_later_versions_are_told_apart() {
    let error = refused("a:rtt=1ms,rate=1mbit,cost=2");
    assert_eq!(error.fault, Fault::NotYet, "{error}");
    assert!(error.to_string().contains("not available yet"));
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
        ("schedulers", "blst", "did you mean `blest`?"),
        ("schedulers", "minrtt,lrf", "given twice"),
        ("schedulers", "", "name is missing"),
        ("schedulers", "ecf:bta=1", "did you mean `beta`?"),
        ("schedulers", "minrtt+rq", "did you mean `rp`?"),
        ("cc", "cubik", "did you mean `cubic`?"),
        ("mtu", "575", "576"),
        ("mtu", "70000", "65535"),
        ("rcvbuf", "0B", "above zero"),
        ("rcvbuf", "2GB", "a TCP window"),
        ("rcvbuf", "65536", "no unit"),
        ("ssthresh", "0seg", "above zero"),
        ("join", "before", "after-data"),
        ("rto", "linus", "did you mean `linux`?"),
        ("until", "2s2", "--until"),
        ("until", "0s", "above 0s"),
        ("jobs", "0", "from 1"),
        ("initial-window", "0", "from 1"),
        ("subflows", "9", "1 to 8, or mesh4"),
        ("expect", "minrt.completion_ms < 1", "did you mean `minrtt`?"),
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
    assert_eq!(build(&[]).unwrap_err().fault, Fault::Missing);
    let nine: Vec<String> = (0..9).map(|n| format!("p{n}:rtt=1ms,rate=1mbit")).collect();
    let nine: Vec<(&str, &str)> = nine.iter().map(|path| ("path", path.as_str())).collect();
    assert!(build(&nine).unwrap_err().to_string().contains("at most 8 paths"));
    let twice = build(&[("path", "wifi-home"), ("path", "wifi-home")]).unwrap_err();
    assert_eq!(twice.fault, Fault::Conflict);
    let none = build(&[("path", "wifi-home")]).unwrap_err().to_string();
    assert!(none.contains("no workload"), "{none}");
}
