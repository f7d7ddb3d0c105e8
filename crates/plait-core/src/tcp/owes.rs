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

/// What a subflow may owe besides data and an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Debt {
    /// SYN or SYN/ACK, according to the state.
    Syn,
    /// A pure ACK that repeats the third ACK of MP_JOIN.
    JoinAck,
    Rst,
    /// A RST for a segment that acknowledges what we never sent.
    Stray,
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

/// Segments a subflow owes besides data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Owes {
    pub(crate) ack: bool,
    /// Keep-alives in a row that the peer owes an answer to.
    pub(crate) unanswered: u8,
    /// A bit for each [`Debt`]: with every segment somebody asks whether there is any.
    debts: u16,
    /// What the segment acknowledges that a [`Debt::Stray`] answers.
    stray: u32,
    /// What a RST tells.
    pub(crate) cause: Cause,
}

impl Owes {
    /// One debt and nothing else.
    pub(crate) fn only(debt: Debt) -> Owes {
        let mut owes = Owes::default();
        owes.add(debt);
        owes
    }

    /// Whether anything but an acknowledgement is owed.
    pub(crate) const fn urgent(self) -> bool {
        self.debts != 0
    }

    /// A bit for each that is owed beside an acknowledgement.
    pub(crate) const fn debts(self) -> u16 {
        self.debts
    }

    pub(crate) const fn has(self, debt: Debt) -> bool {
        self.debts & 1 << debt as u16 != 0
    }

    pub(crate) const fn add(&mut self, debt: Debt) {
        self.debts |= 1 << debt as u16;
    }

    /// Adds a debt, or drops it.
    pub(crate) const fn set(&mut self, debt: Debt, owed: bool) {
        self.debts = self.debts & !(1 << debt as u16) | (owed as u16) << debt as u16;
    }

    /// Pays a debt; false where there was none.
    pub(crate) const fn take(&mut self, debt: Debt) -> bool {
        let there = self.has(debt);
        self.set(debt, false);
        there
    }

    /// A RST is owed for a segment that acknowledges `seq`, which we never sent.
    pub(crate) const fn add_stray(&mut self, seq: u32) {
        self.add(Debt::Stray);
        self.stray = seq;
    }

    /// Pays it, with that number.
    pub(crate) fn take_stray(&mut self) -> Option<u32> {
        self.take(Debt::Stray).then_some(self.stray)
    }

    /// A subflow that is closed owes its reset at most.
    pub(crate) fn keep_reset(&mut self) {
        let rst = self.has(Debt::Rst);
        *self = Owes { cause: self.cause, ..Owes::default() };
        self.set(Debt::Rst, rst);
    }
}
