//! Acceptability of the peer's segments: they lie in the window and have a fresh timestamp. Other
//! segments may be answered by a challenge ACK (RFC 9293 section 3.10.7.4, RFC 5961, RFC 7323).

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::acceptability::accepts;
use crate::tcp::subflow::Numbers;
use plait_base::SubflowId;
use plait_wire::Segment;

impl Paths {
    /// Returns true if the segment must be processed ([`accepts`]). Others are answered by
    /// a challenge ACK.
    pub(crate) fn is_acceptable(
        &mut self,
        ctx: &mut Context<'_>,
        data: &DataLevel,
        id: SubflowId,
        segment: &Segment,
        numbers: Numbers,
    ) -> bool {
        let subflow = &mut self.subflows[id];
        let accepted = accepts(subflow, data, &self.spec.config, segment, numbers);
        if !accepted {
            self.challenge(ctx, id);
        }
        accepted
    }

    /// Sends a challenge ACK, within the limit (RFC 5961 section 7).
    pub(crate) fn challenge(&mut self, ctx: &mut Context<'_>, id: SubflowId) {
        let may = self.challenges.take(ctx);
        self.subflows[id].proof().challenge(may);
    }
}
