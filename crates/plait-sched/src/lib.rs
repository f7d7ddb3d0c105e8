//! Floor 1: packet schedulers. A scheduler sees a read-only [`View`] and returns a [`Decision`];
//! it never holds the connection, and nothing here knows that the transport is TCP.
#![no_std]

extern crate alloc;

mod ahead;
mod arrival;
mod decision;
mod decorators;
mod exact;
pub mod formulas;
mod gap;
mod params;
mod queue;
mod registry;
pub mod rules;
mod schedulers;
mod spec;
mod state;
mod view;

pub use decision::{Decision, Effect, Number, Outcome, Reason, What};
pub use params::{Kind, Param, ParamError, ParamFault, Params, Value};
pub use queue::StaticQueue;
pub use registry::{DECORATORS, Decorator, Entry, LIVE_DEFAULT, SCHEDULERS};
pub use schedulers::{WindowChange, rec_cwnd_after};
pub use spec::{Spec, SpecError, split_list};
pub use view::{CaState, ConnectionView, QueueView, SentRange, SubflowView, View};

use plait_base::{Dsn, SubflowId, SubflowSet};

/// Something happened that a scheduler may want to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// DATA_ACK moved from the first to the second DSN. Not told to those that
    /// do [without](Needs::data_acks) it.
    DataAck {
        /// Old left edge.
        old: Dsn,
        /// New left edge.
        new: Dsn,
        /// The segment that began at the old one.
        edge: Option<LeftEdge>,
    },
    /// There was data and a usable subflow, but no send window or no send buffer.
    WindowLimited,
    /// The set of subflows, their liveness or their priority changed.
    SubflowsChanged {
        /// The live ones.
        live: SubflowSet,
        /// One that may carry data from now on. Its id may have been another's before, of which
        /// nothing holds for this one.
        began: Option<SubflowId>,
    },
}

/// The segment at the left edge of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeftEdge {
    /// The subflow that carried it first.
    pub first: SubflowId,
    /// It has been sent again, on that subflow or another (copies of a redundant scheduler do not
    /// count).
    pub again: bool,
}

/// When a scheduler is asked where there is nothing but new data to send, and no subflow that could take
/// a segment of it. Whoever is not asked answers with [`Decision::Wait`] for none in particular, and
/// would remember nothing of having been asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// It need not be asked.
    Never,
    /// Once after more has changed of the subflows than what their sending changes: round trips, loss
    /// recovery, whether they live.
    Anew,
    /// Each time.
    Always,
}

/// What a scheduler needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// [`Notice::DataAck`]: there is one for every few segments, and each costs a fresh view.
    pub data_acks: bool,
    /// When to be asked although all subflows are full.
    pub when_full: WhenFull,
    /// [`SubflowView::pacing_rate`]: it costs a division.
    pub pacing_rate: bool,
}

impl Needs {
    /// Everything.
    pub const ALL: Needs =
        Needs { data_acks: true, when_full: WhenFull::Always, pacing_rate: true };
    /// Nothing beyond the view of the windows and round trips.
    pub const LEAST: Needs =
        Needs { data_acks: false, when_full: WhenFull::Never, pacing_rate: false };
}

/// A packet scheduler.
///
/// The core calls [`Scheduler::schedule`] in a loop until it says [`Decision::Wait`] or
/// [`Decision::Idle`], after every event that can change the answer. The same views give the same
/// decisions: a scheduler has no clock and no source of randomness.
pub trait Scheduler: core::fmt::Debug + Send {
    /// Decides what happens next.
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision;

    /// Learns of an event.
    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        let _ = (view, notice);
    }

    /// What it needs to be told and asked. What it can do without costs nothing.
    fn needs(&self) -> Needs {
        Needs::ALL
    }

    /// Writes the state that later decisions depend on, one call per named value.
    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        let _ = write;
    }

    /// Takes over one named value of a saved state; false where the name is unknown.
    fn load_state(&mut self, name: &str, value: f64) -> bool {
        let _ = (name, value);
        false
    }
}
