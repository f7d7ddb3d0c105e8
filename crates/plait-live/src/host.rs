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

/// An endpoint over a TUN device for a program that reads and writes its connections itself.
/// [`Server`](crate::Server) relays connections to sockets instead.
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
    /// Creates the device, routes the address of `listen` to it, and accepts connections there.
    ///
    /// # Errors
    /// If the process may not create devices, or if the address already has a route.
    pub fn listen(listen: SocketAddr, device: &str, mut spec: ConnectionSpec) -> io::Result<Host> {
        let device = Device::build(
            device,
            spec.config.packets.mtu as u16,
            spec.config.packets.superpacket > 0,
        )?;
        add_route(&device, listen.ip())?;
        let mut stack = Kernel::new(device)?.stack(Names::server(listen.ip()))?;
        fit_to_kernels(&mut spec, listen.ip());
        stack.endpoint.listen(listen.port(), spec);
        Ok(Host { stack, ready: Vec::new() })
    }

    /// Returns the endpoint.
    pub fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.stack.endpoint
    }

    /// Returns the time of the endpoint's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.stack.now()
    }

    /// Returns the counters of the device.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.stack.counters()
    }

    /// Sends pending segments, waits at most `longest` for packets or a timer, and processes the packets.
    /// After it, read the events from [`Endpoint::poll_news`].
    ///
    /// # Errors
    /// If the device is gone.
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
