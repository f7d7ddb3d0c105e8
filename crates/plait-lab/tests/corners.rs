//! Runs settings at the edge of their range: every run completes, and no invariant breaks.

use crate::common::{median, report, row, runs};

const PAIR: &str = "--path a:rate=10mbit,rtt=20ms --path b:rate=4mbit,rtt=80ms";
const LOSSY: &str = "--path a:rate=10mbit,rtt=20ms,loss=2%,loss_up=1% \
                     --path b:rate=4mbit,rtt=80ms,loss=5%,jitter=5ms";

/// Runs every scheduler and plain TCP, checked after every event.
fn completes(paths: &str, rest: &str) {
    for (cell, outcome) in runs(&format!("{paths} {rest} --check")) {
        assert_eq!(outcome.violation, None, "{cell}, {}: {paths} {rest}", cell.cc);
        assert!(outcome.completed, "{cell}, {} did not finish: {paths} {rest}", cell.cc);
    }
}

#[test]
fn tiny_and_large_workloads() {
    for workload in [
        "download:1B",
        "upload:1B",
        "burst:1seg",
        "burst:1B",
        "burst:2000seg",
        "stream:1B@1ms,for=1s",
        "stream:100kB@1ms,for=100ms",
        "bulk:1ms",
        "upload:1seg",
    ] {
        completes(PAIR, &format!("--workload {workload}"));
        completes(LOSSY, &format!("--workload {workload}"));
    }
}

#[test]
fn streams_over_lossy_paths() {
    for cc in ["cubic", "reno", "lia", "olia", "fixed:cwnd=20seg"] {
        completes(LOSSY, &format!("--workload stream:20kB@30ms,for=3s --cc {cc}"));
    }
}

#[test]
fn tiny_buffers_and_windows() {
    for more in [
        "--rcvbuf 3000B",
        "--sndbuf 3000B",
        "--rcvbuf 3000B --sndbuf 3000B",
        "--rcvbuf 1B",
        "--sndbuf 1B",
        "--initial-window 1",
        "--initial-window 1000",
        "--ssthresh 1seg",
        "--cc fixed:cwnd=1seg",
    ] {
        let size = if more.contains("1B") { "2kB" } else { "200kB" };
        completes(PAIR, &format!("--workload download:{size} {more}"));
        completes(LOSSY, &format!("--workload upload:{size} {more}"));
    }
}

#[test]
fn packets_of_any_size() {
    for mtu in [576, 1280, 9000, 65_535] {
        for workload in ["download:300kB", "burst:20seg", "upload:300kB"] {
            completes(PAIR, &format!("--workload {workload} --mtu {mtu}"));
            completes(LOSSY, &format!("--workload {workload} --mtu {mtu}"));
        }
    }
}

#[test]
fn paths_at_the_edge() {
    for path in [
        "b:rate=0.05mbit,rtt=100ms",
        "b:rate=10mbit,rtt=0ms",
        "b:rate=10mbit,rtt=2s",
        "b:rate=inf,rtt=5ms",
        "b:rate=4mbit,owd_down=100ms,owd_up=1ms",
        "b:rate_down=4mbit,rate_up=50kbit,rtt=30ms",
        "b:rate=4mbit,rtt=30ms,queue=1pkt",
        "b:rate=4mbit,rtt=30ms,queue=inf",
        "b:rate=4mbit,rtt=30ms,queue=1ms",
        "b:rate=4mbit,rtt=30ms,loss=30%",
        "b:rate=4mbit,rtt=30ms,loss=100%",
        "b:rate=4mbit,rtt=30ms,loss_up=100%",
        "b:rate=4mbit,rtt=30ms,down=0s..",
        "b:rate=4mbit,rtt=30ms,down=100ms..200ms,down=300ms..400ms",
        "b:rate=4mbit,rtt=30ms,jitter=200ms",
        "b:rate=10mbit@0s/0.1mbit@200ms/4mbit@2s,rtt=40ms",
        "b:rate=4mbit,rtt=30ms,nic=100kbit",
        "b:rate=4mbit,rtt=30ms,backup",
    ] {
        // Plain TCP cannot finish over a path without capacity, so only schedulers must finish.
        let paths = format!("--path a:rate=10mbit,rtt=20ms --path {path}");
        for workload in ["download:300kB", "upload:100kB", "stream:5kB@20ms,for=1s"] {
            let line = format!("{paths} --workload {workload} --check --until 10min");
            for (cell, outcome) in runs(&line) {
                assert_eq!(outcome.violation, None, "{cell}: {line}");
                assert!(outcome.completed || !cell.multipath(), "{cell} did not finish: {line}");
            }
        }
    }
}

#[test]
fn eight_paths() {
    let paths: String = (0..8)
        .map(|n| format!("--path p{n}:rate={}mbit,rtt={}ms,loss=0.1% ", n + 1, 10 + 20 * n))
        .collect();
    for workload in ["download:2MB", "upload:500kB", "burst:100seg", "stream:40kB@50ms,for=1s"] {
        completes(&paths, &format!("--workload {workload}"));
    }
    let report = report(&format!("{paths} --workload bulk:20s --runs 1 --schedulers minrtt"));
    let goodput = median(row(&report, "minrtt"), "goodput_mbps");
    assert!(goodput > 25.0 && goodput < 36.0 * 0.952, "{goodput} of 36 Mbit/s");
}

#[test]
fn every_controller_everywhere() {
    let ccs = "cubic,reno,lia,olia,fixed:cwnd=10seg,fixed:cwnd=BDP,fixed:cwnd=64KiB";
    completes(PAIR, &format!("--workload download:500kB --cc {ccs}"));
    completes(LOSSY, &format!("--workload download:500kB --cc {ccs}"));
    completes(LOSSY, &format!("--workload upload:500kB --cc {ccs} --idle-restart off"));
}

/// A window of the bandwidth-delay product keeps a link busy without a queue.
#[test]
fn a_fixed_window_fills_a_link_without_a_queue() {
    for (rate, rtt) in [(10, 40), (25, 25), (100, 80)] {
        let report = report(&format!(
            "--path a:rate={rate}mbit,rtt={rtt}ms --workload bulk:10s --cc fixed:cwnd=BDP \
             --delayed-ack off"
        ));
        let goodput = median(row(&report, "tcp:a"), "goodput_mbps");
        let most = f64::from(rate) * 0.9654;
        assert!(goodput > 0.95 * most && goodput < most, "{goodput} of {most} at {rtt} ms");
        assert_eq!(row(&report, "tcp:a").traffic.retransmitted_share, Some(0.0));
    }
}

#[test]
fn a_backup_path_rests_while_a_regular_one_lives() {
    let paths = "--path a:rate=4mbit,rtt=60ms --path b:rate=25mbit,rtt=10ms,backup";
    for workload in ["download:1MB", "upload:1MB", "bulk:3s", "stream:10kB@50ms,for=2s"] {
        for (cell, outcome) in runs(&format!("{paths} --workload {workload} --check")) {
            if cell.multipath() {
                assert_eq!(outcome.measures.paths[0].path_share, Some(1.0), "{cell}, {workload}");
                assert_eq!(outcome.measures.reinjected_share, Some(0.0), "{cell}, {workload}");
            }
        }
    }
    // The backup takes over when the regular path dies.
    let paths = "--path a:rate=4mbit,rtt=60ms,down=500ms.. --path b:rate=25mbit,rtt=10ms,backup";
    let line = format!("{paths} --workload download:2MB --check --until 1min");
    for (cell, outcome) in runs(&line) {
        if cell.multipath() {
            let done = outcome.measures.completion_ms.unwrap_or(f64::INFINITY);
            assert!(done < 3_000.0, "{cell}: {done}");
        }
    }
}

/// The path of the first SYN can be a backup too; MP_PRIO informs the peer (RFC 8684 section 3.3.8).
#[test]
fn the_first_path_can_be_a_backup() {
    let paths = "--path a:rate=25mbit,rtt=10ms,backup --path b:rate=4mbit,rtt=60ms";
    for workload in ["bulk:10s", "stream:10kB@50ms,for=5s"] {
        for (cell, outcome) in runs(&format!("{paths} --workload {workload} --check")) {
            if cell.multipath() {
                let share = outcome.measures.paths[1].path_share.unwrap_or(0.0);
                assert!(share > 0.9, "{cell}, {workload}: {share}");
            }
        }
    }
}

/// Returns the goodput in Mbit/s of plain TCP over one path.
fn tcp_goodput(path: &str, workload: &str) -> f64 {
    let report = report(&format!("--path a:{path} --workload {workload}"));
    median(row(&report, "tcp:a"), "goodput_mbps")
}

#[test]
fn a_slow_network_card_limits_its_path() {
    let goodput = tcp_goodput("rate=100mbit,rtt=10ms,nic=8mbit", "bulk:10s");
    assert!(goodput > 0.95 * 8.0 * 0.965 && goodput < 8.0 * 0.9654, "{goodput}");
}

#[test]
fn steps_change_the_rate_in_time() {
    let goodput = tcp_goodput("rate=10mbit@0s/4mbit@20s,rtt=40ms", "bulk:40s");
    assert!(goodput > 0.95 * 7.0 * 0.965 && goodput < 7.05 * 0.9654, "{goodput}");
}

#[test]
fn delays_and_losses_are_those_of_their_direction() {
    let delay = |path: &str, workload: &str| {
        let report = report(&format!("--ideal --path a:{path} --workload {workload}"));
        let tcp = row(&report, "tcp:a");
        let measure =
            if workload.starts_with("burst") { "message_delay_ms" } else { "completion_ms" };
        median(tcp, measure)
    };
    // One one-way delay down; SYN, SYN/ACK, request and answer take the same time for every split of the RTT.
    for (path, down) in [
        ("rtt=60ms", 30.0),
        ("owd_down=10ms,owd_up=50ms", 10.0),
        ("owd_down=50ms,owd_up=10ms", 50.0),
    ] {
        assert_eq!(delay(path, "burst:5seg"), down, "{path}");
        assert_eq!(delay(path, "download:1kB"), 120.0, "{path}");
    }
    // Only loss on the way down costs data. On the way up only ACKs are lost, so nothing is retransmitted.
    let again = |path: &str| {
        let report =
            report(&format!("--path a:rate=10mbit,rtt=40ms,{path} --workload bulk:20s --runs 2"));
        row(&report, "tcp:a").traffic.retransmitted_share
    };
    assert!(again("loss=1%,queue=inf").is_some_and(|share| share > 0.008 && share < 0.02));
}

/// The second path becomes so slow that its subflow still drains when the first one leaves TIME-WAIT.
#[test]
fn a_subflow_drains_after_another_has_left_time_wait() {
    let line = "--path a:rtt=17ms,rate=3mbit \
                --path b:rtt=48ms,rate=33mbit@0s/0.1mbit@700ms,queue=2700000B \
                --workload download:5MB --schedulers roundrobin --exact";
    let cells = plait_lab::cells(&crate::common::scenario(line));
    let mut setup = plait_lab::setup(&cells[0], 1);
    (setup.linger, setup.check) = (true, true);
    setup.until = plait_base::Time::ZERO + plait_base::Span::from_secs(600);
    let outcome = plait_sim::run(&setup);
    assert_eq!((outcome.violation, outcome.over), (None, true));
    assert!(
        outcome.ended > plait_base::Time::ZERO + plait_base::Span::from_secs(70),
        "{:?}",
        outcome.ended
    );
}
