//! What a run is made from, what can be seen of it, and what comes of it.

use crate::digest::RunDigest;
use crate::middlebox::{MiddleboxConfig, MiddleboxCounters};
use crate::network::{Direction, Hop, PathSetup, SharedLink};
use plait_app::{AppEvent, Measures, Role, Workload};
use plait_base::{PathId, Span, Time};
use plait_core::{ConnectionSpec, ConnectionStats, Detail, Event};
use plait_link::LinkCounters;
use plait_wire::Segment;

/// One session, which has one connection unless its workload has more: what both ends are made from
/// and what they do.
#[derive(Clone, Debug)]
pub struct ConnectionSetup {
    /// The end that dials.
    pub client: ConnectionSpec,
    /// The end that listens.
    pub server: ConnectionSpec,
    /// What they do.
    pub workload: Workload,
    /// When the client dials the first of its connections.
    pub start: Time,
}

/// A pair of hosts and their connections.
#[derive(Clone, Debug)]
pub struct PairSetup {
    /// The sessions, each mostly one connection.
    pub connections: Vec<ConnectionSetup>,
    /// They are there for others to compete with: the run does not wait for them, and a watcher
    /// sees what they leave in the queues, but neither their events nor their segments.
    pub background: bool,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Seed of every random number.
    pub seed: u64,
    /// The paths; all pairs of hosts share them.
    pub paths: Vec<PathSetup>,
    /// Links that paths go through together.
    pub shared: Vec<SharedLink>,
    /// The pairs of hosts.
    pub pairs: Vec<PairSetup>,
    /// The run ends here at the latest.
    pub until: Time,
    /// Verify the invariants after every event.
    pub check: bool,
    /// Encode, verify and parse every segment as it leaves, and as it arrives where a middlebox may
    /// have changed it: what comes out must be what went in, else the run ends with a violation.
    pub wire: bool,
    /// Go on until every connection has taken leave, not only until the workloads are done.
    pub linger: bool,
    /// How long a host works on each segment that it sends: the next one leaves so much later at the
    /// earliest, whatever its path. Zero for hosts that do no work.
    pub send_cost: Span,
}

impl Setup {
    /// Whether a middlebox stands on a path.
    pub(crate) fn meddles(&self, path: PathId) -> bool {
        let path = self.paths.get(path.index());
        path.is_some_and(|path| path.middlebox != MiddleboxConfig::default())
    }
}

/// Which end of which connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    /// The pair of hosts.
    pub pair: usize,
    /// The connection within the pair; those of a session follow each other.
    pub connection: usize,
    /// The end.
    pub host: Role,
}

/// The state at an instant, for drawings.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Bytes in each path's queue towards the client, with those in the queue of the link it shares.
    pub queued_down: Vec<u64>,
    /// Bytes in each path's queue towards the server.
    pub queued_up: Vec<u64>,
}

impl Snapshot {
    /// Bytes in each path's queue in the direction in which `sender` sends.
    #[must_use]
    pub fn queued_from(&self, sender: Role) -> &[u64] {
        match sender {
            Role::Server => &self.queued_down,
            Role::Client => &self.queued_up,
        }
    }
}

/// Somebody who watches a run. Watching changes nothing.
pub trait Watch {
    /// The core of an end said something.
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        let _ = (now, who, event);
    }

    /// An app said something.
    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        let _ = (now, who, event);
    }

    /// A segment was sent, delivered or dropped.
    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let _ = (now, hop, path, way, segment);
    }

    /// Whether [`Watch::on_core`] is to get every event, or only those that measures are made from.
    fn detail(&self) -> Detail {
        Detail::Everything
    }

    /// How often to call [`Watch::on_sample`]; `None` for never.
    fn interval(&self) -> Option<Span> {
        None
    }

    /// The state at regular instants.
    fn on_sample(&mut self, at: Time, snapshot: &Snapshot) {
        let _ = (at, snapshot);
    }

    /// Whether the run is to go on; asked after each sample.
    fn goes_on(&self) -> bool {
        true
    }
}

/// What came of one session: measures are of all its connections together.
#[derive(Clone, Debug)]
pub struct ConnectionOutcome {
    /// Its measures.
    pub measures: Measures,
    /// Its workload was done to the end, or it is one in the background.
    pub complete: bool,
    /// When an app first saw that a connection of it had broken.
    pub broke: Option<Time>,
    /// The server's end of its first connection as the run ended.
    pub server: Option<ConnectionStats>,
    /// The client's.
    pub client: Option<ConnectionStats>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When it ended.
    pub ended: Time,
    /// Every app was done, and with [`Setup::linger`] every connection had taken leave.
    pub over: bool,
    /// By pair, then by session.
    pub pairs: Vec<Vec<ConnectionOutcome>>,
    /// Identifies the run.
    pub digest: RunDigest,
    /// Counters of each path, towards the client and towards the server.
    pub links: Vec<(LinkCounters, LinkCounters)>,
    /// What the middleboxes of each path did.
    pub middlebox_counters: Vec<MiddleboxCounters>,
    /// Those of each shared link.
    pub shared: Vec<(LinkCounters, LinkCounters)>,
    /// Bytes of each source of cross traffic towards the client that the queues took: of each path's
    /// own link, then of each shared link.
    pub cross: Vec<Vec<u64>>,
    /// The first invariant that was violated, if `check` or `wire` was on or a segment was malformed.
    pub violation: Option<String>,
}

impl Outcome {
    /// Whether every workload was done to the end.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.pairs.iter().flatten().all(|connection| connection.complete)
    }
}
