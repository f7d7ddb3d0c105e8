//! The event loop.

mod conn_slots;
mod onlookers;
mod serving;
mod telling;

use crate::addresses::{dialled, path_name};
use crate::changes::PathChanges;
use crate::digest::RunDigest;
use crate::host::{ConnSlot, Host};
use crate::network::{Arrival, Direction, Hop, Network};
use crate::queue::EventQueue;
use crate::setup::{
    ConnectionOutcome, ConnectionSetup, Outcome, PairMemory, PairSetup, Setup, Snapshot, Watch,
};
use onlookers::{Onlookers, SegmentEvent};
use plait_app::{Ends, Observer, Role};
use plait_base::{ConnId, PathId, Span, Time};
use plait_core::{Detail, Event, MemorySettings};
use plait_wire::Segment;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of events between two checks for cancellation of a run.
pub const EVENTS_BETWEEN_LOOKS: u64 = 4_096;

/// Runs a set-up to its end.
#[must_use]
pub fn run(setup: &Setup) -> Outcome {
    run_world(setup, &|pair, session| workload_apps(setup, pair, session), None)
}

/// Runs a set-up to its end and reports to `watch`.
#[must_use]
pub fn run_watched(setup: &Setup, watch: &mut dyn Watch) -> Outcome {
    run_apps(setup, &|pair, session| workload_apps(setup, pair, session), watch)
}

/// Runs a set-up as [`run_watched`] does. Returns `None` if `cancelled` becomes true before the
/// end: the run then stops within [`EVENTS_BETWEEN_LOOKS`] events.
#[must_use]
pub fn run_unless(setup: &Setup, watch: &mut dyn Watch, cancelled: &AtomicBool) -> Option<Outcome> {
    let apps = |pair, session| workload_apps(setup, pair, session);
    let mut world = World::new(setup, &apps, Some(watch));
    world.start();
    while !cancelled.load(Ordering::Relaxed) {
        if world.run(EVENTS_BETWEEN_LOOKS) {
            return Some(world.finish());
        }
    }
    None
}

fn workload_apps(setup: &Setup, pair: usize, session: usize) -> Vec<Ends> {
    setup.pairs[pair].connections[session].workload.apps()
}

/// Runs a set-up with apps in place of its workloads. `apps` gets the pair and the session within
/// the pair, and returns one [`Ends`] for each connection of the session.
///
/// Measures are still computed for the workloads. `apps` is called again if the server's side of a
/// connection restarts.
#[must_use]
pub fn run_apps(
    setup: &Setup,
    apps: &dyn Fn(usize, usize) -> Vec<Ends>,
    watch: &mut dyn Watch,
) -> Outcome {
    run_world(setup, apps, Some(watch))
}

fn run_world<'a>(
    setup: &'a Setup,
    apps: &'a dyn Fn(usize, usize) -> Vec<Ends>,
    watch: Option<&'a mut dyn Watch>,
) -> Outcome {
    let mut world = World::new(setup, apps, watch);
    world.start();
    while !world.run(u64::MAX) {}
    world.finish()
}

/// First port of the servers; each connection of a pair has its own port.
const FIRST_PORT: u16 = 443;

/// Returns true for a client. Hosts come in pairs, the client first.
const fn is_client(host: usize) -> bool {
    host.is_multiple_of(2)
}

const fn client_of(pair: usize) -> usize {
    2 * pair
}

/// Returns the host that receives in a direction; [`peer`] returns the sender.
fn receiver(pair: usize, direction: Direction) -> usize {
    client_of(pair) + usize::from(direction == Direction::Up)
}

/// Returns the other host of a pair.
const fn peer(host: usize) -> usize {
    host ^ 1
}

/// Makes the hosts of a pair remember the paths of a run.
fn remember(client: &mut Host, server: &mut Host, memory: &PairMemory, paths: usize) {
    let (own, ssthresh) = (Some(dialled()), memory.ssthresh);
    let settings = MemorySettings { own, ssthresh, ..MemorySettings::default() };
    for (host, entries) in [(client, &memory.client), (server, &memory.server)] {
        let side = host.side;
        let paths = (0..paths as u32).map(PathId);
        host.remember(&settings, paths.map(|path| (path, path_name(side, path))), entries);
    }
}

/// Creates an observer for each connection of a pair.
fn observers(setup: &Setup, client: &Host, pair: usize) -> Vec<Observer> {
    let observer = |slot: &ConnSlot| {
        let ConnectionSetup { workload, start, .. } = &setup.pairs[pair].connections[slot.session];
        Observer::new(workload, setup.paths.len(), *start)
    };
    client.slots.iter().map(observer).collect()
}

/// Returns true if the apps of both hosts are done. A connection that was never opened is done when
/// its client app is done.
fn all_done(client: &Host, server: &Host) -> bool {
    client.slots.iter().zip(&server.slots).all(|(near, far)| {
        near.app.done() && (far.app.done() || near.index > 0 && near.conn.is_none())
    })
}

struct World<'a> {
    setup: &'a Setup,
    apps: &'a dyn Fn(usize, usize) -> Vec<Ends>,
    onlookers: Onlookers<'a>,
    now: Time,
    /// Time at which the loop must stop for a sample or for the end of the run.
    halt: Time,
    queue: EventQueue,
    network: Network,
    /// Client and server of each pair.
    hosts: Vec<Host>,
    /// By pair, then by connection, in the order of the hosts' slots.
    observers: Vec<Vec<Observer>>,
    failed: Vec<Vec<Option<Time>>>,
    digest: RunDigest,
    next_sample: Time,
    /// The watcher needs every event, in order.
    watched: bool,
    /// An app is done, or an invariant was violated, so the run may be over.
    ending: bool,
    /// Last events of an endpoint, on their way to the observers.
    told: Vec<(ConnId, Event)>,
}

impl<'a> World<'a> {
    fn new(
        setup: &'a Setup,
        apps: &'a dyn Fn(usize, usize) -> Vec<Ends>,
        watch: Option<&'a mut dyn Watch>,
    ) -> World<'a> {
        let onlookers = Onlookers::new(setup, watch);
        let asked = onlookers.detail();
        let network = Network::new(&setup.paths, &setup.shared, setup.pairs.len(), setup.seed);
        let mut hosts = Vec::with_capacity(2 * setup.pairs.len());
        for (pair, config) in setup.pairs.iter().enumerate() {
            let mut client = Host::new(Role::Client, pair, setup.seed);
            let mut server = Host::new(Role::Server, pair, setup.seed);
            let detail = if config.background { Detail::Measures } else { asked };
            client.changes = PathChanges::of(&setup.paths);
            let to_kernel = |it: &ConnectionSetup| it.client.config.buffers.kernel.is_some();
            server.sends_first = config.connections.iter().any(to_kernel);
            let starts = config.connections.iter().map(|connection| connection.start);
            client.next_dial = starts.min().unwrap_or(Time::NEVER);
            client.endpoint.record_events(detail);
            server.endpoint.record_events(detail);
            client.endpoint.check_invariants(setup.check);
            server.endpoint.check_invariants(setup.check);
            if let Some(memory) = &config.memory {
                remember(&mut client, &mut server, memory, setup.paths.len());
            }
            for (session, connection) in config.connections.iter().enumerate() {
                // Both ends number the server's addresses in the same order.
                for address in &connection.server.addresses {
                    client.endpoint.number_address(*address);
                    server.endpoint.number_address(*address);
                }
                for (index, (client_app, server_app)) in apps(pair, session).into_iter().enumerate()
                {
                    let port = FIRST_PORT + client.slots.len() as u16;
                    client.add(session, index, client_app);
                    server.add(session, index, server_app);
                    server.endpoint.listen(port, connection.server.clone());
                }
            }
            client.note_wakes();
            hosts.push(client);
            hosts.push(server);
        }
        let observers: Vec<Vec<Observer>> =
            (0..setup.pairs.len()).map(|pair| observers(setup, &hosts[2 * pair], pair)).collect();
        let queue = EventQueue::new(network.sources() + hosts.len());
        let next_sample = onlookers.interval().map_or(Time::NEVER, |_| Time::ZERO);
        World {
            setup,
            apps,
            onlookers,
            now: Time::ZERO,
            halt: Time::ZERO,
            queue,
            network,
            hosts,
            failed: observers.iter().map(|pair| vec![None; pair.len()]).collect(),
            observers,
            digest: RunDigest::default(),
            next_sample,
            watched: asked == Detail::Everything,
            ending: true,
            told: Vec::new(),
        }
    }

    fn start(&mut self) {
        for pair in 0..self.setup.pairs.len() {
            self.rearm(client_of(pair));
        }
    }

    /// Handles at most `most` events. Returns true if the run is over.
    fn run(&mut self, most: u64) -> bool {
        for _ in 0..most {
            let Some((at, source)) = self.queue.pop() else { return true };
            if at >= self.halt && !self.goes_on_at(at) {
                return true;
            }
            self.now = at;
            let host = match source.checked_sub(self.network.sources()) {
                None => self.on_network(source),
                Some(host) => {
                    self.on_wake(host);
                    Some(host)
                }
            };
            if let Some(host) = host {
                self.serve(host);
            }
            if self.ending {
                if self.onlookers.violation.is_some() || self.over() {
                    return true;
                }
                self.ending = self.setup.linger;
            }
        }
        false
    }

    /// Returns true if the run continues at `at`, which is not before [`World::halt`]. First
    /// reports the samples that are due by then.
    #[cold]
    fn goes_on_at(&mut self, at: Time) -> bool {
        if at > self.setup.until {
            self.now = self.setup.until;
            return false;
        }
        let goes_on = self.sample_until(at);
        self.halt = self.next_sample.min(self.setup.until + Span::from_nanos(1));
        goes_on
    }

    fn over(&self) -> bool {
        let linger = self.setup.linger;
        let mut pairs = self.setup.pairs.iter().zip(self.hosts.chunks_exact(2));
        pairs.all(|(pair, hosts)| {
            pair.background
                || all_done(&hosts[0], &hosts[1]) && (!linger || hosts.iter().all(Host::has_left))
        })
    }

    /// Shows a segment to the onlookers.
    #[inline(always)]
    fn show(&mut self, hop: Hop, pair: usize, path: PathId, way: Direction, segment: &Segment) {
        let now = self.now;
        let event = || SegmentEvent { now, hop, pair, path, way, segment };
        if !self.onlookers.on_segment(event) {
            self.ending = true;
        }
    }

    /// Reports the samples that are due until `at`. Returns false if the watcher ends the run.
    fn sample_until(&mut self, at: Time) -> bool {
        if self.next_sample > at {
            return true;
        }
        let Some(interval) = self.onlookers.interval() else { return true };
        while self.next_sample <= at {
            let sampled = self.next_sample;
            let paths = (0..self.setup.paths.len() as u32).map(PathId);
            let network = &mut self.network;
            let mut queued = |way| -> Vec<u64> {
                paths.clone().map(|path| network.queued_bytes(path, way, sampled)).collect()
            };
            let snapshot =
                Snapshot { queued_down: queued(Direction::Down), queued_up: queued(Direction::Up) };
            self.next_sample = sampled + interval.max(Span::from_nanos(1));
            if !self.onlookers.on_sample(sampled, &snapshot) {
                self.now = sampled;
                return false;
            }
        }
        true
    }

    /// Handles an event of the network. Returns the host at which a segment arrived.
    #[inline(always)]
    fn on_network(&mut self, source: usize) -> Option<usize> {
        let Some(arrival) = self.network.due(&mut self.queue, self.now, source) else {
            self.on_dropped(source);
            return None;
        };
        let Arrival { pair, path, direction, segment, copier } = arrival;
        self.digest.push(self.now, true, path, direction, &segment);
        self.show(Hop::Delivered, pair, path, direction, &segment);
        let host = receiver(pair, direction);
        self.hosts[host].endpoint.handle(self.now, path, &segment);
        self.recycle(peer(host), copier, segment);
        Some(host)
    }

    /// Reports dropped packets, if any.
    #[inline(never)]
    fn on_dropped(&mut self, source: usize) {
        while let Some((arrival, cause)) = self.network.poll_dropped(source) {
            let Arrival { pair, path, direction, segment, copier } = arrival;
            self.show(Hop::Dropped(cause), pair, path, direction, &segment);
            self.recycle(peer(receiver(pair, direction)), copier, segment);
        }
    }

    /// Returns a segment to the host that sent it, or to the link that made the copy.
    #[inline]
    fn recycle(&mut self, from: usize, copier: Option<usize>, segment: Box<Segment>) {
        match copier {
            None => self.hosts[from].endpoint.recycle(segment),
            Some(copier) => self.network.keep(copier, segment),
        }
    }

    #[inline(never)]
    fn on_wake(&mut self, host: usize) {
        if is_client(host) {
            self.dial(host);
            let Host { endpoint, slots, changes, .. } = &mut self.hosts[host];
            changes.apply(self.now, endpoint, &slots.iter().filter_map(|slot| slot.conn));
            self.hosts[host].note_wakes();
        }
        if self.hosts[host].endpoint.poll_timeout() <= self.now {
            self.hosts[host].endpoint.handle_timeout(self.now);
        }
    }

    /// Returns the path memories of each pair of hosts that remembers paths.
    fn memories(&mut self) -> Vec<Option<PairMemory>> {
        let (now, setup) = (self.now, self.setup);
        let pairs = self.hosts.chunks_exact_mut(2).zip(&setup.pairs);
        let memory = |(hosts, pair): (&mut [Host], &PairSetup)| {
            let ssthresh = pair.memory.as_ref()?.ssthresh;
            let [client, server] = hosts else { return None };
            let (client, server) = (client.remembered(now), server.remembered(now));
            Some(PairMemory { client, server, ssthresh })
        };
        pairs.map(memory).collect()
    }

    fn finish(mut self) -> Outcome {
        let (now, over) = (self.now, self.over());
        let memories = self.memories();
        let mut pairs = Vec::with_capacity(self.observers.len());
        for (pair, observers) in self.observers.into_iter().enumerate() {
            let (client, server) = (&self.hosts[2 * pair], &self.hosts[2 * pair + 1]);
            let mut outcomes: Vec<ConnectionOutcome> = Vec::new();
            let mut observers = observers.into_iter().enumerate().peekable();
            while let Some((index, mut observer)) = observers.next() {
                let session = client.slots[index].session;
                let mut failed = self.failed[pair][index];
                let same = |next: &(usize, Observer)| client.slots[next.0].session == session;
                while let Some((next, other)) = observers.next_if(same) {
                    observer.join(now, other);
                    failed = failed.into_iter().chain(self.failed[pair][next]).min();
                }
                let measures = observer.finish(now);
                let stats =
                    |host: &Host| host.slots[index].conn.and_then(|conn| host.endpoint.stats(conn));
                outcomes.push(ConnectionOutcome {
                    complete: self.setup.pairs[pair].background
                        || measures.complete && failed.is_none(),
                    broke: failed,
                    measures,
                    server: stats(server),
                    client: stats(client),
                });
            }
            pairs.push(outcomes);
        }
        Outcome {
            ended: now,
            over,
            pairs,
            digest: self.digest,
            links: self.network.path_counters(),
            middlebox_counters: self.network.middlebox_counters(),
            shared: self.network.shared_counters(),
            cross: self.network.cross_bytes(now),
            memories,
            violation: self.onlookers.violation,
        }
    }
}
