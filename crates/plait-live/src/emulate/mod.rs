//! Emulates paths between two network namespaces. Each path is a pair of TUN devices with two links of
//! `plait-link` between them, which run in real time. Packets of kernels and programs meet the same rates,
//! queues, delays, losses and outages as in the simulator.
//!
//! If the host is busy, packets are delivered later than the link model requires. [`Lateness`] records the
//! delay and decides whether the times of a run are valid.

mod direction;
mod emulated_link;
mod gauges;
mod lateness;
mod network;
mod strip;

use crate::poller::{Poller, Ready};
use crate::{Clock, Device, enter_realtime};
pub use direction::{Direction, PerDirection};
use emulated_link::EmulatedLink;
use gauges::Gauging;
pub use gauges::{Gauges, Reading};
pub use lateness::Lateness;
pub use network::{Line, Network};
use plait_base::{Span, Time};
use plait_link::{Link, LinkConfig, LinkCounters};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
pub use strip::Strip;
use strip::is_syn;

/// Most packets read from one device before the other devices are served.
const BATCH: usize = 64;
/// Longest time between two reads of the switches.
const LOOKS: Span = Span::from_millis(5);

/// Priority of the emulator in the real-time class: above that of the programs whose packets it moves.
const REALTIME_PRIORITY: u8 = 20;

/// Most recorded times of lateness. Later ones only enter [`Lateness`].
const MOST_LATE: usize = 10_000;

/// Configuration of an emulated path.
#[derive(Debug)]
pub struct Path {
    /// Its name. The random streams of its links are derived from it.
    pub name: String,
    /// The device in the client's namespace.
    pub client: Device,
    /// The device in the server's namespace.
    pub server: Device,
    /// Server to client.
    pub down: LinkConfig,
    /// Client to server.
    pub up: LinkConfig,
    /// The segments from which a middlebox removes MPTCP options.
    pub strip: Strip,
}

impl Path {
    /// Returns the devices from which and to which packets of a direction go.
    const fn ends(&self, direction: Direction) -> (&Device, &Device) {
        match direction {
            Direction::Down => (&self.server, &self.client),
            Direction::Up => (&self.client, &self.server),
        }
    }
}

/// Turns an impairment of a path on and off, in one direction or in both.
#[derive(Clone, Default, Debug)]
pub struct Switch(Arc<PerDirection<AtomicBool>>);

impl Switch {
    /// Turns it on or off in both directions.
    pub fn set(&self, on: bool) {
        self.set_one(Direction::Down, on);
        self.set_one(Direction::Up, on);
    }

    /// Turns it on or off in one direction.
    pub fn set_one(&self, direction: Direction, on: bool) {
        self.0[direction].store(on, Ordering::Relaxed);
    }

    fn is_on(&self, direction: Direction) -> bool {
        self.0[direction].load(Ordering::Relaxed)
    }
}

/// When the time of the links begins, from which outages, steps of rates and traces count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeZero {
    /// When the emulation starts.
    Start,
    /// At the first TCP SYN on any path. Earlier packets are lost without a trace in the report.
    FirstSyn,
}

/// An instance of lateness: the emulator delivered a packet, or woke up, later than it was due.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Time of the delivery or the wake-up.
    pub at: Time,
    /// The delay after the due time.
    pub by: Span,
}

/// The switches of a path.
#[derive(Clone, Default, Debug)]
struct Switches {
    /// Loses all packets.
    cut: Switch,
    /// Loses segments with FIN.
    fins: Switch,
    /// Applies [`Strip::AfterSyn`].
    strip: Switch,
}

/// Results of an emulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Statistics of lateness.
    pub lateness: Lateness,
    /// The first 10,000 instances of lateness beyond [`Lateness::LIMIT`].
    pub late: Vec<Late>,
    /// The clock of the times in `late`.
    pub clock: Clock,
    /// Counters of each path.
    pub links: Vec<PerDirection<LinkCounters>>,
}

/// A running emulation. It ends when this value is dropped.
#[derive(Debug)]
pub struct Emulator {
    stop: Arc<AtomicBool>,
    switches: Vec<Switches>,
    gauges: Gauges,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

impl Emulator {
    /// Emulates `paths` on a separate thread. All random numbers derive from `seed`.
    ///
    /// # Errors
    /// If a device cannot be polled, or if the thread cannot be created.
    pub fn start(paths: Vec<Path>, seed: u64) -> io::Result<Emulator> {
        Emulator::begin(paths, seed, TimeZero::Start, false)
    }

    /// Does the same in the real-time class of the kernel's scheduler, if the process may use it. Other work of
    /// the host then delays the emulation less.
    ///
    /// # Errors
    /// As for [`Emulator::start`].
    pub fn start_realtime(paths: Vec<Path>, seed: u64, zero: TimeZero) -> io::Result<Emulator> {
        Emulator::begin(paths, seed, zero, true)
    }

    fn begin(paths: Vec<Path>, seed: u64, zero: TimeZero, realtime: bool) -> io::Result<Emulator> {
        let stop = Arc::new(AtomicBool::new(false));
        let switches: Vec<_> = paths.iter().map(|_| Switches::default()).collect();
        let gauges = Gauges::new(2 * paths.len());
        let mut relay = Relay::new(paths, &switches, seed, zero)?;
        let mut gauging = Gauging::new(gauges.clone());
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("emulator".into()).spawn(move || {
            // By default, the kernel delays timers by up to 50 us to coalesce them.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            // Run before other work of the host, if the process may raise its priority.
            let _ = rustix::process::setpriority_process(None, -20);
            let _ = realtime && enter_realtime(REALTIME_PRIORITY);
            while !stopped.load(Ordering::Relaxed) {
                relay.turn()?;
                gauging.update(&mut relay.links, relay.clock.now());
            }
            Ok(relay.report())
        })?;
        Ok(Emulator { stop, switches, gauges, thread: Some(thread) })
    }

    /// Returns the switch that cuts the path with this number. Returns `None` if there is no such path.
    #[must_use]
    pub fn cut(&self, path: usize) -> Option<Switch> {
        self.switches.get(path).map(|it| it.cut.clone())
    }

    /// Returns the switch that loses the segments with FIN of the path with this number. Returns `None` if
    /// there is no such path.
    #[must_use]
    pub fn fins(&self, path: usize) -> Option<Switch> {
        self.switches.get(path).map(|it| it.fins.clone())
    }

    /// Returns the switch that removes MPTCP options from all segments of a path except SYNs and SYN/ACKs.
    /// Returns `None` if there is no such path.
    #[must_use]
    pub fn strip(&self, path: usize) -> Option<Switch> {
        self.switches.get(path).map(|it| it.strip.clone())
    }

    /// Returns the gauges of the links.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        self.gauges.clone()
    }

    /// Ends the emulation. Packets in flight are lost.
    ///
    /// # Errors
    /// If the emulation had already failed.
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

/// The state of the emulator thread.
struct Relay {
    clock: Clock,
    /// True until the time of the links begins.
    waits: bool,
    poller: Poller,
    paths: Vec<Path>,
    /// Two for each path: down, then up.
    links: Vec<EmulatedLink>,
    lateness: Lateness,
    late: Vec<Late>,
    /// Time of the last wake-up.
    looked: Option<Time>,
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
}

impl Relay {
    fn new(
        paths: Vec<Path>,
        switches: &[Switches],
        seed: u64,
        zero: TimeZero,
    ) -> io::Result<Relay> {
        let poller = Poller::open()?;
        let mut links = Vec::new();
        for (path, switches) in paths.iter().zip(switches) {
            for (direction, config, name) in
                [(Direction::Down, &path.down, "down"), (Direction::Up, &path.up, "up")]
            {
                let (from, _) = path.ends(direction);
                poller.add(from, links.len() as u64, true, false)?;
                let link = Link::new(config, seed, &[path.name.as_str(), name]);
                links.push(EmulatedLink::new(link, direction, switches.clone(), path.strip));
            }
        }
        Ok(Relay {
            clock: Clock::start(),
            waits: zero == TimeZero::FirstSyn,
            poller,
            paths,
            links,
            lateness: Lateness::default(),
            late: Vec::new(),
            looked: None,
            ready: Vec::new(),
            buffer: vec![0; 0x1_0000].into(),
        })
    }

    /// Waits for packets or the next due time, and moves packets.
    fn turn(&mut self) -> io::Result<()> {
        let next = self.links.iter().map(EmulatedLink::next).min().unwrap_or(Time::NEVER);
        let before = self.clock.now();
        self.poller.wait(&self.clock, next, LOOKS, &mut self.ready)?;
        self.on_awake(next.min(before + LOOKS));
        for at in 0..self.ready.len() {
            self.take_in(self.ready[at].token as usize)?;
            self.hand_on()?;
        }
        self.hand_on()
    }

    /// Records the delay of this wake-up. It was due at `due`, or [`LOOKS`] after the last one if that is
    /// earlier.
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

    /// Reads packets from a device into its link.
    fn take_in(&mut self, at: usize) -> io::Result<()> {
        let direction = self.links[at].direction();
        for _ in 0..BATCH {
            let (from, _) = self.paths[at / 2].ends(direction);
            let Some(len) = from.try_recv(&mut self.buffer)? else { break };
            if self.waits && is_syn(&self.buffer[..len]) {
                self.begin();
            }
            if !self.waits {
                self.links[at].offer(self.clock.now(), &self.buffer[..len]);
            }
        }
        Ok(())
    }

    /// Begins the time of the links. Earlier lateness concerns none of their packets.
    fn begin(&mut self) {
        self.waits = false;
        self.clock = Clock::start();
        self.looked = Some(Time::ZERO);
        self.lateness = Lateness::default();
        self.late.clear();
    }

    /// Writes the packets that have left their links.
    fn hand_on(&mut self) -> io::Result<()> {
        for (at, link) in self.links.iter_mut().enumerate() {
            let (_, to) = self.paths[at / 2].ends(link.direction());
            link.dequeue(self.clock.now());
            while let Some((due, packet)) = link.take_arrival(self.clock.now()) {
                let now = self.clock.now();
                let by = now.since(due);
                self.lateness.note(by);
                if by > Lateness::LIMIT && self.late.len() < MOST_LATE {
                    self.late.push(Late { at: now, by });
                }
                let _ = to.try_send(&packet)?;
                link.recycle(packet);
            }
        }
        Ok(())
    }

    fn report(&self) -> Report {
        let counters: Vec<_> = self.links.iter().map(EmulatedLink::counters).collect();
        let both = |both: &[LinkCounters]| PerDirection { down: both[0], up: both[1] };
        Report {
            lateness: self.lateness.clone(),
            late: self.late.clone(),
            clock: self.clock,
            links: counters.chunks_exact(2).map(both).collect(),
        }
    }
}
