//! A connection whose first handshake leads nowhere begins again on another path.

use super::fallback::Fallback;
use super::timeouts::ConnectionTimers;
use super::{Connection, Context, FallbackCause, Keys, Mode};
use crate::config::{Dial, PathConfig};
use crate::data::window::SendWindow;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::{Address, Handshake};
use plait_base::{Dsn, SubflowId};

impl Connection {
    /// The first subflow's SYN stays unanswered: where there is another path, the next attempt
    /// starts there.
    pub(super) fn try_next_path(&mut self, ctx: &mut Context<'_>) -> bool {
        let here = self.subflows[0].address;
        let position = self.spec.paths.iter().position(|config| config.path == here.path());
        let count = self.spec.paths.len();
        let Some(position) = position.filter(|_| count > 1) else { return false };
        let mut others = (1..count).map(|step| self.spec.paths[(position + step) % count]);
        let usable = |next: &PathConfig| !self.addresses.removals.is_gone(next.path);
        let Some(next) = others.find(usable) else { return false };
        let local_port = ctx.take_port();
        self.redial_on(ctx, here.on_path(next.path).at_port(local_port));
        true
    }

    /// How many paths an unanswered first SYN goes to in turn, at least one.
    pub(super) fn ways_to_dial(&self) -> usize {
        match self.spec.config.dial {
            Dial::Any => self.spec.paths.len().max(1),
            Dial::Primary => 1,
        }
    }

    /// How often they have all been tried.
    pub(super) fn rounds_dialled(&self) -> usize {
        usize::from(self.dials) / self.ways_to_dial()
    }

    /// The peer refuses a join, and nothing was ever heard of it but its SYN/ACK: it did not get
    /// our third ACK, and its user knows nothing of the connection.
    pub(super) fn never_known_to_peer(&self, index: usize) -> bool {
        let subflow = &self.subflows[index];
        let refused = subflow.shake.join && !subflow.status.joined;
        let silent = !self.joins.peer_dss_seen && self.queue.una() == Dsn::ZERO;
        self.client && refused && silent && self.subflows[0].status.pf
    }

    /// Begins again on the path of the subflow at `index`.
    pub(super) fn redial_here(&mut self, ctx: &mut Context<'_>, index: usize) {
        self.on_first_data_lost(ctx, index);
        let here = self.subflows[index].address;
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
        self.keys = Keys::new(ctx.unique_key(), self.spec.config.offsets.idsn);
        self.checksums = self.spec.config.checksum;
        // A silence that was found stays found.
        let silent = self.fallback.cause() == Some(FallbackCause::Silence);
        if !silent {
            self.fallback = Fallback::new();
        }
        let offers = self.spec.config.multipath && !silent;
        self.mode = if offers { Mode::Offered } else { Mode::Plain };
        self.queue.restart();
        // What was told of the end is to be told anew as well.
        (self.closing.fin_sent, self.closing.fin_due) = (false, false);
        self.window = SendWindow::new();
        self.timers = ConnectionTimers::new();
        self.subflows.clear();
        self.add_subflow(SubflowId(0), address, State::SynSent, shake);
        // Each round over all paths waits twice as long as the one before.
        self.dials = self.dials.saturating_add(1);
        let rounds = self.rounds_dialled();
        let subflow = &mut self.subflows[0];
        for _ in 0..rounds {
            subflow.rtt.back_off();
        }
        subflow.pending.add(ControlSegment::Syn);
        self.start_from(address);
        self.arm_release(ctx);
    }
}
