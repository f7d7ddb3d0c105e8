//! The loop around an engine: it waits for the kernel, for whoever stops it, and for questions.

use crate::asker::{ASK, Questions, STOP};
use crate::links::LinkWatch;
use crate::poller::Ready;
use crate::world::{DEVICE, Kernel};
use plait_base::{ConnId, Span, Time};
use plait_engine::{self as engine, Engine, Happening, Service, Stack};
use std::fs;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// What the poller knows beside the device and streams.
const WAKER: u64 = u64::MAX - 1;
const LINKS: u64 = u64::MAX - 2;
/// How long connections have to end once a server is stopped, unless it is told otherwise.
pub(crate) const DRAIN: Span = Span::from_secs(5);
/// Longest wait.
const LONGEST: Span = Span::from_secs(60);

/// An engine on this host's kernel.
pub(crate) struct Driver {
    pub(crate) engine: Engine<Kernel>,
    links: LinkWatch,
    /// What has routes to the device.
    pub(crate) routed: Vec<IpAddr>,
    ready: Vec<Ready>,
    /// What of it is the engine's.
    handed: Vec<engine::Ready>,
    stopper: (UnixStream, UnixStream),
    pub(crate) stopped: bool,
    pub(crate) questions: Questions,
    /// How long connections have to end once this is stopped.
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
            links,
            routed: Vec::new(),
            ready: Vec::new(),
            handed: Vec::new(),
            questions: Questions::new(stopper.1.try_clone()?),
            stopper,
            stopped: false,
            drain: DRAIN,
        })
    }

    /// Something that [`STOP`] is written to, to set `stopped`.
    pub(crate) fn stopper(&self) -> io::Result<UnixStream> {
        self.stopper.1.try_clone()
    }

    pub(crate) fn now(&self) -> Time {
        self.engine.stack.now()
    }

    /// Waits until something is to be done, at most until `deadline`, and does it.
    pub(crate) fn turn(&mut self, deadline: Time) -> io::Result<()> {
        let until = self.engine.next().min(deadline);
        let Kernel { poller, clock, .. } = &self.engine.stack.world;
        poller.wait(clock, until, LONGEST, &mut self.ready)?;
        self.handed.clear();
        for at in 0..self.ready.len() {
            match self.ready[at].token {
                DEVICE => self.handed.push(engine::Ready::Packets),
                WAKER => self.on_woken()?,
                LINKS => self.on_links(),
                conn => self.handed.push(engine::Ready::Stream(ConnId(conn as u32))),
            }
        }
        self.engine.turn(&self.handed)
    }

    /// Goes on until nothing is relayed any more, it is stopped once more or the time to drain is over;
    /// what is left is ended then.
    pub(crate) fn end_in_order(&mut self, tell: &mut dyn FnMut(&Happening)) -> io::Result<()> {
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

    /// Tells what has happened.
    pub(crate) fn tell(&mut self, tell: &mut dyn FnMut(&Happening)) {
        self.engine.happenings.drain(..).for_each(|happening| tell(&happening));
    }

    /// Answers those who ask how the server stands.
    pub(crate) fn answer(&self) {
        self.questions.answer(|| self.engine.overview());
    }

    /// The device may have gone down or come up.
    fn on_links(&mut self) {
        for up in self.links.news() {
            let device = self.engine.stack.world.device.name().to_owned();
            let routed = self.routed.clone();
            self.engine.happenings.push(Happening::Device { device, routed, up });
        }
    }

    /// Somebody asks for an end or has a question.
    fn on_woken(&mut self) -> io::Result<()> {
        let mut bytes = [ASK; 64];
        let count = self.stopper.0.read(&mut bytes)?;
        self.stopped |= bytes[..count].contains(&STOP);
        Ok(())
    }
}

/// How long the kernel of this host keeps what is left of a program that is gone and has ended its side.
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
    use rustix::fd::AsFd;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    /// What a wait of at most `ms` tells.
    fn told(poller: &Poller, ms: u64) -> Vec<Ready> {
        let (clock, mut ready) = (Clock::start(), Vec::new());
        let longest = Span::from_millis(ms);
        poller.wait(&clock, Time::NEVER, longest, &mut ready).unwrap();
        ready
    }

    /// Thousands of idle connections are not to wake the loop: their sockets can always be written to.
    #[test]
    fn an_idle_socket_wakes_nobody() {
        let service = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut socket = TcpStream::connect(service.local_addr().unwrap()).unwrap();
        let poller = Poller::open().unwrap();
        let (connecting, idle) = (Some((false, true)), Some((true, false)));
        poller.change(socket.as_fd(), 1, None, connecting).unwrap();
        assert_eq!(told(&poller, 60_000).len(), 1);
        poller.change(socket.as_fd(), 1, connecting, idle).unwrap();
        assert_eq!(told(&poller, 1), []);
        // Its end is told.
        drop(service.accept().unwrap());
        assert_eq!(told(&poller, 60_000).len(), 1);
        assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    }
}
