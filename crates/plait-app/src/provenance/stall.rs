//! Stalls: times in which data waited for a missing segment, for a window, or for the scheduler.

use super::{Held, Ledger};
use plait_base::{DataRange, Dsn, Span, Time};
use plait_core::Block;
use std::collections::BTreeMap;

/// Kind of a stall.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StallKind {
    /// Received data could not be read, because an earlier segment was missing.
    OutOfOrder,
    /// A message was due and not completely readable.
    Message,
    /// The last segments of a transfer arrived on one subflow after the other subflows had
    /// delivered all of theirs.
    Tail,
    /// The sender had data but no receive window.
    ReceiveWindow,
    /// The send buffer was full of data not yet DATA_ACKed.
    SendBuffer,
    /// The scheduler sent nothing although a subflow had room.
    Scheduler,
}

impl StallKind {
    /// Returns the name of the kind in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            StallKind::OutOfOrder => "out-of-order",
            StallKind::Message => "message",
            StallKind::Tail => "tail",
            StallKind::ReceiveWindow => "receive-window",
            StallKind::SendBuffer => "send-buffer",
            StallKind::Scheduler => "scheduler",
        }
    }
}

/// A span of time in which data waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// Kind of the stall.
    pub kind: StallKind,
    /// Start.
    pub from: Time,
    /// End.
    pub to: Time,
    /// The missing segment. If a window or the scheduler caused the stall, the segment that held it
    /// up.
    pub blocking: DataRange,
    /// The waiting data, including the blocking segment. The stall ended when all bytes below the
    /// end were readable in order.
    pub data: DataRange,
    /// The message, if the stall is a late message.
    pub message: Option<u64>,
}

impl Stall {
    /// Returns the length of the stall.
    #[must_use]
    pub const fn length(&self) -> Span {
        self.to.since(self.from)
    }
}

impl Ledger {
    /// Returns all measured stalls, the longest first. If several stalls have the same blocking
    /// segment, only the longest is returned.
    #[must_use]
    pub fn stalls(&self) -> Vec<Stall> {
        let mut all = self.out_of_order();
        all.extend(self.late_messages());
        all.extend(self.tail());
        all.extend(self.held.iter().filter_map(|held| self.held_back(held)));
        let measured =
            |stall: &Stall| stall.blocking.start >= self.offset && stall.to >= self.since;
        all.retain(|stall| measured(stall) && stall.from < stall.to);
        let order = |stall: &Stall| {
            (std::cmp::Reverse(stall.length()), stall.from, stall.kind, stall.blocking.start)
        };
        all.sort_by_key(order);
        let mut blamed = BTreeMap::new();
        all.retain(|stall| blamed.insert(stall.blocking.start, ()).is_none());
        all
    }

    fn out_of_order(&self) -> Vec<Stall> {
        let waited = self.filled.iter().filter(|filled| filled.waited > Span::ZERO);
        let stall = |filled: &super::Filled| Stall {
            kind: StallKind::OutOfOrder,
            from: Time::from_nanos(filled.at.as_nanos() - filled.waited.as_nanos()),
            to: filled.at,
            blocking: filled.by,
            data: filled.data,
            message: None,
        };
        waited.map(stall).collect()
    }

    /// Returns a stall for each message, if the workload has several messages.
    fn late_messages(&self) -> Vec<Stall> {
        if self.messages_count < 2 {
            return Vec::new();
        }
        let stall = |message: &super::Message| {
            let at = self.filled.partition_point(|filled| filled.data.end < message.data.end);
            let filled = self.filled.get(at)?;
            Some(Stall {
                kind: StallKind::Message,
                from: message.due,
                to: filled.at,
                blocking: filled.by,
                data: message.data,
                message: Some(message.id),
            })
        };
        self.messages.iter().filter_map(stall).collect()
    }

    /// Returns the tail of a transfer of one message: the time since the last arrival on another
    /// subflow.
    fn tail(&self) -> Option<Stall> {
        let [message] = self.messages.as_slice() else { return None };
        let at = self.filled.partition_point(|filled| filled.data.end < message.data.end);
        let filled = self.filled.get(at)?;
        let last = self.sendings(filled.by.start).next()?.subflow;
        let elsewhere = |sent: &&super::Sent| sent.subflow != last && sent.at < filled.at;
        let others: BTreeMap<Dsn, ()> =
            self.sent.iter().filter(elsewhere).map(|sent| (sent.data.start, ())).collect();
        let arrived = self.arrived.iter().rev().skip_while(|(at, _)| *at >= filled.at);
        let (from, _) = arrived.into_iter().find(|(_, data)| others.contains_key(&data.start))?;
        let data = DataRange::new(filled.by.start, message.data.end);
        let (from, to) = (*from, filled.at);
        Some(Stall { kind: StallKind::Tail, from, to, blocking: filled.by, data, message: None })
    }

    /// Returns the stall of a blocked sender. Full congestion windows are not a stall.
    fn held_back(&self, held: &Held) -> Option<Stall> {
        let kind = match held.cause {
            Block::ReceiveWindow => StallKind::ReceiveWindow,
            Block::SendBuffer => StallKind::SendBuffer,
            Block::Scheduler => StallKind::Scheduler,
            Block::CongestionWindow | Block::NoSubflow => return None,
        };
        let blocking = if kind == StallKind::Scheduler {
            // The data that the scheduler did not send.
            let at = self.log.decisions.partition_point(|decided| decided.at < held.from);
            let declined = self.log.decisions.get(at..)?.iter().take_while(|it| it.at == held.from);
            declined.filter(|it| it.chosen.is_none()).last()?.data
        } else {
            self.sendings(held.edge).next()?.data
        };
        // The first new segment after the stall waited during all of it.
        let at = self.sent.partition_point(|sent| sent.at < held.to);
        let freed = self.sent.get(at..)?.iter().find(|sent| sent.carry == plait_core::Carry::New);
        let end = freed.map_or(blocking.end, |sent| sent.data.end).max(blocking.end);
        let data = DataRange::new(blocking.start, end);
        (!blocking.is_empty()).then_some(Stall {
            kind,
            from: held.from,
            to: held.to,
            blocking,
            data,
            message: None,
        })
    }
}
