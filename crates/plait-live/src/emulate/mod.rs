//! Paths between two network namespaces: for each a pair of TUN devices, and two links of
//! `plait-link` that run in real time between them. What kernels and programs send through them
//! meets the same rates, queues, delays, losses and outages as in the simulator.
//!
//! A packet may be handed on later than its link says: the host has other work. How late is
//! counted ([`Lateness`]), and says whether a run's times mean anything.

mod lateness;
mod strip;
mod way;

use crate::poller::{Poller, Ready};
use crate::{Clock, Device};
pub use lateness::Lateness;
use plait_base::{Span, Time};
use plait_link::{Link, LinkConfig, LinkCounters};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
pub use strip::Strip;
use way::Way;

/// Packets of one device that are taken before the others are looked at.
const BATCH: usize = 64;
/// The thread looks at its switches at least so often.
const LOOKS: Span = Span::from_millis(5);

/// Late packets that are remembered one by one.
const MOST_LATE: usize = 10_000;

/// A path to be emulated.
#[derive(Debug)]
pub struct Path {
    /// Its name; streams of random numbers are derived from it.
    pub name: String,
    /// The device in the client's namespace.
    pub client: Device,
    /// The device in the server's namespace.
    pub server: Device,
    /// Server to client.
    pub down: LinkConfig,
    /// Client to server.
    pub up: LinkConfig,
    /// Where MPTCP options are taken off.
    pub strip: Strip,
}

/// A direction of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Server to client.
    Down,
    /// Client to server.
    Up,
}

/// Something that happens to a path in one or both directions, for as long as it is on.
#[derive(Clone, Default, Debug)]
pub struct Switch(Arc<[AtomicBool; 2]>);

impl Switch {
    /// Turns it on or off in both directions.
    pub fn set(&self, on: bool) {
        self.0.iter().for_each(|it| it.store(on, Ordering::Relaxed));
    }

    /// Turns it on or off in one direction.
    pub fn set_one(&self, direction: Direction, on: bool) {
        self.0[direction as usize].store(on, Ordering::Relaxed);
    }

    fn is_on(&self, direction: Direction) -> bool {
        self.0[direction as usize].load(Ordering::Relaxed)
    }
}

/// The emulator was late: it handed on a packet, or ran again, later than it had to.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// When it did.
    pub at: Time,
    /// By how much it was late.
    pub by: Span,
}

/// The switches of a path.
#[derive(Clone, Default, Debug)]
struct Switches {
    /// Nothing gets through.
    cut: Switch,
    /// Segments with FIN are lost.
    fins: Switch,
    /// [`Strip::AfterSyn`].
    strip: Switch,
}

/// What an emulator did.
#[derive(Clone, Debug)]
pub struct Report {
    /// How late packets were handed on.
    pub lateness: Lateness,
    /// The times at which it was later than [`Lateness::LIMIT`], the first 10,000 of them.
    pub late: Vec<Late>,
    /// The clock of these times.
    pub clock: Clock,
    /// By path: down, then up.
    pub links: Vec<[LinkCounters; 2]>,
}

/// Paths that are being emulated, until this is dropped.
#[derive(Debug)]
pub struct Emulator {
    stop: Arc<AtomicBool>,
    switches: Vec<Switches>,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

impl Emulator {
    /// Emulates `paths` on a thread of its own; chance is drawn from `seed`.
    ///
    /// # Errors
    /// Where a device cannot be waited for.
    pub fn start(paths: Vec<Path>, seed: u64) -> io::Result<Emulator> {
        let stop = Arc::new(AtomicBool::new(false));
        let switches: Vec<_> = paths.iter().map(|_| Switches::default()).collect();
        let mut relay = Relay::new(paths, &switches, seed)?;
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("emulator".into()).spawn(move || {
            // Timers otherwise wait up to 50 us for company.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            // Before other work of the host, where the process may ask for that.
            let _ = rustix::process::setpriority_process(None, -20);
            while !stopped.load(Ordering::Relaxed) {
                relay.turn()?;
            }
            Ok(relay.report())
        })?;
        Ok(Emulator { stop, switches, thread: Some(thread) })
    }

    /// The switch that cuts the path with this number; `None` if there is no such path.
    #[must_use]
    pub fn cut(&self, path: usize) -> Option<Switch> {
        self.switches.get(path).map(|it| it.cut.clone())
    }

    /// The switch that loses the segments with FIN of the path with this number; `None` if there is no
    /// such path.
    #[must_use]
    pub fn fins(&self, path: usize) -> Option<Switch> {
        self.switches.get(path).map(|it| it.fins.clone())
    }

    /// The switch of a middlebox that takes MPTCP options off what passes it on a path, SYNs and
    /// SYN/ACKs aside.
    #[must_use]
    pub fn strip(&self, path: usize) -> Option<Switch> {
        self.switches.get(path).map(|it| it.strip.clone())
    }

    /// Ends the emulation: what is under way is lost.
    ///
    /// # Errors
    /// What ended it before.
    pub fn stop(mut self) -> io::Result<Report> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(report)) => report,
            _ => Err(io::Error::other("the emulator's thread has panicked")),
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's state.
struct Relay {
    clock: Clock,
    poller: Poller,
    paths: Vec<Path>,
    /// Two for each path: down, then up.
    ways: Vec<Way>,
    lateness: Lateness,
    late: Vec<Late>,
    /// When it last looked at its devices.
    looked: Option<Time>,
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
}

impl Relay {
    fn new(paths: Vec<Path>, switches: &[Switches], seed: u64) -> io::Result<Relay> {
        let poller = Poller::open()?;
        let mut ways = Vec::new();
        for (path, switches) in paths.iter().zip(switches) {
            for (device, config, direction, name) in [
                (&path.server, &path.down, Direction::Down, "down"),
                (&path.client, &path.up, Direction::Up, "up"),
            ] {
                poller.add(device, ways.len() as u64, true, false)?;
                let link = Link::new(config, seed, &[path.name.as_str(), name]);
                ways.push(Way::new(link, direction, switches.clone(), path.strip));
            }
        }
        Ok(Relay {
            clock: Clock::start(),
            poller,
            paths,
            ways,
            lateness: Lateness::default(),
            late: Vec::new(),
            looked: None,
            ready: Vec::new(),
            buffer: vec![0; 0x1_0000].into(),
        })
    }

    /// Waits for the next thing to do, and does it.
    fn turn(&mut self) -> io::Result<()> {
        let next = self.ways.iter().map(Way::next).min().unwrap_or(Time::NEVER);
        let before = self.clock.now();
        self.poller.wait(&self.clock, next, LOOKS, &mut self.ready)?;
        self.on_awake(next.min(before + LOOKS));
        for at in 0..self.ready.len() {
            self.take_in(self.ready[at].token as usize)?;
            self.hand_on()?;
        }
        self.hand_on()
    }

    /// Notes how long it was held up: it was to run again by `due`, and does so every [`LOOKS`].
    fn on_awake(&mut self, due: Time) {
        let now = self.clock.now();
        let due = self.looked.map_or(due, |looked| due.min(looked + LOOKS));
        let by = now.since(due);
        self.lateness.note_pause(by);
        if by > Lateness::LIMIT && self.late.len() < MOST_LATE {
            self.late.push(Late { at: now, by });
        }
        self.looked = Some(now);
    }

    /// Reads what a way's device has.
    fn take_in(&mut self, at: usize) -> io::Result<()> {
        let path = &self.paths[at / 2];
        let from = if at.is_multiple_of(2) { &path.server } else { &path.client };
        for _ in 0..BATCH {
            let Some(len) = from.try_recv(&mut self.buffer)? else { break };
            self.ways[at].offer(self.clock.now(), &self.buffer[..len]);
        }
        Ok(())
    }

    /// Writes what has arrived.
    fn hand_on(&mut self) -> io::Result<()> {
        for (at, way) in self.ways.iter_mut().enumerate() {
            let path = &self.paths[at / 2];
            let to = if at.is_multiple_of(2) { &path.client } else { &path.server };
            way.dequeue(self.clock.now());
            while let Some((due, packet)) = way.take_arrival(self.clock.now()) {
                let now = self.clock.now();
                let by = now.since(due);
                self.lateness.note(by);
                if by > Lateness::LIMIT && self.late.len() < MOST_LATE {
                    self.late.push(Late { at: now, by });
                }
                let _ = to.try_send(&packet)?;
                way.recycle(packet);
            }
        }
        Ok(())
    }

    fn report(&self) -> Report {
        let counters: Vec<_> = self.ways.iter().map(Way::counters).collect();
        let links = counters.chunks_exact(2).map(|both| [both[0], both[1]]).collect();
        Report { lateness: self.lateness, late: self.late.clone(), clock: self.clock, links }
    }
}
