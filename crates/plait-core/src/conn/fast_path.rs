//! The segment that comes next, as nearly all do (header prediction): one look at its fields tells
//! that data in order, or an acknowledgement alone, is all there is to it, and what else it could be is
//! not asked one by one. Whatever is not as expected takes the long way, from its beginning.

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Detail, Event};
use crate::paths::Paths;
use crate::tcp::clock::before;
use crate::tcp::subflow::Subflow;
use plait_base::DataRange;
use plait_wire::{DataAck, Flags, Mapping, Segment};

/// The flags that tell more than data and an acknowledgement, and the one that must be there.
const TELLING: u8 = Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0 | Flags::ACK.0;

impl Connection {
    /// Takes in a segment for the subflow at `index`, if it is the one that is expected. False where
    /// it is not; then nothing has changed.
    #[inline(never)]
    pub(super) fn try_fast_path(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
    ) -> bool {
        let Some(dss) = &segment.options.dss else { return false };
        let (false, Some(DataAck { value, long: false })) = (dss.data_fin, dss.data_ack) else {
            return false;
        };
        let alone = segment.flags.0 & TELLING == Flags::ACK.0 && segment.options.mptcp.is_none();
        if !alone || !self.data.is_settled(&self.spec.config) {
            return false;
        }
        let subflow = &self.paths.subflows[index];
        let next = subflow.shake.peer_wire(subflow.rx.nxt());
        if segment.seq != next || !is_steady(subflow) || is_old(subflow, segment) {
            return false;
        }
        match &dss.mapping {
            None if segment.payload.is_empty() => {
                let una = subflow.tx.una();
                let ack = subflow.shake.own_seq(segment.ack, una);
                if ack < una || ack > subflow.tx.nxt() {
                    return false;
                }
                self.data.agreed.on_dss();
                note_stamp(&mut self.paths.subflows[index], segment);
                let edge = self.data.keys.own.read_low(value as u32, self.data.queue.una());
                self.on_acknowledgements(ctx, index, segment, ack, Some(edge));
                true
            }
            Some(map) => {
                self.tells_no_news(index, segment, value as u32) && {
                    self.take_next(ctx, index, segment, map)
                }
            }
            None => false,
        }
    }

    /// Whether a segment with data repeats what is known of our own data: it is acknowledged as far
    /// as before, up to `acked` (the low half of a DSN on the wire), and the window ends where it did.
    #[inline(always)]
    fn tells_no_news(&self, index: usize, segment: &Segment, acked: u32) -> bool {
        let subflow = &self.paths.subflows[index];
        let (una, window) =
            (self.data.queue.una(), u64::from(segment.window) << subflow.shake.peer_scale);
        segment.ack == subflow.shake.wire(subflow.tx.una())
            && segment.options.sack.count() == 0
            && acked == self.data.keys.own.wire(una) as u32
            && una + window <= self.data.window.end()
            && window <= self.data.window.largest()
    }

    /// Takes in the data of the segment that comes next, if `map` maps all of it and nothing else.
    #[inline(always)]
    fn take_next(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
        map: &Mapping,
    ) -> bool {
        let Connection { data, paths: Paths { subflows, ack_unit, .. }, .. } = self;
        let DataLevel { recv, keys, agreed, .. } = data;
        let subflow = &mut subflows[index];
        let (seq, len) = (subflow.rx.nxt(), u64::from(map.len));
        if map.long || map.ssn != seq.low() || len == 0 || segment.payload.len() != map.len.into() {
            return false;
        }
        let before = recv.nxt();
        let dsn = keys.theirs.read_low(map.dsn as u32, before);
        let Some(end) = dsn.checked_add(len) else { return false };
        // Where memory is short, more is looked at.
        if recv.is_crowded() || end > recv.right_edge() || ctx.memory_limit.is_some() {
            return false;
        }
        agreed.on_dss();
        note_stamp(subflow, segment);
        subflow.status.unmapped = 0;
        let (now, log, id) = (ctx.now, &mut ctx.log, subflow.id);
        let due = subflow.rx.accept_next(dsn, len, u64::from(*ack_unit));
        subflow.note_due(now, due);
        let new = recv.insert(now, dsn, &segment.payload, now, id, &mut |run| {
            log.emit(run.event());
        });
        if log.detail == Detail::Everything {
            let data = DataRange::new(dsn, end);
            log.emit(Event::DataArrived { subflow: id, data, duplicate: len - new });
        }
        self.after_data(now, index, before);
        true
    }
}

/// The peer's clock, to be echoed.
#[inline(always)]
fn note_stamp(subflow: &mut Subflow, segment: &Segment) {
    if let Some(stamp) = &segment.options.timestamps
        && subflow.shake.offer.timestamps
    {
        subflow.shake.ts_recent = stamp.value;
    }
}

/// Whether a subflow is neither beginning nor ending nor silent, and nothing of the peer's waits on it.
#[inline(always)]
fn is_steady(subflow: &Subflow) -> bool {
    debug_assert!(subflow.verifier.is_none());
    let status = &subflow.status;
    let answered = subflow.pending.unanswered == 0 && !status.pf;
    subflow.state.takes_data() && status.joined && answered && subflow.rx.is_in_order()
}

/// Whether the segment is older than one that was read (RFC 7323 section 5.3).
#[inline(always)]
fn is_old(subflow: &Subflow, segment: &Segment) -> bool {
    let shake = &subflow.shake;
    let stamps = segment.options.timestamps.as_ref();
    stamps.is_some_and(|it| shake.offer.timestamps && before(it.value, shake.ts_recent))
}
