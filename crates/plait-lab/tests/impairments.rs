//! What goes wrong on paths and what they share, from the command line to the report.

mod common;

use common::{median, report, row, runs};

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

/// Two paths into one link are worth that link.
#[test]
fn a_shared_link_is_the_bound() {
    let line = "--path a:rate=20mbit,rtt=20ms,via=cell --path b:rate=20mbit,rtt=20ms,via=cell \
                --link cell:rate=10mbit --workload bulk:5s --schedulers minrtt --cc lia";
    let shared = report(line);
    assert_eq!(shared.paths[0].via.as_deref(), Some("cell"));
    let goodput = median(row(&shared, "minrtt"), "goodput_mbps");
    assert!((7.0..10.0).contains(&goodput), "{goodput}");
    let apart = report(&line.replace(",via=cell", ""));
    assert!(median(row(&apart, "minrtt"), "goodput_mbps") > 30.0);
}

/// A window of the bandwidth-delay product fills a path through a shared link, and no more: 10 Mbit/s
/// and 20 + 10 ms are 25 packets.
#[test]
fn the_bdp_is_that_of_the_whole_way() {
    let shared = report(
        "--path a:rate=50mbit,rtt=20ms,via=cell --link cell:rate=10mbit,rtt=10ms \
         --workload bulk:5s --schedulers minrtt --cc fixed:cwnd=BDP --delayed-ack off",
    );
    let goodput = median(row(&shared, "tcp:a"), "goodput_mbps");
    assert!((8.5..9.7).contains(&goodput), "{goodput}");
    let rtt = row(&shared, "tcp:a").rtt_ms["a"];
    assert!((30.0..33.0).contains(&rtt), "{rtt}");
}
