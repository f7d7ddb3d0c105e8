//! The sending half of a subflow: its ring, congestion window and limits.

use crate::config::{Config, Pacing};
use crate::tcp::cwnd_validation::CwndValidation;
use crate::tcp::delivery::DeliveryRate;
use crate::tcp::handshake::InitialSsn;
use crate::tcp::host_queue::{self, HostQueue};
use crate::tcp::loss::{Phase, Rack, RecoveryState};
use crate::tcp::pace::{self, Pacer};
use crate::tcp::pmtu_black_hole::BlackHoleDetector;
use crate::tcp::rtt::Rtt;
use crate::tcp::send::{Sent, TxRing};
use crate::tcp::spurious_recovery::SpuriousRecovery;
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use plait_base::{SendRange, SendSpace, SendSsn, Time};
use plait_cc::{Algorithm, Congestion, Settings};
use plait_sched::CaState;

/// Windows of unsent data below which a burst ends soon.
const FEW_WINDOWS: u64 = 2;

/// Limits of the sender beside the congestion window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendLimits {
    /// Largest number of bytes in flight that a scheduler's effect allows; the maximum without an
    /// effect.
    cap: u64,
    /// Window before the last idle reset, zero once exceeded.
    pub(super) rec_cwnd: u64,
    /// Right edge of the window that the peer advertised on this subflow, in its sequence numbers.
    edge: SendSsn,
}

impl SendLimits {
    pub(crate) const fn rec_cwnd(&self) -> u64 {
        self.rec_cwnd
    }

    pub(crate) const fn cap(&self) -> u64 {
        self.cap
    }

    /// Limits the bytes in flight, or removes the limit.
    pub(crate) fn set_cap(&mut self, bytes: Option<u64>) {
        self.cap = bytes.unwrap_or(u64::MAX);
    }

    /// Moves the right edge of the peer's window forward, never back.
    pub(crate) fn advance_edge(&mut self, edge: SendSsn) {
        self.edge = self.edge.max(edge);
    }

    /// Remembers the size of an idle or unused window before its reduction.
    pub(crate) fn remember_window(&mut self, bytes: u64) {
        self.rec_cwnd = self.rec_cwnd.max(bytes);
    }
}

impl Default for SendLimits {
    fn default() -> SendLimits {
        SendLimits { cap: u64::MAX, rec_cwnd: 0, edge: SendSsn::ZERO }
    }
}

/// Notes how much data of the connection is unsent when `subflow` sends a segment.
#[inline(always)]
pub(crate) fn note_backlog(subflow: &mut Subflow, unsent: u64) {
    if let Some(pacer) = &mut subflow.sender.pacer {
        pacer.backlog = unsent;
    }
}

/// The sending half of a subflow.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) tx: TxRing,
    pub(crate) rtt: Rtt,
    pub(super) rack: Rack,
    pub(super) phase: Phase,
    /// Allocated at the first loss.
    pub(super) recovery: Option<Box<RecoveryState>>,
    pub(crate) cc: Congestion,
    pub(crate) limits: SendLimits,
    pub(super) cwnd_validation: CwndValidation,
    pub(super) delivery: DeliveryRate,
    pub(super) spurious_recovery: SpuriousRecovery,
    /// Set if segments are paced.
    pub(super) pacer: Option<Box<Pacer>>,
    pub(super) last_send: Time,
    /// This round trip ends when this sequence number is acknowledged.
    pub(super) round_end: SendSsn,
    /// Set when the host first holds some of its segments.
    pub(super) host_queue: Option<Box<HostQueue>>,
}

impl Sender {
    pub(super) fn new(
        config: &Config,
        ssthresh: Option<u64>,
        algorithm: Box<dyn Algorithm>,
        iss: InitialSsn<SendSpace>,
    ) -> Sender {
        let settings = Settings {
            mss: config.segment_payload() as u32,
            initial_window: config.window.initial,
            ssthresh: ssthresh.or(config.window.ssthresh),
            slow_start_limit: config.slow_start_limit(),
            hystart: config.window.hystart,
        };
        let mut cc = Congestion::new(settings, algorithm);
        // The initial sequence number is drawn at random.
        cc.rated(|control, _| control.seed(iss.syn().0.into()));
        let pacer = match cc.is_rated() {
            true => Some(Pacer::rated()),
            false => config.window.pacing.map(|it| Pacer::new(it, config.segment_payload())),
        };
        Sender {
            tx: TxRing::new(),
            rtt: Rtt::new(config.recovery.rto),
            rack: Rack::new(config),
            phase: Phase::Open,
            recovery: None,
            cc,
            limits: SendLimits::default(),
            cwnd_validation: CwndValidation::default(),
            delivery: DeliveryRate::default(),
            spurious_recovery: SpuriousRecovery::default(),
            pacer: pacer.map(Box::new),
            last_send: Time::ZERO,
            round_end: SendSsn::ZERO,
            host_queue: None,
        }
    }

    /// Returns the effective congestion window: recovery's own, limited by the cap.
    pub(crate) fn cwnd(&self) -> u64 {
        let cwnd = self.uncapped_cwnd();
        cwnd.min(self.limits.cap)
    }

    /// Returns the effective congestion window without the cap.
    pub(crate) fn uncapped_cwnd(&self) -> u64 {
        match (&self.phase, &self.recovery) {
            (Phase::Recovery { .. }, Some(it)) => it.prr.cwnd(),
            _ => self.cc.cwnd(),
        }
    }

    /// Returns true if a cap limits the sender instead of the congestion window, which then does
    /// not grow.
    pub(crate) fn is_capped(&self) -> bool {
        self.limits.cap < self.cc.cwnd()
    }

    /// Returns the pacing rate in bytes per second.
    pub(crate) fn pacing_rate(&self) -> u64 {
        let rated = self.pacer.as_ref().and_then(|it| it.rated.as_ref());
        // Before the first data, the controller has set no rate.
        if let Some(rated) = rated.filter(|it| it.rate() > 0) {
            return rated.rate();
        }
        let settings = self.pacer.as_ref().map_or_else(Pacing::default, |it| it.settings());
        pace::rate(self.cwnd(), self.cc.ssthresh(), self.rtt.srtt(), settings)
    }

    /// Notes `range` as sent. Returns the earliest time of the next segment, if it must wait. As in
    /// Linux, bytes in flight beyond the window count.
    #[inline(never)]
    pub(super) fn pace(&mut self, now: Time, range: SendRange) -> Option<Time> {
        if self.cc.is_rated() {
            return self.pace_rated(now, range);
        }
        let pacer = self.pacer.as_mut()?;
        let paid = pacer.pay(range.len());
        if paid && !pacer.is_spreading(now) {
            return None;
        }
        let rate = self.spreading_rate();
        let pacer = self.pacer.as_mut()?;
        if paid {
            pacer.postpone(now, range.len(), rate);
            return None;
        }
        pacer.on_sent(now, range.len(), rate)
    }

    /// Returns the rate in bytes per second for segments that are spread.
    ///
    /// A burst that no acknowledgement clocks has at least the largest rate of the latest rounds. If few windows wait
    /// to be sent, the application may have left the window small. The link may then carry more than the window in
    /// each round trip, so the burst has the rate of the start.
    fn spreading_rate(&self) -> u64 {
        let window = self.cwnd().max(self.tx.inflight());
        let (settings, backlog) = match &self.pacer {
            Some(pacer) => (pacer.settings(), pacer.backlog),
            None => (Pacing::default(), 0),
        };
        let clocked = settings.ack_clocked;
        let percent = match clocked && backlog < FEW_WINDOWS * window {
            true => settings.start_percent,
            false => settings.percent,
        };
        let settings = Pacing { percent, ..settings };
        let rate = pace::rate(window, self.cc.ssthresh(), self.rtt.srtt(), settings);
        if clocked && rate > 0 { rate.max(self.delivery.largest().0) } else { rate }
    }

    /// Lets only small bursts leave at once from now on.
    pub(super) fn limit_bursts(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.limit_bursts();
        }
    }

    /// Notes that `delivered` bytes were acknowledged, which clocks out as many, or twice as many in slow start.
    /// Returns true if pacing held segments and no longer does.
    #[inline(always)]
    pub(super) fn clock(&mut self, delivered: u64, mss: u64) -> bool {
        let Sender { pacer, cc, rtt, .. } = self;
        pacer.as_mut().is_some_and(|pacer| {
            let settings = pacer.settings();
            let rate = || pace::rate(cc.cwnd(), cc.ssthresh(), rtt.srtt(), settings);
            let clocked = if cc.in_slow_start() { 2 * delivered } else { delivered };
            pacer.on_acked(clocked, mss, rate)
        })
    }

    /// Returns true if the host's queue holds enough of this subflow's data that more must wait.
    #[inline(never)]
    pub(crate) fn tsq_blocked(&self, mss: u64) -> bool {
        let size = host_queue::truesize(mss as u32);
        let queued = self.host_queue.as_ref().map_or(0, |queue| queue.bytes());
        queued > host_queue::limit(self.pacing_rate(), size, host_queue::TSQ_CAP_BYTES)
    }

    /// Returns the first lost segment if the window permits its retransmission.
    pub(crate) fn next_retransmission(&mut self) -> Option<Sent> {
        if self.spurious_recovery.holds_retransmissions() || self.is_paced() {
            return None;
        }
        let sent = *self.tx.first_lost()?;
        let fits = self.tx.inflight() + u64::from(sent.len) <= self.cwnd();
        fits.then_some(sent)
    }

    /// Returns true if `len` more bytes would exceed the advertised window of this subflow. With
    /// nothing in flight they never do: the advertised window may be old, and no acknowledgement
    /// would update it.
    #[inline(never)]
    pub(crate) fn exceeds_window(&self, len: u64) -> bool {
        !self.tx.is_empty() && self.tx.nxt() + len > self.limits.edge
    }

    /// Returns the state of the black hole detection.
    pub(crate) fn black_hole(&self) -> BlackHoleDetector {
        self.recovery.as_ref().map_or_else(BlackHoleDetector::default, |it| it.black_hole)
    }

    pub(crate) fn black_hole_mut(&mut self) -> Option<&mut BlackHoleDetector> {
        self.recovery.as_mut().map(|it| &mut it.black_hole)
    }

    /// Notes that short segments replace a long one after a timeout.
    pub(crate) fn probe_black_hole(&mut self, now: Time) {
        self.recovery.get_or_insert_default().black_hole.on_short_sent(now);
    }

    /// Resets the detection when the path delivers long segments.
    pub(crate) fn reset_black_hole(&mut self) {
        if let Some(recovery) = &mut self.recovery {
            recovery.black_hole = BlackHoleDetector::default();
        }
    }

    /// Notes a segment of `payload` bytes that leaves the host at `departs`. Returns when the next one
    /// leaves.
    pub(crate) fn on_departure(&mut self, now: Time, departs: Time, payload: u32) -> Time {
        let queue = self.host_queue.get_or_insert_default();
        queue.push(now, departs, host_queue::truesize(payload));
        queue.next_departure()
    }

    /// Returns when the next segment leaves the host, if its queue holds enough that more must wait.
    pub(crate) fn tsq_blocked_until(&self, mss: u64) -> Option<Time> {
        let queue = self.host_queue.as_ref()?;
        self.tsq_blocked(mss).then(|| queue.next_departure())
    }

    /// Removes segments that have left the host.
    pub(crate) fn drain_host_queue(&mut self, now: Time) {
        if let Some(queue) = &mut self.host_queue {
            queue.drain(now);
        }
    }

    /// Returns true if F-RTO holds retransmissions back.
    pub(crate) fn holds_retransmissions(&self) -> bool {
        self.spurious_recovery.holds_retransmissions()
    }

    /// Continues the retransmissions that F-RTO holds back.
    pub(crate) fn give_up_frto(&mut self) {
        self.spurious_recovery.give_up_frto();
    }

    /// Returns the state of loss recovery.
    #[inline]
    pub(crate) const fn ca(&self) -> CaState {
        self.phase.ca()
    }

    /// Returns when a segment was last sent.
    #[inline]
    pub(crate) const fn last_send(&self) -> Time {
        self.last_send
    }

    /// Returns the delivery rate in bytes per second; zero before the first sample.
    pub(crate) const fn delivery_rate(&self) -> u64 {
        self.delivery.bytes_per_second()
    }

    /// Returns the largest delivery rate of the latest rounds in bytes per second, and whether the
    /// path was full.
    pub(crate) const fn largest_delivery_rate(&self) -> (u64, bool) {
        self.delivery.largest()
    }

    /// Returns true if the congestion window limits the sender.
    pub(crate) fn is_cwnd_limited(&self) -> bool {
        self.cwnd_validation.limited(self.cc.in_slow_start(), self.cwnd())
    }

    /// Notes a tail loss probe.
    pub(crate) fn on_tail_probe(&mut self) {
        self.rack.tail.on_sent(self.tx.nxt());
    }

    /// Notes an acknowledgement of `ack` without news, which may answer a tail loss probe.
    pub(crate) fn on_duplicate_ack(&mut self, ack: SendSsn) {
        if self.rack.tail.is_open() {
            self.rack.tail.on_duplicate(ack);
        }
    }

    /// Returns true if the release time has not come.
    pub(crate) fn is_paced(&self) -> bool {
        self.pacer.as_ref().is_some_and(|pacer| pacer.is_held())
    }
}
