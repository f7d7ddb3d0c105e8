//! The small differences in timing between any two runs on physical hosts.
//!
//! Without them, a scenario without randomness has exactly one outcome. A difference between two
//! rows may then be an accident of phases: a segment that arrives one microsecond earlier decides
//! which path is free. A comparison therefore runs such a scenario several times with host jitter,
//! and averages over phases. The seed of a run gives the jitter, which is the same for all rows.

use super::Scenario;
use plait_base::{RandomStream, Span, Time};
use plait_link::LinkConfig;
use std::fmt;

/// The jitter of a comparison without other randomness. It is as large as the delays that timers,
/// interrupts and the scheduler of an idle host add to a packet.
pub const DEFAULT_HOST_JITTER: Span = Span::from_micros(200);

/// The largest jitter that a scenario may have.
pub const MAX_HOST_JITTER: Span = Span::from_millis(10);

/// The application starts within this time: the phase of a timer with 100 ticks per second.
const TIMER_TICK: Span = Span::from_millis(10);

/// Host jitter in a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HostJitter {
    /// No jitter. [`Scenario::compared`] turns it into `Comparison` if nothing else is random.
    #[default]
    Auto,
    /// [`DEFAULT_HOST_JITTER`].
    Comparison,
    /// This much, in addition to other randomness.
    Fixed(Span),
}

/// Random timing of hosts in a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HostTiming {
    /// No host jitter, not even in a comparison.
    pub exact: bool,
    /// Host jitter.
    pub jitter: HostJitter,
}

/// Writes `auto` or the time.
impl fmt::Display for HostJitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostJitter::Auto | HostJitter::Comparison => f.write_str("auto"),
            HostJitter::Fixed(span) => span.fmt(f),
        }
    }
}

impl Scenario {
    /// Returns the scenario as a comparison runs it. If nothing is random, it has host jitter,
    /// unless it is exact or ideal.
    #[must_use]
    pub fn compared(&self) -> Scenario {
        let mut scenario = self.clone();
        if scenario.timing.jitter == HostJitter::Auto && !scenario.is_random() {
            scenario.timing.jitter = HostJitter::Comparison;
        }
        scenario
    }

    /// Returns the jitter of the hosts; zero for none.
    #[must_use]
    pub fn host_jitter(&self) -> Span {
        match self.timing.jitter {
            _ if self.timing.exact || self.ideal => Span::ZERO,
            HostJitter::Auto => Span::ZERO,
            HostJitter::Comparison => DEFAULT_HOST_JITTER,
            HostJitter::Fixed(span) => span,
        }
    }

    /// Returns when the application starts in the run of `seed`: at 0 without jitter, otherwise
    /// within the first 10 ms.
    #[must_use]
    pub fn start(&self, seed: u64) -> Time {
        match self.host_jitter() {
            Span::ZERO => Time::ZERO,
            _ => {
                let mut stream = RandomStream::new(seed, &["host jitter", "start"]);
                Time::ZERO + Span::from_nanos(stream.below(TIMER_TICK.as_nanos()))
            }
        }
    }

    /// Adds host jitter to one direction of a path in the run of `seed`. A phase is drawn once per
    /// run. A delay is drawn for each packet, and keeps packets in order. Both are uniform from 0
    /// to J. The propagation is J shorter, so that the mean delay stays the same. If it is below J,
    /// the mean delay grows.
    pub(crate) fn add_host_jitter(&self, link: &mut LinkConfig, seed: u64, path: &str, way: &str) {
        let jitter = self.host_jitter();
        if jitter == Span::ZERO {
            return;
        }
        let mut stream = RandomStream::new(seed, &["host jitter", path, way]);
        let phase = Span::from_nanos(stream.within(0, jitter.as_nanos()));
        let shifted = |delay: Span| (delay + phase).minus(jitter);
        link.delay = shifted(link.delay);
        link.delay_steps.iter_mut().for_each(|(_, delay)| *delay = shifted(*delay));
        link.impairments.jitter += jitter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawScenario;
    use plait_base::Rate;

    fn scenario(more: &[(&str, &str)]) -> Scenario {
        let mut raw = RawScenario::new();
        for (name, text) in [
            ("path", "wifi:rtt=20ms,rate=25mbit"),
            ("path", "lte:rtt=60ms,rate=10mbit"),
            ("workload", "download:64kB"),
        ]
        .iter()
        .chain(more)
        {
            raw.argument(name, text).unwrap();
        }
        raw.build().unwrap()
    }

    #[test]
    fn a_comparison_has_jitter_only_if_nothing_else_is_random() {
        let plain = scenario(&[]);
        assert_eq!((plain.host_jitter(), plain.effective_runs()), (Span::ZERO, 1));
        let compared = plain.compared();
        assert_eq!((compared.host_jitter(), compared.effective_runs()), (DEFAULT_HOST_JITTER, 30));
        // The command line omits the jitter that a comparison adds.
        assert_eq!(compared.command_line(), plain.command_line());
        for exact in [scenario(&[("exact", "on")]), scenario(&[("ideal", "on")])] {
            assert_eq!(exact.compared().effective_runs(), 1);
        }
        let lossy = scenario(&[("path", "c:rtt=5ms,rate=1mbit,loss=1%")]).compared();
        assert_eq!((lossy.host_jitter(), lossy.effective_runs()), (Span::ZERO, 30));
        let fixed = scenario(&[("host-jitter", "50us")]);
        assert_eq!((fixed.host_jitter(), fixed.effective_runs()), (Span::from_micros(50), 30));
        assert!(fixed.command_line().contains("--host-jitter 50us"));
    }

    #[test]
    fn contradictions_and_long_jitter_are_refused() {
        for (more, problem) in [
            (&[("host-jitter", "11ms")][..], "at most 10ms"),
            (&[("host-jitter", "50us"), ("exact", "on")], "--exact"),
        ] {
            let mut raw = scenario(&[]).raw();
            more.iter().for_each(|(name, text)| raw.argument(name, text).unwrap());
            let error = raw.build().unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn phases_differ_by_run_path_and_direction_and_keep_the_mean() {
        let scenario = scenario(&[]).compared();
        let delay = |seed: u64, path: &str, way: &str| {
            let mut link = LinkConfig::new(
                plait_link::RateSource::Fixed(Rate::INFINITE),
                Span::from_millis(10),
            );
            scenario.add_host_jitter(&mut link, seed, path, way);
            assert_eq!(link.impairments.jitter, DEFAULT_HOST_JITTER);
            link.delay
        };
        assert_eq!(delay(1, "a", "down"), delay(1, "a", "down"));
        let others = [delay(2, "a", "down"), delay(1, "b", "down"), delay(1, "a", "up")];
        assert!(others.iter().all(|other| *other != delay(1, "a", "down")));
        // 10 ms - 200 us, plus a mean phase of 100 us, plus a mean delay of 100 us per packet.
        let sum: u64 = (0..500).map(|seed| delay(seed, "a", "down").as_nanos()).sum();
        assert!((sum / 500).abs_diff(9_900_000) < 10_000, "{}", sum / 500);
        let starts: Vec<Time> = (0..500).map(|seed| scenario.start(seed)).collect();
        assert!(starts.iter().all(|start| *start < Time::ZERO + TIMER_TICK));
        let mean = starts.iter().map(|start| start.since(Time::ZERO).as_nanos()).sum::<u64>() / 500;
        assert!(mean.abs_diff(5_000_000) < 500_000, "{mean}");
    }
}
