//! Pacing (`--pacing on`): the segments of a window are spread over time.

use crate::harness::{MSS, Script, multipath, plain};
use crate::segment::{PSH, want};
use plait_base::Span;
use plait_core::{Config, Pacing};

const FULL: u32 = 1_448;

fn paced() -> Option<Pacing> {
    Some(Pacing::default())
}

/// Returns a plain TCP server. Its initial window of ten segments was acknowledged after 20 ms;
/// another 20 ms have passed.
fn pacing(config: Config) -> Script {
    let mut s = Script::open_server(config.with(|it| it.window.pacing = paced()), 1);
    s.write(100 * u64::from(FULL));
    assert_eq!(s.lose_all(), 10);
    s.after(20);
    s.ack(0, 1 + 10 * FULL, 0);
    s.after(20);
    s
}

/// R69: the initial window is sent at once. Then a segment is sent every 20 / 2w ms, with an SRTT
/// of 20 ms and a window of w segments. Fractions of a nanosecond are dropped.
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

/// At half of ssthresh and above, the rate is 120 %.
#[test]
fn beyond_half_the_threshold_a_window_takes_five_sixths_of_the_round_trip() {
    let mut s = pacing(plain().with(|it| it.window.ssthresh = Some(20 * u64::from(FULL))));
    for index in 0..12_u64 {
        let nanos = 40_000_000 + index * 1_388_888;
        s.expect(want(0, PSH).at(nanos as f64 / 1e6));
    }
}

/// `--pacing bursts`: each acknowledged segment lets two leave at once. What has waited for the peer's window
/// is spread, except for the first ten segments.
#[test]
fn only_the_burst_after_a_stall_is_spread() {
    let bursts = Some(Pacing { burst: 10, ..Pacing::BURSTS });
    let mut s = Script::open_server(plain().with(|it| it.window.pacing = bursts), 1);
    s.write(100 * u64::from(FULL));
    assert_eq!(s.lose_all(), 10);
    s.after(20);
    // Slow start with L = 2 grows the window to 12 segments. The acknowledgement clocks out ten, and the next
    // one sets the time of the last.
    s.ack(0, 1 + 10 * FULL, 0);
    s.after(10);
    for _ in 0..11 {
        s.expect(want(0, PSH).at(40.0));
    }
    s.expect(want(0, PSH).at(40.833_333));
    s.expect_nothing();
    s.after(10);
    // Two segments are acknowledged. Slow start lets four leave, all of them at once.
    s.ack(0, 1 + 12 * FULL, 0);
    for _ in 0..4 {
        s.expect(want(0, PSH).at(60.0));
    }
    s.expect_nothing();
}

/// For the scheduler, a paced subflow is full until its release. The release calls the scheduler
/// again.
#[test]
fn a_held_subflow_leaves_new_data_to_another() {
    let mut s = Script::open_server(multipath().with(|it| it.window.pacing = paced()), 2);
    s.write(100 * u64::from(MSS));
    assert_eq!(s.lose_all(), 20);
    s.after(20);
    s.ack(0, 1 + 10 * MSS, 0);
    // One segment at once on the first subflow; the second has no room.
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

/// Retransmissions of lost segments wait for the release, too. After a timeout it is long past.
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

/// `--pacing bursts`: a subflow that joins sends four segments of its initial window at once. The next one sets
/// the time of the others: at twice the window in each round trip of 20 ms, one a millisecond.
#[test]
fn a_join_spreads_its_initial_window() {
    let bursts = Some(Pacing::BURSTS);
    let mut s = Script::open_server(multipath().with(|it| it.window.pacing = bursts), 2);
    s.write(100 * u64::from(MSS));
    assert_eq!(s.lose_all(), 10 + 4 + 1);
    for _ in 0..5 {
        s.after(1);
        s.expect(want(1, PSH));
        s.expect_nothing();
    }
    s.after(5);
    s.expect_nothing();
}

/// `--pacing bursts`: the first subflow sends 20 segments of its window at once, and four after its first loss.
/// One more segment sets the time of the next. The loss halves the window of 20 segments, so it has room for more.
#[test]
fn a_loss_shortens_bursts() {
    let bursts = Some(Pacing::BURSTS);
    for (lossy, at_once) in [(false, 20 + 1), (true, 4 + 1)] {
        let mut s = Script::open_server(plain().with(|it| it.window.pacing = bursts), 1);
        s.write(1_000 * u64::from(FULL));
        assert_eq!(s.lose_all(), 10);
        s.after(20);
        for segment in 1..=10 {
            s.ack(0, 1 + segment * FULL, 0);
        }
        assert_eq!(s.lose_all(), 20);
        s.after(20);
        let mut new = 0;
        if lossy {
            s.send(s.tx(0).ack(1 + 10 * FULL).sack(&[(1 + 11 * FULL, 1 + 30 * FULL)]));
            s.expect(want(0, PSH).seq(1 + 10 * FULL));
            s.after(20);
            new = s.lose_all();
        }
        s.ack(0, 1 + (30 + new as u32) * FULL, 0);
        assert_eq!(s.lose_all(), at_once, "lossy: {lossy}");
    }
}

/// `--pacing bursts`: an acknowledgement of two segments clocks out four in slow start, and two after it. One more
/// segment sets the time of the next.
#[test]
fn acknowledgements_clock_out_twice_as_many_in_slow_start() {
    for (ssthresh, at_once) in [(None, 4 + 1), (Some(5 * u64::from(FULL)), 2 + 1)] {
        let config = plain().with(|it| {
            it.window.pacing = Some(Pacing { burst: 4, ..Pacing::BURSTS });
            it.window.ssthresh = ssthresh;
        });
        let mut s = Script::open_server(config, 1);
        s.write(4 * u64::from(FULL));
        assert_eq!(s.lose_all(), 4);
        s.after(20);
        s.ack(0, 1 + 2 * FULL, 0);
        s.write(100 * u64::from(FULL));
        assert_eq!(s.lose_all(), at_once, "{ssthresh:?}");
    }
}
