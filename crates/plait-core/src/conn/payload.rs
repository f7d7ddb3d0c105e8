//! What a segment carries: data with its mapping, the end of the data, the end of the subflow.

use super::fallback::dsn_in_step;
use super::{Connection, Context, Mode};
use crate::event::{Detail, Event};
use crate::tcp::pending::Cause;
use crate::tcp::state::Step;
use crate::tcp::subflow::MappedRange;
use plait_base::{DataRange, Dsn, Span, Ssn, SubflowRange, Time};
use plait_wire::{Dss, Flags, Mapping, Mptcp, Payload, ResetReason, Segment};

/// Keeps what few connections do off the way of all the others.
#[cold]
#[inline(never)]
fn aside<R>(f: impl FnOnce() -> R) -> R {
    f()
}

impl Connection {
    /// The range of data that the payload carries, if it is told.
    fn mapped(&self, index: usize, segment: &Segment, seq: Ssn) -> Option<Dsn> {
        match self.mode {
            _ if self.receives_plain() => dsn_in_step(seq),
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
                        self.read_mapping(map, *data_fin, seq)?
                    }
                    // A middlebox has cut it from the segment that told the mapping.
                    _ => self.subflows[index].mapping_of(range)?,
                };
                if !mapped.seq.covers(range) {
                    return None;
                }
                mapped.dsn.checked_add(seq.checked_sub(mapped.seq.start)?)
            }
        }
    }

    /// A mapping in our own numbers. `seq` is where the segment that tells it starts; a DATA_FIN with
    /// it (`fin`) counts in its length and takes a DSN, but no byte of the subflow (RFC 8684 section
    /// 3.3.3).
    fn read_mapping(&self, map: &Mapping, fin: bool, seq: Ssn) -> Option<MappedRange> {
        let dsn = self.mapped_dsn(map);
        let start = Ssn::from_low(map.ssn, seq);
        let bytes = u64::from(map.len).checked_sub(u64::from(fin))?;
        let end = start.checked_add(bytes)?;
        Some(MappedRange { seq: SubflowRange::new(start, end), dsn })
    }

    pub(super) fn on_payload(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
        seq: Ssn,
    ) {
        if let Some(dss) = &segment.options.dss
            && dss.data_fin
            && !self.receives_plain()
        {
            self.on_data_fin(ctx.now, index, dss);
        }
        let len = u64::from(segment.payload.len());
        if len == 0 {
            // A probe of our window repeats an old sequence number.
            let subflow = &mut self.subflows[index];
            subflow.pending.ack |= seq < subflow.rx.nxt() && !segment.flags.has(Flags::FIN);
            return;
        }
        if !self.subflows[index].state.takes_data() {
            // Beyond the peer's FIN (RFC 9293 section 3.10.7.4: the text is ignored).
            self.subflows[index].pending.ack = true;
            return;
        }
        if let Some(Dss { mapping: Some(map), data_fin, .. }) = &segment.options.dss
            && u64::from(map.len) > len
            && let Some(mapped) = self.read_mapping(map, *data_fin, seq)
            && !self.subflows[index].remember_mapping(mapped)
        {
            return self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Mptcp));
        }
        let dsn = if self.checksums && !self.receives_plain() {
            self.checked_dsn(ctx, index, segment, seq)
        } else {
            self.mapped(index, segment, seq)
        };
        match dsn {
            Some(dsn) => self.take_in(ctx, index, segment, seq, dsn),
            None => self.on_unmapped(ctx, index, segment, seq),
        }
    }

    /// Takes in the payload of a segment whose first byte is `seq` of the subflow and `dsn` of the
    /// data, as far as both levels have room for it.
    fn take_in(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
        seq: Ssn,
        dsn: Dsn,
    ) {
        let len = u64::from(segment.payload.len());
        // Below the first byte or beyond the last number: no place in the data.
        let Some(end) = dsn.checked_add(len) else { return };
        let data = DataRange::new(dsn, end);
        let range = SubflowRange::with_len(seq, len);
        let beside = seq < self.subflows[index].rx.nxt() || self.subflows[index].rx.has_hole();
        if beside && !self.receives_plain() && self.subflows[index].rx.contradicts(range, dsn) {
            return self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Mptcp));
        }
        // What does not fit the window is discarded at both levels, so that it comes again.
        let crowded = self.recv.is_crowded() && data.start > self.recv.nxt();
        let short = ctx.memory_limit.is_some_and(|it| self.exceeds(it.unread, index, seq, data));
        if crowded || short || !self.recv.fits(data) {
            self.subflows[index].pending.ack = true;
            return;
        }
        self.note_memory(ctx.now, index, segment);
        let unit = u64::from(self.ack_unit);
        let (now, log) = (ctx.now, &mut ctx.log);
        let (subflow, recv) = (&mut self.subflows[index], &mut self.recv);
        subflow.status.unmapped = 0;
        let id = subflow.id;
        // No measure reads of it.
        let told = log.detail == Detail::Everything && !subflow.rx.has(range);
        let before = recv.nxt();
        let mut duplicate = 0;
        let mut deliver = |dsn: Dsn, payload: Payload, at: Time| {
            duplicate += u64::from(payload.len());
            duplicate -= recv.insert(now, dsn, &payload, at, id, &mut |run| {
                log.emit(run.event());
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
            ctx.emit(Event::DataArrived { subflow: id, data, duplicate });
        }
        if self.checksums {
            self.on_verified(ctx, index);
        }
        self.after_data(now, index, before);
    }

    /// Notes a segment for a buffer that is counted in memory.
    #[inline(always)]
    pub(super) fn note_memory(&mut self, now: Time, index: usize, segment: &Segment) {
        let Some(memory) = self.recv.memory() else { return };
        let subflow = &mut self.subflows[index];
        let echo = segment.options.timestamps.map_or(0, |stamps| stamps.echo);
        let age = subflow.clock.at(now).wrapping_sub(echo);
        let len = u64::from(segment.payload.len());
        if memory.on_segment(subflow.id, len, echo, Span::from_millis(u64::from(age))) {
            subflow.rx.acknowledge_soon();
        }
    }

    /// Data was taken in, and it may be more than `before` that can be read.
    #[inline(always)]
    pub(super) fn after_data(&mut self, now: Time, index: usize, before: Dsn) {
        if self.recv.nxt() > before {
            self.news = true;
            if self.recv.is_tuned(now) {
                let longest = self.subflows.iter().filter_map(|it| it.rtt.srtt()).max();
                let (mss, subflows) = (u64::from(self.mss), self.subflows.len());
                self.recv.retune(now, longest.unwrap_or_default(), mss, subflows);
            }
            if self.recv.finished() {
                // The last bytes before a DATA_FIN that came ahead of them.
                self.on_peer_finished(now);
                self.subflows[index].pending.ack = true;
            }
        }
    }

    /// The peer's data ends; acted upon when everything below is here (RFC 8684 section 3.3.3).
    #[cold]
    fn on_data_fin(&mut self, now: Time, index: usize, dss: &Dss) {
        let Some(map) = dss.mapping else { return };
        let first = self.keys.theirs.read_low(map.dsn as u32, self.recv.nxt());
        self.subflows[index].pending.ack = true;
        // An end before what is here or beyond the window is none, and must not keep the true one
        // out (numbers before the first byte wrap to the end of the space).
        let Some(end) = first.checked_add(u64::from(map.len).saturating_sub(1)) else { return };
        let right = self.fin_is_right(first, &map);
        if !right || end < self.recv.nxt() || end > self.recv.right_edge() {
            return;
        }
        self.recv.set_fin(end);
        if self.recv.finished() {
            self.on_peer_finished(now);
        }
    }

    #[cold]
    pub(super) fn on_fin(&mut self, ctx: &mut Context<'_>, index: usize, seq: Ssn) {
        let plain = self.receives_plain();
        let subflow = &mut self.subflows[index];
        subflow.pending.ack = true;
        if !subflow.rx.take_fin(seq) {
            return;
        }
        self.on_leave(ctx, index, Step::FinReceived);
        if plain && let Some(end) = dsn_in_step(seq) {
            self.recv.set_fin(end);
            self.on_peer_finished(ctx.now);
        }
    }
}
