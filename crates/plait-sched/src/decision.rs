use alloc::vec::Vec;
use plait_base::{DataRange, SubflowId};

/// What to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Unsent data, from `offset` bytes into the unsent queue.
    New {
        /// Bytes of the unsent queue to leave alone in front.
        offset: u64,
    },
    /// The first range of the reinjection queue.
    Reinject,
    /// A copy of data that another subflow carries.
    Redundant(DataRange),
    /// The range that blocks the send window, again (opportunistic retransmission); what of it a
    /// subflow was assigned and has not sent is taken from its queue.
    OppRetx(DataRange),
}

/// A scheduler's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Send on `subflow`.
    Send {
        /// The subflow.
        subflow: SubflowId,
        /// What to send.
        what: What,
        /// Bytes of new data that the subflow may take in a row, in full segments, as long as it has
        /// room and nothing happens but that: asked after each segment, the scheduler would say the
        /// same. One segment, where it is to be asked each time.
        grant: u64,
        /// Why.
        reason: Reason,
    },
    /// The ranges in [`Outcome::plan`], unsent or assigned before, now belong to their subflows;
    /// nothing is sent by this.
    Assign {
        /// Why.
        reason: Reason,
    },
    /// Something could be sent, and the scheduler declines.
    Wait {
        /// The subflow waited for, if it is one.
        on: Option<SubflowId>,
        /// Why.
        reason: Reason,
    },
    /// There is nothing to send.
    Idle,
}

impl Decision {
    /// The same for at most `segment` bytes: for those that want to be asked about each segment,
    /// whatever the scheduler beneath them grants.
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

/// What the core shall do beside the decision; applied and logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Set the subflow's window and threshold to these (penalisation).
    Penalise {
        /// The subflow.
        subflow: SubflowId,
        /// Its new congestion window in bytes.
        cwnd: u64,
        /// Its new slow start threshold.
        ssthresh: Option<u64>,
    },
    /// Let the subflow have at most this many bytes in flight; its congestion window stays.
    Cap {
        /// The subflow.
        subflow: SubflowId,
        /// The limit; `None` lifts it.
        bytes: Option<u64>,
    },
}

/// A number that weighed in a decision, for explanation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number {
    /// Its name in the scheduler's formula.
    pub name: &'static str,
    /// The subflow it speaks of, if one.
    pub subflow: Option<SubflowId>,
    /// The value, in the unit that the scheduler's page gives.
    pub value: f64,
}

/// Where a scheduler writes what goes with its decision. The core lends it, empty, and keeps its
/// memory.
#[derive(Clone, Default, Debug)]
pub struct Outcome {
    /// Ranges assigned ahead of sending, in the order in which they go out.
    pub plan: Vec<(DataRange, SubflowId)>,
    /// Effects on subflows.
    pub effects: Vec<Effect>,
    /// The numbers behind the decision, where they are asked for.
    pub numbers: Vec<Number>,
    /// Whether anybody reads [`Outcome::numbers`].
    pub explain: bool,
    /// Which decision of the connection this is, from 1. The core counts; [`Outcome::clear`] leaves
    /// it alone.
    pub number: u64,
}

impl Outcome {
    /// Empties the lists and keeps their memory.
    pub fn clear(&mut self) {
        self.plan.clear();
        self.effects.clear();
        self.numbers.clear();
    }

    /// Notes a number, where anybody reads it.
    pub fn note(&mut self, name: &'static str, subflow: Option<SubflowId>, value: f64) {
        if self.explain {
            self.numbers.push(Number { name, subflow, value });
        }
    }
}

/// Why a decision was made: a closed set of words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// There is one subflow.
    OnlySubflow,
    /// Lowest smoothed RTT among the usable ones.
    LowestRtt,
    /// It is this subflow's turn.
    Turn,
    /// The fast subflow has room.
    FastHasRoom,
    /// The fast subflow would not finish sooner.
    SlowFinishesSooner,
    /// The slow subflow would not block the send window.
    SlowFitsWindow,
    /// A copy for latency.
    Copy,
    /// The range was on a subflow that failed.
    Reinjection,
    /// Every subflow had carried the range; started over.
    ReinjectionAgain,
    /// The window is stalled and this path is free.
    Opportunistic,
    /// Assigned ahead of sending.
    Planned,
    /// The first subflow in the order of ranks that has room.
    Priority,
    /// Its RTT is below the threshold.
    BelowThreshold,
    /// No RTT is below the threshold; this one is the lowest.
    NoneBelowThreshold,
    /// Data that the fast subflow will have overtaken when it arrives.
    AheadByGap,
    /// It would arrive first on this subflow.
    EarliestArrival,
    /// What was assigned is assigned anew, for conditions have changed.
    Rescheduled,
    /// What this subflow holds leaves soonest.
    LeastLinger,
    /// No live subflow.
    NoSubflow,
    /// Every candidate's window is full, or it is held back otherwise.
    AllBusy,
    /// The subflow whose turn it is has no room.
    TurnBusy,
    /// The range has been on every subflow that has room.
    UntriedBusy,
    /// The segment would end beyond the peer's window.
    SendWindow,
    /// The fast subflow will finish everything sooner.
    FastFinishesSooner,
    /// The slow subflow would block the send window for the fast one.
    SlowBlocksWindow,
    /// Those that have room are above the threshold.
    AboveThreshold,
    /// What is unsent, or within the window, is reserved for the fast subflow.
    GapReserved,
    /// The subflow whose data leaves soonest holds all that its send buffer takes.
    SendMemory,
    /// All there is to send is assigned, and the subflow that has the first of it has no room.
    AssignedBusy,
}

impl Reason {
    /// Every reason.
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
    ];

    /// The word, as in reports.
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
        }
    }
}
