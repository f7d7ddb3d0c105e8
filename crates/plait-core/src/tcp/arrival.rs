//! Payload of the peer on its way to its subflow and the data level.

use crate::context::Context;
use crate::data::agreement::{MAX_UNMAPPED_SEGMENTS, Mode, dsn_in_step};
use crate::data::level::DataLevel;
use crate::data::reassembly::Run;
use crate::data::verifier::{Noted, Piece, Verifier};
use crate::event::Event;
use crate::tcp::recv::{Arrived, Receiver};
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use plait_base::{DataRange, Dsn, RecvRange, RecvSsn, Span, Time};
use plait_wire::{Dss, Flags, MpCapable, Mptcp, Payload, ResetReason, Segment};

impl Subflow {
    /// Returns the DSN of a mapping with a wrong checksum.
    pub(crate) fn failed_checksum(&self) -> Option<Dsn> {
        self.verifier.as_ref()?.failed()
    }

    /// Returns the first DSN after the data that waits for its checksum, if there is any.
    pub(crate) fn held_to(&self) -> Option<Dsn> {
        self.verifier.as_ref()?.held_to()
    }

    /// Delivers the data that waits for its checksum, when mappings are no longer needed. Returns
    /// true if there was any.
    pub(crate) fn release_unverified(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
    ) -> bool {
        let Some(mut verifier) = self.verifier.take() else { return false };
        let (now, id) = (ctx.now, self.id());
        verifier.release(&mut |dsn, payload: Payload, at| {
            let run = Run { dsn, payload: &payload, at, subflow: id };
            data.deliver(now, run, &mut |run| ctx.emit(run.event()));
        });
        self.pending.add_ack();
        true
    }
}

/// The payload of a peer's segment on its way to a subflow and the data level.
pub(crate) struct Arrival<'a> {
    pub(crate) segment: &'a Segment,
    /// Sequence numbers of the payload.
    pub(crate) range: RecvRange,
    /// Payload bytes of the peer's full segments.
    pub(crate) ack_unit: u64,
    /// Memory of received data, if there is a limit.
    pub(crate) held: Option<u64>,
}

impl Arrival<'_> {
    /// Processes the payload.
    pub(crate) fn take(
        &self,
        subflow: &mut Subflow,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
    ) -> Received {
        let Arrival { segment, range, .. } = *self;
        if range.is_empty() {
            // A window probe of the peer has an old sequence number.
            let repeated = range.start < subflow.rx.nxt() && !segment.flags.has(Flags::FIN);
            subflow.pending.add_ack_if(repeated);
            data.note_bare_ack(subflow.id(), segment);
            return Received::Nothing;
        }
        if !subflow.state().takes_data() {
            // Data beyond the peer's FIN is ignored (RFC 9293 section 3.10.7.4).
            subflow.pending.add_ack();
            return Received::Nothing;
        }
        if let Some(Dss { mapping: Some(map), data_fin, .. }) = &segment.options.dss
            && u64::from(map.len) > range.len()
            && let Some(mapped) = data.read_mapping(map, *data_fin, range.start)
            && !subflow.mappings.get_or_insert_default().remember(mapped)
        {
            return Received::Refused(ResetReason::Mptcp);
        }
        let dsn = if data.agreed().checksums() && !data.receives_plain() {
            match self.checked_dsn(subflow, data) {
                Ok(dsn) => dsn,
                Err(Noted::Conflict) => return Received::Refused(ResetReason::Mptcp),
                Err(_) => None,
            }
        } else {
            self.mapped(subflow, data)
        };
        match dsn {
            Some(dsn) => self.take_in(subflow, ctx, data, dsn),
            None if self.is_distrusted(subflow, data) => Received::Refused(ResetReason::Middlebox),
            None => Received::Nothing,
        }
    }

    /// Accepts the payload while both levels have room for it. Its first byte has `dsn`.
    fn take_in(
        &self,
        subflow: &mut Subflow,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        dsn: Dsn,
    ) -> Received {
        let Arrival { segment, range, ack_unit, .. } = *self;
        let seq = range.start;
        // Below the first byte or beyond the last number: not a valid DSN.
        let Some(end) = dsn.checked_add(range.len()) else { return Received::Nothing };
        let mapped = DataRange::new(dsn, end);
        let rx = &subflow.rx;
        let beside = seq < rx.nxt() || rx.has_hole();
        if beside && !data.receives_plain() && rx.contradicts(range, dsn) {
            return Received::Refused(ResetReason::Mptcp);
        }
        // Data outside the window is discarded at both levels, so that it is retransmitted.
        let crowded = data.reassembly().is_crowded() && mapped.start > data.reassembly().nxt();
        let limit = ctx.memory_limit();
        let short = limit.is_some_and(|it| self.exceeds(rx, data, it.unread, mapped));
        if crowded || short || !data.reassembly().fits(mapped) {
            subflow.pending.add_ack();
            return Received::Nothing;
        }
        let now = ctx.now;
        self.note_memory(subflow, data, now);
        subflow.status.on_mapped();
        let id = subflow.id();
        // No measure uses this event.
        let told = ctx.has_every_detail() && !subflow.rx.has(range);
        let before = data.reassembly().nxt();
        let mut duplicate = 0;
        let mut deliver = |dsn: Dsn, payload: Payload, at: Time| {
            duplicate += u64::from(payload.len());
            let run = Run { dsn, payload: &payload, at, subflow: id };
            duplicate -= data.deliver(now, run, &mut |run| ctx.emit(run.event()));
        };
        let arrived = Arrived { seq, dsn, at: now, payload: segment.payload.clone() };
        let due = match &mut subflow.verifier {
            None => subflow.rx.accept(arrived, ack_unit, &mut deliver),
            Some(verifier) => aside(|| {
                subflow.rx.accept(arrived, ack_unit, |dsn, payload, at| {
                    verifier.take(Piece { dsn, payload, at }, &mut deliver);
                })
            }),
        };
        subflow.note_due(now, due);
        if told {
            ctx.emit(Event::DataArrived { subflow: id, data: mapped, duplicate });
        }
        Received::Accepted { before }
    }

    /// Returns true if the payload with the data `mapped` must be dropped under memory pressure, when
    /// the connection may keep `most`. Data more than `most` bytes beyond the read position is
    /// dropped. It is kept if it fills a gap of its subflow and the next byte of the connection waits
    /// behind that gap. The peer does not retransmit that byte, because its subflow has acknowledged
    /// it. Data that is next in order, or fills a gap of its subflow, is accepted while the reader
    /// keeps up. Other data is accepted while the total memory of received data is below twice
    /// `most`.
    fn exceeds(&self, rx: &Receiver, data: &DataLevel, most: u64, mapped: DataRange) -> bool {
        let seq = self.range.start;
        let next = seq <= rx.nxt() && (mapped.start <= data.reassembly().nxt() || rx.has_hole());
        let full = self.held.is_some_and(|held| held >= most.saturating_mul(2));
        let frees = || seq <= rx.nxt() && rx.holds(data.reassembly().nxt());
        let far = data.reassembly().is_far(mapped, most) && !frees();
        far || full && (!next || data.reassembly().readable() > 0)
    }

    /// Returns the DSN of the payload by a mapping with a checksum, if checksums are in use. Other
    /// payload is not accepted.
    fn checked_dsn(&self, subflow: &mut Subflow, data: &DataLevel) -> Result<Option<Dsn>, Noted> {
        let seq = self.range.start;
        let told = data.checked(self.segment, seq);
        if subflow.rx.has(self.range) {
            // A retransmission: its mapping was checked before.
            return Ok(told.and_then(|told| told.dsn.checked_add(seq.checked_sub(told.seq.start)?)));
        }
        let next = subflow.rx.nxt();
        let verifier = subflow.verifier.get_or_insert_with(|| Box::new(Verifier::new(next)));
        if let Some(told) = told
            && verifier.note(told) == Noted::Conflict
        {
            return Err(Noted::Conflict);
        }
        Ok(verifier.dsn(self.range))
    }

    /// Handles payload without a known mapping. Returns true if this happened so often that the
    /// subflow must be reset.
    fn is_distrusted(&self, subflow: &mut Subflow, data: &DataLevel) -> bool {
        let next = subflow.rx.nxt();
        let in_order = self.range.start <= next && self.range.end > next;
        if !in_order || !data.speaks_multipath() || subflow.state() == State::Closed {
            return false;
        }
        subflow.status.on_unmapped() >= MAX_UNMAPPED_SEGMENTS
    }

    /// Returns the DSN of the payload, if it has a mapping.
    fn mapped(&self, subflow: &Subflow, data: &DataLevel) -> Option<Dsn> {
        let seq = self.range.start;
        match data.mode() {
            _ if data.receives_plain() => dsn_in_step(seq),
            Mode::Offered => None,
            Mode::Multipath | Mode::Plain => {
                if let Some(Mptcp::Capable(MpCapable { data_len: Some(len), .. })) =
                    self.segment.options.mptcp.as_deref()
                    && !subflow.origin().join
                {
                    // It maps the first bytes of the subflow (RFC 8684 section 3.1). A middlebox may have split them.
                    let first = RecvRange::with_len(RecvSsn::FIRST, u64::from(*len));
                    return dsn_in_step(seq).filter(|_| first.covers(self.range));
                }
                let mapped = match &self.segment.options.dss {
                    Some(Dss { mapping: Some(map), data_fin, .. }) => {
                        data.read_mapping(map, *data_fin, seq)?
                    }
                    // A middlebox has split it from the segment that carried the mapping.
                    _ => subflow.mapping_of(self.range)?,
                };
                if !mapped.seq.covers(self.range) {
                    return None;
                }
                mapped.dsn.checked_add(seq.checked_sub(mapped.seq.start)?)
            }
        }
    }

    /// Notes the segment for a buffer that is counted in memory.
    #[inline(always)]
    fn note_memory(&self, subflow: &mut Subflow, data: &mut DataLevel, now: Time) {
        let echo = || {
            let echo = self.segment.options.timestamps.map_or(0, |stamps| stamps.echo);
            let age = subflow.clock().at(now).wrapping_sub(echo);
            (echo, Span::from_millis(u64::from(age)))
        };
        if data.note_memory(subflow.id(), self.range.len(), echo) {
            subflow.rx.acknowledge_soon();
        }
    }
}

/// The result for a payload.
pub(crate) enum Received {
    Nothing,
    /// It was accepted; before, data below `before` was readable.
    Accepted {
        before: Dsn,
    },
    /// Its mapping contradicts an earlier one, or too many payloads had no mapping. Its subflow is
    /// reset for this reason.
    Refused(ResetReason),
}

/// Moves rare cases out of the common path.
#[cold]
#[inline(never)]
fn aside<R>(f: impl FnOnce() -> R) -> R {
    f()
}
