use alloc::boxed::Box;
use alloc::vec::Vec;

use plait_base::{RandomStream, Span, Time};

use crate::codel::ManagedQueue;
use crate::cross::Cross;
use crate::delay::Propagation;
use crate::fault::Faults;
use crate::loss::{LossModel, Losses};
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
    /// Takes the place of the backlog where the queue is managed.
    managed: Option<Box<ManagedQueue>>,
    outages: Outages,
    mtus: Mtus,
    losses: Losses,
    propagation: Propagation,
    /// `None` on nearly every link: then no packet pays for it.
    faults: Option<Box<Faults>>,
    /// `None` on nearly every link: then its next packet never comes.
    cross: Option<Box<Cross>>,
    cross_next: Time,
    /// The end of losses and faults.
    heals: Time,
    /// Nothing befalls packets but that they wait, or find no room: no outage, no largest packet, no
    /// loss, no fault, no managed queue, no cross traffic, and one delay for all.
    plain: bool,
    passed: Passed,
    counters: LinkCounters,
}

/// Counts of what [`Link::try_pass`] took: delivered as well as offered, and counted in [`LinkCounters`] as
/// neither.
#[derive(Clone, Default, Debug)]
struct Passed {
    packets: u64,
    bytes: u64,
}

/// What becomes of a packet, decided when it is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It gets through. Both times are [`Time::NEVER`] where the rate is zero from some time on:
    /// the packet stays in the queue.
    Deliver {
        /// When its last byte leaves the queue.
        departs: Time,
        /// When its last byte is at the other end. Never before the arrival of a packet that
        /// departed earlier, unless that one is held back.
        arrives: Time,
        /// It was held back on its way: packets that depart after it may arrive before it. Those
        /// held back keep the order among themselves.
        held_back: bool,
        /// When a second copy of it, damaged if it is, arrives: right behind.
        twin: Option<Time>,
        /// It arrives damaged: a receiver that verifies checksums has to drop it.
        corrupt: bool,
    },
    /// It does not.
    Drop(DropCause),
    /// It waits in a managed queue: [`Link::dequeue`] tells its fate when its turn has come.
    Queued,
}

impl Fate {
    /// It gets through once, whole and in order.
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
    /// The link was down when the packet was offered, or would be when it departed.
    Outage,
    /// It was longer than the link takes ([`LinkConfig::mtu`]).
    Mtu,
    /// It arrived, but damaged. No link says so: it is the receiving host that drops the packet.
    Corrupt,
}

/// What a link did so far. Every packet counts when its fate is known, which is when it is offered
/// except in a managed queue: `offered_packets` is the sum of delivered, held and dropped ones and
/// of those that wait in a managed queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkCounters {
    /// Packets offered.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that get through, each once.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets among the delivered that were held back on their way.
    pub reordered_packets: u64,
    /// Packets among the delivered that arrive twice, counted once there.
    pub duplicated_packets: u64,
    /// Packets among the delivered that arrive damaged.
    pub corrupted_packets: u64,
    /// Packets that stay in the queue for ever, as the rate stays zero.
    pub held_packets: u64,
    /// Packets lost at random.
    pub dropped_loss: u64,
    /// Packets that found the queue full.
    pub dropped_queue: u64,
    /// Packets that the queue's management dropped.
    pub dropped_aqm: u64,
    /// Packets lost in an outage.
    pub dropped_outage: u64,
    /// Packets longer than the link takes.
    pub dropped_mtu: u64,
}

impl LinkCounters {
    /// Packets dropped for any cause.
    #[must_use]
    pub const fn dropped_packets(&self) -> u64 {
        let unmanaged = self.dropped_loss + self.dropped_queue + self.dropped_outage;
        unmanaged + self.dropped_aqm + self.dropped_mtu
    }
}

impl Link {
    /// An idle link. Each kind of chance draws from a stream of its own, derived from `seed` and
    /// `name`, so links do not shift each other's numbers.
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
        let faults = Faults::new(config, stream).map(Box::new);
        let propagation = Propagation::new(config, stream("jitter"));
        let plain = config.loss == LossModel::NEVER
            && outages.is_empty()
            && mtus.is_empty()
            && (faults.is_none()
                && managed.is_none()
                && cross.is_none()
                && !propagation.is_uneven());
        Link {
            service: Service::new(&config.rate),
            backlog: Backlog::new(),
            limit,
            managed,
            outages,
            mtus,
            losses: Losses::new(config.loss, stream("loss")),
            propagation,
            faults,
            cross_next: cross.as_ref().map_or(Time::NEVER, Cross::next),
            cross: cross.map(Box::new),
            heals: config.heals,
            plain,
            passed: Passed::default(),
            counters: LinkCounters::default(),
        }
    }

    /// Offers a packet of `size` bytes at `at`, which never goes back.
    ///
    /// A packet that would depart during an outage takes its place in the queue and its time on
    /// the transmitter all the same: the link does not know that nobody listens.
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
        if self.losses.hit() && at < self.heals {
            self.counters.dropped_loss += 1;
            return Fate::Drop(DropCause::Loss);
        }
        if self.managed.is_some() {
            return self.enqueue(at, size);
        }
        // What has left since the last look does not matter where there is room for it.
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

    /// Whether the queue takes a packet of `size` bytes, now that those are out of it that have left by
    /// `at`.
    #[inline(never)]
    fn admits(&mut self, at: Time, size: u32) -> bool {
        self.backlog.drain(at);
        self.backlog.is_empty() || self.limit.admits_beside(&self.backlog, &self.service, at, size)
    }

    /// Offers a packet as [`Link::offer`] does where it gets through once, whole and in order, and returns
    /// when it arrives: [`Time::NEVER`] where it stays in the queue for ever. `None` where nothing was
    /// offered: then [`Link::offer`] has to be asked.
    #[inline(always)]
    pub fn try_pass(&mut self, at: Time, size: u32) -> Option<Time> {
        if !self.plain || !self.limit.admits_beside(&self.backlog, &self.service, at, size) {
            return None;
        }
        let departs = self.service.serve(at, size);
        if departs > at {
            self.backlog.push(at, departs, size);
        }
        if departs == Time::NEVER {
            self.counters.offered_packets += 1;
            self.counters.offered_bytes += u64::from(size);
            self.counters.held_packets += 1;
            return Some(Time::NEVER);
        }
        self.passed.packets += 1;
        self.passed.bytes += u64::from(size);
        Some(departs + self.propagation.delay())
    }

    /// Lets the cross traffic that came by `at` meet the queue. It is not counted with what the link is
    /// offered, and draws no number of the link's own.
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

    /// Bytes of each source of cross traffic ([`LinkConfig::cross`]) that the queue took by `now`,
    /// which never goes back.
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

    /// When the managed queue has a packet for the transmitter: [`Link::dequeue`] is due then.
    /// [`Time::NEVER`] where nothing waits, and where the queue is not managed.
    #[must_use]
    pub fn next_dequeue(&self) -> Time {
        let head = self.managed.as_ref().and_then(|queue| queue.head());
        head.map_or(Time::NEVER, |came| came.max(self.service.free_at()))
    }

    /// Hands packets from the managed queue to the transmitter as it was free for them up to
    /// `now`, and tells the fate of each packet that leaves the queue, in the order in which they
    /// were offered. Late calls change nothing but that an offer before them found a fuller queue.
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
                // Offered as of when it came, which keeps the transmitter's exact place.
                let departs = self.service.serve(came, size);
                queue.on_sending(departs, size);
                fate(self.depart(departs, size));
            }
        }
    }

    /// The fate of a packet whose transmission ends at `departs`.
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

    /// What goes wrong on the way with a packet that would arrive at `arrives`.
    #[inline(never)]
    fn tamper(&mut self, departs: Time, arrives: Time) -> Fate {
        let Some(faults) = self.faults.as_mut().filter(|_| departs < self.heals) else {
            return Fate::deliver(departs, arrives);
        };
        let mishap = faults.draw();
        let late = if mishap.held_back { faults.held_back_by() } else { Span::ZERO };
        let arrives = arrives + late;
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

    /// Bytes in the queue at `now`, the packet in transmission included until it departs.
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

    /// Packets in the queue at `now`, the one in transmission included until it departs.
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

    /// What the link did so far.
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
