//! Small probes of silent paths, so that a working path is soon detected. RFC 6298 section 2.5
//! allows a cap of 60 s on the timeout, not less. A probe is one segment in addition to the
//! timeout, which continues to double.

use crate::config::{Config, PathConfig};
use crate::context::Context;
use crate::data::level::DataLevel;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::paths::joins::Target;
use crate::paths::redial::Ways;
use crate::tcp::probing::interval;
use crate::timers::ConnectionTimer;
use plait_base::{Span, SubflowId};

impl Paths {
    /// Returns when our SYN counts as unanswered: after the timeout. A join's SYN is retransmitted
    /// no later than a probe would be. A SYN before the dial on another path has less time.
    pub(crate) fn syn_retry(&self, ctx: &Context<'_>, data: &DataLevel, id: SubflowId) -> Span {
        let subflow = &self.subflows[id];
        let rto = subflow.sender().rtt.rto();
        let base = data.probe_interval(&self.spec.config).filter(|_| subflow.origin().initiator);
        let Some(base) = base else { return rto };
        if subflow.origin().join {
            return rto.min(interval(base, u16::from(subflow.handshake_retries())));
        }
        let ways = Ways::of(ctx, &self.spec, &self.addresses, subflow.address().path());
        if self.redial.moves_soon(&ways, subflow.handshake_retries()) {
            rto.min(self.spec.config.joins.attempt_delay)
        } else {
            rto
        }
    }

    /// Schedules a new join after our subflow has ended, with backoff while other subflows are
    /// live.
    pub(super) fn rejoin_later(&mut self, parts: &mut Parts<'_>, id: SubflowId, was_proven: bool) {
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
                parts.data.closing().failed()
                    || parts.data.closing().asked()
                    || parts.data.closing().peer_finished()
            }
        };
        let foreign = !self.subflows[id].origin().initiator && !was_proven;
        if !self.client || over || foreign {
            return;
        }
        let address = self.subflows[id].address();
        let (path, server, port) = (address.path(), address.server(), address.remote_port);
        // After a failed join, an announced address is not used until it is announced again (RFC
        // 8684 section 3.4.1).
        let unannounced = !was_proven && server != self.addresses.first().server();
        let barred = self.joins.is_barred(path) || !self.addresses.may_join(path, server);
        let before = self.joins.waiting().len();
        if !unannounced && !barred {
            let config = self.spec.path(path);
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
