//! Payload of a segment on its subflow: data with its mapping, and the end of the subflow.

use crate::context::Context;
use crate::data::agreement::{MAX_UNMAPPED_SEGMENTS, Mode, dsn_in_step};
use crate::data::level::DataLevel;
use crate::data::verifier::{Noted, Verifier};
use crate::event::Event;
use crate::notices::Notices;
use crate::paths::Paths;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use plait_base::{DataRange, Dsn, Span, Ssn, SubflowRange, Time};
use plait_wire::{Dss, Flags, Mptcp, Payload, ResetReason, Segment};

impl Subflow {
    /// Returns the DSN of a mapping with a wrong checksum.
    pub(crate) fn failed_checksum(&self) -> Option<Dsn> {
        self.verifier.as_ref()?.failed()
    }
}

impl Paths {
    /// Processes the payload of a segment whose first byte is `seq` of the subflow at `index`.
    pub(crate) fn take_payload(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        index: usize,
        segment: &Segment,
        seq: Ssn,
    ) -> Taken {
        let len = u64::from(segment.payload.len());
        let subflow = &mut self.subflows[index];
        if len == 0 {
            // A window probe of the peer has an old sequence number.
            let repeated = seq < subflow.rx.nxt() && !segment.flags.has(Flags::FIN);
            subflow.pending.add_ack_if(repeated);
            return Taken::Nothing;
        }
        if !subflow.state.takes_data() {
            // Data beyond the peer's FIN is ignored (RFC 9293 section 3.10.7.4).
            subflow.pending.add_ack();
            return Taken::Nothing;
        }
        if let Some(Dss { mapping: Some(map), data_fin, .. }) = &segment.options.dss
            && u64::from(map.len) > len
            && let Some(mapped) = data.read_mapping(map, *data_fin, seq)
            && !subflow.remember_mapping(mapped)
        {
            return Taken::Refused(ResetReason::Mptcp);
        }
        let dsn = if data.agreed.checksums() && !data.receives_plain() {
            match self.checked_dsn(data, index, segment, seq) {
                Ok(dsn) => dsn,
                Err(Noted::Conflict) => return Taken::Refused(ResetReason::Mptcp),
                Err(_) => None,
            }
        } else {
            self.mapped(data, index, segment, seq)
        };
        match dsn {
            Some(dsn) => self.take_in(ctx, data, index, segment, seq, dsn),
            None if self.distrusts(data, index, segment, seq) => {
                Taken::Refused(ResetReason::Middlebox)
            }
            None => Taken::Nothing,
        }
    }

    /// Accepts the payload of a segment while both levels have room for it. Its first byte is `seq`
    /// of the subflow and `dsn` of the data.
    fn take_in(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        index: usize,
        segment: &Segment,
        seq: Ssn,
        dsn: Dsn,
    ) -> Taken {
        let len = u64::from(segment.payload.len());
        // Below the first byte or beyond the last number: not a valid DSN.
        let Some(end) = dsn.checked_add(len) else { return Taken::Nothing };
        let mapped = DataRange::new(dsn, end);
        let range = SubflowRange::with_len(seq, len);
        let rx = &self.subflows[index].rx;
        let beside = seq < rx.nxt() || rx.has_hole();
        if beside && !data.receives_plain() && rx.contradicts(range, dsn) {
            return Taken::Refused(ResetReason::Mptcp);
        }
        // Data outside the window is discarded at both levels, so that it is retransmitted.
        let crowded = data.recv.is_crowded() && mapped.start > data.recv.nxt();
        let short =
            ctx.memory_limit().is_some_and(|it| self.exceeds(data, it.unread, index, seq, mapped));
        if crowded || short || !data.recv.fits(mapped) {
            self.subflows[index].pending.add_ack();
            return Taken::Nothing;
        }
        self.note_memory(data, ctx.now, index, segment);
        let unit = self.sizes.ack_unit();
        let now = ctx.now;
        let (subflow, recv) = (&mut self.subflows[index], &mut data.recv);
        subflow.status.on_mapped();
        let id = subflow.id;
        // No measure uses this event.
        let told = ctx.has_every_detail() && !subflow.rx.has(range);
        let before = recv.nxt();
        let mut duplicate = 0;
        let mut deliver = |dsn: Dsn, payload: Payload, at: Time| {
            duplicate += u64::from(payload.len());
            duplicate -= recv.insert(now, dsn, &payload, at, id, &mut |run| {
                ctx.emit(run.event());
            });
        };
        let payload = segment.payload.clone();
        let due = match &mut subflow.verifier {
            None => subflow.rx.accept(now, seq, dsn, payload, unit, &mut deliver),
            Some(verifier) => aside(|| {
                subflow.rx.accept(now, seq, dsn, payload, unit, |dsn, payload, at| {
                    verifier.take((dsn, payload, at), &mut deliver);
                })
            }),
        };
        subflow.note_due(now, due);
        if told {
            ctx.emit(Event::DataArrived { subflow: id, data: mapped, duplicate });
        }
        Taken::In { before }
    }

    /// Returns the DSN of the payload by a mapping with a checksum, if checksums are in use. Other
    /// payload is not accepted.
    fn checked_dsn(
        &mut self,
        data: &DataLevel,
        index: usize,
        segment: &Segment,
        seq: Ssn,
    ) -> Result<Option<Dsn>, Noted> {
        let range = SubflowRange::with_len(seq, u64::from(segment.payload.len()));
        let told = data.checked(segment, seq);
        let subflow = &mut self.subflows[index];
        if subflow.rx.has(range) {
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
        Ok(verifier.dsn(range))
    }

    /// Handles payload without a known mapping. Returns true if this happened so often that the
    /// subflow must be reset; its path is then barred.
    fn distrusts(&mut self, data: &DataLevel, index: usize, segment: &Segment, seq: Ssn) -> bool {
        let subflow = &mut self.subflows[index];
        let end = seq + u64::from(segment.payload.len());
        let in_order = seq <= subflow.rx.nxt() && end > subflow.rx.nxt();
        if !in_order || data.agreed.mode() != Mode::Multipath || subflow.state == State::Closed {
            return false;
        }
        let unmapped = subflow.status.on_unmapped();
        let distrusted = unmapped >= MAX_UNMAPPED_SEGMENTS;
        if distrusted {
            self.joins.bar(subflow.address.path());
        }
        distrusted
    }

    /// Adapts the receive window to the reader's pace.
    #[inline(always)]
    pub(crate) fn retune(&self, data: &mut DataLevel, now: Time) {
        if data.recv.is_tuned(now) {
            let longest = self.subflows.iter().filter_map(|it| it.sender.rtt.srtt()).max();
            let (mss, subflows) = (self.mss(), self.subflows.len());
            data.recv.retune(now, longest.unwrap_or_default(), mss, subflows);
        }
    }

    /// Returns the range of data that the payload carries, if it has a mapping.
    pub(crate) fn mapped(
        &self,
        data: &DataLevel,
        index: usize,
        segment: &Segment,
        seq: Ssn,
    ) -> Option<Dsn> {
        match data.agreed.mode() {
            _ if data.receives_plain() => dsn_in_step(seq),
            Mode::Offered => None,
            Mode::Multipath | Mode::Plain => {
                if let Some(Mptcp::Capable(capable)) = segment.options.mptcp.as_deref()
                    && capable.data_len.is_some()
                    && !self.subflows[index].shake.join
                {
                    return dsn_in_step(seq);
                }
                let range = SubflowRange::with_len(seq, u64::from(segment.payload.len()));
                let mapped = match &segment.options.dss {
                    Some(Dss { mapping: Some(map), data_fin, .. }) => {
                        data.read_mapping(map, *data_fin, seq)?
                    }
                    // A middlebox has split it from the segment that carried the mapping.
                    _ => self.subflows[index].mapping_of(range)?,
                };
                if !mapped.seq.covers(range) {
                    return None;
                }
                mapped.dsn.checked_add(seq.checked_sub(mapped.seq.start)?)
            }
        }
    }

    /// Notes a segment for a buffer that is counted in memory.
    #[inline(always)]
    pub(crate) fn note_memory(
        &mut self,
        data: &mut DataLevel,
        now: Time,
        index: usize,
        segment: &Segment,
    ) {
        let Some(memory) = data.recv.memory() else { return };
        let subflow = &mut self.subflows[index];
        let echo = segment.options.timestamps.map_or(0, |stamps| stamps.echo);
        let age = subflow.clock.at(now).wrapping_sub(echo);
        let len = u64::from(segment.payload.len());
        if memory.on_segment(subflow.id, len, echo, Span::from_millis(u64::from(age))) {
            subflow.rx.acknowledge_soon();
        }
    }

    /// Updates the connection after data was accepted on the subflow at `index`. Data below
    /// `before` was already readable.
    #[inline(always)]
    pub(crate) fn after_data(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        now: Time,
        (index, before): (usize, Dsn),
    ) {
        if data.recv.nxt() > before {
            notices.tell_user();
            self.retune(data, now);
            if data.recv.finished() {
                // The last bytes before a DATA_FIN that arrived earlier.
                self.on_peer_finished(data, notices, now);
                self.subflows[index].pending.add_ack();
            }
        }
    }

    /// Processes a DATA_FIN.
    pub(crate) fn take_data_fin(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        now: Time,
        (index, dss): (usize, &Dss),
    ) {
        if data.receives_plain() {
            return;
        }
        self.subflows[index].pending.add_ack_if(dss.mapping.is_some());
        if data.take_data_fin(dss) {
            self.on_peer_finished(data, notices, now);
        }
    }

    /// Returns the sequence number of a FIN: of this segment, whose first byte is `seq`, or of an
    /// earlier one that is now in order.
    pub(crate) fn fin_of(&mut self, index: usize, segment: &Segment, seq: Ssn) -> Option<Ssn> {
        match segment.flags.has(Flags::FIN) {
            true => Some(seq + u64::from(segment.payload.len())),
            false => self.subflows[index].rx.fin_due(),
        }
    }
}

/// The result for a payload.
pub(crate) enum Taken {
    Nothing,
    /// It was accepted; before, data below `before` was readable.
    In {
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
