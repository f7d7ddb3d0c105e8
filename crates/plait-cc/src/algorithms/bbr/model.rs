//! The model of the path: round trips, bandwidth, losses and the aggregation of acknowledgements.

use super::filter::WindowedMax;
use super::{Bbr, Phase};
use crate::{LostSegment, RateSample, RateWindow};
use plait_base::{Span, Time};

/// A bound that is not set.
pub(super) const INFINITE: u64 = u64::MAX;

/// Round trips, counted by delivered bytes (draft-ietf-ccwg-bbr section 5.5.1).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RoundTrips {
    /// Bytes delivered so far.
    pub(super) delivered: u64,
    /// The round trip ends when data is delivered that was sent after this many bytes were.
    next: u64,
    pub(super) count: u64,
    /// True for the first acknowledgement of a round trip.
    pub(super) starts: bool,
    /// Number of the round trip in which Drain began.
    pub(super) drain: u64,
    /// True after an idle time, until data is delivered.
    pub(super) is_restart: bool,
}

impl RoundTrips {
    /// Lets a new round trip begin now.
    pub(super) fn restart(&mut self) {
        self.next = self.delivered;
    }

    fn update(&mut self, sample: &RateSample) {
        self.starts = sample.prior_total >= self.next;
        if self.starts {
            self.restart();
            self.count += 1;
        }
    }
}

/// The delivery of the last round trip, and its losses (sections 2.10 and 5.5.10.3).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Congestion {
    /// The round trip of losses ends when data is delivered that was sent after this many bytes were.
    round_end: u64,
    round_starts: bool,
    is_lossy: bool,
    /// Largest delivery rate and delivered volume.
    bandwidth: u64,
    volume: u64,
    /// Separate ranges that were lost.
    ranges: u64,
    /// Bytes that were delivered when fast recovery began, while it lasts.
    recovery: Option<u64>,
}

/// Bounds after losses; [`INFINITE`] if they are not set. The short-term ones last until the next probe for
/// bandwidth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    pub(super) bandwidth_shortterm: u64,
    pub(super) inflight_shortterm: u64,
    pub(super) inflight_longterm: u64,
}

impl Bounds {
    pub(super) const NONE: Bounds = Bounds {
        bandwidth_shortterm: INFINITE,
        inflight_shortterm: INFINITE,
        inflight_longterm: INFINITE,
    };

    pub(super) fn reset_shortterm(&mut self) {
        (self.bandwidth_shortterm, self.inflight_shortterm) = (INFINITE, INFINITE);
    }

    /// Returns the larger of each pair of bounds.
    pub(super) fn larger(self, other: Bounds) -> Bounds {
        Bounds {
            bandwidth_shortterm: self.bandwidth_shortterm.max(other.bandwidth_shortterm),
            inflight_shortterm: self.inflight_shortterm.max(other.inflight_shortterm),
            inflight_longterm: self.inflight_longterm.max(other.inflight_longterm),
        }
    }
}

/// The detector of a bandwidth that no longer grows (section 5.3.1.2).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct FullPipe {
    /// True once the bandwidth was reached.
    pub(super) reached: bool,
    /// The same, since the detector was reset.
    pub(super) now: bool,
    rate: u64,
    rounds: u64,
}

impl FullPipe {
    /// Looks anew for growth beyond `rate`.
    pub(super) fn reset(&mut self, rate: u64) {
        *self = FullPipe { reached: self.reached, now: false, rate, rounds: 0 };
    }

    pub(super) fn found(&mut self) {
        (self.reached, self.now) = (true, true);
    }
}

/// Acknowledgements that arrive together (section 5.5.9).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Aggregation {
    pub(super) since: Time,
    delivered: u64,
    largest: WindowedMax,
}

impl Aggregation {
    pub(super) fn extra(self) -> u64 {
        self.largest.value()
    }
}

/// Returns the bytes of `rate` bytes per second in `time`.
pub(super) fn volume(rate: u64, time: Span) -> u64 {
    let bytes = u128::from(rate) * u128::from(time.as_nanos()) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl Bbr {
    /// Returns true if so many of the bytes in flight were lost that there was too much in flight.
    fn is_too_much(&self, lost: u64, inflight: u64, sack: bool) -> bool {
        lost > self.rules.loss.of(inflight) || lost > 0 && !sack
    }

    pub(super) fn too_much_in(&self, sample: &RateSample) -> bool {
        self.is_too_much(sample.lost, sample.sent_inflight, sample.sack)
    }

    /// `UpdateLatestDeliverySignals` of the draft.
    pub(super) fn update_latest(&mut self, sample: &RateSample) {
        self.rounds.delivered = sample.total;
        let congestion = &mut self.congestion;
        congestion.bandwidth = congestion.bandwidth.max(sample.rate);
        congestion.volume = congestion.volume.max(sample.delivered());
        congestion.round_starts = sample.prior_total >= congestion.round_end;
        if congestion.round_starts {
            congestion.round_end = sample.total;
        }
    }

    /// `UpdateCongestionSignals`: the largest bandwidth, and once per round trip the bounds after losses.
    pub(super) fn update_congestion(&mut self, sample: &RateSample, window: &RateWindow) {
        self.rounds.update(sample);
        if self.rounds.starts {
            self.cycle.rounds += 1;
        }
        if sample.rate > 0 && (sample.rate >= self.max_bandwidth.value() || !sample.app_limited) {
            self.max_bandwidth.add(sample.rate);
        }
        if self.congestion.round_starts {
            if self.congestion.is_lossy && !self.phase.probes() {
                self.lower_bounds(window);
            }
            self.congestion.is_lossy = false;
        }
    }

    /// `InitLowerBounds` and `LossLowerBounds`.
    fn lower_bounds(&mut self, window: &RateWindow) {
        let (beta, bounds) = (self.rules.beta, &mut self.bounds);
        if bounds.bandwidth_shortterm == INFINITE {
            bounds.bandwidth_shortterm = self.max_bandwidth.value();
        }
        if bounds.inflight_shortterm == INFINITE {
            bounds.inflight_shortterm = window.cwnd;
        }
        bounds.bandwidth_shortterm =
            self.congestion.bandwidth.max(beta.of(bounds.bandwidth_shortterm));
        bounds.inflight_shortterm = self.congestion.volume.max(beta.of(bounds.inflight_shortterm));
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest(&mut self, sample: &RateSample) {
        if self.congestion.round_starts {
            self.congestion.bandwidth = sample.rate;
            self.congestion.volume = sample.delivered();
            self.congestion.ranges = 0;
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_congestion(&mut self) {
        let congestion = &mut self.congestion;
        (congestion.is_lossy, congestion.bandwidth, congestion.volume) = (false, 0, 0);
    }

    /// `UpdateACKAggregation`.
    pub(super) fn update_aggregation(&mut self, sample: &RateSample, window: &RateWindow) {
        let aggregation = &mut self.aggregation;
        let mut expected = volume(self.bandwidth, sample.now.since(aggregation.since));
        if aggregation.delivered <= expected {
            (aggregation.delivered, aggregation.since) = (0, sample.now);
            expected = 0;
        }
        aggregation.delivered = aggregation.delivered.saturating_add(sample.acked);
        let extra = aggregation.delivered.saturating_sub(expected).min(window.cwnd);
        let rounds = if self.full_pipe.reached { self.rules.periods.extra_rounds } else { 1 };
        aggregation.largest.add(self.rounds.count, extra, rounds);
    }

    /// `CheckFullBWReached`.
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        let full = &mut self.full_pipe;
        if full.now || !self.rounds.starts || sample.app_limited {
            return;
        }
        if sample.rate >= self.rules.growth.of(full.rate) {
            full.reset(sample.rate);
            return;
        }
        full.rounds += 1;
        if full.rounds >= self.rules.periods.full_rounds {
            full.found();
        }
    }

    /// `CheckStartupHighLoss`: Startup ends if fast recovery has lasted for a round trip, and if that round
    /// trip had too many losses, in enough separate ranges.
    pub(super) fn check_startup_loss(&mut self, sample: &RateSample) {
        let Congestion { round_starts, ranges, recovery, volume, .. } = self.congestion;
        if self.phase != Phase::Startup || self.full_pipe.reached {
            return;
        }
        let Some(since) = recovery else { return };
        let many = match sample.sack {
            true => {
                let whole_round = round_starts && sample.prior_total >= since;
                whole_round && ranges >= self.rules.loss_ranges && self.too_much_in(sample)
            }
            false => ranges > 0,
        };
        if many {
            self.undo.phase = Some(Phase::Startup);
            self.full_pipe.found();
            self.bounds.inflight_longterm = self.bdp().unwrap_or(0).max(volume);
        }
    }

    /// `HandleLostPacket`.
    pub(super) fn note_lost(&mut self, lost: &LostSegment, window: &mut RateWindow) {
        self.rounds.delivered = lost.total;
        if !self.congestion.is_lossy {
            self.congestion.round_end = lost.total;
            // Unlike the pseudocode, later round trips of a recovery leave what was saved when it began.
            if !self.output.in_recovery {
                self.save_before_loss(window);
            }
        }
        self.congestion.is_lossy = true;
        self.congestion.ranges += u64::from(lost.apart);
        if !self.cycle.is_sampled || !self.is_too_much(lost.lost, lost.sent_inflight, lost.sack) {
            return;
        }
        let safe = self.inflight_at_loss(lost);
        self.on_too_much(lost.now, (safe, lost.app_limited), window);
    }

    /// `InflightAtLoss`: the bytes in flight at which the losses exceeded the limit, somewhere in `lost`.
    fn inflight_at_loss(&self, lost: &LostSegment) -> u64 {
        let before = lost.sent_inflight.saturating_sub(lost.len);
        let lost_before = lost.lost.saturating_sub(lost.len);
        let limit = self.rules.loss;
        let prefix = limit.rest().into_whole(limit.of(before).saturating_sub(lost_before));
        before.saturating_add(prefix)
    }

    /// Notes that fast recovery begins or ends.
    pub(super) fn set_recovery(&mut self, is_fast: bool) {
        self.congestion.recovery = is_fast.then_some(self.rounds.delivered);
    }

    /// Forgets the losses of this round trip.
    pub(super) fn forget_losses(&mut self) {
        self.congestion.is_lossy = false;
    }

    /// Returns the bandwidth-delay product in bytes; `None` before the first RTT.
    pub(super) fn bdp(&self) -> Option<u64> {
        Some(volume(self.bandwidth, self.rtt.value?))
    }
}
