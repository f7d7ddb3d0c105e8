//! A case: all inputs of one run of the swarm, as data that can be printed and parsed.

mod memory;
mod setup;
mod text;

pub use memory::MemoryCase;
pub use text::CaseError;
pub(super) use text::shorten;

use super::fault::Fault;
use plait_base::{Span, Time};
use plait_cc::{HyStart, IdleRestart};
use plait_core::{JoinTiming, KernelBuffers, Prr, ReduceFrom, RtoMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time that a run has to finish after the faults have healed; longer if the links need it, see
/// [`Case::grace`].
pub const GRACE: Span = Span::from_secs(60);
/// Controllers that can keep a window at one segment because of another subflow.
const COUPLED: [&str; 4] = ["lia", "olia", "balia", "wvegas"];
/// Factor of the time to finish for controllers that may use a small part of their links.
const SLOW_CONTROLLER_FACTOR: u64 = 4;
/// Most bytes of headers in a segment with data: IPv4, TCP, timestamps, DSS with checksum.
const HEADERS_BYTES: u64 = 20 + 20 + 12 + 28;

/// All inputs of one run. Members with their default value may be omitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Case {
    /// Seed of every random number of the run.
    pub seed: u64,
    /// The paths; the connection starts on the first.
    pub paths: Vec<PathCase>,
    /// Rate of the shared link in each direction, in kbit/s, for paths with `shared`.
    pub shared_kbps: u64,
    /// The scheduler of both ends.
    pub scheduler: String,
    /// The congestion controller of both ends.
    pub controller: String,
    /// Settings of both ends.
    pub settings: Settings,
    /// Pairs of hosts that all run the same over the same paths.
    pub pairs: u32,
    /// Connections of each pair that all run the same.
    pub connections: u32,
    /// The end that opens the connection.
    pub client: EndCase,
    /// The end that listens.
    pub server: EndCase,
    /// What the hosts remember of the paths at the start. They remember no paths if it is empty.
    pub memory: Vec<MemoryCase>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// Time in milliseconds at which every fault has healed.
    pub heals_ms: u64,
}

/// One path, equal in both directions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathCase {
    /// Rate in kbit/s.
    pub rate_kbps: u64,
    /// Round-trip propagation delay in microseconds.
    pub rtt_us: u64,
    /// Capacity of its queues in packets; 0 stands for 100 ms.
    pub queue_packets: u32,
    /// Largest random delay, in microseconds.
    pub jitter_us: u64,
    /// True if CoDel manages its queues.
    pub codel: bool,
    /// True if its packets pass the shared link.
    pub shared: bool,
    /// True for a backup path, which is used only if no other path works.
    pub backup: bool,
    /// Price of a byte, for the decorator `+price`.
    pub cost: u32,
    /// Payload bytes that each end may send on it, for the decorator `+price`; 0 for no quota.
    pub quota_bytes: u64,
}

impl PathCase {
    /// Returns true if it has a cost or a quota.
    const fn has_price(&self) -> bool {
        self.cost > 0 || self.quota_bytes > 0
    }
}

/// Settings of both ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// When additional subflows start.
    #[serde(with = "Join")]
    pub join: JoinTiming,
    /// Minimum of the retransmission timeout.
    #[serde(with = "Rto")]
    pub rto: RtoMode,
    /// Congestion window after an idle period.
    #[serde(with = "Idle")]
    pub idle_restart: IdleRestart,
    /// Value that a window is reduced from after a loss.
    #[serde(with = "Reduce")]
    pub reduce_from: ReduceFrom,
    /// Initial slow start threshold in bytes; 0 is infinite.
    pub ssthresh_bytes: u64,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// Algorithm that ends slow start before a loss.
    #[serde(with = "Start")]
    pub hystart: HyStart,
    /// TCP small queues.
    pub tsq: bool,
    /// True if silent paths are probed.
    pub probes: bool,
    /// Number of subflows between each pair of addresses.
    pub subflows: u8,
    /// True if the server has a second address and advertises it.
    pub second_address: bool,
    /// Pacing.
    pub pacing: bool,
    /// True if spurious window reductions are undone.
    pub undo: bool,
    /// Rule of proportional rate reduction for fast recovery.
    #[serde(with = "Recovery")]
    pub prr: Prr,
    /// Processing time of each segment at the sending host, in nanoseconds.
    pub send_cost_ns: u64,
    /// True if every segment is encoded and parsed.
    pub wire: bool,
    /// True for the buffers and rules of a stock Linux 6.18, with receive buffers set as by SO_RCVBUF.
    pub kernel: bool,
}

/// The behaviour of one end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndCase {
    /// Number of bytes that it sends.
    pub send_bytes: u64,
    /// When it closes its sending side.
    pub finish: Finish,
    /// Bytes of one write; 0 for all at once.
    pub write_bytes: u64,
    /// Time from one write to the next, in milliseconds.
    pub write_every_ms: u64,
    /// True if it sends varying bytes that the other end compares; otherwise it sends a pattern.
    pub real_bytes: bool,
    /// True if it negotiates Multipath TCP.
    pub multipath: bool,
    /// Receive buffer in bytes, at the start if buffers grow.
    pub rcvbuf_bytes: u64,
    /// Send buffer in bytes, at the start if buffers grow.
    pub sndbuf_bytes: u64,
    /// True if both buffers grow, up to eight times their first size.
    pub grows: bool,
    /// Largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// True if it delays acknowledgements.
    pub delayed_ack: bool,
    /// True if it requires DSS checksums.
    pub checksum: bool,
}

/// Direction of packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Way")]
pub enum Directions {
    /// Both ways.
    #[default]
    Both,
    /// To the client.
    Down,
    /// To the server.
    Up,
}

/// One of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The end that opens the connection.
    #[default]
    Client,
    /// The end that listens.
    Server,
}

/// When an end closes its sending side.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// As soon as everything is written. The connection is then half-closed, because the other end may
    /// continue.
    #[default]
    AtOnce,
    /// When it has also received all expected bytes.
    AfterReceipt,
    /// When the other end has finished.
    AfterPeer,
}

/// When additional subflows start.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "JoinTiming", rename_all = "kebab-case")]
#[schemars(rename = "Join")]
enum Join {
    /// After the first DSS.
    AfterData,
    /// After the SYN/ACK, if both ends agree.
    Agreed,
    /// After the SYN/ACK.
    #[serde(rename = "after-synack")]
    AfterSynAck,
    /// With the first SYN.
    Simultaneous,
}

/// Minimum of the retransmission timeout.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "RtoMode", rename_all = "kebab-case")]
#[schemars(rename = "Rto")]
enum Rto {
    /// The minimum of Linux.
    Linux,
    /// One second.
    Rfc,
    /// 200 ms.
    Rfc200,
}

/// Congestion window after an idle period.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "IdleRestart", rename_all = "kebab-case")]
#[schemars(rename = "Idle")]
enum Idle {
    /// Halved for each timeout, as in Linux.
    Linux,
    /// Reset to the initial window.
    Rfc5681,
    /// Unchanged.
    Off,
}

/// Value that a window is reduced from after a loss.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "ReduceFrom", rename_all = "kebab-case")]
#[schemars(rename = "Reduce")]
enum Reduce {
    /// The congestion window.
    Window,
    /// The outstanding bytes.
    Flight,
}

/// Rule of proportional rate reduction for fast recovery.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Prr", rename_all = "kebab-case")]
#[schemars(rename = "Recovery")]
enum Recovery {
    /// One segment more than was delivered, unless there are new losses.
    Rfc9937,
    /// Always one segment more than was delivered.
    Rfc6937,
}

/// Algorithm that ends slow start before a loss.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "HyStart", rename_all = "kebab-case")]
#[schemars(rename = "Start")]
enum Start {
    /// None.
    Off,
    /// HyStart++.
    #[serde(rename = "on")]
    PlusPlus,
    /// HyStart in the CUBIC of Linux since 4.0.
    Linux,
    /// Not used by cases.
    #[serde(skip)]
    Linux6,
    /// HyStart in the CUBIC of Linux before 4.0.
    Linux3,
}

/// Latest time of a fault, in milliseconds.
pub(super) const LATEST_MS: u64 = 3_600_000;

impl Default for Case {
    fn default() -> Case {
        Case {
            seed: 1,
            paths: Vec::new(),
            shared_kbps: 20_000,
            scheduler: "minrtt".to_owned(),
            controller: "reno".to_owned(),
            settings: Settings::default(),
            pairs: 1,
            connections: 1,
            client: EndCase::default(),
            server: EndCase::default(),
            memory: Vec::new(),
            faults: Vec::new(),
            heals_ms: 10_000,
        }
    }
}

impl Default for PathCase {
    fn default() -> PathCase {
        PathCase {
            rate_kbps: 10_000,
            rtt_us: 20_000,
            queue_packets: 0,
            jitter_us: 0,
            codel: false,
            shared: false,
            backup: false,
            cost: 0,
            quota_bytes: 0,
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            join: JoinTiming::default(),
            rto: RtoMode::default(),
            idle_restart: IdleRestart::default(),
            reduce_from: ReduceFrom::default(),
            ssthresh_bytes: 0,
            initial_window: 10,
            hystart: HyStart::Off,
            tsq: false,
            probes: true,
            subflows: 1,
            second_address: false,
            pacing: false,
            undo: true,
            prr: Prr::default(),
            send_cost_ns: 0,
            wire: false,
            kernel: false,
        }
    }
}

impl Default for EndCase {
    fn default() -> EndCase {
        EndCase {
            send_bytes: 0,
            finish: Finish::default(),
            write_bytes: 0,
            write_every_ms: 0,
            real_bytes: false,
            multipath: true,
            rcvbuf_bytes: 6 << 20,
            sndbuf_bytes: 4 << 20,
            grows: false,
            mtu_bytes: 1500,
            delayed_ack: true,
            checksum: false,
        }
    }
}

impl End {
    pub(super) const fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }
}

impl Case {
    pub(super) fn end(&self, end: End) -> &EndCase {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }

    pub(super) fn end_mut(&mut self, end: End) -> &mut EndCase {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

    /// Returns the time that the run has to finish after the faults have healed. It is 60 s, or one
    /// and a half times the transfer time of all connections plus 30 s, if that is longer. A controller
    /// that uses a link badly gets four times this. The delay by windows of one segment is added.
    #[must_use]
    pub fn grace(&self) -> Span {
        let takes = self.takes();
        let least = GRACE.max(takes + takes.over(2) + GRACE.over(2));
        let patience = if self.uses_links_badly() { SLOW_CONTROLLER_FACTOR } else { 1 };
        least.times(patience) + self.holds_up()
    }

    /// Returns true if the controller may use a small part of its links. OLIA takes growth from the path with
    /// the largest window, which can be all that a window of a few segments has. A fixed window ignores
    /// losses: if it is too large, most of what it sends is lost.
    fn uses_links_badly(&self) -> bool {
        ["olia", "fixed"].iter().any(|name| self.controller.starts_with(name))
    }

    /// Returns the longest time that data can wait for a window of one segment, which a coupled
    /// controller can keep for ever. The model of a stock kernel leaves a full send buffer there
    /// (`linux:back`). Stock kernels have no coupled controller. If a price keeps the data off the other
    /// paths, all data waits: their windows count for the controller.
    fn holds_up(&self) -> Span {
        let holds = COUPLED.iter().any(|name| self.controller.starts_with(name));
        let most = match (self.has_prices(), self.scheduler.starts_with("linux")) {
            (true, _) if holds => u64::MAX,
            (_, true) if holds && self.settings.kernel => KernelBuffers::LINUX_6_18.most_sndbuf,
            _ => return Span::ZERO,
        };
        let rtt = self.paths.iter().map(|path| path.rtt_us + 2 * path.jitter_us).max().unwrap_or(0);
        let waits = |end: &EndCase| {
            let segment = u64::from(end.mtu_bytes).saturating_sub(HEADERS_BYTES).max(1);
            let held = end.send_bytes.min(most);
            Span::from_micros(held.div_ceil(segment).saturating_mul(rtt))
        };
        waits(&self.client).max(waits(&self.server))
    }

    /// Returns the transfer time of all connections in one direction, without other traffic. It assumes
    /// the faster of the shared link and the best path beside it, or the slowest of them if a price may
    /// keep the data off the others. `redundant` sends a copy on each subflow.
    fn takes(&self) -> Span {
        let sent = self.client.send_bytes.max(self.server.send_bytes);
        let all = sent * u64::from(self.pairs) * u64::from(self.connections);
        let redundant = self.scheduler.starts_with("redundant");
        let addresses = 1 + u64::from(self.settings.second_address);
        let copies = if redundant { addresses * u64::from(self.settings.subflows) } else { 1 };
        let span = |copies: u64, kbps: u64| {
            Span::from_micros(all.saturating_mul(8_000 * copies) / kbps.max(1))
        };
        let priced = self.has_prices();
        let used = || self.paths.iter().filter(|path| priced || !path.backup);
        let sharing = used().filter(|path| path.shared).count() as u64;
        let beside = if redundant { sharing } else { 1 };
        let shared = (sharing > 0).then(|| span(copies * beside, self.shared_kbps));
        let own = used().filter(|path| !path.shared).map(|path| span(copies, path.rate_kbps));
        let times = own.chain(shared);
        if priced { times.max() } else { times.min() }.unwrap_or_default()
    }

    /// Returns true if a path has a cost or a quota, or if one path is used at a time.
    fn has_prices(&self) -> bool {
        self.paths.iter().any(PathCase::has_price) || self.scheduler.contains("goal=handover")
    }

    /// Returns the time at which every fault has healed.
    #[must_use]
    pub fn heals(&self) -> Time {
        Time::ZERO + Span::from_millis(self.heals_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_grows_with_what_the_links_have_to_carry() {
        let path = |rate_kbps, shared| PathCase { rate_kbps, shared, ..PathCase::default() };
        let mut case = Case {
            paths: vec![path(50_000, true), path(50_000, true)],
            shared_kbps: 4_000,
            pairs: 2,
            connections: 2,
            ..Case::default()
        };
        case.client.send_bytes = 4_000_000;
        // 16 MB take 32 s.
        assert_eq!(case.grace(), Span::from_secs(78));
        case.scheduler = "redundant+rp".to_owned();
        assert_eq!(case.grace(), Span::from_secs(126));
        // A path that is not shared carries them in 16 s.
        case.paths.push(path(8_000, false));
        assert_eq!(case.grace(), GRACE);
        case.paths[2].backup = true;
        assert_eq!(case.grace(), Span::from_secs(126));
    }

    #[test]
    fn a_coupled_window_may_hold_up_the_send_buffer_of_a_kernel() {
        let slow = PathCase { rtt_us: 200_000, ..PathCase::default() };
        let mut case = Case {
            paths: vec![PathCase::default(), slow],
            scheduler: "linux+rp".to_owned(),
            controller: "olia".to_owned(),
            ..Case::default()
        };
        case.client = EndCase { send_bytes: 1_000_000, mtu_bytes: 580, ..EndCase::default() };
        let patient = GRACE.times(SLOW_CONTROLLER_FACTOR);
        assert_eq!(case.grace(), patient);
        case.settings.kernel = true;
        // 2,000 segments of 500 bytes, one each 200 ms.
        assert_eq!(case.grace(), patient + Span::from_secs(400));
        case.controller = "fixed:cwnd=56seg".to_owned();
        assert_eq!(case.grace(), patient);
        case.controller = "reno".to_owned();
        assert_eq!(case.grace(), GRACE);
        // A price keeps all data on one path, which may have a window of one segment.
        case.paths[0].cost = 1;
        case.settings.kernel = false;
        case.controller = "lia".to_owned();
        assert_eq!(case.grace(), GRACE + Span::from_secs(400));
    }

    #[test]
    fn every_controller_is_coupled_or_not() {
        let apart = ["cubic", "reno", "fixed", "bbr"];
        let mut names: Vec<&str> =
            plait_cc::CONTROLLERS.iter().map(|entry| entry.about.name).collect();
        names.retain(|name| !COUPLED.contains(name) && !apart.contains(name));
        assert!(names.is_empty(), "coupled or not: {names:?}");
    }
}
