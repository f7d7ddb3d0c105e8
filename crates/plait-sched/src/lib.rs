//! Packet schedulers of Multipath TCP (floor 1 of plait). A scheduler reads a [`View`] and returns a
//! [`Decision`]. It never holds the connection, and nothing in this crate depends on TCP.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod ahead;
mod arrival;
mod decision;
mod decorators;
mod entry;
mod exact;
pub mod formulas;
mod gap;
mod queue;
mod register;
mod registry;
pub mod rules;
mod schedulers;
mod spec;
mod state;
mod view;

pub use decision::{Decision, Effect, Number, Outcome, Reason, What};
pub use decorators::Goal;
pub use entry::{Decorator, Entry};
pub use plait_params::{
    About, Listed, Param, ParamError, ParamFault, ParamKind, Params, SpecError, Value, split_list,
};
pub use queue::StaticQueue;
pub use register::{
    FindClass, RegisterError, all, find_classes_with, register, register_apart, register_class,
    schedulers,
};
pub use registry::{DECORATORS, DEFAULT, SCHEDULERS};
pub use schedulers::{WindowChange, rec_cwnd_after};
pub use spec::Spec;
pub use view::{
    CaState, ConnectionView, LatestView, PriceView, QueueView, SentRange, SubflowView, View,
};

use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet, Time};

/// A segment that is not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unacked {
    /// Its first byte.
    pub dsn: Dsn,
    /// When two full segments from here on had been sent, or all data if that is less. A receiver acknowledges
    /// these at once, and may wait if it has less (RFC 5681 section 4.2). `Time::ZERO` if unknown.
    pub pair_at: Time,
}

/// An event that the core reports to a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The DATA_ACK has advanced. A scheduler that does not [need](Needs::data_acks) this notice
    /// does not get it.
    DataAck {
        /// Left edge before the DATA_ACK.
        old: Dsn,
        /// Left edge after the DATA_ACK.
        new: Dsn,
        /// The segment that began at the old left edge.
        edge: Option<LeftEdge>,
    },
    /// A subflow has processed an acknowledgement of new data. Only a scheduler that
    /// [needs](Needs::acks) this notice gets it.
    Acked {
        /// The subflow.
        subflow: SubflowId,
        /// Bytes newly delivered, cumulatively or selectively.
        bytes: u64,
        /// RTT of the newest delivered segment; `None` if it was sent more than once.
        rtt: Option<Span>,
        /// The bandwidth that the controller of the subflow has found, in bytes per second; 0 if it looks for
        /// none, or has not found it.
        bandwidth: u64,
        /// The oldest segment of the subflow that is not acknowledged cumulatively; `None` if all are.
        /// A receiver passes the data of a subflow on in the order in which it was sent there.
        first_unacked: Option<Unacked>,
    },
    /// A subflow counts this data as lost and has not retransmitted it yet. It comes after [`Notice::Acked`]
    /// and for the first [`Notice::MAX_LOST`] such segments; the same segment may be reported more than once.
    Lost {
        /// The subflow.
        subflow: SubflowId,
        /// The data of one segment.
        range: DataRange,
    },
    /// There was data and a usable subflow, but the send window or the send buffer was full.
    WindowLimited,
    /// The set of subflows, their liveness or their priority changed.
    SubflowsChanged {
        /// The live subflows.
        live: SubflowSet,
        /// A subflow that may carry data from now on. If its id is reused, state kept for that id
        /// must be dropped.
        began: Option<SubflowId>,
    },
    /// An earlier connection has measured the path of a subflow that begins. It comes right after
    /// [`Notice::SubflowsChanged`], and only if paths are remembered.
    Remembered {
        /// The subflow.
        subflow: SubflowId,
        /// Delivery rate in bytes per second.
        rate: u64,
        /// Minimum RTT.
        min_rtt: Span,
    },
}

impl Notice {
    /// Most [lost segments](Notice::Lost) that follow one acknowledgement.
    pub const MAX_LOST: usize = 8;
}

/// The segment at the left edge of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeftEdge {
    /// The subflow that carried the segment first.
    pub first: SubflowId,
    /// True if the segment was retransmitted, on any subflow. Copies of a redundant scheduler do
    /// not count.
    pub again: bool,
}

/// When the core calls a scheduler although no subflow can take a segment and there is only new
/// data to send. A scheduler may declare a call unneeded only if it would return [`Decision::Wait`]
/// with no subflow, and the call would not change its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// Never.
    Never,
    /// Once after a subflow has changed other than by sending: RTT, loss recovery or liveness.
    Anew,
    /// Always.
    Always,
}

/// The calls and values that a scheduler needs. The core skips the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// [`Notice::DataAck`]. It comes once every few segments and costs a new view each time.
    pub data_acks: bool,
    /// [`Notice::Acked`]. It comes with each acknowledgement of a subflow.
    pub acks: bool,
    /// When the core calls the scheduler although all subflows are full.
    pub when_full: WhenFull,
    /// [`SubflowView::pacing_rate`]. It costs a division.
    pub pacing_rate: bool,
    /// Reinjections of data that another live subflow carries as a copy. TCP delivers that copy, so a scheduler that
    /// sends copies needs none.
    pub reinjected_copies: bool,
}

impl Needs {
    /// All calls and values, except the notice for each acknowledgement.
    pub const ALL: Needs = Needs {
        data_acks: true,
        acks: false,
        when_full: WhenFull::Always,
        pacing_rate: true,
        reinjected_copies: true,
    };
    /// Only the windows and RTTs of the view, and all reinjections.
    pub const LEAST: Needs = Needs {
        data_acks: false,
        acks: false,
        when_full: WhenFull::Never,
        pacing_rate: false,
        reinjected_copies: true,
    };
}

/// A packet scheduler.
///
/// After every event that can change the answer, the core calls [`Scheduler::schedule`] in a loop
/// until it returns [`Decision::Wait`] or [`Decision::Idle`]. The same sequence of
/// views and notices gives the same decisions: a scheduler has no clock and no source of randomness.
///
/// # Examples
/// A scheduler that takes the first usable subflow. [`rules::task`] decides the cases that are the same for
/// all schedulers. `examples/own-scheduler` is one with parameters in a `plait` of its own.
///
/// ```
/// use plait_sched::rules::{self, Task};
/// use plait_sched::{Decision, Outcome, Reason, Scheduler, View};
///
/// #[derive(Debug)]
/// struct First;
///
/// impl Scheduler for First {
///     fn schedule(&mut self, view: &View<'_>, _: &mut Outcome) -> Decision {
///         let segment = match rules::task(view) {
///             Task::Settled(decision) => return decision,
///             Task::Place(segment) => segment,
///         };
///         let candidates = view.candidates();
///         let mut usable = view.subflows.iter().filter(|it| {
///             candidates.contains(it.id) && it.usable(segment.len(), view.tsq)
///         });
///         match usable.next() {
///             Some(first) => rules::new_on(view, first.id, segment, Reason::Priority),
///             None => rules::none_usable(view),
///         }
///     }
/// }
///
/// let scheduler: Box<dyn Scheduler> = Box::new(First);
/// assert_eq!(scheduler.needs(), plait_sched::Needs::ALL);
/// ```
pub trait Scheduler: core::fmt::Debug + Send {
    /// Decides the next action.
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision;

    /// Takes in an event.
    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        let _ = (view, notice);
    }

    /// Returns the calls and values that the scheduler needs. The others cost nothing.
    fn needs(&self) -> Needs {
        Needs::ALL
    }

    /// Writes the state that later decisions depend on, with one call for each named value.
    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        let _ = write;
    }

    /// Restores one named value of a saved state. Returns false if the name is unknown.
    fn load_state(&mut self, name: &str, value: f64) -> bool {
        let _ = (name, value);
        false
    }
}
