//! The paths between hosts, and the links that they share.

use crate::middlebox::{Middlebox, MiddleboxConfig, MiddleboxCounters};
use crate::queue::{EventQueue, Stamp};
use crate::way::{Copied, Packet, Sources, Way};
use plait_base::{Chance, PathId, Rate, Time};
use plait_link::{Aqm, DropCause, HostLink, Link, LinkConfig, LinkCounters};
use plait_wire::Segment;
use std::collections::VecDeque;

/// Which way a segment travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
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
    /// The path dropped it, or the other host did because it was damaged.
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
    /// The shared link, by its place in the list of them, that packets go through after the path's
    /// own link, each way.
    pub via: Option<usize>,
    /// What meddles with segments just before they arrive.
    pub middlebox: MiddleboxConfig,
    /// Spans, apart from each other, in which the clients have no address on the path: their hosts
    /// know at once (REMOVE_ADDR), and nothing gets through.
    pub removed: Vec<(Time, Time)>,
    /// Spans, apart from each other, for which the clients ask by MP_PRIO that subflows on the path
    /// that are there as they begin be backups.
    pub resting: Vec<(Time, Time)>,
}

/// A link that several paths go through. Its packets meet it after their path's own link, so its
/// delay comes on top of the path's.
#[derive(Clone, Debug)]
pub struct SharedLink {
    /// Its name; streams of random numbers are derived from it.
    pub name: String,
    /// Server to client.
    pub down: LinkConfig,
    /// Client to server.
    pub up: LinkConfig,
}

/// A segment that arrives.
pub(crate) struct Arrival {
    pub(crate) pair: usize,
    pub(crate) path: PathId,
    pub(crate) direction: Direction,
    pub(crate) segment: Box<Segment>,
    /// The way that made this copy, where it is one: the segment goes back there.
    pub(crate) copier: Option<usize>,
}

/// What a source in the event queue stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Task {
    Arrival,
    Entry,
    Dequeue,
}

/// All paths and the links they share. Its sources in the event queue are numbered from zero.
#[derive(Debug)]
pub(crate) struct Network {
    /// Two for each path, down first, then two for each shared link.
    ways: Vec<Way>,
    /// How many of them are those of paths.
    own: usize,
    /// By path and direction, as the ways of paths.
    middleboxes: Vec<Option<Box<Middlebox>>>,
    /// The way of each source.
    sources: Vec<(usize, Task)>,
    /// Packets dropped since the last time somebody asked.
    dropped: VecDeque<(Packet, DropCause)>,
}

impl Network {
    pub(crate) fn new(
        paths: &[PathSetup],
        shared: &[SharedLink],
        pairs: usize,
        seed: u64,
    ) -> Network {
        let own = 2 * paths.len();
        let mut network = Network {
            ways: Vec::new(),
            own,
            middleboxes: Vec::new(),
            sources: Vec::new(),
            dropped: VecDeque::new(),
        };
        for path in paths {
            let via = path.via.filter(|link| *link < shared.len());
            let hosts = |nic: Rate| (0..pairs).map(|_| HostLink::new(nic)).collect();
            for (config, nic, up) in [(&path.down, path.nic_down, 0), (&path.up, path.nic_up, 1)] {
                let mut config = config.clone();
                config.outages.extend(&path.removed);
                let link = Link::new(&config, seed, &[&path.name, DIRECTIONS[up]]);
                let next = via.map(|link| own + 2 * link + up);
                let name = [path.name.as_str(), DIRECTIONS[up]];
                network.middleboxes.push(Middlebox::new(path.middlebox, seed, &name));
                network.add(&config, link, hosts(nic), next);
            }
        }
        for it in shared {
            for (config, direction) in [(&it.down, DIRECTIONS[0]), (&it.up, DIRECTIONS[1])] {
                let link = Link::new(config, seed, &["shared", &it.name, direction]);
                network.add(config, link, Vec::new(), None);
            }
        }
        network
    }

    fn add(
        &mut self,
        config: &LinkConfig,
        link: Link,
        host_links: Vec<HostLink>,
        next: Option<usize>,
    ) {
        let managed = config.aqm != Aqm::DropTail;
        // One host alone feeds a link in the order of time, so the link can be asked at once; not
        // so several, and a managed queue has to be emptied up to then.
        let enters = host_links.len() > 1 || (managed && !host_links.is_empty());
        let way = self.ways.len();
        // A shared link has what comes of all its paths.
        let shared = host_links.is_empty();
        let altered = self.middleboxes.iter().any(Option::is_some);
        let corrupts = config.corrupt != Chance::NEVER;
        let interferes = shared || next.is_some() || corrupts || altered;
        let mut source = |task| {
            self.sources.push((way, task));
            self.sources.len() - 1
        };
        let sources = Sources {
            arrivals: source(Task::Arrival),
            entries: enters.then(|| source(Task::Entry)),
            dequeues: managed.then(|| source(Task::Dequeue)),
        };
        self.ways.push(Way::new(link, host_links, next, interferes, sources));
    }

    pub(crate) fn sources(&self) -> usize {
        self.sources.len()
    }

    fn index(path: PathId, direction: Direction) -> usize {
        2 * path.index() + usize::from(direction == Direction::Up)
    }

    /// Takes a segment from a host. Hands it back with the cause if it is known to be dropped.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        queue: &mut EventQueue,
        now: Time,
        pair: usize,
        path: PathId,
        direction: Direction,
        segment: Box<Segment>,
    ) -> Option<(Box<Segment>, DropCause)> {
        let index = Network::index(path, direction);
        let way = self.ways[..self.own].get_mut(index)?;
        let size = segment.ip_len();
        let enters = way.host_links[pair].offer(now, size);
        let stamp = Stamp { at: enters, order: queue.order() };
        let (pair, copied) = (pair as u32, Copied::Not);
        let packet = Packet { stamp, segment, pair, path, corrupt: false, copied };
        way.enter(queue, packet, size).map(|(packet, cause)| (packet.segment, cause))
    }

    /// The event of `source` is due at `now`: a segment may arrive, and some may be dropped
    /// ([`Network::poll_dropped`]).
    #[inline(always)]
    pub(crate) fn due(
        &mut self,
        queue: &mut EventQueue,
        now: Time,
        source: usize,
    ) -> Option<Arrival> {
        let (index, task) = self.sources[source];
        if task != Task::Arrival {
            self.pass_in(queue, now, index, task);
            return None;
        }
        let mut way = &mut self.ways[index];
        if way.interferes {
            if !self.arrives(queue, now, index) {
                return None;
            }
            way = &mut self.ways[index];
        }
        let packet = way.take_arrival(queue)?;
        Some(arrival(packet, index))
    }

    /// Packets enter a link, or leave its queue.
    #[inline(never)]
    fn pass_in(&mut self, queue: &mut EventQueue, now: Time, index: usize, task: Task) {
        let way = &mut self.ways[index];
        match task {
            Task::Entry => self.dropped.extend(way.take_entry(queue)),
            Task::Dequeue => way.take_dequeue(queue, now, &mut self.dropped),
            Task::Arrival => {}
        }
    }

    /// Whether the packet that has come to the end of a way arrives at a host, as what a middlebox makes
    /// of it. If not it is dropped, or goes on to another way.
    #[inline(never)]
    fn arrives(&mut self, queue: &mut EventQueue, now: Time, index: usize) -> bool {
        let way = &mut self.ways[index];
        let next = way.next;
        let Some(packet) = way.first_packet() else { return false };
        if next.is_none() && !packet.corrupt {
            let own = Network::index(packet.path, way_direction(index));
            if let Some(Some(middlebox)) = self.middleboxes.get_mut(own) {
                middlebox.pass(now, &mut packet.segment);
            }
            return true;
        }
        let Some(packet) = way.take_arrival(queue) else { return false };
        match next {
            Some(next) => {
                let size = packet.segment.ip_len();
                self.dropped.extend(self.ways[next].offer(queue, packet, size));
            }
            None => self.dropped.push_back((packet, DropCause::Corrupt)),
        }
        false
    }

    /// A segment that the last event dropped.
    #[inline]
    pub(crate) fn poll_dropped(&mut self, source: usize) -> Option<(Arrival, DropCause)> {
        let (packet, cause) = self.dropped.pop_front()?;
        Some((arrival(packet, self.sources[source].0), cause))
    }

    /// Takes back the segment of a copy that was made by the way `copier`.
    #[inline(never)]
    pub(crate) fn keep(&mut self, copier: usize, segment: Box<Segment>) {
        self.ways[copier].keep(segment);
    }

    /// When the last packet that a host handed over leaves the host's own link.
    pub(crate) fn left_host(&self, pair: usize, path: PathId, direction: Direction) -> Time {
        self.ways
            .get(Network::index(path, direction))
            .map_or(Time::ZERO, |way| way.host_links[pair].free_at())
    }

    /// Bytes in the queue of a path and in that of the link it shares.
    pub(crate) fn queued_bytes(&mut self, path: PathId, direction: Direction, now: Time) -> u64 {
        let mut next = Some(Network::index(path, direction));
        let mut bytes = 0;
        while let Some(way) = next.and_then(|index| self.ways.get_mut(index)) {
            bytes += way.link.queued_bytes(now);
            next = way.next;
        }
        bytes
    }

    /// What the middleboxes of each path did.
    pub(crate) fn middlebox_counters(&self) -> Vec<MiddleboxCounters> {
        let done =
            |it: &Option<Box<Middlebox>>| it.as_ref().map(|it| it.done()).unwrap_or_default();
        self.middleboxes.chunks_exact(2).map(|ways| done(&ways[0]).plus(done(&ways[1]))).collect()
    }

    /// Counters of each path's own link, down and up.
    pub(crate) fn path_counters(&self) -> Vec<(LinkCounters, LinkCounters)> {
        Network::counters(&self.ways[..self.own])
    }

    /// Counters of each shared link, down and up.
    pub(crate) fn shared_counters(&self) -> Vec<(LinkCounters, LinkCounters)> {
        Network::counters(&self.ways[self.own..])
    }

    /// Bytes of each source of cross traffic towards the client, by path and then by shared link.
    pub(crate) fn cross_bytes(&mut self, now: Time) -> Vec<Vec<u64>> {
        self.ways.iter_mut().step_by(2).map(|way| way.link.cross_bytes(now)).collect()
    }

    fn counters(ways: &[Way]) -> Vec<(LinkCounters, LinkCounters)> {
        let pairs = ways.chunks_exact(2);
        pairs.map(|pair| (pair[0].link.counters(), pair[1].link.counters())).collect()
    }
}

/// Words for streams of random numbers.
const DIRECTIONS: [&str; 2] = ["down", "up"];

/// Which way a way leads.
const fn way_direction(way: usize) -> Direction {
    if way.is_multiple_of(2) { Direction::Down } else { Direction::Up }
}

/// A packet at the end of a way.
fn arrival(packet: Packet, way: usize) -> Arrival {
    let direction = way_direction(way);
    let copier = match packet.copied {
        Copied::Not => None,
        Copied::ByPath => Some(Network::index(packet.path, direction)),
        Copied::ByShared => Some(way),
    };
    let Packet { pair, path, segment, .. } = packet;
    Arrival { pair: pair as usize, path, direction, segment, copier }
}
