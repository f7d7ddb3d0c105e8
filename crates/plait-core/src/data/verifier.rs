//! Data that waits for the checksum of its mapping (RFC 8684 section 3.3.1). No data of a mapping
//! is delivered before all of it has arrived with a correct checksum.

use alloc::collections::VecDeque;
use plait_base::{Dsn, RecvRange, RecvSsn, Time};
use plait_wire::{Payload, Sum, WireDsn};

/// Largest number of stored mappings. Data of further ones is discarded, and the peer retransmits
/// it.
const MAX_MAPPINGS: usize = 4_096;

/// A mapping with its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChecksummedMapping {
    /// Subflow sequence numbers of its bytes.
    pub(crate) seq: RecvRange,
    /// First data sequence number in our own numbers.
    pub(crate) dsn: Dsn,
    /// First data sequence number as on the wire.
    pub(crate) wire_dsn: WireDsn,
    /// Length field: with a DATA_FIN one more than its bytes.
    pub(crate) len: u16,
    pub(crate) checksum: u16,
}

/// Result of storing a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Noted {
    /// It is stored.
    Known,
    /// There is no room for it, or some of its bytes were already delivered.
    Refused,
    /// It contradicts another.
    Conflict,
}

/// A run of bytes in subflow order.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) dsn: Dsn,
    pub(crate) payload: Payload,
    /// When it arrived.
    pub(crate) at: Time,
}

/// The incomplete mappings of one subflow, and the bytes of the first one.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// In order of sequence numbers.
    known: VecDeque<ChecksummedMapping>,
    /// Sequence number of the next piece.
    next: RecvSsn,
    sum: Sum,
    pieces: VecDeque<Piece>,
    /// First DSN of the mapping with a wrong checksum. All data from there on is held.
    failed: Option<Dsn>,
}

impl Verifier {
    /// Returns a verifier for the data from sequence number `next` on.
    pub(crate) fn new(next: RecvSsn) -> Verifier {
        Verifier {
            known: VecDeque::new(),
            next,
            sum: Sum::default(),
            pieces: VecDeque::new(),
            failed: None,
        }
    }

    /// Stores a mapping until its data has arrived.
    pub(crate) fn note(&mut self, mapping: ChecksummedMapping) -> Noted {
        let at = self.known.partition_point(|known| known.seq.start < mapping.seq.start);
        if self.known.get(at) == Some(&mapping) {
            return Noted::Known;
        }
        let overlaps = |known: &ChecksummedMapping| !known.seq.intersect(mapping.seq).is_empty();
        let before = at.checked_sub(1).and_then(|before| self.known.get(before));
        if before.is_some_and(overlaps) || self.known.get(at).is_some_and(overlaps) {
            return Noted::Conflict;
        }
        if mapping.seq.start < self.next || self.known.len() >= MAX_MAPPINGS {
            return Noted::Refused;
        }
        self.known.insert(at, mapping);
        Noted::Known
    }

    /// Returns the DSN of the byte at the start of `range`, if one stored mapping covers all of it.
    pub(crate) fn dsn(&self, range: RecvRange) -> Option<Dsn> {
        let at = self.known.partition_point(|known| known.seq.end <= range.start);
        let mapping = self.known.get(at).filter(|known| known.seq.covers(range))?;
        Some(mapping.dsn + (range.start - mapping.seq.start))
    }

    /// Accepts the next bytes in subflow order, which a stored mapping covers. Delivers complete
    /// and correct mappings.
    pub(crate) fn take(&mut self, piece: Piece, deliver: &mut impl FnMut(Dsn, Payload, Time)) {
        let len = u64::from(piece.payload.len());
        self.next += len;
        let Some(mapping) = self.known.front().copied().filter(|_| self.failed.is_none()) else {
            self.pieces.push_back(piece);
            return;
        };
        if self.next - len == mapping.seq.start {
            self.sum = Sum::of_mapping(mapping.wire_dsn, mapping.seq.start.low(), mapping.len);
        }
        self.sum.add_payload(&piece.payload);
        self.pieces.push_back(piece);
        if self.next < mapping.seq.end {
            return;
        }
        if self.sum.matches(mapping.checksum) {
            self.known.pop_front();
            self.release(deliver);
        } else {
            self.failed = Some(mapping.dsn);
        }
    }

    /// Delivers all held data without a check.
    pub(crate) fn release(&mut self, deliver: &mut impl FnMut(Dsn, Payload, Time)) {
        for Piece { dsn, payload, at } in self.pieces.drain(..) {
            deliver(dsn, payload, at);
        }
    }

    /// Returns the first DSN after the held data, if there is any.
    pub(crate) fn held_to(&self) -> Option<Dsn> {
        self.pieces.back().map(|it| it.dsn + u64::from(it.payload.len()))
    }

    /// Returns the first DSN of the mapping with a wrong checksum.
    pub(crate) const fn failed(&self) -> Option<Dsn> {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn mapping(start: u64, len: u16, wrong: bool) -> ChecksummedMapping {
        let wire_dsn = WireDsn((7 << 40) + start - 1);
        let mut sum = Sum::of_mapping(wire_dsn, start as u32, len);
        sum.add_payload(&Payload::Pattern { offset: start - 1, len: u32::from(len) });
        let checksum = sum.checksum() ^ u16::from(wrong);
        let seq = RecvRange::with_len(RecvSsn::new(start), u64::from(len));
        ChecksummedMapping { seq, dsn: Dsn::new(start - 1), wire_dsn, len, checksum }
    }

    fn take(verifier: &mut Verifier, start: u64, len: u32) -> Vec<(u64, u32)> {
        let mut got = Vec::new();
        let payload = Payload::Pattern { offset: start - 1, len };
        let piece = Piece { dsn: Dsn::new(start - 1), payload, at: Time::ZERO };
        verifier.take(piece, &mut |dsn, payload: Payload, _| got.push((dsn.get(), payload.len())));
        got
    }

    /// R34: nothing is delivered before the whole mapping has arrived.
    #[test]
    fn a_mapping_over_three_pieces() {
        let mut verifier = Verifier::new(RecvSsn::new(1));
        assert_eq!(verifier.note(mapping(1, 301, false)), Noted::Known);
        assert_eq!(verifier.note(mapping(1, 301, false)), Noted::Known);
        assert_eq!(take(&mut verifier, 1, 101), []);
        assert_eq!(take(&mut verifier, 102, 100), []);
        assert_eq!(take(&mut verifier, 202, 100), [(0, 101), (101, 100), (201, 100)]);
        assert_eq!(verifier.failed(), None);
    }

    /// R53: bytes of a wrong mapping and of all later ones are held.
    #[test]
    fn a_wrong_sum_holds_what_follows() {
        let mut verifier = Verifier::new(RecvSsn::new(1));
        for (start, wrong) in [(1, false), (101, true), (201, false)] {
            assert_eq!(verifier.note(mapping(start, 100, wrong)), Noted::Known);
        }
        assert_eq!(take(&mut verifier, 1, 100), [(0, 100)]);
        assert_eq!(take(&mut verifier, 101, 100), []);
        assert_eq!(verifier.failed(), Some(Dsn::new(100)));
        assert_eq!(take(&mut verifier, 201, 100), []);
        assert_eq!(verifier.held_to(), Some(Dsn::new(300)));
        let mut held = Vec::new();
        verifier.release(&mut |dsn, payload: Payload, _| held.push((dsn.get(), payload.len())));
        assert_eq!(held, [(100, 100), (200, 100)]);
    }

    /// R31: overlapping mappings that differ are a conflict.
    #[test]
    fn overlaps_are_conflicts() {
        let mut verifier = Verifier::new(RecvSsn::new(1));
        assert_eq!(verifier.note(mapping(101, 100, false)), Noted::Known);
        for other in [mapping(101, 100, true), mapping(51, 51, false), mapping(200, 10, false)] {
            assert_eq!(verifier.note(other), Noted::Conflict);
        }
        let elsewhere = ChecksummedMapping { dsn: Dsn::new(5_000), ..mapping(101, 100, false) };
        assert_eq!(verifier.note(elsewhere), Noted::Conflict);
        assert_eq!(verifier.note(mapping(201, 100, false)), Noted::Known);
        assert_eq!(verifier.dsn(RecvRange::between(150, 200)), Some(Dsn::new(149)));
        assert_eq!(verifier.dsn(RecvRange::between(150, 202)), None);
    }

    /// S6: the table is bounded.
    #[test]
    fn mappings_are_bounded() {
        let mut verifier = Verifier::new(RecvSsn::new(1));
        let noted = (0..5_000).filter(|n| verifier.note(mapping(1 + n, 1, false)) == Noted::Known);
        assert_eq!(noted.count(), MAX_MAPPINGS);
    }
}
