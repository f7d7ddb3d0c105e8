//! Questions about all subflows of a connection: counters, sums, and candidates.

use crate::data::level::DataLevel;
use crate::paths::admission::MAX_HALF_OPEN_JOINS;
use crate::paths::opening::Others;
use crate::paths::slots::Slots;
use crate::stats::SubflowStats;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use alloc::vec::Vec;
use plait_base::{Span, SubflowSet, Time};
use plait_sched::SentRange;

impl Slots {
    /// Returns a sum of the peer's data, acknowledgements and timestamps over all subflows. A
    /// segment that changes none of these is not noticed, and a probe is then sent too early.
    pub(crate) fn heard(&self) -> u64 {
        let of =
            |s: &Subflow| s.rx.nxt().get() + s.sender.tx.una().get() + u64::from(s.shake.ts_recent);
        self.iter().map(of).fold(0, u64::wrapping_add)
    }

    /// Returns the state and counters of each subflow.
    pub(crate) fn stats(&self) -> Vec<SubflowStats> {
        let stats = |s: &Subflow| SubflowStats {
            subflow: s.id,
            path: s.address.path(),
            server: s.address.server(),
            up: s.status.joined() && s.state.synchronised(),
            joined: s.shake.join,
            carried: s.carried(),
            potentially_failed: s.status.pf(),
            cwnd: s.cwnd(),
            ssthresh: s.sender.cc.ssthresh(),
            inflight: s.sender.tx.inflight(),
            srtt: s.sender.rtt.srtt(),
            rto: s.sender.rtt.rto(),
        };
        self.iter().map(stats).collect()
    }

    /// Returns true if nothing is in flight and nothing was sent since `before`.
    pub(crate) fn rest_since(&self, before: Time) -> bool {
        self.iter().all(|it| it.is_quiet() && it.sender.last_send < before)
    }

    /// Returns the next reinjection for the scheduler. If one subflow of a path is silent, the
    /// others on that path probably are as well, and count as having carried the data.
    pub(crate) fn beside_silence(&self, mut next: SentRange) -> SentRange {
        if self.len() > 2 {
            let silent = |path| self.iter().any(|it| it.status.pf() && it.address.path() == path);
            for subflow in self.iter().filter(|it| silent(it.address.path())) {
                next.carried.insert(subflow.id);
            }
        }
        next
    }

    /// Returns the oldest half-open join if all slots for half-open joins are used: a further join
    /// replaces it. Any observer of the token can start a join, but only the peer can prove one.
    pub(crate) fn replaceable_join(&self) -> Option<usize> {
        let full = self.half_open_joins().count() >= MAX_HALF_OPEN_JOINS || !self.has_room();
        let oldest = self.half_open_joins().min_by_key(|s| s.shake.sent_at).filter(|_| full);
        oldest.map(|s| s.id.index())
    }

    /// Returns the peer's joins that are not proven yet.
    pub(crate) fn half_open_joins(&self) -> impl Iterator<Item = &Subflow> {
        let half_open = |s: &&Subflow| s.state == State::SynReceived && s.shake.join;
        self.iter().filter(half_open).filter(|s| !s.shake.initiator)
    }

    /// Returns true if a subflow has nothing to send. Also notes the progress of the others
    /// (`__mptcp_retrans` of Linux).
    pub(crate) fn any_idle(&self, data: &mut DataLevel) -> bool {
        let mut idle = false;
        for subflow in self.iter().filter(|it| it.state.sends_data() && it.status.joined()) {
            if subflow.sender.tx.is_empty() && data.queue.assigned(subflow.id) == 0 {
                idle = true;
            } else if let Some(memory) = data.queue.memory() {
                memory.note_progress(subflow.id, subflow.sender.rtt.sampled_at());
            }
        }
        idle
    }

    /// Notes the last expiry of a subflow's timers before data is assigned. After that time without
    /// a DATA_ACK, Linux retransmits data on an idle subflow. A subflow has one timer for tail
    /// probe, reordering and timeout (`mptcp_timeout_from_subflow`, `icsk_pending`). Subflows
    /// without progress are ignored.
    pub(crate) fn note_data_timeout(&self, data: &mut DataLevel, now: Time) {
        let live = |it: &&Subflow| it.state.sends_data() && it.status.joined();
        let mut longest = Span::ZERO;
        for subflow in self.iter().filter(live) {
            if data.queue.stands_still(subflow.id) {
                continue;
            }
            let timers = [Timer::Tail, Timer::Reorder, Timer::Rto];
            let at = timers.map(|timer| subflow.timers.at(timer)).into_iter().min();
            let left = at.filter(|at| *at != Time::NEVER).map(|at| at.since(now));
            longest = longest.max(left.unwrap_or_default());
        }
        if let Some(memory) = data.queue.memory() {
            memory.note_timeout(longest);
        }
    }

    /// Returns the subflows that end because of a SYN/ACK.
    pub(crate) fn ending(&self, others: Others) -> SubflowSet {
        self.set_of(|s| match others {
            Others::Go => false,
            Others::Denied => s.shake.join && s.state == State::SynSent,
            Others::Dropped => s.shake.join,
        })
    }
}
