//! The event loop of an engine. It waits for the kernel, for stop requests and for state requests.

use crate::asker::{ASK, Questions, STOP};
use crate::heap::Heap;
use crate::links::LinkWatch;
use crate::lookup::Lookup;
use crate::poller::Ready;
use crate::world::{DEVICE, Kernel};
use plait_base::{ConnId, Span, Time};
use plait_engine::{self as engine, Engine, LogEvent, Service, Stack};
use std::fs;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Tokens of the poller for the waker and the link watch.
const WAKER: u64 = u64::MAX - 1;
const LINKS: u64 = u64::MAX - 2;
/// Default time for connections to end after a server is stopped.
pub(crate) const DRAIN: Span = Span::from_secs(5);
/// Longest wait of one turn.
const MAX_WAIT: Span = Span::from_secs(60);

/// An engine on this host's kernel.
pub(crate) struct Driver {
    pub(crate) engine: Engine<Kernel>,
    heap: Heap,
    links: LinkWatch,
    lookup: Lookup,
    /// Addresses with a route to the device.
    pub(crate) routed: Vec<IpAddr>,
    ready: Vec<Ready>,
    /// The events of `ready` that concern the engine.
    handed: Vec<engine::Ready>,
    stopper: (UnixStream, UnixStream),
    pub(crate) stopped: bool,
    pub(crate) questions: Questions,
    /// Time that connections have to end after a stop.
    pub(crate) drain: Span,
}

impl Driver {
    pub(crate) fn new(stack: Stack<Kernel>, service: Option<Service>) -> io::Result<Driver> {
        let Kernel { poller, device, .. } = &stack.world;
        let stopper = UnixStream::pair()?;
        stopper.0.set_nonblocking(true)?;
        poller.add(&stopper.0, WAKER, true, false)?;
        let links = LinkWatch::open(device.index())?;
        poller.add(&links, LINKS, true, false)?;
        let mut engine = Engine::new(stack, service);
        if let Some(orphaned) = orphaned() {
            engine.ask_after(orphaned);
        }
        Ok(Driver {
            engine,
            heap: Heap::new(),
            links,
            lookup: Lookup::new(stopper.1.try_clone()?),
            routed: Vec::new(),
            ready: Vec::new(),
            handed: Vec::new(),
            questions: Questions::new(stopper.1.try_clone()?),
            stopper,
            stopped: false,
            drain: DRAIN,
        })
    }

    /// Returns a pipe. A byte written to it wakes the poller with [`STOP`] and sets `stopped`.
    pub(crate) fn stopper(&self) -> io::Result<UnixStream> {
        self.stopper.1.try_clone()
    }

    pub(crate) fn now(&self) -> Time {
        self.engine.stack.now()
    }

    /// Waits for an event or a timer, at most until `deadline`, and handles it.
    pub(crate) fn turn(&mut self, deadline: Time) -> io::Result<()> {
        let until = self.engine.next().min(self.heap.next()).min(deadline);
        let Kernel { poller, clock, .. } = &self.engine.stack.world;
        poller.wait(clock, until, MAX_WAIT, &mut self.ready)?;
        self.handed.clear();
        for at in 0..self.ready.len() {
            match self.ready[at].token {
                DEVICE => self.handed.push(engine::Ready::Packets),
                WAKER => self.on_woken()?,
                LINKS => self.on_links(),
                conn => self.handed.push(engine::Ready::Stream(ConnId(conn as u32))),
            }
        }
        self.engine.turn(&self.handed)?;
        let Driver { engine, heap, lookup, .. } = self;
        let begun = std::mem::take(&mut engine.wanted).into_iter();
        let at_once: Vec<_> = begun.filter_map(|(conn, to)| lookup.begin(conn, to)).collect();
        for (conn, to) in at_once.into_iter().chain(lookup.answers()) {
            engine.lead(conn, to);
        }
        heap.check(engine.stack.now(), || engine.memory_report().bytes);
        Ok(())
    }

    /// Continues until all connections have ended, a second stop request arrives, or the drain time is over.
    /// Then it resets the remaining connections.
    pub(crate) fn end_in_order(&mut self, tell: &mut dyn FnMut(&LogEvent)) -> io::Result<()> {
        self.stopped = false;
        let until = self.now() + self.drain;
        while !self.stopped && !self.engine.is_over() && self.now() < until {
            self.turn(until)?;
            self.answer();
            self.tell(tell);
        }
        self.engine.abort("the server ends")?;
        self.tell(tell);
        Ok(())
    }

    /// Calls `tell` with each pending event of the engine.
    pub(crate) fn tell(&mut self, tell: &mut dyn FnMut(&LogEvent)) {
        self.engine.log_events.drain(..).for_each(|event| tell(&event));
    }

    /// Answers requests for the state of the server.
    pub(crate) fn answer(&self) {
        self.questions.answer(|| self.engine.overview());
    }

    /// Logs an event for each change of the device between up and down.
    fn on_links(&mut self) {
        for up in self.links.news() {
            let device = self.engine.stack.world.device.name().to_owned();
            let routed = self.routed.clone();
            self.engine.log_events.push(LogEvent::Device { device, routed, up });
        }
    }

    /// Handles stop requests. State requests only have to wake the loop.
    fn on_woken(&mut self) -> io::Result<()> {
        let mut bytes = [ASK; 64];
        let count = self.stopper.0.read(&mut bytes)?;
        self.stopped |= bytes[..count].contains(&STOP);
        Ok(())
    }
}

/// Returns how long the kernel of this host keeps orphaned sockets in FIN-WAIT-2 (`tcp_fin_timeout`).
fn orphaned() -> Option<Duration> {
    let told = fs::read_to_string("/proc/sys/net/ipv4/tcp_fin_timeout").ok();
    let seconds: Option<u64> = told.and_then(|text| text.trim().parse().ok());
    seconds.filter(|it| *it > 0).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use crate::Clock;
    use crate::poller::{Poller, Ready};
    use plait_base::{Span, Time};
    use plait_engine::Interest;
    use rustix::fd::AsFd;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    /// Waits for at most `ms` and returns the events.
    fn told(poller: &Poller, ms: u64) -> Vec<Ready> {
        let (clock, mut ready) = (Clock::start(), Vec::new());
        let longest = Span::from_millis(ms);
        poller.wait(&clock, Time::NEVER, longest, &mut ready).unwrap();
        ready
    }

    /// Idle sockets are always writable. Thousands of them must not wake the loop.
    #[test]
    fn an_idle_socket_wakes_nobody() {
        let service = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut socket = TcpStream::connect(service.local_addr().unwrap()).unwrap();
        let poller = Poller::open().unwrap();
        let connecting = Some(Interest { read: false, write: true });
        let idle = Some(Interest { read: true, write: false });
        poller.change(socket.as_fd(), 1, None, connecting).unwrap();
        assert_eq!(told(&poller, 60_000).len(), 1);
        poller.change(socket.as_fd(), 1, connecting, idle).unwrap();
        assert_eq!(told(&poller, 1), []);
        // The end of the stream wakes the loop.
        drop(service.accept().unwrap());
        assert_eq!(told(&poller, 60_000).len(), 1);
        assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    }
}
