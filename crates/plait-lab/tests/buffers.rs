//! Buffers that grow with the connection.

use crate::common::{median, report, row, runs};

const FIXED: &str = "--rcvbuf 6MiB --sndbuf 4MiB";

/// Runs a line, checks each run, and returns the report.
fn checked(line: &str) -> plait_lab::Report {
    let list = runs(line);
    assert!(list.iter().all(|(_, run)| run.completed && run.violation.is_none()), "{line}");
    report(line)
}

/// Fixed buffers stand in the queue of the first path. Growing ones fill both paths, and their limit holds:
/// with the fixed sizes as limits, nothing changes.
#[test]
fn default_buffers_fill_fast_paths() {
    let line = "--path a:rate=1gbit,rtt=10ms,queue=100ms --path b:rate=500mbit,rtt=30ms,queue=100ms \
                --workload bulk:2s --schedulers linux,slot --runs 1";
    let goodputs = |buffers: &str| {
        let report = checked(&format!("{line} {buffers}"));
        ["linux", "tcp:a", "slot"].map(|name| median(row(&report, name), "goodput_mbps"))
    };
    let [grown, fixed, limited] =
        ["", FIXED, "--rcvbuf auto:6MiB:6MiB --sndbuf auto:4MiB:4MiB"].map(goodputs);
    // Hosts pass acknowledgements on in bursts, which must not count as a higher rate.
    assert!(grown[0] > 1.3 * grown[1] && grown[2] > 1.3 * grown[1], "{grown:?}");
    assert!(fixed[0] < 1.1 * fixed[1], "{fixed:?}");
    assert_eq!(limited.map(f64::to_bits), fixed.map(f64::to_bits));
}

/// One path of 1 Gbit/s needs 6.25 MB in flight.
#[test]
fn default_buffers_fill_a_long_path() {
    let line =
        "--path a:rate=1gbit,rtt=50ms,queue=100ms --workload bulk:3s --schedulers minrtt --runs 1";
    let goodput = |buffers: &str| {
        median(row(&checked(&format!("{line} {buffers}")), "tcp:a"), "goodput_mbps")
    };
    let [grown, fixed] = ["", FIXED].map(goodput);
    assert!(grown > 1.2 * fixed && grown > 750.0, "{grown} {fixed}");
}

/// On slow paths buffers keep their first size, even behind a queue of a second: every packet is the same as
/// with fixed buffers.
#[test]
fn slow_paths_keep_the_first_size() {
    let paths = "--path a:rate=10mbit,rtt=30ms,queue=1s --path b:rate=5mbit,rtt=60ms,queue=300ms";
    for workload in ["stream:20kB@30ms,for=4s", "bulk:10s", "download:8MB"] {
        let of = |buffers: &str| {
            let line = format!(
                "{paths} --workload {workload} --schedulers minrtt,ecf,slot --runs 1 {buffers}"
            );
            let report = checked(&line);
            report.rows.iter().map(|row| format!("{:?}", row.measures)).collect::<Vec<String>>()
        };
        assert_eq!(of(""), of(FIXED), "{workload}");
    }
}

/// Times of Linux 6.18 as the client of a small download from plait, over two links: medians of three runs of
/// `plait race --schedulers slot`. Random loss of these links is left out.
#[test]
fn a_linux_receiver_takes_the_measured_time() {
    const MEASURED_MS: [(&str, &str, f64); 6] = [
        ("rate=3.35mbit,rtt=28.4ms,queue=41ms", "rate=16.99mbit,rtt=27.9ms,queue=256ms", 297.3),
        ("rate=12.81mbit,rtt=73.8ms,queue=217ms", "rate=22.41mbit,rtt=16.3ms,queue=48ms", 304.3),
        ("rate=19.72mbit,rtt=50.3ms,queue=131ms", "rate=35.50mbit,rtt=10.7ms,queue=179ms", 201.2),
        ("rate=6.46mbit,rtt=37.3ms,queue=80ms", "rate=15.27mbit,rtt=12.9ms,queue=201ms", 221.2),
        ("rate=27.88mbit,rtt=50.4ms,queue=57ms", "rate=22.11mbit,rtt=15.0ms,queue=100ms", 233.4),
        ("rate=21.87mbit,rtt=91.9ms,queue=162ms", "rate=21.29mbit,rtt=35.4ms,queue=136ms", 425.3),
    ];
    for (a, b, measured) in MEASURED_MS {
        let time = |more: &str| {
            let line = format!(
                "--path a:{a} --path b:{b} --workload download:256kB --schedulers slot --runs 1 {more}"
            );
            median(row(&checked(&line), "slot"), "completion_ms")
        };
        let [linux, plait] = ["--receiver 6.18", ""].map(time);
        assert!((linux / measured - 1.0).abs() < 0.02, "{a} {b}: {linux} of {measured}");
        assert!(plait < 0.95 * measured, "{a} {b}: {plait} of {measured}");
    }
}
