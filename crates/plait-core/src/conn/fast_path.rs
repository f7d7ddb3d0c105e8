//! Header prediction. Nearly all segments are the next in order: data, or an acknowledgement alone.
//! A few field comparisons identify them and replace all other checks. All other segments take the
//! slow path from its start.

use crate::conn::Connection;
use crate::context::Context;
use plait_base::SubflowId;
use plait_wire::{DataAck, Dss, Flags, Segment};

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
        let alone = segment.flags.0 & TELLING == Flags::ACK.0 && segment.options.mptcp.is_none();
        if !alone {
            return false;
        }
        match &segment.options.dss {
            Some(dss) => {
                self.data.is_settled(&self.paths.spec.config)
                    && self.take_mapped(ctx, id, segment, dss)
            }
            None => {
                self.data.is_settled_plain(&self.paths.spec.config)
                    && self.take_plain(ctx, id, segment)
            }
        }
    }

    /// Processes the expected segment of Multipath TCP.
    #[inline(always)]
    fn take_mapped(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        segment: &Segment,
        dss: &Dss,
    ) -> bool {
        let (false, Some(DataAck { value, long: false })) = (dss.data_fin, dss.data_ack) else {
            return false;
        };
        let subflow = self.paths.subflow(id);
        if !subflow.expects(segment) {
            return false;
        }
        match &dss.mapping {
            None if segment.payload.is_empty() => {
                let Some(ack) = subflow.credible_ack(segment) else { return false };
                self.data.on_further_dss();
                self.paths.note_stamp(id, segment);
                let edge = self.data.keys().own.read_low(value, self.data.queue().una());
                self.on_acknowledgements(ctx, id, segment, ack, Some(edge));
                true
            }
            Some(map) => {
                let old = value.low() == self.data.keys().own.wire(self.data.queue().una()).low();
                if !old || !subflow.tells_no_news(&self.data, segment) {
                    return false;
                }
                let Connection { data, paths, notices, .. } = self;
                let Some(before) = paths.take_next(ctx, data, id, segment, Some(map)) else {
                    return false;
                };
                data.on_further_dss();
                paths.after_data(data, notices, ctx.now, id, before);
                self.on_expected_data();
                true
            }
            None => false,
        }
    }

    /// Processes the expected segment of plain TCP.
    #[inline(always)]
    fn take_plain(&mut self, ctx: &mut Context<'_>, id: SubflowId, segment: &Segment) -> bool {
        let subflow = self.paths.subflow(id);
        if !subflow.expects(segment) {
            return false;
        }
        if segment.payload.is_empty() {
            let Some(ack) = subflow.credible_ack(segment) else { return false };
            let edge = self.data.acknowledged_data(segment, ack);
            self.paths.note_stamp(id, segment);
            self.on_acknowledgements(ctx, id, segment, ack, edge);
            return true;
        }
        let una = self.data.acknowledged_data(segment, subflow.sender().tx.una());
        if una != Some(self.data.queue().una()) || !subflow.tells_no_news(&self.data, segment) {
            return false;
        }
        let Connection { data, paths, notices, .. } = self;
        let Some(before) = paths.take_next(ctx, data, id, segment, None) else { return false };
        paths.after_data(data, notices, ctx.now, id, before);
        self.on_expected_data();
        true
    }

    /// Notes that the present input was the next data. The end of the data may cause more to send than
    /// an acknowledgement.
    #[inline(always)]
    fn on_expected_data(&mut self) {
        self.rounds.set_quiet(!self.data.reassembly().finished());
    }
}
