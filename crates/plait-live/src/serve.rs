//! Multipath TCP in front of a TCP service.

use crate::choice::{Choice, Choices};
use crate::engine::{DRAIN, Engine, Service};
use crate::happening::Happening;
use crate::limits::Limits;
use crate::names::Names;
use crate::observe::Observe;
use crate::overview::Asker;
use crate::stack::{Stack, StackCounters};
use crate::{Device, add_route};
use plait_base::{Span, Time};
use plait_core::{Config, ConnectionSpec};
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
    engine: Engine,
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
        let mut stack = Stack::new(device, Names::server_with(listen.ip(), stand_ins))?;
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
        for (port, spec) in &all {
            stack.endpoint.listen(*port, Arc::clone(spec));
        }
        let choices = choices.into_iter().map(|Choice { of, spec }| Choice { of, spec: fit(spec) });
        stack.choices = Choices::new(choices.collect(), &all);
        let service = Service { to, proxy_header, listen };
        let ports = all.into_iter().map(|(port, _)| port).collect();
        let mut engine = Engine::new(stack, Some(service))?;
        engine.routed = routed;
        Ok(Server { engine, ports })
    }

    /// Tells `observer` of every packet and of every event from now on. It costs: an endpoint that
    /// nobody observes records nothing.
    pub fn observe(&mut self, observer: Box<dyn Observe>) {
        self.engine.stack.observe(observer);
    }

    /// Once the server is stopped, connections have so long to end.
    pub fn drain_for(&mut self, time: Span) {
        self.engine.drain = time;
    }

    /// Why fewer packets than usual may wait for this process, if so.
    #[must_use]
    pub fn short_queue(&self) -> Option<&io::Error> {
        self.engine.stack.device.short_queue()
    }

    /// From now on connections take no more than this together.
    pub fn limit(&mut self, limits: Limits) {
        self.engine.guard.limits = limits;
    }

    /// Something that is written to, to end [`Server::run`].
    ///
    /// # Errors
    /// Where the process has no file descriptor left.
    pub fn stopper(&self) -> io::Result<UnixStream> {
        self.engine.stopper()
    }

    /// Something that tells how [`Server::run`] stands.
    #[must_use]
    pub fn asker(&self) -> Asker {
        self.engine.questions.asker()
    }

    /// Name of the device.
    #[must_use]
    pub fn device(&self) -> &str {
        self.engine.stack.device.name()
    }

    /// What the stack has seen so far.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.engine.stack.counters
    }

    /// Serves until it is stopped; then takes no more connections, and ends when the last one has
    /// ended, it is stopped again or the time to drain is over. `tell` hears what happens.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn run(&mut self, mut tell: impl FnMut(&Happening)) -> io::Result<()> {
        let engine = &mut self.engine;
        while !engine.stopped {
            engine.turn(Time::NEVER)?;
            engine.answer();
            engine.happenings.drain(..).for_each(|happening| tell(&happening));
        }
        engine.stack.choices.stop();
        for port in &self.ports {
            engine.stack.endpoint.stop_listening(*port);
        }
        engine.end_in_order(&mut tell)
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
