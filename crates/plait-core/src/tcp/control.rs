//! Requests to a subflow: control segments to send, and its status within the connection.

use crate::data::fastclose::Cause;
use crate::tcp::pending::ControlSegment;
use crate::tcp::subflow::Subflow;
use plait_wire::WireSeq;

impl Subflow {
    /// Queues a control segment.
    pub(crate) const fn queue_control(&mut self, segment: ControlSegment) {
        self.pending.add(segment);
    }

    /// Queues an acknowledgement.
    #[inline(always)]
    pub(crate) const fn queue_ack(&mut self) {
        self.pending.add_ack();
    }

    /// Queues an acknowledgement if it is `wanted`.
    #[inline(always)]
    pub(crate) const fn queue_ack_if(&mut self, wanted: bool) {
        self.pending.add_ack_if(wanted);
    }

    /// Queues a RST for a segment that acknowledges `seq`, which was never sent.
    pub(crate) const fn refuse_ack(&mut self, seq: WireSeq) {
        self.pending.add_unacceptable_ack(seq);
    }

    /// Takes that RST and returns its number.
    pub(crate) fn take_refused_ack(&mut self) -> Option<WireSeq> {
        self.pending.take_unacceptable_ack()
    }

    /// Queues the infinite mapping if it is `wanted`, or else drops it.
    pub(crate) const fn set_infinite(&mut self, wanted: bool) {
        self.pending.set(ControlSegment::Infinite, wanted);
    }

    /// Takes a control segment that is sent now. Returns false if it was not queued.
    #[inline]
    pub(crate) const fn take_control(&mut self, segment: ControlSegment) -> bool {
        self.pending.take(segment)
    }

    /// Sets the reason in its RST.
    pub(crate) const fn set_reset_cause(&mut self, cause: Cause) {
        self.pending.set_cause(cause);
    }

    /// Resets the count of keep-alive probes without an answer. Returns true if there were any.
    pub(crate) const fn on_probe_answered(&mut self) -> bool {
        self.pending.take_unanswered() > 0
    }

    /// Sets whether this end requests backup priority.
    pub(crate) const fn set_backup(&mut self, backup: bool) {
        self.status.set_backup(backup);
    }

    /// Notes the priority that the peer requests. Returns true if it changes.
    pub(crate) const fn on_peer_priority(&mut self, backup: bool) -> bool {
        self.status.set_peer_backup(backup)
    }

    /// Notes a valid packet. Returns true if its path was silent.
    pub(crate) const fn revive(&mut self) -> bool {
        self.status.revive()
    }
}
