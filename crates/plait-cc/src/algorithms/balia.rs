//! BALIA, the Balanced Linked Adaptation algorithm (draft-walid-mptcp-congestion-control-04).

use super::reno;
use crate::{About, Ack, Algorithm, Entry, View};
use alloc::boxed::Box;
use plait_base::Time;

pub(crate) const ENTRY: Entry = Entry {
    about: About {
        name: "balia",
        aliases: &[],
        idea: "between LIA and OLIA: fair to single-path flows, and quick to use a path that improves",
        page: "\
w is the window in segments, r the smoothed RTT, x = w / r the rate of a subflow, and
a = (largest x) / x:

  growth = x / (r * (sum of x)^2) * (1 + a) / 2 * (4 + a) / 5 * acked   bytes, for each ACK
  loss:   w -= w / 2 * min(a, 1.5)

The fastest subflow has a = 1 and halves as in reno. The others grow faster and lose up to three
quarters, down to one segment. With one subflow left, the algorithm is reno.

In the reduction the kernel uses a as a whole number; here it is a real number.

Good at: the middle between LIA and OLIA: it leaves congested paths, and is quick to use a path that
  improves.
Bad at: slow subflows with loss: each loss takes up to three quarters of the window.
",
        params: &[],
        state: &[],
    },
    clause: "draft-walid-mptcp-congestion-control-04",
    make: |_| Box::new(Balia),
};

/// BALIA. It has no state: all results depend on the flows alone.
#[derive(Clone, Copy, Default, Debug)]
pub struct Balia;

/// Rates of the coupled flows in segments per second.
struct Rates {
    own: f64,
    sum: f64,
    best: f64,
}

impl Rates {
    fn over(view: &View<'_>) -> Rates {
        let own = view.own().segments() / view.own().rtt_secs();
        view.coupled().fold(Rates { own, sum: 0.0, best: own }, |rates, flow| {
            let rate = flow.segments() / flow.rtt_secs();
            Rates { sum: rates.sum + rate, best: rates.best.max(rate), ..rates }
        })
    }
}

/// Returns `a`: the largest rate divided by the own rate, at least 1.
#[must_use]
pub fn alpha(view: &View<'_>) -> f64 {
    let rates = Rates::over(view);
    if rates.own > 0.0 { rates.best / rates.own } else { 1.0 }
}

/// Returns the growth of the own flow in bytes for `bytes` acknowledged ones.
#[must_use]
pub fn increase(bytes: u64, view: &View<'_>) -> f64 {
    let rates = Rates::over(view);
    // There is no flow to couple with, or no own rate.
    if !view.has_siblings() || rates.own <= 0.0 {
        return reno::increase(bytes, view);
    }
    let a = rates.best / rates.own;
    let linked = rates.own / (view.own().rtt_secs() * rates.sum * rates.sum);
    linked * ((1.0 + a) / 2.0) * ((4.0 + a) / 5.0) * bytes as f64
}

/// Returns the window in bytes after a loss at a window of `window` bytes.
#[must_use]
pub fn reduced(window: u64, view: &View<'_>) -> u64 {
    if !view.has_siblings() {
        return reno::halved(window, 2, view);
    }
    let left = window as f64 * (1.0 - alpha(view).min(1.5) / 2.0);
    (left as u64).max(view.own().mss())
}

impl Algorithm for Balia {
    fn increase(&mut self, _ack: &Ack, bytes: u64, view: &View<'_>) -> f64 {
        increase(bytes, view)
    }

    fn numbers(&self, _now: Time, view: &View<'_>, write: &mut dyn FnMut(&'static str, f64)) {
        write("alpha", alpha(view));
    }

    fn threshold(&mut self, _now: Time, inflight: u64, view: &View<'_>) -> u64 {
        reduced(inflight, view)
    }
}
