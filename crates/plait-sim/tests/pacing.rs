//! Pacing over whole transfers.

use crate::common::{checked, limited, ms, setup, spec};
use plait_cc::IdleRestart;
use plait_core::{Config, Pacing};
use plait_link::QueueLimit;

/// Returns the packets that the queue dropped, and the goodput.
fn carried(config: &Config, queue: u64, workload: &str) -> (u64, f64) {
    let mut path = limited("a", 20, ms(40));
    path.down.queue = QueueLimit::Bytes(queue);
    let config = config.clone().with(|it| {
        it.multipath = false;
        it.window.idle_restart = IdleRestart::Off;
    });
    let outcome = checked(&setup(vec![path], &spec("minrtt", "cubic", 1, config), workload));
    let goodput = outcome.pairs[0][0].measures.goodput_mbps.unwrap_or(0.0);
    (outcome.links[0].0.dropped_queue, goodput)
}

fn paced(ssthresh: Option<u64>) -> Config {
    Config::default().with(|it| {
        it.window.ssthresh = ssthresh;
        it.window.pacing = Some(Pacing::default());
    })
}

fn unpaced(ssthresh: Option<u64>) -> Config {
    paced(ssthresh).with(|it| it.window.pacing = None)
}

/// If the initial ssthresh prevents an overshoot of slow start, pacing reduces loss and increases
/// goodput for bulk over a queue of ten packets. Without it, a paced slow start overshoots a small
/// queue later and by more.
#[test]
fn bulk_over_a_small_queue_loses_less_and_carries_more() {
    let bdp = Some(90_000);
    let (drops, goodput) = carried(&unpaced(bdp), 15_000, "bulk:30s");
    let (paced_drops, paced_goodput) = carried(&paced(bdp), 15_000, "bulk:30s");
    assert!(3 * paced_drops < 2 * drops, "{paced_drops} with pacing, {drops} without");
    assert!(paced_goodput > goodput, "{paced_goodput} Mbit/s with pacing, {goodput} without");
}

/// A window sent at once after an idle period overflows a queue. A window paced over the round trip
/// does not.
#[test]
fn bursts_after_idle_times_fit_a_small_queue() {
    let stream = "stream:80kB@500ms,for=20s";
    let (drops, _) = carried(&unpaced(Some(100_000)), 30_000, stream);
    let (paced_drops, _) = carried(&paced(Some(100_000)), 30_000, stream);
    assert!(10 * paced_drops < drops, "{paced_drops} with pacing, {drops} without");
}

#[test]
fn a_deep_queue_is_filled_all_the_same() {
    let (_, goodput) = carried(&paced(None), 200_000, "bulk:10s");
    assert!(goodput > 0.95 * 0.965 * 20.0, "{goodput} Mbit/s");
}
