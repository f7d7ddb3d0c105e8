//! Rules against a second, plain writing of them, on random states: the tests share no code with
//! the schedulers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod model;

use model::{MSS, Model, subflow};
use plait_base::{Span, SubflowId};
use plait_sched::{CaState, Decision, Outcome, Reason, Scheduler, Spec, SubflowView};
use proptest::prelude::*;

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

prop_compose! {
    /// A subflow as a connection may have it: windows in segments, at times not whole ones.
    fn any_subflow()(
        rtt_us in prop_oneof![Just(0_u64), 1_000..400_000_u64, prop::sample::select(vec![10_000, 20_000, 100_000])],
        (cwnd, inflight, queued) in (0..60 * MSS, 0..60_u64, prop_oneof![3 => Just(0_u64), 1 => 0..20_u64]),
        whole in any::<bool>(),
        ssthresh in prop::option::of(1..80_u64),
        (open, joined, pf, backup, tsq) in (
            prop::bool::weighted(0.95), prop::bool::weighted(0.95), prop::bool::weighted(0.05),
            prop::bool::weighted(0.2), prop::bool::weighted(0.1),
        ),
        ca in prop::sample::select(vec![
            CaState::Open, CaState::Open, CaState::Open, CaState::Disorder, CaState::Recovery, CaState::Loss,
        ]),
        rttvar_us in 0..50_000_u64,
    ) -> SubflowView {
        let cwnd = if whole { cwnd / MSS * MSS } else { cwnd };
        SubflowView {
            open, joined, pf, backup, ca,
            tsq_blocked: tsq,
            srtt: (rtt_us > 0).then(|| Span::from_micros(rtt_us)),
            rttvar: Span::from_micros(rttvar_us),
            ssthresh: ssthresh.map(|it| it * MSS),
            inflight: (inflight * MSS).min(cwnd + MSS),
            queued: queued * MSS,
            ..subflow(0, Span::ZERO, cwnd)
        }
    }
}

fn any_model() -> impl Strategy<Value = Model> {
    let subflows = prop::collection::vec(any_subflow(), 2..5);
    let window = prop_oneof![3 => Just(u64::MAX), 1 => 0..40 * MSS];
    (subflows, 1..400_u64, window, any::<bool>()).prop_map(|(mut subflows, unsent, window, tsq)| {
        for (subflow, id) in subflows.iter_mut().zip(0..) {
            subflow.id = SubflowId(id);
        }
        let mut model = Model::new(subflows, unsent * MSS);
        model.connection.wnd_end = window;
        model.tsq = tsq;
        model
    })
}

/// Section 1.4 of the scheduler notes, once more.
mod rule {
    use super::*;

    pub(super) fn alive(s: &SubflowView) -> bool {
        s.open && s.joined && !s.pf && s.ca != CaState::Loss
    }

    pub(super) fn candidates(model: &Model) -> Vec<SubflowView> {
        let alive: Vec<SubflowView> = model.subflows.iter().copied().filter(alive).collect();
        let regular: Vec<SubflowView> = alive.iter().copied().filter(|s| !s.backup).collect();
        if regular.is_empty() { alive } else { regular }
    }

    pub(super) fn usable(model: &Model, s: &SubflowView) -> bool {
        alive(s) && s.inflight + s.queued + MSS <= s.cwnd && !(model.tsq && s.tsq_blocked)
    }

    /// Smoothed RTT in ns; no sample is slowest.
    pub(super) fn srtt(s: &SubflowView) -> u64 {
        s.srtt.map_or(u64::MAX, Span::as_nanos)
    }
}

/// What a rule that sends new data from the front must say: the subflow, or none for a wait; and
/// where there is one but the window is closed, a wait for that.
fn expect_front(model: &Model, decision: Decision, chosen: Option<SubflowId>) {
    let closed = model.connection.wnd_end < MSS;
    match (decision, chosen) {
        (Decision::Send { subflow, .. }, Some(wanted)) => {
            assert!(subflow == wanted && !closed, "{decision:?}, wanted {wanted}");
        }
        (Decision::Wait { on, reason: Reason::SendWindow }, Some(wanted)) => {
            assert!(on == Some(wanted) && closed, "{decision:?}, wanted {wanted}");
        }
        (Decision::Wait { .. }, None) => {}
        _ => panic!("{decision:?}, wanted {chosen:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn strict_takes_the_first_that_has_room(model in any_model()) {
        let chosen = rule::candidates(&model).into_iter().find(|s| rule::usable(&model, s));
        let decision = model.ask(&mut *build("strict"), &mut Outcome::default());
        expect_front(&model, decision, chosen.map(|s| s.id));
    }

    #[test]
    fn rtt_threshold_leaves_what_is_above_idle(model in any_model(), threshold in 0..300_u64) {
        let candidates = rule::candidates(&model);
        let limit = threshold * 1_000_000;
        let mut low: Vec<SubflowView> =
            candidates.iter().copied().filter(|s| rule::srtt(s) < limit).collect();
        if low.is_empty() {
            let mut sorted = candidates;
            sorted.sort_by_key(|s| (rule::srtt(s), s.id));
            low = sorted.into_iter().take(1).collect();
        }
        let chosen = low.into_iter().find(|s| rule::usable(&model, s));
        let spec = format!("rtt-threshold:threshold={threshold}");
        let decision = model.ask(&mut *build(&spec), &mut Outcome::default());
        expect_front(&model, decision, chosen.map(|s| s.id));
    }
}
