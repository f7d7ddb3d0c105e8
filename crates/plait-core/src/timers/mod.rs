//! The timers of a connection as a whole.

pub(crate) mod liveness;

use crate::config::{Config, KernelRules};
use crate::context::Context;
use crate::data::level::{DataLevel, PeerProgress};
use crate::tcp::timer::Timers;
use crate::timers::liveness::{
    KeepAlive, LOOKS_PER_TIMEOUT, LastHeard, PeerActivity, PeerLiveness,
};
use plait_base::{Dsn, Span, Time};

/// SYN retransmissions of a join before its path is given up (Linux: six).
pub(crate) const SYN_RETRIES: u8 = 6;
/// SYN/ACK retransmissions before a half-open subflow is given up (Linux:
/// `net.ipv4.tcp_synack_retries`).
pub(crate) const SYN_ACK_RETRIES: u8 = 5;
/// Consecutive timeouts of data before a subflow is given up (RFC 9293 section 3.8.3: R2; Linux's
/// default).
pub(crate) const DATA_RETRIES: u32 = 15;
/// Time for which a FIN is retransmitted after both directions of the data have ended. It equals
/// eight retransmissions from a timeout of 200 ms on (Linux: `net.ipv4.tcp_orphan_retries`, which
/// `retransmits_timed_out` converts to time). A count would take three times as long on a path with
/// an RTT of 400 ms.
pub(crate) const FIN_TIME: Span = Span::from_secs(102);
/// Retransmission timer of the connection if no subflow has one.
pub(crate) const CONNECTION_RTO: Span = Span::from_millis(200);

/// Returns the most retransmissions of a SYN. Timeouts that are not doubled add to them.
pub(crate) const fn syn_retries(rules: KernelRules) -> u8 {
    SYN_RETRIES.saturating_add(rules.linear_syn_timeouts)
}

/// Timers that transfers set often.
pub(crate) const FREQUENT_TIMERS: usize = 3;

/// Timers of a connection as a whole. The first [`FREQUENT_TIMERS`] are set often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionTimer {
    /// Data or DATA_FIN is not DATA_ACKed.
    Retransmission,
    /// A scheduler waits for a subflow that may be silent.
    Safety,
    /// The peer's window is closed.
    WindowProbe,
    /// Paths without a subflow are joined again.
    Rejoin,
    /// An address is announced again.
    Address,
    /// MP_FAIL is not answered.
    Fail,
    /// The released connection must have ended by then.
    Release,
    /// No subflow is left, or none with a quota; a new one must exist by then.
    NoSubflow,
    /// The user timeout is checked.
    UserTimeout,
    /// The keep-alive is checked.
    KeepAlive,
}

/// Why the scheduler waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitCause {
    /// The peer's window is closed.
    pub(crate) window_closed: bool,
    /// The quotas of all paths are used up.
    pub(crate) spent: bool,
}

impl From<ConnectionTimer> for usize {
    fn from(awaited: ConnectionTimer) -> usize {
        awaited as usize
    }
}

/// Least length of a wait for a subflow; otherwise it ends after the subflow's RTO.
const SAFETY_WAIT: Span = Span::from_millis(200);

/// Timers of the connection as a whole.
#[derive(Debug)]
pub(crate) struct ConnectionTimers {
    timers: Timers<ConnectionTimer, FREQUENT_TIMERS>,
    /// Expiries of the retransmission timer since the last DATA_ACK.
    backoff: u32,
    /// Window probes since the last DATA_ACK.
    probe_backoff: u32,
    /// The peer's progress and last activity.
    liveness: PeerLiveness,
    /// After the release of the connection: the acknowledged data at the last check.
    released_una: Dsn,
}

impl ConnectionTimers {
    pub(crate) const fn new() -> ConnectionTimers {
        ConnectionTimers {
            timers: Timers::new(),
            backoff: 0,
            probe_backoff: 0,
            liveness: PeerLiveness::new(),
            released_una: Dsn::ZERO,
        }
    }

    pub(crate) fn set(&mut self, timer: ConnectionTimer, at: Time) {
        self.timers.set(timer, at);
    }

    pub(crate) fn clear(&mut self, timer: ConnectionTimer) {
        self.timers.clear(timer);
    }

    pub(crate) fn at(&self, timer: ConnectionTimer) -> Time {
        self.timers.at(timer)
    }

    pub(crate) fn is_set(&self, timer: ConnectionTimer) -> bool {
        self.timers.is_set(timer)
    }

    /// Returns true if any timer is set.
    pub(crate) fn any_set(&self) -> bool {
        self.timers.any_set()
    }

    /// Clears `timer` and returns true if it was due.
    pub(crate) fn take_due(&mut self, timer: ConnectionTimer, now: Time) -> bool {
        self.timers.take_due(timer, now)
    }

    /// Returns when the timers must be checked at the latest.
    pub(crate) fn next(&self) -> Time {
        self.timers.next()
    }

    /// Sets the next check after all due timers were handled.
    pub(crate) fn on_looked(&mut self) {
        self.timers.on_looked();
    }

    /// Frees the memory of rarely set timers if none is set.
    pub(crate) fn give_back(&mut self) {
        self.timers.give_back();
    }

    /// Counts a window probe. Returns the number of earlier ones.
    pub(crate) fn count_window_probe(&mut self) -> u32 {
        let before = self.probe_backoff;
        self.probe_backoff += 1;
        before
    }

    /// Starts the timer of the data level, unless it is running.
    pub(crate) fn arm_retransmission(&mut self, now: Time, rto: Span) {
        if !self.is_set(ConnectionTimer::Retransmission) {
            let wait = rto.times(1 << self.backoff.min(6));
            self.set(ConnectionTimer::Retransmission, now + wait);
        }
    }

    /// Handles an expiry of the connection's retransmission timer.
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Returns how often the connection's retransmission timer has expired since the last DATA_ACK.
    pub(crate) const fn retries(&self) -> u32 {
        self.backoff
    }

    /// Notes that the user has released the connection, and starts the time within which the peer
    /// must end its direction.
    pub(crate) fn on_released(&mut self, ctx: &mut Context<'_>, config: &Config, data: &DataLevel) {
        self.released_una = data.queue().una();
        self.arm_release(ctx, config, data);
    }

    /// Starts the time within which the peer must end its direction.
    pub(crate) fn arm_release(&mut self, ctx: &mut Context<'_>, config: &Config, data: &DataLevel) {
        if data.is_released() && !data.closing().failed() && !data.closing().done() {
            self.set(ConnectionTimer::Release, ctx.now + config.timeouts.close);
        }
    }

    /// Handles the expiry of [`ConnectionTimers::arm_release`]. Returns true to abort if the peer
    /// has acknowledged no data since the timer started. Otherwise restarts it.
    pub(crate) fn release_expired(
        &mut self,
        ctx: &mut Context<'_>,
        config: &Config,
        data: &DataLevel,
    ) -> bool {
        if data.closing().done() {
            // Each subflow has its own timer.
            return false;
        }
        let una = data.queue().una();
        let progress = self.released_una < una;
        if progress {
            self.released_una = una;
            self.arm_release(ctx, config, data);
        }
        !progress
    }

    /// Limits the scheduler's wait for a subflow whose retransmission timeout is `rto`. It decides
    /// again when this timer expires.
    pub(crate) fn arm_safety(&mut self, now: Time, rto: Span) {
        self.set(ConnectionTimer::Safety, now + rto.max(SAFETY_WAIT));
    }

    /// Starts the wait for a further path, because the quotas of all paths are used up. A client has no
    /// further paths.
    pub(crate) fn await_quota(&mut self, config: &Config, now: Time, client: bool) {
        if !self.awaits_subflow() {
            let wait = if client { Span::ZERO } else { config.timeouts.close };
            self.set(ConnectionTimer::NoSubflow, now + wait);
        }
    }

    /// Sets the next check of the user timeout.
    pub(crate) fn look_again(&mut self, now: Time, timeout: Span) {
        self.set(ConnectionTimer::UserTimeout, now + timeout.over(LOOKS_PER_TIMEOUT));
    }

    /// Restarts the idle time; `sum` grows with the peer's segments ([`LastHeard`]).
    pub(crate) fn listen_anew(&mut self, config: &Config, sum: u64, now: Time) {
        let Some(idle) = config.timeouts.keep_alive else { return };
        *self.liveness.heard() = Some(LastHeard { since: now, sum, probes: 0 });
        self.set(ConnectionTimer::KeepAlive, now + idle.over(LOOKS_PER_TIMEOUT));
    }

    /// Starts the keep-alive timer when the connection becomes usable.
    pub(crate) fn arm_keep_alive(&mut self, config: &Config, sum: u64, now: Time) {
        if !self.is_set(ConnectionTimer::KeepAlive) {
            self.listen_anew(config, sum, now);
        }
    }

    /// Returns true if the connection waits for a further subflow.
    pub(crate) fn awaits_subflow(&self) -> bool {
        self.is_set(ConnectionTimer::NoSubflow)
    }

    /// Starts the window probe timer with exponential backoff (RFC 9293 section 3.8.6.1).
    pub(crate) fn arm_window_probe(&mut self, now: Time, longest_rto: Span) {
        if !self.is_set(ConnectionTimer::WindowProbe) {
            let wait = longest_rto.times(1 << self.probe_backoff.min(8));
            self.set(ConnectionTimer::WindowProbe, now + wait.min(Span::from_secs(120)));
        }
    }

    /// Restarts the connection's retransmission timer when the DATA_ACK advances.
    pub(crate) fn on_data_progress(
        &mut self,
        data: &DataLevel,
        now: Time,
        longest_rto: impl FnOnce() -> Span,
    ) {
        self.backoff = 0;
        self.clear(ConnectionTimer::Retransmission);
        self.probe_backoff = 0;
        self.clear(ConnectionTimer::WindowProbe);
        let fin_pending = data.closing().fin_pending();
        if data.queue().una() < data.queue().nxt() || fin_pending {
            self.arm_retransmission(now, longest_rto());
        }
    }

    /// Starts the user timeout when data starts to wait.
    pub(crate) fn arm_user_timeout(&mut self, config: &Config, data: &DataLevel, now: Time) {
        let Some(timeout) = config.timeouts.user else { return };
        if !self.is_set(ConnectionTimer::UserTimeout) {
            *self.liveness.taken() = Some(data.taken(now));
            self.look_again(now, timeout);
        }
    }

    /// Returns true if data has waited too long. Otherwise schedules the next check while data
    /// waits.
    pub(crate) fn user_timeout_expired(
        &mut self,
        config: &Config,
        data: &DataLevel,
        now: Time,
    ) -> bool {
        let before = self.liveness.taken().take();
        let (Some(timeout), Some(before)) = (config.timeouts.user, before) else {
            return false;
        };
        if !data.has_to_take() {
            self.liveness.forget_taken();
            return false;
        }
        let taken = data.taken(before.since);
        if taken == before && now >= before.since + timeout {
            return true;
        }
        let since = if taken == before { before.since } else { now };
        *self.liveness.taken() = Some(PeerProgress { since, ..taken });
        self.look_again(now, timeout);
        false
    }

    /// Checks whether the peer is still alive.
    pub(crate) fn keep_alive_expired(
        &mut self,
        config: &Config,
        signs: PeerActivity,
        now: Time,
    ) -> KeepAlive {
        let (Some(idle), Some(heard)) = (config.timeouts.keep_alive, *self.liveness.heard()) else {
            return KeepAlive::Alive;
        };
        if signs.over {
            return KeepAlive::Alive;
        }
        // Keep-alive probes are for idle connections only (RFC 9293 section 3.8.4). Waiting data
        // has its own timer, and so has a connection that waits for a subflow. Data that a silent
        // subflow retransmits after another subflow delivered it counts as idle.
        if signs.under_way || signs.alone || signs.sum != heard.sum {
            self.listen_anew(config, signs.sum, now);
        } else if now < heard.since + idle {
            self.set(ConnectionTimer::KeepAlive, now + idle.over(LOOKS_PER_TIMEOUT));
        } else if heard.probes >= Config::KEEP_ALIVES {
            return KeepAlive::Dead;
        } else {
            return KeepAlive::Probe;
        }
        KeepAlive::Alive
    }

    /// Notes that probes were sent. The counted activity `sum` is not the peer's.
    pub(crate) fn on_keep_alives_sent(&mut self, config: &Config, sum: u64, now: Time) {
        let idle = config.timeouts.keep_alive.unwrap_or_default();
        if let Some(heard) = self.liveness.heard() {
            (heard.sum, heard.probes) = (sum, heard.probes + 1);
        }
        self.set(ConnectionTimer::KeepAlive, now + idle.min(Config::KEEP_ALIVE_INTERVAL));
    }

    /// Starts the timer of the data level when data is sent.
    #[inline(always)]
    pub(crate) fn await_data_ack(&mut self, now: Time, longest_rto: impl FnOnce() -> Span) {
        if !self.is_set(ConnectionTimer::Retransmission) {
            self.arm_retransmission(now, longest_rto());
        }
    }
}
