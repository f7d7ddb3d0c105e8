//! Values of a path from the packets that arrived.

use super::collect::Summary;
use crate::estimate::Estimate;
use plait_lab::stats::percentile;

/// Bins of a window, so that a window has 100 ms.
const WINDOW_BINS: usize = 5;
/// Part of a load before which its queue may still fill.
const WARM_UP: f64 = 0.3;
/// Share of the sent rate that arrives if the load is below the rate of the link.
const PASSES: f64 = 0.9;
/// Least factor to either end of the range of a rate. Links vary from one measurement to the next.
const RATE_SPREAD: f64 = 1.02;
/// Least factor to either end of the range of a queue.
const QUEUE_SPREAD: f64 = 1.1;
/// Upper end of the range of a queue that no load filled, over the deepest one seen.
const UNFILLED: f64 = 3.0;

/// A load as it was sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Offered {
    pub(super) packets: u64,
    pub(super) packet_bits: f64,
    pub(super) time_ns: u64,
}

/// An answered probe.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Echo {
    pub(super) rtt_ms: f64,
    /// Difference of the clocks and delay from client to server.
    pub(super) up_ms: f64,
    /// Delay and difference of the clocks from server to client.
    pub(super) down_ms: f64,
}

impl Offered {
    /// Returns the rate at which it was sent.
    pub(super) fn rate_bps(&self) -> f64 {
        self.packets as f64 * self.packet_bits * 1e9 / self.time_ns.max(1) as f64
    }

    /// Returns true if the link carried the load.
    pub(super) fn passed(&self, arrived: &Summary) -> bool {
        arrival_bps(arrived, self.packet_bits) >= PASSES * self.rate_bps()
    }
}

/// Returns the rate between the first arrival and the last one.
pub(super) fn arrival_bps(arrived: &Summary, packet_bits: f64) -> f64 {
    arrived.packets.saturating_sub(1) as f64 * packet_bits * 1e9 / arrived.time_ns.max(1) as f64
}

/// Returns the rates of windows of 100 ms in bits per second, after the queue has filled.
pub(super) fn windows(arrived: &Summary, packet_bits: f64) -> Vec<f64> {
    let all = arrived.rates(WINDOW_BINS);
    let skipped = (all.len() as f64 * WARM_UP) as usize;
    all.into_iter().skip(skipped).map(|packets| packets * packet_bits).collect()
}

/// Returns the rate under a load that is above it.
pub(super) fn rate(arrived: &Summary, packet_bits: f64) -> Option<Estimate> {
    let windows = windows(arrived, packet_bits);
    let mean = match windows.len() {
        0 => Estimate::spread(arrival_bps(arrived, packet_bits), 1.2),
        _ => Estimate::mean_of(&windows)?,
    };
    (mean.value > 0.0).then(|| mean.at_least(RATE_SPREAD))
}

/// Returns the depth of the queue under a load that is above the rate, in ms. `least_ns` is the least difference of
/// the clocks of packets of this size in this direction. The second value is false if the load did not fill it.
pub(super) fn queue(arrived: &Summary, least_ns: i64, lost: u64) -> Option<(Estimate, bool)> {
    let delays = arrived.delays_ms(least_ns);
    let half = delays.get(delays.len() / 2..).filter(|it| !it.is_empty())?;
    let mut sorted = half.to_vec();
    sorted.sort_by(f64::total_cmp);
    let value = percentile(&sorted, 75.0)?;
    // A queue that is full loses packets.
    if lost == 0 {
        let deepest = sorted.last().copied()?.max(1.0);
        return Some((Estimate { value: deepest, low: deepest, high: UNFILLED * deepest }, false));
    }
    let (low, high) = (percentile(&sorted, 10.0)?, percentile(&sorted, 95.0)?);
    let value = value.max(1.0);
    Some((
        Estimate { value, low: low.clamp(0.5, value), high: high.max(value) }
            .at_least(QUEUE_SPREAD),
        true,
    ))
}

/// Returns RTT and jitter of an idle path in ms. `sending_ms` is the time that a probe and its echo take to be sent.
pub(super) fn idle(echoes: &[Echo], sending_ms: f64) -> Option<(Estimate, Estimate)> {
    let mut rtts: Vec<f64> = echoes.iter().map(|it| it.rtt_ms).collect();
    rtts.sort_by(f64::total_cmp);
    let (least, quarter) = (rtts.first().copied()?, percentile(&rtts, 25.0)?);
    let value = (least - sending_ms).max(0.01);
    let rtt = Estimate { value, low: value, high: (quarter - sending_ms).max(value) };
    let excess = rtts.iter().sum::<f64>() / rtts.len() as f64 - least;
    // Each way has a delay from zero to the jitter, so both together have the jitter in the mean.
    Some((rtt.at_least(1.03), Estimate::spread(excess.max(0.001), 1.4)))
}

#[cfg(test)]
mod tests {
    use super::super::collect::Collector;
    use super::*;

    const PACKET_BITS: f64 = 11_424.0;

    /// Sends 1000 packets a second for 3 s through a link of 666.7 packets a second with a queue of 100 ms.
    fn overloaded() -> (Summary, Offered) {
        let mut collector = Collector::default();
        let (mut free_ns, service_ns) = (0_u64, 1_500_000_u64);
        for at in 0..3_000_u64 {
            let sent = at * 1_000_000;
            if free_ns.saturating_sub(sent) > 100_000_000 {
                continue;
            }
            free_ns = free_ns.max(sent) + service_ns;
            collector.add(sent, free_ns + 10_000_000);
        }
        let offered = Offered { packets: 3_000, packet_bits: PACKET_BITS, time_ns: 3_000_000_000 };
        (collector.summary(), offered)
    }

    #[test]
    fn a_full_link_shows_its_rate_and_its_queue() {
        let (arrived, offered) = overloaded();
        assert!(!offered.passed(&arrived) && arrived.packets < 2_200);
        let rate = rate(&arrived, PACKET_BITS).unwrap();
        let true_rate = PACKET_BITS / 0.0015;
        assert!((rate.value / true_rate - 1.0).abs() < 0.02, "{rate:?} {true_rate}");
        assert!(rate.low <= true_rate && true_rate <= rate.high, "{rate:?}");
        let lost = offered.packets - arrived.packets;
        let (queue, full) = queue(&arrived, arrived.least_ns, lost).unwrap();
        assert!(full && (queue.value - 100.0).abs() < 5.0, "{queue:?}");
    }

    #[test]
    fn a_queue_that_no_load_fills_is_at_least_as_deep_as_seen() {
        let mut collector = Collector::default();
        (0..1_000_u64).for_each(|at| collector.add(at * 1_000_000, at * 1_500_000));
        let arrived = collector.summary();
        let (queue, full) = queue(&arrived, arrived.least_ns, 0).unwrap();
        assert!(!full && queue.low > 480.0 && queue.high > 1_400.0, "{queue:?}");
    }

    #[test]
    fn idle_probes_show_rtt_and_jitter() {
        let echo = |rtt_ms| Echo { rtt_ms, up_ms: 0.0, down_ms: 0.0 };
        let echoes: Vec<Echo> = (0..=100).map(|at| echo(20.0 + f64::from(at) * 0.04)).collect();
        let (rtt, jitter) = idle(&echoes, 0.5).unwrap();
        assert_eq!(rtt.value, 19.5);
        assert!((jitter.value - 2.0).abs() < 0.01 && jitter.low < 2.0, "{jitter:?}");
        assert_eq!(idle(&[], 0.0), None);
    }
}
