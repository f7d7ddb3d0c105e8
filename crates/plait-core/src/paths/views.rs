//! Read-only views of the subflows: counters, sums and limits, for users, schedulers and buffers.

use crate::config::MemoryLimit;
use crate::data::level::DataLevel;
use crate::data::memory_usage::MemoryUsage;
use crate::paths::Paths;
use crate::spec::ConnectionState;
use crate::stats::{ConnectionStats, Progress};
use crate::tcp::subflow::Subflow;
use crate::timers::CONNECTION_RTO;
use plait_base::{Dsn, Span, Time};

impl Paths {
    /// Returns the state and counters of the connection.
    pub(crate) fn stats(
        &self,
        data: &DataLevel,
        state: ConnectionState,
        [waits, over]: [bool; 2],
    ) -> ConnectionStats {
        ConnectionStats {
            state,
            multipath: data.speaks_multipath(),
            fallback: data.agreed().cause(),
            readable: data.reassembly().readable(),
            unacked: data.queue().occupied(),
            unique: data.unique(),
            segment_payload: self.mss(),
            subflows_ready: self.subflows_ready(data),
            initial_window_at: self.initial_window_at(data),
            waits,
            timed_out: data.timed_out(),
            over,
            subflows: self.subflows.stats(),
        }
    }

    /// Returns the progress of the data in both directions.
    pub(crate) fn progress(&self, data: &DataLevel) -> Progress {
        let held = self.subflows.iter().filter_map(|it| it.held_to());
        Progress {
            acked: data.queue().una(),
            in_step: data.sends_plain(),
            arrived: data.reassembly().nxt(),
            held: held.fold(data.reassembly().nxt(), Dsn::max),
        }
    }

    /// Returns the time from which the next send resets every congestion window to its initial
    /// value. Returns `None` while data is in flight, and [`Time::NEVER`] if idle time alone does
    /// not reset them.
    pub(crate) fn initial_window_at(&self, data: &DataLevel) -> Option<Time> {
        let mode = self.spec.config.window.idle_restart;
        let mut latest = Time::ZERO;
        for subflow in self.subflows.iter().filter(|s| s.status().joined()) {
            if !subflow.is_quiet() {
                return None;
            }
            let idle =
                subflow.sender().cc.idle_until_initial(subflow.sender().rtt.base_rto(), mode);
            latest = latest.max(match idle {
                Some(idle) => subflow.sender().last_send() + idle,
                None if subflow.sender().cc.cwnd() == subflow.sender().cc.initial_window() => {
                    Time::ZERO
                }
                None => Time::NEVER,
            });
        }
        data.queue().is_drained().then_some(latest)
    }

    /// Returns the memory of received data that was not read.
    pub(crate) fn received(&self, data: &DataLevel) -> MemoryUsage {
        self.subflows
            .iter()
            .fold(data.reassembly().memory_usage(), |sum, it| sum + it.rx().memory_usage())
    }

    /// Returns the limit of the send buffer: the connection's share, or twice the peer's window and
    /// the subflows' data per round trip. A peer that does not read has a small window. The
    /// congestion windows to a peer that does not acknowledge are small.
    pub(crate) fn sendable(&self, data: &DataLevel, limit: MemoryLimit) -> u64 {
        let room = data.window().end().saturating_sub(data.queue().una());
        let open = self.subflows.iter().filter(|it| it.state().synchronised());
        let windows = open.map(|it| it.sender().cwnd());
        let taken = windows.sum::<u64>().min(room).saturating_mul(2);
        limit.unsent.max(taken.min(limit.max_unsent))
    }

    /// Returns the longest timeout of a live subflow: data may still be acknowledged until then.
    pub(crate) fn longest_rto(&self, data: &DataLevel) -> Span {
        if self.spec.config.kernel_rules.data_timer
            && let Some(timeout) = data.queue().data_timeout()
        {
            return timeout;
        }
        let live = self.subflows.iter().filter(|s| s.state().synchronised() && s.status().joined());
        live.map(|s| s.sender().rtt.rto()).max().unwrap_or(CONNECTION_RTO)
    }

    /// Returns true if TSQ, pacing or subflow windows can hold subflows back.
    pub(crate) const fn holds_back(&self) -> bool {
        self.holds_back
    }

    /// Returns true if `subflow` waits for the host's queue, for its release time or for its
    /// window.
    #[inline]
    pub(crate) fn held_back(&self, subflow: &Subflow) -> bool {
        subflow.sender().is_paced()
            || self.spec.config.tsq && subflow.sender().tsq_blocked(self.mss())
            || self.spec.config.buffers.subflow_windows
                && subflow.sender().exceeds_window(self.mss())
    }

    /// Memory of a connection without data, including its addresses and its entries in the endpoint's tables.
    const BASE_BYTES: u64 = 4_096;

    /// Returns the memory of the connection in bytes, approximately: data of both directions and its buffers.
    pub(crate) fn memory_bytes(&self, data: &DataLevel) -> u64 {
        let held = data.queue().memory_usage() + self.received(data);
        Paths::BASE_BYTES + held.with_room()
    }
}
