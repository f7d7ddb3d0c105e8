//! The paths between hosts, and the links that they share.

use crate::middlebox::{Middlebox, MiddleboxConfig, MiddleboxCounters};
use crate::queue::{EventQueue, Stamp};
use crate::simplex_link::{Copied, Packet, SimplexLink, Sources};
use plait_base::{Chance, PathId, Rate, Time};
use plait_link::{Aqm, DropCause, HostLink, Link, LinkConfig, LinkCounters};
use plait_wire::Segment;
use std::collections::VecDeque;

/// The direction in which a segment travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Direction {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

/// A stage in the life of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// The host sent it on its own link.
    Sent,
    /// It arrived at the other host.
    Delivered,
    /// The path dropped it, or the receiving host dropped it because it was damaged.
    Dropped(DropCause),
}

/// The configuration of one path.
#[derive(Clone, Debug)]
pub struct PathSetup {
    /// Name of the path; its random streams are derived from it.
    pub name: String,
    /// The link from server to client.
    pub down: LinkConfig,
    /// The link from client to server.
    pub up: LinkConfig,
    /// Rate of the server's own link, which precedes the path's link.
    pub nic_down: Rate,
    /// Rate of the client's own link, which precedes the path's link.
    pub nic_up: Rate,
    /// Index of the shared link that packets cross after the path's own link, in both directions.
    /// An index without a shared link counts as `None`.
    pub via: Option<usize>,
    /// Middlebox that changes segments just before they arrive.
    pub middlebox: MiddleboxConfig,
    /// Disjoint spans in which the clients have no address on the path. Each client sends
    /// REMOVE_ADDR at once, and the path delivers nothing during the span.
    pub removed: Vec<(Time, Time)>,
    /// Disjoint spans in which the clients declare the path a backup. At the start of each span
    /// they send MP_PRIO for the subflows that exist then.
    pub resting: Vec<(Time, Time)>,
}

/// A link shared by several paths. Packets cross it after their path's own link, so its delay is
/// added to the path's delay.
#[derive(Clone, Debug)]
pub struct SharedLink {
    /// Name of the link; its random streams are derived from it.
    pub name: String,
    /// The link from server to client.
    pub down: LinkConfig,
    /// The link from client to server.
    pub up: LinkConfig,
}

/// A segment that arrives at a host, or that was dropped.
pub(crate) struct Arrival {
    pub(crate) pair: usize,
    pub(crate) path: PathId,
    pub(crate) direction: Direction,
    pub(crate) segment: Box<Segment>,
    /// The simplex link that made this copy, if it is one. The segment returns there for reuse.
    pub(crate) copier: Option<usize>,
}

/// The kind of event that a source in the event queue represents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Task {
    Arrival,
    Entry,
    Dequeue,
}

/// All paths and their shared links. Its sources in the event queue are numbered from zero.
#[derive(Debug)]
pub(crate) struct Network {
    /// Two for each path, down first, then two for each shared link.
    simplex_links: Vec<SimplexLink>,
    /// Number of simplex links that belong to paths.
    own: usize,
    /// By path and direction, in the order of the simplex links of paths.
    middleboxes: Vec<Option<Box<Middlebox>>>,
    /// The simplex link and the kind of event of each source.
    sources: Vec<(usize, Task)>,
    /// Packets dropped but not yet returned by [`Network::poll_dropped`].
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
            simplex_links: Vec::new(),
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
        // A single host feeds an unmanaged link in time order, so the link can decide at once.
        // Several hosts may be out of order, and a managed queue must first be drained up to the
        // entry time.
        let enters = host_links.len() > 1 || (managed && !host_links.is_empty());
        let way = self.simplex_links.len();
        // Packets of every path enter a shared link.
        let shared = host_links.is_empty();
        let altered = self.middleboxes.iter().any(Option::is_some);
        let corrupts = config.impairments.corrupt != Chance::NEVER;
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
        self.simplex_links.push(SimplexLink::new(link, host_links, next, interferes, sources));
    }

    pub(crate) fn sources(&self) -> usize {
        self.sources.len()
    }

    fn index(path: PathId, direction: Direction) -> usize {
        2 * path.index() + usize::from(direction == Direction::Up)
    }

    /// Takes a segment from a host. Returns it with the cause if the link drops it at once.
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
        let way = self.simplex_links[..self.own].get_mut(index)?;
        let size = segment.ip_len();
        let enters = way.host_links[pair].offer(now, size);
        let stamp = Stamp { at: enters, order: queue.order() };
        let (pair, copied) = (pair as u32, Copied::Not);
        let packet = Packet { stamp, segment, pair, path, corrupt: false, copied };
        way.enter(queue, packet, size).map(|(packet, cause)| (packet.segment, cause))
    }

    /// Handles the event of `source` at `now`. Returns a segment if one arrives; the event may also
    /// drop some ([`Network::poll_dropped`]).
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
        let mut way = &mut self.simplex_links[index];
        if way.interferes {
            if !self.arrives(queue, now, index) {
                return None;
            }
            way = &mut self.simplex_links[index];
        }
        let packet = way.take_arrival(queue)?;
        Some(arrival(packet, index))
    }

    /// Moves packets into a link, or out of its queue.
    #[inline(never)]
    fn pass_in(&mut self, queue: &mut EventQueue, now: Time, index: usize, task: Task) {
        let way = &mut self.simplex_links[index];
        match task {
            Task::Entry => self.dropped.extend(way.take_entry(queue)),
            Task::Dequeue => way.take_dequeue(queue, now, &mut self.dropped),
            Task::Arrival => {}
        }
    }

    /// Returns true if the packet at the end of a simplex link arrives at a host, after the middlebox
    /// changed it. Otherwise the packet is dropped or enters the next link.
    #[inline(never)]
    fn arrives(&mut self, queue: &mut EventQueue, now: Time, index: usize) -> bool {
        let way = &mut self.simplex_links[index];
        let next = way.next;
        let Some(packet) = way.first_packet() else { return false };
        if next.is_none() && !packet.corrupt {
            let own = Network::index(packet.path, direction_of(index));
            if let Some(Some(middlebox)) = self.middleboxes.get_mut(own) {
                middlebox.pass(now, &mut packet.segment);
            }
            return true;
        }
        let Some(packet) = way.take_arrival(queue) else { return false };
        match next {
            Some(next) => {
                let size = packet.segment.ip_len();
                self.dropped.extend(self.simplex_links[next].offer(queue, packet, size));
            }
            None => self.dropped.push_back((packet, DropCause::Corrupt)),
        }
        false
    }

    /// Returns a segment that the last event dropped.
    #[inline]
    pub(crate) fn poll_dropped(&mut self, source: usize) -> Option<(Arrival, DropCause)> {
        let (packet, cause) = self.dropped.pop_front()?;
        Some((arrival(packet, self.sources[source].0), cause))
    }

    /// Takes back the segment of a copy that the simplex link `copier` made.
    #[inline(never)]
    pub(crate) fn keep(&mut self, copier: usize, segment: Box<Segment>) {
        self.simplex_links[copier].keep(segment);
    }

    /// Returns the time at which the host's last packet leaves the host's own link.
    pub(crate) fn left_host(&self, pair: usize, path: PathId, direction: Direction) -> Time {
        self.simplex_links
            .get(Network::index(path, direction))
            .map_or(Time::ZERO, |way| way.host_links[pair].free_at())
    }

    /// Returns the bytes queued on a path and on its shared link.
    pub(crate) fn queued_bytes(&mut self, path: PathId, direction: Direction, now: Time) -> u64 {
        let mut next = Some(Network::index(path, direction));
        let mut bytes = 0;
        while let Some(way) = next.and_then(|index| self.simplex_links.get_mut(index)) {
            bytes += way.link.queued_bytes(now);
            next = way.next;
        }
        bytes
    }

    /// Returns the counters of each path's middleboxes, both directions together.
    pub(crate) fn middlebox_counters(&self) -> Vec<MiddleboxCounters> {
        let done =
            |it: &Option<Box<Middlebox>>| it.as_ref().map(|it| it.done()).unwrap_or_default();
        self.middleboxes.chunks_exact(2).map(|both| done(&both[0]).plus(done(&both[1]))).collect()
    }

    /// Returns the counters of each path's own link, down and up.
    pub(crate) fn path_counters(&self) -> Vec<(LinkCounters, LinkCounters)> {
        Network::counters(&self.simplex_links[..self.own])
    }

    /// Returns the counters of each shared link, down and up.
    pub(crate) fn shared_counters(&self) -> Vec<(LinkCounters, LinkCounters)> {
        Network::counters(&self.simplex_links[self.own..])
    }

    /// Returns the bytes of each source of cross traffic towards the client, by path, then by
    /// shared link.
    pub(crate) fn cross_bytes(&mut self, now: Time) -> Vec<Vec<u64>> {
        self.simplex_links.iter_mut().step_by(2).map(|way| way.link.cross_bytes(now)).collect()
    }

    fn counters(links: &[SimplexLink]) -> Vec<(LinkCounters, LinkCounters)> {
        let pairs = links.chunks_exact(2);
        pairs.map(|pair| (pair[0].link.counters(), pair[1].link.counters())).collect()
    }
}

/// Names of the directions in random streams.
const DIRECTIONS: [&str; 2] = ["down", "up"];

/// Returns the direction of a simplex link.
const fn direction_of(way: usize) -> Direction {
    if way.is_multiple_of(2) { Direction::Down } else { Direction::Up }
}

/// Converts a packet at the end of a simplex link.
fn arrival(packet: Packet, way: usize) -> Arrival {
    let direction = direction_of(way);
    let copier = match packet.copied {
        Copied::Not => None,
        Copied::ByPath => Some(Network::index(packet.path, direction)),
        Copied::ByShared => Some(way),
    };
    let Packet { pair, path, segment, .. } = packet;
    Arrival { pair: pair as usize, path, direction, segment, copier }
}
