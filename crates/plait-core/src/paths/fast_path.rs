//! The subflow's part of header prediction: checks whether a segment is the next one.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::fast_path::NextData;
use plait_base::{Dsn, SubflowId};
use plait_wire::{Mapping, Segment};

impl Paths {
    /// Notes the peer's timestamp on the subflow `id`, to be echoed.
    #[inline(always)]
    pub(crate) fn note_stamp(&mut self, id: SubflowId, segment: &Segment) {
        self.subflows[id].note_stamp(segment);
    }

    /// Accepts the data of the next segment if `map` maps exactly its bytes, or if it is plain TCP and
    /// has no mapping. Returns the DSN up to which data was readable before.
    #[inline(always)]
    pub(crate) fn take_next(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        id: SubflowId,
        segment: &Segment,
        map: Option<&Mapping>,
    ) -> Option<Dsn> {
        let next = NextData { segment, ack_unit: self.sizes.ack_unit() };
        next.take(&mut self.subflows[id], ctx, data, map)
    }
}
