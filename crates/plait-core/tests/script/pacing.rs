//! Pacing (`--pacing on`): how the segments of a window are spread.

use crate::harness::{MSS, Script, multipath, plain};
use crate::segment::{PSH, want};
use plait_base::Span;
use plait_core::{Config, Pacing};

const FULL: u32 = 1_448;

fn paced() -> Option<Pacing> {
    Some(Pacing::default())
}

/// A plain server whose initial window of ten segments was acknowledged after 20 ms, 20 ms ago.
fn pacing(config: Config) -> Script {
    let mut s = Script::open_server(config.with(|it| it.window.pacing = paced()), 1);
    s.write(100 * u64::from(FULL));
    assert_eq!(s.lose_all(), 10);
    s.after(20);
    s.ack(0, 1 + 10 * FULL, 0);
    s.after(20);
    s
}

/// R69: the initial window goes at once. Then, with SRTT 20 ms and a window of w segments, a segment
/// goes each 20 / 2w ms; the fraction of a nanosecond is cut.
#[test]
fn a_window_is_spread_over_half_the_round_trip() {
    let mut s = pacing(plain());
    // 12 segments in 10 ms.
    for index in 0..12_u64 {
        let nanos = 40_000_000 + index * 833_333;
        s.expect(want(0, PSH).at(nanos as f64 / 1e6));
    }
    s.expect_nothing();
}

/// Half the threshold and above: 120 %.
#[test]
fn beyond_half_the_threshold_a_window_takes_five_sixths_of_the_round_trip() {
    let mut s = pacing(plain().with(|it| it.window.ssthresh = Some(20 * u64::from(FULL))));
    for index in 0..12_u64 {
        let nanos = 40_000_000 + index * 1_388_888;
        s.expect(want(0, PSH).at(nanos as f64 / 1e6));
    }
}

/// A paced subflow is full for the scheduler until its release, which asks it again.
#[test]
fn a_held_subflow_leaves_new_data_to_another() {
    let mut s = Script::open_server(multipath().with(|it| it.window.pacing = paced()), 2);
    s.write(100 * u64::from(MSS));
    assert_eq!(s.lose_all(), 20);
    s.after(20);
    s.ack(0, 1 + 10 * MSS, 0);
    // One at once on the first; the second has no room.
    s.expect(want(0, PSH));
    s.expect_nothing();
    s.ack(1, 1 + 10 * MSS, 0);
    s.expect(want(1, PSH));
    s.expect_nothing();
    let release = s.endpoint.poll_timeout();
    s.until(release);
    s.expect(want(0, PSH));
    s.expect(want(1, PSH));
    s.expect_nothing();
}

/// What was lost waits for the release too; a timeout's retransmission finds it long past.
#[test]
fn retransmissions_are_paced() {
    let mut s = Script::open_server(plain().with(|it| it.window.pacing = paced()), 1);
    s.write(10 * u64::from(FULL));
    assert_eq!(s.lose_all(), 10);
    s.after(20);
    s.send(s.tx(0).sack(&[(1 + 5 * FULL, 1 + 10 * FULL)]));
    s.expect(want(0, PSH).seq(1));
    s.send(s.tx(0).sack(&[(1 + 4 * FULL, 1 + 10 * FULL)]));
    s.expect_nothing();
    s.until(s.now + Span::from_millis(15));
    s.expect(want(0, PSH).seq(1 + FULL));
}
