//! The receiving half of a subflow: sequence order, SACK and D-SACK blocks, and when to
//! acknowledge.

use crate::data::memory_usage::MemoryUsage;
use crate::tcp::mappings::Shift;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use plait_base::{Dsn, RecvRange, RecvRangeSet, RecvSsn, Time, reserve_ahead};
use plait_wire::Payload;

/// The payload of a segment, with its first sequence number and DSN, and the time of its arrival.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) seq: RecvSsn,
    pub(crate) dsn: Dsn,
    pub(crate) at: Time,
    pub(crate) payload: Payload,
}

/// When an acknowledgement is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckDue {
    /// At once (RFC 5681 section 4.2: out of order, a filled hole, a duplicate).
    Now,
    /// With the second full segment, or after the delay.
    Later,
}

/// Payload bytes of a segment in the shortest packet that every path accepts (RFC 1122 section
/// 3.3.3), with the longest headers and options: 576 bytes less 40 and 40.
const LEAST_FULL: u64 = 576 - 40 - 40;

/// Largest number of separate out-of-order ranges. Further ones are discarded and retransmitted by
/// the peer.
const MAX_RANGES: usize = 4_096;

/// More separate ranges than a window of some hundred segments gets.
const MAX_HOLES: usize = 64;

/// Number of SACK blocks kept in order of recency.
const RECENT: usize = 4;

/// Out-of-order data.
#[derive(Debug, Default)]
struct Holes {
    held: VecDeque<Arrived>,
    /// Payload bytes in `held`.
    bytes: u64,
    ranges: RecvRangeSet,
    recent: [RecvSsn; RECENT],
    recent_len: usize,
    dsack: Option<RecvRange>,
    /// Sequence number of a FIN that arrived before missing data.
    fin: Option<RecvSsn>,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    nxt: RecvSsn,
    /// The DSN after the last byte in order.
    end_dsn: Dsn,
    /// Allocated when something first arrives out of order.
    holes: Option<Box<Holes>>,
    /// Largest number of out-of-order segments.
    most: u32,
    /// Payload bytes received since the last acknowledgement was sent.
    unacked: u32,
    /// Segments that are still acknowledged individually.
    quick: u16,
    /// Length of the last segment in order.
    last: u16,
    /// The peer's FIN has been processed.
    fin_taken: bool,
}

impl Receiver {
    /// Returns a receiver that expects the byte after the peer's SYN.
    pub(crate) fn new(quick: u32, most: u32) -> Receiver {
        Receiver {
            nxt: RecvSsn::FIRST,
            end_dsn: Dsn::ZERO,
            holes: None,
            most,
            unacked: 0,
            quick: quick.min(u16::MAX.into()) as u16,
            last: 0,
            fin_taken: false,
        }
    }

    /// Returns the next expected sequence number.
    pub(crate) const fn nxt(&self) -> RecvSsn {
        self.nxt
    }

    /// Returns the bytes of payload in order.
    pub(crate) fn taken_in(&self) -> u64 {
        // The SYN and the FIN have numbers too.
        self.nxt.saturating_sub(RecvSsn::new(1 + u64::from(self.fin_taken)))
    }

    /// Returns true if data waits behind a hole.
    pub(crate) fn has_hole(&self) -> bool {
        self.holes.as_ref().is_some_and(|it| !it.held.is_empty())
    }

    /// Returns true if the byte with `dsn` waits behind a hole.
    pub(crate) fn holds(&self, dsn: Dsn) -> bool {
        let within =
            |held: &Arrived| (held.dsn..held.dsn + u64::from(held.payload.len())).contains(&dsn);
        self.holes.as_ref().is_some_and(|it| it.held.iter().any(within))
    }

    /// Returns the memory of data behind a hole.
    pub(crate) fn memory_usage(&self) -> MemoryUsage {
        let of = |it: &Holes| MemoryUsage::bytes(it.bytes) + MemoryUsage::pieces(&it.held);
        self.holes.as_deref().map_or(MemoryUsage::default(), of)
    }

    /// Returns true if neither data nor a FIN waits for earlier data.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.holes.as_ref().is_none_or(|it| it.held.is_empty() && it.fin.is_none())
    }

    /// Returns true if nothing of `range` is new.
    pub(crate) fn has(&self, range: RecvRange) -> bool {
        range.end <= self.nxt || self.holes.as_ref().is_some_and(|it| it.ranges.covers(range))
    }

    /// Reports the payload of a segment refused for its age as a duplicate if it is already here
    /// (RFC 2883 section 4).
    pub(crate) fn note_refused(&mut self, range: RecvRange) {
        if !range.is_empty() && self.has(range) {
            self.note_duplicate(range);
        }
    }

    /// Reports `range` in the next acknowledgement (RFC 2883).
    #[cold]
    fn note_duplicate(&mut self, range: RecvRange) {
        self.holes.get_or_insert_default().dsack = Some(range);
    }

    /// Returns true if the mapping of `range` to `dsn` differs from the known mapping of the same
    /// bytes: the last one in order, or one behind a hole.
    pub(crate) fn contradicts(&self, range: RecvRange, dsn: Dsn) -> bool {
        let (nxt, first) = (self.nxt, range.start);
        if first < nxt
            && range.end >= nxt
            && nxt > RecvSsn::FIRST
            && dsn + (nxt - first) != self.end_dsn
        {
            return true;
        }
        let Some(held) = self.holes.as_ref().map(|it| &it.held).filter(|it| !it.is_empty()) else {
            return false;
        };
        let at = held.partition_point(|held| held.seq < first);
        let near = held.range(at.saturating_sub(1)..);
        near.take_while(|held| held.seq < range.end).any(|held| {
            let len = u64::from(held.payload.len());
            let overlaps = !RecvRange::with_len(held.seq, len).intersect(range).is_empty();
            overlaps && Shift::of(held.dsn, held.seq) != Shift::of(dsn, first)
        })
    }

    /// Accepts a payload. Passes data in order to `deliver` as (DSN, payload, time of arrival). Two
    /// full segments trigger an acknowledgement.
    #[inline(always)]
    pub(crate) fn accept(
        &mut self,
        arrived: Arrived,
        mss: u64,
        mut deliver: impl FnMut(Dsn, Payload, Time),
    ) -> AckDue {
        let Arrived { seq, dsn, at, ref payload } = arrived;
        let range = RecvRange::with_len(seq, u64::from(payload.len()));
        if self.has(range) {
            self.note_duplicate(range);
            return AckDue::Now;
        }
        if seq > self.nxt {
            self.hold(range, arrived);
            return AckDue::Now;
        }
        let skip = (self.nxt - seq) as u32;
        let filled_hole = self.has_hole();
        if skip > 0 {
            self.note_duplicate(RecvRange::new(seq, self.nxt));
        }
        self.unacked = self.unacked.saturating_add((range.end - self.nxt) as u32);
        self.nxt = range.end;
        self.end_dsn = dsn + range.len();
        let payload = if skip > 0 { payload.slice(skip, u32::MAX) } else { arrived.payload };
        deliver(dsn + u64::from(skip), payload, at);
        if filled_hole {
            self.release(&mut deliver);
            return AckDue::Now;
        }
        self.due(range.len(), mss)
    }

    /// As [`Receiver::accept`] for `len` new bytes that are next in order, if nothing waits behind
    /// a hole. The caller delivers them.
    #[inline(always)]
    pub(crate) fn accept_next(&mut self, dsn: Dsn, len: u64, mss: u64) -> AckDue {
        debug_assert!(self.is_in_order());
        self.unacked = self.unacked.saturating_add(len as u32);
        self.nxt += len;
        self.end_dsn = dsn + len;
        self.due(len, mss)
    }

    /// Returns when data in order must be acknowledged, after a segment of `len` bytes. If a path
    /// limits the length, two consecutive segments of equal length count as full, as in Linux.
    #[inline(always)]
    fn due(&mut self, len: u64, mss: u64) -> AckDue {
        let last = core::mem::replace(&mut self.last, len.min(u16::MAX.into()) as u16);
        if self.quick > 0 {
            self.quick -= 1;
            return AckDue::Now;
        }
        let full = if len >= LEAST_FULL && len == u64::from(last) { len.min(mss) } else { mss };
        if u64::from(self.unacked) >= 2 * full { AckDue::Now } else { AckDue::Later }
    }

    #[inline(never)]
    fn hold(&mut self, range: RecvRange, arrived: Arrived) {
        let holes = self.holes.get_or_insert_default();
        if holes.held.len() < self.most as usize && holes.ranges.count() < MAX_RANGES {
            holes.hold(range, arrived);
        }
    }

    /// Delivers the data that a filled hole has put in order.
    fn release(&mut self, deliver: &mut impl FnMut(Dsn, Payload, Time)) {
        let Some(holes) = &mut self.holes else { return };
        while let Some(first) = holes.held.front() {
            if first.seq > self.nxt {
                break;
            }
            let Some(held) = holes.held.pop_front() else { break };
            let skip = self.nxt - held.seq;
            let len = u64::from(held.payload.len());
            holes.bytes -= len;
            if skip < len {
                self.nxt = held.seq + len;
                self.end_dsn = held.dsn + len;
                deliver(held.dsn + skip, held.payload.slice(skip as u32, u32::MAX), held.at);
            }
        }
        holes.ranges.remove_below(self.nxt);
    }

    /// Processes the peer's FIN at `seq`. In order, it uses its sequence number; an early one is
    /// stored.
    pub(crate) fn take_fin(&mut self, seq: RecvSsn) -> bool {
        let in_order = seq == self.nxt;
        self.nxt += u64::from(in_order);
        self.fin_taken |= in_order;
        let ahead = (seq > self.nxt).then_some(seq);
        if ahead.is_some() || self.holes.is_some() {
            self.holes.get_or_insert_default().fin = ahead;
        }
        in_order
    }

    /// Returns the sequence number of an early FIN that is now in order.
    pub(crate) fn fin_due(&self) -> Option<RecvSsn> {
        self.holes.as_ref()?.fin.filter(|seq| *seq == self.nxt)
    }

    /// Passes up to `room` SACK blocks of the next acknowledgement to `push`.
    pub(crate) fn sack_blocks(&mut self, room: usize, push: impl FnMut(RecvRange)) {
        if let Some(holes) = &mut self.holes {
            holes.sack_blocks(room, push);
        }
    }

    /// Returns true if the next acknowledgement has a SACK or D-SACK block.
    pub(crate) fn has_sack(&self) -> bool {
        self.holes.as_ref().is_some_and(|it| it.dsack.is_some() || !it.ranges.is_empty())
    }

    /// Drops a duplicate that no acknowledgement had room to report.
    pub(crate) fn forget_duplicate(&mut self) {
        if let Some(holes) = &mut self.holes {
            holes.dsack = None;
        }
    }

    /// Frees the memory if nothing is out of order.
    pub(crate) fn give_back(&mut self) {
        self.holes.take_if(|it| {
            it.held.is_empty() && it.ranges.is_empty() && it.dsack.is_none() && it.fin.is_none()
        });
    }

    /// Acknowledges the next segment at once.
    pub(crate) const fn acknowledge_soon(&mut self) {
        self.quick |= 1;
    }

    /// Notes a sent acknowledgement.
    pub(crate) const fn on_ack_sent(&mut self) {
        self.unacked = 0;
    }
}

impl Holes {
    fn hold(&mut self, range: RecvRange, arrived: Arrived) {
        if self.ranges.insert(range) < range.len() {
            self.dsack = Some(range);
        }
        let at = match self.held.back() {
            Some(last) if last.seq >= range.start => {
                self.held.partition_point(|held| held.seq < range.start)
            }
            _ => self.held.len(),
        };
        if self.held.len() == self.held.capacity() {
            self.make_room();
        }
        self.bytes += u64::from(arrived.payload.len());
        self.held.insert(at, arrived);
        self.note_recent(range.start);
    }

    /// Reserves capacity for data behind a hole, and for more holes.
    #[cold]
    fn make_room(&mut self) {
        if !self.held.is_empty() {
            self.ranges.reserve(MAX_HOLES);
        }
        reserve_ahead(&mut self.held, 256);
    }

    /// Makes the block of `seq` the most recent one. The others keep their order, so that each is
    /// reported more than once (RFC 2018 section 4).
    fn note_recent(&mut self, seq: RecvSsn) {
        let Some(block) = self.ranges.containing(seq) else { return };
        let known = self.recent[..self.recent_len]
            .iter()
            .position(|known| block.start <= *known && *known < block.end);
        let keep = known.unwrap_or(self.recent_len.min(RECENT - 1));
        self.recent.copy_within(0..keep, 1);
        self.recent[0] = seq;
        self.recent_len = self.recent_len.max(keep + 1);
    }

    /// Passes up to `room` blocks to `push`: a D-SACK first, with the block that contains it (RFC
    /// 2883 section 4), then the most recent ones (RFC 2018 section 4).
    fn sack_blocks(&mut self, room: usize, mut push: impl FnMut(RecvRange)) {
        let mut left = room;
        if left == 0 {
            return;
        }
        let mut told = [RecvSsn::MAX; RECENT + 1];
        if let Some(dsack) = self.dsack.take() {
            push(dsack);
            left -= 1;
            if left > 0
                && let Some(range) = self.ranges.containing(dsack.start)
            {
                told[RECENT] = range.start;
                push(range);
                left -= 1;
            }
        }
        for (index, seq) in self.recent[..self.recent_len].iter().enumerate() {
            if left == 0 {
                return;
            }
            let Some(range) = self.ranges.containing(*seq) else { continue };
            if told[..index].contains(&range.start) || told[RECENT] == range.start {
                continue;
            }
            told[index] = range.start;
            push(range);
            left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn accept(rx: &mut Receiver, seq: u64, len: u32) -> (AckDue, Vec<(u64, u32)>) {
        let mut got = Vec::new();
        let payload = Payload::Pattern { offset: seq - 1, len };
        let (seq, dsn) = (RecvSsn::new(seq), Dsn::new(seq - 1));
        let arrived = Arrived { seq, dsn, at: Time::ZERO, payload };
        let due = rx.accept(arrived, 100, |dsn, payload, _| {
            got.push((dsn.get(), payload.len()));
        });
        (due, got)
    }

    fn blocks(rx: &mut Receiver, room: usize) -> Vec<(u64, u64)> {
        let mut told = Vec::new();
        rx.sack_blocks(room, |block| told.push((block.start.get(), block.end.get())));
        told
    }

    #[test]
    fn order_is_restored_and_blocks_name_the_latest_first() {
        let mut rx = Receiver::new(0, 64);
        assert_eq!(accept(&mut rx, 1, 100), (AckDue::Later, [(0, 100)].to_vec()));
        assert_eq!(accept(&mut rx, 201, 100), (AckDue::Now, Vec::new()));
        assert_eq!(accept(&mut rx, 401, 100), (AckDue::Now, Vec::new()));
        assert_eq!(blocks(&mut rx, 3), [(401, 501), (201, 301)]);
        assert_eq!(accept(&mut rx, 101, 100), (AckDue::Now, [(100, 100), (200, 100)].to_vec()));
        assert_eq!(rx.nxt(), RecvSsn::new(301));
        assert_eq!(blocks(&mut rx, 3), [(401, 501)]);
    }

    /// R73: the full segment size is derived from received segments.
    #[test]
    fn two_short_segments_in_a_row_are_worth_an_acknowledgement() {
        let mut rx = Receiver::new(0, 64);
        let mut pair = |lens: [u64; 2]| {
            rx.on_ack_sent();
            lens.map(|len| rx.accept_next(Dsn::ZERO, len, 1_428)) == [AckDue::Later, AckDue::Now]
        };
        assert!(pair([504; 2]) && pair([1_428; 2]) && pair([504; 2]));
        // Segments of different length do not count, nor do short writes of an application.
        assert!(!pair([504, 505]) && !pair([495; 2]));
    }

    #[test]
    fn a_duplicate_is_told_first_and_once() {
        let mut rx = Receiver::new(0, 64);
        accept(&mut rx, 1, 100);
        accept(&mut rx, 301, 100);
        assert_eq!(accept(&mut rx, 1, 100), (AckDue::Now, Vec::new()));
        assert_eq!(blocks(&mut rx, 2), [(1, 101), (301, 401)]);
        assert_eq!(blocks(&mut rx, 2), [(301, 401)]);
    }

    #[test]
    fn the_first_segments_are_acknowledged_one_by_one() {
        let mut rx = Receiver::new(2, 64);
        assert_eq!(accept(&mut rx, 1, 100).0, AckDue::Now);
        rx.on_ack_sent();
        assert_eq!(accept(&mut rx, 101, 100).0, AckDue::Now);
        rx.on_ack_sent();
        assert_eq!(accept(&mut rx, 201, 100).0, AckDue::Later);
        assert_eq!(accept(&mut rx, 301, 100).0, AckDue::Now);
    }

    /// S6: out-of-order data is bounded in segments and in ranges; refused data is accepted later.
    #[test]
    fn what_waits_is_bounded() {
        let mut rx = Receiver::new(0, 64);
        for index in 0..100 {
            accept(&mut rx, 101 + 100 * index, 100);
        }
        assert_eq!(rx.holes.as_ref().unwrap().held.len(), 64);
        assert_eq!(accept(&mut rx, 1, 100).1.len(), 65);
        assert_eq!(rx.nxt(), RecvSsn::new(6_501));
        let mut rx = Receiver::new(0, u32::MAX);
        for index in 0..10_000 {
            accept(&mut rx, 11 + 10 * index, 5);
        }
        let holes = rx.holes.as_ref().unwrap();
        assert_eq!((holes.held.len(), holes.ranges.count()), (MAX_RANGES, MAX_RANGES));
    }

    /// RFC 2018 section 4: a block that grows does not push the others out.
    #[test]
    fn earlier_blocks_are_told_again() {
        let mut rx = Receiver::new(0, 64);
        for seq in [201, 401, 601, 701, 801, 901, 1_001] {
            accept(&mut rx, seq, 100);
        }
        assert_eq!(blocks(&mut rx, 3), [(601, 1_101), (401, 501), (201, 301)]);
        accept(&mut rx, 501, 50);
        assert_eq!(blocks(&mut rx, 3), [(401, 551), (601, 1_101), (201, 301)]);
    }

    /// RFC 2883 section 4: a duplicate above the acknowledgement, then the block that it lies in.
    #[test]
    fn a_duplicate_above_the_acknowledgement_is_told_with_its_block() {
        let mut rx = Receiver::new(0, 64);
        for seq in [201, 301, 401, 601, 801, 1_001, 1_201] {
            accept(&mut rx, seq, 100);
        }
        accept(&mut rx, 301, 100);
        assert_eq!(blocks(&mut rx, 3), [(301, 401), (201, 501), (1_201, 1_301)]);
    }

    #[test]
    fn an_overlapping_segment_delivers_only_what_is_new() {
        let mut rx = Receiver::new(0, 64);
        accept(&mut rx, 1, 100);
        assert_eq!(accept(&mut rx, 51, 100).1, [(100, 50)]);
        assert_eq!(blocks(&mut rx, 1), [(51, 101)]);
    }
}
