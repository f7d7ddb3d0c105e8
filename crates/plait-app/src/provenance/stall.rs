//! Where data waited: for a segment that was missing, for a window, for the scheduler.

use super::{Held, Ledger};
use plait_base::{DataRange, Dsn, Span, Time};
use plait_core::Block;
use std::collections::BTreeMap;

/// What waited for what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Data had arrived and could not be read, for a segment before it was missing.
    OutOfOrder,
    /// A message was due and not readable to its end.
    Message,
    /// The last segments of a transfer came on one subflow while the others had brought theirs.
    Tail,
    /// The sender had data and no receive window.
    ReceiveWindow,
    /// The sender's buffer was full of data that was not DATA_ACKed.
    SendBuffer,
    /// The scheduler declined although a subflow had room.
    Scheduler,
}

impl Kind {
    /// The word, as in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::OutOfOrder => "out-of-order",
            Kind::Message => "message",
            Kind::Tail => "tail",
            Kind::ReceiveWindow => "receive-window",
            Kind::SendBuffer => "send-buffer",
            Kind::Scheduler => "scheduler",
        }
    }
}

/// A stretch of time in which data waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// What waited for what.
    pub kind: Kind,
    /// Since when.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// The segment that was waited for.
    pub blocking: DataRange,
    /// What waited, the blocking segment included: all bytes below its end being readable in order
    /// ended it.
    pub data: DataRange,
    /// The message, where one was late.
    pub message: Option<u64>,
}

impl Stall {
    /// How long it lasted.
    #[must_use]
    pub const fn length(&self) -> Span {
        self.to.since(self.from)
    }
}

impl Ledger {
    /// Every stretch in which data waited, the longest first; of those that one segment is to blame
    /// for, the longest.
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
            kind: Kind::OutOfOrder,
            from: Time::from_nanos(filled.at.as_nanos() - filled.waited.as_nanos()),
            to: filled.at,
            blocking: filled.by,
            data: filled.data,
            message: None,
        };
        waited.map(stall).collect()
    }

    /// The messages of a workload that has many.
    fn late_messages(&self) -> Vec<Stall> {
        if self.messages_count < 2 {
            return Vec::new();
        }
        let stall = |message: &super::Message| {
            let at = self.filled.partition_point(|filled| filled.data.end < message.data.end);
            let filled = self.filled.get(at)?;
            Some(Stall {
                kind: Kind::Message,
                from: message.due,
                to: filled.at,
                blocking: filled.by,
                data: message.data,
                message: Some(message.id),
            })
        };
        self.messages.iter().filter_map(stall).collect()
    }

    /// The end of the one message of a transfer: since the last arrival on another subflow.
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
        Some(Stall { kind: Kind::Tail, from, to, blocking: filled.by, data, message: None })
    }

    /// A span in which the sender was held back by more than full congestion windows.
    fn held_back(&self, held: &Held) -> Option<Stall> {
        let kind = match held.cause {
            Block::ReceiveWindow => Kind::ReceiveWindow,
            Block::SendBuffer => Kind::SendBuffer,
            Block::Scheduler => Kind::Scheduler,
            Block::CongestionWindow | Block::NoSubflow => return None,
        };
        let blocking = if kind == Kind::Scheduler {
            // What it declined to send.
            let at = self.log.decisions.partition_point(|decided| decided.at < held.from);
            let declined = self.log.decisions.get(at..)?.iter().take_while(|it| it.at == held.from);
            declined.filter(|it| it.chosen.is_none()).last()?.data
        } else {
            self.sendings(held.edge).next()?.data
        };
        // The first new segment after it had waited all the time.
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
