//! A connection whose first handshake leads nowhere begins again on another path.

use crate::config::Dial;
use crate::conn::context::Context;
use crate::conn::notices::Notices;
use crate::conn::timers::ConnectionTimers;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::address::Address;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::Handshake;
use plait_base::{Dsn, PathId, SubflowId};

impl Paths {
    /// How many paths an unanswered first SYN goes to in turn, at least one.
    pub(crate) fn ways_to_dial(&self) -> usize {
        match self.spec.config.joins.dial {
            Dial::Any => self.spec.paths.len().max(1),
            Dial::Primary => 1,
        }
    }

    /// How often they have all been tried.
    pub(crate) fn rounds_dialled(&self) -> usize {
        usize::from(self.dials) / self.ways_to_dial()
    }

    /// The peer refuses a join, and nothing was ever heard of it but its SYN/ACK: it did not get
    /// our third ACK, and its user knows nothing of the connection.
    pub(crate) fn never_known_to_peer(&self, data: &DataLevel, index: usize) -> bool {
        let subflow = &self.subflows[index];
        let refused = subflow.shake.join && !subflow.status.joined;
        let silent = !data.agreed.peer_dss_seen && data.queue.una() == Dsn::ZERO;
        self.client && refused && silent && self.subflows[0].status.pf
    }

    /// Whether the first subflow is on `path` and the peer may not have our key yet. A connection of plain
    /// TCP can only begin anew before its SYN is answered.
    pub(crate) fn dials_on(&self, data: &DataLevel, path: PathId) -> bool {
        let first = &self.subflows[0];
        let unknown = !data.agreed.peer_dss_seen && data.queue.una() == Dsn::ZERO;
        let early = !data.plain() || first.state == State::SynSent;
        unknown && early && !first.shake.join && first.address.path() == path
    }

    /// The path on which an unanswered first SYN goes out next, if there is another.
    pub(crate) fn next_path(&self) -> Option<PathId> {
        let here = self.subflows[0].address.path();
        let count = self.spec.paths.len();
        let position = self.spec.paths.iter().position(|config| config.path == here)?;
        let mut others = (1..count).map(|step| self.spec.paths[(position + step) % count].path);
        others.find(|next| !self.addresses.removals.is_gone(*next))
    }

    /// The connection begins again at `address`, with a new key.
    pub(crate) fn redial(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        timers: &mut ConnectionTimers,
        (notices, address): (&mut Notices, Address),
    ) {
        let iss = ctx.first_sequence(&self.spec.config);
        data.restart(&self.spec.config, ctx.unique_key());
        *timers = ConnectionTimers::new();
        timers.arm_release(ctx, &self.spec.config, data);
        let shake = Handshake { iss, initiator: true, sent_at: ctx.now, ..Handshake::default() };
        self.subflows.clear();
        self.add_subflow(notices, SubflowId(0), address, State::SynSent, shake);
        // Each round over all paths waits twice as long as the one before.
        self.dials = self.dials.saturating_add(1);
        let rounds = self.rounds_dialled();
        let subflow = &mut self.subflows[0];
        for _ in 0..rounds {
            subflow.sender.rtt.back_off();
        }
        subflow.pending.add(ControlSegment::Syn);
        self.start_from(address);
    }
}
