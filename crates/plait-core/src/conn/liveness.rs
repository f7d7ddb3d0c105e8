//! A peer that takes nothing although data waits for it: the user timeout (RFC 9293 section 3.8.3).

use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use plait_base::{Dsn, Time};

/// How often it is looked at within a timeout. Looking compares with what was seen before, so that
/// acknowledgements need not tell anybody.
pub(crate) const LOOKS_PER_TIMEOUT: u64 = 8;

/// What the peer had taken when it last took something, as far as somebody has looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    pub(crate) since: Time,
    /// Data that was acknowledged, and the right edge of the window.
    pub(crate) una: Dsn,
    pub(crate) edge: Dsn,
}

/// How long the peer has been waited for. Most connections have no timeouts, or are idle.
#[derive(Debug)]
pub(crate) struct PeerLiveness(Option<Box<PeerRecord>>);

/// What was seen of the peer.
#[derive(Default, Debug)]
pub(crate) struct PeerRecord {
    /// While data waits.
    pub(crate) taken: Option<Taken>,
    /// Where there are keep-alives.
    pub(crate) heard: Option<LastHeard>,
}

impl PeerLiveness {
    pub(crate) const fn new() -> PeerLiveness {
        PeerLiveness(None)
    }

    /// What the peer had taken, as far as somebody has looked.
    pub(crate) fn taken(&mut self) -> &mut Option<Taken> {
        &mut self.0.get_or_insert_default().taken
    }

    /// What was heard of the peer, as far as somebody has looked.
    pub(crate) fn heard(&mut self) -> &mut Option<LastHeard> {
        &mut self.0.get_or_insert_default().heard
    }

    /// Nothing waits: the memory goes back where nothing else is in it.
    pub(crate) fn forget_taken(&mut self) {
        self.0.take_if(|seen| seen.heard.is_none());
    }
}

/// What was heard of the peer, as far as somebody has looked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastHeard {
    /// When something was last.
    pub(crate) since: Time,
    /// What grows with nearly every segment of the peer's: [`crate::paths::Paths::heard`].
    pub(crate) sum: u64,
    /// Probes since then.
    pub(crate) probes: u8,
}

/// Whether a probe may go out there, and an answer come.
pub(crate) fn is_reachable(subflow: &Subflow) -> bool {
    subflow.state.synchronised() && subflow.state != State::TimeWait && subflow.status.joined
}

/// Whether the peer lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    Assumed,
    /// It is to be asked.
    Asked,
    /// It was asked often enough.
    Over,
}

/// What tells whether the peer lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs {
    /// Both directions have ended.
    pub(crate) over: bool,
    /// Data is under way, which has a timer of its own.
    pub(crate) under_way: bool,
    /// No subflow can carry a question.
    pub(crate) alone: bool,
    /// What was heard of the peer ([`LastHeard`]).
    pub(crate) sum: u64,
}
