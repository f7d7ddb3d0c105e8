//! Mappings that cover more than one segment: the peer's, and ours until they are fully
//! acknowledged.

use crate::data::dss::MappedRange;
use crate::data::level::DataLevel;
use alloc::collections::VecDeque;
use plait_base::{
    DataRange, Dsn, RecvRange, RecvSpace, SendRange, SendSpace, SendSsn, Sequence, SubflowSpace,
};
use plait_wire::{Mapping, Segment};

/// Largest number of the peer's mappings.
const MAX_RECEIVED_MAPPINGS: usize = 16;

/// The DSN of a byte minus its subflow sequence number, modulo 2^64. It is the same for all bytes of
/// a mapping.
#[derive(PartialEq, Eq)]
pub(super) struct Shift(u64);

impl Shift {
    pub(super) fn of<S: SubflowSpace>(dsn: Dsn, seq: Sequence<S>) -> Shift {
        Shift(dsn.get().wrapping_sub(seq.get()))
    }
}

/// A mapping of ours, sent with a part of its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SuperpacketMapping {
    pub(crate) mapped: MappedRange<SendSpace>,
    /// Set if checksums are in use.
    pub(crate) checksum: Option<u16>,
}

impl SuperpacketMapping {
    /// Returns the mapping `told` of a superpacket that carries `data` from `seq` on.
    pub(crate) fn of(told: &Mapping, seq: SendSsn, data: DataRange) -> SuperpacketMapping {
        let seq = SendRange::with_len(seq, data.len());
        let mapped = MappedRange { seq, dsn: data.start };
        SuperpacketMapping { mapped, checksum: told.checksum }
    }

    /// Repeats it in a segment with a part of its data.
    pub(crate) fn repeat(&self, data: &DataLevel, segment: &mut Segment) {
        let SuperpacketMapping { mapped, checksum } = *self;
        if let Some(dss) = &mut segment.options.dss
            && let Some(mapping) = dss.mapping.filter(|mapping| mapping.len > 0)
        {
            dss.mapping = Some(Mapping {
                dsn: data.keys().own.wire(mapped.dsn).field(false),
                ssn: mapped.seq.start.low(),
                len: mapped.seq.len() as u16,
                checksum,
                ..mapping
            });
        }
    }
}

/// Mappings that were sent with a part of their data.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// The peer's, the latest last.
    theirs: VecDeque<MappedRange<RecvSpace>>,
    /// Ours, by sequence number and without overlaps.
    ours: VecDeque<SuperpacketMapping>,
}

impl Mappings {
    /// Stores a mapping of the peer for segments that a middlebox split from the one with the
    /// mapping (RFC 8684 section 3.3.1). At most [`MAX_RECEIVED_MAPPINGS`] are kept, so
    /// that a peer cannot fill memory with them. Returns false if it contradicts a stored one.
    pub(crate) fn remember(&mut self, mapped: MappedRange<RecvSpace>) -> bool {
        if self.theirs.back() == Some(&mapped) {
            return true;
        }
        let differs = |other: &MappedRange<RecvSpace>| {
            !other.seq.intersect(mapped.seq).is_empty()
                && Shift::of(other.dsn, other.seq.start) != Shift::of(mapped.dsn, mapped.seq.start)
        };
        if self.theirs.iter().any(differs) {
            return false;
        }
        self.theirs.push_back(mapped);
        if self.theirs.len() > MAX_RECEIVED_MAPPINGS {
            self.theirs.pop_front();
        }
        true
    }

    /// Returns the latest mapping of the peer that covers `range`.
    pub(crate) fn covering(&self, range: RecvRange) -> Option<MappedRange<RecvSpace>> {
        self.theirs.iter().rev().find(|mapped| mapped.seq.covers(range)).copied()
    }

    /// Adds a mapping of ours, sent with new data: above all others.
    pub(crate) fn push(&mut self, mapping: SuperpacketMapping) {
        self.ours.push_back(mapping);
    }

    /// Returns our mapping of the byte at `seq`.
    pub(crate) fn find(&self, seq: SendSsn) -> Option<SuperpacketMapping> {
        let at = self.ours.partition_point(|mapping| mapping.mapped.seq.end <= seq);
        self.ours.get(at).copied().filter(|mapping| mapping.mapped.seq.start <= seq)
    }

    /// Removes our mappings below `una`, which are acknowledged.
    pub(crate) fn on_acked(&mut self, una: SendSsn) {
        while self.ours.front().is_some_and(|mapping| mapping.mapped.seq.end <= una) {
            self.ours.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_found_until_all_of_them_is_acknowledged() {
        let mapping = |from, to, checksum| {
            let seq = plait_base::SendRange::between(from, to);
            SuperpacketMapping { mapped: MappedRange { seq, dsn: Dsn::new(10 * from) }, checksum }
        };
        let (low, high) = (mapping(1, 301, None), mapping(401, 601, Some(7)));
        let mut mappings = Mappings::default();
        mappings.push(low);
        mappings.push(high);
        let find =
            |mappings: &Mappings, seqs: [u64; 2]| seqs.map(|seq| mappings.find(SendSsn::new(seq)));
        assert_eq!(find(&mappings, [1, 300]), [Some(low), Some(low)]);
        assert_eq!(find(&mappings, [301, 601]), [None, None]);
        mappings.on_acked(SendSsn::new(300));
        assert_eq!(find(&mappings, [201, 401]), [Some(low), Some(high)]);
        mappings.on_acked(SendSsn::new(301));
        assert_eq!(find(&mappings, [201, 401]), [None, Some(high)]);
        mappings.on_acked(SendSsn::new(601));
        assert_eq!(find(&mappings, [201, 401]), [None, None]);
    }
}
