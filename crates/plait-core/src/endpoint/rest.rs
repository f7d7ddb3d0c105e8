//! Memory of connections that rest.

use super::Endpoint;
use plait_base::{Span, Time};

/// How long nothing was sent.
const QUIET: Span = Span::from_secs(1);
/// Room for so many answers, and for so many connections to accept, is kept. Beyond it a flood has left
/// room that nobody needs.
const MOST_IDLE_ANSWERS: usize = 256;

impl Endpoint {
    /// Connections on which nothing is under way and nothing was sent for a second give back the
    /// memory of their rings. The endpoint frees spare segments that nobody has used since the last
    /// call. It looks at every connection, so a driver with many of them calls it every few seconds;
    /// what they do is the same without.
    pub fn rest(&mut self, now: Time) {
        self.shared.rest();
        self.answers.shrink_to(MOST_IDLE_ANSWERS);
        self.accepted.shrink_to(MOST_IDLE_ANSWERS);
        if now >= Time::ZERO + QUIET {
            let before = Time::ZERO + (now.since(Time::ZERO).minus(QUIET));
            self.connections.rest(before);
        }
    }
}
