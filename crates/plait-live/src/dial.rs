//! The client's role: connections to a Multipath TCP server, from several addresses.

use crate::engine::Engine;
use crate::exit::Exit;
use crate::happening::Happening;
use crate::limits::Limits;
use crate::names::Names;
use crate::observe::Observe;
use crate::overview::ASK;
use crate::relay::Relay;
use crate::serve::fit_to_kernels;
use crate::stack::{Stack, StackCounters};
use crate::ways::{OwnAddress, Ways};
use crate::{Device, add_route};
use plait_base::{ConnId, PathId, Span, Time};
use plait_core::{ConnectionSpec, PathConfig};
use socket2::Socket;
use std::fmt;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

/// Time for the last segments of a connection whose data is acknowledged: its end, and the ends of its
/// subflows.
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
    /// Where to dial from: connections begin at the first of the other end's family.
    pub from: Vec<Origin>,
    /// Name of the TUN device.
    pub device: String,
    /// What connections are made from; paths are put in.
    pub spec: ConnectionSpec,
}

/// What a socket is told once its connection is there, and where none comes about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// It is there.
    pub connected: Vec<u8>,
    /// The other end refuses.
    pub refused: Vec<u8>,
    /// It does not answer, or there is no way there.
    pub silent: Vec<u8>,
    /// There are as many connections as there may be.
    pub full: Vec<u8>,
}

/// A connection that somebody wants.
#[derive(Debug)]
pub struct Dial {
    /// The other end.
    pub to: SocketAddr,
    /// Gives what is to be sent and takes what comes.
    pub socket: Socket,
    /// What it is told first.
    pub greeting: Greeting,
}

/// Asks a running client for connections, from any thread.
#[derive(Clone, Debug)]
pub struct Dialler {
    dials: Sender<Dial>,
    waker: Arc<UnixStream>,
}

impl Dialler {
    /// Asks for a connection. False where the client does not run any more.
    #[must_use]
    pub fn dial(&self, dial: Dial) -> bool {
        self.dials.send(dial).is_ok() && (&*self.waker).write_all(&[ASK]).is_ok()
    }
}

/// A client of any servers.
pub struct Client {
    engine: Engine,
    spec: ConnectionSpec,
    dialler: Dialler,
    dials: Receiver<Dial>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Makes the device, its routes, and what else packets leave by.
    ///
    /// # Errors
    /// Where the process may not make devices or raw sockets, or there is a route for one of the
    /// addresses already.
    pub fn open(settings: DialSettings) -> io::Result<Client> {
        let DialSettings { from, device, mut spec } = settings;
        let device = Device::build(&device, spec.config.mtu as u16, spec.config.superpacket > 0)?;
        spec.config.subflow_windows = true;
        let mut own = Vec::new();
        let routed = from.iter().map(|origin| origin.address).collect();
        for Origin { address, device: exit } in from {
            add_route(&device, address)?;
            let exit = exit.map(|name| Exit::open(&name, address)).transpose()?;
            own.push(OwnAddress { address, exit });
        }
        let stack = Stack::new(device, Names::Client(Ways::new(own)))?;
        let mut engine = Engine::new(stack, None)?;
        engine.routed = routed;
        let (sender, dials) = mpsc::channel();
        let dialler = Dialler { dials: sender, waker: Arc::new(engine.stopper()?) };
        Ok(Client { engine, spec, dialler, dials })
    }

    /// Connects to `to`, and relays the connection to `socket`, which gives what is to be sent and
    /// takes what comes, after what it is to be told first.
    ///
    /// # Errors
    /// Where the socket cannot be waited for, or there is no own address of that family.
    pub fn connect(
        &mut self,
        to: SocketAddr,
        socket: Socket,
        greeting: Option<Greeting>,
    ) -> io::Result<ConnId> {
        socket.set_nonblocking(true)?;
        let mut spec = self.spec.clone();
        fit_to_kernels(&mut spec, to.ip());
        let stack = &mut self.engine.stack;
        let paths = stack.names.paths(&stack.endpoint, to.ip());
        if paths.is_empty() {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        if stack.names.has_exits() {
            // What leaves through a raw socket is cut by nobody.
            spec.config.superpacket = 0;
        }
        let path = |path: &PathId| PathConfig { path: *path, backup: false, ssthresh: None };
        spec.paths = paths.iter().map(path).collect();
        let conn = stack.endpoint.connect(stack.clock.now(), to.port(), spec);
        let now = stack.clock.now();
        let mut relay = Relay::new(conn, socket, false).dialled(now, to);
        if let Some(greeting) = greeting {
            relay.greet(greeting);
        }
        self.engine.add(relay)?;
        self.engine.dialled(conn);
        Ok(conn)
    }

    /// Once [`Client::serve`] is stopped, connections have so long to end.
    pub fn drain_for(&mut self, time: Span) {
        self.engine.drain = time;
    }

    /// Why fewer packets than usual may wait for this process, if so.
    #[must_use]
    pub fn short_queue(&self) -> Option<&io::Error> {
        self.engine.stack.device.short_queue()
    }

    /// Name of the device.
    #[must_use]
    pub fn device(&self) -> &str {
        self.engine.stack.device.name()
    }

    /// From now on connections take no more than this together; further ones are not dialled.
    pub fn limit(&mut self, limits: Limits) {
        self.engine.guard.limits = limits;
    }

    /// From now on connections that are not there after `patience` are given up; without, TCP decides.
    pub fn give_up_after(&mut self, patience: Span) {
        self.engine.dials.patience = Some(patience);
    }

    /// Something that asks for connections of [`Client::serve`].
    #[must_use]
    pub fn dialler(&self) -> Dialler {
        self.dialler.clone()
    }

    /// Makes the connections that are asked for until it is stopped; then makes no more, and ends when
    /// the last one has ended, it is stopped again or some seconds are over. `tell` hears what happens.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn serve(&mut self, mut tell: impl FnMut(&Happening)) -> io::Result<()> {
        while !self.engine.stopped {
            self.engine.turn(Time::NEVER)?;
            while let Ok(Dial { to, mut socket, greeting }) = self.dials.try_recv() {
                if let Some(shortage) = self.engine.shortage() {
                    self.engine.guard.refuse(shortage, 1);
                    let _ = socket.write_all(&greeting.full);
                    continue;
                }
                let failed = greeting.silent.clone();
                let again = socket.try_clone();
                if self.connect(to, socket, Some(greeting)).is_err()
                    && let Ok(again) = again
                {
                    socket = again;
                    // Who does not listen any more is no concern of ours.
                    let _ = socket.write_all(&failed);
                }
            }
            self.engine.happenings.drain(..).for_each(|happening| tell(&happening));
        }
        self.engine.end_in_order(&mut tell)
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
