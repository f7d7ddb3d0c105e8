//! Small probes of silent paths, so that a working path is soon detected. RFC 6298 section 2.5
//! allows a cap of 60 s on the timeout, not less. A probe is one segment in addition to the
//! timeout, which continues to double.

use crate::config::{Config, PathConfig};
use crate::data::level::DataLevel;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::paths::joins::Target;
use crate::tcp::pending::ControlSegment;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use crate::timers::ConnectionTimer;
use plait_base::{Span, Time};

/// Probes of one silence that use the configured interval.
pub(crate) const PROBES_AT_FIRST_INTERVAL: u16 = 600;
/// Factor of the interval after that.
pub(crate) const LATER_INTERVAL_FACTOR: u64 = 10;

/// Returns the time until probe number `count` of a silence.
pub(crate) fn interval(base: Span, count: u16) -> Span {
    if count < PROBES_AT_FIRST_INTERVAL { base } else { base.times(LATER_INTERVAL_FACTOR) }
}

impl Subflow {
    /// Starts the probes of a silent subflow.
    pub(super) fn arm_path_probe(&mut self, data: &DataLevel, config: &Config, now: Time) {
        let Some(base) = data.probe_interval(config) else { return };
        if !self.timers.is_set(Timer::Probe) {
            self.timers.set(Timer::Probe, now + interval(base, self.status.probes()));
        }
    }

    /// Sends a due probe of a silent subflow.
    pub(super) fn on_probe_timer(&mut self, data: &DataLevel, config: &Config, now: Time) {
        if self.status.pf() && !self.is_quiet() {
            self.status.count_probe();
            self.pending.add(ControlSegment::PathProbe);
            self.arm_path_probe(data, config, now);
        } else {
            self.status.forget_probes();
        }
    }
}

impl Paths {
    /// Returns when our SYN counts as unanswered: after the timeout. A join's SYN is retransmitted
    /// no later than a probe would be. The very first SYN moves to another path sooner.
    pub(crate) fn syn_retry(&self, data: &DataLevel, index: usize) -> Span {
        let subflow = &self.subflows[index];
        let rto = subflow.sender.rtt.rto();
        let base = data.probe_interval(&self.spec.config).filter(|_| subflow.origin().initiator);
        let Some(base) = base else { return rto };
        if subflow.origin().join {
            return rto.min(interval(base, u16::from(subflow.handshake_retries())));
        }
        if self.redial.has_untried(self.ways_to_dial()) && subflow.handshake_retries() == 0 {
            rto.min(self.spec.config.joins.attempt_delay)
        } else {
            rto
        }
    }

    /// Schedules a new join after our subflow has ended, with backoff while other subflows are
    /// live.
    pub(super) fn rejoin_later(&mut self, parts: &mut Parts<'_>, index: usize, was_joined: bool) {
        let last = !self.subflows.has_subflow();
        let base = match parts.data.probe_interval(&self.spec.config) {
            Some(base) => base,
            // The last subflow must be replaced even if probes are disabled.
            None if last => Config::PROBE,
            None => return,
        };
        let over = match last {
            true => !self.may_await_subflow(parts.data),
            false => {
                parts.data.closing.failed()
                    || parts.data.closing.asked()
                    || parts.data.closing.peer_finished()
            }
        };
        let foreign = !self.subflows[index].origin().initiator && !was_joined;
        if !self.client || over || foreign {
            return;
        }
        let address = self.subflows[index].address();
        let (path, server, port) = (address.path(), address.server(), address.remote_port);
        // After a failed join, an announced address is not used until it is announced again (RFC
        // 8684 section 3.4.1).
        let unannounced = !was_joined && server != self.addresses.first().server();
        let barred = self.joins.is_barred(path) || !self.addresses.may_join(path, server);
        let before = self.joins.waiting().len();
        if !unannounced && !barred {
            let config = self.spec.paths.iter().find(|config| config.path == path);
            let target = |config: &PathConfig| Target { path, server, port, backup: config.backup };
            self.joins.add(config.map(target));
        }
        if last {
            // Joins that were postponed while other subflows were live are needed now.
            let mut missing = self.missing_targets();
            missing.retain(|target| !(unannounced && target.server == server));
            self.joins.add(missing);
            self.joins.forget_rejoins();
            parts.timers.clear(ConnectionTimer::Rejoin);
        }
        if self.joins.waiting().len() == before {
            return;
        }
        let wait = self.joins.back_off(base);
        let at = parts.timers.at(ConnectionTimer::Rejoin).min(parts.ctx.now + wait);
        parts.timers.set(ConnectionTimer::Rejoin, at);
    }
}
