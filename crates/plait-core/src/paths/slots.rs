//! The subflows of a connection by slot: open ones, free ones, lookups, and questions about all of
//! them.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::stats::{SubflowStats, Totals};
use crate::tcp::address::Address;
use crate::tcp::pending::ControlSegment;
use crate::tcp::remembered::Remembered;
use crate::tcp::state::State;
use crate::tcp::subflow::{ClosedSubflow, Subflow};
use crate::tcp::timer::Timer;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut, Index, IndexMut};
use plait_base::{Dsn, PathId, Span, SubflowId, SubflowSet, Time};
use plait_cc::{Flow, Flows};
use plait_sched::SentRange;

/// Largest number of half-open joins of one connection.
const MAX_HALF_OPEN_JOINS: usize = 4;

/// Fills the unused entries of flows.
const NO_FLOW: Flow = Flow {
    cwnd: 0,
    ssthresh: None,
    srtt: None,
    mss: 0,
    in_recovery: false,
    live: false,
    loss_interval: 0,
};

/// The subflows of a connection by slot, closed ones included. Only `paths/` can change them.
#[derive(Default)]
pub(crate) struct Slots {
    list: Vec<Subflow>,
    /// Totals of subflows whose slot has been reused.
    replaced: Option<Box<Totals>>,
}

/// Returns a subflow as its siblings see it. While a backup is idle, or a subflow that rests because of
/// its price, it has no share of the coupled window.
fn flow_of(subflow: &Subflow) -> Flow {
    let (status, sender) = (subflow.status(), subflow.sender());
    let live = subflow.state().synchronised() && status.joined() && !status.pf();
    let rests = (status.is_backup() || status.resting()) && sender.tx.is_empty();
    sender.cc.flow(sender.rtt.srtt(), live && !rests)
}

/// Returns true if a subflow has `address` and takes segments.
#[inline(always)]
fn is_at(subflow: &Subflow, address: Address) -> bool {
    let open = subflow.state() != State::Closed || subflow.pending().has(ControlSegment::Rst);
    subflow.address() == address && open
}

impl Deref for Slots {
    type Target = [Subflow];

    #[inline(always)]
    fn deref(&self) -> &[Subflow] {
        &self.list
    }
}

impl DerefMut for Slots {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Subflow] {
        &mut self.list
    }
}

impl Index<SubflowId> for Slots {
    type Output = Subflow;

    #[inline(always)]
    fn index(&self, id: SubflowId) -> &Subflow {
        &self.list[id.index()]
    }
}

impl IndexMut<SubflowId> for Slots {
    #[inline(always)]
    fn index_mut(&mut self, id: SubflowId) -> &mut Subflow {
        &mut self.list[id.index()]
    }
}

impl Slots {
    /// Returns a slot for a subflow: a closed subflow's slot, or a new one.
    pub(crate) fn free_slot(&self) -> Option<SubflowId> {
        let free =
            |s: &Subflow| s.state() == State::Closed && !s.pending().has(ControlSegment::Rst);
        let index = self.iter().position(free).unwrap_or(self.len());
        (index < SubflowId::MAX).then_some(SubflowId(index as u8))
    }

    /// Returns when the timers of the subflows must be checked at the latest.
    #[inline(always)]
    pub(crate) fn next_timer(&self) -> Time {
        let next = |it: &Subflow| it.timers().next();
        // The usual numbers of subflows need no loop.
        match self.list.as_slice() {
            [only] => next(only),
            [one, two] => next(one).min(next(two)),
            all => all.iter().map(next).min().unwrap_or(Time::NEVER),
        }
    }

    /// Returns the subflows of all slots.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SubflowId> + use<> {
        (0..self.len() as u8).map(SubflowId)
    }

    /// Puts a subflow in its slot. The traffic of an earlier one there still counts. Returns true if its
    /// controller paces, and so can hold it back.
    pub(super) fn add(&mut self, subflow: Subflow) -> bool {
        let paces = subflow.sender().cc.is_rated();
        match self.list.get_mut(subflow.id().index()) {
            Some(slot) => {
                let totals = self.replaced.get_or_insert_default();
                totals.add_subflow(slot.origin().join, &slot.carried());
                *slot = subflow;
            }
            None => {
                self.list.reserve_exact(1);
                self.list.push(subflow);
            }
        }
        paces
    }

    /// Closes a subflow at once ([`Subflow::close`]). It leaves its values in the path memory, unless
    /// it has done so.
    pub(super) fn close(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        tell_peer: bool,
    ) -> Option<ClosedSubflow> {
        let subflow = &mut self[id];
        let ended = matches!(subflow.state(), State::Closed | State::TimeWait);
        if subflow.status().joined() && !ended {
            Remembered(subflow).leave(ctx, true);
        }
        subflow.close(tell_peer)
    }

    /// Notes the subflows that rest because of their prices.
    pub(super) fn let_rest(&mut self, resting: SubflowSet) {
        for subflow in &mut self.list {
            let rests = resting.contains(subflow.id());
            subflow.window().rest(rests);
        }
    }

    /// Frees unused capacity.
    pub(super) fn shrink_to_fit(&mut self) {
        self.list.shrink_to_fit();
    }

    /// Removes all subflows, uncounted, and returns the first.
    pub(super) fn take_first(&mut self) -> Option<Subflow> {
        self.list.drain(..).next()
    }

    /// Removes all subflows, uncounted.
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Returns the id of the subflow with `address`; it is usually `likely`.
    #[inline(always)]
    pub(crate) fn find(&self, address: Address, likely: SubflowId) -> Option<SubflowId> {
        let first = self.iter().take(likely.index()).all(|s| s.address() != address);
        if first && self.get(likely.index()).is_some_and(|s| is_at(s, address)) {
            return Some(likely);
        }
        self.search(address)
    }

    /// Returns the id of the first open subflow with `address`.
    #[inline(never)]
    fn search(&self, address: Address) -> Option<SubflowId> {
        self.iter().find(|s| is_at(s, address)).map(Subflow::id)
    }

    /// Returns true if the peer refuses the join `id` and has sent nothing but its SYN/ACK. It did
    /// not receive our third ACK, so its application has no connection.
    pub(super) fn unknown_to_peer(&self, data: &DataLevel, id: SubflowId) -> bool {
        let subflow = &self[id];
        let refused = subflow.origin().join && !subflow.status().joined();
        let silent = !data.agreed().peer_dss_seen() && data.queue().una() == Dsn::ZERO;
        refused && silent && self[SubflowId::FIRST].status().pf()
    }

    /// Returns true if the subflow `id` is the first one and its SYN has no answer. A join may
    /// have reused the slot of an ended first subflow.
    pub(super) fn is_dialling(&self, id: SubflowId) -> bool {
        let subflow = &self[id];
        id == SubflowId::FIRST && !subflow.origin().join && subflow.state() == State::SynSent
    }

    /// Returns true if the first subflow is on `path` and the peer may not have our key yet. A
    /// plain TCP connection can restart only before its SYN is answered.
    pub(crate) fn dials_on(&self, data: &DataLevel, path: PathId) -> bool {
        let first = &self[SubflowId::FIRST];
        let unknown = !data.agreed().peer_dss_seen() && data.queue().una() == Dsn::ZERO;
        let early = !data.plain() || first.state() == State::SynSent;
        unknown && early && !first.origin().join && first.address().path() == path
    }

    /// Returns true if the first subflow is silent, or rests because of its price.
    pub(super) fn first_is_stuck(&self) -> bool {
        self.first().is_some_and(|it| it.status().pf() || it.status().resting())
    }

    /// Returns the subflows that are not closed, and their addresses.
    pub(crate) fn open_subflows(&self) -> impl Iterator<Item = (SubflowId, Address)> + '_ {
        self.iter().filter(|s| s.state() != State::Closed).map(|s| (s.id(), s.address()))
    }

    /// Returns the paths of closed subflows that statistics still include and that the peer may use
    /// again.
    pub(crate) fn closed_paths(&self) -> impl Iterator<Item = PathId> + '_ {
        self.iter().filter(|s| s.state() == State::Closed).map(|s| s.address().path())
    }

    /// Returns the addresses of the subflows that are not closed.
    pub(crate) fn open_addresses(&self) -> impl Iterator<Item = Address> + '_ {
        self.open_subflows().map(|(_, address)| address)
    }

    /// Returns true if a subflow has completed its handshake and is not closed.
    pub(crate) fn has_subflow(&self) -> bool {
        self.iter().any(|s| s.state().synchronised())
    }

    /// Returns the next of our joins that may carry data only now, because the peer has acknowledged
    /// the first data. All data below `before` was acknowledged earlier.
    #[inline(always)]
    pub(crate) fn next_early_join(&self, data: &DataLevel, before: Dsn) -> Option<SubflowId> {
        let waits = |s: &&Subflow| s.awaits_fourth_ack() && !s.status().joined();
        let first = before == Dsn::ZERO && data.sends_early();
        if first { self.iter().find(waits).map(Subflow::id) } else { None }
    }

    /// Returns the subflows that may carry data and are not silent.
    pub(crate) fn live(&self) -> SubflowSet {
        self.set_of(|s| s.state().synchronised() && s.status().joined() && !s.status().pf())
    }

    /// Returns the subflows that are trusted with their data: open ones, except silent ones while
    /// another is live.
    pub(crate) fn carriers(&self) -> SubflowSet {
        let spoken = |s: &&Subflow| !s.status().pf() || self.live().is_empty();
        let open = self.iter().filter(|s| s.state() != State::Closed);
        open.filter(spoken).map(|s| s.id()).collect()
    }

    /// Returns true if a segment other than data or an acknowledgement is pending.
    pub(crate) fn any_urgent(&self) -> bool {
        self.iter().any(|s| s.pending().urgent())
    }

    /// Returns true if every subflow has ended; `gone` decides about its state.
    pub(crate) fn all_gone(&self, gone: impl Fn(State) -> bool) -> bool {
        self.iter().all(|s| gone(s.state()) && !s.pending().has(ControlSegment::Rst))
    }

    /// Returns true if every subflow is closed or only waits for its peer, and has nothing to send
    /// but an acknowledgement.
    pub(crate) fn all_wait(&self) -> bool {
        let waits = |s: &Subflow| match s.state() {
            State::Closed | State::TimeWait => true,
            State::FinWait2 => s.timers().is_set(Timer::TimeWait),
            _ => false,
        };
        self.iter().all(|s| waits(s) && !s.pending().urgent())
    }

    /// Returns the subflows for which `holds`.
    pub(super) fn set_of(&self, holds: impl Fn(&Subflow) -> bool) -> SubflowSet {
        self.iter().filter(|s| holds(s)).map(|s| s.id()).collect()
    }

    /// Returns the subflow for a signal that was repeated `repeats` times without an answer. Live
    /// subflows take turns, in order of smoothed RTT. Otherwise, an end that sends no data would
    /// never detect a silent path.
    pub(crate) fn signal_path(&self, repeats: u32) -> Option<SubflowId> {
        let live = |id: &SubflowId| self[*id].is_reachable();
        let key = |id: &SubflowId| {
            let subflow = &self[*id];
            let status = subflow.status();
            (status.pf(), subflow.status().is_backup(), subflow.sender().rtt.srtt(), *id)
        };
        let all = || self.ids().filter(live);
        if repeats == 0 {
            return all().min_by_key(key);
        }
        let turn = repeats as usize % all().count().max(1);
        all().find(|id| all().filter(|other| key(other) < key(id)).count() == turn)
    }

    /// Returns the live subflow with the least smoothed RTT, for a signal that uses no window.
    pub(crate) fn best_for_signal(&self) -> Option<SubflowId> {
        self.signal_path(0)
    }

    /// Calls `f` with the subflow `id` and read-only views of all flows, its own included.
    pub(crate) fn with_flows<R>(
        &mut self,
        id: SubflowId,
        f: impl FnOnce(&mut Subflow, Flows<'_>) -> R,
    ) -> R {
        let (own, all);
        let flows = if self[id].sender().cc.couples() {
            all = self.flows();
            Flows { all: &all[..self.len()], own: id.index() }
        } else {
            // A single controller reads only the RTT of its own entry.
            own = [Flow { srtt: self[id].sender().rtt.srtt(), ..NO_FLOW }];
            Flows { all: &own, own: 0 }
        };
        f(&mut self[id], flows)
    }

    /// Returns all flows, those of unused slots last.
    #[inline(never)]
    fn flows(&self) -> [Flow; SubflowId::MAX] {
        let mut all = [NO_FLOW; SubflowId::MAX];
        for (flow, subflow) in all.iter_mut().zip(&**self) {
            *flow = flow_of(subflow);
        }
        all
    }

    /// Returns the traffic of its subflows, ended ones included.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.replaced.as_deref().copied().unwrap_or_default();
        self.iter().for_each(|it| totals.add_subflow(it.origin().join, &it.carried()));
        totals
    }

    /// Returns a sum of the peer's data, acknowledgements and timestamps over all subflows. A
    /// segment that changes none of these is not noticed, and a probe is then sent too early.
    pub(crate) fn heard(&self) -> u64 {
        let of = |s: &Subflow| {
            s.rx().nxt().get() + s.sender().tx.una().get() + u64::from(s.negotiated().ts_recent)
        };
        self.iter().map(of).fold(0, u64::wrapping_add)
    }

    /// Returns the state and counters of each subflow.
    pub(crate) fn stats(&self) -> Vec<SubflowStats> {
        let stats = |s: &Subflow| SubflowStats {
            subflow: s.id(),
            path: s.address().path(),
            server: s.address().server(),
            up: s.status().joined() && s.state().synchronised(),
            joined: s.origin().join,
            carried: s.carried(),
            potentially_failed: s.status().pf(),
            cwnd: s.sender().cwnd(),
            ssthresh: s.sender().cc.ssthresh(),
            inflight: s.sender().tx.inflight(),
            srtt: s.sender().rtt.srtt(),
            rto: s.sender().rtt.rto(),
        };
        self.iter().map(stats).collect()
    }

    /// Returns true if nothing is in flight and nothing was sent since `before`.
    pub(crate) fn rest_since(&self, before: Time) -> bool {
        self.iter().all(|it| it.is_quiet() && it.sender().last_send() < before)
    }

    /// Returns the next reinjection for the scheduler. If one subflow of a path is silent, the
    /// others on that path probably are as well, and count as having carried the data.
    #[inline(never)]
    pub(crate) fn beside_silence(&self, mut next: SentRange) -> SentRange {
        if self.len() > 2 {
            let silent =
                |path| self.iter().any(|it| it.status().pf() && it.address().path() == path);
            for subflow in self.iter().filter(|it| silent(it.address().path())) {
                next.carried.insert(subflow.id());
            }
        }
        next
    }

    /// Returns the oldest half-open join if all slots for half-open joins are used: a further join
    /// replaces it. Any observer of the token can start a join, but only the peer can prove one.
    pub(crate) fn replaceable_join(&self) -> Option<SubflowId> {
        let full =
            self.half_open_joins().count() >= MAX_HALF_OPEN_JOINS || self.free_slot().is_none();
        let oldest = self
            .half_open_joins()
            .min_by_key(|s| s.handshake().map(|it| it.sent_at))
            .filter(|_| full);
        oldest.map(Subflow::id)
    }

    /// Returns the peer's joins that are not proven yet.
    pub(crate) fn half_open_joins(&self) -> impl Iterator<Item = &Subflow> {
        let half_open = |s: &&Subflow| s.state() == State::SynReceived && s.origin().join;
        self.iter().filter(half_open).filter(|s| !s.origin().initiator)
    }

    /// Returns true if a subflow has nothing to send. Also notes the progress of the others
    /// (`__mptcp_retrans` of Linux).
    pub(crate) fn any_idle(&self, data: &mut DataLevel) -> bool {
        let mut idle = false;
        for subflow in self.iter().filter(|it| it.state().sends_data() && it.status().joined()) {
            if subflow.sender().tx.is_empty() && data.queue().assigned(subflow.id()) == 0 {
                idle = true;
            } else {
                data.note_progress(subflow.id(), subflow.sender().rtt.sampled_at());
            }
        }
        idle
    }

    /// Notes the last expiry of a subflow's timers before data is assigned. After that time without
    /// a DATA_ACK, Linux retransmits data on an idle subflow. A subflow has one timer for tail
    /// probe, reordering and timeout (`mptcp_timeout_from_subflow`, `icsk_pending`). Subflows
    /// without progress are ignored.
    #[inline(never)]
    pub(crate) fn note_data_timeout(&self, data: &mut DataLevel, now: Time) {
        let live = |it: &&Subflow| it.state().sends_data() && it.status().joined();
        let mut longest = Span::ZERO;
        for subflow in self.iter().filter(live) {
            if data.queue().stands_still(subflow.id()) {
                continue;
            }
            let timers = [Timer::Tail, Timer::Reorder, Timer::Rto];
            let at = timers.map(|timer| subflow.timers().at(timer)).into_iter().min();
            let left = at.filter(|at| *at != Time::NEVER).map(|at| at.since(now));
            longest = longest.max(left.unwrap_or_default());
        }
        data.note_timeout(longest);
    }
}
