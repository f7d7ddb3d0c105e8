//! Data to send, by DSN: unsent, assigned to a subflow, sent and not DATA_ACKed, or queued for
//! reinjection.

mod plan;
mod size;

use crate::data::memory_usage::MemoryUsage;
use crate::data::send_memory::SendMemory;
use crate::seldom::Seldom;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use plait_base::{DataRange, DataRangeSet, Dsn};
use plait_base::{SubflowId, SubflowSet, reserve_ahead};
use plait_sched::{LeftEdge, QueueView, SentRange};
use plait_wire::Payload;

/// Data that is sent more than once.
#[derive(Debug, Default)]
struct Repeats {
    reinject: DataRangeSet,
    /// Data sent again and not DATA_ACKed.
    again: DataRangeSet,
    /// Sizes of the send buffers, if they are counted in memory. They are stored here because most
    /// connections have none, and an idle one frees this memory.
    memory: Option<Box<SendMemory>>,
}

#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    /// First DSN not DATA_ACKed.
    una: Dsn,
    /// Highest DSN sent plus one.
    nxt: Dsn,
    /// DSN after the last byte written.
    written: Dsn,
    /// Size of the send buffer in bytes.
    size: u64,
    unsent: DataRangeSet,
    sent: VecDeque<SentRange>,
    /// Allocated when more than a few segments are in flight.
    repeats: Option<Box<Repeats>>,
    /// The segment at the left edge before the last DATA_ACK that advanced it.
    edge: Option<LeftEdge>,
    /// Assigned ranges by subflow.
    assigned: Seldom<DataRangeSet>,
    /// Bytes assigned and not sent, over all subflows.
    planned: u64,
    /// Bytes written, by DSN of their first byte; pattern bytes are not stored.
    #[expect(clippy::box_collection, reason = "a queue is four words, a pointer one")]
    store: Option<Box<VecDeque<(Dsn, Payload)>>>,
    /// DSN below which the store has been freed.
    released: Dsn,
}

impl SendQueue {
    /// Returns the first DSN that is not DATA_ACKed.
    pub(crate) const fn una(&self) -> Dsn {
        self.una
    }

    /// Returns the DSN after the last byte sent.
    pub(crate) const fn nxt(&self) -> Dsn {
        self.nxt
    }

    pub(crate) const fn written(&self) -> Dsn {
        self.written
    }

    /// Returns the bytes written and not DATA_ACKed, which fill the send buffer.
    pub(crate) fn occupied(&self) -> u64 {
        self.written - self.una
    }

    /// Returns the memory of data that is not DATA_ACKed. A piece is kept until all of it is DATA_ACKed.
    pub(crate) fn memory_usage(&self) -> MemoryUsage {
        let store = self.store.as_deref();
        let first = store.and_then(|it| it.front()).map_or(self.una, |(start, _)| *start);
        let pieces = store.map_or(MemoryUsage::default(), MemoryUsage::pieces);
        MemoryUsage::bytes(self.written - first.min(self.una))
            + pieces
            + MemoryUsage::pieces(&self.sent)
    }

    /// Returns the bytes neither sent nor assigned.
    pub(crate) const fn unsent(&self) -> u64 {
        self.unsent.len()
    }

    /// Returns the bytes that were sent at least once, from the first byte of the connection.
    pub(crate) const fn sent_once(&self) -> u64 {
        self.written.get() - self.unsent.len() - self.planned
    }

    /// Returns the bytes assigned to `subflow` and not sent.
    pub(crate) fn assigned(&self, subflow: SubflowId) -> u64 {
        match self.planned {
            0 => 0,
            _ => self.assigned.get(subflow.index()).map_or(0, DataRangeSet::len),
        }
    }

    /// Returns true if everything written was sent at least once.
    pub(crate) const fn is_all_sent(&self) -> bool {
        self.unsent.is_empty() && self.planned == 0
    }

    /// Returns true if everything written was DATA_ACKed.
    pub(crate) fn is_drained(&self) -> bool {
        self.una == self.written
    }

    /// Returns the ranges sent and not DATA_ACKed, in order.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &SentRange> {
        self.sent.iter()
    }

    /// Returns true if all of `range` is queued for reinjection.
    pub(crate) fn reinjects(&self, range: DataRange) -> bool {
        self.repeats.as_ref().is_some_and(|it| it.reinject.covers(range))
    }

    /// Returns the state of repeated data, mutably.
    fn repeats(&mut self) -> &mut Repeats {
        self.repeats.get_or_insert_default()
    }

    /// Appends `len` pattern bytes.
    pub(crate) fn write_pattern(&mut self, len: u64) {
        self.unsent.insert(DataRange::with_len(self.written, len));
        self.written += len;
    }

    /// Appends bytes.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            let piece = (self.written, Payload::from_bytes(bytes));
            self.store.get_or_insert_default().push_back(piece);
            self.write_pattern(bytes.len() as u64);
        }
    }

    /// Returns the first contiguous unsent bytes, at most `len`.
    pub(crate) fn first_unsent(&self, len: u64) -> Option<DataRange> {
        self.unsent.nth(0, len)
    }

    /// Returns how many bytes from `dsn` on are stored in one piece.
    pub(crate) fn in_one_piece(&self, dsn: Dsn) -> u64 {
        let Some(store) = &self.store else { return u64::MAX };
        let at = store.partition_point(|(start, _)| *start <= dsn);
        let piece = at.checked_sub(1).and_then(|at| store.get(at));
        piece.map_or(u64::MAX, |(start, bytes)| {
            (*start + u64::from(bytes.len())).saturating_sub(dsn)
        })
    }

    /// Returns the bytes of `range` as a payload.
    #[inline]
    pub(crate) fn payload(&self, range: DataRange) -> Payload {
        if range.is_empty() {
            return Payload::Empty;
        }
        if self.released == Dsn::ZERO && self.store.is_none() {
            return Payload::Pattern { offset: range.start.get(), len: range.len() as u32 };
        }
        self.stored(range)
    }

    fn stored(&self, range: DataRange) -> Payload {
        if range.start < self.released {
            return self.part_released(range);
        }
        let pattern = Payload::Pattern { offset: range.start.get(), len: range.len() as u32 };
        let Some(store) = &self.store else { return pattern };
        let at = store.partition_point(|(start, _)| *start <= range.start);
        let Some((start, chunk)) = at.checked_sub(1).and_then(|at| store.get(at)) else {
            return pattern;
        };
        let skip = range.start - *start;
        if skip + range.len() <= u64::from(chunk.len()) {
            return chunk.slice(skip as u32, range.len() as u32);
        }
        let mut joined = Vec::with_capacity(range.len() as usize);
        for (start, chunk) in store.iter().skip(at - 1) {
            if *start >= range.end {
                break;
            }
            let from = range.start.saturating_sub(*start) as u32;
            let piece = chunk.slice(from, (range.len() - joined.len() as u64) as u32);
            joined.extend_from_slice(piece.bytes().unwrap_or(&[]));
        }
        Payload::from_bytes(&joined)
    }

    /// Returns a payload for a range that is partly or wholly DATA_ACKed by way of another subflow.
    /// The peer drops the DATA_ACKed bytes, so their value is arbitrary; the others must be right.
    fn part_released(&self, range: DataRange) -> Payload {
        let kept = self.payload(DataRange::new(self.released.min(range.end), range.end));
        match kept {
            Payload::Pattern { len, .. } if len > 0 => {
                Payload::Pattern { offset: range.start.get(), len: range.len() as u32 }
            }
            kept => {
                let mut bytes = alloc::vec![0; (range.len() - u64::from(kept.len())) as usize];
                bytes.extend_from_slice(kept.bytes().unwrap_or(&[]));
                Payload::from_bytes(&bytes)
            }
        }
    }

    /// Takes the segment of at most `len` bytes that starts `offset` bytes into the unsent data.
    #[inline(always)]
    pub(crate) fn take_new(
        &mut self,
        offset: u64,
        len: u64,
        subflow: SubflowId,
    ) -> Option<DataRange> {
        let range = match offset {
            0 => self.unsent.take_first(len)?,
            _ => {
                let range = self.unsent.nth(offset, len)?;
                self.unsent.remove(range);
                range
            }
        };
        self.note_sent(range, subflow);
        Some(range)
    }

    fn note_sent(&mut self, range: DataRange, subflow: SubflowId) {
        self.make_room();
        if range.start < self.nxt {
            return self.insert_sent(range, subflow);
        }
        self.nxt = range.end;
        // Built in place: copying an entry just written waits for its narrow stores.
        self.sent.push_back(SentRange { range, carried: SubflowSet::one(subflow), first: subflow });
    }

    #[cold]
    #[inline(never)]
    fn insert_sent(&mut self, range: DataRange, subflow: SubflowId) {
        let at = self.sent.partition_point(|sent| sent.range.start < range.start);
        self.sent
            .insert(at, SentRange { range, carried: SubflowSet::one(subflow), first: subflow });
    }

    /// Reserves capacity for one more entry, and with several entries for all reinjections after a
    /// possible later timeout.
    #[inline]
    fn make_room(&mut self) {
        if self.sent.len() == self.sent.capacity() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        if !self.sent.is_empty() {
            self.repeats().reinject.reserve(64);
            self.repeats().again.reserve(64);
        }
        reserve_ahead(&mut self.sent, 512);
    }

    /// Restarts the connection: nothing counts as sent.
    pub(crate) fn restart(&mut self) {
        if let Some(memory) = self.memory() {
            (0..SubflowId::MAX).for_each(|id| memory.reset(SubflowId(id as u8)));
        }
        self.nxt = self.una;
        self.sent.clear();
        self.forget_repeats();
        self.assigned.clear();
        self.planned = 0;
        self.unsent.clear();
        self.unsent.insert(DataRange::new(self.una, self.written));
    }

    /// Frees the memory when everything is DATA_ACKed.
    pub(crate) fn give_back(&mut self) {
        self.sent = VecDeque::new();
        self.store = None;
        self.unsent = DataRangeSet::new();
        self.forget_repeats();
        self.assigned.clear();
    }

    /// Returns the place of the first range that ends above `dsn`. The search starts at the left edge in growing
    /// steps, because most callers look for data near it.
    fn index_above(&self, dsn: Dsn) -> usize {
        let below = |at: usize| self.sent.get(at).is_some_and(|sent| sent.range.end <= dsn);
        let mut most = 1;
        while below(most - 1) {
            most *= 2;
        }
        let (mut low, mut high) = (most / 2, (most - 1).min(self.sent.len()));
        while low < high {
            let middle = low.midpoint(high);
            if below(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Notes that `range` was sent on `subflow` too. Sent ranges are split at its ends, so that
    /// each part has its own set of carriers.
    pub(crate) fn mark_carried(&mut self, range: DataRange, subflow: SubflowId) {
        self.cut(range.start);
        self.cut(range.end);
        let mut at = self.index_above(range.start);
        while let Some(sent) = self.sent.get_mut(at).filter(|sent| sent.range.start < range.end) {
            sent.carried.insert(subflow);
            at += 1;
        }
        if let Some(repeats) = &mut self.repeats {
            repeats.reinject.remove(range);
        }
    }

    /// Notes that `range` is sent again; its acknowledgement does not show the order of sending.
    pub(crate) fn note_again(&mut self, range: DataRange) {
        let range = range.intersect(DataRange::new(self.una, self.nxt));
        self.repeats().again.insert(range);
    }

    /// Returns the segment at the left edge before the last DATA_ACK that advanced it.
    pub(crate) const fn last_edge(&self) -> Option<LeftEdge> {
        self.edge
    }

    fn cut(&mut self, dsn: Dsn) {
        let at = self.index_above(dsn);
        let Some(sent) = self.sent.get_mut(at).filter(|sent| sent.range.start < dsn) else {
            return;
        };
        let tail = SentRange { range: DataRange::new(dsn, sent.range.end), ..*sent };
        sent.range.end = dsn;
        self.make_room();
        self.sent.insert(at + 1, tail);
    }

    /// Splits every sent range into ranges of at most `most` bytes.
    #[cold]
    pub(crate) fn cut_to(&mut self, most: u64) {
        let whole = core::mem::take(&mut self.sent);
        self.sent.reserve(2 * whole.len());
        for mut rest in whole {
            while rest.range.len() > most {
                let range = DataRange::with_len(rest.range.start, most);
                self.sent.push_back(SentRange { range, ..rest });
                rest.range.start = range.end;
            }
            self.sent.push_back(rest);
        }
    }

    /// Clears the carriers of `range` when every subflow has carried it, so that any may carry it again.
    pub(crate) fn forget_carried(&mut self, range: DataRange) {
        self.cut(range.start);
        self.cut(range.end);
        let mut at = self.index_above(range.start);
        while let Some(sent) = self.sent.get_mut(at).filter(|sent| sent.range.start < range.end) {
            sent.carried = SubflowSet::EMPTY;
            at += 1;
        }
    }

    /// Removes an ended subflow, whose id may be reused.
    pub(crate) fn forget_subflow(&mut self, subflow: SubflowId) {
        if let Some(memory) = self.memory() {
            memory.reset(subflow);
        }
        for sent in &mut self.sent {
            sent.carried.remove(subflow);
        }
    }

    /// Queues the sent and not DATA_ACKed part of `range` for reinjection, without data that one of `carriers` carries.
    pub(crate) fn queue_reinjection(&mut self, range: DataRange, carriers: SubflowSet) {
        let range = range.intersect(DataRange::new(self.una, self.nxt));
        if range.is_empty() {
            return;
        }
        // Gaps in the sent data (data left for another subflow) are not reinjected.
        let mut at = self.index_above(range.start);
        while let Some(sent) = self.sent.get(at).filter(|sent| sent.range.start < range.end) {
            if sent.carried.0 & carriers.0 == 0 {
                let repeats = self.repeats.get_or_insert_default();
                repeats.reinject.insert(sent.range.intersect(range));
            }
            at += 1;
        }
    }

    /// Queues data for reinjection that no subflow of `open` carries. This includes data
    /// acknowledged on an ended subflow, because only a DATA_ACK proves that the peer has it (RFC
    /// 8684 section 3.3.6).
    pub(crate) fn reinject_orphans(&mut self, open: SubflowSet) {
        for sent in self.sent.iter().filter(|sent| sent.carried.0 & open.0 == 0) {
            self.repeats.get_or_insert_default().reinject.insert(sent.range);
        }
    }

    /// Returns the first range queued for reinjection.
    #[inline(always)]
    pub(crate) fn next_reinjection(&self) -> Option<SentRange> {
        self.reinjection(self.repeats.as_ref()?.reinject.first()?)
    }

    /// Returns the front of `first` that was carried by the same subflows.
    #[inline(never)]
    fn reinjection(&self, first: DataRange) -> Option<SentRange> {
        let sent = *self.sent.get(self.index_above(first.start))?;
        Some(SentRange { range: sent.range.intersect(first), ..sent })
    }

    /// Advances the left edge to `dsn` and returns the number of freed bytes.
    #[inline]
    pub(crate) fn on_data_ack(&mut self, dsn: Dsn) -> u64 {
        // Most segments carry data the other way and repeat the last DATA_ACK.
        if dsn <= self.una { 0 } else { self.free(dsn.min(self.nxt)) }
    }

    fn free(&mut self, dsn: Dsn) -> u64 {
        let freed = dsn.saturating_sub(self.una);
        if freed == 0 {
            return 0;
        }
        let again = self.repeats.as_ref().map(|it| &it.again).filter(|it| !it.is_empty());
        let again = again.is_some_and(|it| it.containing(self.una).is_some());
        self.edge = self.sent.front().map(|sent| LeftEdge { first: sent.first, again });
        self.una = dsn;
        while let Some(front) = self.sent.front_mut() {
            if front.range.end > dsn {
                front.range.start = front.range.start.max(dsn);
                break;
            }
            self.sent.pop_front();
        }
        if let Some(repeats) = &mut self.repeats {
            repeats.reinject.remove_below(dsn);
            repeats.again.remove_below(dsn);
        }
        let Some(store) = &mut self.store else { return freed };
        while let Some((start, chunk)) = store.front() {
            let end = *start + u64::from(chunk.len());
            if end > dsn {
                break;
            }
            self.released = end;
            store.pop_front();
        }
        freed
    }
}

impl QueueView for SendQueue {
    fn send_memory(&self, subflow: SubflowId) -> Option<u64> {
        self.sizes().map(|memory| memory.limit(subflow))
    }

    fn sent_from(&self, dsn: Dsn) -> Option<SentRange> {
        self.sent.get(self.index_above(dsn)).copied()
    }

    fn uncarried_from(&self, dsn: Dsn, subflow: SubflowId) -> Option<SentRange> {
        let above = self.sent.range(self.index_above(dsn)..);
        above.copied().find(|sent| !sent.carried.contains(subflow))
    }

    fn unsent_at(&self, offset: u64, len: u64) -> Option<DataRange> {
        self.unsent.nth(offset, len)
    }

    fn assigned_from(&self, dsn: Dsn) -> Option<(DataRange, SubflowId)> {
        if self.planned == 0 {
            return None;
        }
        let above = |(set, id): (&DataRangeSet, u8)| Some((set.next_above(dsn)?, SubflowId(id)));
        self.assigned.iter().zip(0..).filter_map(above).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BufferSizes;

    const FAST: SubflowId = SubflowId(0);
    const SLOW: SubflowId = SubflowId(1);

    #[test]
    fn the_first_range_above_a_sequence_number_is_found() {
        let mut queue = SendQueue::new(&BufferSizes::default());
        for count in 0..70 {
            for at in 0..count * 10 + 15 {
                let place = queue.sent.partition_point(|it| it.range.end <= Dsn::new(at));
                assert_eq!(queue.index_above(Dsn::new(at)), place, "{count} ranges, {at}");
            }
            let range = DataRange::with_len(Dsn::new(count * 10), 10);
            let carried = SubflowSet::EMPTY;
            queue.sent.push_back(SentRange { range, first: FAST, carried });
        }
    }

    /// The search in one pass finds what a search for each range finds.
    #[test]
    fn the_first_range_that_a_subflow_has_not_carried_is_found() {
        let mut queue = SendQueue::new(&BufferSizes::default());
        for count in 0..12 {
            let range = DataRange::with_len(Dsn::new(count * 10), 10);
            let carried = SubflowSet((count % 4) as u8);
            queue.sent.push_back(SentRange { range, first: FAST, carried });
        }
        for at in 0..130 {
            for subflow in [FAST, SLOW] {
                let above = queue.sent.iter().filter(|it| it.range.end > Dsn::new(at));
                let place = above.copied().find(|it| !it.carried.contains(subflow));
                assert_eq!(queue.uncarried_from(Dsn::new(at), subflow), place, "{at}, {subflow}");
            }
        }
    }

    #[test]
    fn the_buffer_grows_to_twice_the_windows_and_never_shrinks() {
        let sizes =
            |first| BufferSizes { sndbuf: 50_000, sndbuf_first: first, ..BufferSizes::default() };
        let mut queue = SendQueue::new(&sizes(Some(10_000)));
        for (windows, size) in [(4_000, 10_000), (8_000, 16_000), (1, 16_000), (u64::MAX, 50_000)] {
            queue.expand(windows, 50_000);
            assert_eq!(queue.size(), size, "{windows}");
        }
        for first in [None, Some(50_000), Some(60_000)] {
            assert_eq!(SendQueue::new(&sizes(first)).size(), 50_000);
        }
    }

    #[test]
    fn data_taken_ahead_leaves_a_hole_that_is_sent_later() {
        let mut queue = SendQueue::default();
        queue.write_pattern(1_000);
        assert_eq!(queue.take_new(500, 100, SLOW), Some(DataRange::between(500, 600)));
        assert_eq!(queue.take_new(0, 400, FAST), Some(DataRange::between(0, 400)));
        assert_eq!(queue.take_new(0, 400, FAST), Some(DataRange::between(400, 500)));
        assert_eq!(queue.take_new(0, 400, FAST), Some(DataRange::between(600, 1_000)));
        assert_eq!(queue.unsent(), 0);
        let starts: Vec<u64> = queue.sent().map(|sent| sent.range.start.get()).collect();
        assert_eq!(starts, [0, 400, 500, 600]);
    }

    #[test]
    fn reinjection_is_sorted_merged_and_dropped_when_acknowledged() {
        let mut queue = SendQueue::default();
        queue.write_pattern(300);
        for _ in 0..3 {
            queue.take_new(0, 100, FAST);
        }
        queue.queue_reinjection(DataRange::between(200, 300), SubflowSet::EMPTY);
        queue.queue_reinjection(DataRange::between(0, 100), SubflowSet::EMPTY);
        queue.queue_reinjection(DataRange::between(0, 100), SubflowSet::EMPTY);
        assert_eq!(
            queue.next_reinjection().map(|sent| sent.range),
            Some(DataRange::between(0, 100))
        );
        assert_eq!(queue.on_data_ack(Dsn::new(150)), 150);
        let next = queue.next_reinjection().unwrap();
        assert_eq!(
            (next.range, next.carried),
            (DataRange::between(200, 300), SubflowSet::one(FAST))
        );
        queue.mark_carried(next.range, SLOW);
        assert!(queue.next_reinjection().is_none());
        assert!(queue.sent_from(Dsn::new(200)).unwrap().carried.contains(SLOW));
    }

    /// The rest of the same segment still counts as carried.
    #[test]
    fn a_part_of_a_segment_may_be_forgotten() {
        let mut queue = SendQueue::default();
        queue.write_pattern(100);
        queue.take_new(0, 100, FAST);
        queue.forget_carried(DataRange::between(40, 70));
        let carried = |dsn| queue.sent_from(dsn).unwrap().carried;
        assert_eq!(
            [carried(Dsn::ZERO), carried(Dsn::new(40)), carried(Dsn::new(70))],
            [1, 0, 1].map(SubflowSet)
        );
    }

    #[test]
    fn real_bytes_come_back_across_writes() {
        let mut queue = SendQueue::default();
        queue.write_bytes(b"hello ");
        queue.write_bytes(b"world");
        assert_eq!(queue.payload(DataRange::between(4, 8)).bytes(), Some(&b"o wo"[..]));
        queue.take_new(0, 11, FAST);
        queue.on_data_ack(Dsn::new(6));
        assert_eq!(queue.payload(DataRange::between(6, 11)).bytes(), Some(&b"world"[..]));
    }
}
