//! Pacing rate, send quantum and congestion window.

use super::model::INFINITE;
use super::rules::Share;
use super::{Bbr, Phase};
use crate::{RateSample, RateWindow};
use plait_base::Span;

/// Assumed RTT before the first sample (draft-ietf-ccwg-bbr section 5.6.2).
const UNKNOWN_RTT: Span = Span::from_millis(1);

/// The results, and the window to return to.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Output {
    /// Pacing rate in bytes per second.
    pub(super) rate: u64,
    /// The rate is from an RTT sample.
    knows_rtt: bool,
    /// Bytes that may leave at once.
    pub(super) quantum: u64,
    /// The largest window outside recovery and ProbeRTT.
    pub(super) prior_cwnd: u64,
    /// A recovery is in progress.
    pub(super) in_recovery: bool,
}

impl Bbr {
    /// `InitPacingRate`, again when the first RTT is known.
    pub(super) fn init_rate(&mut self, srtt: Option<Span>, window: &RateWindow) {
        if self.output.knows_rtt || self.output.rate > 0 && srtt.is_none() {
            return;
        }
        let nanos = srtt.unwrap_or(UNKNOWN_RTT).as_nanos().max(1);
        let rate = u128::from(window.initial) * 1_000_000_000 / u128::from(nanos);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        self.output.rate = self.rules.gains.startup.of(rate).max(1);
        self.output.knows_rtt = srtt.is_some();
        self.set_quantum(window);
    }

    /// `SetPacingRateWithGain`.
    pub(super) fn set_rate(&mut self, gain: Share) {
        let rate = self.rules.gains.paced.of(gain.of(self.bandwidth)).max(1);
        if self.full_pipe.reached || rate > self.output.rate {
            self.output.rate = rate;
        }
    }

    /// `SetSendQuantum`.
    pub(super) fn set_quantum(&mut self, window: &RateWindow) {
        let sizes = &self.rules.sizes;
        let quantum = super::model::volume(self.output.rate, sizes.quantum_time);
        let least = sizes.min_quantum.saturating_mul(window.mss);
        self.output.quantum = quantum.min(sizes.max_quantum).max(least).max(1);
    }

    /// Returns the least window (`MinPipeCwnd`).
    pub(super) fn least_cwnd(&self, window: &RateWindow) -> u64 {
        self.rules.sizes.min_cwnd.saturating_mul(window.mss)
    }

    /// `QuantizationBudget`.
    fn with_budget(&self, inflight: u64, window: &RateWindow) -> u64 {
        let budget = self.output.quantum.saturating_mul(self.rules.sizes.budget);
        let inflight = inflight.max(budget).max(self.least_cwnd(window));
        match self.phase {
            Phase::Up => inflight.saturating_add(window.mss.saturating_mul(2)),
            _ => inflight,
        }
    }

    /// `Inflight(1.0)`: the bytes in flight that fill the path at `rate`, without a queue.
    pub(super) fn wanted_inflight(&self, rate: u64, window: &RateWindow) -> u64 {
        let bdp = self.rtt.value.map_or(window.initial, |rtt| super::model::volume(rate, rtt));
        self.with_budget(bdp, window)
    }

    /// `UpdateMaxInflight`.
    fn max_inflight(&self, window: &RateWindow) -> u64 {
        let gain = self.phase.cwnd_gain(&self.rules.gains);
        let bdp = self.bdp().map_or(window.initial, |bdp| gain.of(bdp));
        self.with_budget(bdp.saturating_add(self.aggregation.extra()), window)
    }

    /// `SetCwnd`.
    pub(super) fn set_cwnd(&mut self, sample: &RateSample, window: &mut RateWindow) {
        let most = self.max_inflight(window);
        let grown = window.cwnd.saturating_add(sample.acked);
        if self.full_pipe.reached {
            window.cwnd = grown.min(most);
        } else if window.cwnd < most || sample.total < window.initial {
            window.cwnd = grown;
        }
        window.cwnd = window.cwnd.max(self.least_cwnd(window));
        if self.phase == Phase::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd(window));
        }
        // BoundCwndForModel
        let cap = match self.phase {
            Phase::Cruise | Phase::ProbeRtt => self.with_headroom(window),
            Phase::Down | Phase::Refill | Phase::Up => self.bounds.inflight_longterm,
            Phase::Startup | Phase::Drain => INFINITE,
        };
        let cap = cap.min(self.bounds.inflight_shortterm).max(self.least_cwnd(window));
        window.cwnd = window.cwnd.min(cap);
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_cwnd(&self, window: &RateWindow) -> u64 {
        let gain = self.rules.gains.probe_rtt;
        self.bdp().map_or(window.initial, |bdp| gain.of(bdp)).max(self.least_cwnd(window))
    }

    /// `SaveCwnd`.
    pub(super) fn save_cwnd(&mut self, window: &RateWindow) {
        let output = &mut self.output;
        output.prior_cwnd = match output.in_recovery || self.phase == Phase::ProbeRtt {
            true => output.prior_cwnd.max(window.cwnd),
            false => window.cwnd,
        };
    }

    /// `RestoreCwnd`.
    pub(super) fn restore_cwnd(&self, window: &mut RateWindow) {
        window.cwnd = window.cwnd.max(self.output.prior_cwnd);
    }
}
