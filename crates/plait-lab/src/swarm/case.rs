//! A case: everything that one run of the swarm is made from, as data that is printed and read back.

use super::fault::{Fault, Reading};
use super::party::{Content, Plan};
use plait_base::{PathId, Rate, Span, Time};
use plait_cc::IdleRestart;
use plait_core::{Config, ConnectionSpec, JoinTiming, Pacing, PathConfig, ReduceFrom, RtoMode};
use plait_link::{Aqm, LinkConfig, QueueLimit, RateSource};
use plait_sim::{ConnectionSetup, Middlebox, PairSetup, PathSetup, Setup, SharedLink};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// All must be over this long after the faults have healed.
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
    pub join: Join,
    /// Floor of the retransmission timeout.
    pub rto: Rto,
    /// Window after an idle time.
    pub idle_restart: Idle,
    /// What a window is reduced from after a loss.
    pub reduce_from: Reduce,
    /// Initial slow start threshold in bytes; 0 is infinite.
    pub ssthresh_bytes: u64,
    /// Initial congestion window in segments.
    pub initial_window: u32,
    /// HyStart++.
    pub hystart: bool,
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
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Join {
    /// After the first DSS.
    #[default]
    AfterData,
    /// After the SYN/ACK.
    AfterSynack,
    /// With the first SYN.
    Simultaneous,
}

/// Floor of the retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rto {
    /// As Linux has it.
    #[default]
    Linux,
    /// One second.
    Rfc,
    /// 200 ms.
    Rfc200,
}

/// Window after an idle time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// Halved for each timeout, as Linux does.
    #[default]
    Linux,
    /// Back to the initial window.
    Rfc5681,
    /// Kept.
    Off,
}

/// What a window is reduced from after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reduce {
    /// The window.
    #[default]
    Window,
    /// The bytes outstanding.
    Flight,
}

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
            join: Join::default(),
            rto: Rto::default(),
            idle_restart: Idle::default(),
            reduce_from: Reduce::default(),
            ssthresh_bytes: 0,
            initial_window: 10,
            hystart: false,
            tsq: false,
            probes: true,
            subflows: 1,
            second_address: false,
            pacing: false,
            undo: true,
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

/// A case that cannot be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseError(String);

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CaseError {}

/// The largest number of bytes, of a buffer or of what is sent.
const MOST_BYTES: u64 = 1 << 30;
/// The latest time of a fault, in milliseconds.
pub(super) const LATEST_MS: u64 = 3_600_000;

/// The server's second address.
const SECOND_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

impl Case {
    /// Reads what [`Case`] prints: JSON.
    ///
    /// # Errors
    /// Where the text is no JSON, a member is unknown, or a value is out of its range; the error
    /// names the member.
    pub fn parse(text: &str) -> Result<Case, CaseError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let case: Case = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| CaseError(format!("{}: {}", error.path(), error.inner())))?;
        reader.end().map_err(|error| CaseError(error.to_string()))?;
        case.verify().map_err(CaseError)?;
        Ok(case)
    }

    /// Whether it can be run.
    fn verify(&self) -> Result<(), String> {
        within("paths", self.paths.len() as u64, 1, 8)?;
        for (index, path) in self.paths.iter().enumerate() {
            within(&format!("paths[{index}].rate_kbps"), path.rate_kbps, 1, 100_000_000)?;
            within(&format!("paths[{index}].rtt_us"), path.rtt_us, 0, 60_000_000)?;
            within(&format!("paths[{index}].jitter_us"), path.jitter_us, 0, 60_000_000)?;
        }
        within("pairs", u64::from(self.pairs), 1, 8)?;
        within("connections", u64::from(self.connections), 1, 8)?;
        within("shared_kbps", self.shared_kbps, 1, 100_000_000)?;
        plait_sched::Spec::parse(&self.scheduler).map_err(|error| format!("scheduler: {error}"))?;
        let controller = plait_cc::Spec::parse(&self.controller)
            .map_err(|error| format!("controller: {error}"))?;
        if controller.needs_bdp() {
            return Err(
                "controller: `fixed:cwnd=BDP` has no rate here; allowed: fixed:cwnd=20seg".into()
            );
        }
        within("settings.ssthresh_bytes", self.settings.ssthresh_bytes, 0, MOST_BYTES)?;
        within("settings.initial_window", u64::from(self.settings.initial_window), 1, 1_000)?;
        within("settings.subflows", u64::from(self.settings.subflows), 1, 8)?;
        for (name, end) in [("client", &self.client), ("server", &self.server)] {
            within(&format!("{name}.send_bytes"), end.send_bytes, 0, MOST_BYTES)?;
            within(&format!("{name}.write_bytes"), end.write_bytes, 0, MOST_BYTES)?;
            within(&format!("{name}.write_every_ms"), end.write_every_ms, 0, LATEST_MS)?;
            within(&format!("{name}.rcvbuf_bytes"), end.rcvbuf_bytes, 1, MOST_BYTES)?;
            within(&format!("{name}.sndbuf_bytes"), end.sndbuf_bytes, 1, MOST_BYTES)?;
            within(&format!("{name}.mtu_bytes"), u64::from(end.mtu_bytes), 128, 65_535)?;
        }
        if self.client.finish == Finish::AfterPeer && self.server.finish == Finish::AfterPeer {
            return Err("server.finish: `after-peer` at both ends never ends".into());
        }
        within("heals_ms", self.heals_ms, 0, LATEST_MS)?;
        for (index, fault) in self.faults.iter().enumerate() {
            fault.verify(self.paths.len()).map_err(|error| format!("faults[{index}].{error}"))?;
        }
        Ok(())
    }

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

    /// When every fault has healed.
    #[must_use]
    pub fn heals(&self) -> Time {
        Time::ZERO + Span::from_millis(self.heals_ms)
    }

    /// The run.
    ///
    /// # Errors
    /// Where its scheduler or controller is unknown; those of a parsed or drawn case are not.
    pub(super) fn setup(&self) -> Result<Setup, CaseError> {
        let heals = self.heals();
        let mut paths: Vec<PathSetup> =
            self.paths.iter().enumerate().map(|(index, path)| path.setup(index, heals)).collect();
        for fault in &self.faults {
            fault.apply(heals, &mut paths);
        }
        let shared = self.paths.iter().any(|path| path.shared).then(|| {
            let link = || LinkConfig::new(rate(self.shared_kbps), Span::from_millis(1));
            SharedLink { name: "shared".to_owned(), down: link(), up: link() }
        });
        let connection = |index: u32| -> Result<ConnectionSetup, CaseError> {
            Ok(ConnectionSetup {
                client: self.spec(&self.client)?,
                server: self.spec(&self.server)?,
                // The parties do the work; with this nothing is measured beside them.
                workload: plait_app::Workload::Bulk { duration: Span::from_nanos(1) },
                start: Time::ZERO + Span::from_millis(100 * u64::from(index)),
            })
        };
        let connections = (0..self.connections).map(connection).collect::<Result<_, _>>()?;
        Ok(Setup {
            seed: self.seed,
            paths,
            shared: shared.into_iter().collect(),
            pairs: vec![PairSetup { connections, background: false }; self.pairs as usize],
            until: heals + GRACE,
            check: true,
            linger: true,
        })
    }

    fn spec(&self, end: &EndCase) -> Result<ConnectionSpec, CaseError> {
        let scheduler = plait_sched::Spec::parse(&self.scheduler)
            .map_err(|error| CaseError(error.to_string()))?;
        let controller = plait_cc::Spec::parse(&self.controller)
            .map_err(|error| CaseError(error.to_string()))?;
        let path = |(index, path): (usize, &PathCase)| PathConfig {
            path: PathId(index as u16),
            backup: path.backup,
        };
        Ok(ConnectionSpec {
            config: self.config(end),
            paths: self.paths.iter().enumerate().map(path).collect(),
            addresses: self.settings.second_address.then_some(SECOND_ADDRESS).into_iter().collect(),
            scheduler: Arc::new(move || scheduler.build()),
            controller: Arc::new(move |_| controller.build()),
        })
    }

    fn config(&self, end: &EndCase) -> Config {
        let settings = &self.settings;
        Config {
            multipath: end.multipath,
            mtu: end.mtu_bytes,
            rcvbuf: end.rcvbuf_bytes,
            sndbuf: end.sndbuf_bytes,
            initial_window: settings.initial_window,
            ssthresh: (settings.ssthresh_bytes > 0).then_some(settings.ssthresh_bytes),
            hystart: settings.hystart,
            join: match settings.join {
                Join::AfterData => JoinTiming::AfterData,
                Join::AfterSynack => JoinTiming::AfterSynAck,
                Join::Simultaneous => JoinTiming::Simultaneous,
            },
            rto: match settings.rto {
                Rto::Linux => RtoMode::Linux,
                Rto::Rfc => RtoMode::Rfc,
                Rto::Rfc200 => RtoMode::Rfc200,
            },
            idle_restart: match settings.idle_restart {
                Idle::Linux => IdleRestart::Linux,
                Idle::Rfc5681 => IdleRestart::Rfc5681,
                Idle::Off => IdleRestart::Off,
            },
            delayed_ack: end.delayed_ack,
            checksum: end.checksum,
            tsq: settings.tsq,
            reduce_from: match settings.reduce_from {
                Reduce::Window => ReduceFrom::Window,
                Reduce::Flight => ReduceFrom::Flight,
            },
            probe: settings.probes.then_some(Config::PROBE),
            subflows: settings.subflows,
            pacing: settings.pacing.then(Pacing::default),
            undo: settings.undo,
            ..Config::default()
        }
    }

    /// What the app at `end` does.
    pub(super) fn plan(&self, end: End) -> Plan {
        let (own, peer) = (self.end(end), self.end(end.other()));
        let mut reading = Reading { heals: self.heals(), ..Reading::default() };
        for fault in &self.faults {
            fault.hold_reader(end, &mut reading);
        }
        let content = |sender: End| {
            let salt = self.seed ^ u64::from(sender == End::Server);
            self.end(sender).real_bytes.then(|| Content::new(salt))
        };
        Plan {
            send: own.send_bytes,
            expect: peer.send_bytes,
            finish: own.finish,
            write: own.write_bytes,
            every: Span::from_millis(own.write_every_ms),
            reading,
            own: content(end),
            peer: content(end.other()),
        }
    }
}

fn within(field: &str, value: u64, low: u64, high: u64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(format!("{field}: {value} is out of range; allowed: {low} to {high}"))
}

pub(super) fn rate(kbps: u64) -> RateSource {
    RateSource::Fixed(Rate::from_bps(kbps * 1_000))
}

impl PathCase {
    fn setup(&self, index: usize, heals: Time) -> PathSetup {
        let rtt = Span::from_micros(self.rtt_us);
        let link = |delay| {
            let plain = LinkConfig::new(rate(self.rate_kbps), delay);
            LinkConfig {
                queue: match self.queue_packets {
                    0 => plain.queue,
                    packets => QueueLimit::Packets(packets),
                },
                aqm: if self.codel { Aqm::CODEL } else { Aqm::DropTail },
                jitter: Span::from_micros(self.jitter_us),
                heals,
                ..plain
            }
        };
        PathSetup {
            name: format!("p{index}"),
            down: link(rtt.over(2)),
            up: link(rtt.minus(rtt.over(2))),
            nic_down: Rate::from_bps(1_000_000_000),
            nic_up: Rate::from_bps(1_000_000_000),
            via: self.shared.then_some(0),
            middlebox: Middlebox::default(),
            removed: Vec::new(),
        }
    }
}

/// JSON on one line, without what has its usual value.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seed is always told.
        let plain = Case { seed: !self.seed, ..Case::default() };
        let value = |case: &Case| serde_json::to_value(case).map_err(|_| fmt::Error);
        let mut own = value(self)?;
        shorten(&mut own, &value(&plain)?);
        let path = serde_json::to_value(PathCase::default()).map_err(|_| fmt::Error)?;
        for own in own.get_mut("paths").and_then(Value::as_array_mut).into_iter().flatten() {
            shorten(own, &path);
        }
        for fault in own.get_mut("faults").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(members) = fault.as_object_mut() {
                members.retain(|name, value| name != "way" || value != "both");
            }
        }
        write!(f, "{own}")
    }
}

/// Leaves out the members that are as in `plain`.
fn shorten(own: &mut Value, plain: &Value) {
    let (Value::Object(own), Value::Object(plain)) = (own, plain) else { return };
    for (name, usual) in plain {
        if own.get(name) == Some(usual) {
            own.remove(name);
        } else if let Some(value) = own.get_mut(name) {
            shorten(value, usual);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::draw;

    #[test]
    fn what_is_printed_reads_back() {
        for seed in 0..500 {
            let case = draw(seed);
            assert_eq!(Case::parse(&case.to_string()), Ok(case));
        }
    }

    #[test]
    fn a_plain_case_is_short() {
        let case = Case { seed: 7, paths: vec![PathCase::default(); 2], ..Case::default() };
        assert_eq!(case.to_string(), r#"{"seed":7,"paths":[{},{}]}"#);
    }

    #[test]
    fn errors_name_the_member() {
        let error = |text: &str| Case::parse(text).unwrap_err().to_string();
        assert!(error("{").contains("EOF"), "{}", error("{"));
        assert!(error(r#"{"pahts":[{}]}"#).contains("unknown field `pahts`"));
        assert_eq!(error(r#"{"paths":[]}"#), "paths: 0 is out of range; allowed: 1 to 8");
        let text = r#"{"paths":[{"rate_kbps":"x"}]}"#;
        assert!(error(text).starts_with("paths[0].rate_kbps: invalid type"), "{}", error(text));
        let text = r#"{"paths":[{}],"faults":[{"kind":"loss","path":1,"ppm":5}]}"#;
        assert_eq!(error(text), "faults[0].path: 1 is out of range; allowed: 0 to 0");
        assert!(error(r#"{"paths":[{}],"scheduler":"blast"}"#).starts_with("scheduler: "));
        assert!(error(r#"{"paths":[{}],"controller":"fixed:cwnd=BDP"}"#).contains("20seg"));
        let both =
            r#"{"paths":[{}],"client":{"finish":"after-peer"},"server":{"finish":"after-peer"}}"#;
        assert!(error(both).contains("never ends"));
        assert!(error(r#"{"paths":[{}]} x"#).contains("trailing"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}", cut in 0..400_usize, put in proptest::prelude::any::<char>()) {
            let _ = Case::parse(&text);
            let mut whole: Vec<char> = draw(3).to_string().chars().collect();
            let at = cut.min(whole.len() - 1);
            whole[at] = put;
            let _ = Case::parse(&whole.into_iter().collect::<String>());
        }
    }
}
