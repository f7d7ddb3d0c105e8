//! Acknowledgements and retransmission timeouts of a subflow.

use crate::config::{self, ReduceFrom};
use crate::path_memory::shows_queue;
use crate::tcp::clock::before;
use crate::tcp::delivery::Round;
use crate::tcp::loss::{Detected, Phase, Prr, RecoveryState};
use crate::tcp::send::AckOutcome;
use crate::tcp::sender::Sender;
use crate::tcp::spurious_recovery::{AckEvidence, Episode};
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use plait_base::{SendRange, SendSsn, Span, Time};
use plait_cc::{Ack, Flows};

/// An acknowledgement of our sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInfo<'a> {
    pub(crate) ack: SendSsn,
    pub(crate) blocks: &'a [SendRange],
    /// The first SACK block, if it reports a duplicate.
    pub(crate) dsack: Option<SendRange>,
    /// Our timestamp that it echoes.
    pub(crate) echo: Option<u32>,
}

/// Changes by an acknowledgement, for the connection to act upon.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AckEffects {
    /// Bytes newly delivered, cumulatively or selectively.
    pub(crate) delivered: u64,
    pub(crate) rtt: Option<Span>,
    pub(crate) entered_recovery: bool,
    pub(crate) left_recovery: bool,
    /// A tail loss probe has repaired a loss: the window was reduced without a recovery.
    pub(crate) tail_repaired: bool,
    /// A reduction of the window was undone; true if a timeout had caused it.
    pub(crate) undone: Option<bool>,
    pub(crate) fin_acked: bool,
    /// Length of the longest delivered segment sent since long ones are missing.
    pub(crate) longest: u32,
}

impl Sender {
    /// Starts an episode: the window is reduced after a loss or the first expiry of a timeout.
    /// `frto` is true if F-RTO may delay retransmissions.
    fn begin_episode(&mut self, now: Time, timeout: bool, frto: bool) {
        let point = self.tx.nxt();
        let episode = self.rack.undo.then(|| Episode::new(now, timeout, point, frto));
        self.spurious_recovery.begin(episode);
        self.limit_bursts();
    }

    /// Sets the window in fast recovery from the delivered bytes (RFC 6937). `kept` bytes were in
    /// flight before loss detection.
    fn reduce_in_proportion(&mut self, outcome: &AckOutcome, kept: u64, mss: u64) {
        if self.cc.is_rated() {
            return;
        }
        let Sender { tx, rack, phase, recovery, cc, .. } = self;
        if let (Phase::Recovery { .. }, Some(RecoveryState { prr, .. })) =
            (&*phase, recovery.as_deref_mut())
        {
            let inflight = tx.inflight();
            let safe = outcome.advanced > 0 && inflight == kept;
            // A fixed window is filled again after any loss.
            let always = rack.prr == config::Prr::Rfc6937 || cc.is_fixed();
            let extra = safe || always;
            prr.on_ack(outcome.delivered, inflight, if extra { mss } else { 0 });
        }
    }

    fn leave_recovery(&mut self, now: Time, effects: &mut AckEffects) {
        match self.phase {
            Phase::Recovery { point, .. } if self.tx.una() >= point => {
                self.phase = Phase::Open;
                self.cc.on_recovered(now);
                self.rack.on_recovered();
                effects.left_recovery = true;
            }
            Phase::Loss { point } if self.tx.una() >= point => {
                self.phase = Phase::Open;
                self.cc.on_recovered(now);
                self.rack.on_recovered();
                effects.left_recovery = true;
            }
            _ => {}
        }
        match self.phase {
            Phase::Open if self.tx.sacked_segments() > 0 => {
                self.phase = Phase::Disorder;
            }
            Phase::Disorder if self.tx.sacked_segments() == 0 => {
                self.phase = Phase::Open;
            }
            _ => {}
        }
    }

    /// Returns the value that the window is reduced from.
    fn reduced_from(&self) -> u64 {
        match self.rack.reduce_from {
            ReduceFrom::Window => self.cc.cwnd(),
            ReduceFrom::Flight => self.tx.outstanding().min(self.cc.cwnd()),
        }
    }

    fn tell_controller(
        &mut self,
        now: Time,
        outcome: &AckOutcome,
        rtt: Option<Span>,
        flows: Flows<'_>,
    ) {
        if outcome.delivered == 0 {
            return;
        }
        // If everything was retransmitted, there is no sample (RFC 6298 section 3), but windows
        // grow.
        let srtt = self.rtt.srtt().unwrap_or_else(|| self.rtt.base_rto());
        let cwnd = self.cc.cwnd();
        let round = self.tx.una() >= self.round_end;
        let capped = self.is_capped();
        if round {
            self.round_end = self.tx.nxt();
            // The last segment was sent before this acknowledgement advanced the left edge.
            let flight = self.tx.outstanding() + outcome.advanced;
            let limited = capped || self.cwnd_validation.limited(false, cwnd);
            // An edge that jumps over data delivered earlier says nothing about the rate.
            let in_order = outcome.delivered >= outcome.advanced;
            let clean = rtt.is_some() && in_order && matches!(self.phase, Phase::Open);
            let rtt = rtt.unwrap_or(srtt);
            let min_rtt = self.rtt.min().unwrap_or(rtt);
            let queue = shows_queue(rtt, min_rtt);
            let round = Round { now, rtt, min_rtt, flight, limited, clean, queue };
            self.delivery.on_round(&round);
            if self.cc.is_recalled() {
                self.cc.doubt_recalled(queue);
            }
        }
        let ack = Ack {
            now,
            bytes: outcome.delivered,
            rtt,
            srtt,
            min_rtt: self.rtt.min().unwrap_or(srtt),
            // Duplicate acknowledgements do not grow the window (RFC 5681 section 3.2).
            cwnd_limited: outcome.advanced > 0
                && !capped
                && self.cwnd_validation.limited(self.cc.in_slow_start(), cwnd),
            round,
            acked: self.tx.una().get(),
            sent: self.tx.nxt().get(),
        };
        self.cc.on_ack(&ack, flows);
        if self.cc.cwnd() > self.limits.rec_cwnd {
            self.limits.rec_cwnd = 0;
        }
    }
}

impl Subflow {
    /// Processes an acknowledgement and writes the changes to `effects`, which must be blank.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        info: &AckInfo<'_>,
        flows: Flows<'_>,
        mss: u64,
        effects: &mut AckEffects,
    ) {
        let AckInfo { ack, blocks, dsack, echo } = *info;
        let fin_outstanding = self.sender.tx.last().is_some_and(|sent| sent.fin);
        let since = self.sender.black_hole().since();
        let mut outcome = AckOutcome { since, ..AckOutcome::default() };
        self.sender.tx.on_ack(ack, blocks, &mut outcome);
        (effects.delivered, effects.longest) = (outcome.delivered, outcome.longest);
        effects.fin_acked = fin_outstanding && ack == self.sender.tx.nxt();
        if dsack.is_some() {
            self.sender.rack.on_dsack(self.sender.tx.una(), self.sender.tx.nxt());
        }
        effects.rtt = self.measure_rtt(now, &outcome, echo);
        // Data sent once was acknowledged, possibly out of order (RFC 6298 section 5, Karn's rule),
        // or the edge has advanced.
        if outcome.advanced > 0 || effects.rtt.is_some() {
            self.sender.rtt.clear_backoff();
        }
        let (clock, una) = (self.clock, self.sender.tx.una());
        self.sender.rack.on_ack(now, &outcome, self.sender.rtt.min(), |sent| {
            // Out-of-order data is not echoed, so a SACK proves nothing.
            sent.end() > una || echo.is_none_or(|echo| !before(echo, clock.at(sent.sent_at)))
        });
        if dsack.is_some()
            || matches!(self.sender.phase, Phase::Recovery { .. } | Phase::Loss { .. })
        {
            effects.undone = self.look_for_undo(now, &outcome, dsack, echo);
        }
        // An acknowledgement during fast recovery, the last one included, does not grow the window.
        // The controller still updates its state.
        let recovering = matches!(self.sender.phase, Phase::Recovery { .. });
        if recovering {
            self.sender.tell_controller(now, &outcome, effects.rtt, flows);
        }
        self.sender.leave_recovery(now, effects);
        let kept = self.sender.tx.inflight();
        self.detect_loss(now, flows, mss, effects);
        if self.sender.rack.tail.is_open() {
            effects.tail_repaired = self.sender.rack.tail.on_ack(ack, dsack);
        }
        if effects.tail_repaired {
            self.answer_to_tail_loss(now, &outcome, effects.rtt, flows);
        } else if !recovering {
            self.sender.tell_controller(now, &outcome, effects.rtt, flows);
        } else {
            self.sender.reduce_in_proportion(&outcome, kept, mss);
        }
        if outcome.advanced > 0 {
            if self.sender.tx.is_empty() {
                self.timers.clear(Timer::Rto);
            } else {
                self.arm_rto(now);
            }
        }
        if outcome.delivered > 0 {
            self.arm_tail_probe(now);
        }
        if self.sender.clock(outcome.delivered, mss) {
            self.timers.clear(Timer::Pace);
        }
        self.sender.on_paced_ack(now, &outcome, effects.rtt, self.negotiated.sack);
    }

    /// Takes an RTT sample if the acknowledgement allows one.
    fn measure_rtt(&mut self, now: Time, outcome: &AckOutcome, echo: Option<u32>) -> Option<Span> {
        // If the newest segment is a retransmission, it caused this acknowledgement, and older
        // segments may have arrived long ago (Karn's rule, RFC 6298 section 3).
        let told_late = outcome.newest.is_some_and(|newest| newest.retransmitted);
        if let Some(sent_at) = outcome.sample.filter(|_| !told_late) {
            let rtt = now.since(sent_at);
            self.sender.rtt.sample(now, rtt);
            return Some(rtt);
        }
        let follows_rtt = match self.sender.phase {
            Phase::Loss { .. } => true,
            Phase::Recovery { .. } => self.sender.pacer.is_some(),
            _ => false,
        };
        if told_late && outcome.advanced > 0 && follows_rtt {
            self.learn_from_echo(now, echo);
        }
        None
    }

    /// Measures the RTT of a retransmission by its timestamp, which identifies the answered segment
    /// (RFC 7323 section 4; `tcp_ack_update_rtt` of Linux). A subflow that repairs a timeout may
    /// get no other sample for long, and neither may a paced subflow in fast recovery. Its timeouts
    /// and its pacing would use an old RTT, which slows the repair itself. Controllers get no
    /// sample. An echo of a future time is ignored.
    #[cold]
    fn learn_from_echo(&mut self, now: Time, echo: Option<u32>) {
        let Some(echo) = echo.filter(|echo| !before(self.clock.at(now), *echo)) else { return };
        // The clock has a resolution of one millisecond.
        let millis = self.clock.at(now).wrapping_sub(echo).max(1);
        self.sender.rtt.sample(now, Span::from_millis(millis.into()));
    }

    /// Undoes the last reduction of the window if this acknowledgement shows that the segments were
    /// only late. Returns whether a timeout had caused the reduction.
    #[inline(never)]
    fn look_for_undo(
        &mut self,
        now: Time,
        outcome: &AckOutcome,
        dsack: Option<SendRange>,
        echo: Option<u32>,
    ) -> Option<bool> {
        let evidence = AckEvidence {
            una: self.sender.tx.una(),
            advanced: outcome.advanced > 0,
            original: outcome.sample,
            dsack,
            echo,
            lost_waiting: self.sender.tx.lost_segments() > 0,
        };
        let timeout = self.sender.spurious_recovery.on_ack(&evidence, &mut self.counters)?;
        if !timeout {
            self.sender.rack.on_spurious_loss();
        }
        self.sender.tx.unmark_lost();
        if !matches!(self.sender.phase, Phase::Open | Phase::Disorder) {
            self.sender.rack.on_recovered();
            self.sender.phase = Phase::Open;
        }
        self.sender.cc.undo(now);
        Some(timeout)
    }

    /// Detects segments that later ones have overtaken (RFC 8985 section 6.2).
    pub(crate) fn detect_loss(
        &mut self,
        now: Time,
        flows: Flows<'_>,
        mss: u64,
        effects: &mut AckEffects,
    ) {
        let Detected { marked, again } = self.sender.rack.detect(
            now,
            self.sender.phase.ca(),
            &mut self.sender.tx,
            &self.sender.rtt,
        );
        self.timers.set(Timer::Reorder, again);
        if marked > 0 && matches!(self.sender.phase, Phase::Open | Phase::Disorder) {
            self.enter_recovery(now, flows, mss);
            effects.entered_recovery = true;
        }
        self.sender.note_marked(now, marked);
    }

    #[cold]
    fn enter_recovery(&mut self, now: Time, flows: Flows<'_>, mss: u64) {
        let flight = self.sender.tx.outstanding();
        self.sender.cc.on_loss(now, self.sender.reduced_from(), flows);
        let ssthresh = self.sender.cc.ssthresh().unwrap_or(u64::MAX);
        self.sender.begin_episode(now, false, false);
        let prr = Prr::new(flight, ssthresh, self.sender.tx.inflight(), mss);
        self.make_room().prr = prr;
        self.sender.phase = Phase::Recovery { point: self.sender.tx.nxt() };
        self.sender.rack.tail.forget();
        self.timers.clear(Timer::Tail);
    }

    /// Allocates the recovery state at the first reduction, for all later ones.
    fn make_room(&mut self) -> &mut RecoveryState {
        self.timers.make_room();
        self.sender.recovery.get_or_insert_default()
    }

    /// Reduces the window after a loss that a tail loss probe has repaired. Nothing needs a
    /// retransmission (RFC 8985 section 7.4.2).
    #[cold]
    fn answer_to_tail_loss(
        &mut self,
        now: Time,
        outcome: &AckOutcome,
        rtt: Option<Span>,
        flows: Flows<'_>,
    ) {
        self.make_room();
        self.sender.cc.on_loss(now, self.sender.reduced_from(), flows);
        // Evidence about an earlier episode does not undo this reduction.
        self.sender.begin_episode(now, false, false);
        self.sender.tell_controller(now, outcome, rtt, flows);
        self.sender.cc.on_recovered(now);
    }

    /// Handles a retransmission timeout (RFC 6298 section 5.4 to 5.6). Everything in flight counts
    /// as lost; the peer's SACKs stay valid. `frto` is true if new data may reveal a spurious
    /// timeout.
    #[cold]
    pub(crate) fn on_timeout(&mut self, now: Time, flows: Flows<'_>, frto: bool) {
        let first_expiry = !matches!(self.sender.phase, Phase::Loss { .. });
        if first_expiry {
            let recovering = matches!(self.sender.phase, Phase::Recovery { .. });
            let frto = frto && !recovering && !self.negotiated.timestamps;
            self.sender.begin_episode(now, true, frto);
        } else {
            self.sender.spurious_recovery.on_repeated_timeout();
        }
        self.make_room();
        self.sender.cc.on_timeout(now, self.sender.reduced_from(), first_expiry, flows);
        self.sender.tx.forget_reneged();
        self.sender.mark_all_lost(now);
        self.sender.phase = Phase::Loss { point: self.sender.tx.nxt() };
        self.status.suspect();
        self.sender.rack.tail.forget();
        self.sender.rtt.back_off();
        self.arm_rto(now);
        self.timers.clear(Timer::Tail);
        self.timers.clear(Timer::Reorder);
    }
}
