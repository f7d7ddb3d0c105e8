//! Sending under a controller that sets the pacing rate and the window.

use crate::tcp::loss::Phase;
use crate::tcp::rate_samples::{Loss, RateSamples, Sample};
use crate::tcp::send::{AckOutcome, Departure};
use crate::tcp::sender::Sender;
use plait_base::{SendRange, SendSsn, Span, Time};
use plait_cc::{Congestion, LostSegment, RateSample};

/// The state of a subflow with such a controller.
#[derive(Debug)]
pub(super) struct Rated {
    samples: RateSamples,
    /// Pacing rate in bytes per second, and the bytes that may leave at once.
    rate: u64,
    quantum: u64,
    /// The bandwidth that the controller has found.
    bandwidth: u64,
    /// Bytes of the quantum that have left.
    used: u64,
    /// The peer sends selective acknowledgements.
    sack: bool,
}

impl Rated {
    pub(super) fn new() -> Rated {
        Rated {
            samples: RateSamples::new(),
            rate: 0,
            quantum: 0,
            bandwidth: 0,
            used: 0,
            sack: true,
        }
    }

    pub(super) const fn rate(&self) -> u64 {
        self.rate
    }

    /// Takes over the rate that the controller has set.
    fn follow(&mut self, cc: &mut Congestion) {
        cc.rated(|control, _| {
            (self.rate, self.quantum) = (control.pacing_rate(), control.quantum());
            self.bandwidth = control.bandwidth();
        });
    }

    /// Sets the rate and the quantum.
    #[cfg(test)]
    pub(super) fn set(&mut self, rate: u64, quantum: u64) {
        (self.rate, self.quantum) = (rate, quantum);
    }

    /// Counts `len` bytes of the quantum. Returns true if the next segment of up to `len` bytes must wait.
    pub(super) fn use_quantum(&mut self, len: u64) -> bool {
        self.used += len;
        self.used + len > self.quantum
    }

    /// Begins the next quantum.
    pub(super) fn renew_quantum(&mut self) {
        self.used = 0;
    }
}

impl Sender {
    /// Returns the bandwidth that the controller has found, in bytes per second; 0 if it looks for none.
    pub(crate) fn bandwidth(&self) -> u64 {
        let rated = self.pacer.as_ref().and_then(|pacer| pacer.rated.as_ref());
        rated.map_or(0, |it| it.bandwidth)
    }

    /// Notes whether the window lets a segment be sent, if pacing does.
    fn note_room(&mut self, now: Time) {
        let room = self.tx.inflight() + u64::from(self.cc.mss()) <= self.cwnd();
        let queued = self.host_queue.as_ref().is_some_and(|queue| queue.bytes() > 0);
        if let Some(pacer) = self.pacer.as_deref_mut() {
            let free = room && !queued && !pacer.is_held();
            if let Some(rated) = &mut pacer.rated {
                rated.samples.note_room(now, free);
            }
        }
    }

    /// Notes a sending of `range`. Returns the earliest time of the next segment, if it must wait.
    #[inline(never)]
    pub(super) fn pace_rated(&mut self, now: Time, range: SendRange) -> Option<Time> {
        let Sender { pacer, cc, tx, rtt, .. } = self;
        let pacer = pacer.as_deref_mut()?;
        let rated = pacer.rated.as_mut()?;
        let before = tx.inflight().saturating_sub(range.len());
        let limited = rated.samples.before_send(now, before);
        if before == 0 {
            let srtt = rtt.srtt();
            cc.rated(|control, window| control.on_start(now, limited, srtt, window));
            rated.follow(cc);
        }
        let departure = Departure { at: now, end: range.end };
        rated.samples.on_sent(range.start, departure, tx.inflight());
        let release = pacer.on_sent_rated(now, range.len());
        if let Some(rated) = &mut pacer.rated {
            rated.samples.forget_room();
        }
        self.note_room(now);
        release
    }

    /// Releases the next quantum.
    pub(crate) fn release(&mut self, now: Time) {
        let Some(pacer) = &mut self.pacer else { return };
        pacer.release();
        if pacer.rated.is_some() {
            self.note_room(now);
        }
    }

    /// Notes that all segments in flight are lost.
    pub(super) fn mark_all_lost(&mut self, now: Time) {
        self.tx.mark_all_lost();
        self.note_losses(now);
    }

    /// Notes that `marked` bytes were marked as lost.
    #[inline(always)]
    pub(super) fn note_marked(&mut self, now: Time, marked: u64) {
        if marked > 0 {
            self.note_losses(now);
        }
    }

    /// Passes segments that were marked as lost to the controller.
    #[cold]
    fn note_losses(&mut self, now: Time) {
        let Sender { pacer, cc, tx, .. } = self;
        let Some(rated) = pacer.as_deref_mut().and_then(|pacer| pacer.rated.as_mut()) else {
            return;
        };
        let mut from = SendSsn::ZERO;
        while let Some((loss, next)) = rated.samples.next_loss(tx, from) {
            let Loss { len, sent, lost, apart } = loss;
            let lost = LostSegment {
                now,
                len,
                sent_inflight: sent.inflight,
                lost,
                total: rated.samples.delivered(),
                app_limited: sent.app_limited,
                apart,
                sack: rated.sack,
            };
            cc.rated(|control, window| control.on_lost(&lost, window));
            from = next;
        }
        rated.follow(cc);
        self.follow_window();
    }

    /// Processes an acknowledgement, after its losses, if the controller sets the rate. `sack` is true if the
    /// peer sends selective ones.
    #[inline(always)]
    pub(super) fn on_paced_ack(
        &mut self,
        now: Time,
        outcome: &AckOutcome,
        rtt: Option<Span>,
        sack: bool,
    ) {
        if self.pacer.is_some() {
            self.on_rated_ack(now, outcome, rtt, sack);
        }
    }

    #[inline(never)]
    fn on_rated_ack(&mut self, now: Time, outcome: &AckOutcome, rtt: Option<Span>, sack: bool) {
        if !self.cc.is_rated() {
            return;
        }
        if outcome.delivered > 0 {
            self.sample_rate(now, outcome, rtt, sack);
        }
        self.follow_window();
        self.note_room(now);
    }

    /// Passes an acknowledgement of new data to the controller.
    fn sample_rate(&mut self, now: Time, outcome: &AckOutcome, rtt: Option<Span>, sack: bool) {
        let cwnd_limited = self.cwnd_validation.limited(false, self.cwnd());
        let Sender { pacer, cc, tx, rtt: times, .. } = self;
        let Some(rated) = pacer.as_deref_mut().and_then(|pacer| pacer.rated.as_mut()) else {
            return;
        };
        rated.sack = sack;
        rated.samples.on_delivered(now, outcome.delivered);
        let Some(newest) = &outcome.newest else { return };
        let least = times.min().unwrap_or(Span::ZERO);
        let sample = rated.samples.sample(now, newest, least);
        rated.samples.drop_old(tx);
        // Data that the peer had reneged on has no record.
        let Some(Sample { sent, rate, lost }) = sample else { return };
        let sample = RateSample {
            now,
            acked: outcome.delivered,
            total: rated.samples.delivered(),
            prior_total: sent.delivered,
            rate,
            app_limited: sent.app_limited,
            sent_inflight: sent.inflight,
            lost,
            inflight: tx.inflight(),
            rtt,
            srtt: times.srtt(),
            cwnd_limited,
            sack: rated.sack,
        };
        if cc.rated(|control, window| control.on_sample(&sample, window)) == Some(true) {
            rated.samples.limit(tx.inflight());
        }
        rated.follow(cc);
    }

    /// Applies the window of the controller in fast recovery.
    fn follow_window(&mut self) {
        if !self.cc.is_rated() {
            return;
        }
        if let (Phase::Recovery { .. }, Some(recovery)) = (&self.phase, &mut self.recovery) {
            recovery.prr.set_cwnd(self.cc.cwnd());
        }
    }

    /// Frees the memory for evidence of spurious reductions, and unused memory of the samples.
    pub(super) fn give_back(&mut self) {
        self.spurious_recovery.give_back();
        self.cc.give_back();
        let Sender { pacer, tx, .. } = self;
        if let Some(rated) = pacer.as_deref_mut().and_then(|pacer| pacer.rated.as_mut()) {
            rated.samples.give_back(tx);
        }
    }
}
