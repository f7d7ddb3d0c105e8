//! The state of a server: counters and connections, for metrics and reports.

use crate::limits::{Limits, Shortage};
use crate::stack::StackCounters;
use plait_base::{ConnId, Span};
use plait_core::{
    ConnectionStats, FallbackCause, MemoryReport, Overflows, Sizes, SubflowStats, TimedOut, Totals,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// State of a server at an instant.
#[derive(Clone, Default, Debug)]
pub struct Overview {
    /// Time since its start.
    pub age: Span,
    /// Counters of packets.
    pub counters: StackCounters,
    /// Traffic of subflows.
    pub totals: Totals,
    /// Counters of path MTU detection.
    pub sizes: Sizes,
    /// Counters of connections.
    pub tally: Tally,
    /// Connections that are relayed now.
    pub connections: Vec<ConnectionView>,
    /// Memory of all connections, and the number of connections that are not relayed.
    pub memory_report: MemoryReport,
    /// Segments that the endpoint refused or answered without state, because a table was full.
    pub overflows: Overflows,
    /// Memory of connections in bytes, with the data between them and sockets.
    pub memory: u64,
    /// Limits of all connections together.
    pub limits: Limits,
    /// Numbered paths: client addresses, including recently used ones.
    pub paths: usize,
}

/// Counters of connections. They only grow.
#[derive(Clone, Default, Debug)]
pub struct Tally {
    /// Connections opened by clients.
    pub accepted: BTreeMap<Opened, u64>,
    /// Connections that ended with a problem.
    pub failed: u64,
    /// Connections ended by a timeout.
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

/// The key for counting connections.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Opened {
    /// The dialled port.
    pub port: u16,
    /// Index of the rule ([`crate::Choice`]) that applied to the client, if one did.
    pub rule: Option<usize>,
    /// Both ends agreed on Multipath TCP.
    pub multipath: bool,
}

/// A relayed connection.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// The connection.
    pub conn: ConnId,
    /// The client's address.
    pub from: Option<IpAddr>,
    /// The dialled port.
    pub port: u16,
    /// Time since it was opened.
    pub age: Span,
    /// State and counters.
    pub stats: ConnectionStats,
    /// Its subflows, each with the client's address.
    pub subflows: Vec<(Option<IpAddr>, SubflowStats)>,
}
