//! The server with its engine and its service. After a crash it starts a new life.

use crate::swarm::server::case::ServerCase;
use crate::swarm::server::client::{PORT, SERVER};
use crate::swarm::server::service::{self, Pipe, Plan};
use crate::swarm::server::world::{Host, Seeded, Virtual};
use plait_base::{RandomStream, Span, Time};
use plait_core::{Config, ConnectionSpec};
use plait_engine::{Engine, Limits, Names, Service, Stack};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Idle time after which the server probes a client, and its user timeout.
const KEEP_ALIVE: Span = Span::from_secs(10);
const USER_TIMEOUT: Span = Span::from_secs(30);
/// Time for which the server's kernel keeps the stream of an ended program.
const ORPHANED: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Server {
    pub(super) host: Rc<Host>,
    /// Streams to the programs of the service, of all lives.
    pub(super) pipes: Rc<RefCell<Vec<Rc<RefCell<Pipe>>>>>,
    /// `None` after a crash.
    pub(super) engine: Option<Engine<Virtual>>,
    /// Number of lives begun.
    lives: u32,
    /// Start of this life, and the number of streams at that time.
    pub(super) since: Time,
    pub(super) streams_before: usize,
    /// Refused connections of earlier lives.
    refused_before: u64,
    /// Refused connections of this life, as counted by the log.
    pub(super) told_away: u64,
    /// Largest number of numbers in use during this life.
    pub(super) most_paths: u64,
    pub(super) draining: bool,
}

impl Server {
    /// Begins a life.
    pub(super) fn live(&mut self, case: &ServerCase, now: Time) -> Result<(), String> {
        let life = format!("life {}", self.lives);
        self.lives += 1;
        let random = |name| RandomStream::new(case.seed, &["server swarm", &life, name]);
        let (shares, introduced) = (case.service, case.proxy_header);
        (self.since, self.streams_before) = (now, self.pipes.borrow().len());
        let mut manners = random("service");
        let host = Rc::clone(&self.host);
        let reception = Box::new(move |buffers| {
            let (manner, refused, after) = service::manner(&mut manners, &shares);
            let connects = host.now.get() + after;
            Ok(Pipe::new(Plan { manner, connects, refused, introduced }, buffers))
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
        let config = Config::default().with(|it| {
            it.timeouts.keep_alive = Some(KEEP_ALIVE);
            it.timeouts.user = Some(USER_TIMEOUT);
            it.buffers.subflow_windows = true;
        });
        engine.listen(&[(PORT, Arc::new(spec(case, config)?))], Vec::new());
        self.engine = Some(engine);
        Ok(())
    }

    /// Ends this life. Only the count of refusals is kept.
    pub(super) fn crash(&mut self) {
        let engine = self.engine.take();
        self.refused_before += engine.map_or(0, |it| it.refused().values().sum::<u64>());
        self.told_away = 0;
        self.most_paths = 0;
    }

    /// Accepts no further connections.
    pub(super) fn drain(&mut self) {
        self.draining = true;
        if let Some(engine) = &mut self.engine {
            engine.stop_listening(&[PORT]);
        }
    }

    /// Returns the number of refused connections of all lives.
    pub(super) fn refused(&self) -> u64 {
        let now = self.engine.as_ref().map_or(0, |it| it.refused().values().sum());
        self.refused_before + now
    }

    /// Returns the streams that the server still has, at most three.
    pub(super) fn left(&self) -> Vec<String> {
        let pipes = self.pipes.borrow();
        let left = pipes.iter().filter(|it| !it.borrow().dropped).take(3);
        left.map(|it| format!("{:?}", it.borrow())).collect()
    }
}

/// Returns the specification of the connections of a case.
pub(super) fn spec(case: &ServerCase, config: Config) -> Result<ConnectionSpec, String> {
    let scheduler = plait_sched::Spec::parse(&case.scheduler).map_err(|it| it.to_string())?;
    let controller = plait_cc::Spec::parse(&case.controller).map_err(|it| it.to_string())?;
    Ok(ConnectionSpec {
        config,
        paths: Vec::new(),
        addresses: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
    })
}
