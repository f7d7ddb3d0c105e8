//! The decisions of a scheduler, and the state that each of them used.

use plait_base::{DataRange, Span, SubflowId, SubflowSet, Time};
use plait_core::Event;
use plait_sched::{Number, Reason};
use std::ops::Range;

/// A recorded decision.
#[derive(Clone, PartialEq, Debug)]
pub struct Decided {
    /// Time of the decision.
    pub at: Time,
    /// Number among the decisions of the sender, from 1.
    pub number: u64,
    /// The data to send.
    pub data: DataRange,
    /// The chosen subflow.
    pub chosen: Option<SubflowId>,
    /// The subflow that the scheduler waits for.
    pub waits_for: Option<SubflowId>,
    /// The candidates.
    pub candidates: SubflowSet,
    /// The candidates that had room.
    pub usable: SubflowSet,
    /// Reason of the decision.
    pub reason: Reason,
    considered: Range<usize>,
    numbers: Range<usize>,
    /// Data that were assigned ahead of sending.
    pub(super) assigned: Range<usize>,
}

/// State of a live subflow at a decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Considered {
    /// The subflow.
    pub subflow: SubflowId,
    /// Smoothed RTT; `None` before the first sample.
    pub srtt: Option<Span>,
    /// Congestion window in bytes, or its cap if that is lower.
    pub cwnd: u64,
    /// Bytes in flight.
    pub inflight: u64,
    /// Bytes that the window still allows.
    pub room: u64,
    /// Arrival time of the data by the plain estimate; `None` if there is no estimate.
    pub arrival: Option<Time>,
}

/// The decisions of one connection. Events about a decision's inputs and assignments precede it.
#[derive(Default, Debug)]
pub(super) struct DecisionLog {
    pub(super) decisions: Vec<Decided>,
    considered: Vec<Considered>,
    numbers: Vec<Number>,
    assigned: Vec<(DataRange, SubflowId)>,
    /// First index of the next decision in each of these three lists.
    open: [usize; 3],
}

impl DecisionLog {
    /// Takes an event of the sender. Events that do not concern decisions are ignored.
    pub(super) fn take(&mut self, now: Time, event: &Event) {
        match *event {
            Event::Considered { subflow, srtt, cwnd, inflight, room, arrival } => {
                let arrival = (arrival < Time::NEVER).then_some(arrival);
                self.considered.push(Considered { subflow, srtt, cwnd, inflight, room, arrival });
            }
            Event::Weighed(number) => self.numbers.push(number),
            Event::Assigned { subflow, data } => self.assigned.push((data, subflow)),
            Event::Decision { number, data, chosen, waits_for, candidates, usable, reason } => {
                let ends = [self.considered.len(), self.numbers.len(), self.assigned.len()];
                let [considered, numbers, assigned] = [0, 1, 2].map(|at| self.open[at]..ends[at]);
                self.open = ends;
                self.decisions.push(Decided {
                    at: now,
                    number,
                    data,
                    chosen,
                    waits_for,
                    candidates,
                    usable,
                    reason,
                    considered,
                    numbers,
                    assigned,
                });
            }
            _ => {}
        }
    }

    /// Returns the state of the live subflows at a decision.
    pub(super) fn considered(&self, decided: &Decided) -> &[Considered] {
        self.considered.get(decided.considered.clone()).unwrap_or_default()
    }

    /// Returns the numbers that the scheduler noted with a decision.
    pub(super) fn numbers(&self, decided: &Decided) -> &[Number] {
        self.numbers.get(decided.numbers.clone()).unwrap_or_default()
    }

    /// Returns the data that a decision assigned ahead of sending.
    pub(super) fn assigned(&self, decided: &Decided) -> &[(DataRange, SubflowId)] {
        self.assigned.get(decided.assigned.clone()).unwrap_or_default()
    }
}
