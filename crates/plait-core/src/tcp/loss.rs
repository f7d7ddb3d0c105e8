//! Loss detection by time (RACK-TLP, RFC 8985) or by SACKs (RFC 6675), and the window during recovery (PRR, RFC 6937 and 9937).

use crate::config::{self, Config, LossDetection, ReduceFrom};
use crate::tcp::pmtu_black_hole::BlackHoleDetector;
use crate::tcp::rtt::Rtt;
use crate::tcp::send::TxRing;
use crate::tcp::send::{AckOutcome, Departure, Sent, SentState};
use crate::tcp::tail::TailProbe;
use plait_base::{SendSsn, Span, Time};
use plait_sched::CaState;

/// Rounds without a D-SACK after which the reordering window is reset (RFC 8985 section 6.2 step
/// 4).
const PERSIST_ROUNDS: u8 = 16;

/// Selectively acknowledged segments above a lost one (DupThresh, RFC 6675 section 2).
const DUPLICATE_THRESHOLD: u32 = 3;

/// Loss detection of one subflow (RACK), and the recovery rules.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    rule: LossDetection,
    /// How far the window is reduced, and how fast.
    pub(super) reduce_from: ReduceFrom,
    pub(super) prr: config::Prr,
    /// A reduction that proves spurious is undone.
    pub(super) undo: bool,
    /// The delivered segment that was sent last; a right edge is never 0.
    newest: Departure,
    /// RTT of that segment.
    rtt: Span,
    reordering_seen: bool,
    multiplier: u8,
    rounds_left: u8,
    /// D-SACKs widen the window once per round; the round ends when this is acknowledged.
    round_end: SendSsn,
    /// The tail loss probe.
    pub(crate) tail: TailProbe,
}

/// Result of a loss detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Detected {
    /// Bytes marked as lost.
    pub(crate) marked: u64,
    /// When to check again, if a segment may still become lost; else [`Time::NEVER`].
    pub(crate) again: Time,
}

impl Detected {
    const NOTHING: Detected = Detected { marked: 0, again: Time::NEVER };
}

impl Rack {
    pub(crate) const fn new(config: &Config) -> Rack {
        Rack {
            rule: config.recovery.loss_detection,
            reduce_from: config.window.reduce_from,
            prr: config.recovery.prr,
            undo: config.recovery.undo,
            newest: Departure::NONE,
            rtt: Span::ZERO,
            reordering_seen: false,
            multiplier: 1,
            rounds_left: 0,
            round_end: SendSsn::ZERO,
            tail: TailProbe::new(),
        }
    }

    /// Updates the state with the delivered segments (RFC 8985 section 6.2 steps 1 to 3). For a
    /// retransmission, `echoes` returns true unless the echoed timestamp is older than it.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        outcome: &AckOutcome,
        min_rtt: Option<Span>,
        echoes: impl FnOnce(&Sent) -> bool,
    ) {
        self.reordering_seen |= outcome.reordering;
        let Some(newest) = outcome.newest else { return };
        let rtt = now.since(newest.sent_at);
        // The acknowledgement of a retransmission may answer the original.
        let early = || min_rtt.is_some_and(|min| rtt < min);
        if newest.retransmitted && (early() || !echoes(&newest)) {
            return;
        }
        if self.newest < newest.departure() {
            self.newest = newest.departure();
            self.rtt = rtt;
        }
    }

    /// Handles a D-SACK: a retransmission was not needed.
    pub(crate) fn on_dsack(&mut self, una: SendSsn, nxt: SendSsn) {
        if una < self.round_end {
            return;
        }
        self.round_end = nxt;
        self.multiplier = self.multiplier.saturating_add(1);
        self.rounds_left = PERSIST_ROUNDS;
    }

    /// Handles a spurious loss: the segment had been reordered.
    pub(crate) fn on_spurious_loss(&mut self) {
        self.reordering_seen = true;
    }

    /// Handles the end of a recovery.
    pub(crate) fn on_recovered(&mut self) {
        self.rounds_left = self.rounds_left.saturating_sub(1);
        if self.rounds_left == 0 {
            self.multiplier = 1;
        }
    }

    /// Returns how long a segment may be overtaken before it counts as lost (RFC 8985 section 6.2
    /// step 4).
    fn reorder_window(&self, ca: CaState, sacked: u32, rtt: &Rtt) -> Span {
        let hurry = matches!(ca, CaState::Recovery | CaState::Loss) || sacked >= 3;
        if !self.reordering_seen && hurry {
            return Span::ZERO;
        }
        reorder_window(u64::from(self.multiplier), rtt.min().unwrap_or(Span::ZERO), rtt.srtt())
    }

    /// Returns true if tail loss probes are sent.
    pub(crate) fn probes_tail(&self) -> bool {
        self.rule != LossDetection::Sack
    }

    /// Marks lost segments (RFC 8985 section 6.2 step 5).
    pub(crate) fn detect(&self, now: Time, ca: CaState, tx: &mut TxRing, rtt: &Rtt) -> Detected {
        if self.rule != LossDetection::Rack {
            return Detected { marked: tx.mark_passed(DUPLICATE_THRESHOLD), ..Detected::NOTHING };
        }
        let newest = self.newest;
        if newest.end == SendSsn::ZERO {
            return Detected::NOTHING;
        }
        // Nothing in flight was sent before the newest delivered segment.
        if tx.first().is_none_or(|first| {
            let behind = first.departure() >= newest;
            behind && first.state == SentState::InFlight && !first.retransmitted
        }) {
            return Detected::NOTHING;
        }
        let window = self.reorder_window(ca, tx.sacked_segments(), rtt);
        let mut again = Time::NEVER;
        let marked = tx.mark_overtaken(newest, |sent| {
            let lost_at = lost_at(sent.sent_at, self.rtt, window);
            if lost_at > now {
                again = again.min(lost_at);
            }
            lost_at <= now
        });
        Detected { marked, again }
    }
}

/// Returns the reordering window after reordering was seen: min(`multiplier` * `min_rtt` / 4, SRTT)
/// (RFC 8985 section 6.2 step 4).
#[must_use]
pub fn reorder_window(multiplier: u64, min_rtt: Span, srtt: Option<Span>) -> Span {
    min_rtt.times(multiplier).over(4).min(srtt.unwrap_or(Span::MAX))
}

/// Returns when a segment sent at `sent_at` counts as lost, once a later segment is delivered (RFC
/// 8985 section 6.2 step 5). `rtt` is the RTT of the later segment, `window` the reordering window.
#[must_use]
pub fn lost_at(sent_at: Time, rtt: Span, window: Span) -> Time {
    sent_at + rtt + window
}

/// Returns the time until a tail loss probe (RFC 8985 section 7.2): two smoothed RTTs. If a single
/// segment is in flight, the peer's longest acknowledgement delay (200 ms) is added. Without an RTT
/// it is one second.
#[must_use]
pub fn probe_timeout(srtt: Option<Span>, segments_in_flight: usize) -> Span {
    let Some(srtt) = srtt else { return Span::from_secs(1) };
    srtt.times(2) + if segments_in_flight == 1 { MAX_ACK_DELAY } else { Span::ZERO }
}

/// Assumed longest acknowledgement delay of a peer.
const MAX_ACK_DELAY: Span = Span::from_millis(200);

/// Proportional rate reduction (RFC 9937, or RFC 6937 section 3).
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Prr {
    /// Bytes outstanding when recovery began.
    recover_flight: u64,
    ssthresh: u64,
    delivered: u64,
    out: u64,
    cwnd: u64,
}

impl Prr {
    pub(crate) fn new(recover_flight: u64, ssthresh: u64, inflight: u64, mss: u64) -> Prr {
        // The first retransmission is sent regardless of the window (RFC 6675 section 5 step 4.3).
        Prr {
            recover_flight: recover_flight.max(1),
            ssthresh,
            delivered: 0,
            out: 0,
            cwnd: inflight + mss,
        }
    }

    /// Updates the window; `extra` bytes may be sent in addition to the delivered ones when less
    /// than ssthresh is in flight.
    pub(crate) fn on_ack(&mut self, delivered: u64, inflight: u64, extra: u64) {
        self.delivered += delivered;
        let allowance = if inflight > self.ssthresh {
            let share = u128::from(self.delivered) * u128::from(self.ssthresh);
            (share.div_ceil(u128::from(self.recover_flight)) as u64).saturating_sub(self.out)
        } else {
            let bound = self.delivered.saturating_sub(self.out).max(delivered) + extra;
            (self.ssthresh - inflight).min(bound)
        };
        self.cwnd = inflight + allowance;
    }

    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    pub(crate) const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// Sets the window that a controller has computed by itself.
    pub(crate) fn set_cwnd(&mut self, bytes: u64) {
        self.cwnd = bytes;
    }
}

/// State kept from the first loss on.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RecoveryState {
    /// Used in recovery only.
    pub(crate) prr: Prr,
    pub(crate) black_hole: BlackHoleDetector,
}

/// State of a subflow's loss recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    Open,
    Disorder,
    /// Fast recovery until everything up to `point` is acknowledged.
    Recovery {
        point: SendSsn,
    },
    /// Recovery from a timeout until everything up to `point` is acknowledged.
    Loss {
        point: SendSsn,
    },
}

impl Phase {
    pub(crate) const fn ca(&self) -> CaState {
        match self {
            Phase::Open => CaState::Open,
            Phase::Disorder => CaState::Disorder,
            Phase::Recovery { .. } => CaState::Recovery,
            Phase::Loss { .. } => CaState::Loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rack(rule: LossDetection) -> Rack {
        Rack::new(&Config::default().with(|it| it.recovery.loss_detection = rule))
    }
    use plait_base::{Dsn, SendRange};

    /// If no ACK is lost, PRR sends ssthresh/flight of the delivered data (RFC 6937 section 3).
    #[test]
    fn the_window_shrinks_in_proportion() {
        let (mss, flight) = (1_000, 20_000);
        let mut prr = Prr::new(flight, 10_000, 19_000, mss);
        let (mut inflight, mut sent) = (19_000u64, 0);
        for _ in 0..18 {
            inflight -= mss;
            prr.on_ack(mss, inflight, mss);
            while inflight + mss <= prr.cwnd() {
                inflight += mss;
                sent += mss;
                prr.on_sent(mss);
            }
        }
        assert_eq!(sent, 9_000);
        assert_eq!(inflight, 10_000);
    }

    /// RFC 6675 section 4, IsLost(): three segments above the hole were selectively acknowledged.
    #[test]
    fn without_rack_three_sacked_segments_above_a_hole_show_a_loss() {
        for (rule, lost) in [(LossDetection::Sack, 0), (LossDetection::Rack, 1_000)] {
            let mut tx = TxRing::new();
            tx.syn_acked();
            let at = Time::from_nanos;
            for index in 0..8u64 {
                tx.push(at(index), Dsn::new(index * 1_000), 1_000, false);
            }
            let (mut rack, mut rtt) = (rack(rule), Rtt::new(crate::RtoMode::Linux));
            rtt.sample(at(10), Span::from_nanos(5));
            let block = |from: u64, to: u64| [SendRange::between(1 + from * 1_000, 1 + to * 1_000)];
            // Two segments above the hole are not enough, though RACK may detect the loss by time.
            for (sacked, expected) in [(3, lost), (4, 1_000 - lost)] {
                let mut outcome = AckOutcome::default();
                tx.on_ack(SendSsn::new(1), &block(1, sacked), &mut outcome);
                rack.on_ack(at(1_000), &outcome, None, |_| true);
                let Detected { marked, .. } =
                    rack.detect(at(1_000), CaState::Recovery, &mut tx, &rtt);
                assert_eq!(marked, expected, "{rule:?}, {sacked}");
            }
            // A retransmission is not marked again, and segments above the third are not lost.
            assert_eq!((tx.lost_segments(), tx.sacked_segments()), (1, 3));
            tx.retransmit(SendSsn::new(1), at(1_100));
            tx.on_ack(SendSsn::new(1), &block(4, 7), &mut AckOutcome::default());
            if rule == LossDetection::Sack {
                let detected = rack.detect(at(1_200), CaState::Recovery, &mut tx, &rtt);
                assert_eq!(detected, Detected::NOTHING);
            }
        }
        assert!(!rack(LossDetection::Sack).probes_tail());
        assert!(rack(LossDetection::SackProbe).probes_tail());
    }

    /// D-SACKs widen the window for 16 recoveries (RFC 8985 section 6.2 step 4).
    #[test]
    fn a_wider_reordering_window_lasts_for_sixteen_recoveries() {
        let mut rack = rack(LossDetection::Rack);
        rack.on_dsack(SendSsn::ZERO, SendSsn::new(10_000));
        // The same round counts once.
        rack.on_dsack(SendSsn::new(5_000), SendSsn::new(12_000));
        assert_eq!(rack.multiplier, 2);
        for recovery in 1..16 {
            rack.on_recovered();
            assert_eq!(rack.multiplier, 2, "{recovery}");
        }
        rack.on_recovered();
        assert_eq!(rack.multiplier, 1);
    }

    /// When many segments are lost at once, the flight grows back by slow start up to ssthresh.
    #[test]
    fn the_reduction_bound_lets_the_flight_grow_back() {
        let mss = 1_000;
        let mut prr = Prr::new(20_000, 10_000, 2_000, mss);
        prr.on_ack(mss, 1_000, mss);
        assert_eq!(prr.cwnd(), 3_000);
        prr.on_sent(2_000);
        prr.on_ack(mss, 2_000, mss);
        assert_eq!(prr.cwnd(), 4_000);
    }
}
