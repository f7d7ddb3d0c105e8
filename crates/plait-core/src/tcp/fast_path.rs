//! The subflow's part of header prediction: checks whether a segment is the next one, and takes it.

use crate::context::Context;
use crate::data::agreement::dsn_in_step;
use crate::data::level::DataLevel;
use crate::data::reassembly::Run;
use crate::event::Event;
use crate::tcp::clock::before;
use crate::tcp::subflow::Subflow;
use plait_base::{DataRange, Dsn, SendSsn};
use plait_wire::{Mapping, Segment, WireSeq};

impl Subflow {
    /// Notes the peer's timestamp, to be echoed.
    #[inline(always)]
    pub(crate) fn note_stamp(&mut self, segment: &Segment) {
        if let Some(stamp) = &segment.options.timestamps
            && self.negotiated().timestamps
        {
            self.note_timestamp(stamp.value);
        }
    }

    /// Returns true if it is established, not silent, and holds no waiting data of the peer.
    #[inline(always)]
    pub(crate) fn is_steady(&self) -> bool {
        debug_assert!(self.verifier.is_none());
        let answered = self.pending.unanswered() == 0 && !self.status.pf();
        self.state().takes_data() && self.status.proven() && answered && self.rx.is_in_order()
    }

    /// Returns true if the segment is older than one already processed (RFC 7323 section 5.3).
    #[inline(always)]
    pub(crate) fn is_old(&self, segment: &Segment) -> bool {
        let negotiated = &self.negotiated();
        let stamps = segment.options.timestamps.as_ref();
        stamps.is_some_and(|it| negotiated.timestamps && before(it.value, negotiated.ts_recent))
    }
}

/// A segment, compared with the next one of its subflow.
#[derive(Clone, Copy)]
pub(crate) struct Next<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) of: &'a Subflow,
}

impl Next<'_> {
    /// Returns true if it is the next segment on a subflow without irregularities.
    #[inline(always)]
    pub(crate) fn is_expected(self) -> bool {
        let Next { segment, of } = self;
        WireSeq(segment.seq) == of.negotiated().irs.wire(of.rx.nxt())
            && of.is_steady()
            && !of.is_old(segment)
    }

    /// Returns the acknowledged sequence number, if it acknowledges what is in flight.
    #[inline(always)]
    pub(crate) fn credible_ack(self) -> Option<SendSsn> {
        let (una, nxt) = (self.of.sender.tx.una(), self.of.sender.tx.nxt());
        let ack = self.of.negotiated().iss.read(WireSeq(self.segment.ack), una);
        (una <= ack && ack <= nxt).then_some(ack)
    }

    /// Returns true if a data segment that acknowledges no new data has no news about our own data at all:
    /// it acknowledges nothing new of the subflow either, and the edge of the window stays.
    #[inline(always)]
    pub(crate) fn tells_no_news(self, data: &DataLevel) -> bool {
        let Next { segment, of } = self;
        let (una, window) =
            (data.queue().una(), u64::from(segment.window) << of.negotiated().peer_scale);
        WireSeq(segment.ack) == of.negotiated().iss.wire(of.sender.tx.una())
            && segment.options.sack.count() == 0
            && una + window <= data.window().end()
            && window <= data.window().largest()
    }
}

/// A segment with the next data.
pub(crate) struct NextData<'a> {
    pub(crate) segment: &'a Segment,
    /// Payload bytes of the peer's full segments.
    pub(crate) ack_unit: u64,
}

impl NextData<'_> {
    /// Accepts the data if the mapping covers exactly its bytes. Data of plain TCP has none. Returns the
    /// DSN up to which data was readable before.
    #[inline(always)]
    pub(crate) fn take(
        &self,
        subflow: &mut Subflow,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        map: Option<&Mapping>,
    ) -> Option<Dsn> {
        let NextData { segment, ack_unit } = *self;
        let (seq, len) = (subflow.rx.nxt(), segment.payload.len());
        let recv = data.reassembly();
        let before = recv.nxt();
        let dsn = match map {
            None => dsn_in_step(seq)?,
            Some(map) => {
                if map.long || map.ssn != seq.low() || len == 0 || len != map.len.into() {
                    return None;
                }
                data.keys().theirs.read_low(map.dsn, before)
            }
        };
        let len = u64::from(len);
        let end = dsn.checked_add(len)?;
        // The slow path applies the limits when memory is short.
        if recv.is_crowded() || !recv.fits_up_to(end) || ctx.memory_limit().is_some() {
            return None;
        }
        subflow.note_stamp(segment);
        subflow.status.on_mapped();
        let (now, id) = (ctx.now, subflow.id);
        let due = subflow.rx.accept_next(dsn, len, ack_unit);
        subflow.note_due(now, due);
        let run = Run { dsn, payload: &segment.payload, at: now, subflow: id };
        let new = data.deliver(now, run, &mut |run| ctx.emit(run.event()));
        if ctx.has_every_detail() {
            let data = DataRange::new(dsn, end);
            ctx.emit(Event::DataArrived { subflow: id, data, duplicate: len - new });
        }
        Some(before)
    }
}
