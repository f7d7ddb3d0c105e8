use alloc::collections::VecDeque;

use plait_base::{Rate, Span, Time};

use crate::{QueueLimit, RateSource, Service};

/// The packets that have not departed yet. Their departures are known, so nothing needs to happen
/// when they leave: whoever looks next removes them, and nobody has to look where there is room for
/// all that were in it.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    ring: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl Backlog {
    /// Room for most queues, so that one that fills late allocates nothing.
    const ROOM: usize = 64;

    pub(crate) fn new() -> Backlog {
        Backlog { ring: VecDeque::with_capacity(Backlog::ROOM), bytes: 0 }
    }

    /// Removes what has departed by `now`.
    #[inline(never)]
    pub(crate) fn drain(&mut self, now: Time) {
        // Many at once: the ring is in at most two pieces.
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

    /// Takes in a packet that comes at `at`.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, departs: Time, size: u32) {
        if self.ring.len() == self.ring.capacity() {
            self.drain(at);
        }
        self.bytes += u64::from(size);
        self.ring.push_back((departs, size));
    }

    /// Whether there is none, those included that nobody has removed yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes in it, those included that nobody has removed yet.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets in it, those included that nobody has removed yet.
    pub(crate) fn packets(&self) -> usize {
        self.ring.len()
    }
}

/// A queue limit in the terms of the link that applies it.
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

    /// The same limit where no packet's wait is known when it comes.
    pub(crate) fn without_wait(limit: QueueLimit, rate: &RateSource) -> Limit {
        match (limit, rate.mean_rate()) {
            (QueueLimit::Delay(_), Rate::INFINITE) => Limit::None,
            (QueueLimit::Delay(span), mean) => Limit::Bytes(mean.bytes_in(span)),
            _ => Limit::new(limit, rate),
        }
    }

    /// Whether a packet of `size` bytes that would wait for `wait` may join a queue of so many
    /// packets and bytes.
    #[inline]
    pub(crate) fn admits(self, packets: usize, bytes: u64, size: u32, wait: Span) -> bool {
        packets == 0 || self.has_room(packets, bytes, size, || wait)
    }

    /// Whether a packet of `size` bytes that comes at `at` may join a backlog that is not empty. Where it
    /// may join one that holds packets which have left by then, it may without them.
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
        // That of nearly every link comes first.
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
