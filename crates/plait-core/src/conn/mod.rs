//! The Multipath TCP connection: a composition root. It owns the parts and routes between them;
//! only this module, `ingress` and `egress` touch more than one part.

mod addresses;
mod application;
pub(crate) mod audit;
pub(crate) mod closing;
pub(crate) mod context;
mod egress;
mod fast_path;
mod fastclose;
mod ingress;
mod invariants;
mod joins;
mod keepalive;
pub(crate) mod liveness;
mod memory;
mod no_subflow_timeout;
mod priority;
mod probing;
mod provenance;
mod redial;
mod release;
mod removal;
mod segment_acceptability;
mod shrink_idle;
mod time_wait_reuse;
mod timeouts;
pub(crate) mod timers;
mod user_timeout;
mod views;

use crate::config::{Config, PathConfig};
use crate::conn::context::Context;
use crate::conn::timers::{Awaited, ConnectionTimers};
use crate::data::fallback::{FallbackCause, Mode, Receiving};
use crate::data::level::DataLevel;
use crate::endpoint::Remnant;
use crate::event::Event;
use crate::paths::Paths;
use crate::paths::early_join::EarlyJoin;
use crate::paths::fallback::{Back, Fall};
use crate::paths::handshake::{Asks, Opening, listen_syn};
use crate::sched::Scheduling;
use crate::segments::Transmit;
use crate::tcp::pending::{Cause, ControlSegment, Pending};
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::{Address, Handshake};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use egress::Rounds;
use plait_base::{Dsn, PathId, SubflowId, SubflowSet, Time};
use plait_cc::Algorithm;
use plait_sched::Scheduler;
use plait_wire::{Key, Mptcp, ResetReason, Segment};

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

pub(crate) struct Connection {
    pub(crate) spec: Arc<ConnectionSpec>,
    data: DataLevel,
    paths: Paths,
    scheduling: Scheduling,
    timers: ConnectionTimers,
    /// What the next round of sending has to look for.
    rounds: Rounds,
    notices: Notices,
}

/// What others are to be told of.
pub(crate) struct Notices {
    /// Something happened that the user of the connection may want to know.
    pub(crate) news: bool,
    /// Its addresses or its key may have changed.
    pub(crate) changed: bool,
}

impl Connection {
    fn new(spec: Arc<ConnectionSpec>, client: bool, now: Time, key: Key) -> Connection {
        Connection {
            data: DataLevel::new(&spec.config, key),
            paths: Paths::new(&spec.config, client),
            scheduling: Scheduling::new((spec.scheduler)(), now),
            timers: ConnectionTimers::new(),
            rounds: Rounds::default(),
            notices: Notices { news: false, changed: true },
            spec,
        }
    }

    /// Its data level.
    pub(crate) const fn data(&self) -> &DataLevel {
        &self.data
    }

    /// Its subflows and addresses.
    pub(crate) const fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Lets segments go to the subflows in strict turn (`on`), or hands over to a fresh scheduler.
    pub(crate) fn set_warm_up(&mut self, on: bool) {
        self.scheduling.set_warm_up(on, || (self.spec.scheduler)());
    }

    /// Sets every window to its initial value; thresholds stay.
    pub(crate) fn reset_windows(&mut self, ctx: &mut Context<'_>) {
        self.paths.reset_windows(ctx, &self.spec.config);
        self.scheduling.on_subflows_changed();
    }

    /// Why a join at `address` is not taken: the option of the reset.
    pub(crate) fn refuses_join(&mut self, now: Time, address: Address) -> Option<Mptcp> {
        self.paths.refuses_join(&self.spec.config, now, address)
    }

    /// A SYN comes for a subflow in TIME-WAIT ([`Paths::reuse_time_wait`]).
    pub(crate) fn reuse_time_wait(&mut self, address: Address, syn: &Segment) -> Option<u32> {
        self.paths.reuse_time_wait(&mut self.notices, address, syn)
    }

    /// A segment of `len` payload bytes leaves the host at `departs`.
    pub(crate) fn on_departure(&mut self, now: Time, id: SubflowId, len: u32, departs: Time) {
        self.paths.on_departure(now, id, len, departs);
    }

    /// The size of segments follows from the handshake of the subflow at `index`.
    fn size_segments(&mut self, index: usize) {
        self.paths.size_segments(&self.spec.config, &self.data, index);
        self.scheduling.on_subflows_changed();
    }

    /// What has to be kept of the subflows that wait ([`Paths::remnants`]).
    pub(crate) fn remnants(
        &mut self,
        ctx: &mut Context<'_>,
    ) -> Vec<(Address, Remnant, Option<Transmit>)> {
        self.paths.remnants(ctx, &self.spec.config, &mut self.data)
    }

    pub(crate) fn is_client(&self) -> bool {
        self.paths.client
    }

    /// Whether the addresses or the key may have changed since this was last asked.
    pub(crate) fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.notices.changed)
    }

    /// Takes a slot for a subflow: that of a closed one, or a new one.
    pub(crate) fn take_slot(&mut self) -> Option<SubflowId> {
        let id = self.paths.free_slot()?;
        if id.index() < self.paths.subflows.len() {
            self.data.queue.forget_subflow(id);
        }
        Some(id)
    }

    /// A subflow is gone. What it carried is for the others.
    fn kill_subflow(&mut self, ctx: &mut Context<'_>, index: usize, tell_peer: bool) {
        let subflow = &mut self.paths.subflows[index];
        if subflow.state == State::Closed {
            return;
        }
        self.notices.changed = true;
        let was_joined = subflow.status.joined;
        let was_told = subflow.state == State::TimeWait;
        subflow.pending = Pending::default();
        subflow.pending.set(ControlSegment::Rst, tell_peer);
        subflow.step(Step::Aborted);
        subflow.status.joined = false;
        let id = subflow.id;
        self.paths.rejoin_later(
            &self.spec,
            &self.data,
            &mut self.timers,
            ctx.now,
            index,
            was_joined,
        );
        self.reinject_outstanding(index);
        self.paths.subflows[index].tx.abandon();
        self.data.queue.reinject_orphans(self.paths.carriers());
        self.data.queue.unassign_all();
        if was_joined {
            if !was_told {
                ctx.emit(Event::SubflowDown { subflow: id });
            }
            self.notify_subflows(ctx);
        }
        self.on_subflow_gone(ctx);
    }

    /// Queues all that a subflow has sent and not seen acknowledged for reinjection.
    fn reinject_outstanding(&mut self, index: usize) {
        if self.data.falls_back() {
            return;
        }
        for sent in self.paths.subflows[index].tx.iter() {
            self.data.queue.queue_reinjection(sent.data());
        }
        self.scheduling.wake();
    }

    /// The endpoint knows that MP_CAPABLE is swallowed.
    pub(crate) fn remember_silence(&mut self, ctx: &mut Context<'_>) {
        self.data.note_fallback(ctx, &mut self.notices, FallbackCause::Silence);
    }

    /// Whether MP_CAPABLE was found to be swallowed, or not to be, since this was last asked.
    pub(crate) fn take_verdict(&mut self) -> Option<bool> {
        self.data.agreed.verdict.take()
    }

    /// Carries out what a finding on the subflow at `index` leads to.
    fn fall(&mut self, ctx: &mut Context<'_>, index: usize, fall: Fall) {
        match fall {
            Fall::Stay => {}
            Fall::Reset(cause) => self.reset_subflow(ctx, index, cause),
            Fall::Back(back) => self.fall_back(ctx, index, back),
        }
    }

    #[cold]
    fn fall_back(&mut self, ctx: &mut Context<'_>, index: usize, back: Back) {
        self.data.note_fallback(ctx, &mut self.notices, back.cause);
        self.paths.joins.waiting.clear();
        self.paths.addresses.begin(self.paths.addresses.first);
        self.timers.clear(Awaited::Address);
        // No other subflow is to be there (R54).
        for other in (0..self.paths.subflows.len()).filter(|other| *other != index) {
            self.reset_subflow(ctx, other, Cause::Reason(ResetReason::Unspecified));
        }
        if let Some(dsn) = back.fail {
            self.data.agreed.receiving = Receiving::Failing { dsn, retries: 0 };
            let subflow = &mut self.paths.subflows[index];
            subflow.pending.add(ControlSegment::Fail);
            self.timers.set(Awaited::Fail, ctx.now + subflow.rtt.rto());
        }
        if back.receive {
            self.receive_plain(ctx, index);
        }
        if back.whole {
            (self.data.agreed.mode, self.notices.changed) = (Mode::Plain, true);
            self.size_segments(index);
        }
        let subflow = &mut self.paths.subflows[index];
        if let Some(tell) = back.tell {
            subflow.pending.set(ControlSegment::Infinite, tell);
        }
        let until = subflow.tx.nxt() + 1;
        if back.send && self.data.agreed.send_plain(self.data.queue.una(), until) {
            self.scheduling.wake();
            self.settle_fallback(index);
        }
    }

    fn receive_plain(&mut self, ctx: &mut Context<'_>, index: usize) {
        if !self.data.agreed.receive_plain() {
            return;
        }
        self.timers.clear(Awaited::Fail);
        if self.paths.release_unverified(ctx, &mut self.data, index) {
            self.notices.news = true;
            if self.data.recv.finished() {
                self.on_peer_finished(ctx.now);
            }
        }
        self.settle_fallback(index);
    }

    fn settle_fallback(&mut self, index: usize) {
        if self.data.sends_plain() && self.data.receives_plain() {
            (self.data.agreed.mode, self.notices.changed) = (Mode::Plain, true);
            // While segments tell the infinite mapping they have no room for more data.
            if self.data.agreed.has_told() {
                self.size_segments(index);
            }
        }
    }

    /// A connection with its first subflow.
    pub(crate) fn open(
        spec: Arc<ConnectionSpec>,
        key: Key,
        opening: &Opening<'_>,
        ctx: &mut Context<'_>,
    ) -> Connection {
        let client = matches!(opening, Opening::Active { .. });
        let mut conn = Connection::new(spec, client, ctx.now, key);
        let mut shake = Handshake {
            iss: ctx.first_sequence(&conn.spec.config),
            initiator: client,
            sent_at: ctx.now,
            ..Handshake::default()
        };
        match opening {
            Opening::Active { address } => {
                conn.data.agreed.peer_dss_seen = false;
                conn.paths.start_from(&conn.spec, *address);
                conn.paths.add_subflow(
                    &conn.spec,
                    &mut conn.notices,
                    SubflowId(0),
                    *address,
                    State::SynSent,
                    shake,
                );
                let path = conn.spec.paths.iter().find(|config| config.path == address.path());
                conn.paths.subflows[0].status.backup = path.is_some_and(|config| config.backup);
                conn.paths.subflows[0].pending.add(ControlSegment::Syn);
                conn.start_joins(ctx);
            }
            Opening::Passive { address, syn, after } => {
                if let Some(after) = after {
                    // Beyond what the last conversation used (RFC 9293 section 3.6.1).
                    shake.iss = after.wrapping_add(1 + (shake.iss >> 2));
                }
                conn.answer_syn(ctx, *address, syn, shake);
            }
            Opening::Stateless { address, syn, iss } => {
                (shake.iss, shake.sent_at) = (*iss, Time::NEVER);
                conn.answer_syn(ctx, *address, syn, shake);
            }
        }
        conn
    }

    /// The first subflow of a server, whose SYN/ACK is to be sent.
    fn answer_syn(
        &mut self,
        ctx: &mut Context<'_>,
        address: Address,
        syn: &Segment,
        shake: Handshake,
    ) {
        let Connection { spec, data, paths, notices, .. } = self;
        paths.answer_syn(spec, notices, address, syn, shake);
        data.agreed.peer_dss_seen = false;
        data.window.update(Dsn::ZERO, u64::from(syn.window));
        if listen_syn(syn) != Asks::Multipath {
            data.start_plain(ctx, &spec.config, notices, FallbackCause::Syn);
        }
        data.agree_on_checksums(syn);
    }

    /// Returns the SYN/ACK of a connection that has just been opened, and makes the connection one
    /// that has sent it.
    pub(crate) fn take_syn_ack(&mut self, now: Time) -> Transmit {
        self.paths.subflows[0].pending.take(ControlSegment::Syn);
        self.paths.build_syn(&self.spec, &mut self.data, now, 0)
    }

    /// A SYN with MP_JOIN for this connection (RFC 8684 section 3.2), which was admitted. Returns false if
    /// there is no room for it.
    pub(crate) fn accept_join(
        &mut self,
        ctx: &mut Context<'_>,
        address: Address,
        syn: &Segment,
    ) -> bool {
        let Some(Mptcp::JoinSyn(join)) = syn.options.mptcp.as_deref() else { return false };
        if let Some(index) = self.paths.replaceable_join() {
            ctx.overflows.joins_replaced += 1;
            self.kill_subflow(ctx, index, false);
        }
        let Some(id) = self.take_slot() else { return false };
        let Connection { spec, paths, notices, .. } = self;
        paths.answer_join(ctx, spec, notices, (id, address), (syn, join));
        true
    }

    /// Takes over a join that came before this connection was there.
    pub(crate) fn adopt(&mut self, ctx: &mut Context<'_>, early: EarlyJoin) {
        let Some(id) = self.take_slot() else { return };
        let Connection { spec, paths, notices, .. } = self;
        if let Some(answer) = paths.adopt(ctx.now, spec, notices, id, early) {
            self.handle(ctx, id.index(), &answer);
        }
    }

    /// Closes the subflows of a set, in their order.
    fn kill_subflows(&mut self, ctx: &mut Context<'_>, ending: SubflowSet, tell_peer: bool) {
        for index in 0..self.paths.subflows.len() {
            if ending.contains(SubflowId(index as u8)) {
                self.kill_subflow(ctx, index, tell_peer);
            }
        }
    }
}
