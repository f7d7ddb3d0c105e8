//! Acknowledgements of a subflow's sequence numbers.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Event, WindowCause};
use crate::notices::Notices;
use crate::paths::Paths;
use crate::tcp::ack_processing::{AckEffects, AckInfo};
use crate::tcp::subflow::Subflow;
use plait_base::{DataRange, SendRange, SendSsn, Time};
use plait_wire::Segment;

impl Subflow {
    /// Returns the data of the lost segments that wait for their retransmission.
    pub(crate) fn lost_data(&self) -> impl Iterator<Item = DataRange> {
        self.sender.tx.lost_data()
    }

    /// Emits the events of an acknowledgement.
    pub(crate) fn report_ack(&self, ctx: &mut Context<'_>, effects: &AckEffects) {
        let (id, cwnd) = (self.id(), self.sender.cwnd());
        ctx.emit(Event::Acked {
            subflow: id,
            bytes: effects.delivered,
            rtt: effects.rtt,
            srtt: self.sender.rtt.srtt().unwrap_or_default(),
            cwnd,
            inflight: self.sender.tx.inflight(),
        });
        let cause = match effects {
            AckEffects { undone: Some(_), entered_recovery: false, .. } => {
                Some(WindowCause::Undone)
            }
            AckEffects { entered_recovery: true, .. } | AckEffects { tail_repaired: true, .. } => {
                Some(WindowCause::Loss)
            }
            AckEffects { left_recovery: true, .. } => Some(WindowCause::Recovered),
            _ => None,
        };
        if let Some(cause) = cause {
            let ssthresh = self.sender.cc.ssthresh();
            ctx.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
            if effects.tail_repaired {
                let cause = WindowCause::Recovered;
                ctx.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
            }
        }
    }

    /// Continues the retransmissions that F-RTO holds back if no new data can be sent (RFC 5682
    /// section 3.1 step 2b).
    pub(super) fn continue_frto(&mut self, data: &DataLevel) {
        if self.sender.holds_retransmissions() {
            let room = data.window.end() > data.queue.nxt();
            if data.queue.unsent() == 0 || !room {
                self.sender.give_up_frto();
            }
        }
    }

    /// Grows the send memory of a subflow whose window is not full while a writer waits
    /// (`tcp_should_expand_sndbuf` of Linux). In congestion avoidance the window is never full for
    /// long, because Linux waits for room for two segments (`tcp_tso_should_defer`).
    #[cold]
    pub(crate) fn expand_send_memory(&self, data: &mut DataLevel, notices: &mut Notices, mss: u64) {
        let (id, cwnd) = (self.id(), self.sender.cwnd());
        let planned = self.sender.tx.inflight() + data.queue.assigned(id);
        let avoidance = !self.sender.cc.in_slow_start();
        if let Some(memory) = data.queue.memory().filter(|memory| memory.waits())
            && (avoidance || planned + mss <= cwnd)
        {
            memory.expand(id, cwnd / mss.max(1));
            notices.tell_user();
        }
    }

    /// Queues all unacknowledged data for reinjection.
    pub(crate) fn reinject_outstanding(&self, data: &mut DataLevel) {
        for sent in self.sender.tx.iter() {
            data.queue.queue_reinjection(sent.data());
        }
    }
}

impl Paths {
    /// Updates the peer's window of the subflow at `index`. Returns true if the old one held the
    /// subflow back.
    pub(crate) fn update_window(&mut self, index: usize, segment: &Segment, ack: SendSsn) -> bool {
        let (subflow, rules) = self.at(index);
        let window = u64::from(segment.window) << subflow.negotiated().peer_scale;
        let held = subflow.sender.exceeds_window(rules.sizes.mss());
        subflow.sender.limits.advance_edge(ack.saturating_add(window));
        held
    }

    /// Withdraws reinjections after a timeout of the subflow at `index` that was spurious.
    pub(crate) fn withdraw_reinjections(&mut self, data: &mut DataLevel, index: usize) {
        let subflow = &mut self.subflows[index];
        subflow.sender.reset_black_hole();
        for sent in subflow.sender.tx.iter().filter(|sent| !sent.fin) {
            data.queue.mark_carried(sent.data(), subflow.id());
        }
    }

    /// Processes an acknowledgement up to `ack` and its SACK blocks. Returns `None` if nothing in
    /// it is new.
    pub(crate) fn take_ack(
        &mut self,
        now: Time,
        index: usize,
        segment: &Segment,
        ack: SendSsn,
    ) -> Option<AckEffects> {
        let subflow = &mut self.subflows[index];
        let una = subflow.sender.tx.una();
        let blocks = segment.options.sack.as_slice();
        if ack <= una && blocks.is_empty() {
            if segment.payload.is_empty() {
                subflow.sender.on_duplicate_ack(ack);
            }
            return None;
        }
        let stamps = segment.options.timestamps.filter(|_| subflow.negotiated().timestamps);
        let echo = stamps.map(|stamps| stamps.echo);
        if blocks.is_empty() {
            let info = AckInfo { ack, blocks: &[], dsack: None, echo };
            return Some(self.process_ack(now, index, &info));
        }
        let mut ranges = [SendRange::default(); 4];
        let iss = subflow.negotiated().iss;
        for (range, (left, right)) in ranges.iter_mut().zip(blocks) {
            *range = SendRange::new(iss.read(*left, una), iss.read(*right, una));
        }
        let ranges = &ranges[..blocks.len()];
        // RFC 2883 section 4: a first block below the acknowledgement, or inside the second.
        let dsack = ranges.first().copied().filter(|first| {
            first.end <= ack || ranges.get(1).is_some_and(|second| second.covers(*first))
        });
        let info = AckInfo { ack: ack.max(una), blocks: ranges, dsack, echo };
        Some(self.process_ack(now, index, &info))
    }

    #[inline(never)]
    fn process_ack(&mut self, now: Time, index: usize, info: &AckInfo<'_>) -> AckEffects {
        let (mss, mut effects) = (self.mss(), AckEffects::default());
        self.subflows.with_flows(index, |subflow, flows| {
            subflow.on_ack(now, info, flows, mss, &mut effects);
        });
        effects
    }

    /// Applies an acknowledgement to the data on the subflow at `index`: withdraws unneeded
    /// reinjections, continues F-RTO, and removes old mappings.
    pub(crate) fn settle_ack(&mut self, data: &mut DataLevel, index: usize) {
        let subflow = &mut self.subflows[index];
        subflow.continue_frto(data);
        if let Some(mappings) = &mut subflow.mappings {
            mappings.on_acked(subflow.sender.tx.una());
        }
    }
}
