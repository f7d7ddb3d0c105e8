//! The paths between hosts. A link keeps its packets under way in a ring and has one entry in the
//! event queue, for the next arrival.

use crate::queue::{EventQueue, Stamp};
use plait_base::{PathId, Rate, Time};
use plait_link::{DropCause, Fate, HostLink, Link, LinkConfig, LinkCounters};
use plait_wire::Segment;
use std::collections::VecDeque;

/// Which way a segment travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

/// What happened to a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// A host handed it to its own link.
    Sent,
    /// It arrived at the other host.
    Delivered,
    /// The path dropped it.
    Dropped(DropCause),
}

/// One path.
#[derive(Clone, Debug)]
pub struct PathSetup {
    /// Its name; streams of random numbers are derived from it.
    pub name: String,
    /// Server to client.
    pub down: LinkConfig,
    /// Client to server.
    pub up: LinkConfig,
    /// Rate of the server's own link before the path.
    pub nic_down: Rate,
    /// Rate of the client's own link before the path.
    pub nic_up: Rate,
}

#[derive(Debug)]
struct UnderWay {
    stamp: Stamp,
    pair: usize,
    segment: Segment,
}

/// One direction of one path.
#[derive(Debug)]
struct Way {
    link: Link,
    /// The hosts' own links before it, one for each pair of hosts.
    host_links: Vec<HostLink>,
    /// Packets between a host's own link and the path, where several hosts feed the path.
    entering: VecDeque<UnderWay>,
    /// Packets on their way to the other end, in the order of arrival.
    under_way: VecDeque<UnderWay>,
}

/// A segment that arrives.
pub(crate) struct Arrival {
    pub(crate) pair: usize,
    pub(crate) path: PathId,
    pub(crate) direction: Direction,
    pub(crate) segment: Segment,
}

/// What an event of the network was.
pub(crate) enum Due {
    /// A segment arrives at a host.
    Arrives(Arrival),
    /// A segment was dropped as it entered a path.
    Dropped(Arrival, DropCause),
    /// A segment entered a path.
    Nothing,
}

/// All paths. Its sources in the event queue are numbered from zero: two for each direction of
/// each path, arrivals and entries.
#[derive(Debug)]
pub(crate) struct Network {
    ways: Vec<Way>,
    shared: bool,
}

const SOURCES_PER_WAY: usize = 2;

impl Network {
    pub(crate) fn new(paths: &[PathSetup], pairs: usize, seed: u64) -> Network {
        let way = |config: &LinkConfig, nic: Rate, name: &str, direction: &str| Way {
            link: Link::new(config, seed, &[name, direction]),
            host_links: (0..pairs).map(|_| HostLink::new(nic)).collect(),
            entering: VecDeque::new(),
            under_way: VecDeque::with_capacity(64),
        };
        let mut ways = Vec::with_capacity(2 * paths.len());
        for path in paths {
            ways.push(way(&path.down, path.nic_down, &path.name, "down"));
            ways.push(way(&path.up, path.nic_up, &path.name, "up"));
        }
        Network { ways, shared: pairs > 1 }
    }

    pub(crate) fn sources(&self) -> usize {
        SOURCES_PER_WAY * self.ways.len()
    }

    fn index(path: PathId, direction: Direction) -> usize {
        2 * path.index() + usize::from(direction == Direction::Up)
    }

    /// Takes a segment from a host. Hands it back with the cause if it is known to be dropped.
    pub(crate) fn send(
        &mut self,
        queue: &mut EventQueue,
        now: Time,
        pair: usize,
        path: PathId,
        direction: Direction,
        segment: Segment,
    ) -> Option<(Segment, DropCause)> {
        let index = Network::index(path, direction);
        let way = self.ways.get_mut(index)?;
        let size = segment.ip_len();
        let enters = way.host_links[pair].offer(now, size);
        let order = queue.order();
        let packet = UnderWay { stamp: Stamp { at: enters, order }, pair, segment };
        // One host alone feeds the link in the order of time, so the link can be asked now.
        if !self.shared {
            return way.offer(queue, index, packet, size);
        }
        let first = packet.stamp;
        let at = way.entering.partition_point(|other| other.stamp < first);
        way.entering.insert(at, packet);
        if at == 0 {
            queue.set(SOURCES_PER_WAY * index + 1, first);
        }
        None
    }

    /// The event of `source` is due: a segment arrives, or one enters the path and may be dropped.
    pub(crate) fn due(&mut self, queue: &mut EventQueue, source: usize) -> Due {
        let index = source / SOURCES_PER_WAY;
        let way = &mut self.ways[index];
        let path = PathId((index / 2) as u16);
        let direction = if index.is_multiple_of(2) { Direction::Down } else { Direction::Up };
        if source % SOURCES_PER_WAY == 1 {
            let Some(packet) = way.entering.pop_front() else { return Due::Nothing };
            if let Some(next) = way.entering.front() {
                queue.set(source, next.stamp);
            }
            let size = packet.segment.ip_len();
            let pair = packet.pair;
            let dropped = way.offer(queue, index, packet, size);
            return dropped.map_or(Due::Nothing, |(segment, cause)| {
                Due::Dropped(Arrival { pair, path, direction, segment }, cause)
            });
        }
        let Some(packet) = way.under_way.pop_front() else { return Due::Nothing };
        if let Some(next) = way.under_way.front() {
            queue.set(source, next.stamp);
        }
        Due::Arrives(Arrival { pair: packet.pair, path, direction, segment: packet.segment })
    }

    /// When the last packet that a host handed over leaves the host's own link.
    pub(crate) fn left_host(&self, pair: usize, path: PathId, direction: Direction) -> Time {
        self.ways
            .get(Network::index(path, direction))
            .map_or(Time::ZERO, |way| way.host_links[pair].free_at())
    }

    pub(crate) fn queued_bytes(&mut self, path: PathId, direction: Direction, now: Time) -> u64 {
        self.ways
            .get_mut(Network::index(path, direction))
            .map_or(0, |way| way.link.queued_bytes(now))
    }

    pub(crate) fn counters(&self, path: PathId, direction: Direction) -> LinkCounters {
        self.ways
            .get(Network::index(path, direction))
            .map(|way| way.link.counters())
            .unwrap_or_default()
    }
}

impl Way {
    /// Offers a packet to the link at its stamp.
    fn offer(
        &mut self,
        queue: &mut EventQueue,
        index: usize,
        packet: UnderWay,
        size: u32,
    ) -> Option<(Segment, DropCause)> {
        match self.link.offer(packet.stamp.at, size) {
            Fate::Drop(cause) => Some((packet.segment, cause)),
            // The rate is zero for ever from here on.
            Fate::Deliver { arrives: Time::NEVER, .. } => None,
            Fate::Deliver { arrives, .. } => {
                let stamp = Stamp { at: arrives, order: packet.stamp.order };
                if self.under_way.is_empty() {
                    queue.set(SOURCES_PER_WAY * index, stamp);
                }
                self.under_way.push_back(UnderWay { stamp, ..packet });
                None
            }
        }
    }
}
