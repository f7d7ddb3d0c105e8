//! Header prediction. Nearly all segments are the next in order: data, or an acknowledgement alone.
//! A few field comparisons identify them and replace all other checks. All other segments take the
//! slow path from its start.

use crate::conn::Connection;
use crate::context::Context;
use plait_base::SubflowId;
use plait_wire::{DataAck, Flags, Segment, WireSeq};

/// The flags that rule out the fast path, and ACK, which must be set.
const TELLING: u8 = Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0 | Flags::ACK.0;

impl Connection {
    /// Processes a segment for the subflow `id` if it is the expected one. Otherwise returns
    /// false and changes nothing.
    #[inline(never)]
    pub(super) fn try_fast_path(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        segment: &Segment,
    ) -> bool {
        let Some(dss) = &segment.options.dss else { return false };
        let (false, Some(DataAck { value, long: false })) = (dss.data_fin, dss.data_ack) else {
            return false;
        };
        let alone = segment.flags.0 & TELLING == Flags::ACK.0 && segment.options.mptcp.is_none();
        if !alone || !self.data.is_settled(&self.paths.spec.config) {
            return false;
        }
        let subflow = self.paths.subflow(id);
        let next = subflow.negotiated().irs.wire(subflow.rx().nxt());
        if WireSeq(segment.seq) != next || !subflow.is_steady() || subflow.is_old(segment) {
            return false;
        }
        match &dss.mapping {
            None if segment.payload.is_empty() => {
                let una = subflow.sender().tx.una();
                let ack = subflow.negotiated().iss.read(WireSeq(segment.ack), una);
                if ack < una || ack > subflow.sender().tx.nxt() {
                    return false;
                }
                self.data.on_further_dss();
                self.paths.note_stamp(id, segment);
                let edge = self.data.keys().own.read_low(value, self.data.queue().una());
                self.on_acknowledgements(ctx, id, segment, ack, Some(edge));
                true
            }
            Some(map) => {
                if !subflow.tells_no_news(&self.data, segment, value) {
                    return false;
                }
                let Connection { data, paths, notices, .. } = self;
                let Some(before) = paths.take_next(ctx, data, id, segment, map) else {
                    return false;
                };
                paths.after_data(data, notices, ctx.now, id, before);
                true
            }
            None => false,
        }
    }
}
