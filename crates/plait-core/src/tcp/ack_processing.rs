//! What happens to a subflow when an acknowledgement comes or its retransmission timer expires.

use crate::config::{self, ReduceFrom};
use crate::planted::{Planted, planted};
use crate::tcp::clock::before;
use crate::tcp::loss::{Detected, Phase, Prr, RecoveryState};
use crate::tcp::send::AckOutcome;
use crate::tcp::spurious_recovery::Evidence;
use crate::tcp::subflow::{Sender, Subflow};
use crate::tcp::timer::Timer;
use plait_base::{Span, Ssn, SubflowRange, Time};
use plait_cc::{Ack, Flows};

/// What an acknowledgement says of our sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInfo<'a> {
    pub(crate) ack: Ssn,
    pub(crate) blocks: &'a [SubflowRange],
    /// The first block, where it reports a duplicate.
    pub(crate) dsack: Option<SubflowRange>,
    /// Our timestamp that it echoes.
    pub(crate) echo: Option<u32>,
}

/// What an acknowledgement changed, for the connection to act upon.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AckEffects {
    /// Bytes newly delivered, cumulatively or selectively.
    pub(crate) delivered: u64,
    pub(crate) rtt: Option<Span>,
    pub(crate) entered_recovery: bool,
    pub(crate) left_recovery: bool,
    /// A probe has repaired the loss of a tail: the window was reduced, and there is no recovery.
    pub(crate) tail_repaired: bool,
    /// A reduction of the window was taken back; whether it was a timeout's.
    pub(crate) undone: Option<bool>,
    pub(crate) fin_acked: bool,
    /// Length of the longest segment delivered among those sent since long ones are missing.
    pub(crate) longest: u32,
}

impl Subflow {
    /// Takes in an acknowledgement; what came of it goes to `effects`, which is blank.
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
        let since = self.black_hole().since();
        let mut outcome = AckOutcome { since, ..AckOutcome::default() };
        self.sender.tx.on_ack(ack, blocks, &mut outcome);
        (effects.delivered, effects.longest) = (outcome.delivered, outcome.longest);
        effects.fin_acked = fin_outstanding && ack == self.sender.tx.nxt();
        if dsack.is_some() {
            self.sender.rack.on_dsack(self.sender.tx.una(), self.sender.tx.nxt());
        }
        effects.rtt = self.measure_rtt(now, &outcome, echo);
        // Data that went out once has been acknowledged, be it out of order (RFC 6298 section 5, Karn's
        // rule), or the edge has moved.
        if outcome.advanced > 0 || effects.rtt.is_some() {
            self.sender.rtt.clear_backoff();
        }
        let (clock, una) = (self.clock, self.sender.tx.una());
        self.sender.rack.on_ack(now, &outcome, self.sender.rtt.min(), |sent| {
            // What comes out of order is not echoed, so a SACK says nothing.
            sent.end() > una || echo.is_none_or(|echo| !before(echo, clock.at(sent.sent_at)))
        });
        if dsack.is_some()
            || matches!(self.sender.phase, Phase::Recovery { .. } | Phase::Loss { .. })
        {
            effects.undone = self.look_for_undo(now, &outcome, dsack, echo);
        }
        // An acknowledgement during fast recovery, the last one included, does not grow the
        // window; the controller keeps its books all the same.
        let recovering = matches!(self.sender.phase, Phase::Recovery { .. });
        if recovering {
            self.tell_controller(now, &outcome, effects.rtt, flows);
        }
        self.leave_recovery(now, effects);
        let kept = self.sender.tx.inflight();
        self.detect_loss(now, flows, mss, effects);
        if self.sender.rack.tail.is_open() {
            effects.tail_repaired = self.sender.rack.tail.on_ack(ack, dsack);
        }
        if effects.tail_repaired {
            self.answer_to_tail_loss(now, &outcome, effects.rtt, flows);
        } else if !recovering {
            self.tell_controller(now, &outcome, effects.rtt, flows);
        } else {
            self.reduce_in_proportion(&outcome, kept, mss);
        }
        if outcome.advanced > 0 {
            if self.sender.tx.is_empty() {
                self.timers.clear(Timer::Rto);
            } else {
                self.timers.set(Timer::Rto, now + self.sender.rtt.rto());
            }
        }
        if outcome.delivered > 0 {
            self.arm_tail_probe(now);
        }
    }

    /// Takes an RTT sample, if the acknowledgement gives one.
    fn measure_rtt(&mut self, now: Time, outcome: &AckOutcome, echo: Option<u32>) -> Option<Span> {
        // If a retransmission came last, it brought about this acknowledgement, and what is older
        // may have arrived long ago (Karn's rule, RFC 6298 section 3).
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

    /// In fast recovery the window follows what was delivered (RFC 6937); `kept` was in flight before losses
    /// were looked for.
    fn reduce_in_proportion(&mut self, outcome: &AckOutcome, kept: u64, mss: u64) {
        let Sender { tx, rack, phase, recovery, cc, .. } = &mut self.sender;
        if let (Phase::Recovery { .. }, Some(RecoveryState { prr, .. })) =
            (&*phase, recovery.as_deref_mut())
        {
            let inflight = tx.inflight();
            let safe = outcome.advanced > 0 && inflight == kept;
            // A window that never moves is filled again, whatever is lost.
            let always = rack.prr == config::Prr::Rfc6937 || cc.is_fixed();
            let extra = safe || always;
            prr.on_ack(outcome.delivered, inflight, if extra { mss } else { 0 });
        }
    }

    /// Measures the RTT of a retransmission by its timestamp, which names the segment that was answered (RFC 7323
    /// section 4; Linux does the same in `tcp_ack_update_rtt`). A subflow that repairs a timeout may get no other
    /// sample for long, and neither may a paced subflow in fast recovery: its timeouts and its pacing would follow
    /// an old RTT, and pacing by an old RTT makes the repair itself long. Controllers get no sample. An echo of a
    /// time that has not come yet is ignored.
    #[cold]
    fn learn_from_echo(&mut self, now: Time, echo: Option<u32>) {
        let Some(echo) = echo.filter(|echo| !before(self.clock.at(now), *echo)) else { return };
        // The clock has whole milliseconds.
        let millis = self.clock.at(now).wrapping_sub(echo).max(1);
        self.sender.rtt.sample(now, Span::from_millis(millis.into()));
    }

    /// Takes the last reduction of the window back, where this acknowledgement shows that what
    /// counted as lost was late only. Tells whether that was a timeout.
    #[inline(never)]
    fn look_for_undo(
        &mut self,
        now: Time,
        outcome: &AckOutcome,
        dsack: Option<SubflowRange>,
        echo: Option<u32>,
    ) -> Option<bool> {
        let timeout = self.sender.spurious_recovery.on_ack(&Evidence {
            una: self.sender.tx.una(),
            advanced: outcome.advanced > 0,
            original: outcome.sample,
            dsack,
            echo,
            lost_waiting: self.sender.tx.lost_segments() > 0,
        })?;
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

    fn leave_recovery(&mut self, now: Time, effects: &mut AckEffects) {
        match self.sender.phase {
            Phase::Recovery { point, .. } if self.sender.tx.una() >= point => {
                self.sender.phase = Phase::Open;
                self.sender.cc.on_recovered(now);
                self.sender.rack.on_recovered();
                effects.left_recovery = true;
            }
            Phase::Loss { point } if self.sender.tx.una() >= point => {
                self.sender.phase = Phase::Open;
                self.sender.rack.on_recovered();
                effects.left_recovery = true;
            }
            _ => {}
        }
        match self.sender.phase {
            Phase::Open if self.sender.tx.sacked_segments() > 0 => {
                self.sender.phase = Phase::Disorder;
            }
            Phase::Disorder if self.sender.tx.sacked_segments() == 0 => {
                self.sender.phase = Phase::Open;
            }
            _ => {}
        }
    }

    /// What the window is reduced from.
    fn reduced_from(&self) -> u64 {
        match self.sender.rack.reduce_from {
            ReduceFrom::Window => self.sender.cc.cwnd(),
            ReduceFrom::Flight => self.sender.tx.outstanding().min(self.sender.cc.cwnd()),
        }
    }

    /// Looks for segments that others have overtaken (RFC 8985 section 6.2).
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
    }

    #[cold]
    fn enter_recovery(&mut self, now: Time, flows: Flows<'_>, mss: u64) {
        let flight = self.sender.tx.outstanding();
        self.sender.cc.on_loss(now, self.reduced_from(), flows);
        let ssthresh = self.sender.cc.ssthresh().unwrap_or(u64::MAX);
        self.sender.spurious_recovery.begin(now, false, self.sender.tx.nxt(), false);
        let prr = Prr::new(flight, ssthresh, self.sender.tx.inflight(), mss);
        self.make_room().prr = prr;
        self.sender.phase = Phase::Recovery { point: self.sender.tx.nxt() };
        self.sender.rack.tail.forget();
        self.timers.clear(Timer::Tail);
    }

    /// The first reduction makes room for recoveries and timeouts to come.
    fn make_room(&mut self) -> &mut RecoveryState {
        self.timers.make_room();
        self.sender.recovery.get_or_insert_default()
    }

    /// The loss that a probe has repaired reduces the window as any other; nothing is left to be
    /// sent again (RFC 8985 section 7.4.2).
    #[cold]
    fn answer_to_tail_loss(
        &mut self,
        now: Time,
        outcome: &AckOutcome,
        rtt: Option<Span>,
        flows: Flows<'_>,
    ) {
        self.make_room();
        self.sender.cc.on_loss(now, self.reduced_from(), flows);
        // What reports an earlier episode as unfounded does not take this reduction back.
        self.sender.spurious_recovery.begin(now, false, self.sender.tx.nxt(), false);
        self.tell_controller(now, outcome, rtt, flows);
        self.sender.cc.on_recovered(now);
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
        // Where all was sent again there is no sample (RFC 6298 section 3), but windows grow.
        let srtt = self.sender.rtt.srtt().unwrap_or_else(|| self.sender.rtt.base_rto());
        let cwnd = self.sender.cc.cwnd();
        let round = self.sender.tx.una() >= self.sender.round_end;
        let capped = self.is_capped();
        if round {
            self.sender.round_end = self.sender.tx.nxt();
            // The last segment went out before this acknowledgement moved the left edge.
            let flight = self.sender.tx.outstanding() + outcome.advanced;
            let limited = capped || self.sender.cwnd_validation.limited(false, cwnd);
            self.sender.delivery.on_round(rtt.unwrap_or(srtt), flight, limited);
        }
        let ack = Ack {
            now,
            bytes: outcome.delivered,
            rtt,
            srtt,
            min_rtt: self.sender.rtt.min().unwrap_or(srtt),
            // Duplicate acknowledgements do not grow the window (RFC 5681 section 3.2).
            cwnd_limited: outcome.advanced > 0
                && !capped
                && self.sender.cwnd_validation.limited(self.sender.cc.in_slow_start(), cwnd),
            round,
        };
        self.sender.cc.on_ack(&ack, flows);
        if self.sender.cc.cwnd() > self.status.rec_cwnd {
            self.status.rec_cwnd = 0;
        }
    }

    /// The retransmission timeout expired (RFC 6298 section 5.4 to 5.6). Everything in flight
    /// counts as lost; the peer's selective acknowledgements stand.
    /// `frto` tells that new data may show whether it expired too soon.
    #[cold]
    pub(crate) fn on_timeout(&mut self, now: Time, flows: Flows<'_>, frto: bool) {
        let first_expiry = !matches!(self.sender.phase, Phase::Loss { .. });
        if first_expiry {
            let recovering = matches!(self.sender.phase, Phase::Recovery { .. });
            let frto = frto && !recovering && !self.shake.offer.timestamps;
            self.sender.spurious_recovery.begin(now, true, self.sender.tx.nxt(), frto);
        } else {
            self.sender.spurious_recovery.on_repeated_timeout();
        }
        self.make_room();
        self.sender.cc.on_timeout(now, self.reduced_from(), first_expiry, flows);
        self.sender.tx.forget_reneged();
        self.sender.tx.mark_all_lost();
        self.sender.phase = Phase::Loss { point: self.sender.tx.nxt() };
        self.status.pf = true;
        self.sender.rack.tail.forget();
        self.sender.rtt.back_off();
        if first_expiry || !planted(Planted::TimeoutOnce) {
            self.timers.set(Timer::Rto, now + self.sender.rtt.rto());
        }
        self.timers.clear(Timer::Tail);
        self.timers.clear(Timer::Reorder);
    }
}
