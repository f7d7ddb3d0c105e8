//! A connection whose first handshake leads nowhere begins again on another path.

use crate::config::PathConfig;
use crate::conn::Connection;
use crate::conn::context::Context;
use crate::conn::timers::ConnectionTimers;
use crate::data::fallback::{Agreement, FallbackCause, Mode};
use crate::data::keys::Keys;
use crate::data::window::SendWindow;
use crate::event::SizeCause;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::{Address, Handshake};
use plait_base::SubflowId;

impl Connection {
    /// The first subflow's SYN stays unanswered: where there is another path, the next attempt
    /// starts there.
    pub(super) fn try_next_path(&mut self, ctx: &mut Context<'_>) -> bool {
        let here = self.paths.subflows[0].address;
        let position = self.spec.paths.iter().position(|config| config.path == here.path());
        let count = self.spec.paths.len();
        let Some(position) = position.filter(|_| count > 1) else { return false };
        let mut others = (1..count).map(|step| self.spec.paths[(position + step) % count]);
        let usable = |next: &PathConfig| !self.paths.addresses.removals.is_gone(next.path);
        let Some(next) = others.find(usable) else { return false };
        let local_port = ctx.take_port();
        self.redial_on(ctx, here.on_path(next.path).at_port(local_port));
        true
    }

    /// Begins again on the path of the subflow at `index`.
    pub(super) fn redial_here(&mut self, ctx: &mut Context<'_>, index: usize) {
        let size = self.paths.size_after_lost_start(&self.spec.config, &self.data);
        self.lower_size(ctx, index, size, SizeCause::BlackHole);
        let here = self.paths.subflows[index].address;
        let local_port = ctx.take_port();
        self.redial_on(ctx, here.at_port(local_port));
    }

    /// Begins again on another path: a new key, a new handshake, all that was written to be sent
    /// anew. As with any client that dials again, the peer's user may yet see the first attempt
    /// too, if its segments were only late: then it is a connection that is reset.
    fn redial_on(&mut self, ctx: &mut Context<'_>, address: Address) {
        let shake = Handshake {
            iss: ctx.first_sequence(&self.spec.config),
            initiator: true,
            sent_at: ctx.now,
            ..Handshake::default()
        };
        self.data.keys = Keys::new(ctx.unique_key(), self.spec.config.offsets.idsn);
        // A silence that was found stays found.
        let silent = self.data.agreed.cause() == Some(FallbackCause::Silence);
        if !silent {
            self.data.agreed = Agreement::new(&self.spec.config);
        }
        let offers = self.spec.config.multipath && !silent;
        self.data.agreed.checksums = self.spec.config.checksum;
        self.data.agreed.mode = if offers { Mode::Offered } else { Mode::Plain };
        self.data.queue.restart();
        // What was told of the end is to be told anew as well.
        (self.data.closing.fin_sent, self.data.closing.fin_due) = (false, false);
        self.data.window = SendWindow::new();
        self.timers = ConnectionTimers::new();
        self.paths.subflows.clear();
        self.paths.add_subflow(
            &self.spec,
            &mut self.notices,
            SubflowId(0),
            address,
            State::SynSent,
            shake,
        );
        // Each round over all paths waits twice as long as the one before.
        self.paths.dials = self.paths.dials.saturating_add(1);
        let rounds = self.paths.rounds_dialled(&self.spec);
        let subflow = &mut self.paths.subflows[0];
        for _ in 0..rounds {
            subflow.rtt.back_off();
        }
        subflow.pending.add(ControlSegment::Syn);
        self.data.agreed.peer_dss_seen = false;
        self.paths.start_from(&self.spec, address);
        self.timers.arm_release(ctx, &self.spec.config, &self.data);
    }
}
