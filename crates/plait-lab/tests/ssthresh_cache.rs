//! Tests `--earlier`: the thresholds that a sender remembers from earlier transfers to the same peer
//! (tcp_metrics of Linux).

use crate::common::{median, raw, report, row, scenario};
use plait_lab::{Fault, setup};

/// Slow start overruns these queues by far.
const PATHS: &str = "--path wifi:rtt=15ms,rate=5mbit,queue=44kB \
                     --path lte:rtt=72ms,rate=9mbit,queue=37kB --schedulers minrtt+rp";

/// Returns the thresholds by path, of client and server, in the first row of `line` with the seed.
fn thresholds(line: &str, seed: u64) -> [Vec<Option<u64>>; 2] {
    let cells = plait_lab::cells(&scenario(&format!("{PATHS} {line}")));
    let setup = setup(&cells[0], seed);
    let connection = &setup.pairs[0].connections[0];
    [&connection.client, &connection.server]
        .map(|end| end.paths.iter().map(|path| path.ssthresh).collect())
}

#[test]
fn the_sender_remembers_a_threshold_of_each_path() {
    let [client, server] = thresholds("--workload download:4MiB --earlier 3", 1);
    assert_eq!(client, [None, None], "it receives");
    let [Some(wifi), Some(lte)] = server[..] else { panic!("{server:?}") };
    // A path and its queue hold 53 and 118 kB.
    assert!((20_000..53_000).contains(&wifi), "{wifi}");
    assert!((40_000..118_000).contains(&lte), "{lte}");
    let [client, server] = thresholds("--workload upload:4MiB --earlier 3", 1);
    assert!(client.iter().all(Option::is_some), "{client:?}");
    assert_eq!(server, [None, None]);
}

#[test]
fn what_ends_in_its_first_slow_start_leaves_nothing() {
    for line in ["--workload download:64KiB --earlier 5", "--workload download:4MiB"] {
        assert_eq!(thresholds(line, 1)[1], [None, None], "{line}");
    }
}

#[test]
fn each_run_has_a_past_of_its_own() {
    let lossy = "--workload download:4MiB --earlier 2 --path wifi:rtt=15ms,rate=5mbit,loss=1% \
                 --path lte:rtt=72ms,rate=9mbit,queue=37kB --schedulers minrtt";
    let past = |seed| {
        let cells = plait_lab::cells(&scenario(lossy));
        let paths = setup(&cells[0], seed).pairs[0].connections[0].server.paths.clone();
        paths.iter().map(|path| path.ssthresh).collect::<Vec<_>>()
    };
    assert_eq!(past(1), past(1));
    assert_ne!(past(1), past(2));
}

#[test]
fn a_threshold_spares_the_queue() {
    let lost = |earlier: u32| {
        let line = format!("{PATHS} --workload download:4MiB --earlier {earlier}");
        median(row(&report(&line), "minrtt+rp"), "retransmitted_share")
    };
    let (fresh, remembered) = (lost(0), lost(5));
    assert!(fresh > 0.02, "{fresh}");
    assert!(remembered < fresh / 4.0, "{remembered} against {fresh}");
}

#[test]
fn only_what_is_done_again_and_again_has_a_past() {
    let refused = raw(&format!("{PATHS} --workload bulk:2s --earlier 1")).build().unwrap_err();
    assert_eq!(refused.fault, Fault::Conflict);
    assert!(refused.to_string().contains("a download or an upload"), "{refused}");
    raw(&format!("{PATHS} --workload bulk:2s --earlier 0")).build().unwrap();
    let refused = raw(&format!("{PATHS} --workload bulk:2s --send-cost 2ms")).build();
    assert!(refused.unwrap_err().to_string().contains("at most 1ms"));
}
