//! Payload of a segment on its subflow: data with its mapping, and the end of the subflow.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::data::reassembly::Round;
use crate::notices::Notices;
use crate::paths::Paths;
use crate::tcp::arrival::{Arrival, Received};
use plait_base::{Dsn, RecvRange, RecvSsn, SubflowId, Time};
use plait_wire::{Dss, Flags, ResetReason, Segment};

impl Paths {
    /// Processes the payload of a segment whose first byte is `seq` of the subflow `id`.
    pub(crate) fn take_payload(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        id: SubflowId,
        segment: &Segment,
        seq: RecvSsn,
    ) -> Received {
        let arrival = Arrival {
            segment,
            range: RecvRange::with_len(seq, u64::from(segment.payload.len())),
            ack_unit: self.sizes.ack_unit(),
            held: ctx.memory_limit().map(|_| self.received(data).taken()),
        };
        let subflow = &mut self.subflows[id];
        let taken = arrival.take(subflow, ctx, data);
        if matches!(taken, Received::Refused(ResetReason::Middlebox)) {
            self.joins.bar(subflow.address().path());
        }
        taken
    }

    /// Adapts the receive window to the reader's pace.
    #[inline(always)]
    pub(crate) fn retune(&self, data: &mut DataLevel, now: Time) {
        if data.reassembly().is_tuned(now, self.spec.config.buffers.rcvbuf) {
            let longest = self.subflows.iter().filter_map(|it| it.sender().rtt.srtt()).max();
            let (rtt, subflows) = (longest.unwrap_or_default(), self.subflows.len());
            data.retune(now, &self.spec.config, Round { rtt, mss: self.mss(), subflows });
        }
    }

    /// Updates the connection after data was accepted on the subflow `id`. Data below
    /// `before` was already readable.
    #[inline(always)]
    pub(crate) fn after_data(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        now: Time,
        id: SubflowId,
        before: Dsn,
    ) {
        if data.reassembly().nxt() > before {
            notices.tell_user();
            self.retune(data, now);
            if data.reassembly().finished() {
                // The last bytes before a DATA_FIN that arrived earlier.
                self.on_peer_finished(data, notices, now);
                self.subflows[id].queue_ack();
            }
        }
    }

    /// Processes a DATA_FIN.
    pub(crate) fn take_data_fin(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        now: Time,
        id: SubflowId,
        dss: &Dss,
    ) {
        if data.receives_plain() {
            return;
        }
        self.subflows[id].queue_ack_if(dss.mapping.is_some());
        if data.take_data_fin(dss) {
            self.on_peer_finished(data, notices, now);
        }
    }

    /// Returns the sequence number of a FIN: of this segment, whose first byte is `seq`, or of an
    /// earlier one that is now in order.
    pub(crate) fn fin(
        &mut self,
        id: SubflowId,
        segment: &Segment,
        seq: RecvSsn,
    ) -> Option<RecvSsn> {
        match segment.flags.has(Flags::FIN) {
            true => Some(seq + u64::from(segment.payload.len())),
            false => self.subflows[id].fin_due(),
        }
    }
}
