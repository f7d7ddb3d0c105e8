//! Restart of a connection on another path when its first handshake fails.
//!
//! A SYN that stays unanswered is set aside and not given up: each path has its own attempt, with its
//! own key and port. The attempts take turns to repeat their SYN, and the first answer to any of them
//! opens the connection (as in RFC 8305 section 5).
//!
//! A path that costs more, or that has used up its quota, is dialled only if the cheaper paths are down:
//! a SYN there has timed out, and its repetition stayed unanswered for [`JoinRules::attempt_delay`]. If
//! the RTT is shorter than that, one lost SYN does not lead to such a path.
//!
//! [`JoinRules::attempt_delay`]: crate::JoinRules::attempt_delay

use crate::config::{Dial, KernelRules, PathConfig};
use crate::context::Context;
use crate::event::FallbackCause;
use crate::notices::Notices;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::paths::addresses::Addresses;
use crate::paths::sizing::SegmentSizes;
use crate::prices::DialRank;
use crate::spec::ConnectionSpec;
use crate::tcp::address::Address;
use crate::tcp::handshake::SynState;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use crate::timers::ConnectionTimers;
use alloc::vec::Vec;
use plait_base::{PathId, SubflowId};
use plait_wire::{Flags, Key, Segment, WireSeq};

/// An attempt to dial on one path.
#[derive(Debug)]
struct Attempt {
    /// Our key in its MP_CAPABLE.
    key: Key,
    subflow: Subflow,
}

/// Why another path may be dialled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DialCause {
    /// The SYN was not answered in time.
    Timeout,
    /// The address of the path is gone.
    AddressLost,
}

/// The paths that a SYN may use.
#[derive(Clone, Copy)]
pub(super) struct Ways<'a> {
    ctx: &'a Context<'a>,
    spec: &'a ConnectionSpec,
    addresses: &'a Addresses,
    /// The path of the current SYN.
    here: PathId,
}

impl<'a> Ways<'a> {
    pub(super) const fn of(
        ctx: &'a Context<'a>,
        spec: &'a ConnectionSpec,
        addresses: &'a Addresses,
        here: PathId,
    ) -> Ways<'a> {
        Ways { ctx, spec, addresses, here }
    }

    fn rank(&self, path: &PathConfig) -> DialRank {
        self.ctx.dial_rank(self.spec, path)
    }

    /// Returns the rank of the current path.
    fn own_rank(&self) -> DialRank {
        self.spec.path(self.here).map_or_else(DialRank::default, |it| self.rank(it))
    }

    /// Returns the ranks of the paths with an address of this host.
    fn ranks(&self) -> impl Iterator<Item = DialRank> {
        let there = self.spec.paths.iter().filter(|it| !self.addresses.is_gone(it.path));
        there.map(|it| self.rank(it))
    }

    /// Returns the next path in turn with such a rank.
    fn next(&self, may: impl Fn(DialRank) -> bool) -> Option<PathId> {
        let may = |it: &PathConfig| !self.addresses.is_gone(it.path) && may(self.rank(it));
        self.spec.path_after(self.here, may)
    }
}

/// Attempts to dial.
#[derive(Default, Debug)]
pub(super) struct Redial {
    /// The attempts on the other paths, at most one a path. Empty after the handshake.
    waiting: Vec<Attempt>,
    /// How often the first handshake was restarted on another path.
    dials: u8,
    /// Consecutive handshakes that succeeded while no data was delivered.
    unheard: u8,
    /// The highest rank of the paths that may be dialled. It holds for the path of the current attempt too
    /// from the first restart on.
    ceiling: DialRank,
    /// The current SYN is the last one before paths with a higher rank are dialled.
    last_chance: bool,
}

impl Redial {
    /// Returns how often each of `ways` paths was tried, the current attempt included.
    pub(super) fn rounds(&self, ways: usize) -> usize {
        (usize::from(self.dials) + 1) / ways
    }

    /// Counts an unanswered SYN. Its timeout is not doubled if the SYN waited for less.
    pub(super) fn count_timeout(&self, subflow: &mut Subflow, rules: KernelRules) {
        let dials = !subflow.origin().join && subflow.state() == State::SynSent;
        if self.last_chance && dials {
            subflow.count_handshake_retry();
        } else {
            subflow.on_syn_timeout(rules);
        }
    }

    /// Returns the highest rank of the paths that may be dialled now.
    fn highest(&self, ways: &Ways<'_>) -> DialRank {
        self.ceiling.max(ways.own_rank())
    }

    /// Returns the rank of the paths to dial next if the ones that may be dialled are down.
    fn next_rank(&self, ways: &Ways<'_>) -> Option<DialRank> {
        let highest = self.highest(ways);
        ways.ranks().filter(|rank| *rank > highest).min()
    }

    /// Returns true if some of the paths that may be dialled now have not been tried.
    fn has_untried(&self, ways: &Ways<'_>) -> bool {
        let all = ways.spec.ways_to_dial();
        let count = if all == 1 || self.next_rank(ways).is_none() {
            all
        } else {
            let highest = self.highest(ways);
            ways.ranks().filter(|rank| *rank <= highest).count()
        };
        usize::from(self.dials) + 1 < count
    }

    /// Returns true if our SYN, which was repeated `retries` times, gives way to another path before its
    /// timeout.
    pub(super) fn moves_soon(&self, ways: &Ways<'_>, retries: u8) -> bool {
        self.last_chance || retries == 0 && self.has_untried(ways)
    }

    /// Returns the path to dial; `None` to stay on this one. A path with a higher price is dialled if no
    /// other one has an address, or after the last SYN on the cheaper paths.
    fn next_path(&mut self, ways: &Ways<'_>, cause: DialCause) -> Option<PathId> {
        let (highest, next) = (self.highest(ways), self.next_rank(ways));
        let was_last = core::mem::take(&mut self.last_chance);
        if cause == DialCause::Timeout {
            if ways.spec.ways_to_dial() == 1 {
                return None;
            }
            if let Some(rank) = next.filter(|_| !self.has_untried(ways)) {
                // The SYN is repeated here once more.
                self.last_chance = !was_last;
                return if was_last { self.rise(ways, rank) } else { None };
            }
        }
        self.ceiling = highest;
        let there = ways.next(|rank| rank <= highest);
        there.or_else(|| next.and_then(|rank| self.rise(ways, rank)))
    }

    /// Allows paths of this rank, and returns the next one.
    fn rise(&mut self, ways: &Ways<'_>, rank: DialRank) -> Option<PathId> {
        self.ceiling = rank;
        ways.next(|it| it == rank)
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
    fn take(&mut self, holds: impl Fn(Address) -> bool) -> Option<Attempt> {
        self.last_chance = false;
        let place = self.waiting.iter().position(|dial| holds(dial.subflow.address()))?;
        Some(self.waiting.remove(place))
    }

    /// Sets an attempt aside if its SYN has no answer yet.
    fn set_aside(&mut self, key: Key, first: Option<Subflow>) {
        if let Some(mut subflow) = first.filter(|it| it.state() == State::SynSent) {
            subflow.withhold_syn();
            self.waiting.push(Attempt { key, subflow });
        }
    }

    /// Takes the attempt at `address` if `segment` answers its SYN. A refusal ends the attempt.
    #[cold]
    fn answered(
        &mut self,
        notices: &mut Notices,
        address: Address,
        segment: &Segment,
    ) -> Option<Attempt> {
        let waiting = self.waiting.iter().find(|dial| dial.subflow.address() == address)?;
        let own = waiting.subflow.negotiated().iss.after_syn();
        if !segment.flags.has(Flags::ACK) || WireSeq(segment.ack) != own {
            return None;
        }
        let dial = self.take(|known| known == address)?;
        notices.tell_endpoint();
        (segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::RST)).then_some(dial)
    }

    /// Gives up the attempts on the paths for which `gone` holds.
    fn drop_if(&mut self, notices: &mut Notices, gone: impl Fn(PathId) -> bool) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|dial| !gone(dial.subflow.address().path()));
            notices.tell_endpoint();
        }
    }

    /// Returns how often each of `ways` paths was tried before the current attempt.
    pub(super) fn rounds_before(&self, ways: usize) -> usize {
        usize::from(self.dials) / ways
    }

    /// Continues without MP_CAPABLE if enough SYNs that have it stayed unanswered. On one path, the SYN
    /// was repeated `retries` times.
    fn find_silence(&mut self, parts: &mut Parts<'_>, spec: &ConnectionSpec, retries: u8) {
        let asked = match spec.ways_to_dial() {
            1 => usize::from(retries),
            ways => self.rounds(ways),
        };
        let limit = usize::from(spec.config.fallback.plain_after);
        if parts.data.is_offered() && limit > 0 && asked >= limit {
            let Parts { ctx, data, notices, .. } = parts;
            data.start_plain(ctx, &spec.config, notices, FallbackCause::Silence);
            self.drop_if(notices, |_| true);
        }
    }

    /// Returns the attempt on `path` with its SYN pending: the one that was set aside, or a new one.
    fn attempt_on(
        &mut self,
        parts: &mut Parts<'_>,
        spec: &ConnectionSpec,
        sizes: SegmentSizes,
        address: Address,
    ) -> Attempt {
        match self.take(|known| known.path() == address.path()) {
            Some(mut attempt) => {
                self.restart(spec.ways_to_dial());
                attempt.subflow.count_handshake_retry();
                attempt.subflow.queue_control(ControlSegment::Syn);
                attempt
            }
            None => self.new_attempt(parts, spec, sizes, address),
        }
    }

    /// Starts an attempt at a new port, with a new key.
    fn new_attempt(
        &mut self,
        parts: &mut Parts<'_>,
        spec: &ConnectionSpec,
        sizes: SegmentSizes,
        address: Address,
    ) -> Attempt {
        self.last_chance = false;
        let address = address.at_port(parts.ctx.take_port());
        let syn = SynState::new(&mut parts.ctx, &spec.config, true);
        let key = parts.ctx.unique_key();
        let mut subflow = spec.new_subflow(sizes, SubflowId(0), address, State::SynSent, syn);
        // Each round over all paths waits twice as long as the previous one.
        for _ in 0..self.restart(spec.ways_to_dial()) {
            subflow.back_off_syn();
        }
        subflow.queue_control(ControlSegment::Syn);
        Attempt { key, subflow }
    }
}

impl ConnectionSpec {
    /// Returns the number of paths that an unanswered first SYN uses in turn, at least one.
    pub(super) fn ways_to_dial(&self) -> usize {
        match self.config.joins.dial {
            Dial::Any => self.paths.len().max(1),
            Dial::Primary => 1,
        }
    }

    /// Returns the first path after `here` for which `may` holds, in turn.
    fn path_after(&self, here: PathId, may: impl Fn(&PathConfig) -> bool) -> Option<PathId> {
        let count = self.paths.len();
        let position = self.paths.iter().position(|config| config.path == here)?;
        let mut others = (1..count).map(|step| &self.paths[(position + step) % count]);
        others.find(|next| may(next)).map(|next| next.path)
    }
}

impl Paths {
    /// Handles a timeout of our first SYN: the next one may omit MP_CAPABLE, or use another path.
    pub(super) fn dial_again(&mut self, parts: &mut Parts<'_>) {
        let retries = self.subflows[SubflowId::FIRST].handshake_retries();
        self.redial.find_silence(parts, &self.spec, retries);
        self.dial_elsewhere(parts, DialCause::Timeout);
    }

    /// Continues or starts the dial on another path if there is a reason to leave this one, and sets the
    /// current attempt aside: an answer to it is still used. Returns false if the dial stays on its path.
    pub(crate) fn dial_elsewhere(&mut self, parts: &mut Parts<'_>, cause: DialCause) -> bool {
        let (here, key) = (self.subflows[SubflowId::FIRST].address(), parts.data.keys().local);
        let ways = Ways::of(&parts.ctx, &self.spec, &self.addresses, here.path());
        let Some(path) = self.redial.next_path(&ways, cause) else { return false };
        let attempt = self.redial.attempt_on(parts, &self.spec, self.sizes, here.on_path(path));
        let first = self.subflows.take_first();
        self.begin(parts, attempt);
        self.redial.set_aside(key, first);
        true
    }

    /// Restarts the connection on the path of the subflow `id`, with a new key and a new
    /// handshake; all written data is sent again. All other attempts are given up. If segments of the
    /// first attempt were only late, the peer's application may see that attempt as well, as a
    /// connection that is reset.
    pub(crate) fn redial(&mut self, parts: &mut Parts<'_>, id: SubflowId) {
        let address = self.subflows[id].address();
        self.redial.waiting.clear();
        let attempt = self.redial.new_attempt(parts, &self.spec, self.sizes, address);
        self.begin(parts, attempt);
    }

    /// Sets the connection back to the state before its first handshake, with this attempt alone.
    fn begin(&mut self, parts: &mut Parts<'_>, attempt: Attempt) {
        let (config, address) = (&self.spec.config, attempt.subflow.address());
        parts.data.restart(config, attempt.key);
        *parts.timers = ConnectionTimers::new();
        parts.timers.arm_release(&mut parts.ctx, config, parts.data);
        parts.notices.tell_endpoint();
        self.subflows.clear();
        self.holds_back |= self.subflows.add(attempt.subflow);
        self.start_from(address);
    }

    /// Returns the open subflows and the first subflows of other attempts to dial, with their addresses.
    pub(crate) fn addresses_in_use(&self) -> impl Iterator<Item = (SubflowId, Address)> + '_ {
        let waiting = self.redial.waiting.iter().map(|dial| &dial.subflow);
        self.subflows.open_subflows().chain(waiting.map(|it| (it.id(), it.address())))
    }

    /// Returns the subflow for a segment that answers a SYN that was set aside. The connection continues
    /// there, and the attempts on the other paths end: their answers are reset, as those of unknown
    /// connections.
    #[cold]
    pub(crate) fn late_answer(
        &mut self,
        parts: &mut Parts<'_>,
        address: Address,
        segment: &Segment,
    ) -> Option<SubflowId> {
        let attempt = self.redial.answered(parts.notices, address, segment)?;
        (self.client && self.subflows.is_dialling(SubflowId::FIRST)).then(|| {
            self.begin(parts, attempt);
            SubflowId::FIRST
        })
    }

    /// Gives up the attempts that were set aside on the paths for which `gone` holds.
    pub(crate) fn drop_waiting_dials(
        &mut self,
        notices: &mut Notices,
        gone: impl Fn(PathId) -> bool,
    ) {
        self.redial.drop_if(notices, gone);
    }
}
