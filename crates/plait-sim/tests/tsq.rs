//! TCP small queues: if a host holds data back, minrtt leaks to the slow path even when the whole
//! burst fits the fast path's window (ton-h10).

use crate::common::{checked, limited, ms, setup, spec, watched};
use plait_base::{PathId, Rate, Span, Time};
use plait_core::Config;
use plait_sim::{Direction, Hop, PathSetup, Watch};
use plait_wire::Segment;

fn path(name: &str, rtt: u64) -> PathSetup {
    let nic = Rate::from_bps(100_000_000);
    PathSetup { nic_down: nic, nic_up: nic, ..limited(name, 100, ms(rtt)) }
}

/// Returns the delay of a burst of ten segments in milliseconds, and the fast path's share.
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

/// Path and departure time of each data segment towards the client.
#[derive(Default)]
struct Sent(Vec<(Time, PathId)>);

impl Watch for Sent {
    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        if hop == Hop::Sent && way == Direction::Down && segment.payload.len() > 1_000 {
            self.0.push((now, path));
        }
    }
}

/// Sends a burst of 15 segments over two paths of 0.5 Gbit/s. The hosts have links of 1 Gbit/s and
/// work `nanos` on each segment. Returns the segments on the fast path before the first on the slow
/// path, and the shortest time between two segments.
fn leading(nanos: u64) -> (usize, Span) {
    let gigabit = Rate::from_bps(1_000_000_000);
    let path =
        |name, rtt| PathSetup { nic_down: gigabit, nic_up: gigabit, ..limited(name, 500, ms(rtt)) };
    let config = Config { tsq: true, ..Config::default() };
    let spec = spec("minrtt", "cubic", 2, config);
    let mut setup = setup(vec![path("fast", 10), path("slow", 100)], &spec, "burst:15seg");
    setup.send_cost = Span::from_nanos(nanos);
    let Sent(sent) = watched(&setup);
    // Earlier segments warmed the subflows up.
    let burst = &sent[sent.len() - 15..];
    let apart = burst.windows(2).map(|two| two[1].0.since(two[0].0)).min().unwrap_or(Span::ZERO);
    (burst.iter().take_while(|(_, path)| *path == PathId(0)).count(), apart)
}

/// In figure 6 of "Low-Latency Scheduling in MPTCP", the fast path takes six segments before small
/// queues hold it back. A host that does no work sends three, because its link has sent none of
/// them by then.
#[test]
fn a_host_that_works_on_each_segment_lets_six_pass_small_queues() {
    assert_eq!(leading(0), (3, Span::ZERO));
    assert_eq!(leading(7_500), (6, Span::from_nanos(7_500)));
    // The link takes 12 us for a segment. A host that works longer never has two in the queue.
    assert_eq!(leading(12_000), (10, Span::from_nanos(12_000)));
}

/// For any amount of work, the host sends all data without timeouts or losses.
#[test]
fn a_host_that_works_is_as_fast_as_its_work_allows() {
    let spec = spec("minrtt", "cubic", 1, Config { multipath: false, ..Config::default() });
    let goodput = |micros| {
        let mut setup = setup(vec![path("fast", 10)], &spec, "bulk:5s");
        setup.send_cost = Span::from_micros(micros);
        let measures = checked(&setup).pairs.remove(0).remove(0).measures;
        (measures.goodput_mbps.unwrap_or(0.0), measures.retransmitted_share.unwrap_or(0.0))
    };
    // 1448 bytes in 200 us.
    let (slow, repaired) = goodput(200);
    assert!((56.0..57.95).contains(&slow), "{slow} Mbit/s");
    assert!(repaired < 1e-9, "{repaired}");
    assert!(goodput(10).0 > 0.95 * 0.965 * 100.0);
}
