//! The effect of each fault on the links or on a reader, and how a run shows that it met the fault.

use super::{Fault, Share};
use crate::swarm::case::{Directions, End};
use plait_base::{Chance, Span, Time};
use plait_link::{GilbertElliott, LinkConfig, LinkCounters, LossModel, Reorder};
use plait_sim::{Cut, MiddleboxCounters, PathSetup, Strip};

/// How an end reads while faults last.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::swarm) struct Reading {
    /// Time from which it reads all available data.
    pub(in crate::swarm) heals: Time,
    /// It stops after this many bytes, for this long.
    pub(in crate::swarm) stop: Option<(u64, Span)>,
    /// Bytes of one read, and the time from one read to the next.
    pub(in crate::swarm) pace: Option<(u64, Span)>,
}

/// The traces that faults leave in a run.
#[derive(Clone, Debug, Default)]
pub(in crate::swarm) struct Traces {
    /// Counters of each path, down and up.
    pub(in crate::swarm) links: Vec<(LinkCounters, LinkCounters)>,
    /// True if the client, the server advertised a zero window.
    pub(in crate::swarm) zero_window: [bool; 2],
    /// End of the run.
    pub(in crate::swarm) ended: Time,
    /// Counters of the middleboxes of each path.
    pub(in crate::swarm) middlebox_counters: Vec<MiddleboxCounters>,
    /// True if the application of the client, the server left data unread.
    pub(in crate::swarm) held_back: [bool; 2],
}

impl Fault {
    /// Applies the fault to its links, until `heals`.
    pub(in crate::swarm) fn apply(&self, heals: Time, paths: &mut [PathSetup]) {
        let outage = |from_ms: u64, to_ms: u64| {
            let at = |ms| (Time::ZERO + Span::from_millis(ms)).min(heals);
            (at(from_ms), at(to_ms))
        };
        match *self {
            Fault::Loss(Share { path, way, ppm }) => {
                on_links(paths, path, way, |link| link.impairments.loss = chance(ppm).into());
            }
            Fault::Burst { path, way, enter_ppm, leave_ppm, bad_ppm } => {
                let (p, r, bad) = (chance(enter_ppm), chance(leave_ppm), chance(bad_ppm));
                on_links(paths, path, way, |link| {
                    // Random loss continues in the good state.
                    let loss = &mut link.impairments.loss;
                    let good = match loss.model {
                        LossModel::Random(chance) => chance,
                        LossModel::GilbertElliott(model) => model.good,
                    };
                    loss.model = LossModel::GilbertElliott(GilbertElliott { p, r, bad, good });
                });
            }
            Fault::Reorder { path, way, ppm, by_us } => {
                let reorder = Reorder { chance: chance(ppm), by: Span::from_micros(by_us) };
                on_links(paths, path, way, |link| link.impairments.reorder = reorder);
            }
            Fault::Duplicate(Share { path, way, ppm }) => {
                on_links(paths, path, way, |link| link.impairments.duplicate = chance(ppm));
            }
            Fault::Corrupt(Share { path, way, ppm }) => {
                on_links(paths, path, way, |link| link.impairments.corrupt = chance(ppm));
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
                    on_links(paths, path, Directions::Both, |link| {
                        link.outages.push(outage(from_ms, to_ms));
                    });
                }
            }
            Fault::Narrow { path, way, mtu_bytes, from_ms, to_ms } => {
                let (from, to) = outage(from_ms, to_ms);
                on_links(paths, path, way, |link| {
                    link.mtu.extend([(from, mtu_bytes), (to, u32::MAX)]);
                });
            }
            Fault::LateJoin { path, to_ms } => {
                on_links(paths, path, Directions::Both, |link| link.outages.push(outage(0, to_ms)));
            }
            Fault::ZeroWindow { .. } | Fault::SlowReader { .. } => {}
        }
    }

    /// Restricts the reader at `end`, if the fault is of that kind.
    pub(in crate::swarm) fn hold_reader(&self, at: End, reading: &mut Reading) {
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

    /// Returns true if the run met the fault.
    pub(in crate::swarm) fn was_met(&self, traces: &Traces) -> bool {
        let count = |of: fn(&LinkCounters) -> u64| {
            let links = traces.links.iter().enumerate();
            let concerned =
                links.filter(|(index, _)| self.path().is_none_or(|path| path == *index));
            concerned.map(|(_, (down, up))| of(down) + of(up)).sum::<u64>() > 0
        };
        let side = |end: End| usize::from(end == End::Server);
        match self {
            Fault::Loss(_) | Fault::Burst { .. } => count(|link| link.dropped_loss),
            Fault::Reorder { .. } => count(|link| link.reordered_packets),
            Fault::Duplicate(_) => count(|link| link.duplicated_packets),
            Fault::Corrupt(_) => count(|link| link.corrupted_packets),
            Fault::Outage { .. } | Fault::OutageOfAll { .. } | Fault::LateJoin { .. } => {
                count(|link| link.dropped_outage)
            }
            Fault::Narrow { .. } => count(|link| link.dropped_mtu),
            Fault::Cut { path, .. } => {
                traces.middlebox_counters.get(*path).is_some_and(|it| it.cut > 0)
            }
            Fault::Strip { path, .. } => {
                traces.middlebox_counters.get(*path).is_some_and(|it| it.stripped > 0)
            }
            Fault::AddressRemoved { from_ms, .. } => {
                traces.ended > Time::ZERO + Span::from_millis(*from_ms)
            }
            Fault::ZeroWindow { end, .. } => traces.zero_window[side(*end)],
            Fault::SlowReader { end, .. } => traces.held_back[side(*end)],
        }
    }
}

fn chance(ppm: u32) -> Chance {
    Chance::from_ppb(ppm.saturating_mul(1_000))
}

fn on_links(
    paths: &mut [PathSetup],
    path: usize,
    way: Directions,
    mut change: impl FnMut(&mut LinkConfig),
) {
    let Some(path) = paths.get_mut(path) else { return };
    if way != Directions::Up {
        change(&mut path.down);
    }
    if way != Directions::Down {
        change(&mut path.up);
    }
}
