use alloc::vec::Vec;
use plait_base::{DataRange, SubflowId, SubflowSet};

/// The data to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Unsent data that starts `offset` bytes into the unsent queue.
    New {
        /// Bytes to skip at the front of the unsent queue.
        offset: u64,
    },
    /// The first range of the reinjection queue.
    Reinject,
    /// A copy of data that another subflow has carried.
    Redundant(DataRange),
    /// The range that blocks the send window, sent once more (opportunistic retransmission). The
    /// part that is assigned to another subflow and not sent is taken from its queue.
    OppRetx(DataRange),
}

/// The result of a call of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Send on `subflow`.
    Send {
        /// The subflow.
        subflow: SubflowId,
        /// The data to send.
        what: What,
        /// Bytes of new data, in full segments, that the subflow may take in a row. It holds while
        /// the subflow has room and nothing else changes: the scheduler would repeat this decision
        /// after each segment. A scheduler that must be called for each segment grants one segment.
        grant: u64,
        /// The reason.
        reason: Reason,
    },
    /// Assigns the ranges in [`Outcome::plan`] to their subflows. The ranges were unsent or
    /// assigned before. Nothing is sent yet.
    Assign {
        /// The reason.
        reason: Reason,
    },
    /// Sends nothing, although there is data to send.
    Wait {
        /// The subflow to wait for; `None` if it is no particular one.
        on: Option<SubflowId>,
        /// The reason.
        reason: Reason,
    },
    /// There is nothing to send.
    Idle,
}

impl Decision {
    /// Limits the grant to `segment` bytes. A decorator uses it if it must be called for each
    /// segment, even if its base scheduler grants more.
    #[must_use]
    pub fn one_segment(self, segment: u64) -> Decision {
        match self {
            Decision::Send { subflow, what, grant, reason } => {
                Decision::Send { subflow, what, grant: grant.min(segment), reason }
            }
            other => other,
        }
    }
}

/// A change that the core applies, and logs, beside the decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Sets the subflow's congestion window and threshold (penalisation).
    Penalise {
        /// The subflow.
        subflow: SubflowId,
        /// The new congestion window in bytes.
        cwnd: u64,
        /// The new slow start threshold in bytes; `None` is infinite.
        ssthresh: Option<u64>,
    },
    /// Limits the bytes in flight of the subflow. Its congestion window stays.
    Cap {
        /// The subflow.
        subflow: SubflowId,
        /// The limit in bytes; `None` lifts it.
        bytes: Option<u64>,
    },
}

/// A number that entered a decision, for explanation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number {
    /// Its name in the scheduler's formula.
    pub name: &'static str,
    /// The subflow that the number belongs to, if any.
    pub subflow: Option<SubflowId>,
    /// The value, in the unit given on the scheduler's page.
    pub value: f64,
}

/// The lists that a scheduler fills beside its decision. The core passes it empty and reuses its
/// memory.
#[derive(Clone, Default, Debug)]
pub struct Outcome {
    /// Ranges assigned before they are sent, in sending order.
    pub plan: Vec<(DataRange, SubflowId)>,
    /// Effects on subflows.
    pub effects: Vec<Effect>,
    /// The numbers behind the decision, if `explain` is set.
    pub numbers: Vec<Number>,
    /// The subflows that rest because of their prices. Coupled congestion control leaves them out while
    /// nothing is in flight there.
    pub resting: SubflowSet,
    /// True if [`Outcome::numbers`] is read.
    pub explain: bool,
    /// The number of this decision in the connection, from 1. The core counts it;
    /// [`Outcome::clear`] does not change it.
    pub number: u64,
}

impl Outcome {
    /// Empties the lists and keeps their memory.
    pub fn clear(&mut self) {
        self.plan.clear();
        self.effects.clear();
        self.numbers.clear();
        self.resting = SubflowSet::EMPTY;
    }

    /// Adds a number if `explain` is set.
    pub fn note(&mut self, name: &'static str, subflow: Option<SubflowId>, value: f64) {
        if self.explain {
            self.numbers.push(Number { name, subflow, value });
        }
    }
}

/// The reason for a decision, from a closed set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// The connection has one subflow.
    OnlySubflow,
    /// The usable subflow with the lowest smoothed RTT.
    LowestRtt,
    /// It is this subflow's turn.
    Turn,
    /// The fast subflow has room.
    FastHasRoom,
    /// The fast subflow would not finish sooner.
    SlowFinishesSooner,
    /// The slow subflow would not block the send window.
    SlowFitsWindow,
    /// A copy that reduces latency.
    Copy,
    /// The range was on a subflow that failed.
    Reinjection,
    /// Every subflow has carried the range; the search starts again with all of them.
    ReinjectionAgain,
    /// The send window is stalled, and this subflow has room.
    Opportunistic,
    /// Assigned ahead of sending.
    Planned,
    /// The first subflow in the order of ranks that has room.
    Priority,
    /// The RTT of the subflow is below the threshold.
    BelowThreshold,
    /// No RTT is below the threshold; this one is the lowest.
    NoneBelowThreshold,
    /// When this data arrives, the fast subflow will have delivered all data before it.
    AheadByGap,
    /// The data would arrive first on this subflow.
    EarliestArrival,
    /// Conditions have changed, and assigned data is assigned again.
    Rescheduled,
    /// The data that this subflow holds drains first.
    LeastLinger,
    /// No subflow is live.
    NoSubflow,
    /// Every candidate is full or otherwise blocked.
    AllBusy,
    /// The subflow whose turn it is has no room.
    TurnBusy,
    /// Every subflow that has room has carried the range.
    UntriedBusy,
    /// The segment would end beyond the peer's window.
    SendWindow,
    /// The fast subflow will finish all data sooner.
    FastFinishesSooner,
    /// The slow subflow would block the send window for the fast one.
    SlowBlocksWindow,
    /// Every subflow that has room is above the threshold.
    AboveThreshold,
    /// The unsent data, or the rest of the window, is reserved for the fast subflow.
    GapReserved,
    /// The subflow whose data drains first has a full send buffer.
    SendMemory,
    /// All data is assigned, and the subflow that holds the first of it has no room.
    AssignedBusy,
    /// The price keeps the data off a subflow that has room.
    Price,
    /// The quota keeps the data off a subflow that has room.
    Quota,
    /// A class or an agent in Python has chosen it.
    Chosen,
}

impl Reason {
    /// All reasons.
    pub const ALL: &'static [Reason] = &[
        Reason::OnlySubflow,
        Reason::LowestRtt,
        Reason::Turn,
        Reason::FastHasRoom,
        Reason::SlowFinishesSooner,
        Reason::SlowFitsWindow,
        Reason::Copy,
        Reason::Reinjection,
        Reason::ReinjectionAgain,
        Reason::Opportunistic,
        Reason::Planned,
        Reason::Priority,
        Reason::BelowThreshold,
        Reason::NoneBelowThreshold,
        Reason::AheadByGap,
        Reason::EarliestArrival,
        Reason::Rescheduled,
        Reason::LeastLinger,
        Reason::NoSubflow,
        Reason::AllBusy,
        Reason::TurnBusy,
        Reason::UntriedBusy,
        Reason::SendWindow,
        Reason::FastFinishesSooner,
        Reason::SlowBlocksWindow,
        Reason::AboveThreshold,
        Reason::GapReserved,
        Reason::SendMemory,
        Reason::AssignedBusy,
        Reason::Price,
        Reason::Quota,
        Reason::Chosen,
    ];

    /// Returns the word for the reason, as in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::OnlySubflow => "only-subflow",
            Reason::LowestRtt => "lowest-rtt",
            Reason::Turn => "turn",
            Reason::FastHasRoom => "fast-has-room",
            Reason::SlowFinishesSooner => "slow-finishes-sooner",
            Reason::SlowFitsWindow => "slow-fits-window",
            Reason::Copy => "copy",
            Reason::Reinjection => "reinjection",
            Reason::ReinjectionAgain => "reinjection-again",
            Reason::Opportunistic => "opportunistic",
            Reason::Planned => "planned",
            Reason::Priority => "priority",
            Reason::BelowThreshold => "below-threshold",
            Reason::NoneBelowThreshold => "none-below-threshold",
            Reason::AheadByGap => "ahead-by-gap",
            Reason::EarliestArrival => "earliest-arrival",
            Reason::Rescheduled => "rescheduled",
            Reason::LeastLinger => "least-linger",
            Reason::NoSubflow => "no-subflow",
            Reason::AllBusy => "all-busy",
            Reason::TurnBusy => "turn-busy",
            Reason::UntriedBusy => "untried-busy",
            Reason::SendWindow => "send-window",
            Reason::FastFinishesSooner => "fast-finishes-sooner",
            Reason::SlowBlocksWindow => "slow-blocks-window",
            Reason::AboveThreshold => "above-threshold",
            Reason::GapReserved => "gap-reserved",
            Reason::SendMemory => "send-memory",
            Reason::AssignedBusy => "assigned-busy",
            Reason::Price => "price",
            Reason::Quota => "quota",
            Reason::Chosen => "chosen",
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
