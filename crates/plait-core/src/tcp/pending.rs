//! What a subflow has to send besides data, and what its reset tells.

use plait_base::Dsn;
use plait_wire::ResetReason;

/// Why a subflow is reset: what its RST tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// MP_TCPRST with this reason.
    Reason(ResetReason),
    /// MP_FASTCLOSE: the connection ends.
    Close,
    /// MP_FAIL: the checksum of the peer's mapping with this DSN was wrong.
    Failed(Dsn),
}

impl Default for Cause {
    fn default() -> Cause {
        Cause::Reason(ResetReason::Mptcp)
    }
}

/// What may be pending on a subflow besides data and an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ControlSegment {
    /// SYN or SYN/ACK, according to the state.
    Syn,
    /// A pure ACK that repeats the third ACK of MP_JOIN.
    JoinAck,
    Rst,
    /// A RST for a segment that acknowledges what we never sent.
    UnacceptableAck,
    /// An ACK with MP_FASTCLOSE.
    FastClose,
    /// An ACK with MP_FAIL.
    Fail,
    /// An ACK with the infinite mapping.
    Infinite,
    /// A retransmission of the last segment, whatever the window says.
    TailProbe,
    /// A segment that makes the peer tell its window.
    WindowProbe,
    /// The first segment that is not acknowledged, to a path that is silent.
    PathProbe,
}

/// What is pending on a subflow besides data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Pending {
    pub(crate) ack: bool,
    /// Keep-alives in a row that the peer has not answered.
    pub(crate) unanswered: u8,
    /// A bit for each [`ControlSegment`]: with every segment somebody asks whether there is any.
    control: u16,
    /// What the segment acknowledges that a [`ControlSegment::UnacceptableAck`] answers.
    unacceptable_ack: u32,
    /// What a RST tells.
    pub(crate) cause: Cause,
}

impl Pending {
    /// One segment and nothing else.
    pub(crate) fn only(segment: ControlSegment) -> Pending {
        let mut pending = Pending::default();
        pending.add(segment);
        pending
    }

    /// Whether anything but an acknowledgement is pending.
    pub(crate) const fn urgent(self) -> bool {
        self.control != 0
    }

    /// A bit for each that is pending beside an acknowledgement.
    pub(crate) const fn control_bits(self) -> u16 {
        self.control
    }

    pub(crate) const fn has(self, segment: ControlSegment) -> bool {
        self.control & 1 << segment as u16 != 0
    }

    pub(crate) const fn add(&mut self, segment: ControlSegment) {
        self.control |= 1 << segment as u16;
    }

    /// Adds a segment, or drops it.
    pub(crate) const fn set(&mut self, segment: ControlSegment, wanted: bool) {
        self.control = self.control & !(1 << segment as u16) | (wanted as u16) << segment as u16;
    }

    /// Takes a segment that is to be sent now; false where there was none.
    pub(crate) const fn take(&mut self, segment: ControlSegment) -> bool {
        let there = self.has(segment);
        self.set(segment, false);
        there
    }

    /// A RST is pending for a segment that acknowledges `seq`, which we never sent.
    pub(crate) const fn add_unacceptable_ack(&mut self, seq: u32) {
        self.add(ControlSegment::UnacceptableAck);
        self.unacceptable_ack = seq;
    }

    /// Takes it, with that number.
    pub(crate) fn take_unacceptable_ack(&mut self) -> Option<u32> {
        self.take(ControlSegment::UnacceptableAck).then_some(self.unacceptable_ack)
    }

    /// On a subflow that is closed nothing but its reset is pending.
    pub(crate) fn keep_reset(&mut self) {
        let rst = self.has(ControlSegment::Rst);
        *self = Pending { cause: self.cause, ..Pending::default() };
        self.set(ControlSegment::Rst, rst);
    }
}
