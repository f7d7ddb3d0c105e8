//! Further subflows: which are to be opened, and when.

use crate::config::PathConfig;
use crate::conn::ConnectionSpec;
use crate::conn::timers::ConnectionTimers;
use crate::data::fallback::Mode;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::seldom::Seldom;
use crate::tcp::state::State;
use crate::tcp::subflow::Address;
use alloc::vec::Vec;
use plait_base::{PathId, ServerAddress, Span, SubflowId};
use plait_wire::{Mptcp, ResetReason, Segment};

/// A subflow that is to be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) path: PathId,
    pub(crate) server: ServerAddress,
    pub(crate) port: u16,
    pub(crate) backup: bool,
}

#[derive(Default, Debug)]
pub(crate) struct Joins {
    /// Subflows that are still to be opened, in their order.
    pub(crate) waiting: Seldom<Target>,
    /// Answers to simultaneous joins that came before the peer's key, by subflow.
    pub(crate) early_answers: Seldom<(usize, Segment)>,
    /// How often a path was joined anew.
    pub(crate) rejoins: u32,
    /// Paths that are not joined again, for a middlebox takes options off there.
    pub(crate) barred: Seldom<PathId>,
}

impl Joins {
    /// All subflows of a client whose first is at `first`, but that one: as many as asked for on
    /// each path.
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

    /// Whether a path is not to be joined again.
    pub(crate) fn is_barred(&self, path: PathId) -> bool {
        self.barred.contains(&path)
    }

    /// A path is not to be joined again.
    pub(crate) fn bar(&mut self, path: PathId) {
        if !self.barred.contains(&path) {
            self.barred.push(path);
        }
    }
}

impl Paths {
    /// The subflows to an address of the peer: from every path, as many as asked for.
    pub(crate) fn joins_to(
        &self,
        spec: &ConnectionSpec,
        server: ServerAddress,
        port: Option<u16>,
    ) -> Vec<Target> {
        let port = port.unwrap_or(self.addresses.first.remote_port);
        let each = usize::from(spec.config.subflows.max(1));
        let targets = spec.paths.iter().flat_map(|config| {
            let target = Target { path: config.path, server, port, backup: config.backup };
            core::iter::repeat_n(target, each)
        });
        targets.filter(|target| !self.addresses.removals.is_gone(target.path)).collect()
    }

    /// Every subflow that may be opened now, those that are open included.
    pub(crate) fn all_targets(&self, spec: &ConnectionSpec) -> Vec<Target> {
        let mut targets = self.joins_to(spec, self.addresses.first.server(), None);
        for known in self.addresses.peers() {
            targets.extend(self.joins_to(spec, known.number, known.port));
        }
        targets.retain(|target| self.may_join(target.path, target.server));
        targets
    }

    /// Those of them that are neither open nor waiting to be.
    pub(crate) fn missing_targets(&self, spec: &ConnectionSpec) -> Vec<Target> {
        let mut missing = self.all_targets(spec);
        let mut strike = |path, server, port| {
            let known = |it: &Target| (it.path, it.server, it.port) == (path, server, port);
            if let Some(at) = missing.iter().position(known) {
                missing.remove(at);
            }
        };
        self.open_addresses().for_each(|it| strike(it.path(), it.server(), it.remote_port));
        self.joins.waiting.iter().for_each(|it| strike(it.path, it.server, it.port));
        missing.retain(|target| !self.joins.is_barred(target.path));
        missing
    }

    /// Every subflow that the connection will have carries data.
    pub(crate) fn subflows_ready(&self, spec: &ConnectionSpec, data: &DataLevel) -> bool {
        let each = usize::from(spec.config.subflows.max(1));
        let to_address = spec.paths.len().max(1) * each;
        let denied = self.addresses.first_denied || spec.config.deny_joins;
        let to_first = if denied { 1 } else { to_address };
        let all = to_first + to_address * spec.addresses.len();
        let expected = if data.falls_back() { 1 } else { all.min(SubflowId::MAX) };
        self.subflows.iter().filter(|s| s.status.joined).count() >= expected
    }

    /// The addresses of the first subflow are known, and with them what is to be joined.
    pub(crate) fn start_from(&mut self, spec: &ConnectionSpec, address: Address) {
        self.addresses.begin(address);
        self.joins = if self.client {
            let each = spec.config.subflows;
            let mut joins = Joins::after_first(&spec.paths, address, each);
            joins.waiting.retain(|target| !self.addresses.removals.is_gone(target.path));
            joins
        } else {
            Joins::default()
        };
    }

    /// Whether the connection outlives its last subflow: both ends have the keys, and neither has
    /// given it up.
    pub(crate) fn may_await_subflow(&self, spec: &ConnectionSpec, data: &DataLevel) -> bool {
        let agreed =
            data.agreed.mode == Mode::Multipath && data.keys.peer.is_some() && !data.falls_back();
        let known = !self.client || data.agreed.peer_dss_seen;
        let kept = spec.config.close_timeout > Span::ZERO;
        // A client whose paths are all barred has nowhere to open one.
        let barred = |config: &PathConfig| self.joins.is_barred(config.path);
        let hopeless = self.client && spec.paths.iter().all(barred)
            || self.has_no_address_to_join(&spec.config);
        agreed && known && kept && !hopeless && !data.closing.failed && !data.closing.settled()
    }

    /// The peer refuses a join, for it does not know the connection any more.
    pub(crate) fn is_forgotten(
        &self,
        timers: &ConnectionTimers,
        index: usize,
        reset: &Segment,
    ) -> bool {
        let subflow = &self.subflows[index];
        let refused = Mptcp::Reset { reason: ResetReason::Mptcp, transient: false };
        let told = reset.options.mptcp.as_deref();
        let for_good = told.is_some_and(|option| option.all().contains(&refused));
        timers.awaits_subflow() && subflow.shake.join && subflow.state == State::SynSent && for_good
    }
}
