//! The user timeout (RFC 9293 section 3.8.3) and keep-alives: the peer acknowledges nothing, or is
//! silent.

use crate::data::level::PeerProgress;
use alloc::boxed::Box;
use plait_base::Time;

/// Number of checks within a timeout. A check compares with the state of the previous one, so
/// acknowledgements need no extra work.
pub(crate) const LOOKS_PER_TIMEOUT: u64 = 8;

/// Progress of the peer. Most connections have no timeouts, or are idle, and allocate none.
#[derive(Debug)]
pub(crate) struct PeerLiveness(Option<Box<PeerRecord>>);

/// State of the peer at the last checks.
#[derive(Default, Debug)]
pub(crate) struct PeerRecord {
    /// Set while data waits.
    pub(crate) taken: Option<PeerProgress>,
    /// Set if keep-alives are enabled.
    pub(crate) heard: Option<LastHeard>,
}

impl PeerLiveness {
    pub(crate) const fn new() -> PeerLiveness {
        PeerLiveness(None)
    }

    /// Returns the peer's progress at the last check.
    pub(crate) fn taken(&mut self) -> &mut Option<PeerProgress> {
        &mut self.0.get_or_insert_default().taken
    }

    /// Returns the peer's last activity at the last check.
    pub(crate) fn heard(&mut self) -> &mut Option<LastHeard> {
        &mut self.0.get_or_insert_default().heard
    }

    /// Clears the progress when no data waits, and frees the memory if it is empty.
    pub(crate) fn forget_taken(&mut self) {
        self.0.take_if(|seen| seen.heard.is_none());
    }
}

/// The peer's last activity at the last check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastHeard {
    /// When the last activity was found.
    pub(crate) since: Time,
    /// A sum that grows with nearly every segment of the peer: [`crate::paths::Paths::heard`].
    pub(crate) sum: u64,
    /// Probes sent since then.
    pub(crate) probes: u8,
}

/// Result of a keep-alive check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeepAlive {
    Alive,
    /// A probe must be sent.
    Probe,
    /// All probes stayed unanswered.
    Dead,
}

/// State that a keep-alive check uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerActivity {
    /// Both directions have ended.
    pub(crate) over: bool,
    /// Data is in flight, which has its own timer.
    pub(crate) under_way: bool,
    /// No subflow can carry a probe.
    pub(crate) alone: bool,
    /// Sum of the peer's activity ([`LastHeard`]).
    pub(crate) sum: u64,
}
