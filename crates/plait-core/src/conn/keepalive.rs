//! Keep-alives (RFC 9293 section 3.8.4): a peer of which nothing is heard is asked for a sign of life,
//! and one that gives none is given up.

use super::timeouts::Awaited;
use super::{Connection, Context};
use crate::config::Config;
use crate::tcp::pending::{Cause, ControlSegment};
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use plait_base::{Span, Time};
use plait_wire::ResetReason;

/// How often it is looked at within the idle time, so that segments need not tell anybody.
const LOOKS_PER_TIMEOUT: u64 = 8;

/// What was heard of the peer, as far as somebody has looked.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastHeard {
    /// When something was last.
    since: Time,
    /// What grows with nearly every segment of the peer's: [`Connection::heard`].
    sum: u64,
    /// Probes since then.
    probes: u8,
}

/// Whether a probe may go out there, and an answer come.
fn is_reachable(subflow: &Subflow) -> bool {
    subflow.state.synchronised() && subflow.state != State::TimeWait && subflow.status.joined
}

impl Connection {
    /// What the peer has sent, what it has acknowledged and the time by its clock, on all subflows. A
    /// segment that changes none of these passes unnoticed, and a probe goes out too early.
    fn heard(&self) -> u64 {
        let of = |s: &Subflow| s.rx.nxt().get() + s.tx.una().get() + u64::from(s.shake.ts_recent);
        self.subflows.iter().map(of).fold(0, u64::wrapping_add)
    }

    /// The connection can be used from now on.
    pub(super) fn arm_keep_alive(&mut self, now: Time) {
        if !self.timers.is_set(Awaited::KeepAlive) {
            self.listen_anew(now);
        }
    }

    /// A probe was answered: the idle time begins again.
    #[cold]
    pub(super) fn on_sign_of_life(&mut self, now: Time) {
        self.listen_anew(now);
    }

    fn listen_anew(&mut self, now: Time) {
        let Some(idle) = self.spec.config.keep_alive else { return };
        let sum = self.heard();
        *self.peer_liveness.heard() = Some(LastHeard { since: now, sum, probes: 0 });
        self.timers.set(Awaited::KeepAlive, now + idle.over(LOOKS_PER_TIMEOUT));
    }

    /// Looks whether the peer is still there, and asks where nothing tells. True where it was asked
    /// often enough.
    pub(super) fn keep_alive_expired(&mut self, ctx: &mut Context<'_>) -> bool {
        let (Some(idle), Some(heard)) = (self.spec.config.keep_alive, *self.peer_liveness.heard())
        else {
            return false;
        };
        if self.closing.done() {
            return false;
        }
        // Probes are for idle connections alone (RFC 9293 section 3.8.4): data that waits has a timer of
        // its own, and so has a connection that waits for a subflow. What a silent subflow still repeats
        // although another one has brought it there has no such timer: nobody waits for it.
        let under_way = self.has_to_take() && self.subflows.iter().any(|it| !it.is_quiet());
        let alone = !self.subflows.iter().any(is_reachable);
        if under_way || alone || self.heard() != heard.sum {
            self.listen_anew(ctx.now);
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
        for index in 0..self.subflows.len() {
            let subflow = &mut self.subflows[index];
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
        let (sum, probes) = (self.heard(), heard.probes + 1);
        *self.peer_liveness.heard() = Some(LastHeard { sum, probes, ..heard });
        self.timers.set(Awaited::KeepAlive, ctx.now + idle.min(Config::KEEP_ALIVE_INTERVAL));
    }
}
