//! The words of the events. Each stands for a value of the core, the links or the simulator, and
//! the schema lists them.

use plait_app::Role;
use plait_core::{
    Block as Blocked, Carry as Carried, FallbackCause as Fallback, SizeCause as Shortened,
    WindowCause as Resized,
};
use plait_link::DropCause;
use plait_sched::{CaState, Reason};
use plait_sim::Direction;
use plait_wire::Mptcp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A type with words as values, and its description in the schema.
pub(super) trait Words: Serialize + Sized + 'static {
    /// Its name in the schema.
    const NAME: &str;
    /// Description of the words.
    const ABOUT: &str;
    /// Every value.
    const ALL: &[Self];
}

/// A value that is written as a word.
#[derive(Serialize, Deserialize, Clone, Copy, Debug)]
#[serde(transparent)]
pub(super) struct Word<T>(pub(super) T);

impl<T> From<T> for Word<T> {
    fn from(value: T) -> Word<T> {
        Word(value)
    }
}

impl<T: Words> JsonSchema for Word<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": T::ABOUT, "type": "string", "enum": T::ALL })
    }
}

pub(super) type HostWord = Word<Role>;

impl Words for Role {
    const NAME: &str = "HostWord";
    const ABOUT: &str = "Where it happened.";
    const ALL: &[Role] = &[Role::Client, Role::Server];
}

pub(super) type DirectionWord = Word<Direction>;

impl Words for Direction {
    const NAME: &str = "Way";
    const ABOUT: &str = "Down is from the server to the client.";
    const ALL: &[Direction] = &[Direction::Down, Direction::Up];
}

pub(super) type Carry = Word<Carried>;

impl Words for Carried {
    const NAME: &str = "Carry";
    const ABOUT: &str = "Why payload was sent.";
    const ALL: &[Carried] = &[
        Carried::New,
        Carried::Retransmission,
        Carried::Reinjection,
        Carried::Redundant,
        Carried::Opportunistic,
        Carried::TailProbe,
    ];
}

pub(super) type FallbackCause = Word<Fallback>;

impl Words for Fallback {
    const NAME: &str = "FallbackCause";
    const ABOUT: &str = "Why a connection is plain TCP.";
    const ALL: &[Fallback] = &[
        Fallback::Silence,
        Fallback::Syn,
        Fallback::SynAck,
        Fallback::ThirdAck,
        Fallback::FirstData,
        Fallback::Mappings,
        Fallback::Checksum,
    ];
}

pub(super) type Block = Word<Blocked>;

impl Words for Blocked {
    const NAME: &str = "Block";
    const ABOUT: &str = "What keeps the sender from sending.";
    const ALL: &[Blocked] = &[
        Blocked::ReceiveWindow,
        Blocked::SendBuffer,
        Blocked::Scheduler,
        Blocked::CongestionWindow,
        Blocked::NoSubflow,
    ];
}

pub(super) type WindowCause = Word<Resized>;

impl Words for Resized {
    const NAME: &str = "WindowCause";
    const ABOUT: &str = "Why a congestion window changed.";
    const ALL: &[Resized] = &[
        Resized::Loss,
        Resized::Timeout,
        Resized::Recovered,
        Resized::Undone,
        Resized::Effect,
        Resized::Set,
    ];
}

pub(super) type SizeCause = Word<Shortened>;

impl Words for Shortened {
    const NAME: &str = "SizeCause";
    const ABOUT: &str = "How plait found out that a path drops longer packets.";
    const ALL: &[Shortened] = &[Shortened::BlackHole, Shortened::TooBig];
}

pub(super) type Drop = Word<DropCause>;

impl Words for DropCause {
    const NAME: &str = "Drop";
    const ABOUT: &str = "Why a path dropped a segment.";
    const ALL: &[DropCause] = &[
        DropCause::Loss,
        DropCause::Queue,
        DropCause::Aqm,
        DropCause::Outage,
        DropCause::Mtu,
        DropCause::Corrupt,
    ];
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

/// Returns every reason of a decision, for the schema.
pub(super) const fn reasons() -> &'static [Reason] {
    Reason::ALL
}

impl Words for CaState {
    const NAME: &str = "LossState";
    const ABOUT: &str = "Loss recovery of a subflow.";
    const ALL: &[CaState] = &[CaState::Open, CaState::Disorder, CaState::Recovery, CaState::Loss];
}

/// Returns the reason why a path, or the host behind it, dropped a packet.
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
