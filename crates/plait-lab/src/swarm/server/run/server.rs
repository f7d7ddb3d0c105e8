//! The server, which may crash and live again: its engine and its service.

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

/// The server asks after a silent client, and ends one that takes nothing.
const KEEP_ALIVE: Span = Span::from_secs(10);
const USER_TIMEOUT: Span = Span::from_secs(30);
/// The server's kernel keeps what is left of a program for so long.
const ORPHANED: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Server {
    pub(super) host: Rc<Host>,
    /// Streams to the programs of the service, those of all lives.
    pub(super) pipes: Rc<RefCell<Vec<Rc<RefCell<Pipe>>>>>,
    /// None after a crash.
    pub(super) engine: Option<Engine<Virtual>>,
    /// Lives begun.
    lives: u32,
    /// When this life began, and how many streams there were by then.
    pub(super) since: Time,
    pub(super) streams_before: usize,
    /// Connections that were refused in earlier lives.
    refused_before: u64,
    /// Connections of this life that were turned away, as the log has told.
    pub(super) told_away: u64,
    /// Most numbers in use at a time of this life.
    pub(super) most_paths: u64,
    pub(super) draining: bool,
}

impl Server {
    /// Begins to live.
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

    /// Loses everything but the count of what was refused.
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

    /// Returns how many connections were refused, in all lives.
    pub(super) fn refused(&self) -> u64 {
        let now = self.engine.as_ref().map_or(0, |it| it.refused().values().sum());
        self.refused_before + now
    }

    /// Returns the streams that the server still has, three at most.
    pub(super) fn left(&self) -> Vec<String> {
        let pipes = self.pipes.borrow();
        let left = pipes.iter().filter(|it| !it.borrow().dropped).take(3);
        left.map(|it| format!("{:?}", it.borrow())).collect()
    }
}

/// Returns what the connections of a case are made from.
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
