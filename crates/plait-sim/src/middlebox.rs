//! What stands on a path and meddles with segments: it takes MPTCP options off, or changes payload
//! and repairs the TCP checksum, so that only a DSS checksum tells.

use plait_base::{Chance, Stream, Time};
use plait_wire::{Flags, Mptcp, Segment};

/// Which segments lose their MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripAt {
    /// SYNs.
    Syn,
    /// SYN/ACKs.
    SynAck,
    /// Third ACKs: those without payload that tell keys or a proof.
    ThirdAck,
    /// The first segment with payload, each way, and its repetitions.
    FirstData,
    /// Segments with payload.
    Data,
    /// All segments.
    All,
}

impl StripAt {
    /// Every position, by the word for it.
    pub const ALL: [(&'static str, StripAt); 6] = [
        ("syn", StripAt::Syn),
        ("synack", StripAt::SynAck),
        ("ack", StripAt::ThirdAck),
        ("first", StripAt::FirstData),
        ("data", StripAt::Data),
        ("all", StripAt::All),
    ];
}

/// A middlebox that takes the MPTCP options off segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strip {
    /// Off which.
    pub at: StripAt,
    /// Segments that arrive before this keep theirs.
    pub from: Time,
    /// Segments that arrive then or later keep theirs.
    pub until: Time,
}

/// What the middlebox of a path does, each way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Middlebox {
    /// Options that it takes off.
    pub strip: Option<Strip>,
    /// Chance of each segment with payload to have a byte changed.
    pub edit: Chance,
}

/// The middlebox on one direction of a path.
#[derive(Debug)]
pub struct Meddler {
    config: Middlebox,
    edits: Stream,
}

impl Meddler {
    /// `None` where it does nothing. Its chances have a stream of their own.
    #[must_use]
    pub fn new(config: Middlebox, seed: u64, name: &[&str]) -> Option<Box<Meddler>> {
        if config == Middlebox::default() {
            return None;
        }
        let mut words = vec!["middlebox"];
        words.extend_from_slice(name);
        words.push("edit");
        Some(Box::new(Meddler { config, edits: Stream::new(seed, &words) }))
    }

    /// Passes a segment on at `now`.
    pub fn pass(&mut self, now: Time, segment: &mut Segment) {
        if let Some(strip) = self.config.strip
            && (strip.from..strip.until).contains(&now)
            && strip.at.takes(segment)
        {
            (segment.options.mptcp, segment.options.dss) = (None, None);
        }
        let len = segment.payload.len();
        if len > 0 && self.config.edit.happens(&mut self.edits) {
            let at = self.edits.below(u64::from(len)) as u32;
            segment.payload = segment.payload.edited(at);
        }
    }
}

impl StripAt {
    fn takes(self, segment: &Segment) -> bool {
        let (syn, ack) = (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK));
        let payload = !segment.payload.is_empty();
        match self {
            StripAt::Syn => syn && !ack,
            StripAt::SynAck => syn && ack,
            StripAt::ThirdAck => {
                let third =
                    |option: &Mptcp| matches!(option, Mptcp::Capable(_) | Mptcp::JoinAck(_));
                !syn && !payload && segment.options.mptcp.as_deref().is_some_and(third)
            }
            StripAt::FirstData => payload && is_first(segment),
            StripAt::Data => payload,
            StripAt::All => true,
        }
    }
}

/// Whether a mapping starts with its subflow's first byte.
fn is_first(segment: &Segment) -> bool {
    let map = segment.options.dss.and_then(|dss| dss.mapping);
    let keys = matches!(segment.options.mptcp.as_deref(), Some(Mptcp::Capable(_)));
    keys || map.is_some_and(|map| map.ssn == 1)
}
