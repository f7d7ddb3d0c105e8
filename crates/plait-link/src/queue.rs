use alloc::collections::VecDeque;

use plait_base::{Rate, Span, Time};

use crate::{QueueLimit, RateSource};

/// The packets that have not departed yet. Their departures are known, so nothing needs to happen
/// when they leave: whoever looks next removes them.
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
    #[inline]
    pub(crate) fn drain(&mut self, now: Time) {
        while let Some(&(departs, size)) = self.ring.front() {
            if departs > now {
                break;
            }
            self.bytes -= u64::from(size);
            self.ring.pop_front();
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, departs: Time, size: u32) {
        self.bytes += u64::from(size);
        self.ring.push_back((departs, size));
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

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
        if packets == 0 {
            return true;
        }
        match self {
            Limit::None => true,
            Limit::Bytes(limit) => bytes + u64::from(size) <= limit,
            Limit::Packets(limit) => packets < limit,
            Limit::Wait(limit) => wait <= limit,
        }
    }
}
