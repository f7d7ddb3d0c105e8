//! Provenance: which decision sent which data, when, and for which reasons; and at which data the
//! reader had to wait.
//!
//! A [`Ledger`] takes every timestamped event of both hosts ([`plait_core::Detail::Everything`]),
//! and answers queries afterwards. It keeps every decision and every segment of the run in memory.

mod decisions;
mod regret;
mod stall;

pub use decisions::{Considered, Decided};
pub use regret::{Foretold, Regret};
pub use stall::{Stall, StallKind};

use crate::{AppEvent, Role, Workload};
use decisions::DecisionLog;
use plait_base::{DataRange, Dsn, PathId, Span, SubflowId, Time};
use plait_core::{Block, Carry, Event};
use plait_sched::Number;

/// Payload that the sender sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Time of the transmission.
    pub at: Time,
    /// The subflow.
    pub subflow: SubflowId,
    /// Data sequence numbers.
    pub data: DataRange,
    /// Reason of the transmission.
    pub carry: Carry,
}

/// A message of the workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its id, from 0.
    pub id: u64,
    /// Position of its bytes.
    pub data: DataRange,
    /// Due time.
    pub due: Time,
}

/// Data that became readable at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Filled {
    at: Time,
    /// The readable data.
    data: DataRange,
    /// The longest waiting time of any part of it.
    waited: Span,
    /// The segment whose arrival made the data readable.
    by: DataRange,
}

/// A span in which the sender was blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Held {
    cause: Block,
    from: Time,
    to: Time,
    /// First byte that was not DATA_ACKed before the sender continued.
    edge: Dsn,
}

/// The history of the data of one connection.
#[derive(Debug)]
pub struct Ledger {
    sender: Role,
    messages_count: u64,
    log: DecisionLog,
    sent: Vec<Sent>,
    arrived: Vec<(Time, DataRange)>,
    filled: Vec<Filled>,
    held: Vec<Held>,
    holding: Option<(Block, Time)>,
    edge: Dsn,
    messages: Vec<Message>,
    route: [Option<PathId>; SubflowId::MAX],
    /// Data below this position are not measured.
    offset: Dsn,
    /// Events before this time are not measured.
    since: Time,
    last: Time,
}

impl Ledger {
    /// Creates a ledger of one connection that runs `workload`.
    #[must_use]
    pub fn new(workload: &Workload) -> Ledger {
        Ledger {
            sender: workload.sender(),
            messages_count: workload.messages(),
            log: DecisionLog::default(),
            sent: Vec::new(),
            arrived: Vec::new(),
            filled: Vec::new(),
            held: Vec::new(),
            holding: None,
            edge: Dsn::ZERO,
            messages: Vec::new(),
            route: [None; SubflowId::MAX],
            offset: Dsn::ZERO,
            since: Time::ZERO,
            last: Time::ZERO,
        }
    }

    /// Takes an event of the core of `host`.
    pub fn on_core(&mut self, now: Time, host: Role, event: &Event) {
        self.last = self.last.max(now);
        if host == self.sender {
            self.on_sender(now, event);
        } else {
            self.on_receiver(now, event);
        }
    }

    /// Takes an event of the app of `host`.
    pub fn on_app(&mut self, now: Time, host: Role, event: &AppEvent) {
        match *event {
            AppEvent::MeasureFrom { offset } if host == self.sender => {
                (self.offset, self.since) = (offset, now);
            }
            AppEvent::MessageDue { id, data, due } => {
                self.messages.push(Message { id, data, due });
            }
            _ => {}
        }
    }

    fn on_sender(&mut self, now: Time, event: &Event) {
        match *event {
            Event::SubflowUp { subflow, path, .. } => {
                if let Some(route) = self.route.get_mut(subflow.index()) {
                    *route = Some(path);
                }
            }
            Event::DataSent { subflow, data, carry } => {
                self.sent.push(Sent { at: now, subflow, data, carry });
            }
            Event::DataAcked { old, .. } => self.edge = old,
            Event::Blocked(block) => {
                if let Some((cause, from)) = self.holding.take()
                    && from < now
                {
                    self.held.push(Held { cause, from, to: now, edge: self.edge });
                }
                self.holding = block.map(|cause| (cause, now));
            }
            _ => self.log.take(now, event),
        }
    }

    fn on_receiver(&mut self, now: Time, event: &Event) {
        match *event {
            Event::DataReadable { data, waited, .. } => {
                // The core emits `DataReadable` before the `DataArrived` that caused it.
                match self.filled.last_mut() {
                    Some(last) if last.at == now && last.data.end == data.start => {
                        last.data.end = data.end;
                        last.waited = last.waited.max(waited);
                    }
                    _ => self.filled.push(Filled { at: now, data, waited, by: data }),
                }
            }
            Event::DataArrived { data, .. } => {
                self.arrived.push((now, data));
                if let Some(last) = self.filled.last_mut()
                    && last.at == now
                {
                    last.by = data;
                }
            }
            _ => {}
        }
    }

    /// Returns the end that sends the measured data.
    #[must_use]
    pub const fn sender(&self) -> Role {
        self.sender
    }

    /// Returns the recorded decisions, in order.
    #[must_use]
    pub fn decisions(&self) -> &[Decided] {
        &self.log.decisions
    }

    /// Returns the state of the live subflows at a decision.
    #[must_use]
    pub fn considered(&self, decided: &Decided) -> &[Considered] {
        self.log.considered(decided)
    }

    /// Returns the numbers that the scheduler noted with a decision.
    #[must_use]
    pub fn numbers(&self, decided: &Decided) -> &[Number] {
        self.log.numbers(decided)
    }

    /// Returns whether a decision assigned data ahead of sending.
    #[must_use]
    pub const fn is_ahead(&self, decided: &Decided) -> bool {
        decided.assigned.start < decided.assigned.end
    }

    /// Returns the path of a subflow of the sender.
    #[must_use]
    pub fn path(&self, subflow: SubflowId) -> Option<PathId> {
        *self.route.get(subflow.index())?
    }

    /// Returns the messages that became due.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns every transmission of the segment that contains `dsn`, in order.
    pub fn sendings(&self, dsn: Dsn) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |sent| sent.data.start <= dsn && dsn < sent.data.end)
    }

    /// Returns the time at which the byte at `dsn` first arrived at the peer.
    #[must_use]
    pub fn arrival(&self, dsn: Dsn) -> Option<Time> {
        let holds = |(_, data): &&(Time, DataRange)| data.start <= dsn && dsn < data.end;
        self.arrived.iter().find(holds).map(|(at, _)| *at)
    }

    /// Returns the time at which all bytes below `dsn` were readable in order.
    #[must_use]
    pub fn readable_at(&self, dsn: Dsn) -> Option<Time> {
        let at = self.filled.partition_point(|filled| filled.data.end < dsn);
        self.filled.get(at).map(|filled| filled.at)
    }

    /// Returns the decision that first gave the byte at `dsn` to a subflow, and the segment that
    /// carried it.
    #[must_use]
    pub fn placed(&self, dsn: Dsn) -> Option<(&Decided, Sent)> {
        let sent = *self.sendings(dsn).next()?;
        let until = self.log.decisions.partition_point(|decided| decided.at <= sent.at);
        let placing = |decided: &&Decided| {
            let chosen = decided.chosen == Some(sent.subflow) && decided.data == sent.data;
            let plan = self.log.assigned(decided);
            // Assigned data may leave in several segments, so the plan must cover the segment.
            let planned =
                plan.iter().any(|(data, to)| *to == sent.subflow && data.covers(sent.data));
            planned || chosen && plan.is_empty()
        };
        let decided = self.log.decisions.get(..until)?.iter().rev().find(placing)?;
        Some((decided, sent))
    }

    /// Returns the first decision that did not send the byte at `dsn` although a subflow had room.
    #[must_use]
    pub fn declined(&self, dsn: Dsn) -> Option<&Decided> {
        self.log.decisions.iter().find(|decided| {
            let at_hand = decided.data.start <= dsn && dsn < decided.data.end;
            at_hand && decided.chosen.is_none() && !decided.usable.is_empty()
        })
    }

    /// Returns the last decision at or before `at` that chose a subflow.
    #[must_use]
    pub fn choice_before(&self, at: Time) -> Option<&Decided> {
        let until = self.log.decisions.partition_point(|decided| decided.at <= at);
        self.log.decisions.get(..until)?.iter().rev().find(|decided| decided.chosen.is_some())
    }
}

#[cfg(test)]
mod tests;
