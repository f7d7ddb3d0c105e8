//! Tests exact claims of the papers about controllers, windows, slow start and buffers. Each has its name in
//! the list of claims, and is computed by production code.
//!
//! Claims about schedulers are beside the schedulers (`plait-sched/tests`), claims about measures beside the
//! measures. imc-u1 and imc-u3 are in `textbook.rs` and `joins.rs` of `plait-sim/tests`. Claims about
//! schedulers between two hosts are in its `claims_ton.rs` and `claims_csws.rs`, and stms-u11 is in
//! `plait-core/tests/script/receiving.rs`. ton-u14 is a prediction of a scheduler: the real window grows by
//! `mss * acked / cwnd` for each ACK, a little less than a segment a round.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;
use crate::common::{report, row, scenario};
use plait_app::Role;
use plait_base::{Rate, Span, SubflowId, Time};
use plait_cc::{Flow, Flows, Rounds, Settings, View, lia, olia, reno};
use plait_core::buffers::{self, PathProperties};
use plait_core::{Event, WindowCause};
use plait_sim::{Watch, Who};

/// Returns the segments that a transfer could have sent after each of its rounds.
fn totals(settings: Settings, segments: u64) -> Vec<u64> {
    Rounds::new(settings, segments).map(|round| round.total).collect()
}

/// ton-u12: round n of slow start is delivered n - 0.5 round trips after its start. With IW 10 and no
/// threshold, the rounds end at segments 10, 30, 70, 150 and 310.
#[test]
fn ton_u12_slow_start_doubles() {
    assert_eq!(totals(Settings::default(), 310), [10, 30, 70, 150, 310]);
    // The last segment of each round and the first of the next; one way is 5 ms, so 0.5, 1.5, ... round
    // trips.
    for (segments, ms) in [(10, 5.0), (11, 15.0), (30, 15.0), (31, 25.0), (310, 45.0)] {
        let line = format!(
            "--path a:rtt=10ms --ideal --workload burst:{segments}seg --idle-restart off \
             --schedulers minrtt --path b:rtt=400ms"
        );
        assert_eq!(
            common::median(row(&report(&line), "tcp:a"), "message_delay_ms"),
            ms,
            "{segments}"
        );
    }
}

/// ton-u1: a burst of 15 segments over 10 ms with IW 10 takes one and a half round trips.
#[test]
fn ton_u1_a_burst_of_fifteen_segments() {
    let line = "--path p1:rtt=10ms --path p2:rtt=100ms --ideal --workload burst:15seg";
    let report = report(line);
    assert_eq!(common::median(row(&report, "tcp:p1"), "message_delay_ms"), 15.0);
}

/// imc-u2: two open subflows of IW 10 carry 64 KiB, 46 segments, in two rounds. With four subflows over 30
/// and 60 ms, the first subflow finishes before another one can start.
#[test]
fn imc_u2_64_kib_over_two_subflows_and_over_four() {
    let segments = (64_u64 << 10).div_ceil(1448);
    assert_eq!(segments, 46);
    let one = totals(Settings::default(), segments);
    let rounds = one.iter().position(|total| 2 * total >= segments);
    assert_eq!((rounds, 2 * one[1]), (Some(1), 60));

    let line = "--path wifi:rtt=30ms --path cell:rtt=60ms --ideal --subflows mesh4 \
                --join after-synack --ssthresh 64KiB --workload download:64KiB --schedulers minrtt";
    let report = report(line);
    let row = row(&report, "minrtt");
    assert_eq!(common::median(row, "completion_ms"), 120.0);
    assert_eq!(row.traffic.path_share.get("cell"), Some(&0.0));
}

/// imc-u4: LIA and OLIA with 10 segments on 30 and on 60 ms, in segments for each acknowledged segment.
#[test]
fn imc_u4_lia_and_olia_on_unequal_round_trips() {
    let flow = |ms| Flow {
        cwnd: 14_480,
        ssthresh: Some(0),
        srtt: Some(Span::from_millis(ms)),
        mss: 1448,
        in_recovery: false,
        live: true,
        loss_interval: 0,
    };
    let all = [flow(30), flow(60)];
    let near = |ours: f64, theirs: f64| assert!((ours - theirs).abs() < 5e-5, "{ours}, {theirs}");
    for (own, base) in [0.0444, 0.0111].into_iter().enumerate() {
        let view = View::of(Flows { all: &all, own }).unwrap();
        assert!((lia::alpha(&view) - 0.889).abs() < 5e-4);
        near(lia::increase(1448, &view) / 1448.0, 0.0444);
        near(reno::increase(1448, &view) / 1448.0, 0.1);
        near(olia::terms(&view, olia::Quality::Paper).linked, base);
    }
}

/// The causes of window changes of the sender's subflows.
#[derive(Default)]
struct Windows {
    last: Vec<Option<u64>>,
    /// True during fast recovery, in which the reported window is that of proportional rate reduction.
    recovering: Vec<bool>,
    acks: usize,
    causes: Vec<WindowCause>,
    /// Changes of a window that no event of the same subflow at the same time explains. The window
    /// shrank at an acknowledgement, or grew by more than it acknowledged.
    unexplained: Vec<(Time, SubflowId)>,
    resets: Vec<(u64, u64)>,
}

impl Watch for Windows {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if who.host != Role::Server {
            return;
        }
        let (subflow, cwnd) = match *event {
            Event::Acked { subflow, cwnd, bytes, .. } => {
                let before = self.last.get(usize::from(subflow.0)).copied().flatten();
                let repairs = self.recovering.get(usize::from(subflow.0)) == Some(&true);
                let explained = |before| repairs || before <= cwnd && cwnd <= before + bytes;
                if !before.is_none_or(explained) {
                    self.unexplained.push((now, subflow));
                }
                self.acks += 1;
                (subflow, cwnd)
            }
            Event::Window { subflow, cwnd, cause, .. } => {
                self.unexplained.retain(|it| *it != (now, subflow));
                self.causes.push(cause);
                let index = usize::from(subflow.0);
                self.recovering.resize(self.recovering.len().max(index + 1), false);
                self.recovering[index] = cause == WindowCause::Loss;
                (subflow, cwnd)
            }
            Event::IdleReset { subflow, before, after } => {
                self.resets.push((before, after));
                (subflow, after)
            }
            _ => return,
        };
        let index = usize::from(subflow.0);
        if self.last.len() <= index {
            self.last.resize(index + 1, None);
        }
        self.last[index] = Some(cwnd);
    }
}

fn watched(line: &str) -> Windows {
    let cell = plait_lab::cells(&scenario(line)).remove(0);
    let mut windows = Windows::default();
    let _ = plait_lab::simulate(&cell, 1, &mut windows);
    windows
}

/// imc-u5: without penalisation, only the acknowledgements, losses and idle periods of a subflow change its
/// window. Losses of other subflows do not.
#[test]
fn imc_u5_windows_move_for_their_own_reasons() {
    for cc in ["reno", "cubic", "lia"] {
        let line = format!(
            "--path wifi:rate=20mbit,rtt=25ms,loss=1% --path cell:rate=8mbit,rtt=90ms,loss=0.5% \
             --workload bulk:20s --schedulers minrtt --rcvbuf 128KiB --cc {cc}"
        );
        let windows = watched(&line);
        let losses = windows.causes.iter().filter(|it| **it == WindowCause::Loss).count();
        assert!(windows.acks > 4_000 && losses > 20, "{cc}: {} {losses}", windows.acks);
        assert_eq!(windows.unexplained, [], "{cc}");
        let foreign =
            |cause: &&WindowCause| matches!(cause, WindowCause::Effect | WindowCause::Set);
        assert_eq!(windows.causes.iter().filter(foreign).count(), 0, "{cc}");
        // With the same small buffer, the decorator does change other windows.
        let penalised = watched(&line.replace("minrtt", "minrtt+rp"));
        assert!(penalised.causes.contains(&WindowCause::Effect), "{cc}");
    }
}

/// ecf-u9, the part on windows. An idle period longer than a timeout reduces the window by the
/// configured rule, and each such period is one reset. (The pausing client is a workload.)
#[test]
fn ecf_u9_each_idle_time_that_lowers_the_window_is_one_reset() {
    for (mode, resets) in [("linux", 9), ("rfc5681", 9), ("off", 0)] {
        let line = format!(
            "--path wifi:rate=50mbit,rtt=20ms,queue=inf --cc reno \
             --workload stream:500kB@2s,for=20s --schedulers minrtt --idle-restart {mode}"
        );
        let mut windows = Windows::default();
        let cell = plait_lab::cells(&scenario(&line)).remove(0);
        let outcome = plait_lab::simulate(&cell, 1, &mut windows);
        assert_eq!(outcome.pairs[0][0].measures.idle_resets, Some(resets), "{mode}");
        assert_eq!(windows.resets.len() as u64, resets, "{mode}");
        for (before, after) in windows.resets {
            assert!(before > after && after == 10 * 1448, "{mode}: {before} to {after}");
        }
    }
}

fn way(mbit: u64, rtt_ms: u64) -> PathProperties {
    PathProperties { rate: Rate::from_bps(mbit * 1_000_000), rtt: Span::from_millis(rtt_ms) }
}

/// csws-u2: twice the sum of the rates times the longest round trip. Rates are up to 100 Mbit/s,
/// round trips up to 50 ms or 400 ms.
#[test]
fn csws_u2_the_recommended_buffer() {
    assert_eq!(buffers::recommended(&[way(25, 20), way(5, 130)]), 975_000);
    assert_eq!(buffers::recommended(&[way(100, 50), way(100, 0)]), 2_500_000);
    assert_eq!(buffers::recommended(&[way(100, 400), way(100, 0)]), 20_000_000);
}

/// stms-u1 to stms-u4: 30 Mbit/s each, 20 and 200 ms.
#[test]
fn stms_u1_to_u4_buffers_of_the_running_example() {
    let (fast, slow) = (way(30, 20), way(30, 200));
    let default = buffers::in_order(&[fast, slow]);
    assert_eq!(default, 1_500_000, "stms-u1");
    let gap = buffers::gap(fast, slow);
    assert_eq!((gap, gap / 1500), (337_500, 225), "stms-u2");
    assert!((gap as f64 / 1448.0 - 233.08).abs() < 0.005, "stms-u2");
    let stms = buffers::out_of_order(fast, slow);
    assert_eq!(stms, 825_000, "stms-u3");
    // (10 + 100) / 200 ms.
    assert_eq!(stms * 200, default * 110, "stms-u3");
    let fallback = buffers::fallback(fast, slow);
    assert_eq!(fallback, 412_500, "stms-u4");
    assert_eq!(fallback * (30 + 30), stms * 30, "stms-u4");
}

/// stms-u5 and stms-u7, also for other rates and round trips.
#[test]
fn stms_u5_what_is_in_flight_and_the_gap_fill_the_buffer() {
    for (fast, slow) in [(30, 30), (40, 8), (8, 40), (100, 2)] {
        for (rtt_fast, rtt_slow) in [(20, 200), (10, 30), (40, 40), (6, 400)] {
            let (fast, slow) = (way(fast, rtt_fast), way(slow, rtt_slow));
            let back = Span::from_micros((rtt_fast + rtt_slow) * 500);
            let held = fast.bdp() + slow.rate.bytes_in(back) + buffers::gap(fast, slow);
            assert_eq!(held, buffers::out_of_order(fast, slow), "stms-u5");
        }
    }
    let same = way(30, 20);
    assert_eq!(buffers::gap(same, same), 0, "stms-u7");
    assert_eq!(buffers::in_order(&[same, same]), 150_000, "stms-u7");
    assert_eq!(buffers::out_of_order(same, same), 150_000, "stms-u7");
}

/// stms-u6: with three times the round trip, the gap is one window of the fast path.
#[test]
fn stms_u6_three_times_the_round_trip() {
    for (mbit, rtt) in [(30, 20), (7, 90)] {
        let fast = way(mbit, rtt);
        assert_eq!(buffers::gap(fast, way(12, 3 * rtt)), fast.bdp());
    }
}

/// stms-u10: queues of 8, 50 and 500 ms at 30 Mbit/s, as `queue=` takes them.
#[test]
fn stms_u10_queues_in_time_and_in_bytes() {
    let rate = Rate::from_bps(30_000_000);
    let bytes = [8, 50, 500].map(|ms| rate.bytes_in(Span::from_millis(ms)));
    assert_eq!(bytes, [30_000, 187_500, 1_875_000]);
}

/// stms-u13: the gap after the fast round trip decreased to 5 ms, and after the slow one decreased to 100 ms.
#[test]
fn stms_u13_the_gap_follows_the_round_trips() {
    let packets = |fast, slow| buffers::gap(way(30, fast), way(30, slow)) as f64 / 1500.0;
    assert_eq!([packets(20, 200), packets(5, 200), packets(20, 100)], [225.0, 243.75, 100.0]);
}
