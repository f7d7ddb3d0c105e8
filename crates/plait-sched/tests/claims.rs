//! Claims of the papers about buffers, windows and decisions. Each test names its claim.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model::{MSS, Model, subflow};
use plait_base::{Dsn, Span, SubflowId};
use plait_sched::formulas::{
    default_buffer, fallback_buffer, recommended_buffer, stms_buffer, true_gap,
};
use plait_sched::{
    Decision, Effect, Outcome, Reason, Scheduler, Spec, SubflowView, What, WindowChange,
    rec_cwnd_after,
};

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

const fn mbit(rate: u64) -> u64 {
    rate * 1_000_000 / 8
}

fn path(id: u8, rtt_ms: u64, segments: u64) -> SubflowView {
    subflow(id, ms(rtt_ms), segments * MSS)
}

fn full(path: SubflowView) -> SubflowView {
    SubflowView { inflight: path.cwnd, ..path }
}

fn noted(out: &Outcome, name: &str) -> f64 {
    out.numbers.iter().find(|number| number.name == name).unwrap().value
}

/// csws-u2. The extremes of its experiments are two paths of 100 Mbit/s with RTTs up to 50 ms (low)
/// and 400 ms (high).
#[test]
fn the_recommended_buffer_is_twice_the_longest_rtt_of_all_rates() {
    assert_eq!(recommended_buffer(&[mbit(25), mbit(5)], ms(130)), 975_000);
    assert_eq!(recommended_buffer(&[mbit(100); 2], ms(50)), 2_500_000);
    assert_eq!(recommended_buffer(&[mbit(100); 2], ms(400)), 20_000_000);
    // Two paths of 30 Mbit/s and 200 ms.
    assert_eq!(recommended_buffer(&[mbit(30); 2], ms(200)), 3_000_000);
}

/// stms-u1, stms-u2, stms-u3, stms-u4, stms-u5.
#[test]
fn stms_needs_less_buffer_than_the_order_of_rtts() {
    let rate = mbit(30);
    let (fast, slow) = (ms(10), ms(100));
    let gap = true_gap(rate, fast, slow);
    assert_eq!(default_buffer(rate, rate, ms(200)), 1_500_000);
    assert_eq!(gap, 337_500);
    assert_eq!(gap, 225 * 1_500);
    assert_eq!((gap as f64 / 1_448.0 * 100.0).round(), 23_308.0);
    let buffer = stms_buffer(rate, rate, fast, slow);
    assert_eq!(buffer, 825_000);
    // The ratio is (OWD_s + OWD_f) / RTT_s.
    assert_eq!(buffer * 200, default_buffer(rate, rate, ms(200)) * 110);
    let fallback = fallback_buffer(rate, ms(20), fast, slow);
    assert_eq!(fallback, 412_500);
    assert_eq!(fallback * (rate + rate), buffer * rate);
    // The bytes in flight on F, the bytes in flight on S until the DATA_ACK returns over F, and the
    // gap.
    assert_eq!(75_000 + 412_500 + gap, buffer);
    for (a, b, f, s) in [(30, 30, 20, 200), (25, 5, 30, 130), (8, 40, 10, 90)] {
        let (rate_f, rate_s) = (mbit(a), mbit(b));
        let sum = rate_f * f / 1_000
            + rate_s * (s + f) / 2_000
            + true_gap(rate_f, ms(f).over(2), ms(s).over(2));
        assert_eq!(sum, stms_buffer(rate_f, rate_s, ms(f).over(2), ms(s).over(2)));
    }
}

/// stms-u6, stms-u7, stms-u10, stms-u13.
#[test]
fn the_true_gap_follows_the_difference_of_the_delays() {
    let rate = mbit(30);
    // S has three times the RTT of F: the gap is one window of F (figure 9).
    assert_eq!(true_gap(rate, ms(10), ms(30)), rate * 20 / 1_000);
    // Equal RTTs.
    assert_eq!(true_gap(rate, ms(10), ms(10)), 0);
    assert_eq!(default_buffer(rate, rate, ms(20)), 150_000);
    assert_eq!(stms_buffer(rate, rate, ms(10), ms(10)), 150_000);
    let products = [8, 50, 500].map(|rtt| default_buffer(rate, 0, ms(rtt)));
    assert_eq!(products, [30_000, 187_500, 1_875_000]);
    // Figure 12, in packets of 1500 bytes: at first, then with 5 ms on F, then with 100 ms on S.
    assert_eq!(true_gap(rate, ms(10), ms(100)), 225 * 1_500);
    assert_eq!(true_gap(rate, Span::from_micros(2_500), ms(100)) * 4, 975 * 1_500);
    assert_eq!(true_gap(rate, ms(10), ms(50)), 100 * 1_500);
}

/// stms-u6 for the scheduler. With three times the RTT the calculated gap is the window of F, for
/// any window.
#[test]
fn three_times_the_rtt_reserve_one_window_of_the_fast_subflow() {
    for window in [1, 10, 47, 300] {
        let model = Model::new(vec![full(path(0, 20, window)), path(1, 60, 10)], 1_000 * MSS);
        let decision = model.ask(&mut *build("stms-c"), &mut Outcome::default());
        assert!(
            matches!(decision, Decision::Send { what: What::New { offset }, .. } if offset == window * MSS)
        );
    }
}

/// csws-u3.
#[test]
fn bm_binds_where_the_rtt_is_above_three_times_its_least() {
    for (srtt, times_two, binds) in [(40, 3, false), (60, 2, false), (61, 0, true), (120, 1, true)]
    {
        let model = Model::new(vec![path(0, srtt, 60), path(1, 200, 10)], 100 * MSS);
        let mut scheduler = build("minrtt+bm");
        assert!(scheduler.load_state("bm_min_srtt.0_ms", 20.0));
        let mut out = Outcome::default();
        model.ask(&mut *scheduler, &mut out);
        let limit = noted(&out, "limit_segments");
        assert!(times_two == 0 || limit == 30.0 * f64::from(times_two), "{srtt}: {limit}");
        let capped = matches!(out.effects[..], [Effect::Cap { subflow: SubflowId(0), .. }]);
        assert_eq!(capped, binds, "{srtt}");
    }
}

/// Creates a connection whose send window is full of data that subflow 1 carries. One segment is
/// unsent.
fn stalled(free: SubflowView, holder: SubflowView) -> Model {
    let mut model = Model::new(vec![free, holder], 11 * MSS);
    for at in 0..10 {
        model.queue.record(plait_base::DataRange::with_len(Dsn::new(at * MSS), MSS), SubflowId(1));
    }
    model.connection.unsent = MSS;
    (model.connection.snd_nxt, model.connection.wnd_end) = (Dsn::new(10 * MSS), Dsn::new(10 * MSS));
    model
}

/// csws-u6.
#[test]
fn rp_resends_the_head_as_its_mode_says_and_penalises_once_an_rtt() {
    for (free_rtt, holder_rtt, cwnd) in [(10, 41, 40), (10, 40, 40), (50, 60, 40), (50, 60, 3)] {
        for strict in [true, false] {
            let mut model = stalled(path(0, free_rtt, 20), path(1, holder_rtt, cwnd));
            let mut scheduler = build(&format!("minrtt+rp:strict={strict}"));
            let mut out = Outcome::default();
            let decision = model.ask(&mut *scheduler, &mut out);
            let resent = matches!(decision, Decision::Send { what: What::OppRetx(_), .. });
            let wanted = !strict || 4 * free_rtt < holder_rtt || cwnd <= 4;
            assert_eq!(resent, wanted, "{free_rtt} {holder_rtt} {cwnd} {strict}");
            assert_eq!(out.effects.len(), 1);
            // The next penalty comes one RTT of the free subflow later, and not before.
            for (pass, effects) in [(0, 0), (free_rtt - 1, 0), (1, 1)] {
                model.now += ms(pass);
                model.ask(&mut *scheduler, &mut out);
                assert_eq!(out.effects.len(), effects, "{pass}");
            }
        }
    }
}

/// imc-u5: without penalties, no decision changes a window.
#[test]
fn without_penalties_a_stall_leaves_windows_alone() {
    for spec in ["minrtt", "minrtt+rp:mode=retransmit", "minrtt+rp:mode=off", "ecf", "stms-a"] {
        let model = stalled(path(0, 10, 20), path(1, 100, 40));
        let mut out = Outcome::default();
        model.ask(&mut *build(spec), &mut out);
        assert_eq!(out.effects, [], "{spec}");
    }
}

/// ecf-u2: the example of the paper, by its printed rule and by the kernel's rule.
#[test]
fn the_last_segment_waits_by_the_kernel_form_and_not_as_printed() {
    let model = Model::new(vec![full(path(0, 10, 10)), path(1, 100, 10)], MSS);
    for (spec, waits, lhs, lhs2) in
        [("ecf:floor=off", false, 11.0, 10.0), ("ecf", true, 20.0, 100.0)]
    {
        let mut out = Outcome::default();
        let decision = model.ask(&mut *build(spec), &mut out);
        let reason = Reason::FastFinishesSooner;
        let wait = Decision::Wait { on: Some(SubflowId(0)), reason };
        assert_eq!(decision == wait, waits, "{spec}");
        let close = |name, wanted: f64| (noted(&out, name) - wanted).abs() < 1e-9;
        assert!(close("lhs_ms", lhs) && close("rhs_ms", 100.0), "{spec}");
        assert!(close("lhs2_ms", lhs2) && close("rhs2_ms", 20.0), "{spec}");
    }
}

/// ecf-u5.
#[test]
fn the_window_from_before_an_idle_reset_counts_until_it_is_exceeded() {
    let record = rec_cwnd_after(0, WindowChange::IdleReset { before: 42 });
    assert_eq!(record, 42);
    // A second, smaller window does not replace the record. Growth up to the record does not clear
    // it.
    assert_eq!(rec_cwnd_after(record, WindowChange::IdleReset { before: 20 }), 42);
    assert_eq!(rec_cwnd_after(record, WindowChange::Moved { cwnd: 42 }), 42);
    assert_eq!(rec_cwnd_after(record, WindowChange::Moved { cwnd: 43 }), 0);
    // No more than the congestion window is sent.
    let fast = SubflowView { rec_cwnd: 100 * MSS, ..full(path(0, 10, 10)) };
    let model = Model::new(vec![fast, full(path(1, 100, 10))], 50 * MSS);
    let decision = model.ask(&mut *build("ecf"), &mut Outcome::default());
    assert!(matches!(decision, Decision::Wait { reason: Reason::AllBusy, .. }));
}

/// ecf-u6: k is the data that no subflow has, this segment included.
#[test]
fn k_is_the_data_that_no_subflow_has() {
    for queued in [0, 7, 30] {
        let fast = SubflowView { queued: queued * MSS, ..full(path(0, 10, 10)) };
        let model = Model::new(vec![fast, path(1, 100, 10)], 33 * MSS);
        let mut out = Outcome::default();
        model.ask(&mut *build("ecf"), &mut out);
        assert_eq!(noted(&out, "k_bytes"), 33.0 * MSS as f64);
    }
}

/// ton-u9, in segments of 1448 bytes.
#[test]
fn blest_skips_the_slow_subflow_below_these_windows() {
    for (ratio, x, threshold) in [(10, 209_960.0, 211_408), (4, 66_608.0, 68_056)] {
        let with = |mut it: SubflowView| {
            (it.mss, it.cwnd) = (1_448, 10 * 1_448);
            it
        };
        for (window, skips) in [(threshold - 1, true), (threshold, false)] {
            let fast = full(with(path(0, 10, 10)));
            let mut model = Model::new(vec![fast, with(path(1, 10 * ratio, 10))], 100 * 1_448);
            model.connection.mss = 1_448;
            model.connection.wnd_end = Dsn::new(window);
            let mut out = Outcome::default();
            let decision = model.ask(&mut *build("blest:mode=paper"), &mut out);
            assert_eq!(noted(&out, "x_bytes"), x);
            assert_eq!(matches!(decision, Decision::Wait { .. }), skips, "{ratio} {window}");
        }
    }
}
