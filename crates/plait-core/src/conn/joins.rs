//! Further subflows: which are to be opened, and when.

use super::{Connection, Context, Mode};
use crate::config::{JoinTiming, PathConfig};
use crate::event::Event;
use crate::seldom::Seldom;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::{Address, Handshake, Subflow};
use plait_base::{PathId, ServerAddress, SubflowId, Time};
use plait_sched::Notice;
use plait_wire::Segment;

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
    /// A DSS of the peer was seen: it holds our key (RFC 8684 section 3.1).
    pub(crate) peer_dss_seen: bool,
    /// Answers to simultaneous joins that came before the peer's key, by subflow.
    pub(crate) early_answers: Seldom<(usize, Segment)>,
    /// How often a path was joined anew.
    pub(crate) rejoins: u32,
    /// Paths that are not joined again, for a middlebox takes options off there.
    barred: Seldom<PathId>,
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

impl Connection {
    /// Starts the joins whose time has come. Client only: the server's addresses are reached from
    /// there.
    pub(crate) fn start_joins(&mut self, ctx: &mut Context<'_>) {
        // Without a subflow not even the end can be told.
        let ended = self.closing.asked && self.at_end() && !self.awaits_subflow();
        let over = self.failed || self.falls_back() || ended;
        if !self.client || self.joins.waiting.is_empty() || over {
            return;
        }
        let timing = self.spec.config.join;
        // RFC 8684 section 3.2 has the client wait for the peer's first DSS. Where the first path
        // has fallen silent before it came, another path is the only way on: the peer refuses the
        // join if it does not know the connection.
        let stuck = self.subflows.first().is_some_and(|s| s.status.pf);
        let ready = match timing {
            JoinTiming::AfterData => self.joins.peer_dss_seen || stuck,
            JoinTiming::AfterSynAck => true,
            JoinTiming::Simultaneous => true,
        };
        let agreed = self.mode == Mode::Multipath
            || self.mode == Mode::Offered && timing == JoinTiming::Simultaneous;
        if !ready || !agreed {
            return;
        }
        let mut later = self.joins.waiting.take();
        let mut opened = 0;
        for target in &later {
            if !self.try_join(ctx, *target) {
                break;
            }
            opened += 1;
        }
        // Where there is no slot they wait for one.
        later.drain(..opened);
        self.joins.waiting = later.into();
    }

    /// Opens a subflow; false where there is no slot for it.
    fn try_join(&mut self, ctx: &mut Context<'_>, target: Target) -> bool {
        let Some(id) = self.free_slot() else { return false };
        let Target { path, server, port, backup } = target;
        let address = Address::new(path, server, ctx.take_port(), port);
        let shake = Handshake {
            iss: ctx.first_sequence(&self.spec.config),
            nonce: ctx.entropy.bits() as u32,
            join: true,
            initiator: true,
            sent_at: ctx.now,
            ..Handshake::default()
        };
        self.add_subflow(id, address, State::SynSent, shake);
        let subflow = &mut self.subflows[id.index()];
        subflow.status.backup = backup;
        subflow.pending.add(ControlSegment::Syn);
        true
    }

    /// Every subflow that the connection will have carries data.
    pub(crate) fn subflows_ready(&self) -> bool {
        let each = usize::from(self.spec.config.subflows.max(1));
        let to_address = self.spec.paths.len().max(1) * each;
        let denied = self.addresses.first_denied || self.spec.config.deny_joins;
        let to_first = if denied { 1 } else { to_address };
        let all = to_first + to_address * self.spec.addresses.len();
        let expected = if self.falls_back() { 1 } else { all.min(SubflowId::MAX) };
        self.subflows.iter().filter(|s| s.status.joined).count() >= expected
    }

    /// A subflow may carry data from now on.
    pub(crate) fn subflow_up(&mut self, ctx: &mut Context<'_>, index: usize) {
        let subflow = &mut self.subflows[index];
        subflow.status.joined = true;
        // A peer's join may carry data of both ends from now on.
        self.fallback.others_used |= subflow.shake.join;
        self.fallback.others_joined |= subflow.shake.join;
        if self.awaits_subflow() {
            self.on_subflow_regained();
        }
        self.arm_keep_alive(ctx.now);
        let subflow = &self.subflows[index];
        let (id, address) = (subflow.id, subflow.address);
        let (path, server) = (address.path(), address.server());
        ctx.emit(Event::SubflowUp { subflow: id, path, server });
        // What the failed ones hold can go here now.
        for other in 0..self.subflows.len() {
            if other != index && self.subflows[other].status.pf {
                self.reinject_outstanding(other);
            }
        }
        self.tell_of_subflows(ctx, Some(id));
        self.news = true;
    }

    /// The set of live subflows changed: what was assigned ahead was planned for another one.
    pub(crate) fn notify_subflows(&mut self, ctx: &mut Context<'_>) {
        self.tell_of_subflows(ctx, None);
    }

    /// The same; one of them may be new.
    fn tell_of_subflows(&mut self, ctx: &mut Context<'_>, began: Option<SubflowId>) {
        // Linux leaves data with its subflow as long as that can send it.
        let strands = |it: &Subflow| !it.state.sends_data() && self.queue.assigned(it.id) > 0;
        if !self.spec.config.kernel_rules.keep_data || self.subflows.iter().any(strands) {
            self.queue.unassign_all();
        }
        let live = self.live();
        self.scheduling.wake();
        self.notify_scheduler(ctx, Notice::SubflowsChanged { live, began });
    }

    /// From when on the next send finds every congestion window back at its initial value; `None`
    /// while data is under way, [`Time::NEVER`] where idling alone will not bring them there.
    pub(crate) fn initial_window_at(&self) -> Option<Time> {
        let mode = self.spec.config.idle_restart;
        let mut latest = Time::ZERO;
        for subflow in self.subflows.iter().filter(|s| s.status.joined) {
            if !subflow.is_quiet() {
                return None;
            }
            let idle = subflow.cc.idle_until_initial(subflow.rtt.base_rto(), mode);
            latest = latest.max(match idle {
                Some(idle) => subflow.last_send + idle,
                None if subflow.cc.cwnd() == subflow.cc.initial_window() => Time::ZERO,
                None => Time::NEVER,
            });
        }
        self.queue.is_drained().then_some(latest)
    }

    /// Sets every window to its initial value; thresholds stay.
    pub(crate) fn reset_windows(&mut self, ctx: &mut Context<'_>) {
        let initial = u64::from(self.spec.config.initial_window) * self.mss();
        for subflow in &mut self.subflows {
            subflow.cc.set_cwnd(initial);
            ctx.log.emit(Event::Window {
                subflow: subflow.id,
                cwnd: initial,
                ssthresh: subflow.cc.ssthresh(),
                cause: crate::event::WindowCause::Set,
            });
        }
        self.scheduling.on_subflows_changed();
    }
}
