//! The client's role: connections to a Multipath TCP server, from several addresses.

use crate::engine::Engine;
use crate::exit::Exit;
use crate::happening::Happening;
use crate::names::{Names, OwnPath};
use crate::observe::Observe;
use crate::relay::Relay;
use crate::serve::fit_to_kernels;
use crate::stack::{Stack, StackCounters};
use crate::{Device, add_route};
use plait_base::{ConnId, PathId, Span, Time};
use plait_core::{ConnectionSpec, PathConfig};
use socket2::Socket;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;

/// How long connections that nobody uses any more have to take leave of their peers.
const LEAVE: Span = Span::from_secs(3);

/// An address to dial from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The address: one that no device of this host has.
    pub address: IpAddr,
    /// The device by which packets from there leave, whatever the routes for the other end's address
    /// say; `None` to follow them.
    pub device: Option<String>,
}

/// What a client is made from.
#[derive(Clone, Debug)]
pub struct DialSettings {
    /// The server.
    pub to: SocketAddr,
    /// Where to dial from: the connection begins at the first.
    pub from: Vec<Origin>,
    /// Name of the TUN device.
    pub device: String,
    /// What connections are made from; paths are put in.
    pub spec: ConnectionSpec,
}

/// A client of one server.
pub struct Client {
    engine: Engine,
    to: SocketAddr,
    spec: ConnectionSpec,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("to", &self.to).finish_non_exhaustive()
    }
}

impl Client {
    /// Makes the device, its routes, and what else packets leave by.
    ///
    /// # Errors
    /// Where the process may not make devices or raw sockets, or there is a route for one of the
    /// addresses already.
    pub fn open(settings: DialSettings) -> io::Result<Client> {
        let DialSettings { to, from, device, mut spec } = settings;
        let device = Device::open(&device, spec.config.mtu as u16)?;
        fit_to_kernels(&mut spec, to.ip());
        let mut paths = Vec::new();
        for origin in from {
            add_route(&device, origin.address)?;
            let open = |name: String| Exit::open(&name, to.ip());
            let exit = origin.device.map(open).transpose()?;
            paths.push(OwnPath { ours: origin.address, theirs: to.ip(), exit });
        }
        let numbers = 0..paths.len() as u16;
        spec.paths = numbers.map(|n| PathConfig { path: PathId(n), backup: false }).collect();
        let stack = Stack::new(device, Names::Client(paths))?;
        Ok(Client { engine: Engine::new(stack, None)?, to, spec })
    }

    /// Connects, and relays the connection to `socket`, which gives what is to be sent and takes
    /// what comes.
    ///
    /// # Errors
    /// Where the socket cannot be waited for.
    pub fn connect(&mut self, socket: Socket) -> io::Result<ConnId> {
        socket.set_nonblocking(true)?;
        let stack = &mut self.engine.stack;
        let conn = stack.endpoint.connect(stack.clock.now(), self.to.port(), self.spec.clone());
        self.engine.add(Relay::new(conn, socket, false))?;
        Ok(conn)
    }

    /// Tells `observer` of every packet and of every event from now on. It costs: an endpoint that
    /// nobody observes records nothing.
    pub fn observe(&mut self, observer: Box<dyn Observe>) {
        self.engine.stack.observe(observer);
    }

    /// Something that is written to, to end [`Client::run`] and its connections at once.
    ///
    /// # Errors
    /// Where the process has no file descriptor left.
    pub fn stopper(&self) -> io::Result<UnixStream> {
        self.engine.stopper()
    }

    /// What the stack has seen so far.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.engine.stack.counters
    }

    /// Runs until all connections are over, or it is stopped. `tell` hears what happens.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn run(&mut self, mut tell: impl FnMut(&Happening)) -> io::Result<()> {
        let engine = &mut self.engine;
        while !engine.stopped && !engine.is_idle() {
            engine.turn(Time::NEVER)?;
            engine.happenings.drain(..).for_each(|happening| tell(&happening));
        }
        if engine.stopped {
            engine.abort("stopped")?;
            engine.happenings.drain(..).for_each(|happening| tell(&happening));
        }
        let until = engine.stack.clock.now() + LEAVE;
        while !engine.stopped && !engine.stack.endpoint.is_over() {
            if engine.stack.clock.now() >= until {
                break;
            }
            engine.turn(until)?;
        }
        Ok(())
    }
}
