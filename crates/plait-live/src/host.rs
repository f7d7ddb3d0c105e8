use crate::poller::Ready;
use crate::serve::fit_to_kernels;
use crate::world::Kernel;
use crate::{Device, add_route};
use plait_base::{Span, Time};
use plait_core::{ConnectionSpec, Endpoint};
use plait_engine::{Names, Stack, StackCounters};
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// An endpoint over a TUN device for a program that is itself what speaks: it reads and writes the
/// connections, where [`Server`](crate::Server) relays them to sockets.
pub struct Host {
    stack: Stack<Kernel>,
    ready: Vec<Ready>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("device", &self.stack.world.device).finish_non_exhaustive()
    }
}

impl Host {
    /// Makes the device, routes the address of `listen` into it, and accepts connections there.
    ///
    /// # Errors
    /// Where the process may not make devices, or there is a route for the address already.
    pub fn listen(listen: SocketAddr, device: &str, mut spec: ConnectionSpec) -> io::Result<Host> {
        let device = Device::build(device, spec.config.mtu as u16, spec.config.superpacket > 0)?;
        add_route(&device, listen.ip())?;
        let mut stack = Kernel::new(device)?.stack(Names::server(listen.ip()))?;
        fit_to_kernels(&mut spec, listen.ip());
        stack.endpoint.listen(listen.port(), spec);
        Ok(Host { stack, ready: Vec::new() })
    }

    /// The endpoint, for its users.
    pub fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.stack.endpoint
    }

    /// What the clock of the endpoint shows.
    #[must_use]
    pub fn now(&self) -> Time {
        self.stack.now()
    }

    /// What the device has seen.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.stack.counters()
    }

    /// Sends what is to be sent, waits for packets or a timer, at most for `longest`, and takes in
    /// what came. Then it is the users' turn ([`Endpoint::poll_news`]).
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn turn(&mut self, longest: Span) -> io::Result<()> {
        while self.stack.send()? {}
        let next = self.stack.next();
        let Kernel { poller, clock, .. } = &self.stack.world;
        poller.wait(clock, next, longest, &mut self.ready)?;
        self.stack.forget_resets();
        self.stack.expire();
        if self.ready.is_empty() { Ok(()) } else { self.stack.take_in() }
    }
}
