use alloc::vec::Vec;

use plait_base::{RandomStream, Rate, Span, Time};

/// UDP cross traffic in the drop-tail queue of a link. Its packets do not react to losses. A managed
/// queue ignores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrossTraffic {
    /// Mean rate over IP packets.
    pub rate: Rate,
    /// Size of a packet in bytes, including the IP header.
    pub size: u32,
    /// Arrival process of the packets.
    pub arrivals: Arrivals,
}

/// Arrival process of cross traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// Poisson process: the times between packets are independent and exponential.
    Poisson,
    /// Evenly spaced packets during on times. The rate in on times compensates for the off times. Both
    /// times follow a Pareto distribution.
    ParetoOnOff {
        /// Mean on time.
        on: Span,
        /// Mean off time.
        off: Span,
        /// Shape of both distributions in thousandths, above 1000. Up to 2000 the variance is infinite,
        /// and the sum of many sources is self-similar.
        shape_milli: u32,
    },
}

/// Maximum of any drawn time; longer ones are cut to it.
const MAX_GAP: Span = Span::from_secs(3_600);

/// The cross traffic of a link.
#[derive(Clone, Debug)]
pub(crate) struct Cross {
    sources: Vec<Source>,
}

#[derive(Clone, Debug)]
struct Source {
    traffic: CrossTraffic,
    stream: RandomStream,
    /// Arrival time of the next packet.
    next: Time,
    /// Time between two packets: the mean (Poisson), or the exact time while on.
    gap: Span,
    /// End of the current on time.
    off_from: Time,
    passed_bytes: u64,
}

impl Cross {
    /// Returns `None` if no source has a rate above zero. `stream` returns the random stream of the source
    /// at a position in the list.
    pub(crate) fn new(
        list: &[CrossTraffic],
        stream: impl Fn(usize) -> RandomStream,
    ) -> Option<Cross> {
        let source = |(at, traffic): (usize, &CrossTraffic)| Source::new(*traffic, stream(at));
        let sources: Vec<Source> =
            list.iter().enumerate().filter(|(_, it)| it.rate > Rate::ZERO).map(source).collect();
        (!sources.is_empty()).then_some(Cross { sources })
    }

    /// Returns the arrival time of the next packet.
    pub(crate) fn next(&self) -> Time {
        self.sources.iter().map(|source| source.next).min().unwrap_or(Time::NEVER)
    }

    /// Takes the next packet. Calls `pass` with its time and size; `pass` returns true if the queue
    /// accepts it.
    pub(crate) fn take(&mut self, pass: impl FnOnce(Time, u32) -> bool) {
        // If several arrive at one instant, the first in the list is taken.
        let Some(source) = self.sources.iter_mut().min_by_key(|source| source.next) else { return };
        if pass(source.next, source.traffic.size) {
            source.passed_bytes += u64::from(source.traffic.size);
        }
        source.turn();
    }

    /// Returns the accepted bytes of each source.
    pub(crate) fn passed_bytes(&self) -> impl Iterator<Item = u64> {
        self.sources.iter().map(|source| source.passed_bytes)
    }
}

impl Source {
    fn new(traffic: CrossTraffic, stream: RandomStream) -> Source {
        let nanos = |rate: u128| (u128::from(traffic.size) * 8 * 1_000_000_000).checked_div(rate);
        let mean = u128::from(traffic.rate.as_bps());
        let rate = match traffic.arrivals {
            Arrivals::Poisson => mean,
            Arrivals::ParetoOnOff { on, off, .. } => {
                let whole = u128::from((on + off).as_nanos());
                (mean * whole).checked_div(u128::from(on.as_nanos())).unwrap_or(mean)
            }
        };
        let gap = nanos(rate).and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(u64::MAX);
        let gap = Span::from_nanos(gap.max(1)).min(MAX_GAP);
        let (next, off_from) = (Time::ZERO, Time::NEVER);
        let mut source = Source { traffic, stream, next, gap, off_from, passed_bytes: 0 };
        source.begin();
        source
    }

    /// Schedules the first packet, so that the mean rate applies from the start on.
    fn begin(&mut self) {
        match self.traffic.arrivals {
            Arrivals::Poisson => self.turn(),
            Arrivals::ParetoOnOff { on, off, shape_milli } => {
                let whole = (on + off).as_nanos();
                let is_on = self.stream.below(whole.max(1)) < on.as_nanos();
                let first = Span::from_nanos(self.stream.below(self.gap.as_nanos()));
                let wait = if is_on { Span::ZERO } else { self.pareto(off, shape_milli) };
                let begins = Time::ZERO + wait;
                self.off_from = begins + self.pareto(on, shape_milli);
                self.next = begins;
                self.advance(first, on, off, shape_milli);
            }
        }
    }

    /// Schedules the next packet.
    fn turn(&mut self) {
        match self.traffic.arrivals {
            Arrivals::Poisson => {
                let factor = -libm::log(1.0 - self.stream.unit());
                let nanos = (self.gap.as_nanos() as f64 * factor) as u64;
                self.next += Span::from_nanos(nanos).min(MAX_GAP);
            }
            Arrivals::ParetoOnOff { on, off, shape_milli } => {
                self.advance(self.gap, on, off, shape_milli);
            }
        }
    }

    /// Advances by `time` of on time. Skips off times.
    fn advance(&mut self, mut time: Span, on: Span, off: Span, shape_milli: u32) {
        loop {
            let left = self.off_from.since(self.next);
            if time < left {
                self.next += time;
                return;
            }
            time = time.minus(left);
            self.next = self.off_from + self.pareto(off, shape_milli);
            self.off_from = self.next + self.pareto(on, shape_milli);
        }
    }

    /// Draws a Pareto-distributed time with this mean. It is at least 1 ns, so that time advances.
    fn pareto(&mut self, mean: Span, shape_milli: u32) -> Span {
        let shape = f64::from(shape_milli.max(1_001)) / 1_000.0;
        let least = mean.as_nanos() as f64 * (shape - 1.0) / shape;
        let nanos = least * libm::pow(1.0 - self.stream.unit(), -1.0 / shape);
        Span::from_nanos((nanos as u64).max(1)).min(MAX_GAP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    fn traffic(arrivals: Arrivals) -> CrossTraffic {
        CrossTraffic { rate: Rate::from_bps(3 * MBIT), size: 1_000, arrivals }
    }

    fn pareto(on: u64, off: u64, shape_milli: u32) -> Arrivals {
        let (on, off) = (Span::from_millis(on), Span::from_millis(off));
        Arrivals::ParetoOnOff { on, off, shape_milli }
    }

    /// Times of the packets in so many seconds.
    fn times(arrivals: Arrivals, seed: u64, seconds: u64) -> Vec<Time> {
        let stream =
            |at: usize| RandomStream::new(seed, &["cross", if at == 0 { "a" } else { "b" }]);
        let mut cross = Cross::new(&[traffic(arrivals)], stream).unwrap();
        let mut list = Vec::new();
        while cross.next() < Time::ZERO + Span::from_secs(seconds) {
            cross.take(|at, size| {
                assert_eq!(size, 1_000);
                list.push(at);
                true
            });
        }
        assert_eq!(cross.passed_bytes().sum::<u64>(), 1_000 * list.len() as u64);
        list
    }

    #[test]
    fn poisson_packets_come_at_exponential_times_with_the_mean_rate() {
        // 375 a second; the count of 200 s has a deviation of 0.4 %.
        let list = times(Arrivals::Poisson, 1, 200);
        assert!(list.len().abs_diff(75_000) < 1_200, "{}", list.len());
        let gap = Span::from_nanos(8_000_000_000 / 3_000);
        let long = list.windows(2).filter(|pair| pair[1].since(pair[0]) > gap).count();
        let share = long as f64 / list.len() as f64;
        assert!((share - 0.368).abs() < 0.01, "{share}");
        assert_eq!(list, times(Arrivals::Poisson, 1, 200));
        assert_ne!(list, times(Arrivals::Poisson, 2, 200));
    }

    #[test]
    fn on_off_packets_come_at_twice_the_rate_in_half_of_the_time() {
        let list = times(pareto(100, 100, 1_900), 3, 4_000);
        // A second of 1900 thousandths is not far from infinite variance.
        let expected = 375.0 * 4_000.0;
        assert!((list.len() as f64 / expected - 1.0).abs() < 0.05, "{}", list.len());
        let gap = Span::from_nanos(8_000_000_000 / 6_000);
        let near = |span: Span| span.as_nanos().abs_diff(gap.as_nanos()) <= 1;
        let even = list.windows(2).filter(|pair| near(pair[1].since(pair[0]))).count();
        // 75 packets in a time on: all but one follow at the same distance.
        assert!(even as f64 > 0.98 * list.len() as f64, "{even} of {}", list.len());
        let rests = list.windows(2).map(|pair| pair[1].since(pair[0])).filter(|it| !near(*it));
        let (count, sum) = rests.fold((0u64, 0u64), |(n, sum), it| (n + 1, sum + it.as_nanos()));
        let mean = sum / count;
        assert!(mean.abs_diff(101_000_000) < 10_000_000, "{mean}");
    }

    /// With a shape of 1.5 single runs differ; the mean over many does not.
    #[test]
    fn the_mean_rate_of_heavy_tails_is_that_of_many_runs() {
        let count: usize =
            (0..200).map(|seed| times(pareto(500, 500, 1_500), seed, 60).len()).sum();
        let share = count as f64 / (375.0 * 60.0 * 200.0);
        assert!((share - 1.0).abs() < 0.05, "{share}");
        let alike = times(pareto(500, 500, 1_500), 7, 60);
        assert_eq!(alike, times(pareto(500, 500, 1_500), 7, 60));
        assert!(alike.is_sorted());
    }

    #[test]
    fn nothing_comes_without_a_rate() {
        let none = CrossTraffic { rate: Rate::ZERO, ..traffic(Arrivals::Poisson) };
        assert!(Cross::new(&[none], |_| RandomStream::new(1, &[])).is_none());
        assert!(Cross::new(&[], |_| RandomStream::new(1, &[])).is_none());
    }
}
