//! Claims of "Low-Latency Scheduling in MPTCP" about a burst of 15 segments over 10 and 100 ms, in
//! the model of idle paths. Its claims about an old RTT (`ton-u4`), the receive buffer (`ton-u5`)
//! and the host queue (`ton-u6`) need two hosts. They are in `plait-sim/tests/claims_ton.rs`.
#![allow(clippy::panic)]

use crate::model::MSS;
use crate::model::burst::{Burst, LARGE, SMALL, burst};
use plait_base::SubflowId;

const P1: SubflowId = SubflowId(0);
const P2: SubflowId = SubflowId(1);

fn fifteen(spec: &str, window: u64) -> Burst {
    burst(spec, &[10, 100], window, 15)
}

/// Returns the times in ms at which segments leave on a path, with their numbers.
fn departures(burst: &Burst, subflow: SubflowId) -> Vec<(u64, usize)> {
    let all: Vec<u64> = burst.on(subflow).map(|it| it.at_ms).collect();
    all.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect()
}

/// ton-u2: ten segments take the fast path, and the last of fifteen arrives over the slow path.
#[test]
fn ton_u2_minrtt_takes_half_the_rtt_of_the_slow_path() {
    let burst = fifteen("minrtt", LARGE);
    assert_eq!(burst.delay_ms(), 50);
    assert_eq!((burst.on(P1).count(), burst.on(P2).count()), (10, 5));
}

/// ton-u7: ten segments at once, five after one RTT, none on the slow path. This holds for the
/// kernel's estimate, and for the paper's below a window of 146 segments (211 408 bytes at 1448).
#[test]
fn ton_u7_blest_sends_ten_and_then_five_on_the_fast_path() {
    for (spec, window) in [
        ("blest", LARGE),
        ("blest", SMALL),
        ("blest:mode=paper", SMALL),
        ("blest:mode=paper", 146 * MSS - 1),
    ] {
        let burst = fifteen(spec, window);
        assert_eq!(departures(&burst, P1), [(0, 10), (10, 5)], "{spec} {window}");
        assert_eq!(burst.on(P2).count(), 0, "{spec} {window}");
    }
    // From 146 segments on, the slow path is used.
    assert_ne!(fifteen("blest:mode=paper", 146 * MSS).on(P2).count(), 0);
}
