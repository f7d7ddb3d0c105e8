//! Runs and judges one case of a server.

mod agenda;
mod guests;
mod judge;
mod network;
mod packets;
mod patience;
mod record;
mod server;

use crate::swarm::run::{Broken, Verdict, Violation};
use crate::swarm::server::case::{Blow, GRACE, Group, ServerCase, Visit};
use crate::swarm::server::client::{Client, Wait};
use crate::swarm::server::service;
use crate::swarm::server::stranger::Stranger;
use agenda::{Agenda, Event};
use guests::{Guest, Guests};
use network::Network;
use plait_base::{Span, Time};
use plait_core::Config;
use plait_engine::{Engine, Ready};
use record::Record;
use server::Server;
use std::net::IpAddr;

/// Limit of turns of the server at one instant without any data moved.
const IDLE_TURNS: u32 = 64;
/// Limit of rounds of the loop at one instant.
const MOST_ROUNDS: u32 = 100_000;
/// Additional waiting time of clients that do not end their connection.
const STAY: Span = Span::from_secs(60);
/// Interval of samples of the server, and their interval after all events.
const SAMPLE: Span = Span::from_millis(100);
const RARE_SAMPLE: Span = Span::from_secs(5);
/// Time that the server has to release everything after the end.
const AFTERWARDS: Span = Span::from_secs(300);

pub(super) struct Run<'a> {
    case: &'a ServerCase,
    now: Time,
    agenda: Agenda,
    server: Server,
    guests: Guests,
    network: Network,
    heals: Time,
    patience: Time,
    progress: Progress,
    spare: Spare,
    record: Record,
    violation: Option<Violation>,
    /// Everything has ended and is released.
    settled: bool,
}

/// Checks that time advances and that the server makes progress.
#[derive(Default)]
struct Progress {
    /// Turns of the server at this instant without any data moved.
    idle_turns: u32,
    /// Rounds of the loop at this instant.
    rounds: u32,
    /// Packets and bytes that the server has moved.
    moved: u64,
}

/// Buffers for reuse, empty between events.
#[derive(Default)]
struct Spare {
    ready: Vec<Ready>,
    wakes: Vec<(Time, usize)>,
    out: Vec<Vec<u8>>,
}

/// Runs a case and returns the last `keep` events.
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

impl<'a> Run<'a> {
    fn new(case: &'a ServerCase, keep: usize) -> Result<Run<'a>, String> {
        let mut run = Run {
            case,
            now: Time::ZERO,
            agenda: Agenda::default(),
            server: Server::default(),
            guests: Guests::default(),
            network: Network::new(case),
            heals: case.heals(),
            patience: patience::deadline(case),
            progress: Progress::default(),
            spare: Spare::default(),
            record: Record::new(keep),
            violation: None,
            settled: false,
        };
        run.server.host.limit.set(case.tcp_memory_bytes);
        run.server.live(case, run.now)?;
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

    fn at(&mut self, time: Time, event: Event) {
        self.agenda.add(time.max(self.now), event);
    }

    /// Runs until everything has ended.
    fn go(&mut self) {
        while self.violation.is_none() && !self.settled {
            let server = self.server.engine.as_ref().map_or(Time::NEVER, Engine::next);
            let next = self.agenda.next();
            let Some(time) = next.filter(|_| !self.is_past()) else { break };
            self.set_now(time.min(server.max(self.now)));
            while let Some(event) = self.agenda.poll(self.now) {
                self.happen(event);
            }
            self.serve();
            self.progress.rounds += 1;
            if self.progress.rounds > MOST_ROUNDS {
                self.broke(Broken::Stuck, "time does not advance".to_owned());
            }
        }
        self.judge();
    }

    /// Returns true if everything has ended and the time to release it is over.
    fn is_past(&self) -> bool {
        // A client may be accepted at the end of its waiting time, and has an allowance from then
        // on.
        let late = self.patience.since(self.heals);
        let over =
            |kept_out: Span| self.now >= self.patience + late + kept_out + GRACE + AFTERWARDS;
        over(Span::ZERO) && self.guests.clients.iter().all(|it| over(it.kept_out()))
    }

    fn set_now(&mut self, now: Time) {
        if now > self.now {
            (self.now, self.progress.idle_turns, self.progress.rounds) = (now, 0, 0);
            self.server.host.now.set(now);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(bytes) => {
                if let Some(engine) = &mut self.server.engine
                    && engine.stack.world.up
                {
                    engine.stack.world.arrived.push_back(bytes);
                }
            }
            Event::Deliver(Guest::Client(at), bytes) => {
                self.guests.clients[at].take(self.now, &bytes);
                self.turn_client(at);
            }
            // Strangers have left by then.
            Event::Deliver(Guest::Stranger(_), _) if self.now >= self.patience => {}
            Event::Deliver(Guest::Stranger(at), bytes) => {
                let mut out = std::mem::take(&mut self.spare.out);
                self.guests.strangers[at].take(&bytes, &mut out);
                self.send_up(false, &mut out);
                self.spare.out = out;
            }
            Event::Come(group, nth) => self.come(group, nth),
            Event::Wake(at) => {
                if self.guests.clients[at].wake <= self.now {
                    self.guests.clients[at].wake = Time::NEVER;
                    self.turn_client(at);
                }
            }
            Event::Program(place) => {
                self.server.host.due.borrow_mut().insert(place);
            }
            Event::Blow(at, begins) => self.blow(at, begins),
            Event::Sample => self.sample(),
        }
    }

    /// Starts the next guest of a group.
    fn come(&mut self, at: usize, nth: u32) {
        let group = self.case.guests[at];
        if nth + 1 < group.count {
            self.at(self.now + Span::from_micros(group.every_us), Event::Come(at, nth + 1));
        }
        if group.visit.is_client() {
            let place = self.guests.clients.len();
            let addresses: Vec<IpAddr> = (0..group.addresses)
                .map(|_| self.guests.give_address(Guest::Client(place)))
                .collect();
            let Ok(spec) = server::spec(self.case, Config::default()) else { return };
            let stays = if group.visit == Visit::Stay { STAY } else { Span::ZERO };
            let patience = self.patience + stays;
            let wait = Wait::new(patience, self.patience.since(self.heals) + stays);
            let mut client = Client::new(self.case.seed, place, addresses, group, spec, wait);
            if self.server.draining {
                client.drain();
            }
            client.begin(self.now);
            self.guests.clients.push(client);
            return self.turn_client(place);
        }
        let place = self.guests.strangers.len();
        let address = self.guests.give_address(Guest::Stranger(place));
        let port = 1_024 + self.network.random.below(60_000) as u16;
        let mut stranger = Stranger::new(group.visit, address, port, group.bytes.max(1));
        let mut out = std::mem::take(&mut self.spare.out);
        stranger.begin(&mut self.network.random, &mut out);
        self.guests.strangers.push(stranger);
        self.send_up(false, &mut out);
        self.spare.out = out;
    }

    fn turn_client(&mut self, at: usize) {
        let mut out = std::mem::take(&mut self.spare.out);
        let client = &mut self.guests.clients[at];
        client.turn(self.now, &mut out);
        let next = client.next();
        if next < client.wake {
            client.wake = next;
            self.at(next, Event::Wake(at));
        }
        if let Some(what) = self.guests.clients[at].wrong.take() {
            self.broke(Broken::Invariant, what);
        }
        self.send_up(true, &mut out);
        self.spare.out = out;
    }

    /// Runs the server and its service until neither has due work.
    fn serve(&mut self) {
        loop {
            let mut wakes = std::mem::take(&mut self.spare.wakes);
            service::serve(&self.server.host, &self.server.pipes.borrow(), &mut wakes);
            for (time, place) in wakes.drain(..) {
                self.at(time, Event::Program(place));
            }
            self.spare.wakes = wakes;
            let Some(engine) = &mut self.server.engine else { return };
            engine.stack.world.ready(&mut self.spare.ready);
            if self.spare.ready.is_empty() && engine.next() > self.now {
                return;
            }
            if let Err(error) = engine.turn(&self.spare.ready) {
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
            let moved = counters.packets_in + counters.packets_out + self.server.host.moved.get();
            self.progress.idle_turns =
                if moved == self.progress.moved { self.progress.idle_turns + 1 } else { 0 };
            self.progress.moved = moved;
            if self.progress.idle_turns > IDLE_TURNS {
                let what = format!(
                    "the server runs and makes no progress: {:?}",
                    self.spare.ready.first()
                );
                return self.broke(Broken::Invariant, what);
            }
        }
    }

    fn blow(&mut self, at: usize, begins: bool) {
        match self.case.blows[at] {
            Blow::Crash { .. } if begins => {
                self.server.crash();
                self.guests.clients.iter_mut().for_each(Client::lose);
            }
            Blow::Crash { .. } => {
                if self.server.engine.is_none()
                    && let Err(problem) = self.server.live(self.case, self.now)
                {
                    self.broke(Broken::Failed, problem);
                }
            }
            Blow::Device { .. } => {
                if let Some(engine) = &mut self.server.engine {
                    engine.stack.world.up = !begins;
                }
            }
            Blow::Address { .. } => {
                for at in 0..self.guests.clients.len() {
                    let client = &mut self.guests.clients[at];
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
                self.server.drain();
                self.guests.clients.iter_mut().for_each(Client::drain);
            }
        }
    }

    fn broke(&mut self, broken: Broken, what: String) {
        let (at_ns, segments) = (self.now.as_nanos(), self.record.packets);
        self.violation.get_or_insert(Violation { broken, what, at_ns, segments });
    }

    fn verdict(self) -> (Verdict, Vec<String>) {
        let visits = self.case.guests.iter().map(|it: &Group| it.visit);
        let place = |visit: Visit| Visit::ALL.iter().position(|it| *it == visit).unwrap_or(0);
        let blows = self.case.blows.iter().map(|it| Visit::ALL.len() + it.place());
        let met = visits.map(place).chain(blows).fold(0, |bits, at| bits | 1 << at);
        let verdict = Verdict {
            hash: self.record.hash,
            ended: self.now,
            segments: self.record.packets,
            met,
            given_up: false,
            violation: self.violation,
        };
        (verdict, self.record.lines.into())
    }
}
