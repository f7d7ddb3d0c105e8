//! The words of the events: each is said by one kind of thing, and the schema lists them.

use plait_app::Role;
use plait_link::DropCause;
use plait_sim::Direction;
use plait_wire::Mptcp;
use schemars::JsonSchema;
use serde::Serialize;

/// Where it happened.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HostWord {
    Client,
    Server,
}

impl From<Role> for HostWord {
    fn from(host: Role) -> HostWord {
        match host {
            Role::Client => HostWord::Client,
            Role::Server => HostWord::Server,
        }
    }
}

/// Down is from the server to the client.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Way {
    Down,
    Up,
}

impl From<Direction> for Way {
    fn from(direction: Direction) -> Way {
        match direction {
            Direction::Down => Way::Down,
            Direction::Up => Way::Up,
        }
    }
}

/// Why payload was sent.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Carry {
    New,
    Retransmission,
    Reinjection,
    Redundant,
    Opportunistic,
    TailProbe,
}

impl From<plait_core::Carry> for Carry {
    fn from(carry: plait_core::Carry) -> Carry {
        match carry {
            plait_core::Carry::New => Carry::New,
            plait_core::Carry::Retransmission => Carry::Retransmission,
            plait_core::Carry::Reinjection => Carry::Reinjection,
            plait_core::Carry::Redundant => Carry::Redundant,
            plait_core::Carry::Opportunistic => Carry::Opportunistic,
            plait_core::Carry::TailProbe => Carry::TailProbe,
        }
    }
}

/// Why a connection is plain TCP.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FallbackCause {
    Silence,
    Syn,
    #[serde(rename = "synack")]
    SynAck,
    #[serde(rename = "ack")]
    ThirdAck,
    FirstData,
    Mappings,
    Checksum,
}

impl From<plait_core::FallbackCause> for FallbackCause {
    fn from(cause: plait_core::FallbackCause) -> FallbackCause {
        use plait_core::FallbackCause as Core;
        match cause {
            Core::Silence => FallbackCause::Silence,
            Core::Syn => FallbackCause::Syn,
            Core::SynAck => FallbackCause::SynAck,
            Core::ThirdAck => FallbackCause::ThirdAck,
            Core::FirstData => FallbackCause::FirstData,
            Core::Mappings => FallbackCause::Mappings,
            Core::Checksum => FallbackCause::Checksum,
        }
    }
}

/// What keeps the sender from sending.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Block {
    ReceiveWindow,
    SendBuffer,
    Scheduler,
    #[serde(rename = "cwnd")]
    CongestionWindow,
    NoSubflow,
}

impl From<plait_core::Block> for Block {
    fn from(block: plait_core::Block) -> Block {
        match block {
            plait_core::Block::ReceiveWindow => Block::ReceiveWindow,
            plait_core::Block::SendBuffer => Block::SendBuffer,
            plait_core::Block::Scheduler => Block::Scheduler,
            plait_core::Block::CongestionWindow => Block::CongestionWindow,
            plait_core::Block::NoSubflow => Block::NoSubflow,
        }
    }
}

/// Why a congestion window changed.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WindowCause {
    Loss,
    Timeout,
    Recovered,
    Undone,
    Effect,
    Set,
}

impl From<plait_core::WindowCause> for WindowCause {
    fn from(cause: plait_core::WindowCause) -> WindowCause {
        match cause {
            plait_core::WindowCause::Loss => WindowCause::Loss,
            plait_core::WindowCause::Timeout => WindowCause::Timeout,
            plait_core::WindowCause::Recovered => WindowCause::Recovered,
            plait_core::WindowCause::Undone => WindowCause::Undone,
            plait_core::WindowCause::Effect => WindowCause::Effect,
            plait_core::WindowCause::Set => WindowCause::Set,
        }
    }
}

/// How it is known that a path lets no longer packets through.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SizeCause {
    BlackHole,
    TooBig,
}

impl From<plait_core::SizeCause> for SizeCause {
    fn from(cause: plait_core::SizeCause) -> SizeCause {
        match cause {
            plait_core::SizeCause::BlackHole => SizeCause::BlackHole,
            plait_core::SizeCause::TooBig => SizeCause::TooBig,
        }
    }
}

/// Why a path dropped a segment.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Drop {
    Loss,
    Queue,
    Aqm,
    Outage,
    Mtu,
    Corrupt,
}

impl From<DropCause> for Drop {
    fn from(cause: DropCause) -> Drop {
        match cause {
            DropCause::Loss => Drop::Loss,
            DropCause::Queue => Drop::Queue,
            DropCause::Aqm => Drop::Aqm,
            DropCause::Outage => Drop::Outage,
            DropCause::Mtu => Drop::Mtu,
            DropCause::Corrupt => Drop::Corrupt,
        }
    }
}

/// A Multipath TCP option other than the DSS.
#[derive(Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OptionWord {
    MpCapable,
    MpJoin,
    AddAddr,
    RemoveAddr,
    MpPrio,
    MpFail,
    MpFastclose,
    MpTcprst,
    Several,
}

impl From<&Mptcp> for OptionWord {
    fn from(option: &Mptcp) -> OptionWord {
        match option {
            Mptcp::Several(_) => OptionWord::Several,
            Mptcp::Capable(_) => OptionWord::MpCapable,
            Mptcp::JoinSyn(_) | Mptcp::JoinSynAck(_) | Mptcp::JoinAck(_) => OptionWord::MpJoin,
            Mptcp::AddAddr(_) => OptionWord::AddAddr,
            Mptcp::RemoveAddr(_) => OptionWord::RemoveAddr,
            Mptcp::Prio { .. } => OptionWord::MpPrio,
            Mptcp::Fail(_) => OptionWord::MpFail,
            Mptcp::FastClose(_) => OptionWord::MpFastclose,
            Mptcp::Reset { .. } => OptionWord::MpTcprst,
        }
    }
}

/// Every reason of a decision, for the schema.
pub(super) fn reasons() -> Vec<&'static str> {
    plait_sched::Reason::ALL.iter().map(|reason| reason.as_str()).collect()
}

/// Why a path, or the host behind it, dropped a packet.
pub(crate) fn drop_word(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Loss => "loss",
        DropCause::Queue => "queue",
        DropCause::Outage => "outage",
        DropCause::Mtu => "mtu",
        DropCause::Corrupt => "corrupt",
        DropCause::Aqm => "aqm",
    }
}
