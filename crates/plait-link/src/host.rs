use plait_base::{Rate, Time};

use crate::Service;
use crate::queue::Backlog;

/// The sending host's own link, which packets leave through before the path: a first-in-first-out
/// queue without limit at one rate. What a host holds back in its own queue, as TCP small queues
/// do, is measured here.
#[derive(Clone, Debug)]
pub struct HostLink {
    service: Service,
    backlog: Backlog,
}

impl HostLink {
    /// A link of `rate` that is idle at [`Time::ZERO`].
    #[must_use]
    pub fn new(rate: Rate) -> HostLink {
        HostLink { service: Service::fixed(rate), backlog: Backlog::default() }
    }

    /// Takes a packet of `size` bytes at `at`, which never goes back; returns when it has left the
    /// host.
    #[inline]
    pub fn offer(&mut self, at: Time, size: u32) -> Time {
        self.backlog.drain(at);
        let departs = self.service.serve(at, size);
        if departs > at {
            self.backlog.push(departs, size);
        }
        departs
    }

    /// When the last packet taken has left.
    #[must_use]
    pub fn free_at(&self) -> Time {
        self.service.free_at()
    }

    /// Bytes that have not left the host at `now`, the packet in transmission included.
    pub fn queued_bytes(&mut self, now: Time) -> u64 {
        self.backlog.drain(now);
        self.backlog.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::Span;

    #[test]
    fn a_burst_leaves_back_to_back() {
        let mut host = HostLink::new(Rate::from_bps(1_000_000_000));
        let at = Time::ZERO + Span::from_micros(5);
        assert_eq!(host.offer(at, 1500), at + Span::from_micros(12));
        assert_eq!(host.offer(at, 1500), at + Span::from_micros(24));
        assert_eq!(host.queued_bytes(at + Span::from_micros(11)), 3000);
        assert_eq!(host.queued_bytes(at + Span::from_micros(12)), 1500);
        assert_eq!(host.queued_bytes(at + Span::from_micros(24)), 0);
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut host = HostLink::new(Rate::INFINITE);
        let at = Time::from_nanos(7);
        assert_eq!(host.offer(at, 1500), at);
        assert_eq!(host.queued_bytes(at), 0);
    }
}
