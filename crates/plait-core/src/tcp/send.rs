//! Unacknowledged segments of a subflow: a ring in sequence order with the SACK scoreboard (RFC
//! 6675).

mod cuts;
mod sent;

pub(crate) use sent::{AckOutcome, Departure, Sent, SentState};

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use plait_base::{DataRange, Dsn, SendRange, SendRangeSet, SendSsn, Time, reserve_ahead};

/// Largest number of separate ranges on the scoreboard. Further SACK blocks of a peer are ignored
/// until some ranges are acknowledged.
const MAX_RANGES: usize = 4_096;
/// More separate ranges than a window of some hundred segments gets.
const MAX_HOLES: usize = 64;

/// Segments from the oldest one on that are examined for each acknowledgement. Small ones would be thousands.
const MAX_EXAMINED: usize = 16;

/// A retransmitted segment, and when it was sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Resent {
    at: Time,
    seq: SendSsn,
}

/// Selectively acknowledged ranges, and retransmissions.
#[derive(Debug, Default)]
struct Scoreboard {
    sacked: SendRangeSet,
    /// Retransmitted segments in order of sending, while they may be in flight.
    resent: VecDeque<Resent>,
}

#[derive(Debug, Default)]
pub(crate) struct TxRing {
    ring: VecDeque<Sent>,
    una: SendSsn,
    nxt: SendSsn,
    inflight: u64,
    /// Allocated when two segments are in flight, or one is retransmitted.
    board: Option<Box<Scoreboard>>,
    /// Highest sequence number selectively or cumulatively acknowledged.
    highest_delivered: SendSsn,
    lost: u32,
    sacked_segments: u32,
    /// No segment below it is lost.
    lost_from: SendSsn,
    /// No segment below it that was sent once is in flight.
    once_from: SendSsn,
}

impl TxRing {
    /// Returns the ring of a subflow whose SYN (sequence number 0) counts as sent.
    pub(crate) fn new() -> TxRing {
        TxRing { una: SendSsn::ZERO, nxt: SendSsn::FIRST, ..TxRing::default() }
    }

    /// Returns the left edge: the first unacknowledged sequence number.
    pub(crate) const fn una(&self) -> SendSsn {
        self.una
    }

    /// Returns the next sequence number to send.
    pub(crate) const fn nxt(&self) -> SendSsn {
        self.nxt
    }

    /// Returns the bytes sent and neither acknowledged, selectively acknowledged nor lost.
    pub(crate) const fn inflight(&self) -> u64 {
        self.inflight
    }

    /// Returns the bytes between the edges.
    pub(crate) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    pub(crate) const fn lost_segments(&self) -> u32 {
        self.lost
    }

    pub(crate) const fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.ring.iter()
    }

    pub(crate) fn first(&self) -> Option<&Sent> {
        self.ring.front()
    }

    pub(crate) fn last(&self) -> Option<&Sent> {
        self.ring.back()
    }

    /// Notes the acknowledgement of our SYN.
    pub(crate) fn syn_acked(&mut self) {
        self.una = self.una.max(SendSsn::FIRST);
        self.highest_delivered = self.una;
    }

    /// Reserves capacity for a window, and for its holes.
    #[cold]
    fn make_room(&mut self) {
        if !self.ring.is_empty() {
            self.board.get_or_insert_default().sacked.reserve(MAX_HOLES);
        }
        reserve_ahead(&mut self.ring, 256);
    }

    /// Adds a new segment at the right edge and returns its sequence number.
    pub(crate) fn push(&mut self, now: Time, dsn: Dsn, len: u32, fin: bool) -> SendSsn {
        let seq = self.nxt;
        self.nxt += u64::from(len);
        self.inflight += u64::from(len);
        if self.ring.len() == self.ring.capacity() {
            self.make_room();
        }
        self.ring.push_back(Sent {
            seq,
            dsn,
            sent_at: now,
            len,
            state: SentState::InFlight,
            retransmitted: false,
            fin,
        });
        seq
    }

    /// Processes a cumulative acknowledgement and SACK blocks, and adds the result to `outcome`.
    pub(crate) fn on_ack(&mut self, ack: SendSsn, blocks: &[SendRange], outcome: &mut AckOutcome) {
        if ack > self.una {
            outcome.advanced = ack - self.una;
            self.una = ack;
            if let Some(board) = &mut self.board {
                board.sacked.remove_below(ack);
            }
            self.pop_acked(ack, outcome);
        }
        for block in blocks {
            let block = SendRange::new(block.start.max(self.una), block.end.min(self.nxt));
            self.on_sack(block, outcome);
        }
        self.highest_delivered = self.highest_delivered.max(ack);
    }

    fn pop_acked(&mut self, ack: SendSsn, outcome: &mut AckOutcome) {
        let before = self.highest_delivered;
        while let Some(sent) = self.ring.front().filter(|front| front.end() <= ack) {
            match sent.state {
                SentState::InFlight => self.inflight -= u64::from(sent.len),
                SentState::Lost => self.lost -= 1,
                SentState::Sacked => self.sacked_segments -= 1,
            }
            if sent.state != SentState::Sacked {
                note_delivered(sent, before, outcome);
            }
            self.ring.pop_front();
        }
    }

    fn on_sack(&mut self, block: SendRange, outcome: &mut AckOutcome) {
        if block.is_empty() {
            return;
        }
        let sacked = &mut self.board.get_or_insert_default().sacked;
        if sacked.count() >= MAX_RANGES || sacked.covers(block) {
            return;
        }
        // Only the new part of a block is visited, so repeated blocks cost one lookup.
        let (ring, before) = (&mut self.ring, self.highest_delivered);
        let (inflight, lost, count) =
            (&mut self.inflight, &mut self.lost, &mut self.sacked_segments);
        sacked.insert_with(block, |new| {
            let mut at = ring.partition_point(|sent| sent.end() <= new.start);
            while let Some(sent) = ring.get_mut(at).filter(|sent| sent.seq < new.end) {
                at += 1;
                // A block that ends inside a segment delivers it when the rest is acknowledged.
                if sent.state == SentState::Sacked || !block.covers(sent_range(sent)) {
                    continue;
                }
                match sent.state {
                    SentState::InFlight => *inflight -= u64::from(sent.len),
                    _ => *lost -= 1,
                }
                sent.state = SentState::Sacked;
                *count += 1;
                note_delivered(sent, before, outcome);
            }
        });
        self.highest_delivered = self.highest_delivered.max(block.end);
    }

    #[inline]
    fn index_of(&self, seq: SendSsn) -> usize {
        // An acknowledgement of the oldest segments usually leaves no other ones to skip.
        if self.ring.front().is_none_or(|first| first.seq >= seq) {
            return 0;
        }
        self.ring.partition_point(|sent| sent.seq < seq)
    }

    /// Marks segments in flight as lost that were sent before `newest` and satisfy `is_lost`.
    /// Returns the number of marked bytes.
    ///
    /// Among segments sent once, lower ones are older, and retransmissions are ordered by time. So
    /// no acknowledgement has to visit the whole window.
    pub(crate) fn mark_overtaken(
        &mut self,
        newest: Departure,
        mut is_lost: impl FnMut(&Sent) -> bool,
    ) -> u64 {
        let before = self.inflight;
        self.mark_resent_overtaken(newest, &mut is_lost);
        let (mut index, mut all_known) = (self.index_of(self.once_from), true);
        while let Some(sent) = self.ring.get(index) {
            let end = sent.end();
            if sent.state == SentState::InFlight && !sent.retransmitted {
                if sent.departure() >= newest {
                    break;
                }
                if is_lost(sent) {
                    self.mark_lost(index);
                } else {
                    all_known = false;
                }
            }
            if all_known {
                self.once_from = end;
            }
            index += 1;
        }
        before - self.inflight
    }

    /// Marks segments sent once as lost if at least `above` segments above them were selectively
    /// acknowledged. Returns the number of bytes marked.
    pub(crate) fn mark_passed(&mut self, above: u32) -> u64 {
        if self.sacked_segments < above {
            return 0;
        }
        let (before, mut top, mut seen) = (self.inflight, self.index_of(self.highest_delivered), 0);
        while seen < above && top > 0 {
            top -= 1;
            seen += u32::from(self.ring[top].state == SentState::Sacked);
        }
        let edge = self.ring.get(top).map_or(self.una, |sent| sent.seq);
        for index in self.index_of(self.once_from)..top {
            let sent = &self.ring[index];
            if sent.state == SentState::InFlight && !sent.retransmitted {
                self.mark_lost(index);
            }
        }
        self.once_from = self.once_from.max(edge);
        before - self.inflight
    }

    /// As [`TxRing::mark_overtaken`], for retransmissions.
    fn mark_resent_overtaken(
        &mut self,
        newest: Departure,
        is_lost: &mut impl FnMut(&Sent) -> bool,
    ) {
        let Some(mut board) = self.board.take_if(|board| !board.resent.is_empty()) else { return };
        let (resent, mut place) = (&mut board.resent, 0);
        while let Some(again) = resent.get(place).copied().filter(|it| it.at <= newest.at) {
            let index = self.index_of(again.seq);
            let same = |sent: &&Sent| sent.is_resent() && sent.last_sending() == again;
            let sent = self.ring.get(index).filter(same);
            let lost = match sent {
                Some(sent) if sent.departure() >= newest || !is_lost(sent) => {
                    place += 1;
                    continue;
                }
                sent => sent.is_some(),
            };
            if lost {
                self.mark_lost(index);
            }
            resent.remove(place);
        }
        self.board = Some(board);
    }

    /// Marks all segments in flight as lost.
    pub(crate) fn mark_all_lost(&mut self) {
        for index in 0..self.ring.len() {
            if self.ring[index].state == SentState::InFlight {
                self.mark_lost(index);
            }
        }
        if let Some(board) = &mut self.board {
            board.resent.clear();
        }
    }

    /// Marks segments in flight from `seq` on as lost if they have more than `most` bytes.
    #[cold]
    pub(crate) fn mark_long_lost(&mut self, seq: SendSsn, most: u32) {
        for index in 0..self.ring.len() {
            let sent = &self.ring[index];
            let long = sent.end() > seq && sent.len > most && !sent.fin;
            if long && sent.state == SentState::InFlight {
                self.mark_lost(index);
            }
        }
    }

    fn mark_lost(&mut self, index: usize) {
        let sent = &mut self.ring[index];
        sent.state = SentState::Lost;
        self.inflight -= u64::from(sent.len);
        self.lost += 1;
        self.lost_from = self.lost_from.min(sent.seq);
    }

    /// Resets the search positions when segments return to flight.
    #[cold]
    fn look_anew(&mut self) {
        self.once_from = self.una;
        let again = self.ring.iter().filter(|it| it.is_resent());
        let resent = &mut self.board.get_or_insert_default().resent;
        resent.clear();
        resent.extend(again.map(Sent::last_sending));
        resent.make_contiguous().sort_unstable();
    }

    /// Handles reneging after a timeout: the receiver has discarded data that it had selectively
    /// acknowledged (RFC 2018 section 8). All its SACK blocks are dropped.
    pub(crate) fn forget_reneged(&mut self) {
        if self.ring.front().is_none_or(|sent| sent.state != SentState::Sacked) {
            return;
        }
        for sent in &mut self.ring {
            if sent.state == SentState::Sacked {
                sent.state = SentState::InFlight;
                self.inflight += u64::from(sent.len);
            }
        }
        if let Some(board) = &mut self.board {
            board.sacked.clear();
        }
        self.sacked_segments = 0;
        self.look_anew();
    }

    /// Returns lost segments that were not retransmitted to flight.
    pub(crate) fn unmark_lost(&mut self) {
        if self.lost == 0 {
            return;
        }
        for sent in &mut self.ring {
            if sent.state == SentState::Lost {
                sent.state = SentState::InFlight;
                self.inflight += u64::from(sent.len);
            }
        }
        self.lost = 0;
        self.look_anew();
    }

    /// Returns the first lost segment that waits for its retransmission.
    pub(crate) fn first_lost(&mut self) -> Option<&Sent> {
        if self.lost == 0 {
            return None;
        }
        let from = self.index_of(self.lost_from);
        let first = self.ring.range(from..).find(|sent| sent.state == SentState::Lost)?;
        self.lost_from = first.seq;
        Some(first)
    }

    /// Returns the first data byte of the oldest segment that is not acknowledged, and when the last of the `len` bytes
    /// from there on was sent; `None` if all data is acknowledged. Of small segments it examines a few only.
    pub(crate) fn first_data(&self, len: u64) -> Option<(Dsn, Time)> {
        let first = self.first().filter(|it| it.len > 0)?;
        let within = self.ring.iter().take(MAX_EXAMINED).take_while(|it| it.seq < first.seq + len);
        Some((first.dsn, within.map(|it| it.sent_at).max()?))
    }

    /// Returns the data of the lost segments that wait for their retransmission.
    pub(crate) fn lost_data(&self) -> impl Iterator<Item = DataRange> {
        let from = if self.lost == 0 { self.ring.len() } else { self.index_of(self.lost_from) };
        let is_lost = |sent: &&Sent| sent.state == SentState::Lost && sent.len > 0;
        let lost = self.ring.range(from..).filter(is_lost);
        lost.map(|sent| DataRange::new(sent.dsn, sent.dsn + u64::from(sent.len)))
    }

    /// Returns the lost segments that wait for their retransmission, from `seq` on.
    pub(crate) fn lost_from(&self, seq: SendSsn) -> impl Iterator<Item = &Sent> {
        let from = match self.lost {
            0 => self.ring.len(),
            _ => self.index_of(self.lost_from.max(seq)),
        };
        self.ring.range(from..).filter(|sent| sent.state == SentState::Lost)
    }

    /// Returns the first segment that begins at `seq` or above.
    pub(crate) fn at_or_above(&self, seq: SendSsn) -> Option<&Sent> {
        self.ring.get(self.index_of(seq))
    }

    /// Frees the memory when nothing is in flight.
    pub(crate) fn give_back(&mut self) {
        if self.ring.is_empty() {
            self.ring = VecDeque::new();
            self.board = None;
        }
    }

    /// Clears the ring of an ended subflow. The edges stay, for its reset.
    pub(crate) fn abandon(&mut self) {
        self.ring.clear();
        self.board = None;
        (self.inflight, self.lost, self.sacked_segments) = (0, 0, 0);
    }

    /// Notes a retransmission of the segment at `seq`.
    pub(crate) fn retransmit(&mut self, seq: SendSsn, now: Time) {
        let at = self.index_of(seq);
        let Some(sent) = self.ring.get_mut(at).filter(|sent| sent.seq == seq) else { return };
        match sent.state {
            SentState::Lost => {
                self.lost -= 1;
                self.inflight += u64::from(sent.len);
                sent.state = SentState::InFlight;
            }
            SentState::Sacked => return,
            SentState::InFlight => {}
        }
        sent.sent_at = now;
        sent.retransmitted = true;
        let resent = &mut self.board.get_or_insert_default().resent;
        reserve_ahead(resent, 64);
        resent.push_back(Resent { at: now, seq });
    }
}

fn sent_range(sent: &Sent) -> SendRange {
    SendRange::with_len(sent.seq, u64::from(sent.len))
}

fn note_delivered(sent: &Sent, highest_before: SendSsn, outcome: &mut AckOutcome) {
    outcome.delivered += u64::from(sent.len);
    if outcome.newest.is_none_or(|newest| newest.departure() < sent.departure()) {
        outcome.newest = Some(*sent);
    }
    if sent.sent_at >= outcome.since {
        outcome.longest = outcome.longest.max(sent.len);
    }
    if !sent.retransmitted {
        outcome.sample = outcome.sample.max(Some(sent.sent_at));
        outcome.reordering |= sent.end() < highest_before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// RFC 8985 section 6.2, segment by segment: segments in flight that were sent before `newest`
    /// and not after `latest` are lost.
    fn overtaken(ring: &TxRing, newest: Departure, latest: Time) -> Vec<SendSsn> {
        let lost = |sent: &&Sent| {
            let older = sent.departure() < newest && sent.sent_at <= latest;
            sent.state == SentState::InFlight && older
        };
        ring.iter().filter(lost).map(|sent| sent.seq).collect()
    }

    fn lost(ring: &TxRing) -> Vec<SendSsn> {
        let lost = ring.iter().filter(|sent| sent.state == SentState::Lost);
        lost.map(|sent| sent.seq).collect()
    }

    /// A FIN carries no data. 15 bytes end within the second segment.
    #[test]
    fn the_first_data_is_that_of_the_oldest_segment() {
        let mut ring = TxRing::new();
        ring.syn_acked();
        let at = Time::from_nanos;
        for (dsn, len, fin, sent) in
            [(0, 10, false, 1), (50, 10, false, 2), (60, 10, false, 3), (70, 0, true, 4)]
        {
            ring.push(at(sent), Dsn::new(dsn), len, fin);
        }
        let mut first_data_after = |ack| {
            ring.on_ack(SendSsn::new(ack), &[], &mut AckOutcome::default());
            ring.first_data(15)
        };
        assert_eq!(first_data_after(1), Some((Dsn::ZERO, at(2))));
        assert_eq!(first_data_after(11), Some((Dsn::new(50), at(3))));
        assert_eq!(first_data_after(21), Some((Dsn::new(60), at(4))));
        assert_eq!(first_data_after(31), None);
        assert_eq!(first_data_after(32), None);
    }

    /// An acknowledgement must not cost a visit of thousands of small segments.
    #[test]
    fn few_small_segments_are_examined() {
        let mut ring = TxRing::new();
        ring.syn_acked();
        for at in 0..1_000 {
            ring.push(Time::from_nanos(at), Dsn::new(at), 1, false);
        }
        let last = Time::from_nanos(MAX_EXAMINED as u64 - 1);
        assert_eq!(ring.first_data(2_800), Some((Dsn::ZERO, last)));
    }

    proptest! {
        /// R69: the cached positions give the same result as a visit of every segment, for any
        /// history of segments sent, retransmitted, acknowledged, reneged, undone or split.
        #[test]
        fn marking_agrees_with_a_look_at_every_segment(
            steps in proptest::collection::vec((0u8..11, 0u64..40, 1u64..6), 1..120),
        ) {
            let mut ring = TxRing::new();
            ring.syn_acked();
            let (mut now, mut newest) = (Time::ZERO, None::<Departure>);
            for (what, place, count) in steps {
                now += plait_base::Span::from_nanos(count % 3);
                let seq = SendSsn::new(1 + 10 * (ring.una().get() / 10 + place));
                match what {
                    0..=2 => {
                        for _ in 0..count {
                            ring.push(now, Dsn::new(ring.nxt().get() - 1), 10, false);
                        }
                    }
                    3 | 4 => {
                        let block = SendRange::with_len(seq, 10 * count);
                        let mut outcome = AckOutcome::default();
                        ring.on_ack(ring.una(), &[block], &mut outcome);
                        newest = newest.max(outcome.newest.map(|sent| sent.departure()));
                    }
                    5 => {
                        let mut outcome = AckOutcome::default();
                        ring.on_ack(seq.min(ring.nxt()).max(ring.una()), &[], &mut outcome);
                        newest = newest.max(outcome.newest.map(|sent| sent.departure()));
                    }
                    6 | 7 => {
                        if let Some(seq) = ring.first_lost().map(|sent| sent.seq) {
                            prop_assert_eq!(Some(seq), lost(&ring).first().copied());
                            ring.retransmit(seq, now);
                        }
                        ring.retransmit(seq, now);
                    }
                    8 if place % 4 == 0 => ring.mark_all_lost(),
                    8 => ring.unmark_lost(),
                    10 if place % 2 == 0 => ring.cut_first(count as u32, 4 + count as u32),
                    10 => ring.cut_to(4 + count as u32),
                    _ => ring.forget_reneged(),
                }
                let Some(newest) = newest else { continue };
                let latest = Time::from_nanos(now.as_nanos().saturating_sub(place % 4));
                let mut expected = lost(&ring);
                expected.extend(overtaken(&ring, newest, latest));
                expected.sort_unstable();
                let flight = ring.inflight();
                let marked = ring.mark_overtaken(newest, |sent| sent.sent_at <= latest);
                prop_assert_eq!(lost(&ring), expected);
                prop_assert_eq!(ring.inflight() + marked, flight);
                prop_assert!(ring.first().is_none_or(|first| first.end() > ring.una()));
                let there = ring.iter().filter(|sent| sent.state == SentState::InFlight);
                prop_assert_eq!(there.map(|sent| u64::from(sent.len)).sum::<u64>(), ring.inflight());
            }
        }
    }
}
