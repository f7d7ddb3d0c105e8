//! Unacknowledged data of a subflow, as the data level uses it.

use crate::data::level::DataLevel;
use crate::tcp::send::Sent;
use crate::tcp::subflow::Subflow;
use plait_base::SendSsn;
use plait_wire::Segment;

impl Subflow {
    /// Continues the retransmissions that F-RTO holds back if no new data can be sent (RFC 5682
    /// section 3.1 step 2b).
    fn continue_frto(&mut self, data: &DataLevel) {
        if self.sender.holds_retransmissions() {
            let room = data.window().end() > data.queue().nxt();
            if data.queue().unsent() == 0 || !room {
                self.sender.give_up_frto();
            }
        }
    }

    /// Notes an acknowledgement at both levels: continues F-RTO, and removes old mappings.
    pub(crate) fn settle_ack(&mut self, data: &DataLevel) {
        self.continue_frto(data);
        if let Some(mappings) = &mut self.mappings {
            mappings.on_acked(self.sender.tx.una());
        }
    }

    /// Updates the peer's window of this subflow. Returns true if the old one held back a segment of
    /// `mss` bytes.
    pub(crate) fn update_window(&mut self, segment: &Segment, ack: SendSsn, mss: u64) -> bool {
        let window = u64::from(segment.window) << self.negotiated.peer_scale;
        let held = self.sender.exceeds_window(mss);
        self.sender.limits.advance_edge(ack.saturating_add(window));
        held
    }

    /// Handles a spurious timeout: its data is with this subflow, and the path drops no long
    /// segments.
    pub(crate) fn reclaim_outstanding(&mut self, data: &mut DataLevel) {
        self.sender.reset_black_hole();
        for sent in self.sender.tx.iter().filter(|sent| !sent.fin) {
            data.on_spurious_timeout(sent.data(), self.id);
        }
    }

    /// Forgets its data, because it has ended.
    pub(crate) fn abandon(&mut self) {
        self.sender.tx.abandon();
    }

    /// Notes an acknowledgement of `ack` without news, which may answer a tail loss probe.
    pub(crate) fn on_duplicate_ack(&mut self, ack: SendSsn) {
        self.sender.on_duplicate_ack(ack);
    }

    /// Notes that a tail loss probe was sent.
    pub(crate) fn on_tail_probe(&mut self) {
        self.sender.on_tail_probe();
    }

    /// Returns its first lost segment that it may retransmit.
    pub(crate) fn next_retransmission(&mut self) -> Option<Sent> {
        if self.sender.tx.lost_segments() == 0 {
            return None;
        }
        self.sender.next_retransmission()
    }
}
