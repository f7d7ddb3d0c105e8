//! Tests impairments of paths and shared links, from the command line to the report.

use crate::common::{median, report, row, runs};

#[test]
fn every_scheduler_gets_through_whatever_goes_wrong() {
    let paths = "--path a:rate=10mbit,rtt=20ms,loss=ge:p=1%,r=30%,bad=50%,reorder=2%:15ms,via=cell \
                 --path b:rate=4mbit,rtt=80ms,duplicate=2%,corrupt=2%,aqm=codel,queue=1s,via=cell \
                 --link cell:rate=6mbit,loss=0.5%,aqm=codel,rtt=5ms,reorder=1%:3ms";
    for workload in ["download:1MB", "upload:300kB", "stream:10kB@50ms,for=2s"] {
        for (cell, outcome) in runs(&format!("{paths} --workload {workload} --check")) {
            assert_eq!(outcome.violation, None, "{cell}: {workload}");
            assert!(outcome.completed, "{cell} did not finish: {workload}");
        }
    }
}

/// A middlebox edits payload, and checksums detect it. The connection then falls back, continues on the
/// remaining subflows, or ends if its only subflow cannot continue (R53). On an only subflow, data after a
/// wrong checksum waits until the peer has fallen back.
#[test]
fn what_is_edited_breaks_no_invariant() {
    for share in ["1%", "5%", "100%"] {
        let paths = format!(
            "--path a:rate=10mbit,rtt=20ms,edit={share} --path b:rate=4mbit,rtt=60ms --checksum on"
        );
        for workload in ["download:1MB", "upload:300kB"] {
            let line =
                format!("{paths} --workload {workload} --schedulers minrtt --runs 10 --check");
            let all = runs(&line);
            for (cell, outcome) in &all {
                assert_eq!(outcome.violation, None, "{cell}: {share} {workload}");
            }
            let completed = all.iter().filter(|(_, outcome)| outcome.completed).count();
            assert!(2 * completed > all.len(), "{completed} of {}: {share} {workload}", all.len());
        }
    }
}

/// A server without the third ACK of a join falls back on its own after a wrong checksum, and the client
/// follows; the transfer continues (R53, R58).
#[test]
fn a_checksum_that_fails_while_a_join_is_half_done_ends_no_upload() {
    for join in ["after-data", "after-synack", "simultaneous"] {
        let line = format!(
            "--path a:rate=12mbit,rtt=23ms,edit=1% --path b:rate=6mbit,rtt=60ms --checksum on \
             --workload upload:2MB --schedulers minrtt --runs 20 --join {join} --check"
        );
        for (cell, outcome) in &runs(&line) {
            assert_eq!(outcome.violation, None, "{cell}: {join}");
            assert!(outcome.completed || !cell.multipath(), "{cell}: {join}");
        }
    }
}

/// Two paths into one link have the capacity of that link.
#[test]
fn a_shared_link_is_the_bound() {
    let line = "--path a:rate=20mbit,rtt=20ms,via=cell --path b:rate=20mbit,rtt=20ms,via=cell \
                --link cell:rate=10mbit --workload bulk:5s --schedulers minrtt --cc lia";
    let shared = report(line);
    assert_eq!(shared.paths[0].via.as_deref(), Some("cell"));
    let goodput = median(row(&shared, "minrtt"), "goodput_mbps");
    assert!((7.0..10.0).contains(&goodput), "{goodput}");
    let apart = report(&line.replace(",via=cell", "").replace("--link cell:rate=10mbit", ""));
    assert!(median(row(&apart, "minrtt"), "goodput_mbps") > 30.0);
}

/// A window starts at 64 KiB and grows with the data that is read. It is hardly slower than a large window,
/// much faster than a fixed one, and never exceeds its limit.
#[test]
fn a_tuned_window_follows_what_is_read() {
    let time = |rcvbuf: &str| {
        let line = format!(
            "--path a:rate=100mbit,rtt=40ms --path b:rate=50mbit,rtt=60ms --workload download:10MB \
             --schedulers minrtt --runs 1 --sndbuf 4MiB --rcvbuf {rcvbuf}"
        );
        let list = runs(&line);
        assert!(list.iter().all(|(_, run)| run.completed && run.violation.is_none()), "{rcvbuf}");
        median(row(&report(&line), "minrtt"), "completion_ms")
    };
    let [whole, tuned, first] = ["6MiB", "auto", "64KiB"].map(time);
    assert!(whole <= tuned && tuned < 1.3 * whole, "{whole} {tuned}");
    assert!(first > 3.0 * tuned, "{tuned} {first}");
    let [bounded, small] = ["auto:256KiB", "256KiB"].map(time);
    assert!(
        small <= bounded && bounded < 1.2 * small && bounded > 1.2 * tuned,
        "{small} {bounded}"
    );
}

/// 10 Mbit/s beside 3 Mbit/s of UDP, which does not back off: 7 Mbit/s remain. The report has the goodput of
/// UDP, and every row met the same packets.
#[test]
fn udp_cross_traffic_does_not_give_way() {
    for kind in ["poisson:rate=1.5mbit", "pareto:rate=1.5mbit,on=20ms,off=20ms,shape=1.9"] {
        let line = format!(
            "--path a:rate=10mbit,rtt=20ms,queue=100kB --workload bulk:20s --schedulers minrtt \
             --cc reno --runs 2 --compete {kind}@a*2"
        );
        let beside = report(&line);
        let goodput = median(row(&beside, "tcp:a"), "goodput_mbps");
        assert!((6.0..7.0).contains(&goodput), "{kind}: {goodput}");
        for (cell, outcome) in runs(&line) {
            let udp: f64 = outcome.competing.concat().iter().sum();
            assert!((2.7..3.2).contains(&udp), "{cell}, {kind}: {udp}");
        }
        assert_eq!(report(&line).digest, beside.digest);
        assert_ne!(report(&format!("{line} --seed 7")).digest, beside.digest);
    }
}

/// Cross traffic through a shared link, with a TCP flow on its own path into the link.
#[test]
fn cross_traffic_meets_a_shared_link() {
    let line = "--path a:rate=20mbit,rtt=20ms,via=cell --path b:rate=20mbit,rtt=20ms,via=cell \
                --link cell:rate=10mbit --workload bulk:10s --schedulers minrtt --cc lia --runs 1 \
                --compete reno@cell --compete poisson:rate=4mbit@cell";
    for (cell, outcome) in runs(line) {
        let [tcp, udp] = &outcome.competing[..] else { panic!("{:?}", outcome.competing) };
        assert!((3.6..4.2).contains(&udp[0]), "{cell}: {udp:?}");
        assert!((1.0..5.0).contains(&tcp[0]), "{cell}: {tcp:?}");
    }
}

/// A window of the bandwidth-delay product fills a path through a shared link without a queue: 10 Mbit/s and
/// 20 + 10 ms are 25 packets.
#[test]
fn the_bdp_is_that_of_the_whole_way() {
    let shared = report(
        "--path a:rate=50mbit,rtt=20ms,via=cell --link cell:rate=10mbit,rtt=10ms \
         --workload bulk:5s --schedulers minrtt --cc fixed:cwnd=BDP --delayed-ack off",
    );
    let goodput = median(row(&shared, "tcp:a"), "goodput_mbps");
    assert!((8.5..9.7).contains(&goodput), "{goodput}");
    let rtt = row(&shared, "tcp:a").traffic.rtt_ms["a"];
    assert!((30.0..33.0).contains(&rtt), "{rtt}");
}
