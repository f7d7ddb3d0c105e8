//! The phase that measures the lowest RTT (section 5.3.4.3 of the draft).

use super::*;

/// Sections 5.3.4.3 and 5.6.4.5: after 5 s without a lower RTT, half of the BDP for 200 ms and a round trip.
#[test]
fn probe_rtt_holds_half_of_the_bdp_for_200_ms() {
    let mut flow = Flow::in_cruise();
    let cwnd = flow.window.cwnd;
    flow.now += Span::from_secs(6);
    let sample = flow.sample(0, 500_000);
    flow.take(RateSample { rtt: Some(RTT.times(2)), inflight: 60_000, prior_total: 0, ..sample });
    assert_eq!((flow.bbr.phase, flow.window.cwnd), (Phase::ProbeRtt, 25_000));
    // min_rtt lasts for 10 s.
    assert_eq!(flow.bbr.rtt.value, Some(RTT));
    let sample = flow.sample(0, 0);
    flow.take(RateSample { inflight: 25_000, prior_total: 0, ..sample });
    flow.now += Span::from_millis(50);
    flow.round(250_000, 25_000);
    assert_eq!(flow.bbr.phase, Phase::ProbeRtt);
    // A round trip and 150 ms have passed.
    flow.now += Span::from_millis(51);
    let sample = flow.sample(0, 0);
    flow.take(RateSample { inflight: 25_000, prior_total: 0, ..sample });
    assert_eq!(flow.bbr.phase, Phase::Cruise);
    assert_eq!(flow.window.cwnd, cwnd);
    // A restart after an idle time does without it.
    let mut flow = Flow::in_cruise();
    flow.now += Span::from_secs(6);
    flow.bbr.on_start(flow.now, true, Some(RTT), &mut flow.window);
    assert_eq!(flow.pacing(), 495_000);
    flow.round(500_000, 50_000);
    assert_ne!(flow.bbr.phase, Phase::ProbeRtt);
    // Before the bandwidth is known, it leads back to Startup.
    let mut flow = Flow::new();
    flow.round(100_000, 10_000);
    flow.now += Span::from_secs(6);
    let sample = flow.sample(0, 100_000);
    flow.take(RateSample { inflight: 4_000, prior_total: 0, ..sample });
    assert_eq!(flow.bbr.phase, Phase::ProbeRtt);
    flow.now += Span::from_millis(201);
    flow.round(100_000, 4_000);
    assert_eq!(flow.bbr.phase, Phase::Startup);
}

/// Section 5.3.4.3: the lowest RTT was seen first at 100 ms, so ProbeRTT begins after 5.1 s.
#[test]
fn probe_rtt_begins_after_more_than_five_seconds() {
    for (nanos, begins) in [(0, false), (1, true)] {
        let mut flow = Flow::in_cruise();
        flow.now = Time::ZERO + Span::from_millis(5_100) + Span::from_nanos(nanos);
        let sample = flow.sample(0, 500_000);
        flow.take(RateSample { prior_total: 0, inflight: 50_000, ..sample });
        assert_eq!(flow.bbr.phase == Phase::ProbeRtt, begins);
    }
}

/// Section 5.6.4.4: the window to restore after ProbeRTT is the largest one, also of the recovery before it.
#[test]
fn probe_rtt_keeps_the_window_from_before_a_recovery() {
    let mut flow = Flow::in_cruise();
    flow.bbr.on_recovery(&mut flow.window);
    flow.window.cwnd = 60_000;
    flow.now += Span::from_secs(6);
    let sample = flow.sample(0, 500_000);
    flow.take(RateSample { prior_total: 0, inflight: 60_000, ..sample });
    assert_eq!((flow.bbr.phase, flow.bbr.output.prior_cwnd), (Phase::ProbeRtt, 150_000));
    assert_eq!(flow.window.cwnd, 25_000);
}
