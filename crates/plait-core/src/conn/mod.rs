//! The Multipath TCP connection: a composition root. It owns the parts and routes between them;
//! only this module, `ingress` and `egress` touch more than one part.

mod acknowledgements;
mod addresses;
mod admission;
mod application;
mod audit;
mod challenges;
mod checksums;
mod closing;
mod context;
mod early_join;
mod egress;
mod fallback;
mod fast_path;
mod fastclose;
mod handshake;
mod ingress;
mod invariants;
mod joins;
mod keepalive;
mod memory;
mod no_subflow_timeout;
mod payload;
mod priority;
mod probing;
mod provenance;
mod redial;
mod release;
mod removal;
mod scheduling;
mod segment_acceptability;
mod segments;
mod shrink_idle;
mod simultaneous_open;
mod sizing;
mod superpackets;
mod time_wait_reuse;
mod timeouts;
mod user_timeout;
mod views;

pub(crate) use audit::Audit;
pub use context::Entropy;
pub(crate) use context::{Context, Shared};
pub(crate) use early_join::EarlyJoin;
pub use fallback::FallbackCause;
pub(crate) use handshake::{Asks, Opening, listen_syn};
pub use memory::MemoryLimit;
pub use segments::{Report, Transmit};

use crate::config::{Config, PathConfig};
use crate::data::reassembly::Reassembly;
use crate::data::send_queue::SendQueue;
use crate::data::window::SendWindow;
use crate::event::Event;
use crate::stats::{SubflowStats, Totals};
use crate::tcp::pending::{ControlSegment, Pending};
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::{Address, Handshake, Subflow};
use addresses::Addresses;
pub(crate) use admission::{Allowance, DENIED, LIMIT_REACHED};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use challenges::Challenges;
use closing::Closing;
pub(crate) use closing::TIME_WAIT;
use core::fmt;
use core::net::IpAddr;
use egress::Rounds;
use fallback::Fallback;
use joins::Joins;
use plait_base::{Dsn, PathId, SubflowId, SubflowSet, Time};
use plait_cc::{Algorithm, Flow, Flows};
use plait_sched::Scheduler;
use plait_wire::Key;
use scheduling::Scheduling;
use timeouts::ConnectionTimers;
use user_timeout::PeerLiveness;

/// Fills the places of flows that are not there.
const NO_FLOW: Flow = Flow {
    cwnd: 0,
    ssthresh: None,
    srtt: None,
    mss: 0,
    in_recovery: false,
    live: false,
    loss_interval: 0,
};

/// Makes the scheduler of a connection.
pub type SchedulerFactory = Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>;
/// Makes the congestion controller of a subflow on a path.
pub type ControllerFactory = Arc<dyn Fn(PathId) -> Box<dyn Algorithm> + Send + Sync>;

/// All that a connection is made from.
#[derive(Clone)]
pub struct ConnectionSpec {
    /// Settings.
    pub config: Config,
    /// Its paths in order of preference; the connection starts on the first.
    pub paths: Vec<PathConfig>,
    /// Its scheduler.
    pub scheduler: SchedulerFactory,
    /// Its congestion controllers.
    pub controller: ControllerFactory,
    /// Further addresses of the end that listens. It tells the client of them (ADD_ADDR, RFC 8684
    /// section 3.4.1), and the client joins each from all its paths.
    pub addresses: Vec<IpAddr>,
}

impl fmt::Debug for ConnectionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSpec")
            .field("config", &self.config)
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

/// Whether Multipath TCP is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Offered, not yet agreed.
    Offered,
    Multipath,
    Plain,
}

/// State of a connection as its user sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// The handshake is under way.
    Connecting,
    /// Data may flow.
    Open,
    /// The peer's data has ended and all of it was read.
    PeerDone,
    /// Both directions have ended in order.
    Closed,
    /// Reset, or given up.
    Failed,
}

/// The keys of both ends and the data sequence numbers they give (RFC 8684 section 3.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) local: Key,
    pub(crate) peer: Option<Key>,
    /// DSN of our first byte on the wire.
    own: FirstDsn,
    /// DSN of the peer's first byte on the wire.
    theirs: FirstDsn,
}

/// The data sequence number of the first byte of one direction as on the wire: IDSN + 1 (RFC 8684 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FirstDsn(u64);

impl FirstDsn {
    fn after(idsn: u64) -> FirstDsn {
        FirstDsn(idsn.wrapping_add(1))
    }

    /// All 64 bits of `dsn` on the wire.
    fn wire(self, dsn: Dsn) -> u64 {
        self.0.wrapping_add(dsn.get())
    }

    /// The DSN that the wire's 64 bits mean. Those below the first byte wrap to the end of the space.
    fn read(self, wire: u64) -> Dsn {
        Dsn::new(wire.wrapping_sub(self.0))
    }

    /// The DSN that the wire's low 32 bits mean, if it is close to `near` (RFC 8684 section 3.3.1).
    fn read_low(self, wire: u32, near: Dsn) -> Dsn {
        Dsn::from_low(wire.wrapping_sub(self.0 as u32), near)
    }
}

impl Keys {
    /// `idsn` is what stands in for both IDSNs, if anything does.
    pub(crate) fn new(local: Key, idsn: Option<u64>) -> Keys {
        let own = FirstDsn::after(idsn.unwrap_or(local.idsn()));
        Keys { local, peer: None, own, theirs: FirstDsn(0) }
    }

    fn set_peer(&mut self, peer: Key, idsn: Option<u64>) {
        self.peer = Some(peer);
        self.theirs = FirstDsn::after(idsn.unwrap_or(peer.idsn()));
    }
}

pub(crate) struct Connection {
    pub(crate) spec: Arc<ConnectionSpec>,
    client: bool,
    started: Time,
    mode: Mode,
    /// DSS checksums are in use in both directions.
    checksums: bool,
    fallback: Fallback,
    failed: bool,
    keys: Keys,
    subflows: Vec<Subflow>,
    /// What those have carried whose slots others have taken, once there are any.
    replaced: Option<Box<Totals>>,
    queue: SendQueue,
    window: SendWindow,
    recv: Reassembly,
    scheduling: Scheduling,
    closing: Closing,
    peer_liveness: PeerLiveness,
    joins: Joins,
    addresses: Addresses,
    /// Payload bytes of a full segment: what our MTU, the peers' MSS and the paths leave.
    mss: u32,
    /// Payload bytes of the peer's full segments: an end that has not fallen back yet fills no more.
    ack_unit: u32,
    /// Challenge ACKs that may still be sent.
    challenges: Challenges,
    /// The peer's joins that may still be taken.
    admission: Allowance,
    /// How often the first handshake was begun again on another path.
    dials: u8,
    timers: ConnectionTimers,
    /// What the next round of sending has to look for.
    rounds: Rounds,
    /// Something happened that the user of the connection may want to know.
    news: bool,
    /// Its addresses or its key may have changed.
    changed: bool,
    /// A path let less through than the handshake said.
    narrowed: bool,
    /// Handshakes in a row that passed without any data that did.
    unheard: u8,
}

impl Connection {
    fn new(spec: Arc<ConnectionSpec>, client: bool, now: Time, key: Key) -> Connection {
        let scheduler = (spec.scheduler)();
        let mode = if spec.config.multipath { Mode::Offered } else { Mode::Plain };
        Connection {
            client,
            started: now,
            mode,
            checksums: spec.config.checksum,
            fallback: Fallback::new(),
            failed: false,
            keys: Keys::new(key, spec.config.offsets.idsn),
            subflows: Vec::new(),
            replaced: None,
            queue: SendQueue::new(spec.config.kernel_buffers),
            window: SendWindow::new(),
            recv: Reassembly::new(spec.config.rcvbuf, spec.config.most_held())
                .tune(spec.config.rcvbuf_first, spec.config.segment_payload())
                .count_memory(spec.config.kernel_buffers, spec.config.segment_payload()),
            scheduling: Scheduling::new(scheduler),
            closing: Closing::default(),
            peer_liveness: PeerLiveness::default(),
            joins: Joins::default(),
            addresses: Addresses::default(),
            mss: spec.config.segment_payload() as u32,
            ack_unit: spec.config.segment_payload() as u32,
            challenges: Challenges::default(),
            admission: Allowance::default(),
            dials: 0,
            timers: ConnectionTimers::new(),
            rounds: Rounds::default(),
            news: false,
            changed: true,
            narrowed: false,
            unheard: 0,
            spec,
        }
    }

    pub(crate) fn is_client(&self) -> bool {
        self.client
    }

    /// The port at which the connection's server listens.
    pub(crate) fn service_port(&self) -> Option<u16> {
        let address = self.subflows.first()?.address;
        Some(if self.client { address.remote_port } else { address.local_port })
    }

    pub(crate) fn speaks_multipath(&self) -> bool {
        self.mode == Mode::Multipath
    }

    /// Why the connection is plain TCP, if it was to be more.
    pub(crate) fn fallback_cause(&self) -> Option<FallbackCause> {
        self.fallback.cause()
    }

    /// Whether the addresses or the key may have changed since this was last asked.
    pub(crate) fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }

    pub(crate) fn subflow_stats(&self) -> Vec<SubflowStats> {
        let stats = |s: &Subflow| SubflowStats {
            subflow: s.id,
            path: s.address.path(),
            server: s.address.server(),
            up: s.status.joined && s.state.synchronised(),
            joined: s.shake.join,
            carried: s.carried(),
            potentially_failed: s.status.pf,
            cwnd: s.cwnd(),
            ssthresh: s.cc.ssthresh(),
            inflight: s.tx.inflight(),
            srtt: s.rtt.srtt(),
            rto: s.rtt.rto(),
            retransmissions: s.spurious_recovery.counters.retransmissions,
            spurious: s.spurious_recovery.counters.spurious,
            undone: s.spurious_recovery.counters.undone,
        };
        self.subflows.iter().map(stats).collect()
    }

    /// What its subflows have carried, those that are gone included.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.replaced.as_deref().copied().unwrap_or_default();
        self.subflows.iter().for_each(|subflow| totals.add_subflow(subflow));
        totals
    }

    /// Whether there is a slot for a subflow.
    fn has_room(&self) -> bool {
        let free = |s: &Subflow| s.state == State::Closed && !s.pending.has(ControlSegment::Rst);
        self.subflows.len() < SubflowId::MAX || self.subflows.iter().any(free)
    }

    /// A slot for a subflow: that of a closed one, or a new one.
    fn free_slot(&mut self) -> Option<SubflowId> {
        let closed = self
            .subflows
            .iter()
            .position(|s| s.state == State::Closed && !s.pending.has(ControlSegment::Rst));
        match closed {
            Some(index) => {
                let id = SubflowId(index as u8);
                self.queue.forget_subflow(id);
                Some(id)
            }
            None if self.subflows.len() < SubflowId::MAX => {
                Some(SubflowId(self.subflows.len() as u8))
            }
            None => None,
        }
    }

    fn add_subflow(&mut self, id: SubflowId, address: Address, state: State, shake: Handshake) {
        let algorithm = (self.spec.controller)(address.path());
        let known = self.spec.paths.iter().find(|known| known.path == address.path());
        let remembered = known.and_then(|known| known.ssthresh);
        let config = &self.spec.config;
        let mut subflow = Subflow::new(id, address, state, shake, config, remembered, algorithm);
        if self.narrowed {
            subflow.cc.resize(self.mss);
        }
        self.changed = true;
        match self.subflows.get_mut(id.index()) {
            Some(slot) => {
                self.replaced.get_or_insert_default().add_subflow(slot);
                *slot = subflow;
            }
            None => {
                self.subflows.reserve_exact(1);
                self.subflows.push(subflow);
            }
        }
    }

    /// Payload bytes of a full segment.
    pub(crate) fn mss(&self) -> u64 {
        u64::from(self.mss)
    }

    fn plain(&self) -> bool {
        self.mode == Mode::Plain
    }

    /// Index of the subflow that `address` belongs to, `likely` as a rule.
    #[inline(always)]
    pub(crate) fn find(&self, address: Address, likely: u8) -> Option<usize> {
        let is_open = |s: &Subflow| s.state != State::Closed || s.pending.has(ControlSegment::Rst);
        let open = |s: &Subflow| s.address == address && is_open(s);
        let index = usize::from(likely);
        let first = self.subflows.iter().take(index).all(|s| s.address != address);
        if first && self.subflows.get(index).is_some_and(open) {
            return Some(index);
        }
        self.subflows.iter().position(open)
    }

    /// The subflows that are not closed, and their addresses.
    pub(crate) fn open_subflows(&self) -> impl Iterator<Item = (SubflowId, Address)> + '_ {
        self.subflows.iter().filter(|s| s.state != State::Closed).map(|s| (s.id, s.address))
    }

    /// The addresses of the subflows that are not closed.
    pub(crate) fn open_addresses(&self) -> impl Iterator<Item = Address> + '_ {
        self.open_subflows().map(|(_, address)| address)
    }

    /// The token that MP_JOIN names this connection by.
    pub(crate) fn token(&self) -> u32 {
        self.keys.local.token()
    }

    /// Whether further subflows may be accepted (RFC 8684 section 3.2): after the end too, for as
    /// long as the peer may yet have to be told of it again (section 3.3.3).
    pub(crate) fn accepts_joins(&self) -> bool {
        let agreed = self.mode == Mode::Multipath && !self.falls_back();
        agreed && self.keys.peer.is_some() && !self.failed && !self.closing.settled()
    }

    fn live(&self) -> SubflowSet {
        let live = |s: &&Subflow| s.state.synchronised() && s.status.joined && !s.status.pf;
        self.subflows.iter().filter(live).map(|s| s.id).collect()
    }

    /// Calls `f` with the subflow at `index` and read-only views of all flows, its own included.
    fn with_flows<R>(&mut self, index: usize, f: impl FnOnce(&mut Subflow, Flows<'_>) -> R) -> R {
        let subflow = &mut self.subflows[index];
        if !subflow.cc.couples() {
            // Of its own entry a controller reads the RTT alone.
            let own = [Flow { srtt: subflow.rtt.srtt(), ..NO_FLOW }];
            return f(subflow, Flows { all: &own, own: 0 });
        }
        let mut all = [NO_FLOW; SubflowId::MAX];
        for (flow, subflow) in all.iter_mut().zip(&self.subflows) {
            *flow = subflow.flow();
        }
        let flows = Flows { all: &all[..self.subflows.len()], own: index };
        f(&mut self.subflows[index], flows)
    }

    /// A subflow is gone. What it carried is for the others.
    fn kill_subflow(&mut self, ctx: &mut Context<'_>, index: usize, tell_peer: bool) {
        let subflow = &mut self.subflows[index];
        if subflow.state == State::Closed {
            return;
        }
        self.changed = true;
        let was_joined = subflow.status.joined;
        let was_told = subflow.state == State::TimeWait;
        subflow.pending = Pending::default();
        subflow.pending.set(ControlSegment::Rst, tell_peer);
        subflow.step(Step::Aborted);
        subflow.status.joined = false;
        let id = subflow.id;
        self.rejoin_later(ctx.now, index, was_joined);
        self.reinject_outstanding(index);
        self.subflows[index].tx.abandon();
        self.queue.reinject_orphans(self.carriers());
        self.queue.unassign_all();
        if was_joined {
            if !was_told {
                ctx.emit(Event::SubflowDown { subflow: id });
            }
            self.notify_subflows(ctx);
        }
        self.on_subflow_gone(ctx);
    }

    /// The subflows that are trusted with the data they carry: those that are open, without the
    /// silent ones while another lives.
    fn carriers(&self) -> SubflowSet {
        let spoken = |s: &&Subflow| !s.status.pf || self.live().is_empty();
        let open = self.subflows.iter().filter(|s| s.state != State::Closed);
        open.filter(spoken).map(|s| s.id).collect()
    }

    /// A timeout expired too soon: what the subflow has in flight need not go by another.
    fn withdraw_reinjections(&mut self, index: usize) {
        let subflow = &self.subflows[index];
        for sent in subflow.tx.iter().filter(|sent| !sent.fin) {
            self.queue.mark_carried(sent.data(), subflow.id);
        }
    }

    /// While F-RTO holds retransmissions back, new data goes out; where there is none to send,
    /// retransmissions go on (RFC 5682 section 3.1 step 2b).
    fn continue_frto(&mut self, index: usize) {
        let subflow = &mut self.subflows[index];
        if subflow.spurious_recovery.holds_retransmissions() {
            let room = self.window.end() > self.queue.nxt();
            if self.queue.unsent() == 0 || !room {
                subflow.spurious_recovery.give_up_frto();
            }
        }
    }

    /// Queues all that a subflow has sent and not seen acknowledged for reinjection.
    fn reinject_outstanding(&mut self, index: usize) {
        if self.falls_back() {
            return;
        }
        for sent in self.subflows[index].tx.iter() {
            self.queue.queue_reinjection(sent.data());
        }
        self.scheduling.wake();
    }
}
