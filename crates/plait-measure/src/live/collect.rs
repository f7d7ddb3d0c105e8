//! The arrived packets of a load.

use serde::{Deserialize, Serialize};

/// Time of a bin.
pub(super) const BIN_NS: u64 = 20_000_000;
/// Most bins; later packets count in the last one.
const MAX_BINS: usize = 3_000;

/// The packets that arrived in a time.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Bin {
    pub(super) packets: u64,
    /// Sum of their delays beyond the least one of the load.
    pub(super) delays_us: u64,
}

/// All that arrived of a load.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Summary {
    pub(super) packets: u64,
    /// Least difference of the clocks at arrival and departure.
    pub(super) least_ns: i64,
    /// Arrivals since the first one, in bins of 20 ms.
    pub(super) bins: Vec<Bin>,
    /// Time from the first arrival to the last one.
    pub(super) time_ns: u64,
}

/// Collects the packets of a load.
#[derive(Clone, Default, Debug)]
pub(super) struct Collector {
    packets: u64,
    first_ns: u64,
    last_ns: u64,
    least_ns: i64,
    /// Packets of each bin, and the sum of their differences of the clocks beyond that of the first packet.
    bins: Vec<(u64, i64)>,
    reference_ns: i64,
}

impl Collector {
    /// Counts a packet.
    pub(super) fn add(&mut self, sent_ns: u64, arrived_ns: u64) {
        let difference = arrived_ns.wrapping_sub(sent_ns).cast_signed();
        if self.packets == 0 {
            (self.first_ns, self.least_ns, self.reference_ns) =
                (arrived_ns, difference, difference);
        }
        self.packets += 1;
        self.last_ns = self.last_ns.max(arrived_ns);
        self.least_ns = self.least_ns.min(difference);
        let at = usize::try_from(arrived_ns.saturating_sub(self.first_ns) / BIN_NS);
        let at = at.unwrap_or(MAX_BINS).min(MAX_BINS - 1);
        if self.bins.len() <= at {
            self.bins.resize(at + 1, (0, 0));
        }
        if let Some(bin) = self.bins.get_mut(at) {
            bin.0 += 1;
            bin.1 = bin.1.saturating_add(difference.saturating_sub(self.reference_ns));
        }
    }

    /// Returns all that arrived so far.
    pub(super) fn summary(&self) -> Summary {
        let shift = self.reference_ns.saturating_sub(self.least_ns);
        let bin = |(packets, sum): &(u64, i64)| {
            let count = i64::try_from(*packets).unwrap_or(i64::MAX);
            let delays = sum.saturating_add(count.saturating_mul(shift)).max(0);
            Bin { packets: *packets, delays_us: delays.unsigned_abs() / 1_000 }
        };
        Summary {
            packets: self.packets,
            least_ns: self.least_ns,
            bins: self.bins.iter().map(bin).collect(),
            time_ns: self.last_ns.saturating_sub(self.first_ns),
        }
    }
}

impl Summary {
    /// Returns the mean delay of the packets in each bin beyond `least_ns`, in ms.
    pub(super) fn delays_ms(&self, least_ns: i64) -> Vec<f64> {
        let shift = self.least_ns.saturating_sub(least_ns) as f64 / 1e6;
        let full = self.bins.iter().filter(|bin| bin.packets > 0);
        full.map(|bin| bin.delays_us as f64 / bin.packets as f64 / 1e3 + shift).collect()
    }

    /// Returns the packets per second of windows of so many bins, without the first and the last bin.
    pub(super) fn rates(&self, bins: usize) -> Vec<f64> {
        let inner = self.bins.get(1..self.bins.len().saturating_sub(1)).unwrap_or_default();
        let seconds = bins as f64 * BIN_NS as f64 / 1e9;
        let packets = |window: &[Bin]| window.iter().map(|bin| bin.packets).sum::<u64>() as f64;
        inner.chunks_exact(bins.max(1)).map(|window| packets(window) / seconds).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet each millisecond. The delay grows by 0.5 ms with each, so a second of them takes 1.5 s.
    #[test]
    fn rate_and_delay_are_those_of_the_arrivals() {
        let mut collector = Collector::default();
        for at in 0..1_000_u64 {
            let sent = 5_000_000_000 + at * 1_000_000;
            // The clock of the receiver is an hour behind.
            collector.add(sent + 3_600_000_000_000, sent + 20_000_000 + at * 500_000);
        }
        let summary = collector.summary();
        assert_eq!((summary.packets, summary.least_ns), (1_000, 20_000_000 - 3_600_000_000_000));
        assert_eq!(summary.time_ns, 1_498_500_000);
        for rate in summary.rates(5) {
            assert!((rate - 666.7).abs() < 10.0, "{rate}");
        }
        let delays = summary.delays_ms(summary.least_ns);
        assert!(delays[0] < 5.0 && (delays.last().unwrap() - 497.0).abs() < 5.0, "{delays:?}");
        let later = summary.delays_ms(summary.least_ns - 1_000_000);
        assert!((later[0] - delays[0] - 1.0).abs() < 1e-9);
    }
}
