//! The states and numbers of the draft, worked out by hand. Segments have 1,000 bytes, and the RTT is 100 ms.

use super::model::INFINITE;
use super::{Bbr, Phase};
use crate::{LostSegment, Params, RateControl, RateSample, RateWindow};
use plait_base::{Span, Time};

mod bounds;
mod probe_rtt;

const MSS: u64 = 1_000;
const RTT: Span = Span::from_millis(100);

/// A controller, its window, and the totals of its subflow.
struct Flow {
    bbr: Bbr,
    window: RateWindow,
    now: Time,
    total: u64,
}

impl Flow {
    /// Returns a flow that has begun to send, with an RTT of 100 ms and an initial window of 10 segments.
    fn new() -> Flow {
        let mut bbr = Bbr::new(&Params::default());
        let mut window = RateWindow { cwnd: 10 * MSS, mss: MSS, initial: 10 * MSS };
        bbr.seed(1);
        bbr.on_start(Time::ZERO, false, Some(RTT), &mut window);
        Flow { bbr, window, now: Time::ZERO, total: 0 }
    }

    /// Returns a sample of `acked` bytes for data sent after all earlier data was delivered. So it begins a
    /// round trip.
    fn sample(&mut self, acked: u64, rate: u64) -> RateSample {
        let prior_total = self.total;
        self.total += acked;
        RateSample {
            now: self.now,
            acked,
            total: self.total,
            prior_total,
            rate,
            app_limited: false,
            sent_inflight: self.window.cwnd,
            lost: 0,
            inflight: self.window.cwnd,
            rtt: Some(RTT),
            srtt: Some(RTT),
            cwnd_limited: true,
            sack: true,
        }
    }

    fn take(&mut self, sample: RateSample) {
        self.bbr.on_sample(&sample, &mut self.window);
    }

    /// Takes in one acknowledgement of a whole round trip at `rate`, with `inflight` bytes left in flight.
    fn round(&mut self, rate: u64, inflight: u64) {
        self.now += RTT;
        let sample = self.sample(rate / 10, rate);
        self.take(RateSample { inflight, sent_inflight: inflight, ..sample });
    }

    /// Returns a lost segment; the bytes lost since it was sent include it.
    fn loss(&self, sent_inflight: u64, lost: u64) -> LostSegment {
        LostSegment {
            now: self.now,
            len: MSS,
            sent_inflight,
            lost,
            total: self.total,
            app_limited: false,
            apart: true,
            sack: true,
        }
    }

    fn lose(&mut self, lost: LostSegment) {
        self.bbr.on_lost(&lost, &mut self.window);
    }

    /// Brings it to ProbeBW_CRUISE at 500,000 bytes per second: the BDP is 50,000 bytes. If Drain ends with
    /// so much in flight, the acknowledgement that begins ProbeBW_DOWN ends it.
    fn in_cruise() -> Flow {
        let mut flow = Flow::new();
        for rate in [100_000, 200_000, 400_000, 500_000, 500_000, 500_000, 500_000] {
            flow.round(rate, 80_000);
        }
        assert_eq!(flow.bbr.phase, Phase::Drain);
        flow.round(500_000, 50_000);
        assert_eq!(flow.bbr.phase, Phase::Cruise);
        flow
    }

    /// The same in ProbeBW_UP, after the time between probes.
    fn in_up() -> Flow {
        let mut flow = Flow::in_cruise();
        flow.now += Span::from_secs(3);
        flow.round(500_000, 50_000);
        assert_eq!(flow.bbr.phase, Phase::Refill);
        flow.round(500_000, 50_000);
        assert_eq!(flow.bbr.phase, Phase::Up);
        flow
    }

    /// Lets ProbeRTT wait for another 5 s.
    fn put_off_probe_rtt(&mut self) {
        self.bbr.rtt.renew(self.now);
    }

    fn pacing(&self) -> u64 {
        self.bbr.pacing_rate()
    }
}

/// Section 5.6.2: 2.77 * 10,000 bytes / 100 ms. Section 5.6.3: a millisecond has 277 bytes, and two segments
/// are the least.
#[test]
fn the_first_rate_is_an_initial_window_per_rtt_times_the_gain() {
    let flow = Flow::new();
    assert_eq!((flow.pacing(), flow.bbr.quantum()), (277_000, 2_000));
    // Without an RTT it is 1 ms, until there is one.
    let mut bbr = Bbr::new(&Params::default());
    let mut window = RateWindow { cwnd: 10 * MSS, mss: MSS, initial: 10 * MSS };
    bbr.on_start(Time::ZERO, false, None, &mut window);
    assert_eq!(bbr.pacing_rate(), 27_700_000);
    // A millisecond has 27,700 bytes.
    assert_eq!(bbr.quantum(), 27_700);
    let mut flow = Flow { bbr, window, ..Flow::new() };
    let sample = flow.sample(MSS, 0);
    flow.take(sample);
    assert_eq!(flow.pacing(), 277_000);
}

/// Section 5.3.1.2: the third round trip with less than 25 % more than 400,000 ends Startup.
#[test]
fn three_round_trips_without_growth_end_startup() {
    let mut flow = Flow::new();
    for (rate, phase) in [
        (200_000, Phase::Startup),
        (400_000, Phase::Startup),
        // 1.25 * 400,000 is growth, and one less is not.
        (499_999, Phase::Startup),
        (500_000, Phase::Startup),
        (600_000, Phase::Startup),
        (610_000, Phase::Startup),
        (620_000, Phase::Drain),
    ] {
        assert!(flow.bbr.is_starting());
        flow.round(rate, 200_000);
        assert_eq!(flow.bbr.phase, phase, "{rate}");
    }
    // 0.5 * 620,000 * 0.99, rounded down.
    assert_eq!(flow.pacing(), 306_900);
    // An app-limited round trip does not count.
    let mut flow = Flow::new();
    for _ in 0..20 {
        let sample = flow.sample(10_000, 100_000);
        flow.take(RateSample { app_limited: true, ..sample });
    }
    assert_eq!(flow.bbr.phase, Phase::Startup);
}

/// Section 5.3.1.3: six ranges and more than 2 %, after a whole round trip of recovery.
#[test]
fn many_losses_end_startup() {
    for (ranges, lost, ends) in [(6, 6_000, true), (5, 6_000, false), (6, 2_000, false)] {
        let mut flow = Flow::new();
        flow.round(1_000_000, 100_000);
        flow.bbr.on_recovery(&mut flow.window);
        for nth in 1..=ranges {
            flow.lose(flow.loss(100_000, nth * MSS));
        }
        let sample = flow.sample(90_000, 1_000_000);
        // Samples of data from before the recovery do not end it.
        flow.take(RateSample { lost, sent_inflight: 100_000, prior_total: 99_999, ..sample });
        assert!(flow.bbr.is_starting());
        let sample = flow.sample(90_000, 1_000_000);
        flow.take(RateSample { lost, sent_inflight: 100_000, ..sample });
        assert_eq!(!flow.bbr.is_starting(), ends, "{ranges} ranges, {lost} bytes");
        if ends {
            assert_eq!(flow.bbr.phase, Phase::Drain);
            // The BDP of 100,000 is more than the 90,001 delivered.
            assert_eq!(flow.bbr.bounds.inflight_longterm, 100_000);
            // A spurious recovery leads back.
            flow.bbr.on_spurious(flow.now, &mut flow.window);
            assert_eq!(flow.bbr.phase, Phase::Startup);
            assert_eq!(flow.bbr.bounds.inflight_longterm, INFINITE);
        }
    }
}

/// Section 5.3.2: the BDP is 500,000 * 100 ms = 50,000 bytes.
#[test]
fn drain_ends_at_the_bdp_or_after_three_round_trips() {
    let mut flow = Flow::new();
    for rate in [400_000, 500_000, 500_000, 500_000, 500_000] {
        flow.round(rate, 80_000);
    }
    assert_eq!((flow.bbr.phase, flow.pacing()), (Phase::Drain, 247_500));
    for _ in 0..3 {
        flow.round(500_000, 50_001);
        assert_eq!(flow.bbr.phase, Phase::Drain);
    }
    flow.round(500_000, 50_001);
    assert_eq!(flow.bbr.phase, Phase::Down);
    // 0.9 * 500,000 * 0.99
    assert_eq!(flow.pacing(), 445_500);
}

/// Section 5.3.3.8: a random time from 2 to 3 s, or a round trip for each of the 50 segments of the BDP.
#[test]
fn a_probe_comes_after_two_to_three_seconds_or_fifty_round_trips() {
    let mut flow = Flow::in_cruise();
    let down = flow.now;
    while flow.bbr.phase == Phase::Cruise {
        flow.now += Span::from_millis(10);
        let sample = flow.sample(0, 500_000);
        // Not a new round trip.
        flow.take(RateSample { prior_total: 0, inflight: 50_000, ..sample });
    }
    let waited = flow.now.since(down);
    assert!(waited > Span::from_millis(1_900) && waited < Span::from_millis(3_000), "{waited:?}");
    let mut flow = Flow::in_cruise();
    let mut rounds = 1;
    while flow.bbr.phase == Phase::Cruise {
        let sample = flow.sample(50_000, 500_000);
        flow.take(RateSample { inflight: 50_000, ..sample });
        rounds += 1;
    }
    assert_eq!(flow.bbr.phase, Phase::Refill);
    // The count begins at 0 or 1, and the first acknowledgement of Down counted.
    assert!((49..=51).contains(&rounds), "{rounds}");
}

/// Section 5.6.1: the gains of each state. The window is gain * 50,000 and what was acknowledged together.
#[test]
fn a_cycle_has_the_gains_of_the_table() {
    let mut flow = Flow::in_cruise();
    assert_eq!((flow.bbr.phase, flow.pacing()), (Phase::Cruise, 495_000));
    flow.now += Span::from_secs(3);
    flow.round(500_000, 50_000);
    assert_eq!((flow.bbr.phase, flow.pacing()), (Phase::Refill, 495_000));
    flow.round(500_000, 50_000);
    // 1.25 * 500,000 * 0.99 = 618,750
    assert_eq!((flow.bbr.phase, flow.pacing()), (Phase::Up, 618_750));
    // Each round trip is acknowledged at once, so 50,000 bytes more than expected arrive together. The window
    // grows by the acknowledged bytes up to 2.25 * 50,000 + 50,000 + 2 segments.
    flow.round(500_000, 50_000);
    assert_eq!(flow.window.cwnd, 164_500);
    // The third round trip without growth ends it.
    flow.round(500_000, 50_000);
    assert_eq!(flow.bbr.phase, Phase::Up);
    flow.round(500_000, 50_000);
    assert_eq!((flow.bbr.phase, flow.pacing()), (Phase::Down, 445_500));
    assert_eq!(flow.window.cwnd, 150_000);
}

/// Section 5.5.5: a higher rate counts at once, a lower one when two cycles have passed without a higher one.
#[test]
fn a_lower_bandwidth_counts_after_two_cycles() {
    let mut flow = Flow::in_up();
    flow.round(700_000, 60_000);
    assert_eq!(flow.bbr.bandwidth, 700_000);
    let mut cycles = 0;
    let mut before = flow.bbr.phase;
    while flow.bbr.bandwidth == 700_000 {
        flow.now += Span::from_millis(200);
        flow.put_off_probe_rtt();
        flow.round(600_000, 50_000);
        cycles += u32::from(before == Phase::Up && flow.bbr.phase == Phase::Down);
        before = flow.bbr.phase;
        assert!(flow.now < Time::ZERO + Span::from_secs(60));
    }
    assert_eq!((cycles, flow.bbr.bandwidth), (2, 600_000));
    // A sample of a sender with too little to send does not lower it, but may raise it.
    for (rate, bandwidth) in [(100_000, 600_000), (650_000, 650_000)] {
        let sample = flow.sample(10_000, rate);
        flow.take(RateSample { app_limited: true, ..sample });
        assert_eq!(flow.bbr.bandwidth, bandwidth);
    }
}

/// Section 5.5.10.2. Before the segment, 99,000 bytes were in flight, and 1,500 were lost. The limit of 2 %
/// is reached after (0.02 * 99,000 - 1,500) / 0.98 = 489 bytes of it.
#[test]
fn the_bound_is_where_the_losses_exceeded_two_percent() {
    let mut flow = Flow::in_up();
    flow.bbr.on_recovery(&mut flow.window);
    // Exactly 2 % are not too much.
    flow.lose(flow.loss(100_000, 2_000));
    assert_eq!((flow.bbr.phase, flow.bbr.bounds.inflight_longterm), (Phase::Up, INFINITE));
    flow.lose(flow.loss(100_000, 2_500));
    assert_eq!((flow.bbr.phase, flow.bbr.bounds.inflight_longterm), (Phase::Down, 99_489));
    // One reaction for each probe.
    flow.lose(flow.loss(90_000, 9_000));
    assert_eq!(flow.bbr.bounds.inflight_longterm, 99_489);
    // Cruise leaves 15 % free: 99,489 - 14,923.
    assert_eq!(flow.bbr.with_headroom(&flow.window), 84_566);
    // The recovery was spurious: the probe begins again.
    flow.bbr.on_spurious(flow.now, &mut flow.window);
    assert_eq!((flow.bbr.phase, flow.bbr.bounds.inflight_longterm), (Phase::Refill, INFINITE));
}

/// The bound is at least 0.7 of the BDP of 50,000.
#[test]
fn a_bound_is_at_least_seven_tenths_of_the_bdp() {
    let mut flow = Flow::in_up();
    flow.lose(flow.loss(20_000, 5_000));
    assert_eq!(flow.bbr.bounds.inflight_longterm, 35_000);
    let mut flow = Flow::in_up();
    let lost = flow.loss(20_000, 5_000);
    flow.lose(LostSegment { app_limited: true, ..lost });
    assert_eq!((flow.bbr.phase, flow.bbr.bounds.inflight_longterm), (Phase::Down, INFINITE));
}

/// Section 5.3.3.6: after a probe with too many losses, the next one ends at the bound. If it loses little,
/// another one follows at once.
#[test]
fn the_probe_after_a_loss_is_cautious() {
    let mut flow = Flow::in_up();
    flow.lose(flow.loss(100_000, 3_000));
    // (0.02 * 99,000 - 2,000) is below zero, so the bound is before the segment.
    assert_eq!(flow.bbr.bounds.inflight_longterm, 99_000);
    flow.round(500_000, 50_000);
    flow.now += Span::from_secs(3);
    flow.put_off_probe_rtt();
    flow.round(500_000, 50_000);
    assert_eq!(flow.bbr.phase, Phase::Refill);
    flow.round(500_000, 50_000);
    assert_eq!(flow.bbr.phase, Phase::Up);
    let sample = flow.sample(50_000, 500_000);
    let sample = RateSample { sent_inflight: 98_000, cwnd_limited: false, ..sample };
    flow.take(RateSample { inflight: 98_999, ..sample });
    assert_eq!(flow.bbr.phase, Phase::Up);
    flow.take(RateSample { inflight: 99_000, prior_total: 0, ..sample });
    assert_eq!(flow.bbr.phase, Phase::Down);
    flow.round(500_000, 90_000);
    assert_eq!(flow.bbr.phase, Phase::Refill);
    flow.round(500_000, 50_000);
    // This one does not stop at the bound, and raises it by 1, 2 and 4 segments in successive round trips.
    for grown in [1, 2, 4] {
        let before = flow.bbr.bounds.inflight_longterm;
        // The window is at the bound, so a plateau of the rate shows nothing.
        flow.window.cwnd = before;
        let sample = flow.sample(0, 500_000);
        flow.take(RateSample { sent_inflight: before, prior_total: 0, ..sample });
        flow.window.cwnd = before;
        let sample = flow.sample(before, 500_000);
        flow.take(RateSample { sent_inflight: before, inflight: before, ..sample });
        assert_eq!(flow.bbr.phase, Phase::Up);
        let more = (flow.bbr.bounds.inflight_longterm - before) / MSS;
        assert!((grown / 2..=grown).contains(&more), "{more} segments, not {grown}");
    }
}

/// Section 5.5.10.3: once per round trip, the largest of what was delivered and 0.7 of the bound.
#[test]
fn losses_outside_a_probe_reduce_the_bounds_of_the_cycle() {
    let mut flow = Flow::in_cruise();
    let cwnd = flow.window.cwnd;
    flow.lose(flow.loss(50_000, 1_000));
    flow.round(200_000, 50_000);
    // The last round trip had delivered 500,000 per second, which is more than 0.7 of it.
    assert_eq!(flow.bbr.bounds.bandwidth_shortterm, 500_000);
    assert_eq!(flow.bbr.bounds.inflight_shortterm, cwnd * 7 / 10);
    flow.lose(flow.loss(50_000, 1_000));
    flow.round(200_000, 50_000);
    assert_eq!(flow.bbr.bounds.bandwidth_shortterm, 350_000);
    assert_eq!(flow.bbr.bandwidth, 350_000);
    assert_eq!(flow.pacing(), 346_500);
    flow.lose(flow.loss(50_000, 1_000));
    flow.round(200_000, 50_000);
    assert_eq!(flow.bbr.bandwidth, 245_000);
    // A probe forgets them.
    flow.now += Span::from_secs(3);
    flow.round(200_000, 20_000);
    assert_eq!((flow.bbr.phase, flow.bbr.bandwidth), (Phase::Refill, 500_000));
}

/// Section 5.6.4.4: a timeout leaves one segment, and the end of its recovery restores the window.
#[test]
fn a_timeout_leaves_one_segment() {
    let mut flow = Flow::in_cruise();
    let cwnd = flow.window.cwnd;
    flow.bbr.on_timeout(&mut flow.window);
    assert_eq!(flow.window.cwnd, MSS);
    let sample = flow.sample(MSS, 500_000);
    flow.take(RateSample { prior_total: 0, ..sample });
    // Four segments are the least.
    assert_eq!(flow.window.cwnd, 4 * MSS);
    flow.bbr.on_recovered(&mut flow.window);
    assert_eq!(flow.window.cwnd, cwnd);
}

/// Section 5.5.9. The last round trip was acknowledged at once: 50,000 bytes. With 10,000 more in the same
/// instant they are 60,000. Another 60,000 follow in 10 ms, in which 5,000 were expected.
#[test]
fn acknowledgements_that_arrive_together_enlarge_the_window() {
    let mut flow = Flow::in_cruise();
    for (wait, acked, extra) in [(0, 10_000, 60_000), (10, 60_000, 115_000)] {
        flow.now += Span::from_millis(wait);
        let sample = flow.sample(acked, 500_000);
        flow.take(RateSample { prior_total: 0, inflight: 50_000, ..sample });
        // Two BDPs of 50,000 beside it.
        assert_eq!((flow.bbr.aggregation.extra(), flow.window.cwnd), (extra, 100_000 + extra));
    }
}

/// Sections 5.6.1 and 5.6.4: in Startup the window grows to two BDPs of 10,000, and the 10,000 bytes that
/// arrive together.
#[test]
fn startup_has_a_window_of_two_bdps() {
    let mut flow = Flow::new();
    for cwnd in [20_000, 30_000, 30_000] {
        flow.round(100_000, 10_000);
        assert_eq!((flow.bbr.phase, flow.window.cwnd), (Phase::Startup, cwnd));
    }
}

/// Sections 5.5.8 and 5.6.3. A BDP of 1,000 bytes is less than 3 quanta of 2 segments. A millisecond of
/// 30,000,000 bytes per second is a quantum, and one of 100,000,000 is above 64 KiB.
#[test]
fn quanta_have_limits_and_three_fit_in_flight() {
    let mut flow = Flow::in_cruise();
    assert_eq!(flow.bbr.wanted_inflight(10_000, &flow.window), 6_000);
    for (rate, quantum) in [(30_000_000, 30_000), (100_000_000, 65_536), (1, 2_000)] {
        flow.bbr.output.rate = rate;
        flow.bbr.set_quantum(&flow.window);
        assert_eq!(flow.bbr.quantum(), quantum, "{rate}");
    }
}

/// Section 5.5.10.2: without selective acknowledgements, any loss shows too much in flight, and ends Startup
/// (section 5.3.1.3).
#[test]
fn without_sack_one_loss_is_too_much() {
    let mut flow = Flow::in_up();
    let lost = flow.loss(100_000, 1_000);
    flow.lose(LostSegment { sack: false, ..lost });
    // 99,000 before the segment, and (0.02 * 99,000 - 0) / 0.98 = 2,020 of it.
    assert_eq!((flow.bbr.phase, flow.bbr.bounds.inflight_longterm), (Phase::Down, 101_020));
    let mut flow = Flow::new();
    flow.round(1_000_000, 100_000);
    flow.bbr.on_recovery(&mut flow.window);
    let lost = flow.loss(100_000, 1_000);
    flow.lose(LostSegment { sack: false, ..lost });
    let sample = flow.sample(1_000, 1_000_000);
    flow.take(RateSample { sack: false, prior_total: 0, ..sample });
    assert_eq!(flow.bbr.phase, Phase::Drain);
}

/// Section 5.6.4.7: ProbeBW_DOWN is bounded by inflight_longterm, and ProbeBW_CRUISE by 0.85 of it.
#[test]
fn the_bound_limits_the_window_and_cruise_leaves_headroom() {
    let mut flow = Flow::in_up();
    flow.lose(flow.loss(100_000, 3_000));
    for (inflight, phase, cwnd) in [(84_151, Phase::Down, 99_000), (50_000, Phase::Cruise, 84_150)]
    {
        flow.round(500_000, inflight);
        assert_eq!((flow.bbr.phase, flow.window.cwnd), (phase, cwnd));
    }
}

/// The bandwidth is known once Startup has found it.
#[test]
fn startup_reports_no_bandwidth() {
    let mut flow = Flow::new();
    flow.round(100_000, 10_000);
    assert_eq!(flow.bbr.bandwidth(), 0);
    assert_eq!(Flow::in_cruise().bbr.bandwidth(), 500_000);
}
