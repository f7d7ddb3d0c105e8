//! Mappings that were told for several segments at once, until all of those are acknowledged.

use crate::tcp::subflow::Told;
use alloc::collections::VecDeque;

/// By sequence number, without overlaps.
#[derive(Debug, Default)]
pub(crate) struct Wide {
    told: VecDeque<Told>,
}

impl Wide {
    /// Told beside new data: above all others.
    pub(crate) fn push(&mut self, told: Told) {
        self.told.push_back(told);
    }

    /// That of the byte at `seq`.
    pub(crate) fn find(&self, seq: u64) -> Option<Told> {
        let at = self.told.partition_point(|told| told.seq.end <= seq);
        self.told.get(at).copied().filter(|told| told.seq.start <= seq)
    }

    /// Everything below `una` is acknowledged. True where nothing is left.
    pub(crate) fn on_acked(&mut self, una: u64) -> bool {
        while self.told.front().is_some_and(|told| told.seq.end <= una) {
            self.told.pop_front();
        }
        self.told.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::ByteRange;

    #[test]
    fn mappings_are_found_until_all_of_them_is_acknowledged() {
        let told = |from, to| Told { seq: ByteRange::new(from, to), dsn: 10 * from };
        let mut wide = Wide::default();
        wide.push(told(1, 301));
        wide.push(told(401, 601));
        assert_eq!(wide.find(1), Some(told(1, 301)));
        assert_eq!(wide.find(300), Some(told(1, 301)));
        assert_eq!((wide.find(301), wide.find(601)), (None, None));
        assert!(!wide.on_acked(300));
        assert_eq!(wide.find(201), Some(told(1, 301)));
        assert!(!wide.on_acked(301));
        assert_eq!((wide.find(201), wide.find(401)), (None, Some(told(401, 601))));
        assert!(wide.on_acked(601));
    }
}
