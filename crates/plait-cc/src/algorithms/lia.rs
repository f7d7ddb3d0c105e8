//! LIA, the Linked Increases Algorithm (RFC 6356).

use super::reno::{self, COUNT, Count};
use crate::{About, Ack, Algorithm, Entry, View};
use alloc::boxed::Box;
use plait_base::Time;

pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "lia",
    aliases: &["coupled"],
    idea: "all subflows together grow as fast as the best of them alone would",
    page: "\
w is the window and r the smoothed RTT of a subflow, W the sum of the windows:

  alpha = W * max(w / r^2) / (sum of w / r)^2
  w += min(alpha * acked * mss / W, acked * mss / w)   bytes, for each ACK

alpha is calculated for each ACK. A subflow in fast recovery counts with its threshold. A dead
subflow, or one without an RTT sample, does not count. A loss halves the window, as in reno. With one
subflow left, the algorithm is reno.

Good at: shared bottlenecks: all subflows together take no more than one flow. They still get as much
  as the best path alone would give.
Bad at: leaving congested paths: the increase is shared by window, so traffic stays on paths that
  OLIA would leave.
",
    params: &[COUNT],
    state: &[],
    },
    clause: "RFC 6356 section 3",
    make: |params| Box::new(Lia { count: Count::of(params) }),
};

/// LIA. It has no state: alpha depends on the flows alone.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lia {
    count: Count,
}

/// Sums over the coupled flows, windows in bytes and times in seconds.
struct Sums {
    window: f64,
    rate: f64,
    best: f64,
}

impl Sums {
    fn over(view: &View<'_>) -> Sums {
        let zero = Sums { window: 0.0, rate: 0.0, best: 0.0 };
        view.coupled().fold(zero, |sums, flow| {
            let (window, rtt) = (flow.window() as f64, flow.rtt_secs());
            Sums {
                window: sums.window + window,
                rate: sums.rate + window / rtt,
                best: sums.best.max(window / (rtt * rtt)),
            }
        })
    }

    fn alpha(&self) -> f64 {
        self.window * self.best / (self.rate * self.rate)
    }
}

/// Returns the aggressiveness `alpha` of RFC 6356, equation 2. It is 1 for a single flow, and NaN
/// if no flow has a window.
#[must_use]
pub fn alpha(view: &View<'_>) -> f64 {
    Sums::over(view).alpha()
}

/// Returns the growth of the own flow in bytes for `bytes` acknowledged ones (RFC 6356, equation
/// 1).
#[must_use]
pub fn increase(bytes: u64, view: &View<'_>) -> f64 {
    let alone = reno::increase(bytes, view);
    if !view.has_siblings() {
        return alone;
    }
    let sums = Sums::over(view);
    let linked = sums.alpha() * bytes as f64 * view.own().mss() as f64 / sums.window;
    // `min` returns the number if the other value is NaN.
    linked.min(alone)
}

impl Algorithm for Lia {
    fn increase(&mut self, _ack: &Ack, bytes: u64, view: &View<'_>) -> f64 {
        increase(self.count.counted(bytes, view), view)
    }

    fn numbers(&self, _now: Time, view: &View<'_>, write: &mut dyn FnMut(&'static str, f64)) {
        write("alpha", alpha(view));
    }

    fn threshold(&mut self, _now: Time, inflight: u64, view: &View<'_>) -> u64 {
        reno::halved(inflight, 2, view)
    }
}
