use alloc::boxed::Box;
use alloc::vec::Vec;

use plait_base::{RandomStream, Span, Time};

use crate::codel::ManagedQueue;
use crate::cross::Cross;
use crate::delay::Propagation;
use crate::fault::Faults;
use crate::loss::Losses;
use crate::mtu::Mtus;
use crate::outage::Outages;
use crate::queue::{Backlog, Limit};
use crate::{Aqm, LinkConfig, Service};

/// One direction of a path: outage, loss, queue, transmitter, propagation.
///
/// ```
/// use plait_base::{Rate, Span, Time};
/// use plait_link::{Fate, Link, LinkConfig, RateSource};
///
/// let rate = RateSource::Fixed(Rate::from_bps(25_000_000));
/// let mut link = Link::new(&LinkConfig::new(rate, Span::from_millis(10)), 1, &["wifi", "down"]);
/// let fate = link.offer(Time::ZERO, 1500);
/// let departs = Time::ZERO + Span::from_micros(480);
/// assert_eq!(fate, Fate::deliver(departs, departs + Span::from_millis(10)));
/// ```
#[derive(Clone, Debug)]
pub struct Link {
    service: Service,
    backlog: Backlog,
    limit: Limit,
    /// Replaces the backlog if the queue is managed.
    managed: Option<Box<ManagedQueue>>,
    outages: Outages,
    mtus: Mtus,
    losses: Losses,
    propagation: Propagation,
    /// `None` on nearly every link, so that packets do not pay for it.
    faults: Option<Box<Faults>>,
    /// `None` on nearly every link; `cross_next` is then [`Time::NEVER`].
    cross: Option<Box<Cross>>,
    cross_next: Time,
    /// True if packets can only be lost at random, wait or overflow the queue. The link then has no outage,
    /// MTU, fault, managed queue or cross traffic.
    plain: bool,
    /// The link loses packets at random.
    lossy: bool,
    passed: Passed,
    counters: LinkCounters,
}

/// Packets that [`Link::try_pass`] accepted. They count as offered and as delivered, but are not included in
/// the stored [`LinkCounters`].
#[derive(Clone, Default, Debug)]
struct Passed {
    packets: u64,
    bytes: u64,
}

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The packet is delivered. If the rate stays zero from some time on, the packet stays in the queue,
    /// and both times are [`Time::NEVER`].
    Deliver {
        /// Time at which its last byte leaves the queue.
        departs: Time,
        /// Time at which its last byte arrives. Never before the arrival of a packet that departed
        /// earlier, unless that packet was held back.
        arrives: Time,
        /// True if the packet was held back: packets that depart after it may arrive before it.
        /// Packets that were held back keep their order.
        held_back: bool,
        /// Arrival time of a duplicate, directly after the packet and damaged if the packet is.
        twin: Option<Time>,
        /// True if the packet arrives damaged. A receiver that verifies checksums must drop it.
        corrupt: bool,
    },
    /// The packet is dropped.
    Drop(DropCause),
    /// The packet waits in a managed queue. [`Link::dequeue`] reports its fate later.
    Queued,
}

impl Fate {
    /// Returns the fate of a packet that is delivered once, undamaged and in order.
    #[inline]
    #[must_use]
    pub const fn deliver(departs: Time, arrives: Time) -> Fate {
        Fate::Deliver { departs, arrives, held_back: false, twin: None, corrupt: false }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum DropCause {
    /// Random loss.
    Loss,
    /// The queue was full.
    Queue,
    /// The queue's management dropped it, at the head of the queue.
    Aqm,
    /// The link was down when the packet was offered, or will be down when it departs.
    Outage,
    /// The packet exceeded the MTU of the link ([`LinkConfig::mtu`]).
    Mtu,
    /// The packet arrived damaged and the receiving host dropped it. Links never return this cause.
    Corrupt,
}

/// Counters of a link. A packet is counted when its fate is known: on offer, or, in a managed queue, when it
/// leaves the queue. `offered_packets` is the sum of delivered, held and dropped packets, and of packets that
/// wait in a managed queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkCounters {
    /// Packets offered.
    pub offered_packets: u64,
    /// Bytes offered.
    pub offered_bytes: u64,
    /// Packets delivered; a duplicate does not count.
    pub delivered_packets: u64,
    /// Bytes delivered.
    pub delivered_bytes: u64,
    /// Delivered packets that were held back.
    pub reordered_packets: u64,
    /// Delivered packets that arrive twice.
    pub duplicated_packets: u64,
    /// Delivered packets that arrive damaged.
    pub corrupted_packets: u64,
    /// Packets that stay in the queue for ever, because the rate stays zero.
    pub held_packets: u64,
    /// Packets lost at random.
    pub dropped_loss: u64,
    /// Packets dropped because the queue was full.
    pub dropped_queue: u64,
    /// Packets dropped by active queue management.
    pub dropped_aqm: u64,
    /// Packets lost in an outage.
    pub dropped_outage: u64,
    /// Packets longer than the MTU of the link.
    pub dropped_mtu: u64,
}

impl LinkCounters {
    /// Returns the number of packets dropped for any cause.
    #[must_use]
    pub const fn dropped_packets(&self) -> u64 {
        let unmanaged = self.dropped_loss + self.dropped_queue + self.dropped_outage;
        unmanaged + self.dropped_aqm + self.dropped_mtu
    }
}

impl Link {
    /// Creates an idle link. Each kind of random event draws from its own stream, derived from `seed` and
    /// `name`. Links and kinds of events therefore do not change each other's numbers.
    #[must_use]
    pub fn new(config: &LinkConfig, seed: u64, name: &[&str]) -> Link {
        let stream = |purpose: &str| {
            let mut words = Vec::with_capacity(name.len() + 2);
            words.push("link");
            words.extend_from_slice(name);
            words.push(purpose);
            RandomStream::new(seed, &words)
        };
        let (limit, managed) = match config.aqm {
            Aqm::DropTail => (Limit::new(config.queue, &config.rate), None),
            Aqm::Codel { target, interval } => {
                let queue = ManagedQueue::new(target, interval);
                (Limit::without_wait(config.queue, &config.rate), Some(Box::new(queue)))
            }
        };
        let cross = match config.aqm {
            Aqm::DropTail => Cross::new(&config.cross, |at| stream(&alloc::format!("cross {at}"))),
            Aqm::Codel { .. } => None,
        };
        let outages = Outages::new(&config.outages);
        let mtus = Mtus::new(&config.mtu);
        let faults = Faults::new(&config.impairments, stream).map(Box::new);
        let propagation = Propagation::new(config, stream("jitter"));
        let losses = Losses::new(config.impairments.loss, config.impairments.heals, stream("loss"));
        let plain = outages.is_empty()
            && mtus.is_empty()
            && (faults.is_none() && managed.is_none() && cross.is_none());
        Link {
            service: Service::new(&config.rate),
            backlog: Backlog::new(),
            limit,
            managed,
            outages,
            mtus,
            lossy: !losses.is_empty(),
            losses,
            propagation,
            faults,
            cross_next: cross.as_ref().map_or(Time::NEVER, Cross::next),
            cross: cross.map(Box::new),
            plain,
            passed: Passed::default(),
            counters: LinkCounters::default(),
        }
    }

    /// Offers a packet of `size` bytes at `at`, which must not decrease.
    ///
    /// A packet that would depart during an outage still occupies the queue and the transmitter, because a
    /// sender does not detect the outage.
    pub fn offer(&mut self, at: Time, size: u32) -> Fate {
        if self.cross_next <= at {
            self.cross_until(at);
        }
        self.counters.offered_packets += 1;
        self.counters.offered_bytes += u64::from(size);
        if self.outages.hit_offer(at) {
            self.counters.dropped_outage += 1;
            return Fate::Drop(DropCause::Outage);
        }
        if !self.mtus.admits(at, size) {
            self.counters.dropped_mtu += 1;
            return Fate::Drop(DropCause::Mtu);
        }
        if self.losses.hit(at) {
            self.counters.dropped_loss += 1;
            return Fate::Drop(DropCause::Loss);
        }
        if self.managed.is_some() {
            return self.enqueue(at, size);
        }
        // Departed packets need not be removed if there is room beside them.
        if !self.limit.admits_beside(&self.backlog, &self.service, at, size)
            && !self.admits(at, size)
        {
            self.counters.dropped_queue += 1;
            return Fate::Drop(DropCause::Queue);
        }
        let departs = self.service.serve(at, size);
        if departs > at {
            self.backlog.push(at, departs, size);
        }
        self.depart(departs, size)
    }

    /// Removes the packets that departed by `at` and returns true if the queue accepts a packet of `size`
    /// bytes.
    #[inline(never)]
    fn admits(&mut self, at: Time, size: u32) -> bool {
        self.backlog.drain(at);
        self.backlog.is_empty() || self.limit.admits_beside(&self.backlog, &self.service, at, size)
    }

    /// Offers a packet on the fast path and returns its arrival time, or the cause if it is lost.
    ///
    /// The result is the same as from [`Link::offer`] for a packet that is lost, or delivered once, undamaged and
    /// in order. The time is [`Time::NEVER`] if the packet stays in the queue for ever. If this returns `None`,
    /// nothing was offered and the caller must call [`Link::offer`].
    #[inline(always)]
    pub fn try_pass(&mut self, at: Time, size: u32) -> Option<Result<Time, DropCause>> {
        if !self.plain || !self.limit.admits_beside(&self.backlog, &self.service, at, size) {
            return None;
        }
        if self.lossy && self.losses.hit(at) {
            self.counters.offered_packets += 1;
            self.counters.offered_bytes += u64::from(size);
            self.counters.dropped_loss += 1;
            return Some(Err(DropCause::Loss));
        }
        let departs = self.service.serve(at, size);
        if departs > at {
            self.backlog.push(at, departs, size);
        }
        if departs == Time::NEVER {
            self.counters.offered_packets += 1;
            self.counters.offered_bytes += u64::from(size);
            self.counters.held_packets += 1;
            return Some(Ok(Time::NEVER));
        }
        self.passed.packets += 1;
        self.passed.bytes += u64::from(size);
        Some(Ok(self.propagation.arrival(departs)))
    }

    /// Offers the cross traffic up to `at` to the queue. The link's counters do not include it, and it draws no
    /// random numbers from the link's streams.
    #[inline(never)]
    fn cross_until(&mut self, at: Time) {
        let Some(cross) = &mut self.cross else { return };
        while cross.next() <= at {
            let (backlog, limit) = (&mut self.backlog, self.limit);
            let (service, outages, mtus) = (&mut self.service, &mut self.outages, &mut self.mtus);
            cross.take(|at, size| {
                if outages.hit_offer(at) || !mtus.admits(at, size) {
                    return false;
                }
                backlog.drain(at);
                let wait = service.free_at().since(at);
                if !limit.admits(backlog.packets(), backlog.bytes(), size, wait) {
                    return false;
                }
                let departs = service.serve(at, size);
                if departs > at {
                    backlog.push(at, departs, size);
                }
                true
            });
        }
        self.cross_next = cross.next();
    }

    /// Returns the bytes that the queue accepted by `now`, for each source of cross traffic
    /// ([`LinkConfig::cross`]). `now` must not decrease.
    pub fn cross_bytes(&mut self, now: Time) -> Vec<u64> {
        self.cross_until(now);
        self.cross.iter().flat_map(|cross| cross.passed_bytes()).collect()
    }

    /// Puts a packet into the managed queue.
    fn enqueue(&mut self, at: Time, size: u32) -> Fate {
        let Some(queue) = &mut self.managed else { return Fate::Queued };
        let (packets, bytes) = queue.load(at);
        if !self.limit.admits(packets, bytes, size, Span::ZERO) {
            self.counters.dropped_queue += 1;
            return Fate::Drop(DropCause::Queue);
        }
        queue.push(at, size);
        Fate::Queued
    }

    /// Returns the time at which [`Link::dequeue`] is due: the managed queue then has a packet for the
    /// transmitter. Returns [`Time::NEVER`] if no packet waits or if the queue is not managed.
    #[must_use]
    pub fn next_dequeue(&self) -> Time {
        let head = self.managed.as_ref().and_then(|queue| queue.head());
        head.map_or(Time::NEVER, |came| came.max(self.service.free_at()))
    }

    /// Moves packets from the managed queue to the transmitter, each at the time at which the transmitter
    /// became free, up to `now`. Calls `fate` for each packet that leaves the queue, in the order of the
    /// offers. A late call changes nothing, except that earlier offers found a fuller queue.
    pub fn dequeue(&mut self, now: Time, mut fate: impl FnMut(Fate)) {
        loop {
            let at = self.next_dequeue();
            let Some(queue) = self.managed.as_mut().filter(|_| at <= now && at != Time::NEVER)
            else {
                return;
            };
            let dropped = &mut self.counters.dropped_aqm;
            let taken = queue.pop(at, |_| {
                *dropped += 1;
                fate(Fate::Drop(DropCause::Aqm));
            });
            if let Some((came, size)) = taken {
                // The transmitter gets the offer time of the packet, which keeps its position exact.
                let departs = self.service.serve(came, size);
                queue.on_sending(departs, size);
                fate(self.depart(departs, size));
            }
        }
    }

    /// Returns the fate of a packet whose transmission ends at `departs`.
    fn depart(&mut self, departs: Time, size: u32) -> Fate {
        if self.outages.hit_departure(departs) {
            self.counters.dropped_outage += 1;
            return Fate::Drop(DropCause::Outage);
        }
        self.propagate(departs, size)
    }

    fn propagate(&mut self, departs: Time, size: u32) -> Fate {
        if departs == Time::NEVER {
            self.counters.held_packets += 1;
            return Fate::deliver(departs, Time::NEVER);
        }
        self.counters.delivered_packets += 1;
        self.counters.delivered_bytes += u64::from(size);
        let arrives = self.propagation.arrival(departs);
        if self.faults.is_some() {
            return self.tamper(departs, arrives);
        }
        Fate::deliver(departs, arrives)
    }

    /// Applies reordering, duplication and corruption to a packet that would arrive at `arrives`.
    #[inline(never)]
    fn tamper(&mut self, departs: Time, arrives: Time) -> Fate {
        let Some(mishap) = self.faults.as_mut().and_then(|faults| faults.draw(departs)) else {
            return Fate::deliver(departs, arrives);
        };
        let arrives = arrives + mishap.late;
        self.counters.reordered_packets += u64::from(mishap.held_back);
        self.counters.duplicated_packets += u64::from(mishap.twin);
        self.counters.corrupted_packets += u64::from(mishap.corrupt);
        Fate::Deliver {
            departs,
            arrives,
            held_back: mishap.held_back,
            twin: mishap.twin.then_some(arrives),
            corrupt: mishap.corrupt,
        }
    }

    /// Returns the bytes in the queue at `now`, including the packet in transmission.
    pub fn queued_bytes(&mut self, now: Time) -> u64 {
        if let Some(queue) = &self.managed {
            return queue.load(now).1;
        }
        if self.cross_next <= now {
            self.cross_until(now);
        }
        self.backlog.drain(now);
        self.backlog.bytes()
    }

    /// Returns the packets in the queue at `now`, including the packet in transmission.
    pub fn queued_packets(&mut self, now: Time) -> usize {
        if let Some(queue) = &self.managed {
            return queue.load(now).0;
        }
        if self.cross_next <= now {
            self.cross_until(now);
        }
        self.backlog.drain(now);
        self.backlog.packets()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> LinkCounters {
        let counters = self.counters;
        LinkCounters {
            offered_packets: counters.offered_packets + self.passed.packets,
            offered_bytes: counters.offered_bytes + self.passed.bytes,
            delivered_packets: counters.delivered_packets + self.passed.packets,
            delivered_bytes: counters.delivered_bytes + self.passed.bytes,
            ..counters
        }
    }
}
