//! Further subflows: which to open, and when.

use crate::config::PathConfig;
use crate::context::Context;
use crate::data::level::DataLevel;
use crate::event::Event;
use crate::notices::Notices;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::seldom::Seldom;
use crate::tcp::address::Address;
use crate::tcp::handshake::SynState;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use alloc::vec::Vec;
use plait_base::{PathId, ServerAddress, Span, SubflowId};
use plait_wire::{Mptcp, ResetReason, Segment};

/// A subflow to open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) path: PathId,
    pub(crate) server: ServerAddress,
    pub(crate) port: u16,
    pub(crate) backup: bool,
}

#[derive(Default, Debug)]
pub(crate) struct Joins {
    /// Subflows to open, in order.
    waiting: Seldom<Target>,
    /// Answers to simultaneous joins that arrived before the peer's key, by subflow.
    early_answers: Seldom<EarlyAnswer>,
    /// How often a path was joined again.
    rejoins: u32,
    /// Paths that are not joined again, because a middlebox strips options there.
    barred: Seldom<PathId>,
}

/// Longest time between two attempts to join a path again, in intervals of its probes.
const MAX_REJOIN_INTERVALS: u64 = 60;

/// An answer to a simultaneous join on the subflow `id` that arrived before the peer's key.
#[derive(Debug)]
pub(crate) struct EarlyAnswer {
    pub(crate) id: SubflowId,
    pub(crate) segment: Segment,
}

impl Joins {
    /// Returns all further subflows of a client whose first subflow is at `first`: `each` per path.
    pub(crate) fn after_first(paths: &[PathConfig], first: Address, each: u8) -> Joins {
        let mut waiting = Seldom::default();
        let (server, port) = (first.server(), first.remote_port);
        let mut add = |config: &PathConfig, count: u8| {
            let PathConfig { path, backup, .. } = *config;
            for _ in 0..count {
                waiting.push(Target { path, server, port, backup });
            }
        };
        let here = |config: &&PathConfig| config.path == first.path();
        paths.iter().filter(here).for_each(|config| add(config, each.saturating_sub(1)));
        paths.iter().filter(|config| !here(config)).for_each(|config| add(config, each.max(1)));
        Joins { waiting, ..Joins::default() }
    }

    /// Adds subflows to open.
    pub(super) fn add(&mut self, targets: impl IntoIterator<Item = Target>) {
        self.waiting.extend(targets);
    }

    /// Removes the subflows to open for which `gone` holds.
    pub(super) fn drop_if(&mut self, gone: impl Fn(&Target) -> bool) {
        self.waiting.retain(|target| !gone(target));
    }

    /// Returns the subflows to open.
    pub(super) fn waiting(&self) -> &[Target] {
        &self.waiting
    }

    /// Returns the peer's addresses of the subflows to open.
    pub(super) fn servers(&self) -> impl Iterator<Item = ServerAddress> {
        self.waiting.iter().map(|target| target.server)
    }

    /// Keeps the answer to a simultaneous join until the peer's key has arrived.
    pub(super) fn keep_answer(&mut self, id: SubflowId, answer: &Segment) {
        self.early_answers.push(EarlyAnswer { id, segment: answer.clone() });
    }

    /// Takes the answers to simultaneous joins that arrived before the peer's key.
    pub(super) fn take_answers(&mut self) -> Vec<EarlyAnswer> {
        self.early_answers.take()
    }

    /// Returns the time to wait before a path is joined again, and doubles it for the next time.
    pub(super) fn back_off(&mut self, base: Span) -> Span {
        let wait = base.times((1 << self.rejoins.min(8)).min(MAX_REJOIN_INTERVALS));
        self.rejoins += 1;
        wait
    }

    /// Resets the time to wait before a path is joined again.
    pub(super) fn forget_rejoins(&mut self) {
        self.rejoins = 0;
    }

    /// Returns true if a path must not be joined again.
    pub(crate) fn is_barred(&self, path: PathId) -> bool {
        self.barred.contains(&path)
    }

    /// Bars a path from further joins.
    pub(crate) fn bar(&mut self, path: PathId) {
        if !self.barred.contains(&path) {
            self.barred.push(path);
        }
    }
}

impl Paths {
    /// Returns the subflows to an address of the peer: the configured number from every path.
    pub(crate) fn joins_to(&self, server: ServerAddress, port: Option<u16>) -> Vec<Target> {
        let port = port.unwrap_or(self.addresses.first().remote_port);
        let each = usize::from(self.spec.config.joins.per_pair.max(1));
        let targets = self.spec.paths.iter().flat_map(|config| {
            let target = Target { path: config.path, server, port, backup: config.backup };
            core::iter::repeat_n(target, each)
        });
        targets.filter(|target| !self.addresses.is_gone(target.path)).collect()
    }

    /// Returns every subflow that may be opened now, open ones included.
    pub(crate) fn all_targets(&self) -> Vec<Target> {
        let mut targets = self.joins_to(self.addresses.first().server(), None);
        for known in self.addresses.peers() {
            targets.extend(self.joins_to(known.number, known.port));
        }
        targets.retain(|target| self.addresses.may_join(target.path, target.server));
        targets
    }

    /// Returns the targets that are neither open nor waiting.
    pub(crate) fn missing_targets(&self) -> Vec<Target> {
        let mut missing = self.all_targets();
        let mut strike = |path, server, port| {
            let known = |it: &Target| (it.path, it.server, it.port) == (path, server, port);
            if let Some(at) = missing.iter().position(known) {
                missing.remove(at);
            }
        };
        self.subflows
            .open_addresses()
            .for_each(|it| strike(it.path(), it.server(), it.remote_port));
        self.joins.waiting.iter().for_each(|it| strike(it.path, it.server, it.port));
        missing.retain(|target| !self.joins.is_barred(target.path));
        missing
    }

    /// Returns true if every subflow that the connection will have carries data.
    pub(crate) fn subflows_ready(&self, data: &DataLevel) -> bool {
        let each = usize::from(self.spec.config.joins.per_pair.max(1));
        let to_address = self.spec.paths.len().max(1) * each;
        let denied = self.addresses.first_is_denied() || self.spec.config.joins.deny;
        let to_first = if denied { 1 } else { to_address };
        let all = to_first + to_address * self.spec.addresses.len();
        let expected = if data.falls_back() { 1 } else { all.min(SubflowId::MAX) };
        self.subflows.iter().filter(|s| s.status().joined()).count() >= expected
    }

    /// Sets the addresses of the first subflow, and the joins that follow from them.
    pub(crate) fn start_from(&mut self, address: Address) {
        self.addresses.begin(address);
        self.joins = if self.client {
            let each = self.spec.config.joins.per_pair;
            let mut joins = Joins::after_first(&self.spec.paths, address, each);
            joins.waiting.retain(|target| !self.addresses.is_gone(target.path));
            joins
        } else {
            Joins::default()
        };
    }

    /// Returns true if the connection outlives its last subflow: both ends have the keys, and
    /// neither has given it up.
    pub(crate) fn may_await_subflow(&self, data: &DataLevel) -> bool {
        let agreed = data.speaks_multipath() && data.keys().peer.is_some() && !data.falls_back();
        let known = !self.client || data.agreed().peer_dss_seen();
        let kept = self.spec.config.timeouts.close > Span::ZERO;
        // A client whose paths are all barred cannot open a subflow.
        let barred = |config: &PathConfig| self.joins.is_barred(config.path);
        let hopeless =
            self.client && self.spec.paths.iter().all(barred) || self.has_no_address_to_join();
        agreed
            && known
            && kept
            && !hopeless
            && !data.closing().failed()
            && !data.closing().settled()
    }

    /// Returns true if the peer refuses a join because it has lost the connection.
    pub(crate) fn is_forgotten(&self, id: SubflowId, reset: &Segment) -> bool {
        let subflow = &self.subflows[id];
        let refused = Mptcp::Reset { reason: ResetReason::Mptcp, transient: false };
        let told = reset.options.mptcp.as_deref();
        let for_good = told.is_some_and(|option| option.all().contains(&refused));
        subflow.origin().join && subflow.state() == State::SynSent && for_good
    }

    /// Takes a slot for a subflow: a closed subflow's slot, or a new one.
    pub(crate) fn take_slot(&self, data: &mut DataLevel) -> Option<SubflowId> {
        let id = self.subflows.free_slot()?;
        if id.index() < self.subflows.len() {
            data.forget_subflow(id);
        }
        Some(id)
    }

    /// Starts the joins that are due (client only). `alone` is true if no subflow is left; then
    /// even the DATA_FIN needs a join.
    pub(crate) fn start_joins(&mut self, parts: &mut Parts<'_>, alone: bool) {
        let ended = parts.data.closing().asked() && parts.data.at_end() && !alone;
        let over = parts.data.closing().failed() || parts.data.falls_back() || ended;
        if !self.client || self.joins.waiting.is_empty() || over {
            return;
        }
        let timing = self.spec.config.joins.timing;
        // RFC 8684 section 3.2: the client waits for the peer's first DSS. If the first path fell
        // silent before it arrived, or its quota allows no data, only another path can continue. The
        // peer refuses the join if it does not have the connection.
        let stuck = self.subflows.first_is_stuck();
        let ready = !timing.asks_peer() || parts.data.agreed().peer_accepts_joins() || stuck;
        let agreed =
            parts.data.speaks_multipath() || parts.data.is_offered() && timing.is_simultaneous();
        if !ready || !agreed {
            return;
        }
        let mut later = self.joins.waiting.take();
        let mut opened = 0;
        for target in &later {
            let Some(id) = self.take_slot(parts.data) else { break };
            self.join(&mut parts.ctx, parts.notices, id, *target);
            opened += 1;
        }
        // If no slot is free, joins wait for one.
        later.drain(..opened);
        self.joins.waiting = later.into();
    }

    /// Opens a subflow in the slot `id`.
    fn join(
        &mut self,
        ctx: &mut Context<'_>,
        notices: &mut Notices,
        id: SubflowId,
        target: Target,
    ) {
        let Target { path, server, port, backup } = target;
        let address = Address::new(path, server, ctx.take_port(), port);
        let start = SynState::of_join(ctx, &self.spec.config, true);
        self.add_subflow(notices, id, address, State::SynSent, start);
        let subflow = &mut self.subflows[id];
        subflow.set_backup(backup);
        subflow.queue_control(ControlSegment::Syn);
    }

    /// Marks the subflow `id` as usable for data.
    pub(crate) fn on_up(&mut self, ctx: &mut Context<'_>, data: &mut DataLevel, id: SubflowId) {
        let subflow = &mut self.subflows[id];
        subflow.join(ctx);
        // From now on, the peer's join may carry data of both ends.
        if subflow.origin().join {
            data.on_joined();
        }
        let (path, server) = (subflow.address().path(), subflow.address().server());
        ctx.emit(Event::SubflowUp { subflow: subflow.id(), path, server });
    }
}
