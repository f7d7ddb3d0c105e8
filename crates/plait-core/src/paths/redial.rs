//! Restart of a connection on another path when its first handshake fails.
//!
//! A SYN that stays unanswered is set aside and not given up: each path has its own attempt, with its
//! own key and port. The attempts take turns to repeat their SYN, and the first answer to any of them
//! opens the connection (as in RFC 8305 section 5).

use crate::config::Dial;
use crate::data::level::DataLevel;
use crate::notices::Notices;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::tcp::address::Address;
use crate::tcp::handshake::SynState;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use crate::timers::ConnectionTimers;
use alloc::vec::Vec;
use plait_base::{Dsn, PathId, SubflowId};
use plait_wire::{Flags, Key, Segment};

/// An unanswered first SYN, set aside while another path is tried.
#[derive(Debug)]
struct WaitingDial {
    /// Our key in its MP_CAPABLE.
    key: Key,
    subflow: Subflow,
}

/// Attempts to dial.
#[derive(Default, Debug)]
pub(super) struct Redial {
    /// The attempts on the other paths, at most one a path. Empty after the handshake.
    waiting: Vec<WaitingDial>,
    /// How often the first handshake was restarted on another path.
    dials: u8,
    /// Consecutive handshakes that succeeded while no data was delivered.
    unheard: u8,
}

impl Redial {
    /// Returns true if some of `ways` paths have not been tried.
    pub(super) fn has_untried(&self, ways: usize) -> bool {
        usize::from(self.dials) + 1 < ways
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

    /// Takes the attempt at the address for which `holds`.
    fn take(&mut self, holds: impl Fn(Address) -> bool) -> Option<WaitingDial> {
        let place = self.waiting.iter().position(|dial| holds(dial.subflow.address()))?;
        Some(self.waiting.remove(place))
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
        let refused = subflow.origin().join && !subflow.status().joined();
        let silent = !data.agreed.peer_dss_seen() && data.queue.una() == Dsn::ZERO;
        self.client && refused && silent && self.subflows[0].status().pf()
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

    /// Continues an unanswered dial on `path`, and sets the current attempt aside.
    pub(crate) fn dial_next(&mut self, parts: &mut Parts<'_>, path: PathId) {
        let here = self.subflows[0].address();
        let first = self.subflows.take_first().filter(|it| it.state() == State::SynSent);
        let current = first.map(|mut subflow| {
            subflow.withhold_syn();
            WaitingDial { key: parts.data.keys().local, subflow }
        });
        match self.redial.take(|address| address.path() == path) {
            Some(mut dial) => {
                dial.subflow.repeat_syn();
                self.redial.restart(self.ways_to_dial());
                self.resume(parts, dial);
            }
            None => {
                let address = here.on_path(path).at_port(parts.ctx.take_port());
                self.start_dial(parts, address);
            }
        }
        self.redial.waiting.extend(current);
    }

    /// Restarts the connection at `address` with a new key. All other attempts are given up.
    pub(crate) fn redial(&mut self, parts: &mut Parts<'_>, address: Address) {
        self.redial.waiting.clear();
        self.subflows.clear();
        self.start_dial(parts, address);
    }

    /// Starts the first handshake at `address` with a new key.
    fn start_dial(&mut self, parts: &mut Parts<'_>, address: Address) {
        let start = SynState::new(&mut parts.ctx, &self.spec.config, true);
        let key = parts.ctx.unique_key();
        self.begin_dial(parts, key);
        self.add_subflow(parts.notices, SubflowId(0), address, State::SynSent, start);
        // Each round over all paths waits twice as long as the previous one.
        let rounds = self.redial.restart(self.ways_to_dial());
        let subflow = &mut self.subflows[0];
        for _ in 0..rounds {
            subflow.back_off_syn();
        }
        subflow.queue_control(ControlSegment::Syn);
        self.start_from(address);
    }

    /// Makes `dial` the current attempt.
    fn resume(&mut self, parts: &mut Parts<'_>, dial: WaitingDial) {
        let WaitingDial { key, subflow } = dial;
        self.begin_dial(parts, key);
        let address = subflow.address();
        parts.notices.tell_endpoint();
        self.subflows.clear();
        self.subflows.add(subflow);
        self.start_from(address);
    }

    /// Sets the data level back to the state before its first handshake, with our `key`.
    fn begin_dial(&mut self, parts: &mut Parts<'_>, key: Key) {
        parts.data.restart(&self.spec.config, key);
        *parts.timers = ConnectionTimers::new();
        parts.timers.arm_release(&mut parts.ctx, &self.spec.config, parts.data);
    }

    /// Returns the addresses of the attempts that were set aside.
    pub(crate) fn waiting_dials(&self) -> impl Iterator<Item = Address> + '_ {
        self.redial.waiting.iter().map(|dial| dial.subflow.address())
    }

    /// Processes a segment for an attempt that was set aside. Returns the index of its subflow if it
    /// answers the SYN, and the connection continues there. The attempt of the other paths end: their
    /// answers are reset, as those of unknown connections.
    #[cold]
    pub(crate) fn take_late_answer(
        &mut self,
        parts: &mut Parts<'_>,
        address: Address,
        segment: &Segment,
    ) -> Option<usize> {
        let waiting = self.redial.waiting.iter().find(|dial| dial.subflow.address() == address)?;
        let own = waiting.subflow.negotiated().iss.after_syn();
        if !segment.flags.has(Flags::ACK) || segment.ack != own {
            return None;
        }
        let dial = self.redial.take(|known| known == address)?;
        if segment.flags.has(Flags::RST) || !segment.flags.has(Flags::SYN) || !self.is_dialling(0) {
            // The path refuses the connection.
            parts.notices.tell_endpoint();
            return None;
        }
        self.resume(parts, dial);
        Some(0)
    }

    /// Gives up the attempts that were set aside on the paths for which `gone` holds.
    pub(crate) fn drop_waiting_dials(
        &mut self,
        notices: &mut Notices,
        gone: impl Fn(PathId) -> bool,
    ) {
        if !self.redial.waiting.is_empty() {
            self.redial.waiting.retain(|dial| !gone(dial.subflow.address().path()));
            notices.tell_endpoint();
        }
    }
}
