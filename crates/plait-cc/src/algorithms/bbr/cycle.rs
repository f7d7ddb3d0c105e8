//! The states, and the transitions between them.

use super::Bbr;
use super::model::{Bounds, INFINITE};
use super::rules::{Gains, Share};
use crate::{RateSample, RateWindow};
use plait_base::{Span, Time};

/// A state of the draft (draft-ietf-ccwg-bbr section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Phase {
    /// Returns true in the four states of ProbeBW.
    pub(super) fn is_probe_bandwidth(self) -> bool {
        matches!(self, Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up)
    }

    /// Returns true while it looks for more bandwidth.
    pub(super) fn probes(self) -> bool {
        matches!(self, Phase::Startup | Phase::Refill | Phase::Up)
    }

    pub(super) fn pacing_gain(self, gains: &Gains) -> Share {
        match self {
            Phase::Startup => gains.startup,
            Phase::Drain => gains.drain,
            Phase::Down => gains.down,
            Phase::Up => gains.up,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt => Share::ONE,
        }
    }

    pub(super) fn cwnd_gain(self, gains: &Gains) -> Share {
        match self {
            Phase::Up => gains.up_cwnd,
            Phase::ProbeRtt => gains.probe_rtt,
            _ => gains.cwnd,
        }
    }
}

/// What acknowledgements say about a probe for bandwidth (section 2.14).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Feedback {
    #[default]
    None,
    Refilling,
    Starting,
    Samples,
    Stopping,
}

/// The cycle of ProbeBW.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Cycle {
    feedback: Feedback,
    /// Samples come from a probe for bandwidth.
    pub(super) is_sampled: bool,
    /// Bytes acknowledged since `inflight_longterm` grew, and bytes for a segment of growth.
    acked: u64,
    acked_per_segment: u64,
    /// Round trips of growth.
    growth_rounds: u32,
    /// Round trips since the last probe.
    pub(super) rounds: u64,
    wait: Span,
    since: Time,
    /// The last probe had too many losses, or was ended before it could have.
    was_too_much: bool,
    was_cautious: bool,
}

/// Time in ProbeRTT (section 5.3.4).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct ProbeRtt {
    /// Ends no earlier; set once little enough is in flight.
    done_at: Option<Time>,
    round_done: bool,
}

/// State from before a recovery (section 5.5.11).
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The state that losses ended.
    pub(super) phase: Option<Phase>,
    bounds: Bounds,
}

impl Undo {
    /// Nothing was reduced.
    pub(super) const NOTHING: Undo = Undo {
        phase: None,
        bounds: Bounds { bandwidth_shortterm: 0, inflight_shortterm: 0, inflight_longterm: 0 },
    };
}

impl Bbr {
    /// `CheckStartupDone` and `CheckDrainDone` of the draft.
    pub(super) fn check_start(&mut self, sample: &RateSample, window: &RateWindow) {
        self.check_startup_loss(sample);
        if self.phase == Phase::Startup && self.full_pipe.reached {
            self.phase = Phase::Drain;
            self.rounds.drain = self.rounds.count;
        }
        let late = self.rounds.count > self.rounds.drain + self.rules.periods.drain_rounds;
        if self.phase == Phase::Drain
            && (late || sample.inflight <= self.wanted_inflight(self.bandwidth, window))
        {
            self.start_down(sample.now);
        }
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, sample: &RateSample, window: &RateWindow) {
        if !self.full_pipe.reached || self.adapt_longterm(sample, window) {
            return;
        }
        if self.phase == Phase::Up && self.must_go_down(sample, window) {
            self.cycle.was_too_much = false;
            self.start_down(sample.now);
            return;
        }
        match self.phase {
            Phase::Down | Phase::Cruise if self.must_probe(sample.now, window) => {
                self.start_refill();
            }
            Phase::Down if self.may_cruise(sample, window) => self.phase = Phase::Cruise,
            Phase::Refill if self.rounds.starts => {
                self.cycle.is_sampled = true;
                self.start_up(sample, window);
            }
            _ => {}
        }
    }

    fn start_down(&mut self, now: Time) {
        self.reset_congestion();
        let cycle = &mut self.cycle;
        cycle.acked_per_segment = INFINITE;
        // PickProbeWait
        cycle.rounds = self.random.below(2);
        let spread = self.rules.periods.probe_spread.as_nanos();
        let more = Span::from_nanos(self.random.below(spread.max(1)));
        cycle.wait = self.rules.periods.probe_wait + more;
        cycle.since = now;
        cycle.feedback = Feedback::Stopping;
        self.rounds.restart();
        self.phase = Phase::Down;
    }

    fn start_refill(&mut self) {
        self.bounds.reset_shortterm();
        let cycle = &mut self.cycle;
        (cycle.growth_rounds, cycle.acked) = (0, 0);
        cycle.was_cautious = false;
        cycle.feedback = Feedback::Refilling;
        self.rounds.restart();
        self.phase = Phase::Refill;
    }

    fn start_up(&mut self, sample: &RateSample, window: &RateWindow) {
        self.cycle.feedback = Feedback::Starting;
        self.rounds.restart();
        self.full_pipe.reset(sample.rate);
        self.phase = Phase::Up;
        self.raise_slope(window);
    }

    /// `IsTimeToProbeBW`.
    fn must_probe(&self, now: Time, window: &RateWindow) -> bool {
        let target = self.target_inflight(window) / window.mss.max(1);
        let rounds = target.min(self.rules.periods.reno_rounds);
        now > self.cycle.since + self.cycle.wait || self.cycle.rounds >= rounds
    }

    /// `TargetInflight`.
    fn target_inflight(&self, window: &RateWindow) -> u64 {
        self.bdp().unwrap_or(window.initial).min(window.cwnd)
    }

    /// `IsTimeToCruise`.
    fn may_cruise(&self, sample: &RateSample, window: &RateWindow) -> bool {
        let estimate = self.wanted_inflight(self.max_bandwidth.value(), window);
        sample.inflight <= self.with_headroom(window) && sample.inflight <= estimate
    }

    /// `IsTimeToGoDown`.
    fn must_go_down(&mut self, sample: &RateSample, window: &RateWindow) -> bool {
        let limit = self.bounds.inflight_longterm;
        if self.cycle.was_too_much && sample.inflight >= limit {
            self.cycle.was_cautious = true;
            return true;
        }
        if sample.cwnd_limited && window.cwnd >= limit {
            // The bound limits the rate, so its plateau shows nothing.
            self.full_pipe.reset(sample.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// `InflightWithHeadroom`.
    pub(super) fn with_headroom(&self, window: &RateWindow) -> u64 {
        let limit = self.bounds.inflight_longterm;
        if limit == INFINITE {
            return INFINITE;
        }
        let headroom = self.rules.headroom.of(limit).max(window.mss);
        limit.saturating_sub(headroom).max(self.least_cwnd(window))
    }

    /// `RaiseInflightLongtermSlope`: growth by 1, 2, 4, ... segments in successive round trips.
    fn raise_slope(&mut self, window: &RateWindow) {
        let growth = 1_u64 << self.cycle.growth_rounds;
        self.cycle.growth_rounds = (self.cycle.growth_rounds + 1).min(30);
        self.cycle.acked_per_segment = (window.cwnd / growth).max(window.mss).max(1);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, sample: &RateSample, window: &RateWindow) {
        if !sample.cwnd_limited || window.cwnd < self.bounds.inflight_longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.acked = cycle.acked.saturating_add(sample.acked);
        let segments = cycle.acked / cycle.acked_per_segment.max(1);
        cycle.acked -= segments * cycle.acked_per_segment;
        let limit = self.bounds.inflight_longterm;
        self.bounds.inflight_longterm = limit.saturating_add(segments.saturating_mul(window.mss));
        if self.rounds.starts {
            self.raise_slope(window);
        }
    }

    /// `AdaptLongTermModel`. Returns true if the state has changed.
    fn adapt_longterm(&mut self, sample: &RateSample, window: &RateWindow) -> bool {
        let probes = self.phase.is_probe_bandwidth();
        match self.cycle.feedback {
            Feedback::Starting if self.rounds.starts => self.cycle.feedback = Feedback::Samples,
            Feedback::Stopping if self.rounds.starts => {
                self.cycle.is_sampled = false;
                self.cycle.feedback = Feedback::None;
                if probes && !sample.app_limited {
                    self.max_bandwidth.advance();
                }
                if probes && self.cycle.was_cautious && !self.cycle.was_too_much {
                    self.start_refill();
                    return true;
                }
            }
            _ => {}
        }
        if !self.too_much_in(sample) && self.bounds.inflight_longterm != INFINITE {
            let limit = self.bounds.inflight_longterm;
            self.bounds.inflight_longterm = limit.max(sample.sent_inflight);
            if self.phase == Phase::Up {
                self.probe_upward(sample, window);
            }
        }
        false
    }

    /// `HandleInflightTooHigh`, with the bytes in flight that were safe, and whether the sender had too
    /// little to send.
    pub(super) fn on_too_much(
        &mut self,
        now: Time,
        (safe, app_limited): (u64, bool),
        window: &RateWindow,
    ) {
        self.cycle.was_too_much = true;
        self.cycle.is_sampled = false;
        if !app_limited {
            let least = self.rules.beta.of(self.target_inflight(window));
            self.bounds.inflight_longterm = safe.max(least);
        }
        if self.phase == Phase::Up {
            self.undo.phase = Some(Phase::Up);
            self.start_down(now);
        }
    }

    /// `CheckProbeRTT`. Returns true while samples show less than the path could deliver.
    pub(super) fn check_probe_rtt(&mut self, sample: &RateSample, window: &mut RateWindow) -> bool {
        if self.phase != Phase::ProbeRtt && self.rtt.expired && !self.rounds.is_restart {
            self.phase = Phase::ProbeRtt;
            self.save_cwnd(window);
            self.probe_rtt = ProbeRtt::default();
            self.cycle.feedback = Feedback::Stopping;
            self.rounds.restart();
        }
        let low = self.phase == Phase::ProbeRtt;
        if low {
            self.continue_probe_rtt(sample, window);
        }
        if sample.delivered() > 0 {
            self.rounds.is_restart = false;
        }
        low
    }

    /// `HandleProbeRTT`.
    fn continue_probe_rtt(&mut self, sample: &RateSample, window: &mut RateWindow) {
        if self.probe_rtt.done_at.is_some() {
            self.probe_rtt.round_done |= self.rounds.starts;
            if self.probe_rtt.round_done {
                self.end_probe_rtt(sample.now, window);
            }
        } else if sample.inflight <= self.probe_rtt_cwnd(window) {
            let done_at = Some(sample.now + self.rules.periods.probe_rtt_time);
            self.probe_rtt = ProbeRtt { done_at, round_done: false };
            self.rounds.restart();
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    pub(super) fn end_probe_rtt(&mut self, now: Time, window: &mut RateWindow) {
        if self.probe_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.rtt.renew(now);
        self.restore_cwnd(window);
        self.bounds.reset_shortterm();
        if self.full_pipe.reached {
            self.start_down(now);
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }

    /// `SaveStateUponLoss`.
    pub(super) fn save_before_loss(&mut self, window: &RateWindow) {
        self.save_cwnd(window);
        self.undo = Undo { phase: None, bounds: self.bounds };
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn undo_loss(&mut self, window: &mut RateWindow) {
        self.restore_cwnd(window);
        self.forget_losses();
        self.full_pipe.reset(0);
        self.bounds = self.bounds.larger(self.undo.bounds);
        match self.undo.phase.take() {
            Some(Phase::Startup) if self.phase != Phase::Startup => {
                self.full_pipe.reached = false;
                if self.phase != Phase::ProbeRtt {
                    self.phase = Phase::Startup;
                }
            }
            Some(Phase::Up) if !matches!(self.phase, Phase::Up | Phase::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }
}
