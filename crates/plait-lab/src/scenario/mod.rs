//! A scenario: everything that `plait compare` can be told, with its types.

mod build;
mod compete;
mod cross;
mod delay;
pub(crate) mod file;
mod impairment;
mod kernels;
mod kind;
mod other_keys;
mod path;
mod path_build;
mod path_keys;
mod path_parse;
mod placed_text;
mod profile;
mod raw_scenario;
mod redraw;
mod repeat;
mod setters;
mod settings;
mod specs;
#[cfg(test)]
mod tests;
mod timing;
mod written;

pub use compete::{Competition, Sender};
pub use cross::Udp;
pub use delay::Delay;
pub(crate) use kernels::KERNEL;
pub use kernels::{KernelProfile, Kernels};
pub(crate) use other_keys::{canonical, nearest_key};
pub use path::{Both, Impairments, Offset, Path, PathLinks, Recording, Speed};
pub use path_build::LATER_PATH_KEYS;
pub use path_keys::{PATH_KEYS, PathKey};
pub use path_parse::{Reader, no_files};
pub use placed_text::{Misfit, PlacedText, whole};
pub use profile::{PROFILES, Profile, Wander};
pub use raw_scenario::{LATER_SETTINGS, RawPath, RawScenario, quoted};
pub use setters::{DEFAULT_DEADLINE, MOST_JOBS};
pub(crate) use settings::{IDLE_RESTARTS, JOINS, RTOS};
pub use settings::{SETTINGS, Setting};
pub use timing::{DEFAULT_HOST_JITTER, HostJitter, HostTiming, MAX_HOST_JITTER};

use crate::expect::Expectation;
use crate::vary::Vary;
use plait_app::Workload;
use plait_app::quantity::Size;
use plait_base::Span;
use plait_cc::HyStart;
use plait_core::{Config, Dial, KernelBuffers, KernelRules};
use std::fmt;
use std::num::NonZeroUsize;

/// The window that a receive buffer begins with where it is tuned, in bytes.
const FIRST_WINDOW: u64 = 64 << 10;

/// The receive buffer if nothing is said.
const DEFAULT_RCVBUF: Size = Size::Bytes(6 << 20);

/// A comparison that is about to be made. [`RawScenario::build`] makes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The paths, the primary first: one to eight.
    pub paths: Vec<Path>,
    /// Links that paths go through together, after their own.
    pub shared: Vec<Path>,
    /// Flows that compete with the connection.
    pub compete: Vec<Competition>,
    /// What the connection carries.
    pub workload: Workload,
    /// The schedulers, each once.
    pub schedulers: Vec<plait_sched::Spec>,
    /// The congestion controllers, each once.
    pub ccs: Vec<plait_cc::Spec>,
    /// How many runs are made, and how long they may take.
    pub budget: Budget,
    /// Seed of the first run.
    pub seed: u64,
    /// Settings of the connection.
    pub transport: Transport,
    /// The textbook model: no rate, no queue, one ACK a segment.
    pub ideal: bool,
    /// Random timing of hosts.
    pub timing: HostTiming,
    /// Verify the invariants after every event.
    pub check: bool,
    /// Encode and parse every segment.
    pub wire: bool,
    /// The settings whose values it is repeated over: none, one, or two for a grid.
    pub vary: Vec<Vary>,
    /// Statements that must hold.
    pub expect: Vec<Expectation>,
}

/// How many runs a comparison makes, and how long they may take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    /// Runs of each row, if something is random.
    pub runs: u32,
    /// End of a run that has not finished; [`DEFAULT_DEADLINE`] if nothing is said.
    pub until: Option<Span>,
    /// The half of the width that intervals may have, as a share of the value; runs are added until
    /// they are as narrow.
    pub precision: Option<f64>,
    /// Runs at a time; one a core if nothing is said.
    pub jobs: Option<NonZeroUsize>,
}

/// Settings of both ends of a connection, as given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transport {
    /// What needs no more than to be handed to the connection. The other fields go before it, and
    /// [`Scenario::connection`] has all of them.
    pub config: Config,
    /// Which subflows a connection has.
    pub subflows: Subflows,
    /// Initial slow start threshold; `None` is infinite.
    pub ssthresh: Option<Size>,
    /// Transfers of the same kind that were done before, to the same peer.
    pub earlier_transfers: u32,
    /// How long a host works on each segment that it sends; not at all in an ideal scenario.
    pub send_cost: Span,
    /// The kernel that both ends do as.
    pub kernel: Kernel,
    /// Receive buffer.
    pub rcvbuf: Size,
    /// Its window begins at 64 KiB and follows what is read.
    pub rcvbuf_auto: bool,
    /// Send buffer.
    pub sndbuf: Size,
}

/// A kernel whose behaviour both ends have as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// None: each setting stands for itself.
    None,
    /// Linux 6.18.
    Linux6_18,
}

/// Which subflows a connection has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subflows {
    /// This many on each path, all to the address that the client dialled.
    EachPath(u8),
    /// From both addresses of the client to both of the server: four subflows on two paths. The
    /// server tells its second address by ADD_ADDR.
    Mesh4,
}

impl Subflows {
    /// How many a connection has over this many paths.
    #[must_use]
    pub fn count(self, paths: usize) -> usize {
        match self {
            Subflows::EachPath(each) => usize::from(each) * paths,
            Subflows::Mesh4 => 2 * paths,
        }
    }
}

impl fmt::Display for Subflows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subflows::EachPath(each) => each.fmt(f),
            Subflows::Mesh4 => f.write_str("mesh4"),
        }
    }
}

impl Scenario {
    /// A scenario that nothing has been read into.
    fn blank() -> Scenario {
        Scenario {
            paths: Vec::new(),
            shared: Vec::new(),
            compete: Vec::new(),
            workload: Workload::Bulk { duration: Span::ZERO },
            schedulers: Vec::new(),
            ccs: Vec::new(),
            budget: Budget { runs: 1, until: None, precision: None, jobs: None },
            seed: 1,
            transport: Transport {
                config: Config::default(),
                subflows: Subflows::EachPath(1),
                ssthresh: None,
                earlier_transfers: 0,
                send_cost: Span::ZERO,
                kernel: Kernel::None,
                rcvbuf: DEFAULT_RCVBUF,
                rcvbuf_auto: false,
                sndbuf: DEFAULT_RCVBUF,
            },
            ideal: false,
            timing: HostTiming::default(),
            check: false,
            wire: false,
            vary: Vec::new(),
            expect: Vec::new(),
        }
    }

    /// Whether two runs with different seeds can differ. Where they cannot, one run is made.
    #[must_use]
    pub fn is_random(&self) -> bool {
        // Competing flows start at random.
        self.host_jitter() > Span::ZERO
            || !self.compete.is_empty()
            || self.paths.iter().chain(&self.shared).any(|path| path.is_random(self.ideal))
    }

    /// Runs that are made of each row.
    #[must_use]
    pub fn effective_runs(&self) -> u32 {
        if self.is_random() { self.budget.runs } else { 1 }
    }

    /// The virtual time at which a run that has not finished is given up.
    #[must_use]
    pub fn deadline(&self) -> Span {
        self.budget.until.unwrap_or(DEFAULT_DEADLINE)
    }

    /// The links of every path in the run of `seed`, in the order of the paths.
    #[must_use]
    pub fn links(&self, seed: u64) -> Vec<PathLinks> {
        self.paths.iter().map(|path| path.links(self.ideal, seed)).collect()
    }

    /// The shared link of a path, by its place in the list of them.
    #[must_use]
    pub fn via(&self, path: &Path) -> Option<usize> {
        let name = path.via.as_ref()?;
        self.shared.iter().position(|link| link.name == *name)
    }

    /// The settings of a connection, with sizes in segments resolved to bytes.
    #[must_use]
    pub fn connection(&self, multipath: bool) -> Config {
        let transport = &self.transport;
        let mut config = Config { multipath, ..transport.config.clone() };
        let payload = config.segment_payload();
        config.buffers.rcvbuf = transport.rcvbuf.bytes(payload);
        config.buffers.rcvbuf_first = transport.rcvbuf_auto.then_some(FIRST_WINDOW);
        config.buffers.sndbuf = transport.sndbuf.bytes(payload);
        config.window.ssthresh = transport.ssthresh.map(|size| size.bytes(payload));
        config.joins.per_pair = match transport.subflows {
            Subflows::EachPath(each) => each,
            Subflows::Mesh4 => 1,
        };
        if self.ideal {
            (config.delayed_ack, config.tsq, config.window.pacing) = (false, false, None);
            config.window.hystart = HyStart::Off;
        }
        if transport.kernel == Kernel::Linux6_18 {
            self.do_as_linux_6_18(&mut config);
        }
        config
    }

    /// Sets what the profile of Linux 6.18 says.
    fn do_as_linux_6_18(&self, config: &mut Config) {
        let mut buffers = KernelBuffers::LINUX_6_18;
        if self.transport.rcvbuf != DEFAULT_RCVBUF {
            // The kernel doubles what SO_RCVBUF asks for, and no longer tunes it.
            (buffers.first_rcvbuf, buffers.most_rcvbuf) =
                (2 * config.buffers.rcvbuf, 2 * config.buffers.rcvbuf);
        } else {
            // It gives the scale of the window field.
            config.buffers.rcvbuf = buffers.most_rcvbuf;
        }
        config.buffers.kernel = Some(buffers);
        config.kernel_rules = KernelRules::LINUX_6_18;
        config.window.hystart = HyStart::Linux6;
        config.window.slow_start_limit = u32::MAX;
        config.joins.probe = None;
        config.joins.dial = Dial::Primary;
    }
}
