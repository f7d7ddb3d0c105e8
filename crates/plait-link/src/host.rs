use plait_base::{Rate, Time};

use crate::Service;

/// The network interface of the sending host, which packets pass before the path. It is a
/// first-in-first-out queue without limit, with one rate.
#[derive(Clone, Debug)]
pub struct HostLink {
    service: Service,
}

impl HostLink {
    /// Creates a link of `rate` that is idle at [`Time::ZERO`].
    #[must_use]
    pub fn new(rate: Rate) -> HostLink {
        HostLink { service: Service::fixed(rate) }
    }

    /// Queues a packet of `size` bytes at `at`, which must not decrease. Returns the time at which its last
    /// byte leaves the host.
    #[inline]
    pub fn offer(&mut self, at: Time, size: u32) -> Time {
        self.service.serve(at, size)
    }

    /// Returns the time at which the last queued packet leaves the host.
    #[must_use]
    pub fn free_at(&self) -> Time {
        self.service.free_at()
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
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut host = HostLink::new(Rate::INFINITE);
        let at = Time::from_nanos(7);
        assert_eq!(host.offer(at, 1500), at);
    }
}
