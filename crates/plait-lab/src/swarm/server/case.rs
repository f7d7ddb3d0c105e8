//! The case of a server, as JSON that a failing seed prints and `--case` reads.

use crate::swarm::CaseError;
use plait_base::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Time that a run has to end after the deadline of its transfers.
pub(super) const GRACE: Span = Span::from_secs(150);
/// Maximum number of guests of a group.
const MOST_GUESTS: u32 = 20_000;
/// Latest time in a case, in milliseconds.
const LATEST_MS: u64 = 600_000;
const MOST_BYTES: u64 = 1 << 30;

/// One server, its guests, and its faults.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerCase {
    /// Always `true`, which distinguishes it from the case of a network.
    pub server: bool,
    /// Seed of all randomness in the run.
    pub seed: u64,
    /// Rate of the server's link in each direction, in kbit/s.
    pub rate_kbps: u64,
    /// Minimum round-trip time to a client, in microseconds.
    pub rtt_us: u64,
    /// Maximum of the random addition to the round-trip time of each path, in microseconds.
    pub spread_us: u64,
    /// Loss of packets to and from clients, in millionths, until `heals_ms`.
    pub loss_ppm: u32,
    /// Time at which loss ends, in milliseconds.
    pub heals_ms: u64,
    /// Maximum memory of all connections, in bytes.
    pub memory_bytes: u64,
    /// Maximum number of simultaneous connections.
    pub connections: u64,
    /// Maximum number of client addresses with a number.
    pub numbers: u64,
    /// Limit of the host's TCP memory in bytes. Beyond it the kernel shrinks windows.
    pub tcp_memory_bytes: u64,
    /// Scheduler of the server.
    pub scheduler: String,
    /// Congestion controller of the server.
    pub controller: String,
    /// True if the service gets each client's address in a PROXY protocol header.
    pub proxy_header: bool,
    /// True if the server verifies the invariants of its connections after every call.
    pub check: bool,
    /// Behaviour of the service.
    pub service: ServiceCase,
    /// Groups of guests.
    pub guests: Vec<Group>,
    /// Faults of the server.
    pub blows: Vec<Blow>,
}

impl Default for ServerCase {
    fn default() -> ServerCase {
        ServerCase {
            server: true,
            seed: 1,
            rate_kbps: 100_000,
            rtt_us: 20_000,
            spread_us: 0,
            loss_ppm: 0,
            heals_ms: 0,
            memory_bytes: 512 << 20,
            connections: 10_000,
            numbers: 1 << 24,
            tcp_memory_bytes: 256 << 20,
            scheduler: "minrtt".to_owned(),
            controller: "cubic".to_owned(),
            proxy_header: false,
            check: false,
            service: ServiceCase::default(),
            guests: Vec::new(),
            blows: Vec::new(),
        }
    }
}

/// Behaviour of the service. Each share is in thousandths of all connections.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceCase {
    /// Refused at once.
    pub refuse: u32,
    /// Accepted within two seconds.
    pub late: u32,
    /// Closed after some bytes, with the rest unread.
    pub close: u32,
    /// Reset after some bytes.
    pub reset: u32,
    /// Accepted and never read.
    pub deaf: u32,
    /// Read and answered in small pieces with pauses.
    pub slow: u32,
}

/// Behaviour of a guest.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Visit {
    /// A client that receives bytes.
    Download,
    /// A client that sends bytes and receives one byte.
    Upload,
    /// A client that sends and receives the same number of bytes.
    Both,
    /// A client that resets its connection half-way.
    Abort,
    /// A client whose host falls silent half-way.
    Vanish,
    /// A client that receives bytes and never closes its side by itself.
    Stay,
    /// A stranger that sends only a SYN.
    Syn,
    /// A stranger that connects, sends a request with a FIN, and falls silent.
    OneShot,
    /// A stranger that connects and falls silent.
    Idle,
    /// A stranger that requests bytes and does not read them.
    Unread,
    /// A stranger that sends a random segment.
    Garbage,
}

impl Visit {
    /// All kinds.
    pub const ALL: [Visit; 11] = [
        Visit::Download,
        Visit::Upload,
        Visit::Both,
        Visit::Abort,
        Visit::Vanish,
        Visit::Stay,
        Visit::Syn,
        Visit::OneShot,
        Visit::Idle,
        Visit::Unread,
        Visit::Garbage,
    ];

    /// Returns true if the guest is an endpoint of plait.
    pub(super) const fn is_client(self) -> bool {
        !matches!(self, Visit::Syn | Visit::OneShot | Visit::Idle | Visit::Unread | Visit::Garbage)
    }

    /// Returns its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Visit::Download => "download",
            Visit::Upload => "upload",
            Visit::Both => "both",
            Visit::Abort => "abort",
            Visit::Vanish => "vanish",
            Visit::Stay => "stay",
            Visit::Syn => "syn",
            Visit::OneShot => "one-shot",
            Visit::Idle => "idle",
            Visit::Unread => "unread",
            Visit::Garbage => "garbage",
        }
    }
}

/// Guests with the same behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Behaviour of each guest.
    pub visit: Visit,
    /// Number of guests.
    pub count: u32,
    /// Arrival of the first guest, in milliseconds.
    #[serde(default)]
    pub from_ms: u64,
    /// Time from one arrival to the next, in microseconds.
    #[serde(default)]
    pub every_us: u64,
    /// Bytes of each guest.
    #[serde(default)]
    pub bytes: u64,
    /// Number of addresses of each client.
    #[serde(default = "one")]
    pub addresses: u32,
    /// Number of consecutive connections of each client.
    #[serde(default = "one")]
    pub times: u32,
    /// True if they use Multipath TCP.
    #[serde(default)]
    pub multipath: bool,
}

const fn one() -> u32 {
    1
}

/// A fault of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Blow {
    /// The server process crashes and is started again.
    Crash {
        /// Crash, in milliseconds.
        at_ms: u64,
        /// Restart, in milliseconds.
        back_ms: u64,
    },
    /// The network device drops every packet.
    Device {
        /// Start, in milliseconds.
        from_ms: u64,
        /// End, in milliseconds.
        to_ms: u64,
    },
    /// Clients lose their second address.
    Address {
        /// Start, in milliseconds.
        from_ms: u64,
        /// End, in milliseconds.
        to_ms: u64,
    },
    /// The server stops listening. It ends when its last connection has ended.
    Drain {
        /// Time, in milliseconds.
        at_ms: u64,
    },
}

impl Blow {
    /// The names of all kinds.
    pub const ALL: [&str; 4] = ["crash", "device", "address", "drain"];

    /// Returns its index among all kinds.
    pub(super) const fn place(&self) -> usize {
        match self {
            Blow::Crash { .. } => 0,
            Blow::Device { .. } => 1,
            Blow::Address { .. } => 2,
            Blow::Drain { .. } => 3,
        }
    }

    /// Returns its end in milliseconds.
    const fn ends_ms(&self) -> u64 {
        match self {
            Blow::Crash { back_ms: at, .. }
            | Blow::Device { to_ms: at, .. }
            | Blow::Address { to_ms: at, .. }
            | Blow::Drain { at_ms: at } => *at,
        }
    }
}

impl ServerCase {
    /// Returns true if a text is meant as the case of a server.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        let value: Option<Value> = serde_json::from_str(text).ok();
        value.is_some_and(|value| value.get("server").is_some_and(Value::is_boolean))
    }

    /// Parses the JSON that [`ServerCase`] prints.
    ///
    /// # Errors
    /// If the text is not JSON, a member is unknown, or a value is out of range. The error names
    /// the member.
    pub fn parse(text: &str) -> Result<ServerCase, CaseError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let case: ServerCase = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let member = if path == "." || path == "?" { String::new() } else { path };
            CaseError { member, problem: error.inner().to_string() }
        })?;
        reader.end().map_err(|error| CaseError::new(&error))?;
        case.verify().map_err(|problem| CaseError::new(&problem))?;
        Ok(case)
    }

    fn verify(&self) -> Result<(), String> {
        let within = |field: &str, value: u64, low: u64, high: u64| match value {
            value if (low..=high).contains(&value) => Ok(()),
            _ => Err(format!("{field}: {value} is out of range; allowed: {low} to {high}")),
        };
        if !self.server {
            return Err("server: false is a case of a network; leave it out".into());
        }
        within("rate_kbps", self.rate_kbps, 100, 100_000_000)?;
        within("rtt_us", self.rtt_us, 0, 10_000_000)?;
        within("spread_us", self.spread_us, 0, 10_000_000)?;
        within("loss_ppm", self.loss_ppm.into(), 0, 1_000_000)?;
        within("heals_ms", self.heals_ms, 0, LATEST_MS)?;
        within("memory_bytes", self.memory_bytes, 1 << 20, u64::MAX)?;
        within("connections", self.connections, 1, 1 << 24)?;
        within("numbers", self.numbers, 1, 1 << 24)?;
        plait_sched::Spec::parse(&self.scheduler).map_err(|error| format!("scheduler: {error}"))?;
        let controller = plait_cc::Spec::parse(&self.controller)
            .map_err(|error| format!("controller: {error}"))?;
        if controller.needs_bdp() {
            return Err("controller: `fixed:cwnd=BDP` has no rate here".into());
        }
        let ServiceCase { refuse, late, close, reset, deaf, slow } = self.service;
        let all = [refuse, late, close, reset, deaf, slow];
        within("service", all.iter().map(|it| u64::from(*it)).sum(), 0, 1_000)?;
        for (at, group) in self.guests.iter().enumerate() {
            let field = |name: &str| format!("guests[{at}].{name}");
            within(&field("count"), group.count.into(), 1, MOST_GUESTS.into())?;
            within(&field("from_ms"), group.from_ms, 0, LATEST_MS)?;
            within(&field("every_us"), group.every_us, 0, 10_000_000)?;
            within(&field("bytes"), group.bytes, 0, MOST_BYTES)?;
            within(&field("addresses"), group.addresses.into(), 1, 4)?;
            within(&field("times"), group.times.into(), 1, 1_000)?;
        }
        for (at, blow) in self.blows.iter().enumerate() {
            within(&format!("blows[{at}]"), blow.ends_ms(), 0, LATEST_MS)?;
        }
        Ok(())
    }

    /// Returns the time at which all faults have healed and the last guest has come.
    pub(super) fn heals(&self) -> Time {
        let last = |group: &Group| group.from_ms + u64::from(group.count) * group.every_us / 1_000;
        let blows = self.blows.iter().map(Blow::ends_ms);
        let all = self.guests.iter().map(last).chain(blows).chain([self.heals_ms]);
        Time::ZERO + Span::from_millis(all.max().unwrap_or(0))
    }
}

/// Prints JSON on one line, without members that have their default value.
impl fmt::Display for ServerCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = ServerCase { seed: !self.seed, server: false, ..ServerCase::default() };
        let value = |case: &ServerCase| serde_json::to_value(case).map_err(|_| fmt::Error);
        let mut own = value(self)?;
        crate::swarm::shorten(&mut own, &value(&plain)?);
        write!(f, "{own}")
    }
}
