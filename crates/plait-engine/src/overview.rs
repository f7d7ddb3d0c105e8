//! The state of a server: counters and connections, for metrics and reports.

use crate::limits::{Limits, Shortage};
use crate::stack::StackCounters;
use plait_base::{ConnId, Span};
use plait_core::{
    ConnectionStats, FallbackCause, MemoryReport, Overflows, Sizes, SubflowStats, TimedOut, Totals,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How a server stands at an instant.
#[derive(Clone, Default, Debug)]
pub struct Overview {
    /// Since it began.
    pub age: Span,
    /// Packets.
    pub counters: StackCounters,
    /// Traffic of subflows.
    pub totals: Totals,
    /// Known limits of packet sizes.
    pub sizes: Sizes,
    /// Connections that have come and gone.
    pub tally: Tally,
    /// Connections that are relayed now.
    pub connections: Vec<ConnectionView>,
    /// Connections that are not relayed yet or no more, and the memory of all.
    pub memory_report: MemoryReport,
    /// Segments that the endpoint refused or answered without state, because a table was full.
    pub overflows: Overflows,
    /// Bytes of memory of connections, with the data between them and sockets.
    pub memory: u64,
    /// Limits of all connections together.
    pub limits: Limits,
    /// Paths that have a number: clients' addresses, those that were used of late included.
    pub paths: usize,
}

/// Counters of connections; they only grow.
#[derive(Clone, Default, Debug)]
pub struct Tally {
    /// Connections that clients have opened.
    pub accepted: BTreeMap<Opened, u64>,
    /// Connections that did not end in order.
    pub failed: u64,
    /// Connections that ended because the peer was given up.
    pub timed_out: BTreeMap<TimedOut, u64>,
    /// Refused connections, by shortage.
    pub refused: BTreeMap<Shortage, u64>,
    /// Connections that fell back to plain TCP, by cause.
    pub fallbacks: BTreeMap<FallbackCause, u64>,
}

impl Tally {
    /// Counts the end of a connection: whether it failed, the timeout that ended it, and the cause of its
    /// fallback.
    pub(crate) fn count_end(
        &mut self,
        failed: bool,
        timed_out: Option<TimedOut>,
        fallback: Option<FallbackCause>,
    ) {
        self.failed += u64::from(failed);
        if let Some(by) = timed_out {
            *self.timed_out.entry(by).or_default() += 1;
        }
        if let Some(cause) = fallback {
            *self.fallbacks.entry(cause).or_default() += 1;
        }
    }
}

/// The key by which connections are counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Opened {
    /// The port that was dialled.
    pub port: u16,
    /// The place of the rule ([`crate::Choice`]) that was for the client, if one was.
    pub rule: Option<usize>,
    /// Multipath TCP was agreed on.
    pub multipath: bool,
}

/// A connection that is relayed.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// The connection.
    pub conn: ConnId,
    /// The address that it was opened from.
    pub from: Option<IpAddr>,
    /// The port that it was opened to.
    pub port: u16,
    /// Since it was opened.
    pub age: Span,
    /// State and counters.
    pub stats: ConnectionStats,
    /// Its subflows, with the client's address of each.
    pub subflows: Vec<(Option<IpAddr>, SubflowStats)>,
}
