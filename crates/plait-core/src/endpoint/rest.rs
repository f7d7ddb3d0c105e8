//! Memory of connections that rest.

use super::Endpoint;
use plait_base::{Span, Time};

/// How long nothing was sent.
const QUIET: Span = Span::from_secs(1);

impl Endpoint {
    /// Connections on which nothing is under way and nothing was sent for a second give back the
    /// memory of their rings. It looks at every connection, so a driver with many of them calls it
    /// now and then; what they do is the same without.
    pub fn rest(&mut self, now: Time) {
        if now >= Time::ZERO + QUIET {
            let before = Time::ZERO + (now.since(Time::ZERO).minus(QUIET));
            self.connections.rest(before);
        }
    }
}
