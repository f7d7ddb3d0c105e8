//! Checks the simulator against calculations by hand.

use crate::common::{checked, ideal, limited, ms, setup, spec, tcp, textbook};
use plait_core::Config;

/// R68: download time with windows of 10 20 40 45 46 ... segments (imc-u1). The handshake takes 1
/// RTT, and so does each round.
#[test]
fn slow_start_with_a_threshold_of_45_segments() {
    for (rtt, expected) in [(30, [60.0, 120.0, 330.0]), (60, [120.0, 240.0, 660.0])] {
        for (size, time) in ["8KiB", "64KiB", "512KiB"].into_iter().zip(expected) {
            for cc in ["cubic", "reno"] {
                let config = textbook().with(|it| it.window.ssthresh = Some(64 << 10));
                let outcome = tcp(ideal("wifi", ms(rtt)), cc, &config, &format!("download:{size}"));
                assert!(outcome.complete());
                let measures = &outcome.pairs[0][0].measures;
                assert_eq!(measures.completion_ms, Some(time), "{size} at {rtt} ms, {cc}");
            }
        }
    }
}

#[test]
fn bulk_over_one_path_fills_it() {
    let outcome = tcp(limited("wifi", 25, ms(25)), "cubic", &Config::default(), "bulk:60s");
    let goodput = outcome.pairs[0][0].measures.goodput_mbps.unwrap();
    assert!(goodput > 0.95 * 0.965 * 25.0 && goodput < 0.9654 * 25.0, "{goodput}");
}

#[test]
fn bulk_over_two_paths_fills_both() {
    for scheduler in ["minrtt", "roundrobin", "ecf", "blest", "otias", "sttf", "daps"] {
        let paths = vec![limited("wifi", 25, ms(25)), limited("lte", 4, ms(75))];
        let spec = spec(scheduler, "cubic", 2, Config::default());
        let outcome = checked(&setup(paths, &spec, "bulk:60s"));
        let goodput = outcome.pairs[0][0].measures.goodput_mbps.unwrap();
        assert!(goodput > 0.95 * 0.952 * 29.0 && goodput < 0.9521 * 29.0, "{scheduler}: {goodput}");
    }
}
