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
use plait_base::{ConnId, DataRange, SendSsn, SubflowId, Time};
use plait_wire::Segment;

impl Paths {
    /// Returns the first lost segment that its subflow may retransmit.
    pub(crate) fn next_lost(&mut self) -> Option<LostSegment> {
        self.subflows.iter_mut().find_map(|subflow| {
            let sent = subflow.next_retransmission()?;
            Some(LostSegment { id: subflow.id(), sent })
        })
    }

    /// Returns the next SYN, reset or probe.
    pub(crate) fn next_control(&mut self, parts: &mut Parts<'_>) -> Option<Control> {
        for id in self.subflows.ids() {
            let subflow = &mut self.subflows[id];
            if !subflow.pending().urgent() {
                continue;
            }
            if subflow.take_control(ControlSegment::Rst) {
                // The RST may have been the only reason to keep the connection.
                parts.notices.tell_endpoint();
                let transmit = self.writer(&mut parts.ctx, parts.data, id).rst();
                return Some(Control::Ready(transmit));
            }
            let urgent = self.writer(&mut parts.ctx, parts.data, id).next_urgent();
            if let Some(transmit) = urgent {
                return Some(Control::Ready(transmit));
            }
            if self.subflows[id].take_control(ControlSegment::Syn) {
                let again = parts.ctx.now + self.syn_retry(&parts.ctx, parts.data, id);
                self.subflows[id].on_syn_sent(again);
                return Some(Control::Ready(self.build_syn(parts.data, parts.ctx.now, id)));
            }
            let probe = self.writer(&mut parts.ctx, parts.data, id).next_probe();
            if probe.is_some() {
                return probe;
            }
        }
        None
    }

    /// Notes that `sent` was retransmitted on the subflow `id`.
    pub(crate) fn note_resent(&mut self, now: Time, id: SubflowId, sent: &Sent, carry: Carry) {
        let mss = self.mss();
        let subflow = &mut self.subflows[id];
        if carry == Carry::TailProbe {
            subflow.on_tail_probe();
        }
        subflow.on_retransmitted(now, sent.seq, sent.len, mss);
    }

    /// Returns the next FIN that a subflow must send.
    pub(crate) fn next_fin(&mut self, parts: &mut Parts<'_>) -> Option<Transmit> {
        let id = self.subflows.iter().find(|subflow| subflow.owes_fin(parts.data))?.id();
        let (subflow, rules) = self.at(id);
        let (now, end) = (parts.ctx.now, parts.data.queue().written());
        let seq = subflow.on_sent(now, end, 1, true, rules.sizes.mss());
        subflow.step(Step::FinSent);
        Some(self.writer(&mut parts.ctx, parts.data, id).fin(seq))
    }

    /// Returns the next signal, on a pure ACK. Most signals have no room beside a mapping.
    pub(crate) fn next_signal(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
    ) -> Option<Transmit> {
        let Paths { subflows, addresses, .. } = self;
        let wanted = addresses.next_carrier(|id| {
            let subflow = &subflows[id];
            subflow.state().synchronised() && subflow.status().joined()
        })?;
        let id = wanted.or_else(|| self.subflows.best_for_signal())?;
        // The keys or the proof of a handshake use the space for now.
        if !data.speaks_multipath() || self.subflows[id].has_ack_option(data) {
            return None;
        }
        let option = self.addresses.take_signal()?;
        let mut transmit = self.writer(ctx, data, id).pure_ack();
        let options = &mut transmit.segment.options;
        options.mptcp = Some(Box::new(option));
        // A DATA_ACK without room is sent separately.
        options.give_way();
        self.subflows[id].queue_ack_if(options.dss.is_none());
        Some(transmit)
    }

    /// Notes new data on the subflow `id`; `full` is the size of a full segment. Returns its
    /// sequence number.
    #[inline(always)]
    pub(crate) fn note_sent(
        &mut self,
        now: Time,
        data: &mut DataLevel,
        id: SubflowId,
        range: DataRange,
        full: u64,
    ) -> SendSsn {
        let seq = self.on_sent(now, id, range);
        if range.len() < full {
            data.note_short(id, seq + range.len());
        }
        seq
    }

    /// Notes a new segment with the data `range` on the subflow `id`. Returns its sequence
    /// number.
    #[inline(always)]
    pub(crate) fn on_sent(&mut self, now: Time, id: SubflowId, range: DataRange) -> SendSsn {
        let mss = self.mss();
        self.subflows[id].on_sent(now, range.start, range.len() as u32, false, mss)
    }

    /// Returns a segment with data on the subflow `id`.
    #[inline(always)]
    pub(crate) fn emit(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        notices: &mut Notices,
        id: SubflowId,
        Dispatch { seq, range, carry }: Dispatch,
    ) -> SentData {
        ctx.emit(Event::DataSent { subflow: id, data: range, carry });
        let mut segment = self.writer(ctx, data, id).data_segment(seq, range);
        let told = data.stops_telling(self.subflows[id].sender().tx.una());
        let resized = told && self.settle_fallback(data, notices, id);
        if data.agreed().is_telling() {
            self.writer(ctx, data, id).tell_infinite(&mut segment);
        }
        SentData { segment, resized }
    }

    /// Returns the next segment with our DATA_FIN, if a subflow can carry it. Our keys are sent
    /// first, because a segment has no room for both.
    pub(crate) fn next_data_fin(&mut self, parts: &mut Parts<'_>) -> Option<Transmit> {
        let repeats = if parts.data.closing().fin_sent() { parts.timers.retries() } else { 0 };
        let id = self.subflows.signal_path(repeats)?;
        let rto = self.longest_rto(parts.data);
        let keys = self.subflows[id].has_ack_option(parts.data);
        if keys && !parts.data.closing().keys_sent() {
            parts.data.on_keys_sent();
            return Some(self.writer(&mut parts.ctx, parts.data, id).pure_ack());
        }
        parts.data.on_fin_signalled();
        parts.timers.arm_retransmission(parts.ctx.now, rto);
        let retries = parts.timers.retries();
        Some(self.writer(&mut parts.ctx, parts.data, id).data_fin(retries))
    }

    /// Returns the next pending acknowledgement.
    pub(crate) fn next_ack(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
    ) -> Option<PendingAck> {
        let ack_pending = |s: &Subflow| s.pending().ack() && s.state().synchronised();
        let id = self.subflows.iter().find(|s| ack_pending(s))?.id();
        let transmit = self.writer(ctx, data, id).ack_of_data();
        let rest = self.subflows.get(id.index()..).unwrap_or_default();
        let is_last = !rest.iter().any(ack_pending);
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
    pub(crate) segment: Box<Segment>,
    /// The segment size may have changed, because the peer has the infinite mapping.
    pub(crate) resized: bool,
}

/// A segment, and the payload bytes of each part that the device splits it into.
pub(crate) struct Built {
    pub(crate) segment: Box<Segment>,
    pub(crate) cut: u16,
}

impl Built {
    /// Returns it as the next segment of the subflow `id`. A superpacket is not reported.
    #[inline(always)]
    pub(crate) fn on(self, paths: &Paths, conn: ConnId, id: SubflowId) -> Transmit {
        let Built { segment, cut } = self;
        let reported = paths.spec.config.tsq && cut == 0;
        let report = if reported { Some(Report { conn, subflow: id }) } else { None };
        Transmit { path: paths.subflow(id).address().path(), segment, report, cut }
    }
}

/// A lost segment of the subflow `id`.
pub(crate) struct LostSegment {
    pub(crate) id: SubflowId,
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
        id: SubflowId,
        sent: Sent,
        carry: Carry,
    },
}
