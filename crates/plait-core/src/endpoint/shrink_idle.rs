//! Memory of connections that rest.

use crate::endpoint::{Endpoint, InUse};
use plait_base::{Span, Time};

/// How long nothing was sent.
const IDLE_AFTER: Span = Span::from_secs(1);
/// Room for so many answers, and for so many connections to accept, is kept. Beyond it a flood has left
/// room that nobody needs.
const MAX_IDLE_ANSWERS: usize = 256;

impl Endpoint {
    /// Connections on which nothing is under way and nothing was sent for a second give back the
    /// memory of their rings. The endpoint frees spare segments that nobody has used since the last
    /// call. It looks at every connection, so a driver with many of them calls it every few seconds;
    /// what they do is the same without.
    pub fn shrink_idle(&mut self, now: Time) {
        self.shared.shrink_idle();
        self.answers.shrink_to(MAX_IDLE_ANSWERS);
        self.accepted.shrink_to(MAX_IDLE_ANSWERS);
        if self.shared.directory.is_crowded() {
            self.reclaim_numbers();
        }
        if now >= Time::ZERO + IDLE_AFTER {
            let before = Time::ZERO + (now.since(Time::ZERO).minus(IDLE_AFTER));
            self.connections.shrink_idle(before);
        }
    }

    /// Takes back the numbers of announced addresses that no connection uses any more.
    fn reclaim_numbers(&mut self) {
        let mut in_use = InUse::NONE;
        let connections = self.connections.iter().flat_map(|(_, conn)| conn.paths().servers());
        connections.for_each(|number| in_use.note(number));
        self.remnants.servers().for_each(|number| in_use.note(number));
        self.answers.iter().for_each(|answer| in_use.note(answer.segment.server));
        self.shared.directory.reclaim(&in_use);
    }
}
