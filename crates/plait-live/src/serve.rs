//! Multipath TCP in front of a TCP service.

use crate::driver::{DRAIN, Driver};
use crate::world::{Kernel, is_own};
use crate::{Asker, Device, add_route};
use plait_base::{Span, Time};
use plait_core::{Config, ConnectionSpec, MemorySettings, PathEntry, Quota};
use plait_engine::{
    Choice, Limits, LogEvent, Names, Observe, Prefix, RequestKey, Service, StackCounters,
};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A further address of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceAddress {
    /// The address that clients use.
    pub address: IpAddr,
    /// The address behind the TUN device. It differs from `address` if the host itself has that address and
    /// translates between the two.
    pub local: IpAddr,
    /// Whether it is advertised to clients of other addresses (ADD_ADDR).
    pub announced: bool,
}

impl From<IpAddr> for ServiceAddress {
    /// Returns an advertised address that no device of the host has.
    fn from(address: IpAddr) -> ServiceAddress {
        ServiceAddress { address, local: address, announced: true }
    }
}

/// Where a server relays connections to.
#[derive(Clone, Debug)]
pub enum Target {
    /// A TCP service.
    Service(SocketAddr),
    /// The destination that the client of each connection requests with this key.
    Requested(RequestKey),
}

impl From<SocketAddr> for Target {
    fn from(to: SocketAddr) -> Target {
        Target::Service(to)
    }
}

/// Configuration of a [`Server`].
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// The address that clients connect to. No device of this host may have it.
    pub listen: SocketAddr,
    /// Further addresses of it.
    pub further: Vec<ServiceAddress>,
    /// Where connections are relayed to.
    pub to: Target,
    /// Name of the TUN device.
    pub device: String,
    /// Whether each relayed connection begins with the client's address (PROXY protocol, version 2).
    pub proxy_header: bool,
    /// Settings of each connection. The server fills in the further addresses.
    pub spec: ConnectionSpec,
    /// Further ports of the same addresses, each with the settings of its connections.
    pub ports: Vec<(u16, ConnectionSpec)>,
    /// Price of a byte to clients with these prefixes. The first prefix that contains an address applies;
    /// others are free.
    pub costs: Vec<(Prefix, u32)>,
    /// The quota of the bytes sent to all clients with each of these prefixes. The first prefix that contains an address
    /// applies. Clones share the bytes that are used up.
    pub quotas: Vec<(Prefix, Quota)>,
    /// Other settings for some clients. The first entry that matches a client applies.
    pub choices: Vec<Choice>,
}

impl ServeSettings {
    /// Returns the settings of a server in front of `to`, with one address and port, and without prices.
    #[must_use]
    pub fn new(
        listen: SocketAddr,
        to: impl Into<Target>,
        device: &str,
        spec: ConnectionSpec,
    ) -> ServeSettings {
        ServeSettings {
            listen,
            further: Vec::new(),
            to: to.into(),
            device: device.to_owned(),
            proxy_header: false,
            spec,
            ports: Vec::new(),
            costs: Vec::new(),
            quotas: Vec::new(),
            choices: Vec::new(),
        }
    }
}

/// A running server.
pub struct Server {
    driver: Driver,
    ports: Vec<u16>,
    /// The address that clients dial.
    dialled: IpAddr,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("device", &self.device()).finish_non_exhaustive()
    }
}

impl Server {
    /// Default time for connections to end after the server is stopped. [`Server::drain_for`] changes it.
    pub const DRAIN: Span = DRAIN;

    /// Creates the device and its routes, and listens.
    ///
    /// # Errors
    /// If the process may not create devices, or if an address already has a route.
    pub fn open(settings: ServeSettings) -> io::Result<Server> {
        let ServeSettings { listen, further, to, device, proxy_header, spec, .. } = settings;
        let ServeSettings { ports, costs, quotas, choices, .. } = settings;
        let device = Device::build(
            &device,
            spec.config.packets.mtu as u16,
            spec.config.packets.superpacket > 0,
        )?;
        let own = || std::iter::once(listen.ip()).chain(further.iter().map(|it| it.local));
        for address in own() {
            add_route(&device, address)?;
        }
        let routed = own().collect();
        let stand_ins = further.iter().map(|it| (it.local, it.address)).collect();
        let names = Names::server_with(listen.ip(), stand_ins).priced(costs, quotas);
        let mut stack = Kernel::new(device)?.stack(names)?;
        for it in &further {
            stack.endpoint.number_address(it.address);
        }
        let announced: Vec<IpAddr> =
            further.iter().filter(|it| it.announced).map(|it| it.address).collect();
        let fit = |mut spec: ConnectionSpec| {
            fit_to_kernels(&mut spec, listen.ip());
            spec.addresses.clone_from(&announced);
            spec
        };
        let all = std::iter::once((listen.port(), spec)).chain(ports);
        let all: Vec<_> = all.map(|(port, spec)| (port, Arc::new(fit(spec)))).collect();
        let choices = choices.into_iter().map(|Choice { of, spec }| Choice { of, spec: fit(spec) });
        let service = match to {
            Target::Service(to) => {
                Some(Service { to, proxy_header, listen, near: is_own(to.ip()) })
            }
            Target::Requested(_) => None,
        };
        let mut driver = Driver::new(stack, service)?;
        if let Target::Requested(key) = to {
            driver.engine.relay_by_request(key);
        }
        driver.engine.listen(&all, choices.collect());
        driver.routed = routed;
        let ports = all.into_iter().map(|(port, _)| port).collect();
        Ok(Server { driver, ports, dialled: listen.ip() })
    }

    /// Passes every packet and every event to `observer` from now on. Without an observer the endpoint
    /// records nothing, which is faster.
    pub fn observe(&mut self, observer: Box<dyn Observe>) {
        self.driver.engine.stack.observe(observer);
    }

    /// Sets the time that connections have to end after the server is stopped.
    pub fn drain_for(&mut self, time: Span) {
        self.driver.drain = time;
    }

    /// Returns the error if the queue of the device could not be made long enough.
    #[must_use]
    pub fn short_queue(&self) -> Option<&io::Error> {
        self.driver.engine.stack.world.device.short_queue()
    }

    /// Limits the memory of all connections together.
    pub fn limit(&mut self, limits: Limits) {
        self.driver.engine.limit(limits);
    }

    /// Returns a pipe. A byte written to it ends [`Server::run`].
    ///
    /// # Errors
    /// If the process has no file descriptor left.
    pub fn stopper(&self) -> io::Result<UnixStream> {
        self.driver.stopper()
    }

    /// Returns a handle that asks [`Server::run`] for its state.
    #[must_use]
    pub fn asker(&self) -> Asker {
        self.driver.questions.asker()
    }

    /// Remembers paths from now on, and begins with the entries of an earlier process.
    pub fn remember_paths(&mut self, settings: &MemorySettings, entries: &[PathEntry]) {
        self.driver
            .engine
            .remember_paths(&MemorySettings { own: Some(self.dialled), ..*settings }, entries);
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

    /// Returns the counters of the stack.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.driver.engine.stack.counters()
    }

    /// Serves until it is stopped. Then it accepts no more connections, and returns when the last one has
    /// ended, when it is stopped again, or when the drain time is over. Calls `tell` with each event.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn run(&mut self, mut tell: impl FnMut(&LogEvent)) -> io::Result<()> {
        let driver = &mut self.driver;
        while !driver.stopped {
            driver.turn(Time::NEVER)?;
            driver.answer();
            driver.tell(&mut tell);
        }
        driver.engine.stop_listening(&self.ports);
        driver.end_in_order(&mut tell)
    }
}

/// Sets the values in `spec` that stock kernels require at addresses of this family.
pub(crate) fn fit_to_kernels(spec: &mut ConnectionSpec, address: IpAddr) {
    // The core assumes an IPv4 header, which is 20 bytes shorter than an IPv6 header.
    if address.is_ipv6() {
        spec.config.packets.mtu -= 20;
        spec.config.packets.unsaid_mss = Config::UNSAID_MSS_V6;
    }
    spec.config.buffers.subflow_windows = true;
}
