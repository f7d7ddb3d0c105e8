//! Cases of the window, computed by hand.

use plait_base::{Span, Time};
use plait_cc::{
    Ack, Congestion, FixedWindow, Flow, Flows, IdleReset, IdleRestart, Round, Rounds, Settings,
    Spec, cubic,
};

const MSS: u64 = 1000;

fn settings() -> Settings {
    Settings { mss: MSS as u32, ..Settings::default() }
}

fn build(spec: &str) -> Congestion {
    Congestion::new(settings(), Spec::parse(spec).expect("a listed name").build())
}

/// Creates a subflow with this window and threshold, in segments.
fn at(spec: &str, cwnd: u64, ssthresh: Option<u64>) -> Congestion {
    let flow = Flow { cwnd: cwnd * MSS, ssthresh: ssthresh.map(|s| s * MSS), ..flow(cwnd, 50) };
    Congestion::resumed(settings(), Spec::parse(spec).expect("a listed name").build(), &flow)
}

fn flow(cwnd: u64, rtt_ms: u64) -> Flow {
    Flow {
        cwnd: cwnd * MSS,
        ssthresh: None,
        srtt: Some(Span::from_millis(rtt_ms)),
        mss: MSS as u32,
        in_recovery: false,
        live: true,
        loss_interval: 0,
    }
}

fn ack(now: Time, bytes: u64, rtt: Span) -> Ack {
    Ack {
        now,
        bytes,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        cwnd_limited: true,
        round: false,
        acked: 0,
        sent: 0,
    }
}

const RTT: Span = Span::from_millis(50);

fn alone(congestion: &mut Congestion, now: Time, bytes: u64) {
    let all = [congestion.flow(Some(RTT), true)];
    congestion.on_ack(&ack(now, bytes, RTT), Flows { all: &all, own: 0 });
}

fn lose(congestion: &mut Congestion, now: Time, inflight: u64) {
    let all = [congestion.flow(Some(RTT), true)];
    congestion.on_loss(now, inflight, Flows { all: &all, own: 0 });
}

fn expire(congestion: &mut Congestion, inflight: u64, first: bool) {
    let all = [congestion.flow(Some(RTT), true)];
    congestion.on_timeout(Time::ZERO, inflight, first, Flows { all: &all, own: 0 });
}

/// Every second segment is acknowledged. A window of 20 grows by one segment in 10 ACKs if bytes
/// count, and by half of one if ACKs count (RFC 5681 equation 3).
#[test]
fn avoidance_grows_by_bytes_or_by_a_segment_for_each_ack() {
    for (spec, grown) in [
        ("reno", 1_000),
        ("reno:count=acks", 500),
        ("lia", 1_000),
        ("lia:count=acks", 500),
        ("olia", 1_000),
        ("olia:count=acks", 500),
    ] {
        let mut congestion = at(spec, 20, Some(10));
        for _ in 0..10 {
            alone(&mut congestion, Time::ZERO, 2 * MSS);
        }
        let bytes = congestion.cwnd() - 20 * MSS;
        assert!((grown * 97 / 100..=grown).contains(&bytes), "{spec}: {bytes}");
        // The ACK of a single segment counts as one segment in both cases.
        let before = congestion.cwnd();
        alone(&mut congestion, Time::ZERO, MSS);
        assert!(congestion.cwnd() - before >= 48, "{spec}");
    }
}

#[test]
fn slow_start_takes_at_most_l_segments_of_an_ack_and_one_after_a_timeout() {
    let mut congestion = build("reno");
    alone(&mut congestion, Time::ZERO, 5 * MSS);
    assert_eq!(congestion.cwnd(), 12 * MSS);
    alone(&mut congestion, Time::ZERO, 300);
    assert_eq!(congestion.cwnd(), 12_300);
    expire(&mut congestion, 12_000, true);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (MSS, Some(6 * MSS)));
    alone(&mut congestion, Time::ZERO, 5 * MSS);
    assert_eq!(congestion.cwnd(), 2 * MSS);
    for _ in 0..4 {
        alone(&mut congestion, Time::ZERO, 5 * MSS);
    }
    assert_eq!(congestion.cwnd(), 6 * MSS);
    assert!(!congestion.in_slow_start());
    // After congestion avoidance, a new slow start has the limit of the settings again.
    alone(&mut congestion, Time::ZERO, MSS);
    congestion.set_cwnd(MSS);
    alone(&mut congestion, Time::ZERO, 5 * MSS);
    assert_eq!(congestion.cwnd(), 3 * MSS);
}

#[test]
fn unlimited_slow_start_takes_all() {
    let unlimited = Settings { slow_start_limit: u32::MAX, ..settings() };
    let mut congestion = Congestion::new(unlimited, Spec::default().build());
    alone(&mut congestion, Time::ZERO, 40 * MSS);
    assert_eq!(congestion.cwnd(), 50 * MSS);
    expire(&mut congestion, 50 * MSS, true);
    alone(&mut congestion, Time::ZERO, 9 * MSS);
    assert_eq!(congestion.cwnd(), 10 * MSS);
}

#[test]
fn growth_beyond_the_threshold_is_congestion_avoidance_of_the_same_ack() {
    // Half a segment fits below the threshold. The other 1500 bytes count at a window of 20
    // segments: 75.
    let mut congestion = at("reno", 19, Some(20));
    congestion.set_cwnd(19_500);
    alone(&mut congestion, Time::ZERO, 2 * MSS);
    assert_eq!(congestion.cwnd(), 20_075);
}

#[test]
fn a_sender_that_the_window_does_not_limit_does_not_grow() {
    for spec in ["reno", "cubic", "lia", "olia", "balia", "wvegas"] {
        for ssthresh in [None, Some(5)] {
            let mut congestion = at(spec, 10, ssthresh);
            let all = [congestion.flow(Some(RTT), true)];
            let free = Ack { cwnd_limited: false, ..ack(Time::ZERO, MSS, RTT) };
            congestion.on_ack(&free, Flows { all: &all, own: 0 });
            assert_eq!(congestion.cwnd(), 10 * MSS, "{spec}");
            assert_eq!(congestion.loss_interval(), MSS, "{spec}");
        }
    }
}

#[test]
fn fractions_of_a_byte_accumulate() {
    // 1000 * 1 / 100000 is a hundredth of a byte.
    let mut congestion = at("reno", 100, Some(50));
    for _ in 0..99 {
        alone(&mut congestion, Time::ZERO, 1);
    }
    assert_eq!(congestion.cwnd(), 100 * MSS);
    alone(&mut congestion, Time::ZERO, 2);
    assert_eq!(congestion.cwnd(), 100 * MSS + 1);
}

#[test]
fn reno_grows_one_segment_a_round_trip_and_halves() {
    let mut congestion = at("reno", 20, Some(20));
    // One ACK gives exactly one segment. An ACK per segment gives a little less: the window grows
    // during the round, and the fraction of a segment is not sent.
    alone(&mut congestion, Time::ZERO, 20 * MSS);
    assert_eq!(congestion.cwnd(), 21 * MSS);
    for _ in 0..10 {
        let before = congestion.cwnd();
        for _ in 0..before / MSS {
            alone(&mut congestion, Time::ZERO, MSS);
        }
        let grown = congestion.cwnd() - before;
        assert!((MSS * 92 / 100..=MSS).contains(&grown), "{grown} from {before}");
    }
    lose(&mut congestion, Time::ZERO, 30 * MSS);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (15 * MSS, Some(15 * MSS)));
    lose(&mut congestion, Time::ZERO, 14 * MSS);
    alone(&mut congestion, Time::ZERO, MSS);
    assert_eq!(congestion.cwnd(), 15 * MSS, "recovery moves nothing");
    congestion.on_recovered(Time::ZERO);
    alone(&mut congestion, Time::ZERO, 15 * MSS);
    assert_eq!(congestion.cwnd(), 16 * MSS);
}

#[test]
fn a_loss_does_not_raise_a_window_that_was_cut_from_outside() {
    let mut congestion = at("reno", 40, Some(30));
    congestion.penalise(4 * MSS, Some(3 * MSS));
    lose(&mut congestion, Time::ZERO, 40 * MSS);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (4 * MSS, Some(20 * MSS)));
    let mut congestion = at("reno", 1, Some(2));
    lose(&mut congestion, Time::ZERO, MSS);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (2 * MSS, Some(2 * MSS)));
}

#[test]
fn the_threshold_moves_on_the_first_expiry_only() {
    let mut congestion = at("reno", 20, None);
    expire(&mut congestion, 20 * MSS, true);
    expire(&mut congestion, MSS, false);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (MSS, Some(10 * MSS)));
    assert!(congestion.in_slow_start());
}

#[test]
fn the_threshold_setting_is_whole_segments() {
    let of = |mss, bytes| {
        let settings = Settings { mss, ssthresh: Some(bytes), ..Settings::default() };
        Congestion::new(settings, Spec::default().build()).ssthresh()
    };
    assert_eq!(of(1448, 65_536), Some(45 * 1448));
    assert_eq!(of(1448, 100), Some(1448));
    let settings = Settings { mss: 1448, ssthresh: Some(65_536), ..Settings::default() };
    let windows: Vec<_> = Rounds::new(settings, 363).map(|round| round.window).collect();
    assert_eq!(windows, [10, 20, 40, 45, 46, 47, 48, 49, 50, 51]);
    let last = Rounds::new(settings, 46).last();
    assert_eq!(last, Some(Round { window: 40, total: 70 }));
    assert_eq!(Rounds::new(settings, 0).next(), None);
}

#[test]
fn loss_intervals_shift_only_after_an_acknowledgement() {
    let mut congestion = at("olia", 20, Some(10));
    alone(&mut congestion, Time::ZERO, 5 * MSS);
    lose(&mut congestion, Time::ZERO, 20 * MSS);
    assert_eq!(congestion.loss_interval(), 5 * MSS);
    // A timeout in the same recovery, with no new acknowledgement, does not change the interval.
    expire(&mut congestion, 10 * MSS, true);
    assert_eq!(congestion.loss_interval(), 5 * MSS);
    alone(&mut congestion, Time::ZERO, 2 * MSS);
    assert_eq!(congestion.loss_interval(), 5 * MSS);
    alone(&mut congestion, Time::ZERO, 4 * MSS);
    assert_eq!(congestion.loss_interval(), 6 * MSS);
    expire(&mut congestion, 10 * MSS, true);
    assert_eq!(congestion.loss_interval(), 6 * MSS);
    alone(&mut congestion, Time::ZERO, MSS);
    expire(&mut congestion, 10 * MSS, true);
    assert_eq!(congestion.loss_interval(), MSS);
}

#[test]
fn a_fixed_window_never_moves() {
    let resolved = Spec::parse("fixed").unwrap().with_bdp(37_500);
    for (spec, window) in [
        (Spec::parse("fixed:cwnd=20seg").unwrap(), 20 * MSS),
        (Spec::parse("fixed:cwnd=30kB").unwrap(), 30_000),
        (Spec::parse("fixed:cwnd=1B").unwrap(), MSS),
        (resolved, 37_500),
    ] {
        let mut congestion = Congestion::new(settings(), spec.build());
        alone(&mut congestion, Time::ZERO, MSS);
        lose(&mut congestion, Time::ZERO, 20 * MSS);
        congestion.on_recovered(Time::ZERO);
        expire(&mut congestion, 20 * MSS, true);
        let idle = Span::from_secs(100);
        for mode in [IdleRestart::Linux, IdleRestart::Rfc5681, IdleRestart::Off] {
            assert_eq!(congestion.idle(Time::ZERO + idle, idle, RTT, mode), None);
            assert_eq!(congestion.idle_until_initial(RTT, mode), None);
        }
        congestion.penalise(MSS, None);
        congestion.set_cwnd(MSS);
        assert_eq!((congestion.cwnd(), congestion.initial_window()), (window, window));
        assert!(!congestion.in_slow_start() && congestion.is_fixed());
    }
    assert_eq!(FixedWindow::Segments(20).to_string(), "20seg");
}

#[test]
fn idle_restart_halves_once_for_each_timeout_begun_after_the_first() {
    let rto = Span::from_millis(300);
    let look = |congestion: &mut Congestion, ms: u64, mode| {
        let idle = Span::from_millis(ms);
        congestion.idle(Time::ZERO + idle, idle, rto, mode)
    };
    let mut congestion = at("reno", 40, Some(20));
    assert_eq!(look(&mut congestion, 300, IdleRestart::Linux), None);
    assert_eq!(congestion.ssthresh(), Some(20 * MSS));
    let first = look(&mut congestion, 301, IdleRestart::Linux);
    assert_eq!(first, Some(IdleReset { before: 40 * MSS, after: 20 * MSS }));
    assert_eq!(look(&mut congestion, 600, IdleRestart::Linux), None);
    let second = look(&mut congestion, 601, IdleRestart::Linux);
    assert_eq!(second, Some(IdleReset { before: 20 * MSS, after: 10 * MSS }));
    assert_eq!(congestion.ssthresh(), Some(30 * MSS));
    // A new period starts again: the minimum is now 10 segments, and the window has that size.
    congestion.on_send();
    assert_eq!(look(&mut congestion, 5_000, IdleRestart::Linux), None);
    let mut congestion = at("reno", 40, None);
    assert_eq!(look(&mut congestion, 9_000, IdleRestart::Off), None);
    assert_eq!(congestion.idle_until_initial(rto, IdleRestart::Off), None);
    let reset = look(&mut congestion, 301, IdleRestart::Rfc5681);
    assert_eq!(reset.map(|reset| reset.after), Some(10 * MSS));
    assert_eq!(congestion.ssthresh(), None);
}

#[test]
fn two_hundred_segments_need_more_than_five_timeouts_of_idling() {
    let rto = Span::from_millis(300);
    let mut congestion = at("cubic", 200, None);
    let needed = congestion.idle_until_initial(rto, IdleRestart::Linux).unwrap();
    assert_eq!(needed, rto.times(5) + Span::from_nanos(1));
    // Calls before that time change the window, but not the result.
    let now = Time::ZERO + rto.times(3);
    congestion.idle(now, rto.times(3), rto, IdleRestart::Linux);
    assert_eq!(congestion.cwnd(), 50 * MSS);
    assert_eq!(congestion.idle_until_initial(rto, IdleRestart::Linux), Some(needed));
    congestion.idle(now, rto.times(5), rto, IdleRestart::Linux);
    assert_eq!(congestion.cwnd(), 12 * MSS);
    congestion.idle(now, needed, rto, IdleRestart::Linux);
    assert_eq!(congestion.cwnd(), 10 * MSS);
    assert_eq!(congestion.idle_until_initial(rto, IdleRestart::Linux), None);
}

#[test]
fn cubic_follows_its_curve_for_ten_seconds_after_a_loss() {
    let mut congestion = at("cubic", 1000, Some(500));
    let mut now = Time::ZERO + Span::from_secs(1);
    alone(&mut congestion, now, MSS);
    lose(&mut congestion, now, 1000 * MSS);
    assert_eq!(congestion.cwnd(), 700 * MSS);
    now += RTT;
    congestion.on_recovered(now);
    let start = now;
    // Wmax is the window at the loss, a little above 1000 segments, which is within the tolerance.
    let curve = cubic::Curve::new(1000.0, 700.0);
    assert!((curve.k - 9.0856).abs() < 1e-4);
    while now.since(start) < Span::from_secs(10) {
        let expected = curve.at(now.since(start).as_secs_f64());
        let window = congestion.cwnd() as f64 / MSS as f64;
        assert!((window / expected - 1.0).abs() < 0.01, "{window} and {expected} at {now:?}");
        let segments = congestion.cwnd() / MSS;
        for nth in 1..=segments {
            alone(&mut congestion, now + RTT.times(nth).over(segments), MSS);
        }
        now += RTT;
    }
}

#[test]
fn cubic_is_as_fast_as_reno_where_reno_is_faster() {
    // Wmax is 20 and the RTT 20 ms: K is 2.47 s and W(1 s) is 18.7. The estimate grows by 0.53 per
    // RTT, reaches 20 after 0.23 s, and then grows by 1.
    let mut congestion = at("cubic", 20, Some(10));
    let rtt = Span::from_millis(20);
    let flows = [congestion.flow(Some(rtt), true)];
    congestion.on_loss(Time::ZERO, 20 * MSS, Flows { all: &flows, own: 0 });
    congestion.on_recovered(Time::ZERO);
    assert_eq!(congestion.cwnd(), 14 * MSS);
    let mut now = Time::ZERO;
    let run = |congestion: &mut Congestion, now: &mut Time, rounds: u32| {
        for _ in 0..rounds {
            *now += rtt;
            for _ in 0..congestion.cwnd() / MSS {
                congestion.on_ack(&ack(*now, MSS, rtt), Flows { all: &flows, own: 0 });
            }
        }
        congestion.cwnd() as f64 / MSS as f64
    };
    let before = run(&mut congestion, &mut now, 10);
    assert!((before - (14.0 + 10.0 * cubic::ALPHA)).abs() < 0.3, "{before}");
    let back = run(&mut congestion, &mut now, 5);
    let later = run(&mut congestion, &mut now, 10);
    assert!((9.5..=10.1).contains(&(later - back)), "{back} {later}");
}

#[test]
fn idle_time_does_not_count_into_the_cubic() {
    // Two flows, one of which idles for a second, end with the same window.
    let run = |pause: Option<Span>| {
        let mut congestion = at("cubic", 1000, Some(500));
        lose(&mut congestion, Time::ZERO, 1000 * MSS);
        congestion.on_recovered(Time::ZERO);
        let mut now = Time::ZERO;
        for round in 0..100 {
            if let (50, Some(pause)) = (round, pause) {
                for part in 1..=4 {
                    let idle = pause.over(4).times(part);
                    congestion.idle(now + idle, idle, Span::from_secs(9), IdleRestart::Linux);
                }
                now += pause;
                congestion.on_send();
            }
            now += RTT;
            for _ in 0..congestion.cwnd() / MSS {
                alone(&mut congestion, now, MSS);
            }
        }
        congestion.cwnd()
    };
    assert_eq!(run(None), run(Some(Span::from_secs(2))));
}

#[test]
fn cubic_starts_convex_where_slow_start_ends_without_a_loss() {
    // K is 0 and Wmax is 100. The RTT equals the time since the start, without another ACK, so the
    // Reno-friendly estimate stays smaller.
    let mut congestion = at("cubic", 99, Some(100));
    let mut now = Time::ZERO;
    alone(&mut congestion, now, MSS);
    assert_eq!(congestion.cwnd(), 100 * MSS);
    let long = Span::from_secs(2);
    now += long;
    let all = [congestion.flow(Some(long), true)];
    congestion.on_ack(&ack(now, MSS, long), Flows { all: &all, own: 0 });
    // The target is W(4 s) = 125.6. One segment of a hundred moves a hundredth of the way: 256
    // bytes, or one less, because 25.6 is not exact in binary.
    assert!((255..=256).contains(&(congestion.cwnd() - 100 * MSS)));
}

#[test]
fn lia_alone_is_reno_to_the_byte() {
    for spec in ["lia", "olia", "balia"] {
        let (mut one, mut other) = (at("reno", 20, Some(20)), at(spec, 20, Some(20)));
        for step in 0..2_000_u64 {
            let bytes = 1 + step * 37 % 2_500;
            for congestion in [&mut one, &mut other] {
                // A dead sibling and a sibling without a sample do not couple.
                let dead = Flow { live: false, ..flow(500, 5) };
                let new = Flow { srtt: None, ..flow(500, 5) };
                let all = [dead, congestion.flow(Some(RTT), true), new];
                congestion.on_ack(&ack(Time::ZERO, bytes, RTT), Flows { all: &all, own: 1 });
            }
            assert_eq!(one.cwnd(), other.cwnd(), "{spec}, step {step}");
        }
        for congestion in [&mut one, &mut other] {
            lose(congestion, Time::ZERO, 33 * MSS);
        }
        assert_eq!((one.cwnd(), one.ssthresh()), (other.cwnd(), other.ssthresh()));
    }
}

#[test]
fn a_sibling_in_recovery_counts_with_its_threshold() {
    for spec in ["lia", "olia", "balia"] {
        let grown = |sibling: Flow| {
            let mut congestion = at(spec, 20, Some(20));
            let all = [congestion.flow(Some(RTT), true), sibling];
            for _ in 0..50 {
                congestion.on_ack(&ack(Time::ZERO, MSS, RTT), Flows { all: &all, own: 0 });
            }
            congestion.cwnd()
        };
        let recovering = Flow { ssthresh: Some(8 * MSS), in_recovery: true, ..flow(30, 50) };
        assert_eq!(grown(recovering), grown(flow(8, 50)), "{spec}");
        assert_ne!(grown(recovering), grown(flow(30, 50)), "{spec}");
        let calm = Flow { in_recovery: false, ..recovering };
        assert_eq!(grown(calm), grown(flow(30, 50)), "{spec}");
    }
}

#[test]
fn olia_shrinks_the_largest_for_the_best_and_stays_out_of_slow_start() {
    let mut congestion = at("olia", 20, Some(20));
    let best = Flow { loss_interval: 100 * MSS * MSS, ..flow(10, 50) };
    for _ in 0..2_000 {
        let all = [congestion.flow(Some(RTT), true), best];
        let before = congestion.cwnd();
        congestion.on_ack(&ack(Time::ZERO, MSS, RTT), Flows { all: &all, own: 0 });
        assert!(!congestion.in_slow_start());
        assert!(congestion.cwnd() <= before || before < 11 * MSS);
    }
    // When it is no longer the largest, it stops shrinking.
    assert!((9 * MSS..=11 * MSS).contains(&congestion.cwnd()), "{}", congestion.cwnd());
}

#[test]
fn olia_may_fall_to_one_segment_while_it_has_siblings() {
    let mut congestion = at("olia", 2, Some(2));
    let all = [congestion.flow(Some(RTT), true), flow(10, 50)];
    congestion.on_loss(Time::ZERO, MSS, Flows { all: &all, own: 0 });
    assert_eq!(congestion.cwnd(), MSS);
}

#[test]
fn a_loss_that_was_none_is_taken_back_once() {
    for name in ["reno", "cubic", "lia", "olia", "balia", "wvegas"] {
        let mut congestion = at(name, 40, Some(30));
        alone(&mut congestion, Time::ZERO, 7 * MSS);
        let before = (congestion.cwnd(), congestion.ssthresh());
        lose(&mut congestion, Time::ZERO, 40 * MSS);
        assert!(congestion.cwnd() < before.0 && congestion.in_recovery(), "{name}");
        assert!(congestion.undo(Time::ZERO), "{name}");
        assert_eq!((congestion.cwnd(), congestion.ssthresh()), before, "{name}");
        assert!(!congestion.in_recovery() && !congestion.in_slow_start(), "{name}");
        assert_eq!(congestion.loss_interval(), 7 * MSS);
        assert!(!congestion.undo(Time::ZERO), "{name}: there is nothing more to take back");
    }
}

#[test]
fn timeouts_in_a_row_are_taken_back_together_and_slow_start_goes_on() {
    let mut congestion = build("cubic");
    alone(&mut congestion, Time::ZERO, 2 * MSS);
    expire(&mut congestion, 12 * MSS, true);
    expire(&mut congestion, 12 * MSS, false);
    assert_eq!(congestion.cwnd(), MSS);
    assert!(congestion.undo(Time::ZERO));
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (12 * MSS, None));
    assert!(congestion.in_slow_start());
    // The limit is that of the settings again.
    alone(&mut congestion, Time::ZERO, 5 * MSS);
    assert_eq!(congestion.cwnd(), 14 * MSS);
}

#[test]
fn what_was_set_from_outside_stays() {
    let sets: [fn(&mut Congestion); 2] =
        [|c| c.set_cwnd(5 * MSS), |c| c.penalise(5 * MSS, Some(4 * MSS))];
    for set in sets {
        let mut congestion = at("reno", 40, None);
        lose(&mut congestion, Time::ZERO, 40 * MSS);
        set(&mut congestion);
        assert!(!congestion.undo(Time::ZERO));
        assert_eq!(congestion.cwnd(), 5 * MSS);
    }
    let mut fixed = build("fixed:cwnd=8seg");
    lose(&mut fixed, Time::ZERO, 8 * MSS);
    assert!(fixed.undo(Time::ZERO));
    assert_eq!(fixed.cwnd(), 8 * MSS);
}

/// RFC 9438 section 4.9: Wmax, K and the epoch are restored, and the curve continues at its old
/// position.
#[test]
fn cubic_goes_on_along_its_curve_after_an_undo() {
    let second = |n: u64| Time::ZERO + Span::from_secs(n);
    let grow = |upset: bool| {
        let mut congestion = at("cubic", 100, None);
        lose(&mut congestion, second(0), 100 * MSS);
        congestion.on_recovered(second(0));
        for n in 1..40 {
            let now = Time::ZERO + RTT.times(n);
            if upset && n == 20 {
                lose(&mut congestion, now, 80 * MSS);
                assert!(congestion.undo(now));
            }
            let cwnd = congestion.cwnd();
            alone(&mut congestion, now, cwnd);
        }
        congestion.cwnd()
    };
    assert_eq!(grow(true), grow(false));
}

/// Applies a round trip of wVegas with these samples in ms. The last one ends the round.
fn round_trip(congestion: &mut Congestion, samples: &[u64], limited: bool) {
    for (nth, ms) in samples.iter().enumerate() {
        let last = nth + 1 == samples.len();
        let all = [congestion.flow(Some(RTT), true)];
        let rtt = Span::from_millis(*ms);
        let ack = Ack { cwnd_limited: limited, round: last, ..ack(Time::ZERO, MSS, rtt) };
        congestion.on_ack(&ack, Flows { all: &all, own: 0 });
    }
}

/// R77: 20 segments at 40 ms over a base of 30 ms have 5 in the queue. Slow start allows one. The
/// window becomes 20 * 30 / 40 + 1.
#[test]
fn wvegas_leaves_slow_start_when_a_segment_is_queued() {
    let mut congestion = at("wvegas", 20, None);
    round_trip(&mut congestion, &[30, 30, 30], false);
    assert!(congestion.in_slow_start());
    round_trip(&mut congestion, &[40, 40, 40], false);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (16 * MSS, Some(16 * MSS)));
    assert!(!congestion.in_slow_start());
    // Two samples are too few.
    let mut congestion = at("wvegas", 20, None);
    round_trip(&mut congestion, &[30, 50], false);
    assert!(congestion.in_slow_start());
}

/// R77: for a single subflow, alpha is all ten segments once two are in the queue.
#[test]
fn wvegas_alone_keeps_ten_segments_queued() {
    let mut congestion = at("wvegas", 40, Some(1));
    round_trip(&mut congestion, &[30, 30, 30], true);
    assert_eq!(congestion.cwnd(), 41 * MSS, "an empty queue");
    // 41 / 4 = 10.25 in the queue are too many. 40 / 4 = 10 are right.
    round_trip(&mut congestion, &[40, 40, 40], true);
    assert_eq!(congestion.cwnd(), 40 * MSS);
    round_trip(&mut congestion, &[40, 40, 40], true);
    assert_eq!(congestion.cwnd(), 40 * MSS);
    // 40 * 6 / 36 = 6.7: growth, unless the window does not limit the sender.
    round_trip(&mut congestion, &[36, 36, 36], false);
    assert_eq!(congestion.cwnd(), 40 * MSS);
    round_trip(&mut congestion, &[36, 36, 36], true);
    assert_eq!(congestion.cwnd(), 41 * MSS);
    // The window shrinks even if it does not limit the sender.
    round_trip(&mut congestion, &[41, 41, 41], false);
    assert_eq!(congestion.cwnd(), 40 * MSS);
}

/// R77: if the queue has doubled since the last drain, the window becomes half of the path's
/// capacity without a queue.
#[test]
fn wvegas_drains_a_queue_that_has_doubled() {
    let mut congestion = at("wvegas", 60, Some(1));
    round_trip(&mut congestion, &[30, 30, 30], true);
    round_trip(&mut congestion, &[35, 35, 35], true);
    assert_eq!(congestion.cwnd(), 62 * MSS);
    // 62 * 10 / 40 = 15.5 in the queue: 61 segments, and 30 / 80 of them.
    round_trip(&mut congestion, &[40, 40, 40], true);
    assert_eq!(congestion.cwnd(), 61 * MSS * 30 / 80);
    // The lowest delays have been reset.
    round_trip(&mut congestion, &[40, 40, 40], true);
    assert_eq!(congestion.cwnd(), 61 * MSS * 30 / 80 + MSS);
    let mut congestion = at("wvegas", 3, Some(1));
    round_trip(&mut congestion, &[30, 30, 30], true);
    round_trip(&mut congestion, &[34, 34, 34], true);
    round_trip(&mut congestion, &[90, 90, 90], true);
    assert_eq!(congestion.cwnd(), 2 * MSS, "never below two segments");
}

/// An ACK delayed without a queue raises only the mean, which the kernel uses.
#[test]
fn wvegas_does_not_drain_for_a_delayed_acknowledgement() {
    for (name, drains) in [("wvegas", false), ("wvegas:drain=mean", true)] {
        let mut congestion = at(name, 8, Some(1));
        round_trip(&mut congestion, &[100, 102, 102, 102], true);
        round_trip(&mut congestion, &[102, 102, 102, 102], true);
        round_trip(&mut congestion, &[102, 102, 102, 142], true);
        let window = congestion.cwnd() as f64 / MSS as f64;
        assert_eq!(window < 7.0, drains, "{name}: {window}");
    }
}

/// R77: a round trip of two samples grows as in Reno, by a segment per window of bytes. A constant
/// RTT never drains.
#[test]
fn wvegas_is_reno_where_it_cannot_measure() {
    let mut congestion = at("wvegas", 4, Some(1));
    round_trip(&mut congestion, &[30, 30], true);
    assert_eq!(congestion.cwnd(), 4 * MSS + MSS / 2);
    for _ in 0..20 {
        round_trip(&mut congestion, &[30, 30, 30], true);
    }
    assert_eq!(congestion.cwnd(), 24 * MSS + MSS / 2);
}

/// R77: in recovery only the lowest RTT is measured. After it alpha is 2 again.
#[test]
fn wvegas_measures_anew_after_a_recovery() {
    let mut congestion = at("wvegas", 40, Some(1));
    round_trip(&mut congestion, &[30, 30, 30], true);
    round_trip(&mut congestion, &[40, 40, 40], true);
    assert_eq!(congestion.cwnd(), 40 * MSS);
    lose(&mut congestion, Time::ZERO, 40 * MSS);
    round_trip(&mut congestion, &[28, 90, 90], true);
    assert_eq!(congestion.cwnd(), 20 * MSS);
    congestion.on_recovered(Time::ZERO);
    // 20 * 7 / 35 = 4 in the queue over a base of 28 ms: alpha becomes 10 again.
    round_trip(&mut congestion, &[35, 35, 35], true);
    assert_eq!(congestion.cwnd(), 21 * MSS);
}

#[test]
fn segments_of_another_size_are_what_windows_are_counted_in() {
    let mut fresh = build("reno");
    fresh.resize(500);
    assert_eq!((fresh.cwnd(), fresh.initial_window()), (5_000, 5_000));
    // Growth is one segment of the new size per RTT.
    let mut grown = at("reno", 8, Some(4));
    grown.resize(500);
    assert_eq!(grown.cwnd(), 8_000);
    alone(&mut grown, Time::ZERO, 8_000);
    assert_eq!(grown.cwnd(), 8_500);
    // Never below one segment.
    let mut small = at("reno", 1, Some(1));
    small.resize(3_000);
    assert_eq!(small.cwnd(), 3_000);
    let mut fixed = build("fixed:cwnd=20seg");
    let before = fixed.cwnd();
    fixed.resize(500);
    assert_eq!((before, fixed.cwnd()), (20_000, 10_000));
}
