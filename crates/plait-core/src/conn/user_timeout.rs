//! A peer that takes nothing although data waits for it: the user timeout (RFC 9293 section 3.8.3).

use super::keepalive::LastHeard;
use super::timeouts::Awaited;
use super::{Connection, Context};
use crate::stats::TimedOut;
use alloc::boxed::Box;
use plait_base::{Dsn, Span, Time};

/// How often it is looked at within a timeout. Looking compares with what was seen before, so that
/// acknowledgements need not tell anybody.
const LOOKS_PER_TIMEOUT: u64 = 8;

/// What the peer had taken when it last took something, as far as somebody has looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Taken {
    since: Time,
    /// Data that was acknowledged, and the right edge of the window.
    una: Dsn,
    edge: Dsn,
}

/// How long the peer has been waited for. Most connections have no timeouts, or are idle.
#[derive(Default, Debug)]
pub(super) struct PeerLiveness(Option<Box<Seen>>);

/// What was seen of the peer.
#[derive(Default, Debug)]
struct Seen {
    /// While data waits.
    taken: Option<Taken>,
    /// Where there are keep-alives.
    heard: Option<LastHeard>,
}

impl PeerLiveness {
    fn taken(&mut self) -> &mut Option<Taken> {
        &mut self.0.get_or_insert_default().taken
    }

    pub(super) fn heard(&mut self) -> &mut Option<LastHeard> {
        &mut self.0.get_or_insert_default().heard
    }

    /// Nothing waits: the memory goes back where nothing else is in it.
    fn forget_taken(&mut self) {
        self.0.take_if(|seen| seen.heard.is_none());
    }
}

impl Connection {
    /// Whether the peer has something to take: data, or our end of it.
    pub(super) fn has_to_take(&self) -> bool {
        let fin_waits = self.closing.asked && !self.closing.fin_acked;
        (!self.queue.is_drained() || fin_waits) && !self.failed
    }

    /// What the peer has taken until now.
    fn taken(&self, since: Time) -> Taken {
        Taken { since, una: self.queue.una(), edge: self.window.end() }
    }

    /// Data waits from now on, if none did.
    pub(super) fn arm_user_timeout(&mut self, now: Time) {
        let Some(timeout) = self.spec.config.user_timeout else { return };
        if !self.timers.is_set(Awaited::UserTimeout) {
            *self.peer_liveness.taken() = Some(self.taken(now));
            self.look_again(now, timeout);
        }
    }

    fn look_again(&mut self, now: Time, timeout: Span) {
        self.timers.set(Awaited::UserTimeout, now + timeout.over(LOOKS_PER_TIMEOUT));
    }

    /// Whether data has waited for too long; otherwise it is looked at again, while any does.
    pub(super) fn user_timeout_expired(&mut self, now: Time) -> bool {
        let before = self.peer_liveness.taken().take();
        let (Some(timeout), Some(before)) = (self.spec.config.user_timeout, before) else {
            return false;
        };
        if !self.has_to_take() {
            self.peer_liveness.forget_taken();
            return false;
        }
        let taken = self.taken(before.since);
        if taken == before && now >= before.since + timeout {
            return true;
        }
        let since = if taken == before { before.since } else { now };
        *self.peer_liveness.taken() = Some(Taken { since, ..taken });
        self.look_again(now, timeout);
        false
    }

    /// The connection ends at once, and its user is told.
    pub(super) fn give_up_on_peer(&mut self, ctx: &mut Context<'_>, why: TimedOut) {
        self.closing.timed_out = Some(why);
        self.changed = true;
        self.news = true;
        self.abort(ctx);
    }

    /// Why, if that is how it ended.
    pub(crate) const fn timed_out(&self) -> Option<TimedOut> {
        self.closing.timed_out
    }
}
