//! Further subflows: which are to be opened, and when.

use crate::config::JoinTiming;
use crate::conn::Connection;
use crate::conn::context::Context;
use crate::data::fallback::Mode;
use crate::event::Event;
use crate::paths::joins::Target;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::{Address, Handshake, Subflow};
use plait_base::SubflowId;
use plait_sched::Notice;

impl Connection {
    /// Starts the joins whose time has come. Client only: the server's addresses are reached from
    /// there.
    pub(crate) fn start_joins(&mut self, ctx: &mut Context<'_>) {
        // Without a subflow not even the end can be told.
        let ended = self.data.closing.asked && self.data.at_end() && !self.timers.awaits_subflow();
        let over = self.data.closing.failed || self.data.falls_back() || ended;
        if !self.paths.client || self.paths.joins.waiting.is_empty() || over {
            return;
        }
        let timing = self.spec.config.join;
        // RFC 8684 section 3.2 has the client wait for the peer's first DSS. Where the first path
        // has fallen silent before it came, another path is the only way on: the peer refuses the
        // join if it does not know the connection.
        let stuck = self.paths.subflows.first().is_some_and(|s| s.status.pf);
        let ready = match timing {
            JoinTiming::AfterData => self.data.agreed.peer_dss_seen || stuck,
            JoinTiming::AfterSynAck => true,
            JoinTiming::Simultaneous => true,
        };
        let agreed = self.data.agreed.mode == Mode::Multipath
            || self.data.agreed.mode == Mode::Offered && timing == JoinTiming::Simultaneous;
        if !ready || !agreed {
            return;
        }
        let mut later = self.paths.joins.waiting.take();
        let mut opened = 0;
        for target in &later {
            if !self.try_join(ctx, *target) {
                break;
            }
            opened += 1;
        }
        // Where there is no slot they wait for one.
        later.drain(..opened);
        self.paths.joins.waiting = later.into();
    }

    /// Opens a subflow; false where there is no slot for it.
    fn try_join(&mut self, ctx: &mut Context<'_>, target: Target) -> bool {
        let Some(id) = self.take_slot() else { return false };
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
        self.paths.add_subflow(&self.spec, &mut self.notices, id, address, State::SynSent, shake);
        let subflow = &mut self.paths.subflows[id.index()];
        subflow.status.backup = backup;
        subflow.pending.add(ControlSegment::Syn);
        true
    }

    /// A subflow may carry data from now on.
    pub(crate) fn subflow_up(&mut self, ctx: &mut Context<'_>, index: usize) {
        let subflow = &mut self.paths.subflows[index];
        subflow.status.joined = true;
        // A peer's join may carry data of both ends from now on.
        self.data.agreed.others_used |= subflow.shake.join;
        self.data.agreed.others_joined |= subflow.shake.join;
        if self.timers.awaits_subflow() {
            self.on_subflow_regained();
        }
        self.timers.arm_keep_alive(&self.spec.config, &self.paths, ctx.now);
        let subflow = &self.paths.subflows[index];
        let (id, address) = (subflow.id, subflow.address);
        let (path, server) = (address.path(), address.server());
        ctx.emit(Event::SubflowUp { subflow: id, path, server });
        // What the failed ones hold can go here now.
        for other in 0..self.paths.subflows.len() {
            if other != index && self.paths.subflows[other].status.pf {
                self.reinject_outstanding(other);
            }
        }
        self.tell_of_subflows(ctx, Some(id));
        self.notices.news = true;
    }

    /// The set of live subflows changed: what was assigned ahead was planned for another one.
    pub(crate) fn notify_subflows(&mut self, ctx: &mut Context<'_>) {
        self.tell_of_subflows(ctx, None);
    }

    /// The same; one of them may be new.
    fn tell_of_subflows(&mut self, ctx: &mut Context<'_>, began: Option<SubflowId>) {
        // Linux leaves data with its subflow as long as that can send it.
        let strands = |it: &Subflow| !it.state.sends_data() && self.data.queue.assigned(it.id) > 0;
        if !self.spec.config.kernel_rules.keep_data || self.paths.subflows.iter().any(strands) {
            self.data.queue.unassign_all();
        }
        let live = self.paths.live();
        self.scheduling.wake();
        self.scheduling.notify(
            ctx,
            &self.spec.config,
            &self.data,
            &mut self.paths,
            Notice::SubflowsChanged { live, began },
        );
    }
}
