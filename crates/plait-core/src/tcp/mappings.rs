//! Mappings that cover more than one segment: the peer's, and ours until all of it is acknowledged.

use crate::tcp::subflow::Told;
use alloc::collections::VecDeque;
use plait_base::{Dsn, Ssn, SubflowRange};

/// Most of the peer's.
const MOST: usize = 16;

/// By how much the DSN of a byte is above its subflow sequence number, modulo 2^64: the same for all bytes of
/// a mapping.
pub(super) fn shift(dsn: Dsn, seq: Ssn) -> u64 {
    dsn.get().wrapping_sub(seq.get())
}

/// Told by segments that carried a part of what they cover.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// The peer's, the latest last.
    theirs: VecDeque<Told>,
    /// Ours, by sequence number and without overlaps, with their checksums.
    ours: VecDeque<(Told, Option<u16>)>,
}

impl Mappings {
    /// Remembers a mapping of the peer for segments that a middlebox has cut from the one that told it
    /// (RFC 8684 section 3.3.1); at most a handful, so that a peer cannot fill memory with them.
    /// False where it contradicts one of those.
    pub(crate) fn remember(&mut self, told: Told) -> bool {
        if self.theirs.back() == Some(&told) {
            return true;
        }
        let differs = |other: &Told| {
            !other.seq.intersect(told.seq).is_empty()
                && shift(other.dsn, other.seq.start) != shift(told.dsn, told.seq.start)
        };
        if self.theirs.iter().any(differs) {
            return false;
        }
        self.theirs.push_back(told);
        if self.theirs.len() > MOST {
            self.theirs.pop_front();
        }
        true
    }

    /// The latest of the peer's that covers `range`.
    pub(crate) fn covering(&self, range: SubflowRange) -> Option<Told> {
        self.theirs.iter().rev().find(|told| told.seq.covers(range)).copied()
    }

    /// One of ours, told beside new data: above all others.
    pub(crate) fn push(&mut self, told: Told, checksum: Option<u16>) {
        self.ours.push_back((told, checksum));
    }

    /// That of ours which has the byte at `seq`, and its checksum.
    pub(crate) fn find(&self, seq: Ssn) -> Option<(Told, Option<u16>)> {
        let at = self.ours.partition_point(|(told, _)| told.seq.end <= seq);
        self.ours.get(at).copied().filter(|(told, _)| told.seq.start <= seq)
    }

    /// Everything of ours below `una` is acknowledged.
    pub(crate) fn on_acked(&mut self, una: Ssn) {
        while self.ours.front().is_some_and(|(told, _)| told.seq.end <= una) {
            self.ours.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_found_until_all_of_them_is_acknowledged() {
        let told =
            |from, to| Told { seq: SubflowRange::between(from, to), dsn: Dsn::new(10 * from) };
        let mut wide = Mappings::default();
        let at = Ssn::new;
        wide.push(told(1, 301), None);
        wide.push(told(401, 601), Some(7));
        assert_eq!(wide.find(at(1)), Some((told(1, 301), None)));
        assert_eq!(wide.find(at(300)), Some((told(1, 301), None)));
        assert_eq!((wide.find(at(301)), wide.find(at(601))), (None, None));
        wide.on_acked(at(300));
        assert_eq!(wide.find(at(201)), Some((told(1, 301), None)));
        wide.on_acked(at(301));
        assert_eq!(
            (wide.find(at(201)), wide.find(at(401))),
            (None, Some((told(401, 601), Some(7))))
        );
        wide.on_acked(at(601));
        assert_eq!(wide.find(at(401)), None);
    }
}
