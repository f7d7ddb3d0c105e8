use alloc::collections::VecDeque;

use plait_base::{Rate, Span, Time};

use crate::{QueueLimit, RateSource, Service};

/// Packets with their departure times, which are known on entry. No event removes a packet when it
/// departs; [`Backlog::drain`] does it later, and only if the queue might be full.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    ring: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl Backlog {
    /// Initial capacity. It suffices for most queues, so that they never allocate later.
    const ROOM: usize = 64;

    pub(crate) fn new() -> Backlog {
        Backlog { ring: VecDeque::with_capacity(Backlog::ROOM), bytes: 0 }
    }

    /// Removes the packets that have departed by `now`.
    #[inline(never)]
    pub(crate) fn drain(&mut self, now: Time) {
        // Removes many at once: the ring consists of at most two slices.
        loop {
            let (front, _) = self.ring.as_slices();
            let (mut gone, mut bytes) = (0, 0);
            while let Some(&(departs, size)) = front.get(gone)
                && departs <= now
            {
                bytes += u64::from(size);
                gone += 1;
            }
            let whole = gone == front.len();
            self.bytes -= bytes;
            self.ring.drain(..gone);
            if gone == 0 || !whole {
                return;
            }
        }
    }

    /// Adds a packet that arrives at `at`.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, departs: Time, size: u32) {
        if self.ring.len() == self.ring.capacity() {
            self.drain(at);
        }
        self.bytes += u64::from(size);
        self.ring.push_back((departs, size));
    }

    /// Returns true if it holds no packet. Departed packets count until they are drained.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns the bytes, including departed packets that were not drained.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the packets, including departed packets that were not drained.
    pub(crate) fn packets(&self) -> usize {
        self.ring.len()
    }
}

/// A queue limit, converted for one link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    None,
    Bytes(u64),
    Packets(usize),
    Wait(Span),
}

impl Limit {
    pub(crate) fn new(limit: QueueLimit, rate: &RateSource) -> Limit {
        match limit {
            QueueLimit::Infinite => Limit::None,
            QueueLimit::Bytes(bytes) => Limit::Bytes(bytes),
            QueueLimit::Packets(packets) => Limit::Packets(packets as usize),
            QueueLimit::Delay(span) if rate.constant().is_some() => Limit::Wait(span),
            QueueLimit::Delay(span) => match rate.mean_rate() {
                Rate::INFINITE => Limit::None,
                mean => Limit::Bytes(mean.bytes_in(span)),
            },
        }
    }

    /// Returns the limit for a managed queue, in which the wait is not known on arrival.
    pub(crate) fn without_wait(limit: QueueLimit, rate: &RateSource) -> Limit {
        match (limit, rate.mean_rate()) {
            (QueueLimit::Delay(_), Rate::INFINITE) => Limit::None,
            (QueueLimit::Delay(span), mean) => Limit::Bytes(mean.bytes_in(span)),
            _ => Limit::new(limit, rate),
        }
    }

    /// Returns true if a queue of `packets` and `bytes` accepts a packet of `size` bytes that would wait for
    /// `wait`.
    #[inline]
    pub(crate) fn admits(self, packets: usize, bytes: u64, size: u32, wait: Span) -> bool {
        packets == 0 || self.has_room(packets, bytes, size, || wait)
    }

    /// Returns true if a backlog that is not empty accepts a packet of `size` bytes at `at`. The backlog may
    /// still hold departed packets. If there is room beside them, there is room without them.
    #[inline(always)]
    pub(crate) fn admits_beside(
        self,
        backlog: &Backlog,
        service: &Service,
        at: Time,
        size: u32,
    ) -> bool {
        self.has_room(backlog.packets(), backlog.bytes(), size, || service.free_at().since(at))
    }

    #[inline(always)]
    fn has_room(self, packets: usize, bytes: u64, size: u32, wait: impl Fn() -> Span) -> bool {
        // Nearly every link has this limit.
        if let Limit::Bytes(limit) = self {
            return bytes + u64::from(size) <= limit;
        }
        match self {
            Limit::None | Limit::Bytes(_) => true,
            Limit::Packets(limit) => packets < limit,
            Limit::Wait(limit) => wait() <= limit,
        }
    }
}
