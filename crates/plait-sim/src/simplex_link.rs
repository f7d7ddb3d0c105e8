//! One direction of a path or of a shared link. It keeps packets in flight in rings and has one
//! entry in the event queue for the next arrival.

use crate::queue::{EventQueue, Stamp};
use plait_base::{PathId, Time};
use plait_link::{DropCause, Fate, HostLink, Link};
use plait_wire::{Payload, Segment};
use std::collections::VecDeque;

/// Number of segments for copies in the first allocation.
const FIRST_SPARES: usize = 64;

/// Origin of the segment in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copied {
    /// The sender's own segment.
    Not,
    /// A copy that the path's own link made.
    ByPath,
    /// A copy that the shared link made.
    ByShared,
}

/// A segment in the network.
#[derive(Debug)]
pub(crate) struct Packet {
    /// Time at which the packet enters or leaves its current link.
    pub(crate) stamp: Stamp,
    pub(crate) segment: Box<Segment>,
    pub(crate) pair: u32,
    pub(crate) path: PathId,
    /// The packet was damaged.
    pub(crate) corrupt: bool,
    pub(crate) copied: Copied,
}

/// The sources of a way in the event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    pub(crate) arrivals: usize,
    /// Packets enter the link. `None` if the entry is computed when the host sends.
    pub(crate) entries: Option<usize>,
    /// Packets leave a managed queue.
    pub(crate) dequeues: Option<usize>,
}

/// One direction of a path or of a shared link.
#[derive(Debug)]
#[expect(clippy::vec_box, reason = "the boxes are what is kept")]
pub(crate) struct SimplexLink {
    pub(crate) link: Link,
    /// The hosts' own links before this way, one for each pair; empty for a shared link.
    pub(crate) host_links: Vec<HostLink>,
    /// The way of the shared link that follows.
    pub(crate) next: Option<usize>,
    /// True if packets may not arrive as they were sent, because of a further way, damage or a
    /// middlebox.
    pub(crate) interferes: bool,
    sources: Sources,
    /// Packets between a host's own link and this one.
    entering: VecDeque<Packet>,
    /// Packets in a managed queue.
    queued: VecDeque<Packet>,
    /// Packets in flight, in the order of arrival.
    under_way: VecDeque<Packet>,
    /// Packets held back by reordering, in the order of arrival.
    held_back: VecDeque<Packet>,
    /// Decisions of a managed queue; empty between calls.
    fates: Vec<Fate>,
    /// Spare segments for duplicated packets.
    spare: Vec<Box<Segment>>,
    /// Number of segments allocated for copies.
    made: usize,
}

impl SimplexLink {
    pub(crate) fn new(
        link: Link,
        host_links: Vec<HostLink>,
        next: Option<usize>,
        interferes: bool,
        sources: Sources,
    ) -> SimplexLink {
        SimplexLink {
            link,
            host_links,
            next,
            interferes,
            sources,
            entering: VecDeque::new(),
            queued: VecDeque::new(),
            under_way: VecDeque::with_capacity(64),
            held_back: VecDeque::new(),
            fates: Vec::new(),
            spare: Vec::new(),
            made: 0,
        }
    }

    /// Copies a segment and returns the copy with its origin. Copies are reused ([`SimplexLink::keep`]), so
    /// the steady state allocates none. If no spare segment remains, their number doubles.
    #[inline(never)]
    fn copy(&mut self, segment: &Segment) -> (Box<Segment>, Copied) {
        if self.spare.is_empty() {
            let more = self.made.max(FIRST_SPARES);
            self.made += more;
            self.spare.reserve_exact(self.made);
            self.spare.extend((0..more).map(|_| Box::default()));
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.as_mut().clone_from(segment);
        (copy, if self.host_links.is_empty() { Copied::ByShared } else { Copied::ByPath })
    }

    /// Takes back the segment of a copy that this way made, and releases its payload and options.
    pub(crate) fn keep(&mut self, mut segment: Box<Segment>) {
        segment.payload = Payload::Empty;
        segment.options.clear();
        self.spare.push(segment);
    }

    /// Takes a packet of `size` bytes that leaves a host at its stamp. Returns it with the cause if
    /// the link drops it at once.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        queue: &mut EventQueue,
        packet: Packet,
        size: u32,
    ) -> Option<(Packet, DropCause)> {
        // Destructured so that in nearly every case the packet is first written to memory in the
        // ring.
        let Packet { stamp, segment, pair, path, corrupt, copied } = packet;
        let passes = match self.sources.entries {
            None => self.link.try_pass(stamp.at, size),
            Some(_) => None,
        };
        let arrives = match passes {
            Some(Ok(arrives)) => arrives,
            None => {
                let packet = Packet { stamp, segment, pair, path, corrupt, copied };
                return self.enter_slowly(queue, packet, size);
            }
            Some(Err(cause)) => {
                return Some((Packet { stamp, segment, pair, path, corrupt, copied }, cause));
            }
        };
        // `Time::NEVER` means that the rate is zero forever from here on.
        if arrives != Time::NEVER {
            let stamp = Stamp { at: arrives, ..stamp };
            self.push(queue, Packet { stamp, segment, pair, path, corrupt, copied }, false);
        }
        None
    }

    /// Handles a packet that enters the link later, or that the link may drop, delay or queue.
    #[inline(never)]
    fn enter_slowly(
        &mut self,
        queue: &mut EventQueue,
        packet: Packet,
        size: u32,
    ) -> Option<(Packet, DropCause)> {
        match self.sources.entries {
            None => self.offer(queue, packet, size),
            Some(entries) => {
                self.await_entry(queue, packet, entries);
                None
            }
        }
    }

    fn await_entry(&mut self, queue: &mut EventQueue, packet: Packet, entries: usize) {
        let first = packet.stamp;
        let at = self.entering.partition_point(|other| other.stamp < first);
        self.entering.insert(at, packet);
        if at == 0 {
            queue.set(entries, first);
        }
    }

    /// Offers the first entering packet to the link when its entry time has come.
    pub(crate) fn take_entry(&mut self, queue: &mut EventQueue) -> Option<(Packet, DropCause)> {
        let packet = self.entering.pop_front()?;
        if let (Some(next), Some(entries)) = (self.entering.front(), self.sources.entries) {
            queue.set(entries, next.stamp);
        }
        let size = packet.segment.ip_len();
        self.offer(queue, packet, size)
    }

    /// Offers a packet of `size` bytes to the link at its stamp. Stamps must not decrease.
    pub(crate) fn offer(
        &mut self,
        queue: &mut EventQueue,
        packet: Packet,
        size: u32,
    ) -> Option<(Packet, DropCause)> {
        let fate = self.link.offer(packet.stamp.at, size);
        if fate == Fate::Queued {
            self.queued.push_back(packet);
            self.arm_dequeues(queue);
            return None;
        }
        self.follow(queue, packet, fate)
    }

    /// Takes packets out of the managed queue for transmission, and moves dropped ones to
    /// `dropped`.
    pub(crate) fn take_dequeue(
        &mut self,
        queue: &mut EventQueue,
        now: Time,
        dropped: &mut VecDeque<(Packet, DropCause)>,
    ) {
        let mut fates = std::mem::take(&mut self.fates);
        self.link.dequeue(now, |fate| fates.push(fate));
        for fate in fates.drain(..) {
            let Some(packet) = self.queued.pop_front() else { break };
            dropped.extend(self.follow(queue, packet, fate));
        }
        self.fates = fates;
        self.arm_dequeues(queue);
    }

    fn arm_dequeues(&mut self, queue: &mut EventQueue) {
        let Some(dequeues) = self.sources.dequeues else { return };
        let next = self.link.next_dequeue();
        if next != queue.at(dequeues) {
            let order = queue.order();
            queue.set(dequeues, Stamp { at: next, order });
        }
    }

    fn follow(
        &mut self,
        queue: &mut EventQueue,
        packet: Packet,
        fate: Fate,
    ) -> Option<(Packet, DropCause)> {
        match fate {
            Fate::Drop(cause) => return Some((packet, cause)),
            // The rate is zero forever from here on.
            Fate::Deliver { arrives: Time::NEVER, .. } | Fate::Queued => {}
            Fate::Deliver { arrives, held_back, twin, corrupt, .. } => {
                // Destructured so that the packet stays in registers; `copy` needs only the
                // segment.
                let Packet { stamp, pair, path, corrupt: was, copied, segment } = packet;
                let corrupt = was | corrupt;
                let twin = twin.map(|at| (at, self.copy(&segment)));
                let stamp = Stamp { at: arrives, ..stamp };
                let packet = Packet { stamp, pair, path, corrupt, copied, segment };
                self.push(queue, packet, held_back);
                if let Some((at, (segment, copied))) = twin {
                    let stamp = Stamp { at, ..stamp };
                    let packet = Packet { stamp, pair, path, corrupt, copied, segment };
                    self.push(queue, packet, held_back);
                }
            }
        }
        None
    }

    /// Adds a packet to the packets in flight. Its stamp is its arrival time.
    #[inline(always)]
    fn push(&mut self, queue: &mut EventQueue, packet: Packet, held_back: bool) {
        let arrivals = self.sources.arrivals;
        let (ring, other) = if held_back {
            if self.held_back.capacity() == 0 {
                self.held_back.reserve(64);
            }
            (&mut self.held_back, &self.under_way)
        } else {
            (&mut self.under_way, &self.held_back)
        };
        if ring.is_empty() && other.front().is_none_or(|first| packet.stamp < first.stamp) {
            queue.set(arrivals, packet.stamp);
        }
        ring.push_back(packet);
    }

    /// Takes the packet whose arrival is due.
    #[inline(always)]
    pub(crate) fn take_arrival(&mut self, queue: &mut EventQueue) -> Option<Packet> {
        // The second ring is used only while packets are held back, which is rare.
        let plain = self.held_back.is_empty();
        let ring = if plain { &mut self.under_way } else { self.first_ring() };
        let packet = ring.pop_front()?;
        let ring = if plain { &mut self.under_way } else { self.first_ring() };
        if let Some(next) = ring.front() {
            let stamp = next.stamp;
            queue.set(self.sources.arrivals, stamp);
        }
        Some(packet)
    }

    /// Returns the packet whose arrival is due, if any.
    pub(crate) fn first_packet(&mut self) -> Option<&mut Packet> {
        self.first_ring().front_mut()
    }

    /// Returns the ring with the next arrival.
    #[inline(never)]
    fn first_ring(&mut self) -> &mut VecDeque<Packet> {
        let first = match (self.held_back.front(), self.under_way.front()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(late), Some(plain)) => plain.stamp <= late.stamp,
        };
        if first { &mut self.under_way } else { &mut self.held_back }
    }
}
