//! wVegas, weighted Vegas (Cao, Xu and Fu, ICNP 2012; draft-xu-mptcp-congestion-control).

use super::{millis, reno};
use crate::{About, Ack, Algorithm, Entry, Flow, Param, ParamKind, View};
use alloc::boxed::Box;
use plait_base::{Slim, Span, Time};

const DRAIN: Param = Param {
    name: "drain",
    kind: ParamKind::Word { words: &["on", "mean", "off"], default: "on" },
    unit: "",
    help: "drain the queue when its delay has doubled, by the mean and lowest sample of a round trip (on) or by \
the mean alone (mean); off: only alpha changes the window",
    clause: "draft-xu-mptcp-congestion-control; Linux mptcp_wvegas.c",
};

pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "wvegas",
    aliases: &[],
    idea: "keeps few segments queued, divided by rate; reacts to delay before losses",
    page: "\
w is the window in segments, base the lowest RTT, and rtt the mean of the samples of a round trip.
Once per round trip outside recovery:

  diff = w * (rtt - base) / rtt                  segments in the queue
  in slow start, if diff > 1: w = min(w, w * base / rtt + 1), and slow start is over
  if diff >= alpha: weight = rate / (sum of rates), alpha = max(2, 10 * weight)
  w -= 1 if diff > alpha; w += 1 if diff < alpha
  q = lowest queueing delay (rtt - base) since the last drain
  if rtt - base >= 2 q > 0: w *= base / (2 rtt), and q is reset   (the drain)

A subflow's own rate is w / rtt. That of another subflow is its window over its smoothed RTT. w is at
least 2.
alpha begins at 2, and again after a recovery or a timeout. A round trip of two samples or fewer
grows as in reno. A loss halves the window, as in reno.

The drain has three further conditions, which the kernel lacks. First, the queueing delay is not
zero. If rtt were base, the test 0 >= 0 would halve the window each round trip. Second, the delay of
the lowest sample has doubled too, because an ACK that its receiver delays by 40 ms raises the mean
without a queue. Third, the lowest sample shows at least one segment in the queue, because jitter of
3 ms would double a delay of 1 ms again and again. With drain=mean, as in the kernel, only the first
condition applies.

Good at: short queues, and leaving a path whose delay grows before it loses packets.
Bad at: sharing a drop-tail queue with reno or cubic, which fill it; delays that change for other
  reasons; a base that was measured while a queue stood. With drain=mean any doubling drains the
  queue: three subflows alone on 10 Mbit/s with 50 ms leave half of the link empty, with equal shares.
  With drain=off they fill it, and two of one connection take the share of one (fairness.rs in
  plait-lab).
",
    params: &[DRAIN],
    state: &[
        ("base_ms", "lowest RTT; absent before the first sample"),
        ("samples", "samples of this round trip"),
        ("sum_ms", "their sum"),
        ("least_ms", "the lowest of them; absent if there is none"),
        ("round_bytes", "bytes acknowledged in this round trip"),
        ("alpha", "segments to keep queued"),
        ("weight", "share of all rates when alpha was last calculated"),
        ("diff", "segments in the queue in the last round trip"),
        ("q_ms", "lowest queueing delay since the last drain; absent if there was none"),
        (
            "q_of_least_ms",
            "the same for the lowest samples of round trips, 0 if there was none; defaults to q_ms",
        ),
    ],
    },
    clause: "Cao et al., ICNP 2012; draft-xu-mptcp-congestion-control",
    make: |params| {
        let drain = match params.word(&DRAIN) {
            "off" => Drain::Off,
            "mean" => Drain::Mean,
            _ => Drain::Both,
        };
        Box::new(Wvegas { drain, ..Wvegas::default() })
    },
};

/// Segments that all subflows together keep in queues.
pub const TOTAL_ALPHA: f64 = 10.0;
/// Minimum and initial alpha of a subflow, in segments.
pub const LEAST_ALPHA: f64 = 2.0;
/// Segments in the queue that end slow start. A shorter queue is not drained.
pub const GAMMA: f64 = 1.0;
/// Minimum window in segments.
const LEAST_WINDOW: f64 = 2.0;
/// A round trip with at most this many samples is not measured.
const FEW_SAMPLES: u32 = 2;

/// Returns the segments of a window of `window` that are in the queue, not in transit. Only the
/// ratio of the times matters, so the sums of a round trip's samples may replace their means.
#[must_use]
pub fn diff(window: f64, base: Span, rtt: Span) -> f64 {
    let queueing = rtt.minus(base).as_nanos() as f64;
    window * queueing / rtt.as_nanos().max(1) as f64
}

/// Returns the segments that a subflow with this share of all rates keeps in the queue.
#[must_use]
pub fn alpha(weight: f64) -> f64 {
    (TOTAL_ALPHA * weight).max(LEAST_ALPHA)
}

/// Returns the window in segments after a round trip with `diff` segments in the queue.
#[must_use]
pub fn next(window: f64, diff: f64, alpha: f64) -> f64 {
    if diff > alpha {
        window - 1.0
    } else if diff < alpha {
        window + 1.0
    } else {
        window
    }
}

/// Returns the own share of all rates. The own rate is the window over `rtt`; siblings use their
/// smoothed RTT. The share is 1 if all rates are zero.
#[must_use]
pub fn weight(view: &View<'_>, rtt: Span) -> f64 {
    let rate = |window: f64, rtt: Span| window / rtt.as_nanos().max(1) as f64;
    let own = rate(view.own().segments(), rtt);
    let of = |flow: Flow| rate(flow.segments(), flow.srtt.unwrap_or(Span::MAX));
    let sum = own + view.siblings().map(of).sum::<f64>();
    if sum > 0.0 { own / sum } else { 1.0 }
}

/// The delay of a round trip that decides if the queue is drained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Drain {
    /// The mean and the lowest sample together. An acknowledgement that its receiver has delayed
    /// raises the mean without a queue. HyStart++ uses the lowest sample for the same reason (RFC
    /// 9406 section 4.2).
    Both,
    /// The mean of all samples, as in Linux.
    Mean,
    Off,
}

/// Weighted Vegas.
#[derive(Clone, Copy, Debug)]
pub struct Wvegas {
    /// Parameter `drain`.
    drain: Drain,
    /// Lowest RTT sample so far.
    base: Option<Span>,
    round: Round,
    /// Segments to keep in the queue, and the share of all rates behind that number.
    alpha: f64,
    weight: f64,
    /// Segments in the queue in the last round trip.
    diff: f64,
    /// Lowest queueing delay since the last drain, of the means and of the lowest samples.
    least_queueing: Option<Span>,
    least_of_least: Option<Span>,
}

impl Default for Wvegas {
    fn default() -> Wvegas {
        Wvegas {
            drain: Drain::Both,
            base: None,
            round: Round::default(),
            alpha: LEAST_ALPHA,
            weight: 1.0,
            diff: 0.0,
            least_queueing: None,
            least_of_least: None,
        }
    }
}

/// Totals since the round trip began.
#[derive(Clone, Copy, Default, Debug)]
struct Round {
    samples: u32,
    sum: Span,
    /// The lowest sample.
    least: Slim<Span>,
    bytes: u64,
}

impl Wvegas {
    /// Restarts the measurement and keeps the lowest RTT.
    fn restart(&mut self) {
        *self = Wvegas { drain: self.drain, base: self.base, ..Wvegas::default() };
    }

    /// Returns the change of the window in segments after a round trip; `None` if slow start
    /// continues.
    fn judge(
        &mut self,
        round: Round,
        base: Span,
        slow_start: bool,
        view: &View<'_>,
    ) -> Option<f64> {
        let window = view.own().segments();
        let samples = u64::from(round.samples);
        // Sums replace means, so that no mean is rounded before the comparison.
        let empty = base.times(samples);
        self.diff = diff(window, empty, round.sum);
        let ratio = empty.as_nanos() as f64 / round.sum.as_nanos().max(1) as f64;
        let wanted = if slow_start {
            if self.diff <= GAMMA {
                return None;
            }
            window.min(window * ratio + 1.0)
        } else {
            let rtt = round.sum.over(samples);
            if self.diff >= self.alpha {
                self.weight = weight(view, rtt);
                self.alpha = alpha(self.weight);
            }
            let next = next(window, self.diff, self.alpha);
            let least = round.least.value().unwrap_or(rtt);
            let queued = diff(window, base, least);
            if self.must_drain(rtt.minus(base), least.minus(base), queued) {
                next * ratio / 2.0
            } else {
                next
            }
        };
        Some(wanted.max(LEAST_WINDOW) - window)
    }

    /// Returns true if the queueing delay has doubled since the last drain, as [`Drain`] requires.
    /// The mean and the lowest sample of a round trip both count, and `queued` is the queue by the
    /// lowest sample. [`Drain::Both`] needs a segment there. A drain resets the lowest delays. An
    /// empty queue is not drained.
    fn must_drain(&mut self, mean: Span, least: Span, queued: f64) -> bool {
        let by_mean = has_doubled(&mut self.least_queueing, mean);
        let by_least = has_doubled(&mut self.least_of_least, least);
        let drain = match self.drain {
            Drain::Both => by_mean && by_least && queued >= GAMMA,
            Drain::Mean => by_mean,
            Drain::Off => false,
        };
        if drain {
            (self.least_queueing, self.least_of_least) = (None, None);
        }
        drain
    }
}

/// Returns true if a queueing delay is at least twice the lowest one so far, and updates the lowest
/// one.
fn has_doubled(least: &mut Option<Span>, queueing: Span) -> bool {
    if queueing == Span::ZERO {
        *least = None;
        return false;
    }
    let so_far = least.map_or(queueing, |least| least.min(queueing));
    *least = Some(so_far);
    queueing >= so_far.times(2)
}

impl Algorithm for Wvegas {
    /// Returns zero: [`Algorithm::watch`] changes the window.
    fn increase(&mut self, _ack: &Ack, _bytes: u64, _view: &View<'_>) -> f64 {
        0.0
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, ack: &Ack, view: &View<'_>) -> Option<f64> {
        if let Some(rtt) = ack.rtt {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.round.samples = self.round.samples.saturating_add(1);
            self.round.sum += rtt;
            let least = self.round.least.value().map_or(rtt, |least| least.min(rtt));
            self.round.least = Slim::some(least);
        }
        let own = view.own();
        if own.in_recovery {
            self.round = Round::default();
            return None;
        }
        self.round.bytes = self.round.bytes.saturating_add(ack.bytes);
        if !ack.round {
            return None;
        }
        let round = core::mem::take(&mut self.round);
        let slow_start = own.ssthresh.is_none_or(|ssthresh| own.cwnd < ssthresh);
        match self.base {
            Some(base) if round.samples > FEW_SAMPLES => {
                let change = self.judge(round, base, slow_start, view)?;
                Some(change * own.mss() as f64)
            }
            _ if slow_start => None,
            _ => Some(reno::increase(round.bytes, view)),
        }
    }

    fn save_state(&self, write: &mut dyn FnMut(&'static str, f64)) {
        if let Some(base) = self.base {
            write("base_ms", base.as_millis_f64());
        }
        write("samples", f64::from(self.round.samples));
        write("sum_ms", self.round.sum.as_millis_f64());
        if let Some(least) = self.round.least.value() {
            write("least_ms", least.as_millis_f64());
        }
        write("round_bytes", self.round.bytes as f64);
        write("alpha", self.alpha);
        write("weight", self.weight);
        write("diff", self.diff);
        if let Some(least) = self.least_queueing {
            write("q_ms", least.as_millis_f64());
            write("q_of_least_ms", self.least_of_least.map_or(0.0, Span::as_millis_f64));
        }
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        match name {
            "base_ms" => self.base = Some(millis(value)),
            "samples" => self.round.samples = value as u32,
            "sum_ms" => self.round.sum = millis(value),
            "least_ms" => self.round.least = Slim::some(millis(value)),
            "round_bytes" => self.round.bytes = value as u64,
            "alpha" => self.alpha = value,
            "weight" => self.weight = value,
            "diff" => self.diff = value,
            "q_ms" => {
                self.least_queueing = Some(millis(value));
                self.least_of_least = self.least_queueing;
            }
            // `q_ms` is before it in the order of names.
            "q_of_least_ms" => {
                self.least_of_least = Some(millis(value)).filter(|q| *q > Span::ZERO);
            }
            _ => return false,
        }
        true
    }

    fn threshold(&mut self, _now: Time, inflight: u64, view: &View<'_>) -> u64 {
        reno::halved(inflight, 2, view)
    }

    fn on_recovered(&mut self, _now: Time, _own: &Flow) {
        self.restart();
    }

    fn on_window_set(&mut self, _own: &Flow) {
        self.restart();
    }

    fn on_undo(&mut self, _now: Time) {
        self.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cao, Xu and Fu 2012: the rates share ten segments in all. Linux keeps at least two on each
    /// subflow.
    #[test]
    fn a_subflow_keeps_its_part_of_ten_segments_and_at_least_two() {
        for (weight, segments) in [(1.0, 10.0), (0.5, 5.0), (0.2, 2.0), (0.1, 2.0), (0.0, 2.0)] {
            assert_eq!(alpha(weight), segments, "{weight}");
        }
        // With so small a share, the window grows below two segments in the queue and shrinks
        // above.
        assert_eq!(next(20.0, 1.9, alpha(0.01)), 21.0);
        assert_eq!(next(20.0, 2.1, alpha(0.01)), 19.0);
        assert_eq!(Wvegas::default().alpha, 2.0);
    }
}
