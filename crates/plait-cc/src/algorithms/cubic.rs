//! CUBIC (RFC 9438), uncoupled. Windows are in segments with fraction, as in the RFC.

use super::millis;
use crate::{About, Ack, Algorithm, Entry, Flow, View};
use alloc::boxed::Box;
use plait_base::{Slim, Span, Time};

pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "cubic",
    aliases: &[],
    idea: "grows by a cubic function of the time since the last loss, for any RTT; the default",
    page: "\
Wmax is the window before the last loss, and t the time since congestion avoidance began. C is 0.4
and beta is 0.7. Windows are in segments:

  K = cbrt((Wmax - cwnd at t = 0) / C)
  W(t) = C (t - K)^3 + Wmax
  target = W(t + srtt), within cwnd and 1.5 cwnd
  cwnd += (target - cwnd) / cwnd   for each segment acknowledged

cwnd is at least W_est, the window of Reno with the same beta. W_est grows by alpha * acked / cwnd.
alpha is 3 (1 - beta) / (1 + beta) until W_est is back at the window before the loss, then 1.

A loss sets the threshold to max(beta * inflight, 2 mss). A loss below the previous Wmax sets Wmax to
cwnd (1 + beta) / 2 (fast convergence). When slow start ends without a loss, and after a timeout, K
is 0 and Wmax the current window. Idle time does not count in t. Uncoupled.

Good at: long fat paths; it is the default of stock kernels.
Bad at: shared bottlenecks, where each subflow takes a full share; deep queues, which it fills.
",
    params: &[],
    state: &[
        ("w_max", "Wmax for the next curve, in segments"),
        ("prior", "window before the last reduction, in segments"),
        (
            "epoch_ms",
            "start of this congestion avoidance; absent until the first ACK after a reduction",
        ),
        ("plateau", "Wmax of this curve, in segments"),
        ("k_s", "K of this curve, in seconds"),
        ("w_est", "W_est, in segments"),
    ],
    },
    clause: "RFC 9438 section 4",
    make: |_| Box::new(Cubic::default()),
};

/// Scale of the cubic in segments per second³ (RFC 9438 section 5.1).
pub const C: f64 = 0.4;
/// Factor of the window after a loss (RFC 9438 section 4.6).
pub const BETA: f64 = 0.7;
/// Growth of the Reno-friendly estimate until it is back at the window before the loss:
/// `3 (1 - BETA) / (1 + BETA)` (RFC 9438 section 4.3).
pub const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// `W(t) = C (t - K)^3 + Wmax` (RFC 9438 equations 1 and 2).
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Curve {
    /// Window of the plateau, in segments.
    pub w_max: f64,
    /// Seconds until the plateau.
    pub k: f64,
}

impl Curve {
    /// Creates the curve that starts at `cwnd` segments and has its plateau at `w_max`, or at
    /// `cwnd` if that is larger.
    #[must_use]
    pub fn new(w_max: f64, cwnd: f64) -> Curve {
        if w_max > cwnd {
            Curve { w_max, k: libm::cbrt((w_max - cwnd) / C) }
        } else {
            Curve { w_max: cwnd, k: 0.0 }
        }
    }

    /// Returns the window in segments, `secs` after the start.
    #[must_use]
    pub fn at(&self, secs: f64) -> f64 {
        let from_plateau = secs - self.k;
        C * from_plateau * from_plateau * from_plateau + self.w_max
    }

    /// Returns the window to reach within an RTT that ends `secs` after the start. It is the value
    /// of the curve, but at least `cwnd` and at most 1.5 times `cwnd` (RFC 9438 section 4.2).
    #[must_use]
    pub fn target(&self, secs: f64, cwnd: f64) -> f64 {
        self.at(secs).min(1.5 * cwnd).max(cwnd)
    }
}

/// Returns Wmax after a loss at `cwnd` segments, with `previous` as the Wmax before it (RFC 9438
/// section 4.7, fast convergence).
#[must_use]
pub fn w_max_after(cwnd: f64, previous: f64) -> f64 {
    if cwnd < previous { cwnd * (1.0 + BETA) / 2.0 } else { cwnd }
}

/// Returns the threshold in bytes after a loss with `inflight` bytes in flight: `BETA * inflight`,
/// at least two segments (RFC 9438 section 4.6).
#[must_use]
pub fn threshold(inflight: u64, mss: u64) -> u64 {
    let reduced = u128::from(inflight) * 7 / 10;
    u64::try_from(reduced).unwrap_or(u64::MAX).max(mss.saturating_mul(2))
}

/// CUBIC.
#[derive(Clone, Default, Debug)]
pub struct Cubic {
    state: State,
    /// The state before the last reduction (RFC 9438 section 4.9); set at the first reduction.
    before: Option<Box<Option<State>>>,
}

#[derive(Clone, Copy, Default, Debug)]
struct State {
    /// Wmax for the next curve.
    w_max: f64,
    /// Window just before the last reduction (`cwnd_prior`).
    prior: f64,
    /// Start of this congestion avoidance; `None` until the first ACK after a reduction or a set
    /// window.
    epoch: Slim<Time>,
    curve: Curve,
    /// The window of Reno with the same beta (`W_est`).
    estimate: f64,
}

impl State {
    fn begin(&mut self, now: Time, cwnd: f64) {
        self.epoch = Slim::some(now);
        self.curve = Curve::new(self.w_max, cwnd);
        self.estimate = cwnd;
    }
}

impl Algorithm for Cubic {
    fn couples(&self) -> bool {
        false
    }

    fn increase(&mut self, ack: &Ack, bytes: u64, view: &View<'_>) -> f64 {
        // Divisions dominate the cost, so there are only two.
        let mss = view.own().mss() as f64;
        let window = view.own().cwnd.max(1) as f64;
        let (cwnd, share) = (window / mss, bytes as f64 / window);
        let state = &mut self.state;
        let epoch = match state.epoch.value() {
            Some(epoch) => epoch,
            None => {
                state.begin(ack.now, cwnd);
                ack.now
            }
        };
        let ahead = ack.now.since(epoch) + ack.srtt;
        let target = state.curve.target(ahead.as_nanos() as f64 * 1e-9, cwnd);
        let alpha = if state.estimate >= state.prior { 1.0 } else { ALPHA };
        state.estimate += alpha * share;
        ((target - cwnd) * share).max(state.estimate - cwnd) * mss
    }

    fn threshold(&mut self, _now: Time, inflight: u64, view: &View<'_>) -> u64 {
        let mss = view.own().mss();
        let cwnd = view.own().cwnd as f64 / mss as f64;
        **self.before.get_or_insert_default() = Some(self.state);
        self.state.w_max = w_max_after(cwnd, self.state.w_max);
        self.state.prior = cwnd;
        self.state.epoch = Slim::NONE;
        threshold(inflight, mss)
    }

    fn save_state(&self, write: &mut dyn FnMut(&'static str, f64)) {
        let State { w_max, prior, epoch, curve, estimate } = self.state;
        write("w_max", w_max);
        write("prior", prior);
        if let Some(epoch) = epoch.value() {
            write("epoch_ms", epoch.since(Time::ZERO).as_millis_f64());
            write("plateau", curve.w_max);
            write("k_s", curve.k);
            write("w_est", estimate);
        }
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        let state = &mut self.state;
        match name {
            "w_max" => state.w_max = value,
            "prior" => state.prior = value,
            "epoch_ms" => state.epoch = Slim::some(Time::ZERO + millis(value)),
            "plateau" => state.curve.w_max = value,
            "k_s" => state.curve.k = value,
            "w_est" => state.estimate = value,
            _ => return false,
        }
        true
    }

    fn numbers(&self, now: Time, view: &View<'_>, write: &mut dyn FnMut(&'static str, f64)) {
        let state = &self.state;
        let (Some(epoch), Some(srtt)) = (state.epoch.value(), view.own().srtt) else { return };
        let (secs, rtt) = (now.since(epoch).as_secs_f64(), srtt.as_secs_f64());
        let cwnd = view.own().cwnd.max(1) as f64 / view.own().mss() as f64;
        write("k_s", state.curve.k);
        write("w", state.curve.at(secs));
        write("target", state.curve.target(secs + rtt, cwnd));
        write("w_est", state.estimate);
        write("alpha", if state.estimate >= state.prior { 1.0 } else { ALPHA });
    }

    /// Keeps the window before the last reduction. Only at the end of the first slow start is there
    /// none yet, and the present window is used (RFC 9438 section 4.1.2).
    fn on_avoidance(&mut self, now: Time, own: &Flow) {
        let cwnd = own.cwnd as f64 / own.mss() as f64;
        self.state.w_max = cwnd;
        if self.state.prior == 0.0 {
            self.state.prior = cwnd;
        }
        self.state.begin(now, cwnd);
    }

    fn on_recovered(&mut self, now: Time, own: &Flow) {
        self.state.begin(now, own.cwnd as f64 / own.mss() as f64);
    }

    fn on_idle(&mut self, now: Time, idle: Span) {
        let state = &mut self.state;
        let moved = |epoch: Time| (epoch + idle).min(now.max(epoch));
        state.epoch = state.epoch.value().map(moved).into();
    }

    /// Drops the curve and the estimate, which belong to the old window. Wmax stays.
    fn on_window_set(&mut self, _own: &Flow) {
        self.state.epoch = Slim::NONE;
    }

    fn on_lasting(&mut self) {
        self.before = None;
    }

    /// Restores Wmax and the position on the curve, as if the reduction had not happened.
    fn on_undo(&mut self, _now: Time) {
        if let Some(before) = self.before.as_mut().and_then(|before| before.take()) {
            self.state = before;
        }
    }
}
