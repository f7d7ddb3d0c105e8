//! Acknowledgements of a subflow's sequence numbers.

use crate::data::level::DataLevel;
use crate::notices::Notices;
use crate::paths::Paths;
use crate::tcp::ack_processing::{AckEffects, AckInfo};
use plait_base::{SendRange, SendSsn, SubflowId, Time};
use plait_wire::{Segment, WireSeq};

impl Paths {
    /// Updates the peer's window of the subflow `id`. Returns true if the old one held the
    /// subflow back.
    pub(crate) fn update_window(&mut self, id: SubflowId, segment: &Segment, ack: SendSsn) -> bool {
        let (subflow, rules) = self.at(id);
        subflow.update_window(segment, ack, rules.sizes.mss())
    }

    /// Withdraws reinjections after a timeout of the subflow `id` that was spurious.
    pub(crate) fn withdraw_reinjections(&mut self, data: &mut DataLevel, id: SubflowId) {
        self.subflows[id].reclaim_outstanding(data);
    }

    /// Processes an acknowledgement up to `ack` and its SACK blocks. Returns `None` if nothing in
    /// it is new.
    pub(crate) fn take_ack(
        &mut self,
        now: Time,
        id: SubflowId,
        segment: &Segment,
        ack: SendSsn,
    ) -> Option<AckEffects> {
        let subflow = &mut self.subflows[id];
        let una = subflow.sender().tx.una();
        let blocks = segment.options.sack.as_slice();
        if ack <= una && blocks.is_empty() {
            if segment.payload.is_empty() {
                subflow.on_duplicate_ack(ack);
            }
            return None;
        }
        let stamps = segment.options.timestamps.filter(|_| subflow.negotiated().timestamps);
        let echo = stamps.map(|stamps| stamps.echo);
        if blocks.is_empty() {
            let info = AckInfo { ack, blocks: &[], dsack: None, echo };
            return Some(self.process_ack(now, id, &info));
        }
        let mut ranges = [SendRange::default(); 4];
        let iss = subflow.negotiated().iss;
        for (range, (left, right)) in ranges.iter_mut().zip(blocks) {
            *range = SendRange::new(iss.read(WireSeq(*left), una), iss.read(WireSeq(*right), una));
        }
        let ranges = &ranges[..blocks.len()];
        // RFC 2883 section 4: a first block below the acknowledgement, or inside the second.
        let dsack = ranges.first().copied().filter(|first| {
            first.end <= ack || ranges.get(1).is_some_and(|second| second.covers(*first))
        });
        let info = AckInfo { ack: ack.max(una), blocks: ranges, dsack, echo };
        Some(self.process_ack(now, id, &info))
    }

    #[inline(never)]
    fn process_ack(&mut self, now: Time, id: SubflowId, info: &AckInfo<'_>) -> AckEffects {
        let (mss, mut effects) = (self.mss(), AckEffects::default());
        self.subflows.with_flows(id, |subflow, flows| {
            subflow.on_ack(now, info, flows, mss, &mut effects);
        });
        effects
    }

    /// Applies an acknowledgement to the data on the subflow `id`: withdraws unneeded
    /// reinjections, continues F-RTO, and removes old mappings.
    pub(crate) fn settle_ack(&mut self, data: &mut DataLevel, id: SubflowId) {
        self.subflows[id].settle_ack(data);
    }

    /// Grows the send memory of the subflow `id` if its window is not full
    /// while a writer waits (`tcp_should_expand_sndbuf` of Linux). In congestion avoidance the window is never full for
    /// long, because Linux waits for room for two segments (`tcp_tso_should_defer`).
    #[cold]
    pub(crate) fn expand_send_memory(
        &self,
        data: &mut DataLevel,
        notices: &mut Notices,
        id: SubflowId,
    ) {
        let (subflow, mss) = (&self.subflows[id], self.mss());
        let (id, cwnd) = (subflow.id(), subflow.sender().cwnd());
        let planned = subflow.sender().tx.inflight() + data.queue().assigned(id);
        let avoidance = !subflow.sender().cc.in_slow_start();
        if data.writer_waits() && (avoidance || planned + mss <= cwnd) {
            data.grow_send_memory(id, cwnd / mss.max(1));
            notices.tell_user();
        }
    }
}
