//! TCP small queues: a host that holds data back makes minrtt leak to the slow path even where the
//! whole burst fits the fast path's window (ton-h10).

mod common;

use common::{checked, limited, ms, setup, spec};
use plait_base::Rate;
use plait_core::Config;
use plait_sim::PathSetup;

fn path(name: &str, rtt: u64) -> PathSetup {
    let nic = Rate::from_bps(100_000_000);
    PathSetup { nic_down: nic, nic_up: nic, ..limited(name, 100, ms(rtt)) }
}

/// Delay of a burst of ten segments in milliseconds, and the fast path's share.
fn burst(slow: Option<u64>, tsq: bool) -> (f64, f64) {
    let config = Config { tsq, multipath: slow.is_some(), ..Config::default() };
    let paths: Vec<PathSetup> =
        [Some(path("fast", 10)), slow.map(|rtt| path("slow", rtt))].into_iter().flatten().collect();
    let spec = spec("minrtt", "cubic", paths.len(), config);
    let outcome = checked(&setup(paths, &spec, "burst:10seg"));
    let measures = &outcome.pairs[0][0].measures;
    let delay = measures.message_delay_ms.as_ref().map_or(f64::NAN, |delay| delay.mean);
    (delay, measures.paths[0].path_share.unwrap_or(f64::NAN))
}

#[test]
fn ten_segments_leak_to_the_slow_path_with_tsq_and_not_without() {
    for (slow, factor) in [(40, 3.0), (100, 7.0)] {
        let (tcp, _) = burst(None, true);
        let (leaky, share) = burst(Some(slow), true);
        assert!(leaky >= factor * tcp, "RTT {slow} ms: {leaky} ms, plain TCP {tcp} ms");
        assert!((0.5..1.0).contains(&share), "{share}");
        let (tight, share) = burst(Some(slow), false);
        assert!((tight / burst(None, false).0 - 1.0).abs() < 0.02, "{tight} ms without TSQ");
        assert!((share - 1.0).abs() < 1e-9, "{share}");
    }
}

#[test]
fn bulk_fills_its_path_with_tsq_too() {
    let config = Config { tsq: true, multipath: false, ..Config::default() };
    let outcome =
        checked(&setup(vec![path("fast", 10)], &spec("minrtt", "cubic", 1, config), "bulk:10s"));
    let goodput = outcome.pairs[0][0].measures.goodput_mbps.unwrap_or(0.0);
    assert!(goodput > 0.95 * 0.965 * 100.0, "{goodput} Mbit/s");
}
