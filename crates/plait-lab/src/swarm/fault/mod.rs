//! Faults that a run may meet. To add a kind of fault, add a variant of [`Fault`] and an entry in
//! [`KINDS`] that draws it. Its effect and its traces are in `effect.rs`.

mod effect;
mod kinds;

pub(super) use effect::{Reading, Traces};
pub(super) use kinds::log_within;
pub use kinds::{FaultKind, KINDS};

use super::case::{Directions, End, LATEST_MS};
use plait_sim::StripAt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fault. Shares are in parts per million of the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Packets of a path are lost at random.
    Loss(Share),
    /// Packets of a path are lost in bursts (Gilbert-Elliott).
    Burst {
        /// Index of the path.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Directions,
        /// Probability of entering the bad state.
        enter_ppm: u32,
        /// Probability of leaving the bad state.
        leave_ppm: u32,
        /// Probability of loss in the bad state.
        bad_ppm: u32,
    },
    /// Packets are delayed, so that later ones overtake them.
    Reorder {
        /// Index of the path.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Directions,
        /// Share of the packets.
        ppm: u32,
        /// Delay in microseconds.
        by_us: u64,
    },
    /// Packets are duplicated.
    Duplicate(Share),
    /// Packets are corrupted, and the host drops them.
    Corrupt(Share),
    /// A path loses all packets for a time.
    Outage {
        /// Index of the path.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Directions,
        /// Start, in milliseconds.
        from_ms: u64,
        /// End, in milliseconds.
        to_ms: u64,
    },
    /// A middlebox splits data segments in two, and one half is lost.
    Cut {
        /// Index of the path.
        path: usize,
        /// Share of the segments.
        ppm: u32,
    },
    /// A middlebox removes the MPTCP options from segments.
    Strip {
        /// Index of the path.
        path: usize,
        /// Kind of segments: syn, synack, ack, first, data, all.
        at: StripFrom,
        /// Start, in milliseconds.
        from_ms: u64,
        /// End, in milliseconds.
        to_ms: u64,
    },
    /// All paths lose all packets at the same time.
    OutageOfAll {
        /// Start, in milliseconds.
        from_ms: u64,
        /// End, in milliseconds.
        to_ms: u64,
    },
    /// An end stops reading for a time, so its window closes.
    ZeroWindow {
        /// The end that stops.
        end: End,
        /// Number of bytes that it reads before.
        after_bytes: u64,
        /// Duration in milliseconds.
        for_ms: u64,
    },
    /// An end reads slowly.
    SlowReader {
        /// The end that reads slowly.
        end: End,
        /// Bytes of one read.
        chunk_bytes: u64,
        /// Time from one read to the next, in milliseconds.
        every_ms: u64,
    },
    /// The client loses its address on a path, and gets it back later.
    AddressRemoved {
        /// Index of the path.
        path: usize,
        /// Start, in milliseconds.
        from_ms: u64,
        /// End, in milliseconds.
        to_ms: u64,
    },
    /// A path drops long packets for a time, without an ICMP message.
    Narrow {
        /// Index of the path.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Directions,
        /// Largest packet that passes, in bytes.
        mtu_bytes: u32,
        /// Start, in milliseconds.
        from_ms: u64,
        /// End, in milliseconds.
        to_ms: u64,
    },
    /// An additional path is silent at first, so its subflow joins late.
    LateJoin {
        /// Index of the path, not the first.
        path: usize,
        /// End of the silence, in milliseconds.
        to_ms: u64,
    },
}

/// A share of the packets of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Index of the path.
    pub path: usize,
    /// Which packets.
    #[serde(default)]
    pub way: Directions,
    /// Parts per million of the packets.
    pub ppm: u32,
}

/// The kind of segments that lose their MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StripFrom {
    /// SYNs.
    Syn,
    /// SYN/ACKs.
    Synack,
    /// Third ACKs.
    Ack,
    /// The first data segment.
    First,
    /// Segments with data.
    Data,
    /// All segments.
    All,
}

impl StripFrom {
    const ALL: [(StripFrom, StripAt); 6] = [
        (StripFrom::Syn, StripAt::Syn),
        (StripFrom::Synack, StripAt::SynAck),
        (StripFrom::Ack, StripAt::ThirdAck),
        (StripFrom::First, StripAt::FirstData),
        (StripFrom::Data, StripAt::Data),
        (StripFrom::All, StripAt::All),
    ];

    fn at(self) -> StripAt {
        let pair = StripFrom::ALL.iter().find(|(from, _)| *from == self);
        pair.map_or(StripAt::All, |(_, at)| *at)
    }
}

impl Fault {
    /// Returns the name of the fault's kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Fault::Loss(_) => "loss",
            Fault::Burst { .. } => "burst",
            Fault::Reorder { .. } => "reorder",
            Fault::Duplicate(_) => "duplicate",
            Fault::Corrupt(_) => "corrupt",
            Fault::Outage { .. } => "outage",
            Fault::Cut { .. } => "cut",
            Fault::Strip { .. } => "strip",
            Fault::OutageOfAll { .. } => "outage-of-all",
            Fault::ZeroWindow { .. } => "zero-window",
            Fault::SlowReader { .. } => "slow-reader",
            Fault::AddressRemoved { .. } => "address-removed",
            Fault::LateJoin { .. } => "late-join",
            Fault::Narrow { .. } => "narrow",
        }
    }

    /// Returns the index of the fault's path.
    pub(super) fn path(&self) -> Option<usize> {
        self.clone().path_mut().copied()
    }

    pub(super) fn path_mut(&mut self) -> Option<&mut usize> {
        match self {
            Fault::Loss(Share { path, .. })
            | Fault::Duplicate(Share { path, .. })
            | Fault::Corrupt(Share { path, .. })
            | Fault::Burst { path, .. }
            | Fault::Reorder { path, .. }
            | Fault::Outage { path, .. }
            | Fault::Cut { path, .. }
            | Fault::Strip { path, .. }
            | Fault::AddressRemoved { path, .. }
            | Fault::Narrow { path, .. }
            | Fault::LateJoin { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the direction of the fault, if it has one.
    fn way_mut(&mut self) -> Option<&mut Directions> {
        match self {
            Fault::Loss(Share { way, .. })
            | Fault::Duplicate(Share { way, .. })
            | Fault::Corrupt(Share { way, .. })
            | Fault::Burst { way, .. }
            | Fault::Reorder { way, .. }
            | Fault::Narrow { way, .. }
            | Fault::Outage { way, .. } => Some(way),
            _ => None,
        }
    }

    /// Returns the end of the fault in milliseconds, or 0 if it lasts until all faults heal.
    pub(super) const fn ends_ms(&self) -> u64 {
        match self {
            Fault::Outage { to_ms, .. }
            | Fault::Strip { to_ms, .. }
            | Fault::AddressRemoved { to_ms, .. }
            | Fault::OutageOfAll { to_ms, .. }
            | Fault::Narrow { to_ms, .. }
            | Fault::LateJoin { to_ms, .. } => *to_ms,
            _ => 0,
        }
    }

    /// Checks that the fault is possible with this number of paths.
    pub(super) fn verify(&self, paths: usize) -> Result<(), String> {
        let out = |field: &str, value: u64, low: u64, high: u64| {
            Err(format!("{field}: {value} is out of range; allowed: {low} to {high}"))
        };
        let low = usize::from(matches!(self, Fault::LateJoin { .. }));
        if let Some(path) = self.path().filter(|path| !(low..paths).contains(path)) {
            return out("path", path as u64, low as u64, paths as u64 - 1);
        }
        let shares = match self {
            Fault::Loss(Share { ppm, .. })
            | Fault::Duplicate(Share { ppm, .. })
            | Fault::Corrupt(Share { ppm, .. })
            | Fault::Reorder { ppm, .. }
            | Fault::Cut { ppm, .. } => [*ppm, 0, 0],
            Fault::Burst { enter_ppm, leave_ppm, bad_ppm, .. } => {
                [*enter_ppm, *leave_ppm, *bad_ppm]
            }
            _ => [0; 3],
        };
        if let Some(share) = shares.iter().find(|share| **share > 1_000_000) {
            return out("ppm", u64::from(*share), 0, 1_000_000);
        }
        if let Fault::Narrow { mtu_bytes, .. } = self
            && !(576..=65_535).contains(mtu_bytes)
        {
            return out("mtu_bytes", u64::from(*mtu_bytes), 576, 65_535);
        }
        let (field, time) = match self {
            Fault::Reorder { by_us, .. } => ("by_us", by_us / 1_000),
            Fault::ZeroWindow { for_ms, .. } => ("for_ms", *for_ms),
            Fault::SlowReader { chunk_bytes: 0, .. } => return out("chunk_bytes", 0, 1, u64::MAX),
            Fault::SlowReader { every_ms, .. } => ("every_ms", *every_ms),
            _ => ("to_ms", self.ends_ms()),
        };
        if time > LATEST_MS { out(field, time, 0, LATEST_MS) } else { Ok(()) }
    }

    /// Returns milder versions of the fault, the most promising first.
    pub(super) fn milder(&self) -> Vec<Fault> {
        let mut list = Vec::new();
        let mut fault = *self;
        if fault.way_mut().is_some_and(|way| *way == Directions::Both) {
            for one in [Directions::Down, Directions::Up] {
                let mut milder = fault;
                if let Some(way) = milder.way_mut() {
                    *way = one;
                }
                list.push(milder);
            }
        }
        match &mut fault {
            Fault::Outage { from_ms, to_ms, .. }
            | Fault::Strip { from_ms, to_ms, .. }
            | Fault::AddressRemoved { from_ms, to_ms, .. }
            | Fault::Narrow { from_ms, to_ms, .. }
            | Fault::OutageOfAll { from_ms, to_ms } => {
                let half = to_ms.saturating_sub(*from_ms) / 2;
                if half >= 10 {
                    *to_ms = *from_ms + half;
                    list.push(fault);
                }
            }
            Fault::LateJoin { to_ms: time, .. }
            | Fault::ZeroWindow { for_ms: time, .. }
            | Fault::Reorder { by_us: time, .. }
                if *time >= 20 =>
            {
                *time /= 2;
                list.push(fault);
            }
            _ => {}
        }
        list
    }
}
