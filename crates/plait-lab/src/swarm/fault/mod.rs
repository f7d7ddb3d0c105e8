//! What may go wrong in a run. A new kind of fault is a variant of [`Fault`], an entry in [`KINDS`],
//! which tells how it is drawn, and its arms in `effect.rs`: what it does, and how that shows.

mod effect;
mod kinds;

pub(super) use effect::{Reading, Traces};
pub(super) use kinds::log_within;
pub use kinds::{KINDS, Kind};

use super::case::{End, LATEST_MS, Way};
use plait_sim::StripAt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that goes wrong. Shares are in parts per million of the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Packets of a path are lost at random.
    Loss(Share),
    /// They are lost in bursts (Gilbert-Elliott).
    Burst {
        /// The path's place.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Way,
        /// Chance to enter the bad state.
        enter_ppm: u32,
        /// Chance to leave it.
        leave_ppm: u32,
        /// Loss in it.
        bad_ppm: u32,
    },
    /// Packets are held back, so that others overtake them.
    Reorder {
        /// The path's place.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Way,
        /// How many.
        ppm: u32,
        /// For how long, in microseconds.
        by_us: u64,
    },
    /// Packets arrive twice.
    Duplicate(Share),
    /// Packets arrive damaged, and the host drops them.
    Corrupt(Share),
    /// A path is silent for a time.
    Outage {
        /// The path's place.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Way,
        /// From when on, in milliseconds.
        from_ms: u64,
        /// Until when.
        to_ms: u64,
    },
    /// A middlebox cuts segments with data in two, and one half is lost.
    Cut {
        /// The path's place.
        path: usize,
        /// How many.
        ppm: u32,
    },
    /// A middlebox takes the MPTCP options off segments.
    Strip {
        /// The path's place.
        path: usize,
        /// Off which: syn, synack, ack, first, data, all.
        at: StripFrom,
        /// From when on, in milliseconds.
        from_ms: u64,
        /// Until when.
        to_ms: u64,
    },
    /// All paths are silent at the same time.
    OutageOfAll {
        /// From when on, in milliseconds.
        from_ms: u64,
        /// Until when.
        to_ms: u64,
    },
    /// An end stops reading for a time, so that its window closes.
    ZeroWindow {
        /// Which.
        end: End,
        /// After so many bytes.
        after_bytes: u64,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// An end reads little at a time.
    SlowReader {
        /// Which.
        end: End,
        /// So many bytes.
        chunk_bytes: u64,
        /// Time from one read to the next, in milliseconds.
        every_ms: u64,
    },
    /// The client loses its address on a path and gets it again.
    AddressRemoved {
        /// The path's place.
        path: usize,
        /// From when on, in milliseconds.
        from_ms: u64,
        /// Until when.
        to_ms: u64,
    },
    /// Long packets vanish on a path for a time, and nobody says so.
    Narrow {
        /// The path's place.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Way,
        /// The longest that passes, in bytes.
        mtu_bytes: u32,
        /// From when on, in milliseconds.
        from_ms: u64,
        /// Until when.
        to_ms: u64,
    },
    /// A further path is silent at first, so that its subflow joins late.
    LateJoin {
        /// The path's place, not the first.
        path: usize,
        /// Until when, in milliseconds.
        to_ms: u64,
    },
}

/// Some packets of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The path's place.
    pub path: usize,
    /// Which packets.
    #[serde(default)]
    pub way: Way,
    /// How many.
    pub ppm: u32,
}

/// Which segments lose their MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StripFrom {
    /// SYNs.
    Syn,
    /// SYN/ACKs.
    Synack,
    /// Third ACKs.
    Ack,
    /// The first data.
    First,
    /// Segments with data.
    Data,
    /// All.
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
    /// The name of its kind.
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

    /// The path that it concerns.
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

    /// Which packets of the path, where that is part of it.
    fn way_mut(&mut self) -> Option<&mut Way> {
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

    /// The end of its time, in milliseconds, where it has one of its own.
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

    /// Whether it can be run on so many paths.
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

    /// The same fault, milder, in the order in which they are worth a try.
    pub(super) fn milder(&self) -> Vec<Fault> {
        let mut list = Vec::new();
        let mut fault = *self;
        if fault.way_mut().is_some_and(|way| *way == Way::Both) {
            for one in [Way::Down, Way::Up] {
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
