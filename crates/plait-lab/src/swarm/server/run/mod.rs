//! One case of a server, run and judged.

mod judge;
mod packets;

use crate::swarm::run::{Broken, Verdict, Violation};
use crate::swarm::server::case::{Blow, GRACE, Group, ServerCase, Visit};
use crate::swarm::server::client::{Client, PORT, SERVER};
use crate::swarm::server::service::{self, Pipe};
use crate::swarm::server::stranger::Stranger;
use crate::swarm::server::world::{Host, Seeded, Virtual};
use plait_base::{RandomStream, Rate, Span, Time};
use plait_core::{Config, ConnectionSpec};
use plait_engine::{Engine, Limits, Names, Ready, Service, Stack};
use plait_link::{Link, LinkConfig, RateSource};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Turns of the server at one instant in which nothing is moved, at most.
const IDLE_TURNS: u32 = 64;
/// Rounds of the loop at one instant at most.
const MOST_ROUNDS: u32 = 100_000;
/// The server asks after a silent client, and ends one that takes nothing.
const KEEP_ALIVE: Span = Span::from_secs(10);
const USER_TIMEOUT: Span = Span::from_secs(30);
/// The server's kernel keeps what is left of a program for so long.
pub(super) const ORPHANED: Duration = Duration::from_secs(10);
/// So much longer than others stay those clients that do not end.
const STAY: Span = Span::from_secs(60);
/// Transfers end this long after everything has healed, beside four times what their bytes take, and beside
/// [`waits`].
const PATIENCE: Span = Span::from_secs(25);
/// Bytes of the first flight of a connection: ten segments. Each further round trip doubles it.
const FIRST_FLIGHT: u64 = 14_000;
/// Round trips of a connection beside those of its data: the handshake, the request, and both ends.
const ROUND_TRIPS: u64 = 4;
/// How often the server is looked at, and how often once nothing more happens to it.
const SAMPLE: Span = Span::from_millis(100);
const RARE_SAMPLE: Span = Span::from_secs(5);
/// So long after everything is over nothing is left.
const AFTERWARDS: Span = Span::from_secs(300);
/// What is to happen.
enum Event {
    Arrive(Vec<u8>),
    Deliver(Guest, Vec<u8>),
    Come(usize, u32),
    Wake(usize),
    Program(usize),
    Blow(usize, bool),
    Sample,
}

/// Whose an address is.
#[derive(Clone, Copy)]
enum Guest {
    Client(usize),
    Stranger(usize),
}

pub(super) struct Run<'a> {
    case: &'a ServerCase,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    counted: u64,
    host: Rc<Host>,
    pipes: Rc<RefCell<Vec<Rc<RefCell<Pipe>>>>>,
    /// Whose each stream is: the place of its client, if one of the clients has it.
    owners: Vec<Option<usize>>,
    /// When this life of the server began, and how many streams there were by then.
    lives_since: Time,
    lives_from: usize,
    /// Connections that were refused in earlier lives.
    refused_before: u64,
    engine: Option<Engine<Virtual>>,
    lives: u32,
    draining: bool,
    clients: Vec<Client>,
    strangers: Vec<Stranger>,
    guests: BTreeMap<IpAddr, Guest>,
    addresses: u32,
    down: Link,
    up: Link,
    random: RandomStream,
    heals: Time,
    patience: Time,
    ready: Vec<Ready>,
    wakes: Vec<(Time, usize)>,
    out: Vec<Vec<u8>>,
    idle_turns: u32,
    /// Rounds of the loop at this instant.
    rounds: u32,
    moved: u64,
    /// Connections that were turned away, as the log has told; those of earlier lives.
    told_away: u64,
    /// Most numbers in use at a time.
    most_paths: u64,
    packets: u64,
    hash: u64,
    violation: Option<Violation>,
    /// Everything is over and forgotten.
    settled: bool,
    trail: Trail,
}

/// The last lines of what happened.
pub(super) struct Trail {
    keep: usize,
    lines: VecDeque<String>,
}

/// Runs a case and keeps the last `keep` things that happened.
pub(super) fn run(case: &ServerCase, keep: usize) -> (Verdict, Vec<String>) {
    let mut run = match Run::new(case, keep) {
        Ok(run) => run,
        Err(problem) => return (failed(problem), Vec::new()),
    };
    run.go();
    run.verdict()
}

pub(super) fn failed(what: String) -> Verdict {
    let violation = Violation { broken: Broken::Failed, what, at_ns: 0, segments: 0 };
    Verdict {
        hash: 0,
        ended: Time::ZERO,
        segments: 0,
        met: 0,
        given_up: false,
        violation: Some(violation),
    }
}

/// What the clients of a group wait for, one connection after the other, on an idle link: round trips, and a
/// service that accepts late.
fn waits(case: &ServerCase, group: &Group) -> Span {
    let doublings = u64::from((group.bytes / FIRST_FLIGHT + 1).ilog2());
    let round_trip = Span::from_micros(case.rtt_us + case.spread_us);
    let late = if case.service.late > 0 { service::LATE } else { Span::ZERO };
    let each = round_trip.times(ROUND_TRIPS + doublings) + late;
    each.times(u64::from(group.times))
}

impl<'a> Run<'a> {
    fn new(case: &'a ServerCase, keep: usize) -> Result<Run<'a>, String> {
        let rate = RateSource::Fixed(Rate::from_bps(case.rate_kbps * 1_000));
        let one_way = Span::from_micros(case.rtt_us / 2);
        let link =
            |name| Link::new(&LinkConfig::new(rate.clone(), one_way), case.seed, &["server", name]);
        let bytes: u64 = case
            .guests
            .iter()
            .filter(|it| it.visit.is_client())
            .map(|it| 2 * it.bytes * u64::from(it.count * it.times))
            .sum();
        let heals = case.heals();
        let takes = Span::from_micros(bytes.saturating_mul(4 * 8_000) / case.rate_kbps);
        let clients = case.guests.iter().filter(|it| it.visit.is_client());
        let waits = clients.map(|it| waits(case, it)).max().unwrap_or_default();
        let mut run = Run {
            case,
            now: Time::ZERO,
            events: BTreeMap::new(),
            counted: 0,
            host: Rc::new(Host::default()),
            pipes: Rc::default(),
            owners: Vec::new(),
            lives_since: Time::ZERO,
            lives_from: 0,
            refused_before: 0,
            engine: None,
            lives: 0,
            draining: false,
            clients: Vec::new(),
            strangers: Vec::new(),
            guests: BTreeMap::new(),
            addresses: 0,
            down: link("down"),
            up: link("up"),
            random: RandomStream::new(case.seed, &["server swarm", "network"]),
            heals,
            patience: heals + PATIENCE + takes + waits,
            ready: Vec::new(),
            wakes: Vec::new(),
            out: Vec::new(),
            idle_turns: 0,
            rounds: 0,
            moved: 0,
            told_away: 0,
            most_paths: 0,
            packets: 0,
            hash: 0xcbf2_9ce4_8422_2325,
            violation: None,
            settled: false,
            trail: Trail { keep, lines: VecDeque::new() },
        };
        run.host.limit.set(case.tcp_memory_bytes);
        run.live()?;
        for (at, group) in case.guests.iter().enumerate() {
            run.at(Time::ZERO + Span::from_millis(group.from_ms), Event::Come(at, 0));
        }
        for (at, blow) in case.blows.iter().enumerate() {
            let (from, to) = match *blow {
                Blow::Crash { at_ms, back_ms } => (at_ms, Some(back_ms)),
                Blow::Device { from_ms, to_ms } | Blow::Address { from_ms, to_ms } => {
                    (from_ms, Some(to_ms))
                }
                Blow::Drain { at_ms } => (at_ms, None),
            };
            run.at(Time::ZERO + Span::from_millis(from), Event::Blow(at, true));
            if let Some(to) = to {
                run.at(Time::ZERO + Span::from_millis(to.max(from)), Event::Blow(at, false));
            }
        }
        run.at(Time::ZERO + SAMPLE, Event::Sample);
        Ok(run)
    }

    fn spec(&self, config: Config) -> Result<ConnectionSpec, String> {
        let scheduler =
            plait_sched::Spec::parse(&self.case.scheduler).map_err(|it| it.to_string())?;
        let controller =
            plait_cc::Spec::parse(&self.case.controller).map_err(|it| it.to_string())?;
        Ok(ConnectionSpec {
            config,
            paths: Vec::new(),
            addresses: Vec::new(),
            scheduler: Arc::new(move || scheduler.build()),
            controller: Arc::new(move |_| controller.build()),
        })
    }

    /// The server begins to live.
    fn live(&mut self) -> Result<(), String> {
        let case = self.case;
        let life = format!("life {}", self.lives);
        self.lives += 1;
        let random = |name| RandomStream::new(case.seed, &["server swarm", &life, name]);
        let (shares, introduced) = (case.service, case.proxy_header);
        (self.lives_since, self.lives_from) = (self.now, self.pipes.borrow().len());
        let mut manners = random("service");
        let host = Rc::clone(&self.host);
        let reception = Box::new(move |buffers| {
            let (manner, refused, after) = service::manner(&mut manners, &shares);
            Ok(Pipe::new(manner, host.now.get() + after, refused, introduced, buffers))
        });
        let world = Virtual::new(Rc::clone(&self.host), Rc::clone(&self.pipes), reception);
        let mut names = Names::server(SERVER);
        names.limit(usize::try_from(case.numbers).unwrap_or(usize::MAX));
        let mut stack = Stack::new(world, names, Box::new(Seeded(random("entropy"))));
        stack.endpoint.check_invariants(case.check);
        let service = Service {
            to: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT),
            proxy_header: case.proxy_header,
            listen: SocketAddr::new(SERVER, PORT),
            near: true,
        };
        let mut engine = Engine::new(stack, Some(service));
        let connections = usize::try_from(case.connections).unwrap_or(usize::MAX);
        engine.limit(Limits { connections, memory: case.memory_bytes });
        engine.ask_after(ORPHANED);
        let config = Config {
            keep_alive: Some(KEEP_ALIVE),
            user_timeout: Some(USER_TIMEOUT),
            subflow_windows: true,
            ..Config::default()
        };
        engine.listen(&[(PORT, Arc::new(self.spec(config)?))], Vec::new());
        self.engine = Some(engine);
        Ok(())
    }

    fn at(&mut self, time: Time, event: Event) {
        self.counted += 1;
        self.events.insert((time.max(self.now), self.counted), event);
    }

    /// Runs until everything is over.
    fn go(&mut self) {
        while self.violation.is_none() && !self.settled {
            let server = self.engine.as_ref().map_or(Time::NEVER, Engine::next);
            let next = self.events.first_key_value().map(|((time, _), _)| *time);
            let Some(time) = next.filter(|_| !self.is_past()) else { break };
            self.set_now(time.min(server.max(self.now)));
            while let Some(entry) = self.events.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let event = entry.remove();
                self.happen(event);
            }
            self.serve();
            self.rounds += 1;
            if self.rounds > MOST_ROUNDS {
                self.broke(Broken::Stuck, "time stands still".to_owned());
            }
        }
        self.judge();
    }

    /// Everything is over, and was given the time to be forgotten.
    fn is_past(&self) -> bool {
        // A client may get in at the end of its patience, and has an allowance from then on.
        let late = self.patience.since(self.heals);
        let over =
            |kept_out: Span| self.now >= self.patience + late + kept_out + GRACE + AFTERWARDS;
        over(Span::ZERO) && self.clients.iter().all(|it| over(it.kept_out))
    }

    fn set_now(&mut self, now: Time) {
        if now > self.now {
            (self.now, self.idle_turns, self.rounds) = (now, 0, 0);
            self.host.now.set(now);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(bytes) => {
                if let Some(engine) = &mut self.engine
                    && engine.stack.world.up
                {
                    engine.stack.world.arrived.push_back(bytes);
                }
            }
            Event::Deliver(Guest::Client(at), bytes) => {
                self.clients[at].take(self.now, &bytes);
                self.turn_client(at);
            }
            // Strangers are gone in the end.
            Event::Deliver(Guest::Stranger(_), _) if self.now >= self.patience => {}
            Event::Deliver(Guest::Stranger(at), bytes) => {
                let mut out = std::mem::take(&mut self.out);
                self.strangers[at].take(&bytes, &mut out);
                self.send_up(false, &mut out);
                self.out = out;
            }
            Event::Come(group, nth) => self.come(group, nth),
            Event::Wake(at) => {
                if self.clients[at].wake <= self.now {
                    self.clients[at].wake = Time::NEVER;
                    self.turn_client(at);
                }
            }
            Event::Program(place) => {
                self.host.due.borrow_mut().insert(place);
            }
            Event::Blow(at, begins) => self.blow(at, begins),
            Event::Sample => self.sample(),
        }
    }

    /// The next guest of a group.
    fn come(&mut self, at: usize, nth: u32) {
        let group = self.case.guests[at];
        if nth + 1 < group.count {
            self.at(self.now + Span::from_micros(group.every_us), Event::Come(at, nth + 1));
        }
        if group.visit.is_client() {
            let place = self.clients.len();
            let addresses: Vec<IpAddr> =
                (0..group.addresses).map(|_| self.address(Guest::Client(place))).collect();
            let Ok(spec) = self.spec(Config::default()) else { return };
            let mut client = Client::new(self.case.seed, place, addresses, group, spec);
            let stays = if group.visit == Visit::Stay { STAY } else { Span::ZERO };
            client.patience = self.patience + stays;
            client.allowance = self.patience.since(self.heals) + stays;
            if self.draining {
                client.drain();
            }
            client.begin(self.now);
            self.clients.push(client);
            return self.turn_client(place);
        }
        let place = self.strangers.len();
        let address = self.address(Guest::Stranger(place));
        let port = 1_024 + self.random.below(60_000) as u16;
        let mut stranger = Stranger::new(group.visit, address, port, group.bytes.max(1));
        let mut out = std::mem::take(&mut self.out);
        stranger.begin(&mut self.random, &mut out);
        self.strangers.push(stranger);
        self.send_up(false, &mut out);
        self.out = out;
    }

    /// The next address, of another network than the one before.
    fn address(&mut self, guest: Guest) -> IpAddr {
        self.addresses += 1;
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + self.addresses * 0x101));
        self.guests.insert(address, guest);
        address
    }

    fn turn_client(&mut self, at: usize) {
        let mut out = std::mem::take(&mut self.out);
        let client = &mut self.clients[at];
        client.turn(self.now, &mut out);
        let next = client.next();
        if next < client.wake {
            client.wake = next;
            self.at(next, Event::Wake(at));
        }
        if let Some(what) = self.clients[at].wrong.take() {
            self.broke(Broken::Invariant, what);
        }
        self.send_up(true, &mut out);
        self.out = out;
    }

    /// The server and its service do what is due.
    fn serve(&mut self) {
        loop {
            let mut wakes = std::mem::take(&mut self.wakes);
            service::serve(&self.host, &self.pipes.borrow(), &mut wakes);
            for (time, place) in wakes.drain(..) {
                self.at(time, Event::Program(place));
            }
            self.wakes = wakes;
            let Some(engine) = &mut self.engine else { return };
            engine.stack.world.ready(&mut self.ready);
            if self.ready.is_empty() && engine.next() > self.now {
                return;
            }
            if let Err(error) = engine.turn(&self.ready) {
                return self.broke(Broken::Failed, error.to_string());
            }
            let mut left = std::mem::take(&mut engine.stack.world.left);
            let log_events = std::mem::take(&mut engine.log_events);
            let counters = engine.stack.counters();
            for event in log_events {
                self.hear(&event);
            }
            for bytes in left.drain(..) {
                self.send_down(bytes);
            }
            let moved = counters.packets_in + counters.packets_out + self.host.moved.get();
            self.idle_turns = if moved == self.moved { self.idle_turns + 1 } else { 0 };
            self.moved = moved;
            if self.idle_turns > IDLE_TURNS {
                let what = format!("the server turns and moves nothing: {:?}", self.ready.first());
                return self.broke(Broken::Invariant, what);
            }
        }
    }

    fn blow(&mut self, at: usize, begins: bool) {
        match self.case.blows[at] {
            Blow::Crash { .. } if begins => {
                let engine = self.engine.take();
                self.refused_before += engine.map_or(0, |it| it.refused().values().sum::<u64>());
                self.clients.iter_mut().for_each(Client::lose);
                self.told_away = 0;
                self.most_paths = 0;
            }
            Blow::Crash { .. } => {
                if self.engine.is_none()
                    && let Err(problem) = self.live()
                {
                    self.broke(Broken::Failed, problem);
                }
            }
            Blow::Device { .. } => {
                if let Some(engine) = &mut self.engine {
                    engine.stack.world.up = !begins;
                }
            }
            Blow::Address { .. } => {
                for at in 0..self.clients.len() {
                    let client = &mut self.clients[at];
                    if client.addresses.len() > 1 {
                        match begins {
                            true => client.lose_address(self.now),
                            false => client.regain_address(self.now),
                        }
                        self.turn_client(at);
                    }
                }
            }
            Blow::Drain { .. } => {
                self.draining = true;
                self.clients.iter_mut().for_each(Client::drain);
                if let Some(engine) = &mut self.engine {
                    engine.stop_listening(&[PORT]);
                }
            }
        }
    }

    fn broke(&mut self, broken: Broken, what: String) {
        let (at_ns, segments) = (self.now.as_nanos(), self.packets);
        self.violation.get_or_insert(Violation { broken, what, at_ns, segments });
    }

    fn verdict(self) -> (Verdict, Vec<String>) {
        let visits = self.case.guests.iter().map(|it: &Group| it.visit);
        let place = |visit: Visit| Visit::ALL.iter().position(|it| *it == visit).unwrap_or(0);
        let blows = self.case.blows.iter().map(|it| Visit::ALL.len() + it.place());
        let met = visits.map(place).chain(blows).fold(0, |bits, at| bits | 1 << at);
        let verdict = Verdict {
            hash: self.hash,
            ended: self.now,
            segments: self.packets,
            met,
            given_up: false,
            violation: self.violation,
        };
        (verdict, self.trail.lines.into())
    }
}
