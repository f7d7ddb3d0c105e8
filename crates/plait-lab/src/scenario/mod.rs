//! A scenario: everything that `plait compare` can be told, with its types.

mod build;
mod compete;
mod cross;
mod delay;
pub(crate) mod file;
mod impairment;
mod kernels;
mod other_keys;
mod path;
mod path_parse;
mod profile;
mod raw_scenario;
mod redraw;
mod repeat;
mod specs;
#[cfg(test)]
mod tests;
mod timing;

pub use build::{DEFAULT_DEADLINE, MOST_JOBS};
pub use compete::{Competition, Sender};
pub use cross::Udp;
pub use delay::Delay;
pub(crate) use kernels::KERNEL;
pub use kernels::{KernelProfile, Kernels};
pub(crate) use other_keys::{canonical, nearest_key};
pub use path::{Both, Offset, Path, PathLinks, Recording, Speed};
pub use path_parse::{LATER_PATH_KEYS, PATH_KEYS, Reader, no_files};
pub use profile::{PROFILES, Profile, Wander};
pub use raw_scenario::{
    LATER_SETTINGS, Misfit, PlacedText, RawPath, RawScenario, SETTINGS, Setting, quoted, whole,
};
pub use timing::{DEFAULT_HOST_JITTER, HostJitter, MAX_HOST_JITTER};

use crate::expect::Expectation;
use crate::vary::Vary;
use plait_app::Workload;
use plait_app::quantity::{Bytes, Percent, Size};
use plait_base::{Chance, Span};
use plait_cc::{HyStart, IdleRestart};
use plait_core::{
    Config, Dial, JoinTiming, KernelBuffers, KernelRules, LossDetection, Pacing, Prr, RtoMode,
};
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
    /// Runs of each row, where something is random.
    pub runs: u32,
    /// Seed of the first run.
    pub seed: u64,
    /// Settings of the connection.
    pub transport: Transport,
    /// The textbook model: no rate, no queue, one ACK a segment.
    pub ideal: bool,
    /// No jitter of hosts, in a comparison either.
    pub exact: bool,
    /// Jitter of hosts.
    pub host_jitter: HostJitter,
    /// Verify the invariants after every event.
    pub check: bool,
    /// Encode and parse every segment.
    pub wire: bool,
    /// End of a run that has not finished; [`DEFAULT_DEADLINE`] where nothing is said.
    pub until: Option<Span>,
    /// Runs at a time; one a core where nothing is said.
    pub jobs: Option<NonZeroUsize>,
    /// The half of the width that intervals may have, as a share of the value; runs are added until
    /// they are as narrow.
    pub precision: Option<f64>,
    /// The settings whose values it is repeated over: none, one, or two for a grid.
    pub vary: Vec<Vary>,
    /// Statements that must hold.
    pub expect: Vec<Expectation>,
}

/// Settings of both ends of a connection, as given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport {
    /// Which subflows a connection has.
    pub subflows: Subflows,
    /// When further subflows start.
    pub join: JoinTiming,
    /// DSS checksums.
    pub checksum: bool,
    /// Where the first SYN goes when nobody answers it.
    pub dial: Dial,
    /// Initial slow start threshold; `None` is infinite.
    pub ssthresh: Option<Size>,
    /// Transfers of the same kind that were done before, to the same peer.
    pub earlier_transfers: u32,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// TCP small queues; none in an ideal scenario.
    pub tsq: bool,
    /// How long a host works on each segment that it sends; not at all in an ideal scenario.
    pub send_cost: Span,
    /// Pacing; none in an ideal scenario.
    pub pacing: bool,
    /// Segments that slow start grows by for an ACK, at most.
    pub slow_start: u32,
    /// What ends slow start before a loss; nothing in an ideal scenario.
    pub hystart: HyStart,
    /// The kernel that both ends do as.
    pub kernel: Kernel,
    /// Reductions of the window are taken back when what counted as lost proves late.
    pub undo: bool,
    /// Probes of silent paths.
    pub probes: bool,
    /// Delayed acknowledgements; an ideal scenario has none whatever is said here.
    pub delayed_ack: bool,
    /// Congestion window after an idle time.
    pub idle_restart: IdleRestart,
    /// What fast recovery lets out below its threshold.
    pub prr: Prr,
    /// How a lost segment is recognised before its timeout.
    pub loss_detection: LossDetection,
    /// Retransmission timeout.
    pub rto: RtoMode,
    /// Largest IP packet in bytes.
    pub mtu: u32,
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
        if self.is_random() { self.runs } else { 1 }
    }

    /// The virtual time at which a run that has not finished is given up.
    #[must_use]
    pub fn deadline(&self) -> Span {
        self.until.unwrap_or(DEFAULT_DEADLINE)
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
        let mut config = Config { multipath, mtu: transport.mtu, ..Config::default() };
        let payload = config.segment_payload();
        config.rcvbuf = transport.rcvbuf.bytes(payload);
        config.rcvbuf_first = transport.rcvbuf_auto.then_some(FIRST_WINDOW);
        config.sndbuf = transport.sndbuf.bytes(payload);
        config.initial_window = transport.initial_window;
        config.ssthresh = transport.ssthresh.map(|size| size.bytes(payload));
        config.join = transport.join;
        config.dial = transport.dial;
        config.checksum = transport.checksum;
        config.subflows = match transport.subflows {
            Subflows::EachPath(each) => each,
            Subflows::Mesh4 => 1,
        };
        config.rto = transport.rto;
        config.prr = transport.prr;
        config.loss_detection = transport.loss_detection;
        config.slow_start_limit = transport.slow_start;
        config.idle_restart = transport.idle_restart;
        config.delayed_ack = transport.delayed_ack && !self.ideal;
        config.tsq = transport.tsq && !self.ideal;
        config.pacing = (transport.pacing && !self.ideal).then(Pacing::default);
        config.hystart = if self.ideal { HyStart::Off } else { transport.hystart };
        config.undo = transport.undo;
        config.probe = config.probe.filter(|_| transport.probes);
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
            (buffers.first_rcvbuf, buffers.most_rcvbuf) = (2 * config.rcvbuf, 2 * config.rcvbuf);
        } else {
            // It gives the scale of the window field.
            config.rcvbuf = buffers.most_rcvbuf;
        }
        config.kernel_buffers = Some(buffers);
        config.kernel_rules = KernelRules::LINUX_6_18;
        config.hystart = HyStart::Linux6;
        config.slow_start_limit = u32::MAX;
        config.probe = None;
        config.dial = Dial::Primary;
    }

    /// The line that runs it again, quoted for a POSIX shell: settings at their default are left
    /// out, the seed and the number of runs never.
    #[must_use]
    pub fn command_line(&self) -> String {
        self.raw().command_line()
    }

    /// The scenario as it could have been written on a command line: [`RawScenario::build`] gives it
    /// back.
    #[must_use]
    pub fn raw(&self) -> RawScenario {
        let mut raw = RawScenario::new();
        for path in &self.paths {
            raw.paths.push(raw_path(path, "--path"));
        }
        for (name, text) in self.said() {
            let place = crate::Place::Argument(format!("--{name}"));
            raw.settings.entry(name).or_default().push(PlacedText::new(&place, &text));
        }
        raw
    }

    /// The settings that are not at their default, as text.
    fn said(&self) -> Vec<(&'static str, String)> {
        let list = |texts: Vec<String>| texts.join(",");
        let transport = &self.transport;
        let every: Vec<String> =
            plait_sched::SCHEDULERS.iter().map(|entry| entry.name.to_owned()).collect();
        let schedulers: Vec<String> = self.schedulers.iter().map(ToString::to_string).collect();
        let schedulers = if schedulers == every { "all".to_owned() } else { list(schedulers) };
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let auto = if transport.rcvbuf_auto { "auto:" } else { "" };
        let receive = format!("{auto}{}", size(transport.rcvbuf));
        let mut said = vec![
            ("workload", self.workload.to_string()),
            ("schedulers", schedulers),
            ("cc", list(self.ccs.iter().map(plait_cc::Spec::name).collect())),
            ("runs", self.runs.to_string()),
            ("seed", self.seed.to_string()),
            ("subflows", transport.subflows.to_string()),
            ("join", word(build::JOINS, transport.join)),
            ("dial", word(build::DIALS, transport.dial)),
            ("checksum", switch(transport.checksum)),
            ("ssthresh", transport.ssthresh.map_or("inf".to_owned(), |size| size.to_string())),
            ("earlier", transport.earlier_transfers.to_string()),
            ("initial-window", transport.initial_window.to_string()),
            ("slow-start", word(build::SLOW_STARTS, transport.slow_start)),
            ("tsq", switch(transport.tsq)),
            ("send-cost", transport.send_cost.to_string()),
            ("pacing", switch(transport.pacing)),
            ("hystart", word(build::HYSTARTS, transport.hystart)),
            ("kernel", word(build::KERNELS, transport.kernel)),
            ("undo", switch(transport.undo)),
            ("probes", switch(transport.probes)),
            ("delayed-ack", switch(transport.delayed_ack)),
            ("idle-restart", word(build::IDLE_RESTARTS, transport.idle_restart)),
            ("prr", word(build::PRRS, transport.prr)),
            ("loss-detection", word(build::LOSS_DETECTIONS, transport.loss_detection)),
            ("rto", word(build::RTOS, transport.rto)),
            ("mtu", transport.mtu.to_string()),
            ("rcvbuf", receive),
            ("sndbuf", size(transport.sndbuf)),
            ("ideal", switch(self.ideal)),
            ("exact", switch(self.exact)),
            ("host-jitter", self.host_jitter.to_string()),
            ("check", switch(self.check)),
            ("wire", switch(self.wire)),
        ];
        said.extend(self.until.map(|span| ("until", span.to_string())));
        said.extend(self.jobs.map(|jobs| ("jobs", jobs.to_string())));
        said.extend(self.precision.map(|share| ("until", format!("ci={}", percent(share)))));
        said.extend(self.vary.iter().map(|vary| ("vary", vary.to_string())));
        let always = ["workload", "runs", "seed"];
        said.retain(|(name, text)| {
            let default = SETTINGS.iter().find(|setting| setting.name == *name);
            always.contains(name) || default.is_none_or(|setting| setting.default != text)
        });
        said.extend(self.shared.iter().map(|link| ("link", raw_path(link, "--link").to_string())));
        said.extend(self.compete.iter().map(|flows| ("compete", flows.to_string())));
        said.extend(self.expect.iter().map(|expectation| ("expect", expectation.to_string())));
        said
    }
}

/// A path as it could have been written.
fn raw_path(path: &Path, argument: &str) -> RawPath {
    let place = crate::Place::Argument(argument.to_owned());
    let field = |(key, text): &(&'static str, String)| {
        let place = crate::Place::Argument(format!("{argument} {}:{key}", path.name));
        ((*key).to_owned(), PlacedText::new(&place, text))
    };
    RawPath {
        name: PlacedText::new(&place, &path.name),
        fields: path.fields().iter().map(field).collect(),
    }
}

/// The word for a value.
fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> String {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word).to_owned()
}

/// A share as a percentage without rounding: `2%`, `0.5%`.
fn percent(share: f64) -> String {
    Percent(Chance::from_ppb((share * 1e9).round() as u32)).to_string()
}

/// A size in the unit of its default, so that `6MiB` stays `6MiB`.
fn size(size: Size) -> String {
    match size {
        Size::Bytes(bytes) if bytes != 0 && bytes.is_multiple_of(1 << 20) => {
            format!("{}MiB", bytes >> 20)
        }
        Size::Bytes(bytes) => Bytes(bytes).to_string(),
        Size::Segments(_) => size.to_string(),
    }
}
