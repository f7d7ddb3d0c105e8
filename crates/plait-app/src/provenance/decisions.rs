//! The decisions of a scheduler, and what each of them saw.

use plait_base::{DataRange, Span, SubflowId, SubflowSet, Time};
use plait_core::Event;
use plait_sched::{Number, Reason};
use std::ops::Range;

/// A decision that was told.
#[derive(Clone, PartialEq, Debug)]
pub struct Decided {
    /// When.
    pub at: Time,
    /// Its number among those of the sender, from 1.
    pub number: u64,
    /// The data at hand.
    pub data: DataRange,
    /// The subflow that was chosen.
    pub chosen: Option<SubflowId>,
    /// The subflow that is waited for.
    pub waits_for: Option<SubflowId>,
    /// The candidates.
    pub candidates: SubflowSet,
    /// Those of them that had room.
    pub usable: SubflowSet,
    /// Why.
    pub reason: Reason,
    considered: Range<usize>,
    numbers: Range<usize>,
    /// What it assigned ahead of sending.
    pub(super) assigned: Range<usize>,
}

/// What a decision saw of a live subflow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Considered {
    /// The subflow.
    pub subflow: SubflowId,
    /// Smoothed RTT; `None` before the first sample.
    pub srtt: Option<Span>,
    /// Congestion window in bytes, or the cap where one is below it.
    pub cwnd: u64,
    /// Bytes in flight.
    pub inflight: u64,
    /// Bytes that the window still takes.
    pub room: u64,
    /// When the data at hand would arrive by the plain estimate.
    pub arrival: Option<Time>,
}

/// The decisions of one connection. What a decision saw and assigned is told before it.
#[derive(Default, Debug)]
pub(super) struct DecisionLog {
    pub(super) decisions: Vec<Decided>,
    considered: Vec<Considered>,
    numbers: Vec<Number>,
    assigned: Vec<(DataRange, SubflowId)>,
    /// Where in those lists the next decision begins.
    open: [usize; 3],
}

impl DecisionLog {
    /// Takes in an event of the sender, if it is one of a decision.
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

    /// What a decision saw of the live subflows.
    pub(super) fn considered(&self, decided: &Decided) -> &[Considered] {
        self.considered.get(decided.considered.clone()).unwrap_or_default()
    }

    /// The numbers that the scheduler noted with a decision.
    pub(super) fn numbers(&self, decided: &Decided) -> &[Number] {
        self.numbers.get(decided.numbers.clone()).unwrap_or_default()
    }

    /// The data that a decision assigned ahead of sending.
    pub(super) fn assigned(&self, decided: &Decided) -> &[(DataRange, SubflowId)] {
        self.assigned.get(decided.assigned.clone()).unwrap_or_default()
    }
}
