//! BBRv3 (draft-ietf-ccwg-bbr): a model of the path instead of a reaction to each loss.

mod control;
mod cycle;
mod filter;
mod model;
mod rules;
#[cfg(test)]
mod tests;

use crate::{
    About, Ack, Algorithm, Entry, LostSegment, Params, RateControl, RateSample, RateWindow, View,
};
use alloc::boxed::Box;
use control::Output;
use cycle::{Cycle, Phase, ProbeRtt, Undo};
use filter::{LowestRtt, MaxBandwidth};
use model::{Aggregation, Bounds, Congestion, FullPipe, RoundTrips};
use plait_base::{RandomStream, Span, Time};
use rules::{Rules, Share};

pub(crate) const ENTRY: Entry = Entry {
    about: About {
        name: "bbr",
        aliases: &["bbr3"],
        idea: "BBRv3: paces at the measured bandwidth, and bounds the data in flight by a model of the path",
        page: "\
Each ACK gives a sample of the delivery rate: the bytes delivered since the newest delivered segment was
sent, over the longer of the times in which they were sent and acknowledged. If the
subflow had too little to send, a sample counts only if it is not below bw. bw is the largest sample of this cycle and the one before, and min_rtt
the lowest RTT of 10 s.

  pacing rate  = gain * bw * 0.99
  max_inflight = cwnd_gain * bw * min_rtt + extra_acked, at least 3 quanta and 4 segments
  cwnd        += acked bytes, up to max_inflight
  quantum      = pacing rate * 1 ms, at least 2 segments and at most 64 KiB

  state             gain   cwnd_gain   ends
  Startup           2.77   2           after 3 round trips without 25 % more rate, or with over 2 % losses
                                       in 6 ranges
  Drain             0.5    2           when no more than the BDP is in flight, or after 3 round trips
  ProbeBW_DOWN      0.9    2           when no more than the BDP is in flight
  ProbeBW_CRUISE    1      2           after 2 to 3 s, or a round trip for each segment in flight (at most 63)
  ProbeBW_REFILL    1      2           after a round trip
  ProbeBW_UP        1.25   2.25        as Startup, or with over 2 % losses
  ProbeRTT          1      0.5         after 200 ms; begins after 5 s without a low RTT

Losses set bounds. If more than 2 % of the data in flight is lost during a probe, inflight_longterm is the
data in flight at that point, or 0.7 of the BDP if that is more. It grows again in ProbeBW_UP by 1, 2, 4, ...
segments in successive round trips, and ProbeBW_CRUISE leaves 15 % of it free. Losses outside of a probe
reduce bw and the window once per round trip to what was delivered in it, or to 0.7 of the bound if that is more, until
the next probe. A recovery that proves spurious restores them.

The subflow is always paced, also with `--pacing off`. A restart after an idle time paces at bw, and neither
`--idle-restart` nor `--hystart` applies. A round trip in which the scheduler uses other subflows counts as
one with too little to send, if nothing was sent for more than 1 ms. The draft has no packet conservation, so
proportional rate reduction does not apply either. A timeout sets the window to one segment. The ECN parts of
the kernel's code are not in the draft and not here.

There are three differences from the draft. First, the state for an undo is saved when a recovery begins. The
draft's pseudocode saves it again with the first loss of each round trip, when the bounds are reduced already.
Second, pacing waits for 1 s at most, as sch_fq of Linux does. Otherwise, a reader that was slow for long would leave a
rate of some bytes per second. Third, a peer's window that is full for more than 1 ms counts as too little to
send.

Good at: random losses, deep queues, and long paths.
Bad at: a queue below one BDP beside other bbr subflows; several subflows over one bottleneck, which take
  the share of several connections.
",
        params: rules::PARAMS,
        state: &[],
    },
    clause: "draft-ietf-ccwg-bbr, working group text of August 2026",
    make: |params| Box::new(Bbr::new(params)),
};

/// BBRv3 of one subflow. Sums of bytes and rates are whole numbers, so that runs repeat exactly.
#[derive(Clone, Debug)]
pub struct Bbr {
    rules: Rules,
    random: RandomStream,
    phase: Phase,
    rounds: RoundTrips,
    max_bandwidth: MaxBandwidth,
    /// The bandwidth in use, in bytes per second.
    bandwidth: u64,
    congestion: Congestion,
    bounds: Bounds,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    cycle: Cycle,
    rtt: LowestRtt,
    probe_rtt: ProbeRtt,
    undo: Undo,
    output: Output,
}

impl Bbr {
    fn new(params: &Params) -> Bbr {
        Bbr {
            rules: Rules::new(params),
            random: stream(0),
            phase: Phase::Startup,
            rounds: RoundTrips::default(),
            max_bandwidth: MaxBandwidth::default(),
            bandwidth: 0,
            congestion: Congestion::default(),
            bounds: Bounds::NONE,
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            cycle: Cycle::default(),
            rtt: LowestRtt::default(),
            probe_rtt: ProbeRtt::default(),
            undo: Undo::NOTHING,
            output: Output::default(),
        }
    }
}

/// Returns the random numbers of the times between probes.
fn stream(seed: u64) -> RandomStream {
    RandomStream::new(seed, &["bbr"])
}

impl RateControl for Bbr {
    fn seed(&mut self, seed: u64) {
        self.random = stream(seed);
    }

    fn on_start(
        &mut self,
        now: Time,
        app_limited: bool,
        srtt: Option<Span>,
        window: &mut RateWindow,
    ) {
        if self.output.rate == 0 {
            self.rtt.begin(now, srtt);
            self.aggregation.since = now;
        }
        self.init_rate(srtt, window);
        if !app_limited {
            return;
        }
        // HandleRestartFromIdle
        self.rounds.is_restart = true;
        self.aggregation.since = now;
        if self.phase.is_probe_bandwidth() {
            self.set_rate(Share::ONE);
        } else if self.phase == Phase::ProbeRtt {
            self.end_probe_rtt(now, window);
        }
    }

    fn on_sample(&mut self, sample: &RateSample, window: &mut RateWindow) -> bool {
        self.init_rate(sample.srtt, window);
        self.update_latest(sample);
        self.update_congestion(sample, window);
        self.update_aggregation(sample, window);
        self.check_full_pipe(sample);
        self.check_start(sample, window);
        self.update_cycle(sample, window);
        self.rtt.update(sample.now, sample.rtt, &self.rules.periods);
        let low = self.check_probe_rtt(sample, window);
        self.advance_latest(sample);
        self.bandwidth = self.max_bandwidth.value().min(self.bounds.bandwidth_shortterm);
        self.set_rate(self.phase.pacing_gain(&self.rules.gains));
        self.set_quantum(window);
        self.set_cwnd(sample, window);
        low
    }

    fn on_lost(&mut self, lost: &LostSegment, window: &mut RateWindow) {
        self.note_lost(lost, window);
    }

    fn on_recovery(&mut self, window: &mut RateWindow) {
        self.save_before_loss(window);
        self.output.in_recovery = true;
        self.set_recovery(true);
    }

    fn on_timeout(&mut self, window: &mut RateWindow) {
        self.save_before_loss(window);
        self.output.in_recovery = true;
        self.set_recovery(false);
        window.cwnd = window.mss;
    }

    fn on_recovered(&mut self, window: &mut RateWindow) {
        self.output.in_recovery = false;
        self.set_recovery(false);
        self.restore_cwnd(window);
    }

    fn on_spurious(&mut self, _now: Time, window: &mut RateWindow) {
        self.output.in_recovery = false;
        self.set_recovery(false);
        self.undo_loss(window);
    }

    fn is_starting(&self) -> bool {
        !self.full_pipe.reached
    }

    fn pacing_rate(&self) -> u64 {
        self.output.rate.max(1)
    }

    fn bandwidth(&self) -> u64 {
        if self.full_pipe.reached { self.bandwidth } else { 0 }
    }

    fn quantum(&self) -> u64 {
        self.output.quantum
    }
}

impl Algorithm for Bbr {
    fn couples(&self) -> bool {
        false
    }

    fn rate_control(&mut self) -> Option<&mut dyn RateControl> {
        Some(self)
    }

    /// Returns zero: samples change the window.
    fn increase(&mut self, _ack: &Ack, _bytes: u64, _view: &View<'_>) -> f64 {
        0.0
    }

    fn threshold(&mut self, _now: Time, _inflight: u64, view: &View<'_>) -> u64 {
        view.own().cwnd
    }
}
