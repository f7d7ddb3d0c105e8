//! The kinds of faults, and how a seed draws each.

use super::{Fault, Share, StripFrom};
use crate::swarm::case::Directions;
use crate::swarm::draw::Shape;
use plait_base::RandomStream;

/// A kind of fault.
#[derive(Clone, Copy, Debug)]
pub struct FaultKind {
    /// Name, as in the `kind` of a [`Fault`].
    pub name: &'static str,
    /// Description in a few words.
    pub summary: &'static str,
    /// Per cent of the seeds that draw it.
    pub per_cent: u64,
    draw: fn(&mut RandomStream, &Shape) -> Fault,
}

/// Every kind of fault, for the draw, the census and the tests.
pub const KINDS: &[FaultKind] = &[
    FaultKind {
        name: "loss",
        summary: "packets of a path are lost at random",
        per_cent: 28,
        draw: |stream, shape| Fault::Loss(share(stream, shape, 1_000, 200_000)),
    },
    FaultKind {
        name: "burst",
        summary: "packets of a path are lost in bursts",
        per_cent: 24,
        draw: |stream, shape| Fault::Burst {
            path: shape.any_path(stream),
            way: any_way(stream),
            enter_ppm: log_within(stream, 2_000, 50_000) as u32,
            leave_ppm: stream.within(100_000, 900_000) as u32,
            bad_ppm: stream.within(200_000, 1_000_000) as u32,
        },
    },
    FaultKind {
        name: "reorder",
        summary: "packets are held back and overtaken",
        per_cent: 24,
        draw: |stream, shape| Fault::Reorder {
            path: shape.any_path(stream),
            way: any_way(stream),
            ppm: log_within(stream, 2_000, 300_000) as u32,
            by_us: log_within(stream, 100, 400_000),
        },
    },
    FaultKind {
        name: "duplicate",
        summary: "packets arrive twice",
        per_cent: 24,
        draw: |stream, shape| Fault::Duplicate(share(stream, shape, 2_000, 500_000)),
    },
    FaultKind {
        name: "corrupt",
        summary: "packets arrive damaged",
        per_cent: 24,
        draw: |stream, shape| Fault::Corrupt(share(stream, shape, 2_000, 100_000)),
    },
    FaultKind {
        name: "outage",
        summary: "one path is silent for a time",
        per_cent: 24,
        draw: |stream, shape| {
            let (from_ms, to_ms) = silence(stream, shape);
            Fault::Outage { path: shape.any_path(stream), way: any_way(stream), from_ms, to_ms }
        },
    },
    FaultKind {
        name: "cut",
        summary: "segments are cut in two, and one half is lost",
        per_cent: 24,
        draw: |stream, shape| Fault::Cut {
            path: shape.any_path(stream),
            ppm: log_within(stream, 2_000, 200_000) as u32,
        },
    },
    FaultKind {
        name: "strip",
        summary: "MPTCP options are removed on a path",
        per_cent: 24,
        draw: |stream, shape| {
            let at = StripFrom::ALL[stream.below(6) as usize].0;
            // From the start, or from a random time.
            let from_ms = if stream.below(2) == 0 { 0 } else { shape.moment(stream) };
            let to_ms = from_ms + log_within(stream, 100, 8_000);
            Fault::Strip { path: shape.any_path(stream), at, from_ms, to_ms }
        },
    },
    FaultKind {
        name: "outage-of-all",
        summary: "all paths are silent at the same time",
        per_cent: 18,
        draw: |stream, shape| {
            let (from_ms, to_ms) = silence(stream, shape);
            Fault::OutageOfAll { from_ms, to_ms }
        },
    },
    FaultKind {
        name: "zero-window",
        summary: "an end stops reading until its window has closed",
        per_cent: 26,
        draw: |stream, shape| {
            let end = shape.reader(stream);
            let after_bytes = stream.below(shape.expects(end) / 2 + 1);
            Fault::ZeroWindow { end, after_bytes, for_ms: log_within(stream, 100, 8_000) }
        },
    },
    FaultKind {
        name: "slow-reader",
        summary: "an end reads small amounts",
        per_cent: 18,
        draw: |stream, shape| Fault::SlowReader {
            end: shape.reader(stream),
            chunk_bytes: log_within(stream, 1, 40_000),
            every_ms: log_within(stream, 1, 200),
        },
    },
    FaultKind {
        name: "address-removed",
        summary: "the client loses an address and gets it again",
        per_cent: 20,
        draw: |stream, shape| {
            let (from_ms, to_ms) = silence(stream, shape);
            Fault::AddressRemoved { path: shape.any_path(stream), from_ms, to_ms }
        },
    },
    FaultKind {
        name: "late-join",
        summary: "a further path is silent at first",
        per_cent: 18,
        draw: |stream, shape| Fault::LateJoin {
            path: 1 + stream.below(shape.paths as u64 - 1) as usize,
            to_ms: log_within(stream, 50, 8_000),
        },
    },
    FaultKind {
        name: "narrow",
        summary: "long packets are lost on a path",
        per_cent: 36,
        draw: |stream, shape| {
            let (from_ms, to_ms) = silence(stream, shape);
            let (path, way) = (shape.any_path(stream), any_way(stream));
            let mtu_bytes = [576, 600, 1_000, 1_200, 1_280, 1_400][stream.below(6) as usize];
            Fault::Narrow { path, way, mtu_bytes, from_ms, to_ms }
        },
    },
];

impl FaultKind {
    /// Returns the index of the kind in [`KINDS`].
    pub(in crate::swarm) fn index(name: &str) -> usize {
        KINDS.iter().position(|kind| kind.name == name).unwrap_or_default()
    }

    pub(in crate::swarm) fn draw(&self, stream: &mut RandomStream, shape: &Shape) -> Fault {
        (self.draw)(stream, shape)
    }
}

/// Draws a share of the packets of any path.
fn share(stream: &mut RandomStream, shape: &Shape, low: u64, high: u64) -> Share {
    Share {
        path: shape.any_path(stream),
        way: any_way(stream),
        ppm: log_within(stream, low, high) as u32,
    }
}

/// Draws the start and end of an outage, in milliseconds.
fn silence(stream: &mut RandomStream, shape: &Shape) -> (u64, u64) {
    let from = shape.moment(stream);
    (from, from + log_within(stream, 20, 8_000))
}

fn any_way(stream: &mut RandomStream) -> Directions {
    match stream.below(4) {
        0 => Directions::Down,
        1 => Directions::Up,
        _ => Directions::Both,
    }
}

/// Draws a number between `low` and `high`, in which each doubling is equally likely.
pub(in crate::swarm) fn log_within(stream: &mut RandomStream, low: u64, high: u64) -> u64 {
    let doublings = u64::from((high / low.max(1)).max(1).ilog2());
    let base = low.max(1) << stream.within(0, doublings);
    stream.within(base, (2 * base - 1).min(high)).clamp(low, high)
}
