//! Pending segments of a subflow other than data.

use crate::data::fastclose::Cause;
use plait_wire::WireSeq;

/// Segments that may be pending on a subflow besides data and an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ControlSegment {
    /// SYN or SYN/ACK, according to the state.
    Syn,
    /// A pure ACK that repeats the third ACK of MP_JOIN, or answers the first data.
    HandshakeAck,
    Rst,
    /// A RST for a segment that acknowledges data never sent.
    UnacceptableAck,
    /// An ACK with MP_FASTCLOSE.
    FastClose,
    /// An ACK with MP_FAIL.
    Fail,
    /// An ACK with the infinite mapping.
    Infinite,
    /// A retransmission of the last segment, regardless of the window.
    TailProbe,
    /// A segment that makes the peer advertise its window.
    WindowProbe,
    /// The first unacknowledged segment, sent to a silent path.
    PathProbe,
}

/// The pending segments of a subflow besides data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Pending {
    ack: bool,
    /// Consecutive keep-alive probes without an answer.
    unanswered: u8,
    /// One bit per [`ControlSegment`], because the set is checked with every segment.
    control: u16,
    /// The acknowledged number of the segment that a [`ControlSegment::UnacceptableAck`] answers.
    unacceptable_ack: WireSeq,
    /// The reason in the RST.
    cause: Cause,
}

impl Pending {
    pub(crate) const fn ack(self) -> bool {
        self.ack
    }

    pub(crate) const fn add_ack(&mut self) {
        self.ack = true;
    }

    /// Adds an acknowledgement if `wanted`, and keeps a pending one.
    pub(crate) const fn add_ack_if(&mut self, wanted: bool) {
        self.ack |= wanted;
    }

    pub(crate) const fn drop_ack(&mut self) {
        self.ack = false;
    }

    pub(crate) const fn unanswered(self) -> u8 {
        self.unanswered
    }

    pub(crate) const fn count_unanswered(&mut self) {
        self.unanswered += 1;
    }

    /// Resets the count of probes without an answer, and returns it.
    pub(crate) const fn take_unanswered(&mut self) -> u8 {
        core::mem::replace(&mut self.unanswered, 0)
    }

    pub(crate) const fn cause(self) -> Cause {
        self.cause
    }

    pub(crate) const fn set_cause(&mut self, cause: Cause) {
        self.cause = cause;
    }

    /// Returns a set with one segment.
    pub(crate) fn only(segment: ControlSegment) -> Pending {
        let mut pending = Pending::default();
        pending.add(segment);
        pending
    }

    /// Returns true if anything but an acknowledgement is pending.
    pub(crate) const fn urgent(self) -> bool {
        self.control != 0
    }

    /// Returns one bit per pending segment other than an acknowledgement.
    pub(crate) const fn control_bits(self) -> u16 {
        self.control
    }

    pub(crate) const fn has(self, segment: ControlSegment) -> bool {
        self.control & 1 << segment as u16 != 0
    }

    pub(crate) const fn add(&mut self, segment: ControlSegment) {
        self.control |= 1 << segment as u16;
    }

    /// Adds or removes a segment.
    pub(crate) const fn set(&mut self, segment: ControlSegment, wanted: bool) {
        self.control = self.control & !(1 << segment as u16) | (wanted as u16) << segment as u16;
    }

    /// Takes a segment that is sent now. Returns false if it was not pending.
    pub(crate) const fn take(&mut self, segment: ControlSegment) -> bool {
        let there = self.has(segment);
        self.set(segment, false);
        there
    }

    /// Adds a RST for a segment that acknowledges `seq`, which was never sent.
    pub(crate) const fn add_unacceptable_ack(&mut self, seq: WireSeq) {
        self.add(ControlSegment::UnacceptableAck);
        self.unacceptable_ack = seq;
    }

    /// Takes that RST and returns its number.
    pub(crate) fn take_unacceptable_ack(&mut self) -> Option<WireSeq> {
        self.take(ControlSegment::UnacceptableAck).then_some(self.unacceptable_ack)
    }

    /// Drops everything but the reset of a closed subflow.
    pub(crate) fn keep_reset(&mut self) {
        let rst = self.has(ControlSegment::Rst);
        *self = Pending { cause: self.cause, ..Pending::default() };
        self.set(ControlSegment::Rst, rst);
    }
}
