//! The client's role: connections to a Multipath TCP server, from several addresses.

use crate::asker::ASK;
use crate::driver::Driver;
use crate::program::Program;
use crate::serve::fit_to_kernels;
use crate::world::Kernel;
use crate::{Device, add_route, exit};
use plait_base::{ConnId, Span, Time};
use plait_core::{ConnectionSpec, MemorySettings, PathEntry, Quota};
use plait_engine::{
    Exit, Greeting, Limits, LogEvent, Names, Observe, OwnAddress, PathTable, StackCounters,
};
use socket2::Socket;
use std::fmt;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

/// Time for the DATA_FIN and the FINs of the subflows after the data of a connection is acknowledged.
const LEAVE: Span = Span::from_secs(3);

/// An address to dial from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The address. No device of this host may have it.
    pub address: IpAddr,
    /// The device by which packets from this address leave. `None` uses the routing table.
    pub device: Option<String>,
    /// Price of a byte sent from it, relative to other addresses; 0 is free.
    pub cost: u32,
    /// The quota of the bytes sent from it. Clones share the bytes that are used up.
    pub quota: Option<Quota>,
}

/// Configuration of a [`Client`].
#[derive(Clone, Debug)]
pub struct DialSettings {
    /// Own addresses. A connection starts from the first one of the server's address family.
    pub from: Vec<Origin>,
    /// Name of the TUN device.
    pub device: String,
    /// Settings of each connection. The client fills in the paths.
    pub spec: ConnectionSpec,
}

/// A requested connection.
#[derive(Debug)]
pub struct Dial {
    /// Address of the server.
    pub to: SocketAddr,
    /// Source of the data to send, and sink for the received data.
    pub socket: Socket,
    /// Text written to `socket` before any data, if the program waits for it.
    pub greeting: Option<Greeting>,
    /// Bytes sent to the server before any data.
    pub request: Vec<u8>,
}

/// Requests connections from a running client, from any thread.
#[derive(Clone, Debug)]
pub struct Dialler {
    dials: Sender<Dial>,
    waker: Arc<UnixStream>,
}

impl Dialler {
    /// Requests a connection. Returns `false` if the client no longer runs.
    #[must_use]
    pub fn dial(&self, dial: Dial) -> bool {
        self.dials.send(dial).is_ok() && (&*self.waker).write_all(&[ASK]).is_ok()
    }
}

/// A client that can connect to any number of servers.
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
    /// Creates the device, its routes, and the raw sockets for origins with a device.
    ///
    /// # Errors
    /// If the process may not create devices or raw sockets, or if an address already has a route.
    pub fn open(settings: DialSettings) -> io::Result<Client> {
        let DialSettings { from, device, mut spec } = settings;
        let device = Device::build(
            &device,
            spec.config.packets.mtu as u16,
            spec.config.packets.superpacket > 0,
        )?;
        spec.config.buffers.subflow_windows = true;
        let mut kernel = Kernel::new(device)?;
        let mut own = Vec::new();
        let routed = from.iter().map(|origin| origin.address).collect();
        for Origin { address, device: exit, cost, quota } in from {
            add_route(&kernel.device, address)?;
            let exit = exit.map(|name| exit::Exit::open(&name, address)).transpose()?;
            let place = exit.map(|exit| {
                kernel.exits.push(exit);
                Exit(kernel.exits.len() - 1)
            });
            own.push(OwnAddress { address, exit: place, cost, quota });
        }
        let stack = kernel.stack(Names::client(PathTable::new(own)))?;
        let mut driver = Driver::new(stack, None)?;
        driver.routed = routed;
        let (sender, dials) = mpsc::channel();
        let dialler = Dialler { dials: sender, waker: Arc::new(driver.stopper()?) };
        Ok(Client { driver, spec, dialler, dials })
    }

    /// Connects to `to` and relays the connection to `socket`. `greeting` is written to `socket` before any
    /// data.
    ///
    /// # Errors
    /// If the poller cannot watch the socket, or if the client has no address of that family.
    pub fn connect(
        &mut self,
        to: SocketAddr,
        socket: Socket,
        greeting: Option<Greeting>,
    ) -> io::Result<ConnId> {
        socket.set_nonblocking(true)?;
        let mut spec = self.spec.clone();
        fit_to_kernels(&mut spec, to.ip());
        self.driver.engine.connect(spec, to, Program::new(socket), greeting)
    }

    /// Sets the time that connections have to end after [`Client::serve`] is stopped.
    pub fn drain_for(&mut self, time: Span) {
        self.driver.drain = time;
    }

    /// Returns the error if the queue of the device could not be made long enough.
    #[must_use]
    pub fn short_queue(&self) -> Option<&io::Error> {
        self.driver.engine.stack.world.device.short_queue()
    }

    /// Remembers paths from now on, and begins with the entries of an earlier process.
    pub fn remember_paths(&mut self, settings: &MemorySettings, entries: &[PathEntry]) {
        self.driver.engine.remember_paths(settings, entries);
    }

    /// Returns the remembered paths, with the values of open subflows.
    pub fn remembered_paths(&mut self) -> Vec<PathEntry> {
        self.driver.engine.remembered_paths()
    }

    /// Returns the name of the device.
    #[must_use]
    pub fn device(&self) -> &str {
        self.driver.engine.stack.world.device.name()
    }

    /// Limits the memory of all connections together. Beyond the limit, no further connection is dialled.
    pub fn limit(&mut self, limits: Limits) {
        self.driver.engine.limit(limits);
    }

    /// Gives up connections that are not established after `patience`. Without this call, TCP's own limits
    /// apply.
    pub fn give_up_after(&mut self, patience: Span) {
        self.driver.engine.give_up_after(patience);
    }

    /// Returns a handle that requests connections from [`Client::serve`].
    #[must_use]
    pub fn dialler(&self) -> Dialler {
        self.dialler.clone()
    }

    /// Opens the requested connections until it is stopped. It then returns when the last connection has
    /// ended, when it is stopped again, or when the drain time is over. Calls `tell` with each event.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn serve(&mut self, mut tell: impl FnMut(&LogEvent)) -> io::Result<()> {
        while !self.driver.stopped {
            self.driver.turn(Time::NEVER)?;
            while let Ok(dial) = self.dials.try_recv() {
                self.open_dial(dial);
            }
            self.driver.tell(&mut tell);
        }
        self.driver.end_in_order(&mut tell)
    }

    /// Opens a requested connection, or answers the program that it fails.
    fn open_dial(&mut self, dial: Dial) {
        let Dial { to, mut socket, greeting, request } = dial;
        let answer = |of: fn(&Greeting) -> &Vec<u8>| greeting.as_ref().map(of).cloned();
        let (full, silent) = (answer(|it| &it.full), answer(|it| &it.silent));
        if let Some(shortage) = self.driver.engine.shortage() {
            self.driver.engine.refuse(shortage);
            // If this fails, the program has closed its socket.
            let _ = socket.write_all(&full.unwrap_or_default());
            return;
        }
        let again = socket.try_clone();
        match (self.connect(to, socket, greeting), again, silent) {
            (Ok(conn), ..) => self.driver.engine.request(conn, &request),
            (Err(_), Ok(mut again), Some(silent)) => {
                let _ = again.write_all(&silent);
                let _ = again.set_linger(None);
            }
            _ => {}
        }
    }

    /// Passes every packet and every event to `observer` from now on. Without an observer the endpoint
    /// records nothing, which is faster.
    pub fn observe(&mut self, observer: Box<dyn Observe>) {
        self.driver.engine.stack.observe(observer);
    }

    /// Returns a pipe. A byte written to it ends [`Client::run`] and its connections at once.
    ///
    /// # Errors
    /// If the process has no file descriptor left.
    pub fn stopper(&self) -> io::Result<UnixStream> {
        self.driver.stopper()
    }

    /// Returns the counters of the stack.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.driver.engine.stack.counters()
    }

    /// Runs until all connections are over or it is stopped. Calls `tell` with each event.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn run(&mut self, mut tell: impl FnMut(&LogEvent)) -> io::Result<()> {
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
