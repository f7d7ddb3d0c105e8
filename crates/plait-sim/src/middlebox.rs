//! Middleboxes: they strip MPTCP options, cut segments, or change payload bytes.
//!
//! A changed payload has a valid TCP checksum, so only a DSS checksum detects the change.

use plait_base::{Chance, RandomStream, Time};
use plait_wire::{Flags, Mptcp, Segment};

/// Which segments lose their MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StripAt {
    /// SYNs.
    Syn,
    /// SYN/ACKs.
    SynAck,
    /// Third ACKs: segments without payload that carry keys or the HMAC of a join.
    ThirdAck,
    /// The first segment with payload in each direction, and its retransmissions.
    FirstData,
    /// Segments with payload.
    Data,
    /// All segments.
    All,
}

impl StripAt {
    /// Every position, with its keyword.
    pub const ALL: [(&'static str, StripAt); 6] = [
        ("syn", StripAt::Syn),
        ("synack", StripAt::SynAck),
        ("ack", StripAt::ThirdAck),
        ("first", StripAt::FirstData),
        ("data", StripAt::Data),
        ("all", StripAt::All),
    ];
}

/// Settings for stripping MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strip {
    /// Which segments lose their options.
    pub at: StripAt,
    /// Segments that arrive before this time keep their options.
    pub from: Time,
    /// Segments that arrive at this time or later keep their options.
    pub until: Time,
}

/// The behaviour of a path's middlebox, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MiddleboxConfig {
    /// Strips MPTCP options, if set.
    pub strip: Option<Strip>,
    /// Probability, for each segment with payload, that one byte is changed.
    pub edit: Chance,
    /// Cuts segments, if set.
    pub cut: Option<Cut>,
}

/// Settings for cutting segments in two, of which one half is lost. The retransmission then
/// overlaps the received half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Probability for each segment of at least two bytes that has neither FIN nor MP_CAPABLE.
    pub chance: Chance,
    /// Segments that arrive at this time or later stay whole.
    pub until: Time,
}

/// The middlebox on one direction of a path.
#[derive(Debug)]
pub struct Middlebox {
    config: MiddleboxConfig,
    edits: RandomStream,
    cuts: RandomStream,
    done: MiddleboxCounters,
}

/// Counters of middleboxes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MiddleboxCounters {
    /// Segments that lost their MPTCP options.
    pub stripped: u64,
    /// Segments with a byte changed.
    pub edited: u64,
    /// Segments cut.
    pub cut: u64,
}

impl MiddleboxCounters {
    /// Returns the sum of both.
    pub(crate) const fn plus(self, other: MiddleboxCounters) -> MiddleboxCounters {
        MiddleboxCounters {
            stripped: self.stripped + other.stripped,
            edited: self.edited + other.edited,
            cut: self.cut + other.cut,
        }
    }
}

impl Middlebox {
    /// Returns `None` if the middlebox does nothing. Edits and cuts draw from their own random
    /// streams.
    #[must_use]
    pub fn new(config: MiddleboxConfig, seed: u64, name: &[&str]) -> Option<Box<Middlebox>> {
        if config == MiddleboxConfig::default() {
            return None;
        }
        let stream = |purpose: &str| {
            let mut words = vec!["middlebox"];
            words.extend_from_slice(name);
            words.push(purpose);
            RandomStream::new(seed, &words)
        };
        Some(Box::new(Middlebox {
            config,
            edits: stream("edit"),
            cuts: stream("cut"),
            done: MiddleboxCounters::default(),
        }))
    }

    /// Passes a segment on at `now`.
    pub fn pass(&mut self, now: Time, segment: &mut Segment) {
        if let Some(strip) = self.config.strip
            && (strip.from..strip.until).contains(&now)
            && strip.at.takes(segment)
        {
            let options = &mut segment.options;
            self.done.stripped += u64::from(options.mptcp.is_some() || options.dss.is_some());
            (options.mptcp, options.dss) = (None, None);
        }
        let len = segment.payload.len();
        if len > 0 && self.config.edit.happens(&mut self.edits) {
            let at = self.edits.below(u64::from(len)) as u32;
            segment.payload = segment.payload.edited(at);
            self.done.edited += 1;
        }
        if let Some(Cut { chance, until }) = self.config.cut
            && now < until
            && may_be_cut(segment)
            && chance.happens(&mut self.cuts)
        {
            self.cut(segment);
            self.done.cut += 1;
        }
    }

    /// Returns the counters so far.
    pub(crate) const fn done(&self) -> MiddleboxCounters {
        self.done
    }

    /// Keeps the front or the back of a segment. A mapping still covers the whole segment.
    fn cut(&mut self, segment: &mut Segment) {
        let len = segment.payload.len();
        let at = self.cuts.within(1, u64::from(len) - 1) as u32;
        if self.cuts.below(2) == 0 {
            segment.payload = segment.payload.slice(0, at);
        } else {
            segment.payload = segment.payload.slice(at, len);
            segment.seq = segment.seq.wrapping_add(at);
        }
    }
}

/// Returns true if a segment may be cut. A segment with keys is never cut, because its length gives
/// the length of the first mapping.
fn may_be_cut(segment: &Segment) -> bool {
    let keys = matches!(segment.options.mptcp.as_deref(), Some(Mptcp::Capable(_)));
    segment.payload.len() > 1 && !segment.flags.has(Flags::FIN) && !keys
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

/// Returns true if the segment's mapping starts with the first byte of its subflow.
fn is_first(segment: &Segment) -> bool {
    let map = segment.options.dss.and_then(|dss| dss.mapping);
    let keys = matches!(segment.options.mptcp.as_deref(), Some(Mptcp::Capable(_)));
    keys || map.is_some_and(|map| map.ssn == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_wire::Payload;

    #[test]
    fn a_cut_leaves_one_half_under_the_mapping_of_the_whole() {
        let cut = Some(Cut { chance: Chance::ALWAYS, until: Time::from_nanos(10) });
        let config = MiddleboxConfig { cut, ..MiddleboxConfig::default() };
        let mut middlebox = Middlebox::new(config, 1, &["p", "down"]).unwrap();
        let whole = Segment {
            seq: 1_000,
            payload: Payload::Pattern { offset: 500, len: 100 },
            ..Segment::default()
        };
        let (mut fronts, mut backs) = (0, 0);
        for _ in 0..100 {
            let mut segment = whole.clone();
            middlebox.pass(Time::ZERO, &mut segment);
            let Payload::Pattern { offset, len } = segment.payload else { panic!() };
            assert!((1..100).contains(&len));
            assert_eq!(u64::from(segment.seq) - 1_000, offset - 500);
            if offset == 500 {
                fronts += 1;
            } else {
                assert_eq!(offset + u64::from(len), 600);
                backs += 1;
            }
        }
        assert!(fronts > 20 && backs > 20 && middlebox.done().cut == 100);
        let mut segment = whole.clone();
        middlebox.pass(Time::from_nanos(10), &mut segment);
        assert_eq!(segment.payload.len(), 100);
    }
}
