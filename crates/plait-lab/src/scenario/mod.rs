//! Scenarios: all settings of `plait compare`, as types.

mod buffers;
mod build;
mod compete;
mod cross;
mod delay;
pub(crate) mod file;
mod goal;
mod impairment;
mod kernels;
mod kind;
pub(crate) mod lists;
mod other_keys;
mod path;
pub(crate) mod path_build;
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
pub(crate) mod sweep;
mod tables;
#[cfg(test)]
mod tests;
mod timing;
mod vary;
mod written;

pub use buffers::Buffer;
pub use compete::{Competition, Sender};
pub use cross::Udp;
pub use delay::Delay;
pub use goal::goal_of;
pub(crate) use kernels::KERNEL;
pub use kernels::{KernelProfile, Kernels};
pub(crate) use other_keys::{canonical, nearest_key};
pub use path::{Both, Offset, Path, PathLinks, Recording, Speed, Usage};
pub use path_keys::{HIGHEST_COST, PATH_KEYS, PathKey};
pub use path_parse::{Reader, no_files};
pub use placed_text::{Misfit, PlacedText, whole};
pub use profile::{PROFILES, Profile, Wander};
pub use raw_scenario::{RawPath, RawScenario, quoted};
pub use setters::{DEFAULT_DEADLINE, MOST_JOBS};
pub(crate) use settings::{IDLE_RESTARTS, RTOS};
pub use settings::{SETTINGS, Setting};
pub use timing::{DEFAULT_HOST_JITTER, HostJitter, HostTiming, MAX_HOST_JITTER};
pub use vary::{Point, Vary};

use crate::expect::Expectation;
use buffers::{AUTO_RCVBUF, DEFAULT_RCVBUF, DEFAULT_SNDBUF};
use plait_app::Workload;
use plait_app::quantity::Size;
use plait_base::Span;
use plait_cc::HyStart;
use plait_core::{Config, Dial, KernelBuffers, KernelRules, Pacing};
use plait_sched::Goal;
use std::fmt;
use std::num::NonZeroUsize;

/// A scenario that is ready to run. [`RawScenario::build`] makes it.
///
/// # Examples
/// ```
/// use plait_lab::RawScenario;
///
/// let text = "workload = 'download:2MB'\nschedulers = 'ecf'\n\
///             path = ['wifi:rtt=25ms,rate=25mbit', 'lte:rtt=60ms,rate=8mbit']";
/// let scenario = RawScenario::from_toml("scenario", text)?.build()?;
/// assert_eq!(scenario.paths.len(), 2);
/// // An error names the place in the file.
/// let text = text.replace("25ms", "25");
/// let error = RawScenario::from_toml("scenario", &text)?.build().unwrap_err();
/// assert!(error.to_string().starts_with("scenario:3:"), "{error}");
/// # Ok::<(), plait_lab::ScenarioError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The paths, one to eight. The first is the primary.
    pub paths: Vec<Path>,
    /// Links that several paths share. Packets cross them after the path's own link.
    pub shared: Vec<Path>,
    /// Flows that compete with the connection.
    pub compete: Vec<Competition>,
    /// The workload of the connection.
    pub workload: Workload,
    /// The schedulers, without duplicates.
    pub schedulers: Vec<plait_sched::Spec>,
    /// The congestion controllers, without duplicates.
    pub ccs: Vec<plait_cc::Spec>,
    /// Number and length of the runs.
    pub budget: Budget,
    /// Seed of the first run.
    pub seed: u64,
    /// Settings of the connection.
    pub transport: Transport,
    /// Use the textbook model: no rate limit, no queue, one ACK per segment.
    pub ideal: bool,
    /// Random timing of the hosts.
    pub timing: HostTiming,
    /// Verify the invariants after every event.
    pub check: bool,
    /// Encode and parse every segment.
    pub wire: bool,
    /// Settings to sweep over: none, one, or two for a grid.
    pub vary: Vec<Vary>,
    /// Statements that must hold.
    pub expect: Vec<Expectation>,
}

/// Number and length of the runs of a comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    /// Runs of each row, if something is random.
    pub runs: u32,
    /// End of a run that has not finished; [`DEFAULT_DEADLINE`] if `None`.
    pub until: Option<Span>,
    /// Target half-width of the confidence intervals, as a share of the value. Runs are added until
    /// every interval is this narrow.
    pub precision: Option<f64>,
    /// Number of runs in parallel; one per core if `None`.
    pub jobs: Option<NonZeroUsize>,
}

/// Settings of both ends of a connection, as given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transport {
    /// Settings that the connection takes unchanged. The other fields override it.
    /// [`Scenario::connection`] returns all settings.
    pub config: Config,
    /// The subflows of a connection.
    pub subflows: Subflows,
    /// Initial slow start threshold; `None` is infinite.
    pub ssthresh: Option<Size>,
    /// Number of earlier transfers of the same kind with the same peer.
    pub earlier_transfers: u32,
    /// The use of an earlier connection's path memory.
    pub path_memory: MemoryUse,
    /// Time that a host needs to send one segment; zero in an ideal scenario.
    pub send_cost: Span,
    /// The kernel that both ends behave as.
    pub kernel: Kernel,
    /// The kernel as which the receiver of the data of the workload behaves.
    pub receiver: Kernel,
    /// Whether and how the segments of a window are spread.
    pub pacing: PacingUse,
    /// What the paths with a cost may be used for.
    pub goal: Goal,
    /// Receive buffer.
    pub rcvbuf: Buffer,
    /// Send buffer.
    pub sndbuf: Buffer,
}

/// The use of the path memory that an earlier connection has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryUse {
    /// There is no memory.
    Off,
    /// Both ends remember the paths.
    On,
    /// As [`MemoryUse::On`], and subflows begin with the remembered slow start threshold.
    Ssthresh,
}

/// The use of pacing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacingUse {
    /// As the scheduler asks for.
    Auto,
    /// This pacing, or none.
    Set(Option<Pacing>),
}

/// A kernel whose whole behaviour both ends adopt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// No kernel: each setting counts by itself.
    None,
    /// Linux 6.18.
    Linux6_18,
}

/// The subflows of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subflows {
    /// This many subflows on each path, all to the address that the client dialled.
    EachPath(u8),
    /// From both addresses of the client to both of the server: four subflows on two paths. The
    /// server advertises its second address with ADD_ADDR.
    Mesh4,
}

impl Subflows {
    /// Returns the number of subflows of a connection over this many paths.
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
    /// Returns an empty scenario with default settings.
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
                path_memory: MemoryUse::Off,
                send_cost: Span::ZERO,
                kernel: Kernel::None,
                receiver: Kernel::None,
                pacing: PacingUse::Auto,
                goal: Goal::Aggregate,
                rcvbuf: DEFAULT_RCVBUF,
                sndbuf: DEFAULT_SNDBUF,
            },
            ideal: false,
            timing: HostTiming::default(),
            check: false,
            wire: false,
            vary: Vec::new(),
            expect: Vec::new(),
        }
    }

    /// Returns true if two runs with different seeds can differ. If they cannot, one run is made.
    #[must_use]
    pub fn is_random(&self) -> bool {
        // Competing flows start at random.
        self.host_jitter() > Span::ZERO
            || !self.compete.is_empty()
            || self.paths.iter().chain(&self.shared).any(|path| path.is_random(self.ideal))
    }

    /// Returns the number of runs of each row.
    #[must_use]
    pub fn effective_runs(&self) -> u32 {
        if self.is_random() { self.budget.runs } else { 1 }
    }

    /// Returns the virtual time at which an unfinished run is aborted.
    #[must_use]
    pub fn deadline(&self) -> Span {
        self.budget.until.unwrap_or(DEFAULT_DEADLINE)
    }

    /// Returns the links of every path in the run of `seed`, in the order of the paths.
    #[must_use]
    pub fn links(&self, seed: u64) -> Vec<PathLinks> {
        self.paths.iter().map(|path| path.links(self.ideal, seed)).collect()
    }

    /// Returns the index in `shared` of the link that the path uses.
    #[must_use]
    pub fn via(&self, path: &Path) -> Option<usize> {
        let name = path.via.as_ref()?;
        self.shared.iter().position(|link| link.name == *name)
    }

    /// Returns true if a path has a cost or a quota.
    #[must_use]
    pub fn has_prices(&self) -> bool {
        self.paths.iter().any(|path| path.usage.has_price())
    }

    /// Returns a scheduler that keeps to the goal, and to the costs and quotas of the paths, if there
    /// are any.
    #[must_use]
    pub fn priced(&self, scheduler: plait_sched::Spec) -> plait_sched::Spec {
        let goal = self.transport.goal;
        match goal == Goal::Aggregate && !self.has_prices() {
            true => scheduler,
            false => scheduler.with_goal(goal),
        }
    }

    /// Returns the pacing of a connection with this scheduler; plain TCP has none.
    #[must_use]
    pub fn pacing(&self, scheduler: Option<&plait_sched::Spec>) -> Option<Pacing> {
        match self.transport.pacing {
            _ if self.ideal => None,
            PacingUse::Set(pacing) => pacing,
            PacingUse::Auto if self.transport.kernel != Kernel::None => None,
            PacingUse::Auto => scheduler.and_then(Pacing::asked_by),
        }
    }

    /// Returns the settings of a connection, with sizes in segments resolved to bytes. If its scheduler asks
    /// for pacing, that is not part of them.
    #[must_use]
    pub fn connection(&self, multipath: bool) -> Config {
        let transport = &self.transport;
        let mut config = Config { multipath, ..transport.config.clone() };
        let payload = config.segment_payload();
        let first = |buffer: Buffer| buffer.first.map(|size| size.bytes(payload));
        let (rcvbuf, sndbuf) = (transport.rcvbuf, transport.sndbuf);
        config.buffers.rcvbuf = rcvbuf.largest.bytes(payload);
        config.buffers.rcvbuf_first = first(rcvbuf);
        config.buffers.sndbuf = sndbuf.largest.bytes(payload);
        config.buffers.sndbuf_first = first(sndbuf);
        config.window.ssthresh = transport.ssthresh.map(|size| size.bytes(payload));
        config.joins.per_pair = match transport.subflows {
            Subflows::EachPath(each) => each,
            Subflows::Mesh4 => 1,
        };
        config.window.pacing = self.pacing(None);
        if self.ideal {
            (config.delayed_ack, config.tsq) = (false, false);
            config.window.hystart = HyStart::Off;
        }
        if transport.kernel == Kernel::Linux6_18 {
            self.do_as_linux_6_18(&mut config);
        }
        config
    }

    /// Returns the settings of the end that receives the data of the workload, if the sender has `config`.
    #[must_use]
    pub fn receiving(&self, config: &Config) -> Config {
        let mut config = config.clone();
        if self.transport.receiver == Kernel::Linux6_18 {
            self.receive_as_linux_6_18(&mut config);
        }
        config
    }

    /// Applies the profile of Linux 6.18.
    fn do_as_linux_6_18(&self, config: &mut Config) {
        self.receive_as_linux_6_18(config);
        config.kernel_rules = KernelRules::LINUX_6_18;
        config.window.hystart = HyStart::Linux6;
        config.window.slow_start_limit = u32::MAX;
    }

    /// Applies the part of the profile of Linux 6.18 that counts at the receiver of the data.
    fn receive_as_linux_6_18(&self, config: &mut Config) {
        let mut buffers = KernelBuffers::LINUX_6_18;
        if !matches!(self.transport.rcvbuf, DEFAULT_RCVBUF | AUTO_RCVBUF) {
            // The kernel doubles the value of SO_RCVBUF, and no longer tunes the buffer.
            (buffers.first_rcvbuf, buffers.most_rcvbuf) =
                (2 * config.buffers.rcvbuf, 2 * config.buffers.rcvbuf);
        } else {
            // This sets the window scale.
            config.buffers.rcvbuf = buffers.most_rcvbuf;
        }
        config.buffers.kernel = Some(buffers);
        config.joins.probe = None;
        config.joins.dial = Dial::Primary;
        config.kernel_rules.linear_syn_timeouts = KernelRules::LINUX_6_18.linear_syn_timeouts;
    }
}
