//! NewReno, uncoupled (RFC 5681).

use crate::{About, Ack, Algorithm, Entry, Param, ParamKind, Params, View};
use alloc::boxed::Box;
use plait_base::Time;

pub(crate) const COUNT: Param = Param {
    name: "count",
    kind: ParamKind::Word { words: &["bytes", "acks"], default: "bytes" },
    unit: "",
    help: "growth of congestion avoidance: by acknowledged bytes, or by at most one segment per ACK, as in Linux \
           before 4.0, which is half as fast if every second segment is acknowledged",
    clause: "RFC 5681 section 3.1, equation 3; RFC 3465 section 2.1",
};

pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "reno",
    aliases: &["newreno"],
    idea: "grows by one segment per round trip and halves after a loss; uncoupled",
    page: "\
Congestion avoidance adds mss * acked / cwnd bytes for each ACK, which is one segment per round
trip. A loss sets the threshold to max(inflight / 2, 2 mss).

Uncoupled: two subflows through one bottleneck get twice the share of a single-path flow.

Good at: paths without a shared bottleneck; a baseline that shows the cost of coupling.
Bad at: shared bottlenecks: each subflow takes a full share; long fat paths: a loss costs many round trips.
",
    params: &[COUNT],
    state: &[],
    },
    clause: "RFC 5681 section 3.1, equations 3 and 4",
    make: |params| Box::new(Reno { count: Count::of(params) }),
};

/// The part of an acknowledgement that congestion avoidance counts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Count {
    /// All acknowledged bytes (RFC 3465 section 2.1).
    #[default]
    Bytes,
    /// At most a segment, as in RFC 5681 equation 3 and in Linux before 4.0. If every second
    /// segment is acknowledged, the window grows half as fast.
    Acks,
}

impl Count {
    pub(crate) fn of(params: &Params) -> Count {
        if params.word(&COUNT) == "acks" { Count::Acks } else { Count::Bytes }
    }

    pub(crate) fn counted(self, bytes: u64, view: &View<'_>) -> u64 {
        match self {
            Count::Bytes => bytes,
            Count::Acks => bytes.min(view.own().mss()),
        }
    }
}

/// NewReno. The owner keeps the fractions.
#[derive(Clone, Copy, Default, Debug)]
pub struct Reno {
    count: Count,
}

/// Returns the growth in bytes for `bytes` acknowledged ones: `mss * bytes / cwnd`. It uses the
/// present window, in recovery too.
#[must_use]
pub fn increase(bytes: u64, view: &View<'_>) -> f64 {
    let own = view.own();
    own.mss() as f64 * bytes as f64 / own.cwnd.max(1) as f64
}

/// Returns half of the bytes in flight, at least `least` segments.
pub(crate) fn halved(inflight: u64, least: u64, view: &View<'_>) -> u64 {
    (inflight / 2).max(least.saturating_mul(view.own().mss()))
}

impl Algorithm for Reno {
    fn couples(&self) -> bool {
        false
    }

    fn increase(&mut self, _ack: &Ack, bytes: u64, view: &View<'_>) -> f64 {
        increase(self.count.counted(bytes, view), view)
    }

    fn threshold(&mut self, _now: Time, inflight: u64, view: &View<'_>) -> u64 {
        halved(inflight, 2, view)
    }
}
