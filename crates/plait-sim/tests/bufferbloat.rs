//! Bufferbloat mitigation over a queue of 5 MB: the steady smoothed RTT relative to its minimum
//! (schedulers 3.4 and section 7, test 6).

use crate::common::{at, limited, ms, setup, spec};
use plait_base::{Span, Time};
use plait_core::{Config, Event};
use plait_link::QueueLimit;
use plait_sim::{Who, run_watched};

const MBIT: u64 = 20;
const RTT_MS: u64 = 30;
/// 20 Mbit/s for 30 ms.
const BDP: u64 = MBIT * 1_000_000 / 8 * RTT_MS / 1_000;
const FROM_MS: u64 = 20_000;

/// Smoothed RTTs and windows over a run of 60 s.
#[derive(Default)]
struct Watcher {
    least: Option<Span>,
    sum_ns: u128,
    count: u128,
    most: Span,
}

impl plait_sim::Watch for Watcher {
    fn on_core(&mut self, now: Time, _: Who, event: &Event) {
        let Event::Acked { srtt, bytes, .. } = *event else { return };
        // Skips the client, which only sends a request.
        if srtt == Span::ZERO || bytes == 0 {
            return;
        }
        self.least = Some(self.least.map_or(srtt, |least| least.min(srtt)));
        if now >= at(FROM_MS) {
            self.sum_ns += u128::from(srtt.as_nanos());
            self.count += 1;
            self.most = self.most.max(srtt);
        }
    }
}

/// Returns the mean and the maximum of the smoothed RTT from 20 s to 60 s, relative to its minimum,
/// and the goodput in Mbit/s.
fn settles(scheduler: &str, ssthresh: Option<u64>) -> (f64, f64, f64) {
    let mut path = limited("a", MBIT, ms(RTT_MS));
    path.down.queue = QueueLimit::Bytes(5_000_000);
    let config = Config::default().with(|it| {
        it.window.ssthresh = ssthresh;
        it.buffers.rcvbuf = 64 << 20;
        it.buffers.sndbuf = 64 << 20;
        (it.buffers.rcvbuf_first, it.buffers.sndbuf_first) = (None, None);
    });
    let mut watcher = Watcher::default();
    let mut setup = setup(vec![path], &spec(scheduler, "cubic", 1, config), "bulk:60s");
    // Checking the invariants after every event is slow with thousands of segments in flight.
    setup.check = false;
    let outcome = run_watched(&setup, &mut watcher);
    assert_eq!(outcome.violation, None);
    let least = watcher.least.expect("a sample").as_nanos() as f64;
    let mean = watcher.sum_ns as f64 / watcher.count.max(1) as f64;
    let goodput = outcome.pairs[0][0].measures.goodput_mbps.unwrap_or(0.0);
    (mean / least, watcher.most.as_nanos() as f64 / least, goodput)
}

/// The goodput of a full link: 1428 bytes of payload in a packet of 1500 bytes.
const FULL: f64 = MBIT as f64 * 1428.0 / 1500.0 * 0.97;

#[test]
fn the_formula_settles_at_lambda_where_slow_start_ends_at_one_bdp() {
    for (scheduler, lambda) in [("minrtt+bm", 3.0), ("minrtt+bm:lambda=2", 2.0)] {
        let (mean, most, goodput) = settles(scheduler, Some(BDP));
        assert!((0.9 * lambda..lambda + 0.2).contains(&mean), "{scheduler}: {mean}");
        assert!(most <= lambda + 0.2 && goodput > FULL, "{scheduler}: {most}, {goodput} Mbit/s");
    }
}

#[test]
fn the_delivery_rate_settles_at_lambda_from_slow_start() {
    for ssthresh in [None, Some(BDP)] {
        let (mean, most, goodput) = settles("minrtt+bm:estimate=rate", ssthresh);
        assert!((2.7..3.2).contains(&mean), "{ssthresh:?}: {mean}");
        assert!(most <= 3.2 && goodput > FULL, "{ssthresh:?}: {most}, {goodput} Mbit/s");
    }
}

/// The paper's formula in a slow start without loss. When the RTT shows the queue, cwnd is far
/// beyond three bandwidth-delay products. The limit follows cwnd, so it stays there.
#[test]
fn the_formula_from_slow_start_settles_above_lambda() {
    let (mean, most, goodput) = settles("minrtt+bm", None);
    assert!((3.2..5.7).contains(&mean) && most < 5.7, "{mean}, {most}");
    assert!(goodput > FULL, "{goodput} Mbit/s");
}
