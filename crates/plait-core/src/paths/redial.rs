//! Restart of a connection on another path when its first handshake fails.

use crate::config::Dial;
use crate::data::level::DataLevel;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::tcp::address::Address;
use crate::tcp::handshake::SynState;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::timers::ConnectionTimers;
use plait_base::{Dsn, PathId, SubflowId};

/// Attempts to dial.
#[derive(Default, Debug)]
pub(super) struct Redial {
    /// How often the first handshake was restarted on another path.
    dials: u8,
    /// Consecutive handshakes that succeeded while no data was delivered.
    unheard: u8,
}

impl Redial {
    /// Returns true before the first restart.
    pub(super) const fn is_first(&self) -> bool {
        self.dials == 0
    }

    /// Returns how often each of `ways` paths was tried, the current attempt included.
    pub(super) fn rounds(&self, ways: usize) -> usize {
        (usize::from(self.dials) + 1) / ways
    }

    /// Counts a handshake without delivered data. Returns true if it is not the first in a row.
    pub(super) fn count_lost_start(&mut self) -> bool {
        self.unheard = self.unheard.saturating_add(1);
        self.unheard > 1
    }

    /// Counts a restart. Returns how often each of `ways` paths was tried before.
    fn restart(&mut self, ways: usize) -> usize {
        self.dials = self.dials.saturating_add(1);
        self.rounds_before(ways)
    }

    /// Returns how often each of `ways` paths was tried before the current attempt.
    pub(super) fn rounds_before(&self, ways: usize) -> usize {
        usize::from(self.dials) / ways
    }
}

impl Paths {
    /// Returns the number of paths that an unanswered first SYN uses in turn, at least one.
    pub(crate) fn ways_to_dial(&self) -> usize {
        match self.spec.config.joins.dial {
            Dial::Any => self.spec.paths.len().max(1),
            Dial::Primary => 1,
        }
    }

    /// Returns true if the peer refuses a join and has sent nothing but its SYN/ACK. It did not
    /// receive our third ACK, so its application has no connection.
    pub(crate) fn never_known_to_peer(&self, data: &DataLevel, index: usize) -> bool {
        let subflow = &self.subflows[index];
        let refused = subflow.origin().join && !subflow.status.joined();
        let silent = !data.agreed.peer_dss_seen() && data.queue.una() == Dsn::ZERO;
        self.client && refused && silent && self.subflows[0].status.pf()
    }

    /// Returns true if the first subflow is on `path` and the peer may not have our key yet. A
    /// plain TCP connection can restart only before its SYN is answered.
    pub(crate) fn dials_on(&self, data: &DataLevel, path: PathId) -> bool {
        let first = &self.subflows[0];
        let unknown = !data.agreed.peer_dss_seen() && data.queue.una() == Dsn::ZERO;
        let early = !data.plain() || first.state() == State::SynSent;
        unknown && early && !first.origin().join && first.address().path() == path
    }

    /// Returns the next path for an unanswered first SYN, if there is another.
    pub(crate) fn next_path(&self) -> Option<PathId> {
        let here = self.subflows[0].address().path();
        let count = self.spec.paths.len();
        let position = self.spec.paths.iter().position(|config| config.path == here)?;
        let mut others = (1..count).map(|step| self.spec.paths[(position + step) % count].path);
        others.find(|next| !self.addresses.is_gone(*next))
    }

    /// Restarts the connection at `address` with a new key.
    pub(crate) fn redial(&mut self, parts: &mut Parts<'_>, address: Address) {
        let start = SynState::new(&mut parts.ctx, &self.spec.config, true);
        parts.data.restart(&self.spec.config, parts.ctx.unique_key());
        *parts.timers = ConnectionTimers::new();
        parts.timers.arm_release(&mut parts.ctx, &self.spec.config, parts.data);
        self.subflows.clear();
        self.add_subflow(parts.notices, SubflowId(0), address, State::SynSent, start);
        // Each round over all paths waits twice as long as the previous one.
        let rounds = self.redial.restart(self.ways_to_dial());
        let subflow = &mut self.subflows[0];
        for _ in 0..rounds {
            subflow.sender.rtt.back_off();
        }
        subflow.pending.add(ControlSegment::Syn);
        self.start_from(address);
    }
}
