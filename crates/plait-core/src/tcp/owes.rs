//! What a subflow has to send besides data, and what its reset tells.

use plait_wire::ResetReason;

/// Why a subflow is reset: what its RST tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// MP_TCPRST with this reason.
    Reason(ResetReason),
    /// MP_FASTCLOSE: the connection ends.
    Close,
    /// MP_FAIL: the checksum of the mapping with this DSN, as on the wire, was wrong.
    Failed(u64),
}

impl Default for Cause {
    fn default() -> Cause {
        Cause::Reason(ResetReason::Mptcp)
    }
}

/// Segments a subflow owes besides data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Owes {
    /// SYN or SYN/ACK, according to the state.
    pub(crate) syn: bool,
    pub(crate) ack: bool,
    /// A pure ACK that repeats the third ACK of MP_JOIN.
    pub(crate) join_ack: bool,
    pub(crate) rst: bool,
    /// What it tells.
    pub(crate) cause: Cause,
    /// A RST for a segment that acknowledges this number, which we never sent.
    pub(crate) stray: Option<u32>,
    /// An ACK with MP_FASTCLOSE.
    pub(crate) fast_close: bool,
    /// An ACK with MP_FAIL.
    pub(crate) fail: bool,
    /// An ACK with the infinite mapping.
    pub(crate) infinite: bool,
    /// A retransmission of the last segment, whatever the window says.
    pub(crate) tail_probe: bool,
    /// A segment that makes the peer tell its window.
    pub(crate) window_probe: bool,
    /// The first segment that is not acknowledged, to a path that is silent.
    pub(crate) path_probe: bool,
}

impl Owes {
    /// Whether anything but an acknowledgement is owed.
    pub(crate) const fn urgent(self) -> bool {
        self.syn
            | self.stray.is_some()
            | self.join_ack
            | self.rst
            | self.fast_close
            | self.fail
            | self.infinite
            | self.tail_probe
            | self.window_probe
            | self.path_probe
    }
}
