//! The client's role: connections to a Multipath TCP server, from several addresses.

use crate::asker::ASK;
use crate::driver::Driver;
use crate::program::Program;
use crate::serve::fit_to_kernels;
use crate::world::Kernel;
use crate::{Device, add_route, exit};
use plait_base::{ConnId, Span, Time};
use plait_core::ConnectionSpec;
use plait_engine::{
    Exit, Greeting, Happening, Limits, Names, Observe, OwnAddress, StackCounters, Ways,
};
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
    driver: Driver,
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
        let mut kernel = Kernel::new(device)?;
        let mut own = Vec::new();
        let routed = from.iter().map(|origin| origin.address).collect();
        for Origin { address, device: exit } in from {
            add_route(&kernel.device, address)?;
            let exit = exit.map(|name| exit::Exit::open(&name, address)).transpose()?;
            let place = exit.map(|exit| {
                kernel.exits.push(exit);
                Exit(kernel.exits.len() - 1)
            });
            own.push(OwnAddress { address, exit: place });
        }
        let stack = kernel.stack(Names::client(Ways::new(own)))?;
        let mut driver = Driver::new(stack, None)?;
        driver.routed = routed;
        let (sender, dials) = mpsc::channel();
        let dialler = Dialler { dials: sender, waker: Arc::new(driver.stopper()?) };
        Ok(Client { driver, spec, dialler, dials })
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
        self.driver.engine.connect(spec, to, Program(socket), greeting)
    }

    /// Once [`Client::serve`] is stopped, connections have so long to end.
    pub fn drain_for(&mut self, time: Span) {
        self.driver.drain = time;
    }

    /// Why fewer packets than usual may wait for this process, if so.
    #[must_use]
    pub fn short_queue(&self) -> Option<&io::Error> {
        self.driver.engine.stack.world.device.short_queue()
    }

    /// Name of the device.
    #[must_use]
    pub fn device(&self) -> &str {
        self.driver.engine.stack.world.device.name()
    }

    /// From now on connections take no more than this together; further ones are not dialled.
    pub fn limit(&mut self, limits: Limits) {
        self.driver.engine.limit(limits);
    }

    /// From now on connections that are not there after `patience` are given up; without, TCP decides.
    pub fn give_up_after(&mut self, patience: Span) {
        self.driver.engine.give_up_after(patience);
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
        while !self.driver.stopped {
            self.driver.turn(Time::NEVER)?;
            while let Ok(Dial { to, mut socket, greeting }) = self.dials.try_recv() {
                if let Some(shortage) = self.driver.engine.shortage() {
                    self.driver.engine.refuse(shortage);
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
            self.driver.tell(&mut tell);
        }
        self.driver.end_in_order(&mut tell)
    }

    /// Tells `observer` of every packet and of every event from now on. It costs: an endpoint that
    /// nobody observes records nothing.
    pub fn observe(&mut self, observer: Box<dyn Observe>) {
        self.driver.engine.stack.observe(observer);
    }

    /// Something that is written to, to end [`Client::run`] and its connections at once.
    ///
    /// # Errors
    /// Where the process has no file descriptor left.
    pub fn stopper(&self) -> io::Result<UnixStream> {
        self.driver.stopper()
    }

    /// What the stack has seen so far.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.driver.engine.stack.counters()
    }

    /// Runs until all connections are over, or it is stopped. `tell` hears what happens.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn run(&mut self, mut tell: impl FnMut(&Happening)) -> io::Result<()> {
        let driver = &mut self.driver;
        while !driver.stopped && !driver.engine.is_idle() {
            driver.turn(Time::NEVER)?;
            driver.tell(&mut tell);
        }
        if driver.stopped {
            driver.engine.abort("stopped")?;
            driver.tell(&mut tell);
        }
        let until = driver.now() + LEAVE;
        while !driver.stopped && !driver.engine.is_over() {
            if driver.now() >= until {
                break;
            }
            driver.turn(until)?;
        }
        Ok(())
    }
}
