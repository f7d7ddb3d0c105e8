//! Segments that a device splits into full ones (TSO), for new data of one grant.
//!
//! Each full segment has its own entry in the ring, so windows and recovery are independent of
//! superpackets. Only the mapping and its checksum are shared, because the device copies the
//! options. The mapping is repeated on each retransmission, because Linux rejects a narrower one
//! within it.

use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::mappings::SuperpacketMapping;
use plait_base::{DataRange, Dsn, SendSsn, SubflowId};
use plait_wire::Segment;

impl Paths {
    /// Returns true if `first`, new data of the subflow `id`, can be extended: it has `full`
    /// bytes, and either its own mapping or none, and no other option.
    pub(crate) fn may_grow(
        &self,
        data: &DataLevel,
        id: SubflowId,
        first: DataRange,
        full: u64,
    ) -> bool {
        let config = &self.spec.config;
        let counted = || config.tsq || config.window.pacing.is_some_and(|it| !it.ack_clocked);
        let whole = || first.len() == full && first.start > Dsn::ZERO;
        let cuts = config.packets.superpacket > 0;
        cuts && whole() && !counted() && !self.subflows[id].has_ack_option(data)
    }

    /// Notes the mapping of the superpacket `segment` of the subflow `id`. It carries `data`
    /// from `seq` on.
    pub(crate) fn remember_superpacket(
        &mut self,
        id: SubflowId,
        seq: SendSsn,
        data: DataRange,
        segment: &Segment,
    ) {
        if let Some(told) = segment.options.dss.and_then(|dss| dss.mapping) {
            self.subflows[id].remember_mapping(SuperpacketMapping::of(&told, seq, data));
        }
    }
}
