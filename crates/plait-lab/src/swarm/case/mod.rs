//! A case: everything that one run of the swarm is made from, as data that is printed and read back.

mod setup;
mod text;

pub use text::CaseError;
pub(super) use text::shorten;

use super::fault::Fault;
use plait_base::{Span, Time};
use plait_cc::{HyStart, IdleRestart};
use plait_core::{JoinTiming, Prr, ReduceFrom, RtoMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All must be over this long after the faults have healed, or longer if the links need it: see
/// [`Case::grace`].
pub const GRACE: Span = Span::from_secs(60);

/// Everything that one run is made from. Members that have their usual value need not be written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Case {
    /// Seed of every random number of the run.
    pub seed: u64,
    /// The paths, the one that the connection starts on first.
    pub paths: Vec<PathCase>,
    /// Rate each way, in kbit/s, of a link that paths with `shared` go through together.
    pub shared_kbps: u64,
    /// The scheduler of both ends.
    pub scheduler: String,
    /// The congestion controller of both ends.
    pub controller: String,
    /// Settings of both ends.
    pub settings: Settings,
    /// Pairs of hosts that do the same over the same paths.
    pub pairs: u32,
    /// Connections of each pair that do the same.
    pub connections: u32,
    /// The end that dials.
    pub client: EndCase,
    /// The end that listens.
    pub server: EndCase,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// When every fault has healed, in milliseconds.
    pub heals_ms: u64,
}

/// One path, the same each way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathCase {
    /// Rate in kbit/s.
    pub rate_kbps: u64,
    /// Propagation, there and back, in microseconds.
    pub rtt_us: u64,
    /// What its queues hold, in packets; 0 stands for 100 ms.
    pub queue_packets: u32,
    /// Greatest random delay, in microseconds.
    pub jitter_us: u64,
    /// CoDel manages its queues.
    pub codel: bool,
    /// It goes on through the shared link.
    pub shared: bool,
    /// To be used only where no other path works.
    pub backup: bool,
}

/// Settings of both ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// When further subflows start.
    #[serde(with = "Join")]
    pub join: JoinTiming,
    /// Floor of the retransmission timeout.
    #[serde(with = "Rto")]
    pub rto: RtoMode,
    /// Window after an idle time.
    #[serde(with = "Idle")]
    pub idle_restart: IdleRestart,
    /// What a window is reduced from after a loss.
    #[serde(with = "Reduce")]
    pub reduce_from: ReduceFrom,
    /// Initial slow start threshold in bytes; 0 is infinite.
    pub ssthresh_bytes: u64,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// What ends slow start before a loss.
    #[serde(with = "Start")]
    pub hystart: HyStart,
    /// TCP small queues.
    pub tsq: bool,
    /// Probes of silent paths.
    pub probes: bool,
    /// Subflows between each pair of addresses.
    pub subflows: u8,
    /// The server has a second address, which it tells.
    pub second_address: bool,
    /// Pacing.
    pub pacing: bool,
    /// Unfounded reductions of the window are undone.
    pub undo: bool,
    /// What fast recovery lets out below its threshold.
    #[serde(with = "Recovery")]
    pub prr: Prr,
    /// How long a host works on each segment that it sends, in nanoseconds.
    pub send_cost_ns: u64,
    /// Every segment is encoded and parsed.
    pub wire: bool,
    /// Buffers and rules of a stock Linux 6.18; the receive buffers are set, as by SO_RCVBUF.
    pub kernel: bool,
}

/// One end and what it does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EndCase {
    /// How many bytes it sends.
    pub send_bytes: u64,
    /// When it has no more to say.
    pub finish: Finish,
    /// It writes so many bytes at a time; 0 for all at once.
    pub write_bytes: u64,
    /// Time from one write to the next, in milliseconds.
    pub write_every_ms: u64,
    /// It sends real bytes, each of which is compared at the other end.
    pub real_bytes: bool,
    /// It offers Multipath TCP.
    pub multipath: bool,
    /// Receive buffer.
    pub rcvbuf_bytes: u64,
    /// Send buffer.
    pub sndbuf_bytes: u64,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// It delays acknowledgements.
    pub delayed_ack: bool,
    /// It asks for DSS checksums.
    pub checksum: bool,
}

/// Which way packets go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
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
    /// The one that dials.
    #[default]
    Client,
    /// The one that listens.
    Server,
}

/// When an end has no more to say.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// As soon as everything is written: half a close, for the other end may go on.
    #[default]
    AtOnce,
    /// When all that it expects has arrived as well.
    AfterReceipt,
    /// When the other end has finished.
    AfterPeer,
}

/// When further subflows start.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "JoinTiming", rename_all = "kebab-case")]
#[schemars(rename = "Join")]
enum Join {
    /// After the first DSS.
    AfterData,
    /// After the SYN/ACK.
    #[serde(rename = "after-synack")]
    AfterSynAck,
    /// With the first SYN.
    Simultaneous,
}

/// Floor of the retransmission timeout.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "RtoMode", rename_all = "kebab-case")]
#[schemars(rename = "Rto")]
enum Rto {
    /// As Linux has it.
    Linux,
    /// One second.
    Rfc,
    /// 200 ms.
    Rfc200,
}

/// Window after an idle time.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "IdleRestart", rename_all = "kebab-case")]
#[schemars(rename = "Idle")]
enum Idle {
    /// Halved for each timeout, as Linux does.
    Linux,
    /// Back to the initial window.
    Rfc5681,
    /// Kept.
    Off,
}

/// What a window is reduced from after a loss.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "ReduceFrom", rename_all = "kebab-case")]
#[schemars(rename = "Reduce")]
enum Reduce {
    /// The window.
    Window,
    /// The bytes outstanding.
    Flight,
}

/// What fast recovery lets out below its threshold.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Prr", rename_all = "kebab-case")]
#[schemars(rename = "Recovery")]
enum Recovery {
    /// A segment more than was delivered, where nothing new is lost.
    Rfc9937,
    /// A segment more than was delivered, always.
    Rfc6937,
}

/// What ends slow start before a loss.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "HyStart", rename_all = "kebab-case")]
#[schemars(rename = "Start")]
enum Start {
    /// Nothing.
    Off,
    /// HyStart++.
    #[serde(rename = "on")]
    PlusPlus,
    /// HyStart as CUBIC in Linux has it from 4.0 on.
    Linux,
    /// No case has it.
    #[serde(skip)]
    Linux6,
    /// And before it.
    Linux3,
}

/// The latest time of a fault, in milliseconds.
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

    /// All must be over this long after the faults have healed: 60 s, or one and a half times what the bytes of
    /// all connections take and 30 s.
    #[must_use]
    pub fn grace(&self) -> Span {
        let takes = self.takes();
        GRACE.max(takes + takes.over(2) + GRACE.over(2))
    }

    /// How long all connections take to send their bytes one way, on the better of the shared link and the best
    /// path of their own, if nothing else went there. `redundant` sends a copy on each subflow.
    fn takes(&self) -> Span {
        let sent = self.client.send_bytes.max(self.server.send_bytes);
        let all = sent * u64::from(self.pairs) * u64::from(self.connections);
        let redundant = self.scheduler.starts_with("redundant");
        let addresses = 1 + u64::from(self.settings.second_address);
        let copies = if redundant { addresses * u64::from(self.settings.subflows) } else { 1 };
        let span = |copies: u64, kbps: u64| {
            Span::from_micros(all.saturating_mul(8_000 * copies) / kbps.max(1))
        };
        let used = || self.paths.iter().filter(|path| !path.backup);
        let sharing = used().filter(|path| path.shared).count() as u64;
        let beside = if redundant { sharing } else { 1 };
        let shared = (sharing > 0).then(|| span(copies * beside, self.shared_kbps));
        let own = used().filter(|path| !path.shared).map(|path| span(copies, path.rate_kbps));
        own.chain(shared).min().unwrap_or_default()
    }

    /// When every fault has healed.
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
        // A path of its own carries them in 16 s.
        case.paths.push(path(8_000, false));
        assert_eq!(case.grace(), GRACE);
        case.paths[2].backup = true;
        assert_eq!(case.grace(), Span::from_secs(126));
    }
}
