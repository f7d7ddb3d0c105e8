//! Multipath TCP in front of a TCP service.

use crate::driver::{DRAIN, Driver};
use crate::world::{Kernel, is_own};
use crate::{Asker, Device, add_route};
use plait_base::{Span, Time};
use plait_core::{Config, ConnectionSpec};
use plait_engine::{Choice, Happening, Limits, Names, Observe, Service, StackCounters};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A further address of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceAddress {
    /// The address as clients know it.
    pub address: IpAddr,
    /// The address behind the TUN device: the same one, or its stand-in if the host has the address
    /// itself and translates between the two.
    pub local: IpAddr,
    /// Clients of other addresses are told of it (ADD_ADDR).
    pub announced: bool,
}

impl From<IpAddr> for ServiceAddress {
    /// An address of the server alone, which clients are told of.
    fn from(address: IpAddr) -> ServiceAddress {
        ServiceAddress { address, local: address, announced: true }
    }
}

/// What a server is made from.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// Where clients connect to: an address that no device of this host has.
    pub listen: SocketAddr,
    /// Further addresses of it.
    pub further: Vec<ServiceAddress>,
    /// The TCP service behind it.
    pub to: SocketAddr,
    /// Name of the TUN device.
    pub device: String,
    /// The service is told of each client's address, by the PROXY protocol, version 2.
    pub proxy_header: bool,
    /// What connections are made from; further addresses are put in.
    pub spec: ConnectionSpec,
    /// Further ports of the same addresses, and what connections to them are made from.
    pub ports: Vec<(u16, ConnectionSpec)>,
    /// What connections are made from otherwise, by their clients: the first that is for one counts.
    pub choices: Vec<Choice>,
}

/// A running server.
pub struct Server {
    driver: Driver,
    ports: Vec<u16>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("device", &self.device()).finish_non_exhaustive()
    }
}

impl Server {
    /// How long connections have to end once the server is stopped, unless [`Server::drain_for`] says
    /// otherwise.
    pub const DRAIN: Span = DRAIN;

    /// Makes the device and its routes, and listens.
    ///
    /// # Errors
    /// Where the process may not make devices, or there is a route for the address already.
    pub fn open(settings: ServeSettings) -> io::Result<Server> {
        let ServeSettings { listen, further, to, device, proxy_header, spec, ports, choices } =
            settings;
        let device = Device::build(&device, spec.config.mtu as u16, spec.config.superpacket > 0)?;
        let own = || std::iter::once(listen.ip()).chain(further.iter().map(|it| it.local));
        for address in own() {
            add_route(&device, address)?;
        }
        let routed = own().collect();
        let stand_ins = further.iter().map(|it| (it.local, it.address)).collect();
        let mut stack = Kernel::new(device)?.stack(Names::server_with(listen.ip(), stand_ins))?;
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
        let service = Service { to, proxy_header, listen, near: is_own(to.ip()) };
        let mut driver = Driver::new(stack, Some(service))?;
        driver.engine.listen(&all, choices.collect());
        driver.routed = routed;
        let ports = all.into_iter().map(|(port, _)| port).collect();
        Ok(Server { driver, ports })
    }

    /// Tells `observer` of every packet and of every event from now on. It costs: an endpoint that
    /// nobody observes records nothing.
    pub fn observe(&mut self, observer: Box<dyn Observe>) {
        self.driver.engine.stack.observe(observer);
    }

    /// Once the server is stopped, connections have so long to end.
    pub fn drain_for(&mut self, time: Span) {
        self.driver.drain = time;
    }

    /// Why fewer packets than usual may wait for this process, if so.
    #[must_use]
    pub fn short_queue(&self) -> Option<&io::Error> {
        self.driver.engine.stack.world.device.short_queue()
    }

    /// From now on connections take no more than this together.
    pub fn limit(&mut self, limits: Limits) {
        self.driver.engine.limit(limits);
    }

    /// Something that is written to, to end [`Server::run`].
    ///
    /// # Errors
    /// Where the process has no file descriptor left.
    pub fn stopper(&self) -> io::Result<UnixStream> {
        self.driver.stopper()
    }

    /// Something that tells how [`Server::run`] stands.
    #[must_use]
    pub fn asker(&self) -> Asker {
        self.driver.questions.asker()
    }

    /// Name of the device.
    #[must_use]
    pub fn device(&self) -> &str {
        self.driver.engine.stack.world.device.name()
    }

    /// What the stack has seen so far.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.driver.engine.stack.counters()
    }

    /// Serves until it is stopped; then takes no more connections, and ends when the last one has
    /// ended, it is stopped again or the time to drain is over. `tell` hears what happens.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn run(&mut self, mut tell: impl FnMut(&Happening)) -> io::Result<()> {
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

/// What settings have to be towards stock kernels at addresses like this one.
pub(crate) fn fit_to_kernels(spec: &mut ConnectionSpec, address: IpAddr) {
    // The core counts with the IP header of IPv4, which is 20 bytes shorter than that of IPv6.
    if address.is_ipv6() {
        spec.config.mtu -= 20;
        spec.config.unsaid_mss = Config::UNSAID_MSS_V6;
    }
    spec.config.subflow_windows = true;
}
