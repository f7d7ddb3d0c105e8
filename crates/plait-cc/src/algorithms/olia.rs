//! OLIA, the Opportunistic Linked Increases Algorithm (draft-khalili-mptcp-congestion-control-05).

use super::reno::{self, COUNT, Count};
use crate::{About, Ack, Algorithm, Entry, Flow, Param, ParamKind, View};
use alloc::boxed::Box;
use core::cmp::Ordering;
use plait_base::Time;

const QUALITY: Param = Param {
    name: "quality",
    kind: ParamKind::Word { words: &["l/r2", "l2/r"], default: "l/r2" },
    unit: "",
    help: "quality of a path: l/r2 as in the paper and the kernel, l2/r as in the draft",
    clause: "draft-khalili-mptcp-congestion-control-05 section 3.1; Khalili et al., CoNEXT 2012",
};

const LEAST: Param = Param {
    name: "least",
    kind: ParamKind::Word { words: &["1seg", "2seg"], default: "1seg" },
    unit: "",
    help: "minimum slow start threshold while there are siblings: 1seg as in the draft, 2seg as in the kernel",
    clause: "draft-khalili-mptcp-congestion-control-05 section 3; RFC 5681 equation 4",
};

pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "olia",
    aliases: &[],
    idea: "as fair as LIA, but moves window from the largest paths to the best ones",
    page: "\
w is the window in segments, r the smoothed RTT, and N the number of subflows. l is the larger of two
counts: the bytes acknowledged since the last loss, and those between the last two losses.

  growth = ((w / r^2) / (sum of w / r)^2 + a / w) * acked   bytes, for each ACK

B holds the subflows of the best quality, M those of the largest window, K those in B and not in M.
a is 1 / (N |K|) in K, -1 / (N |M|) in M if K is not empty, and 0 otherwise. Window thus moves from
the largest subflows to the best ones. It may shrink without a loss, down to one segment.

A loss halves the window, as in reno, but down to one segment while there are siblings. With
least=2seg the minimum is two segments, at which duplicate acknowledgements still reveal a loss. With
one subflow left, the algorithm is reno. The draft's quality l^2/r and the paper's l/r^2 can select
different best paths.

Good at: leaving congested paths, and fairness to competing single-path flows.
Bad at: paths that change: window that was moved away comes back slowly.
",
    params: &[QUALITY, LEAST, COUNT],
    state: &[],
    },
    clause: "draft-khalili-mptcp-congestion-control-05 section 3",
    make: |params| {
        let draft = params.word(&QUALITY) == "l2/r";
        let least = if params.word(&LEAST) == "2seg" { 2 } else { 1 };
        let quality = if draft { Quality::Draft } else { Quality::Paper };
        Box::new(Olia { quality, least, count: Count::of(params) })
    },
};

/// The quality of a path.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Quality {
    /// l/r²: the paper and the kernel.
    #[default]
    Paper,
    /// l²/r: the draft.
    Draft,
}

impl Quality {
    /// Compares two flows exactly, by cross-multiplication instead of division.
    fn compare(self, a: &Flow, b: &Flow) -> Ordering {
        let square = |value: u64| u128::from(value) * u128::from(value);
        let (left, right) = match self {
            Quality::Paper => (
                product(square(b.rtt_nanos()), a.loss_interval),
                product(square(a.rtt_nanos()), b.loss_interval),
            ),
            Quality::Draft => (
                product(square(a.loss_interval), b.rtt_nanos()),
                product(square(b.loss_interval), a.rtt_nanos()),
            ),
        };
        left.cmp(&right)
    }
}

/// Returns `wide * narrow` in 192 bits: the upper 128 and the lower 64.
fn product(wide: u128, narrow: u64) -> (u128, u64) {
    let low = (wide & u128::from(u64::MAX)) * u128::from(narrow);
    let high = (wide >> 64) * u128::from(narrow) + (low >> 64);
    (high, low as u64)
}

/// Compares two windows in segments, exactly.
fn compare_windows(a: &Flow, b: &Flow) -> Ordering {
    let cross = |window: u64, mss: u64| u128::from(window) * u128::from(mss);
    cross(a.window(), b.mss()).cmp(&cross(b.window(), a.mss()))
}

/// OLIA. It has no state: the owner keeps the loss intervals.
#[derive(Clone, Copy, Debug)]
pub struct Olia {
    quality: Quality,
    /// Minimum slow start threshold in segments while there are siblings.
    least: u64,
    count: Count,
}

impl Olia {
    /// Creates OLIA with this measure of quality.
    #[must_use]
    pub fn new(quality: Quality) -> Olia {
        Olia { quality, least: 1, count: Count::Bytes }
    }
}

/// The two terms of the increase, in segments per acknowledged segment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Terms {
    /// `a`: positive for a good flow with a small window. If there is such a flow, it is negative
    /// for the largest flows; otherwise it is zero.
    pub a: f64,
    /// `(w / r²) / (sum of w / r)²`.
    pub linked: f64,
}

/// Returns the terms for the own flow, which must be coupled.
#[must_use]
pub fn terms(view: &View<'_>, quality: Quality) -> Terms {
    let mut best: Option<Flow> = None;
    let mut largest: Option<Flow> = None;
    let (mut flows, mut rate) = (0_u32, 0.0);
    for flow in view.coupled() {
        flows += 1;
        rate += flow.segments() / flow.rtt_secs();
        if best.is_none_or(|best| quality.compare(&flow, &best).is_gt()) {
            best = Some(flow);
        }
        if largest.is_none_or(|largest| compare_windows(&flow, &largest).is_gt()) {
            largest = Some(flow);
        }
    }
    let (Some(best), Some(largest)) = (best, largest) else {
        return Terms { a: 0.0, linked: 0.0 };
    };
    let is_best = |flow: &Flow| quality.compare(flow, &best).is_eq();
    let is_largest = |flow: &Flow| compare_windows(flow, &largest).is_eq();
    let collected = view.coupled().filter(|flow| is_best(flow) && !is_largest(flow)).count();
    let own = view.own();
    let a = if collected == 0 {
        0.0
    } else if is_largest(own) {
        -1.0 / (f64::from(flows) * view.coupled().filter(is_largest).count() as f64)
    } else if is_best(own) {
        1.0 / (f64::from(flows) * collected as f64)
    } else {
        0.0
    };
    let rtt = own.rtt_secs();
    Terms { a, linked: own.segments() / (rtt * rtt) / (rate * rate) }
}

/// Returns the growth of the own flow in bytes for `bytes` acknowledged ones. It may be negative.
#[must_use]
pub fn increase(bytes: u64, view: &View<'_>, quality: Quality) -> f64 {
    if !view.has_siblings() {
        return reno::increase(bytes, view);
    }
    let Terms { a, linked } = terms(view, quality);
    // Segments per acknowledged segment equal bytes per acknowledged byte.
    (linked + a / view.own().segments()) * bytes as f64
}

impl Algorithm for Olia {
    fn increase(&mut self, _ack: &Ack, bytes: u64, view: &View<'_>) -> f64 {
        increase(self.count.counted(bytes, view), view, self.quality)
    }

    fn numbers(&self, _now: Time, view: &View<'_>, write: &mut dyn FnMut(&'static str, f64)) {
        if view.has_siblings() {
            let Terms { a, linked } = terms(view, self.quality);
            write("alpha", a);
            write("linked", linked);
        }
    }

    fn threshold(&mut self, _now: Time, inflight: u64, view: &View<'_>) -> u64 {
        reno::halved(inflight, if view.has_siblings() { self.least } else { 2 }, view)
    }
}
