//! Segments that a device cuts into full ones (TSO): new data that a subflow was granted at once.
//!
//! Each full segment has its own place in the ring, so windows and recovery know nothing of
//! superpackets. Only the mapping is one for all, and so is its checksum, since the device copies the
//! options; it is told again beside whatever of it is sent again, for Linux refuses a narrower one
//! within it.

use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::mappings::{MappedRange, SuperpacketMapping};
use plait_base::{DataRange, Dsn, Ssn, SubflowRange};
use plait_wire::{Mapping, Segment};

impl Paths {
    /// Whether more may go with `first`, which is new data for the subflow at `index`: it is as long as
    /// `full`, and goes with a mapping of its own, or without any, and no other option beside it.
    pub(crate) fn may_grow(
        &self,
        data: &DataLevel,
        index: usize,
        first: DataRange,
        full: u64,
    ) -> bool {
        let counted = self.spec.config.tsq || self.spec.config.window.pacing.is_some();
        let whole = first.len() == full && first.start > Dsn::ZERO;
        let cuts = self.spec.config.packets.superpacket > 0;
        cuts && whole && !counted && !self.has_ack_option(data, index)
    }

    /// The superpacket that carries `data` from `seq` on is `segment`: its mapping is remembered.
    pub(crate) fn remember_superpacket(
        &mut self,
        index: usize,
        seq: Ssn,
        data: DataRange,
        segment: &Segment,
    ) {
        if let Some(told) = segment.options.dss.and_then(|dss| dss.mapping) {
            let seq = SubflowRange::with_len(seq, data.len());
            let mapping = SuperpacketMapping {
                mapped: MappedRange { seq, dsn: data.start },
                checksum: told.checksum,
            };
            self.subflows[index].mappings.get_or_insert_default().push(mapping);
        }
    }

    /// Where what starts at `seq` was part of a superpacket, its mapping is told again.
    pub(crate) fn repeat_superpacket_mapping(
        &self,
        data: &DataLevel,
        index: usize,
        seq: Ssn,
        segment: &mut Segment,
    ) {
        if let Some(SuperpacketMapping { mapped, checksum }) =
            self.subflows[index].mappings.as_ref().and_then(|it| it.find(seq))
            && let Some(dss) = &mut segment.options.dss
            && let Some(mapping) = dss.mapping.filter(|mapping| mapping.len > 0)
        {
            dss.mapping = Some(Mapping {
                dsn: data.keys.own.wire(mapped.dsn) & 0xffff_ffff,
                ssn: mapped.seq.start.low(),
                len: mapped.seq.len() as u16,
                checksum,
                ..mapping
            });
        }
    }
}
