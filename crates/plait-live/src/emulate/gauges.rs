//! Gauges of a running emulation: the bytes that each link has carried, and its queue.

use super::PerDirection;
use super::emulated_link::EmulatedLink;
use plait_base::{Span, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time between two updates. An update takes less than a microsecond for each link.
const PERIOD: Span = Span::from_millis(20);

/// One direction of a path at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reading {
    /// Bytes that have left the queue since the emulation began.
    pub left_bytes: u64,
    /// Bytes in the queue.
    pub queued_bytes: u64,
}

/// The readings of all links, two for each path: down, then up. A clone shows the same links.
#[derive(Clone, Debug)]
pub struct Gauges(Arc<[[AtomicU64; 2]]>);

impl Gauges {
    pub(super) fn new(links: usize) -> Gauges {
        Gauges((0..links).map(|_| Default::default()).collect())
    }

    /// Returns the readings of each path. They are at most 25 ms old while the emulation runs.
    #[must_use]
    pub fn read(&self) -> Vec<PerDirection<Reading>> {
        let one = |[left, queued]: &[AtomicU64; 2]| Reading {
            left_bytes: left.load(Ordering::Relaxed),
            queued_bytes: queued.load(Ordering::Relaxed),
        };
        let both =
            |both: &[[AtomicU64; 2]]| PerDirection { down: one(&both[0]), up: one(&both[1]) };
        self.0.chunks_exact(2).map(both).collect()
    }
}

/// Writes the gauges of an emulation.
pub(super) struct Gauging {
    gauges: Gauges,
    next: Time,
}

impl Gauging {
    pub(super) fn new(gauges: Gauges) -> Gauging {
        Gauging { gauges, next: Time::ZERO }
    }

    /// Updates the gauges if that is due. The clock may have begun again.
    pub(super) fn update(&mut self, links: &mut [EmulatedLink], now: Time) {
        if now < self.next && self.next.since(now) <= PERIOD {
            return;
        }
        self.next = now + PERIOD;
        for ([left, queued], link) in self.gauges.0.iter().zip(links) {
            let reading = link.reading(now);
            left.store(reading.left_bytes, Ordering::Relaxed);
            queued.store(reading.queued_bytes, Ordering::Relaxed);
        }
    }
}
