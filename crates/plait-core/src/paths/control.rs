//! Segments of a subflow other than data: handshakes, resets, probes, signals and FINs.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Carry, Event};
use crate::notices::Notices;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::segments::{Report, Transmit};
use crate::tcp::pending::ControlSegment;
use crate::tcp::send::Sent;
use crate::tcp::state::Step;
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use plait_base::{DataRange, SendSsn, SubflowId, Time};

impl Paths {
    /// Returns the first lost segment that its subflow may retransmit.
    pub(crate) fn next_lost(&mut self) -> Option<LostSegment> {
        self.subflows.iter_mut().enumerate().find_map(|(index, subflow)| {
            Some(LostSegment { index, sent: subflow.next_retransmission()? })
        })
    }

    /// Returns the next SYN, reset or probe.
    pub(crate) fn next_control(&mut self, parts: &mut Parts<'_>) -> Option<Control> {
        for index in 0..self.subflows.len() {
            let subflow = &mut self.subflows[index];
            if !subflow.pending().urgent() {
                continue;
            }
            if subflow.take_control(ControlSegment::Rst) {
                // The RST may have been the only reason to keep the connection.
                parts.notices.tell_endpoint();
                let transmit = self.writer(&mut parts.ctx, parts.data, index).rst();
                return Some(Control::Ready(transmit));
            }
            let urgent = self.writer(&mut parts.ctx, parts.data, index).next_urgent();
            if let Some(transmit) = urgent {
                return Some(Control::Ready(transmit));
            }
            if self.subflows[index].take_control(ControlSegment::Syn) {
                let again = parts.ctx.now + self.syn_retry(parts.data, index);
                self.subflows[index].on_syn_sent(again);
                return Some(Control::Ready(self.build_syn(parts.data, parts.ctx.now, index)));
            }
            let probe = self.writer(&mut parts.ctx, parts.data, index).next_probe();
            if probe.is_some() {
                return probe;
            }
        }
        None
    }

    /// Notes that `sent` was retransmitted on the subflow at `index`.
    pub(crate) fn note_resent(&mut self, now: Time, index: usize, sent: &Sent, carry: Carry) {
        let mss = self.mss();
        let subflow = &mut self.subflows[index];
        if carry == Carry::TailProbe {
            subflow.on_tail_probe();
        }
        subflow.on_retransmitted(now, sent.seq, sent.len, mss);
    }

    /// Returns the next FIN that a subflow must send.
    pub(crate) fn next_fin(&mut self, parts: &mut Parts<'_>) -> Option<Transmit> {
        let index = self.subflows.iter().position(|subflow| subflow.owes_fin(parts.data))?;
        let (subflow, rules) = self.at(index);
        let (now, end) = (parts.ctx.now, parts.data.queue().written());
        let seq = subflow.on_sent(now, end, 1, true, rules.sizes.mss());
        subflow.step(Step::FinSent);
        Some(self.writer(&mut parts.ctx, parts.data, index).fin(seq))
    }

    /// Returns the next signal, on a pure ACK. Most signals have no room beside a mapping.
    pub(crate) fn next_signal(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
    ) -> Option<Transmit> {
        let Paths { subflows, addresses, .. } = self;
        let wanted = addresses.next_carrier(|id| {
            let subflow = &subflows[id.index()];
            subflow.state().synchronised() && subflow.status().joined()
        })?;
        let index = wanted.map(SubflowId::index).or_else(|| self.subflows.best_for_signal())?;
        // The keys or the proof of a handshake use the space for now.
        if !data.speaks_multipath() || self.subflows[index].has_ack_option(data) {
            return None;
        }
        let option = self.addresses.take_signal()?;
        let mut transmit = self.writer(ctx, data, index).pure_ack();
        let options = &mut transmit.segment.options;
        options.mptcp = Some(Box::new(option));
        // A DATA_ACK without room is sent separately.
        options.give_way();
        self.subflows[index].queue_ack_if(options.dss.is_none());
        Some(transmit)
    }

    /// Notes new data on the subflow at `index`; `full` is the size of a full segment. Returns its
    /// sequence number.
    #[inline(always)]
    pub(crate) fn note_sent(
        &mut self,
        now: Time,
        data: &mut DataLevel,
        index: usize,
        range: DataRange,
        full: u64,
    ) -> SendSsn {
        let seq = self.on_sent(now, index, range);
        if range.len() < full {
            data.note_short(SubflowId(index as u8), seq + range.len());
        }
        seq
    }

    /// Notes a new segment with the data `range` on the subflow at `index`. Returns its sequence
    /// number.
    #[inline(always)]
    pub(crate) fn on_sent(&mut self, now: Time, index: usize, range: DataRange) -> SendSsn {
        let mss = self.mss();
        self.subflows[index].on_sent(now, range.start, range.len() as u32, false, mss)
    }

    /// Returns a segment with data on the subflow at `index`.
    #[inline(always)]
    pub(crate) fn emit(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        notices: &mut Notices,
        index: usize,
        Dispatch { seq, range, carry }: Dispatch,
    ) -> SentData {
        let subflow = SubflowId(index as u8);
        ctx.emit(Event::DataSent { subflow, data: range, carry });
        let mut segment = self.writer(ctx, data, index).data_segment(seq, range);
        let told = data.stops_telling(self.subflows[index].sender().tx.una());
        let resized = told && self.settle_fallback(data, notices, index);
        if data.agreed().is_telling() {
            self.writer(ctx, data, index).tell_infinite(&mut segment);
        }
        let report = Report { conn: ctx.conn(), subflow };
        let report = if self.spec.config.tsq { Some(report) } else { None };
        let path = self.subflows[index].address().path();
        SentData { transmit: Transmit { path, segment, report, cut: 0 }, resized }
    }

    /// Returns the next segment with our DATA_FIN, if a subflow can carry it. Our keys are sent
    /// first, because a segment has no room for both.
    pub(crate) fn next_data_fin(&mut self, parts: &mut Parts<'_>) -> Option<Transmit> {
        let repeats = if parts.data.closing().fin_sent() { parts.timers.retries() } else { 0 };
        let index = self.subflows.signal_path(repeats)?;
        let rto = self.longest_rto(parts.data);
        let keys = self.subflows[index].has_ack_option(parts.data);
        if keys && !parts.data.closing().keys_sent() {
            parts.data.on_keys_sent();
            return Some(self.writer(&mut parts.ctx, parts.data, index).pure_ack());
        }
        parts.data.on_fin_signalled();
        parts.timers.arm_retransmission(parts.ctx.now, rto);
        let retries = parts.timers.retries();
        Some(self.writer(&mut parts.ctx, parts.data, index).data_fin(retries))
    }

    /// Returns the next pending acknowledgement.
    pub(crate) fn next_ack(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
    ) -> Option<PendingAck> {
        let ack_pending = |s: &Subflow| s.pending().ack() && s.state().synchronised();
        let index = self.subflows.iter().position(ack_pending)?;
        let transmit = self.writer(ctx, data, index).pure_ack();
        let is_last = !self.subflows[index..].iter().any(ack_pending);
        Some(PendingAck { transmit, is_last })
    }
}

/// Data of a segment: its first sequence number, its DSNs, and why it is sent.
#[derive(Clone, Copy)]
pub(crate) struct Dispatch {
    pub(crate) seq: SendSsn,
    pub(crate) range: DataRange,
    pub(crate) carry: Carry,
}

/// A segment with data.
pub(crate) struct SentData {
    pub(crate) transmit: Transmit,
    /// The segment size may have changed, because the peer has the infinite mapping.
    pub(crate) resized: bool,
}

/// A lost segment of the subflow at `index`.
pub(crate) struct LostSegment {
    pub(crate) index: usize,
    pub(crate) sent: Sent,
}

/// A pending acknowledgement.
pub(crate) struct PendingAck {
    pub(crate) transmit: Transmit,
    /// No other one is pending.
    pub(crate) is_last: bool,
}

/// A control segment.
pub(crate) enum Control {
    Ready(Transmit),
    /// Retransmits an earlier segment.
    Again {
        index: usize,
        sent: Sent,
        carry: Carry,
    },
}
