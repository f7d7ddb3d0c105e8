//! Memory of idle connections.

use crate::directory::InUse;
use crate::endpoint::Endpoint;
use plait_base::{Span, Time};

/// Time without a sent segment after which a connection is idle.
const IDLE_AFTER: Span = Span::from_secs(1);
/// Largest capacity kept for answers, and for connections to accept. Capacity beyond it, left by a
/// flood, is freed.
const MAX_IDLE_ANSWERS: usize = 256;

impl Endpoint {
    /// Frees the buffers of connections with nothing in flight that have sent nothing for one
    /// second. It also frees spare segments that were not used since the last call.
    ///
    /// It visits every connection, so a driver with many of them calls it every few seconds. It
    /// does not change the behaviour of connections.
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

    /// Frees the numbers of announced addresses that no connection uses.
    fn reclaim_numbers(&mut self) {
        let mut in_use = InUse::NONE;
        let connections = self.connections.iter().flat_map(|(_, conn)| conn.paths().servers());
        connections.for_each(|number| in_use.note(number));
        self.remnants.servers().for_each(|number| in_use.note(number));
        self.answers.iter().for_each(|answer| in_use.note(answer.segment.server));
        self.shared.directory.reclaim(&in_use);
    }
}
