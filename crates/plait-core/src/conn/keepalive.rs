//! Keep-alives (RFC 9293 section 3.8.4): a peer of which nothing is heard is asked for a sign of life,
//! and one that gives none is given up.

use crate::config::Config;
use crate::conn::Connection;
use crate::conn::context::Context;
use crate::conn::liveness::{LOOKS_PER_TIMEOUT, LastHeard, is_reachable};
use crate::conn::timers::Awaited;
use crate::tcp::pending::{Cause, ControlSegment};
use plait_base::{Span, Time};
use plait_wire::ResetReason;

impl Connection {
    /// A probe was answered: the idle time begins again.
    #[cold]
    pub(super) fn on_sign_of_life(&mut self, now: Time) {
        self.timers.listen_anew(&self.spec.config, &self.paths, now);
    }

    /// Looks whether the peer is still there, and asks where nothing tells. True where it was asked
    /// often enough.
    pub(super) fn keep_alive_expired(&mut self, ctx: &mut Context<'_>) -> bool {
        let (Some(idle), Some(heard)) =
            (self.spec.config.keep_alive, *self.timers.liveness.heard())
        else {
            return false;
        };
        if self.data.closing.done() {
            return false;
        }
        // Probes are for idle connections alone (RFC 9293 section 3.8.4): data that waits has a timer of
        // its own, and so has a connection that waits for a subflow. What a silent subflow still repeats
        // although another one has brought it there has no such timer: nobody waits for it.
        let under_way =
            self.data.has_to_take() && self.paths.subflows.iter().any(|it| !it.is_quiet());
        let alone = !self.paths.subflows.iter().any(is_reachable);
        if under_way || alone || self.paths.heard() != heard.sum {
            self.timers.listen_anew(&self.spec.config, &self.paths, ctx.now);
        } else if ctx.now < heard.since + idle {
            self.timers.set(Awaited::KeepAlive, ctx.now + idle.over(LOOKS_PER_TIMEOUT));
        } else if heard.probes >= Config::KEEP_ALIVES {
            return true;
        } else {
            self.ask_for_life(ctx, heard, idle);
        }
        false
    }

    /// A probe goes out on every subflow; one that has left as many unanswered as there are goes.
    fn ask_for_life(&mut self, ctx: &mut Context<'_>, heard: LastHeard, idle: Span) {
        for index in 0..self.paths.subflows.len() {
            let subflow = &mut self.paths.subflows[index];
            // What is under way is a question by itself.
            if !is_reachable(subflow) || !subflow.is_quiet() {
                continue;
            }
            if subflow.pending.unanswered >= Config::KEEP_ALIVES {
                self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Performance));
            } else {
                subflow.pending.unanswered += 1;
                subflow.pending.add(ControlSegment::WindowProbe);
            }
        }
        // None of this was the peer's doing.
        let (sum, probes) = (self.paths.heard(), heard.probes + 1);
        *self.timers.liveness.heard() = Some(LastHeard { sum, probes, ..heard });
        self.timers.set(Awaited::KeepAlive, ctx.now + idle.min(Config::KEEP_ALIVE_INTERVAL));
    }
}
