//! What may go wrong in a run. A new kind of fault is a variant of [`Fault`] and an entry in
//! [`KINDS`]; everything else reads that list.

use super::case::{End, LATEST_MS, Way};
use super::draw::Shape;
use plait_base::{Chance, Span, Stream, Time};
use plait_link::{GilbertElliott, LinkConfig, LinkCounters, LossModel, Reorder};
use plait_sim::{Cut, Meddled, PathSetup, Strip, StripAt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that goes wrong. Shares are in parts per million of the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Packets of a path are lost at random.
    Loss {
        /// The path's place.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Way,
        /// How many.
        ppm: u32,
    },
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
    Duplicate {
        /// The path's place.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Way,
        /// How many.
        ppm: u32,
    },
    /// Packets arrive damaged, and the host drops them.
    Corrupt {
        /// The path's place.
        path: usize,
        /// Which packets.
        #[serde(default)]
        way: Way,
        /// How many.
        ppm: u32,
    },
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
    /// A further path is silent at first, so that its subflow joins late.
    LateJoin {
        /// The path's place, not the first.
        path: usize,
        /// Until when, in milliseconds.
        to_ms: u64,
    },
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

/// A kind of fault.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name, as in the `kind` of a [`Fault`].
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// In how many seeds of a hundred it is drawn.
    pub per_cent: u64,
    draw: fn(&mut Stream, &Shape) -> Fault,
}

/// Every kind of fault. The draw, the census and the tests read this list.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "loss",
        summary: "packets of a path are lost at random",
        per_cent: 28,
        draw: |stream, shape| Fault::Loss {
            path: shape.any_path(stream),
            way: any_way(stream),
            ppm: log_within(stream, 1_000, 200_000) as u32,
        },
    },
    Kind {
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
    Kind {
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
    Kind {
        name: "duplicate",
        summary: "packets arrive twice",
        per_cent: 24,
        draw: |stream, shape| Fault::Duplicate {
            path: shape.any_path(stream),
            way: any_way(stream),
            ppm: log_within(stream, 2_000, 500_000) as u32,
        },
    },
    Kind {
        name: "corrupt",
        summary: "packets arrive damaged",
        per_cent: 24,
        draw: |stream, shape| Fault::Corrupt {
            path: shape.any_path(stream),
            way: any_way(stream),
            ppm: log_within(stream, 2_000, 100_000) as u32,
        },
    },
    Kind {
        name: "outage",
        summary: "one path is silent for a time",
        per_cent: 24,
        draw: |stream, shape| {
            let from_ms = shape.moment(stream);
            let to_ms = from_ms + log_within(stream, 20, 8_000);
            Fault::Outage { path: shape.any_path(stream), way: any_way(stream), from_ms, to_ms }
        },
    },
    Kind {
        name: "cut",
        summary: "segments are cut in two, and one half is lost",
        per_cent: 24,
        draw: |stream, shape| Fault::Cut {
            path: shape.any_path(stream),
            ppm: log_within(stream, 2_000, 200_000) as u32,
        },
    },
    Kind {
        name: "strip",
        summary: "MPTCP options are taken off on a path",
        per_cent: 24,
        draw: |stream, shape| {
            let at = StripFrom::ALL[stream.below(6) as usize].0;
            // From the start, or in the middle.
            let from_ms = if stream.below(2) == 0 { 0 } else { shape.moment(stream) };
            let to_ms = from_ms + log_within(stream, 100, 8_000);
            Fault::Strip { path: shape.any_path(stream), at, from_ms, to_ms }
        },
    },
    Kind {
        name: "outage-of-all",
        summary: "all paths are silent at the same time",
        per_cent: 18,
        draw: |stream, shape| {
            let from_ms = shape.moment(stream);
            Fault::OutageOfAll { from_ms, to_ms: from_ms + log_within(stream, 20, 8_000) }
        },
    },
    Kind {
        name: "zero-window",
        summary: "an end stops reading until its window has closed",
        per_cent: 26,
        draw: |stream, shape| {
            let end = shape.reader(stream);
            let after_bytes = stream.below(shape.expects(end) / 2 + 1);
            Fault::ZeroWindow { end, after_bytes, for_ms: log_within(stream, 100, 8_000) }
        },
    },
    Kind {
        name: "slow-reader",
        summary: "an end reads little at a time",
        per_cent: 18,
        draw: |stream, shape| Fault::SlowReader {
            end: shape.reader(stream),
            chunk_bytes: log_within(stream, 1, 40_000),
            every_ms: log_within(stream, 1, 200),
        },
    },
    Kind {
        name: "address-removed",
        summary: "the client loses an address and gets it again",
        per_cent: 20,
        draw: |stream, shape| {
            let from_ms = shape.moment(stream);
            let to_ms = from_ms + log_within(stream, 20, 8_000);
            Fault::AddressRemoved { path: shape.any_path(stream), from_ms, to_ms }
        },
    },
    Kind {
        name: "late-join",
        summary: "a further path is silent at first",
        per_cent: 18,
        draw: |stream, shape| Fault::LateJoin {
            path: 1 + stream.below(shape.paths as u64 - 1) as usize,
            to_ms: log_within(stream, 50, 8_000),
        },
    },
];

/// How an end reads while faults last.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Reading {
    /// From then on it reads all there is.
    pub(super) heals: Time,
    /// It stops after so many bytes, for so long.
    pub(super) stop: Option<(u64, Span)>,
    /// It reads so many bytes at a time, so often.
    pub(super) pace: Option<(u64, Span)>,
}

/// What a run shows of the faults in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces {
    /// Counters of each path, down and up.
    pub(super) links: Vec<(LinkCounters, LinkCounters)>,
    /// The client, the server told a window of zero.
    pub(super) zero_window: [bool; 2],
    /// When the run ended.
    pub(super) ended: Time,
    /// What the middleboxes of each path did.
    pub(super) meddled: Vec<Meddled>,
    /// The client's, the server's app left something unread.
    pub(super) held_back: [bool; 2],
}

fn any_way(stream: &mut Stream) -> Way {
    match stream.below(4) {
        0 => Way::Down,
        1 => Way::Up,
        _ => Way::Both,
    }
}

/// A number whose size is as likely small as large: each doubling as often as the next.
pub(super) fn log_within(stream: &mut Stream, low: u64, high: u64) -> u64 {
    let doublings = u64::from((high / low.max(1)).max(1).ilog2());
    let base = low.max(1) << stream.within(0, doublings);
    stream.within(base, (2 * base - 1).min(high)).clamp(low, high)
}

fn chance(ppm: u32) -> Chance {
    Chance::from_ppb(ppm.saturating_mul(1_000))
}

impl Kind {
    /// The kind's place in [`KINDS`].
    pub(super) fn index(name: &str) -> usize {
        KINDS.iter().position(|kind| kind.name == name).unwrap_or_default()
    }

    pub(super) fn draw(&self, stream: &mut Stream, shape: &Shape) -> Fault {
        (self.draw)(stream, shape)
    }
}

impl Fault {
    /// The name of its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Fault::Loss { .. } => "loss",
            Fault::Burst { .. } => "burst",
            Fault::Reorder { .. } => "reorder",
            Fault::Duplicate { .. } => "duplicate",
            Fault::Corrupt { .. } => "corrupt",
            Fault::Outage { .. } => "outage",
            Fault::Cut { .. } => "cut",
            Fault::Strip { .. } => "strip",
            Fault::OutageOfAll { .. } => "outage-of-all",
            Fault::ZeroWindow { .. } => "zero-window",
            Fault::SlowReader { .. } => "slow-reader",
            Fault::AddressRemoved { .. } => "address-removed",
            Fault::LateJoin { .. } => "late-join",
        }
    }

    /// The path that it concerns.
    pub(super) fn path(&self) -> Option<usize> {
        self.clone().path_mut().copied()
    }

    pub(super) fn path_mut(&mut self) -> Option<&mut usize> {
        match self {
            Fault::Loss { path, .. }
            | Fault::Burst { path, .. }
            | Fault::Reorder { path, .. }
            | Fault::Duplicate { path, .. }
            | Fault::Corrupt { path, .. }
            | Fault::Outage { path, .. }
            | Fault::Cut { path, .. }
            | Fault::Strip { path, .. }
            | Fault::AddressRemoved { path, .. }
            | Fault::LateJoin { path, .. } => Some(path),
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
            Fault::Loss { ppm, .. }
            | Fault::Reorder { ppm, .. }
            | Fault::Duplicate { ppm, .. }
            | Fault::Cut { ppm, .. }
            | Fault::Corrupt { ppm, .. } => [*ppm, 0, 0],
            Fault::Burst { enter_ppm, leave_ppm, bad_ppm, .. } => {
                [*enter_ppm, *leave_ppm, *bad_ppm]
            }
            _ => [0; 3],
        };
        if let Some(share) = shares.iter().find(|share| **share > 1_000_000) {
            return out("ppm", u64::from(*share), 0, 1_000_000);
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

    /// Puts it on the links that it concerns. It is gone at `heals`.
    pub(super) fn apply(&self, heals: Time, paths: &mut [PathSetup]) {
        let outage = |from_ms: u64, to_ms: u64| {
            let at = |ms| (Time::ZERO + Span::from_millis(ms)).min(heals);
            (at(from_ms), at(to_ms))
        };
        match *self {
            Fault::Loss { path, way, ppm } => {
                on_links(paths, path, way, |link| link.loss = chance(ppm).into());
            }
            Fault::Burst { path, way, enter_ppm, leave_ppm, bad_ppm } => {
                let (p, r, bad) = (chance(enter_ppm), chance(leave_ppm), chance(bad_ppm));
                on_links(paths, path, way, |link| {
                    // Beside random loss it comes on top.
                    let good = match link.loss {
                        LossModel::Random(chance) => chance,
                        LossModel::GilbertElliott(model) => model.good,
                    };
                    link.loss = LossModel::GilbertElliott(GilbertElliott { p, r, bad, good });
                });
            }
            Fault::Reorder { path, way, ppm, by_us } => {
                let reorder = Reorder { chance: chance(ppm), by: Span::from_micros(by_us) };
                on_links(paths, path, way, |link| link.reorder = reorder);
            }
            Fault::Duplicate { path, way, ppm } => {
                on_links(paths, path, way, |link| link.duplicate = chance(ppm));
            }
            Fault::Corrupt { path, way, ppm } => {
                on_links(paths, path, way, |link| link.corrupt = chance(ppm));
            }
            Fault::Outage { path, way, from_ms, to_ms } => {
                on_links(paths, path, way, |link| link.outages.push(outage(from_ms, to_ms)));
            }
            Fault::Cut { path, ppm } => {
                if let Some(path) = paths.get_mut(path) {
                    path.middlebox.cut = Some(Cut { chance: chance(ppm), until: heals });
                }
            }
            Fault::Strip { path, at, from_ms, to_ms } => {
                let (from, until) = outage(from_ms, to_ms);
                if let Some(path) = paths.get_mut(path) {
                    path.middlebox.strip = Some(Strip { at: at.at(), from, until });
                }
            }
            Fault::AddressRemoved { path, from_ms, to_ms } => {
                if let Some(path) = paths.get_mut(path) {
                    path.removed.push(outage(from_ms, to_ms));
                }
            }
            Fault::OutageOfAll { from_ms, to_ms } => {
                for path in 0..paths.len() {
                    on_links(paths, path, Way::Both, |link| {
                        link.outages.push(outage(from_ms, to_ms));
                    });
                }
            }
            Fault::LateJoin { path, to_ms } => {
                on_links(paths, path, Way::Both, |link| link.outages.push(outage(0, to_ms)));
            }
            Fault::ZeroWindow { .. } | Fault::SlowReader { .. } => {}
        }
    }

    /// Holds the reader at `end` back, where it is that kind of fault.
    pub(super) fn hold_reader(&self, at: End, reading: &mut Reading) {
        match *self {
            Fault::ZeroWindow { end, after_bytes, for_ms } if end == at => {
                reading.stop = Some((after_bytes, Span::from_millis(for_ms)));
            }
            Fault::SlowReader { end, chunk_bytes, every_ms } if end == at => {
                reading.pace = Some((chunk_bytes.max(1), Span::from_millis(every_ms)));
            }
            _ => {}
        }
    }

    /// Whether the run met it.
    pub(super) fn was_met(&self, traces: &Traces) -> bool {
        let count = |of: fn(&LinkCounters) -> u64| {
            let links = traces.links.iter().enumerate();
            let concerned =
                links.filter(|(index, _)| self.path().is_none_or(|path| path == *index));
            concerned.map(|(_, (down, up))| of(down) + of(up)).sum::<u64>() > 0
        };
        let side = |end: End| usize::from(end == End::Server);
        match self {
            Fault::Loss { .. } | Fault::Burst { .. } => count(|link| link.dropped_loss),
            Fault::Reorder { .. } => count(|link| link.reordered_packets),
            Fault::Duplicate { .. } => count(|link| link.duplicated_packets),
            Fault::Corrupt { .. } => count(|link| link.corrupted_packets),
            Fault::Outage { .. } | Fault::OutageOfAll { .. } | Fault::LateJoin { .. } => {
                count(|link| link.dropped_outage)
            }
            Fault::Cut { path, .. } => traces.meddled.get(*path).is_some_and(|it| it.cut > 0),
            Fault::Strip { path, .. } => {
                traces.meddled.get(*path).is_some_and(|it| it.stripped > 0)
            }
            Fault::AddressRemoved { from_ms, .. } => {
                traces.ended > Time::ZERO + Span::from_millis(*from_ms)
            }
            Fault::ZeroWindow { end, .. } => traces.zero_window[side(*end)],
            Fault::SlowReader { end, .. } => traces.held_back[side(*end)],
        }
    }

    /// The same fault, milder, in the order in which they are worth a try.
    pub(super) fn milder(&self) -> Vec<Fault> {
        let mut list = Vec::new();
        let mut fault = *self;
        match &mut fault {
            Fault::Loss { way, .. }
            | Fault::Burst { way, .. }
            | Fault::Reorder { way, .. }
            | Fault::Duplicate { way, .. }
            | Fault::Corrupt { way, .. }
            | Fault::Outage { way, .. }
                if *way == Way::Both =>
            {
                for one in [Way::Down, Way::Up] {
                    list.push(self.with_way(one));
                }
            }
            _ => {}
        }
        match &mut fault {
            Fault::Outage { from_ms, to_ms, .. }
            | Fault::Strip { from_ms, to_ms, .. }
            | Fault::AddressRemoved { from_ms, to_ms, .. }
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

    fn with_way(&self, new: Way) -> Fault {
        let mut fault = *self;
        match &mut fault {
            Fault::Loss { way, .. }
            | Fault::Burst { way, .. }
            | Fault::Reorder { way, .. }
            | Fault::Duplicate { way, .. }
            | Fault::Corrupt { way, .. }
            | Fault::Outage { way, .. } => *way = new,
            _ => {}
        }
        fault
    }
}

fn on_links(
    paths: &mut [PathSetup],
    path: usize,
    way: Way,
    mut change: impl FnMut(&mut LinkConfig),
) {
    let Some(path) = paths.get_mut(path) else { return };
    if way != Way::Up {
        change(&mut path.down);
    }
    if way != Way::Down {
        change(&mut path.up);
    }
}
