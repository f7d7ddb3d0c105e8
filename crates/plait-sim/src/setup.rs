//! The input of a run, the interface of its watchers, and its outcome.

use crate::digest::RunDigest;
use crate::middlebox::{MiddleboxConfig, MiddleboxCounters};
use crate::network::{Direction, Hop, PathSetup, SharedLink};
use plait_app::{AppEvent, Measures, Role, Workload};
use plait_base::{PathId, Span, Time};
use plait_core::{ConnectionSpec, ConnectionStats, Detail, Event, PathEntry};
use plait_link::LinkCounters;
use plait_wire::Segment;

/// One session: the configuration of both ends and their workload. A session has one connection
/// unless its workload opens more.
#[derive(Clone, Debug)]
pub struct ConnectionSetup {
    /// The end that opens the connections.
    pub client: ConnectionSpec,
    /// The end that listens.
    pub server: ConnectionSpec,
    /// The workload of both ends.
    pub workload: Workload,
    /// Time at which the client opens the first connection.
    pub start: Time,
}

/// A pair of hosts and their connections.
#[derive(Clone, Debug)]
pub struct PairSetup {
    /// The sessions; most have a single connection.
    pub connections: Vec<ConnectionSetup>,
    /// If true, these connections are only competing traffic, and the run does not wait for them. A
    /// watcher sees their bytes in the queues, but neither their events nor their segments.
    pub background: bool,
    /// The path memories with which the hosts begin; `None` if they remember no paths.
    pub memory: Option<PairMemory>,
}

/// The path memories of a pair of hosts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PairMemory {
    /// Entries of the client.
    pub client: Vec<PathEntry>,
    /// Entries of the server.
    pub server: Vec<PathEntry>,
    /// Subflows begin with the remembered slow start threshold.
    pub ssthresh: bool,
}

/// The configuration of a run.
///
/// # Examples
/// A download of 100 kB over two paths of 10 Mbit/s.
///
/// ```
/// use plait_app::Workload;
/// use plait_base::{PathId, Rate, Span, Time};
/// use plait_core::{Config, ConnectionSpec, PathConfig};
/// use plait_link::{LinkConfig, RateSource};
/// use plait_sim::{ConnectionSetup, MiddleboxConfig, PairSetup, PathSetup, Setup, run};
/// use std::sync::Arc;
///
/// let rate = Rate::from_bps(10_000_000);
/// let link = |delay| LinkConfig::new(RateSource::Fixed(rate), Span::from_millis(delay));
/// let path = |name: &str, delay| PathSetup {
///     name: name.to_owned(),
///     down: link(delay),
///     up: link(delay),
///     nic_down: Rate::INFINITE,
///     nic_up: Rate::INFINITE,
///     via: None,
///     middlebox: MiddleboxConfig::default(),
///     removed: Vec::new(),
///     resting: Vec::new(),
/// };
/// let scheduler = plait_sched::Spec::parse("minrtt")?;
/// let controller = plait_cc::Spec::parse("cubic")?;
/// let use_of = |id| PathConfig::new(PathId(id));
/// let spec = ConnectionSpec {
///     config: Config::default(),
///     paths: vec![use_of(0), use_of(1)],
///     addresses: Vec::new(),
///     scheduler: Arc::new(move || scheduler.build()),
///     controller: Arc::new(move |_| controller.build()),
/// };
/// let connection = ConnectionSetup {
///     client: spec.clone(),
///     server: spec,
///     workload: Workload::parse("download:100kB")?,
///     start: Time::ZERO,
/// };
/// let outcome = run(&Setup {
///     seed: 1,
///     paths: vec![path("wifi", 10), path("lte", 30)],
///     shared: Vec::new(),
///     pairs: vec![PairSetup { connections: vec![connection], background: false, memory: None }],
///     until: Time::ZERO + Span::from_secs(60),
///     check: false,
///     wire: false,
///     linger: false,
///     send_cost: Span::ZERO,
/// });
/// assert!(outcome.complete());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Setup {
    /// Seed of every random number.
    pub seed: u64,
    /// The paths, shared by all pairs of hosts.
    pub paths: Vec<PathSetup>,
    /// Links shared by several paths.
    pub shared: Vec<SharedLink>,
    /// The pairs of hosts.
    pub pairs: Vec<PairSetup>,
    /// Latest end of the run.
    pub until: Time,
    /// If true, the invariants are verified after every event.
    pub check: bool,
    /// If true, every segment is encoded, verified and parsed when it is sent. It is parsed again
    /// when it arrives if a middlebox may have changed it. If the parsed segment differs, the run
    /// ends with a violation.
    pub wire: bool,
    /// If true, the run continues after the workloads are done, until every connection has closed.
    pub linger: bool,
    /// Time that a host needs to send one segment. The next segment leaves later by at least this
    /// time, on any path. Zero disables the delay.
    pub send_cost: Span,
}

impl Setup {
    /// Returns true if the path has a middlebox.
    pub(crate) fn meddles(&self, path: PathId) -> bool {
        let path = self.paths.get(path.index());
        path.is_some_and(|path| path.middlebox != MiddleboxConfig::default())
    }
}

/// Identifies one end of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    /// The pair of hosts.
    pub pair: usize,
    /// Index of the connection within the pair; the connections of a session are consecutive.
    pub connection: usize,
    /// The client or the server.
    pub host: Role,
}

/// The state at an instant, for figures.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Bytes queued on each path towards the client, including the queue of its shared link.
    pub queued_down: Vec<u64>,
    /// Bytes queued on each path towards the server, including the queue of its shared link.
    pub queued_up: Vec<u64>,
}

impl Snapshot {
    /// Returns the bytes queued on each path in the direction in which `sender` sends.
    #[must_use]
    pub fn queued_from(&self, sender: Role) -> &[u64] {
        match sender {
            Role::Server => &self.queued_down,
            Role::Client => &self.queued_up,
        }
    }
}

/// Watches a run without changing it.
pub trait Watch {
    /// Called for each event of an endpoint's core.
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        let _ = (now, who, event);
    }

    /// Called for each event of an app.
    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        let _ = (now, who, event);
    }

    /// Called when a segment is sent, delivered or dropped.
    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let _ = (now, hop, path, way, segment);
    }

    /// Returns false if none of the functions needs to be called. The run is then as fast as without a
    /// watcher.
    fn watches(&self) -> bool {
        true
    }

    /// Returns the detail of [`Watch::on_core`]: every event, or only the events that measures
    /// need.
    fn detail(&self) -> Detail {
        Detail::Everything
    }

    /// Returns the interval between calls of [`Watch::on_sample`]; `None` disables them.
    fn interval(&self) -> Option<Span> {
        None
    }

    /// Called at regular intervals with the current state.
    fn on_sample(&mut self, at: Time, snapshot: &Snapshot) {
        let _ = (at, snapshot);
    }

    /// Returns false to end the run; called after each sample.
    fn goes_on(&self) -> bool {
        true
    }
}

/// The outcome of one session.
#[derive(Clone, Debug)]
pub struct ConnectionOutcome {
    /// Measures over all connections of the session.
    pub measures: Measures,
    /// True if the workload was completed without a failed connection, or if the session is
    /// background traffic.
    pub complete: bool,
    /// Time at which an app first saw a connection of the session fail.
    pub broke: Option<Time>,
    /// State of the server's end of the first connection when the run ended.
    pub server: Option<ConnectionStats>,
    /// State of the client's end of the first connection when the run ended.
    pub client: Option<ConnectionStats>,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Time at which the run ended.
    pub ended: Time,
    /// True if every app was done and, with [`Setup::linger`], every connection had closed.
    pub over: bool,
    /// Outcomes by pair, then by session.
    pub pairs: Vec<Vec<ConnectionOutcome>>,
    /// Hash that identifies the run.
    pub digest: RunDigest,
    /// Counters of each path's own link: towards the client, towards the server.
    pub links: Vec<(LinkCounters, LinkCounters)>,
    /// Counters of each path's middleboxes, both directions together.
    pub middlebox_counters: Vec<MiddleboxCounters>,
    /// Counters of each shared link: towards the client, towards the server.
    pub shared: Vec<(LinkCounters, LinkCounters)>,
    /// Bytes that the queues accepted from each source of cross traffic towards the client: first
    /// for each path's own link, then for each shared link.
    pub cross: Vec<Vec<u64>>,
    /// By pair: the path memories at the end, if the hosts remember paths.
    pub memories: Vec<Option<PairMemory>>,
    /// The first violated invariant, if `check` or `wire` was set or a segment was malformed.
    pub violation: Option<String>,
}

impl Outcome {
    /// Returns true if every session is complete ([`ConnectionOutcome::complete`]).
    #[must_use]
    pub fn complete(&self) -> bool {
        self.pairs.iter().flatten().all(|connection| connection.complete)
    }
}
