//! Claims of "Experimental Evaluation of Multipath TCP Schedulers" (CSWS 2014) about loads limited
//! by the application and about penalties. `claims.rs` and `rules.rs` test others. The loop of its
//! framework is in `plait-sim/tests/claims_csws.rs`.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model::{MSS, Model, path};
use plait_base::{DataRange, Dsn, SubflowId};
use plait_sched::{Decision, Effect, Outcome, Spec, What};
use proptest::prelude::*;

/// Returns the subflow and length of each segment. Blocks are written one by one to idle subflows
/// with open windows.
fn blocks(spec: &str, mss: u32, block: u64, windows: [u64; 2], count: u64) -> Vec<(u8, u64)> {
    let mut paths =
        [(0, 10, windows[0]), (1, 30, windows[1])].map(|(id, rtt, cwnd)| path(id, rtt, cwnd));
    for it in &mut paths {
        (it.mss, it.cwnd) = (mss, it.cwnd / MSS * u64::from(mss));
    }
    let mut model = Model::new(paths.to_vec(), 0);
    model.connection.mss = mss;
    let (mut scheduler, mut out) = (Spec::parse(spec).unwrap().build(), Outcome::default());
    let mut sent = Vec::new();
    for at in 0..count {
        model.queue.unsent.insert(DataRange::with_len(Dsn::new(at * block), block));
        model.connection.unsent = block;
        while model.connection.unsent > 0 {
            let decision = model.ask(&mut *scheduler, &mut out);
            let (id, range) = model.apply(decision, &[]).unwrap();
            sent.push((id.0, range.len()));
        }
        for it in &mut model.subflows {
            it.inflight = 0;
        }
    }
    sent
}

/// csws-u7: six segments per block. The last one is short and on the second subflow, and each
/// subflow sends half of the segments.
#[test]
fn csws_u7_round_robin_splits_segments_in_halves() {
    for (mss, shares) in [(1448, [0.530, 0.470]), (1428, [0.523, 0.477])] {
        let sent = blocks("roundrobin", mss, 8 << 10, [20, 20], 50);
        let short: Vec<&(u8, u64)> = sent.iter().skip(5).step_by(6).collect();
        assert_eq!((sent.len(), short.len()), (300, 50));
        assert!(short.iter().all(|(id, len)| *id == 1 && *len == (8 << 10) - 5 * u64::from(mss)));
        for (id, share) in shares.into_iter().enumerate() {
            let own = sent.iter().filter(|(on, _)| usize::from(*on) == id);
            assert_eq!(own.clone().count(), 150);
            let bytes: u64 = own.map(|(_, len)| len).sum();
            let exact = bytes as f64 / f64::from(50 * (8 << 10));
            assert_eq!((exact * 1e3).round() / 1e3, share, "{mss} {id}");
        }
    }
}

proptest! {
    /// csws-u7: the shares differ by at most one segment for any block. minrtt leaves the first
    /// subflow only for data beyond its window.
    #[test]
    fn csws_u7_segments_of_any_block(block in 1..60_000_u64, count in 1..20_u64, cwnd in 1..60_u64) {
        let sent = blocks("roundrobin", 1448, block, [60, 60], count);
        let on = |id| sent.iter().filter(|(on, _)| *on == id).count();
        prop_assert!(on(0).abs_diff(on(1)) <= 1);
        let sent = blocks("minrtt", 1448, block, [cwnd, 60], count);
        let fits = block <= cwnd * 1448;
        prop_assert_eq!(sent.iter().all(|(id, _)| *id == 0), fits);
    }
}

/// csws-u6: the holder's window is halved once per RTT of the free subflow, even if the window
/// stalls several times.
#[test]
fn csws_u6_a_penalty_halves_the_window_once_per_round_trip() {
    let (free, holder) = (path(0, 10, 20), path(1, 100, 64));
    let mut model = Model::new(vec![free, holder], 11 * MSS);
    for at in 0..10 {
        model.queue.record(DataRange::with_len(Dsn::new(at * MSS), MSS), SubflowId(1));
    }
    model.connection.unsent = MSS;
    (model.connection.snd_nxt, model.connection.wnd_end) = (Dsn::new(10 * MSS), Dsn::new(10 * MSS));
    for strict in [true, false] {
        let mut model = model.clone();
        let mut scheduler = Spec::parse(&format!("minrtt+rp:strict={strict}")).unwrap().build();
        let (mut out, mut windows) = (Outcome::default(), Vec::new());
        for _ in 0..35 {
            model.ask(&mut *scheduler, &mut out);
            assert!(out.effects.iter().all(|it| matches!(it, Effect::Penalise { .. })));
            model.apply_effects(&out.effects);
            windows.push(model.subflows[1].cwnd / MSS);
            model.now += plait_base::Span::from_millis(1);
        }
        let wanted = [[32; 10], [16; 10], [8; 10]].concat();
        assert_eq!(windows[..30], wanted, "{strict}");
        assert_eq!(windows[30..], [4; 5], "{strict}");
        assert_eq!(model.subflows[0].cwnd, 20 * MSS);
    }
}

/// csws-u6: the kernel counts windows in segments, so 9 become 4. A window of 4 allows a
/// retransmission although the free subflow is not four times as fast.
#[test]
fn csws_u6_half_of_nine_segments_is_four() {
    for (segments, half) in [(9, 4), (8, 4), (11, 5), (3, 1), (1, 1)] {
        let (free, holder) = (path(0, 50, 20), path(1, 60, segments));
        let mut model = Model::new(vec![free, holder], 11 * MSS);
        for at in 0..10 {
            model.queue.record(DataRange::with_len(Dsn::new(at * MSS), MSS), SubflowId(1));
        }
        model.connection.unsent = MSS;
        (model.connection.snd_nxt, model.connection.wnd_end) =
            (Dsn::new(10 * MSS), Dsn::new(10 * MSS));
        let mut out = Outcome::default();
        let decision = model.ask(&mut *Spec::parse("minrtt+rp").unwrap().build(), &mut out);
        let cut = out.effects.iter().find_map(|effect| match effect {
            Effect::Penalise { cwnd, .. } => Some(*cwnd),
            Effect::Cap { .. } => None,
        });
        assert_eq!(cut, Some(half * MSS), "{segments}");
        let resent = matches!(decision, Decision::Send { what: What::OppRetx(_), .. });
        assert_eq!(resent, half <= 4, "{segments}");
    }
}
