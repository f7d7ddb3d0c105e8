use alloc::sync::Arc;
use alloc::vec::Vec;

use plait_base::{Rate, Span, Time};

use crate::schedule::Schedule;
use crate::{CrossTraffic, Impairments, Trace};

/// Size in bytes of a full packet, for the lower bound of the default queue.
const FULL_PACKET: u64 = 1500;

/// Configuration of one direction of a path.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Rate of the transmitter, counted over whole IP packets.
    pub rate: RateSource,
    /// Limit of the queue, including the packet in transmission.
    pub queue: QueueLimit,
    /// Active queue management.
    pub aqm: Aqm,
    /// Propagation delay, from departure to arrival.
    pub delay: Span,
    /// Later propagation delays, in ascending order of time. Each applies to packets that depart from its time
    /// on, until the next step. If the delay falls, later packets wait until the earlier ones have
    /// arrived: no packet overtakes another.
    pub delay_steps: Vec<(Time, Span)>,
    /// Random loss, jitter and faults.
    pub impairments: Impairments,
    /// Cross traffic through the queue. A managed queue ignores it.
    pub cross: Vec<CrossTraffic>,
    /// MTU in bytes, each from its time on until the next step; unlimited before the first. A longer packet is
    /// dropped without an ICMP error.
    pub mtu: Vec<(Time, u32)>,
    /// Outages `[from, to)`, in any order. An end of [`Time::NEVER`] means for ever.
    pub outages: Vec<(Time, Time)>,
}

/// The rate at which a link sends.
#[derive(Clone, Debug)]
pub enum RateSource {
    /// One rate all the time.
    Fixed(Rate),
    /// Each rate applies from its time until the next step. The first also applies before its time, the
    /// last applies for ever. If several steps have one time, the last applies. Without steps the rate is
    /// unlimited. A rate of zero stops the queue.
    Steps(Vec<(Time, Rate)>),
    /// A recorded link, repeated without end.
    Trace {
        /// The recording.
        trace: Arc<Trace>,
        /// Position in the recording at which the link starts, modulo its duration.
        offset: Span,
    },
}

/// Active queue management.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Aqm {
    /// None: packets are dropped only if the queue is full.
    #[default]
    DropTail,
    /// CoDel (RFC 8289). When packets have waited for at least `target` during an `interval`, CoDel drops
    /// at the head of the queue. It drops at an increasing rate until they wait for less.
    Codel {
        /// Acceptable standing queue delay.
        target: Span,
        /// How long the delay may exceed the target: about the round-trip time of slow connections.
        interval: Span,
    },
}

impl Aqm {
    /// CoDel with the parameters for the Internet (RFC 8289 sections 4.2 and 4.3): 5 ms and 100 ms.
    pub const CODEL: Aqm =
        Aqm::Codel { target: Span::from_millis(5), interval: Span::from_millis(100) };
}

/// Limit of a queue. A packet that finds the queue empty is always accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// No limit.
    Infinite,
    /// Maximum bytes, including the packet in transmission and the new one.
    Bytes(u64),
    /// Maximum packets, including the packet in transmission and the new one.
    Packets(u32),
    /// Maximum delay. At a fixed rate and without AQM, a packet is dropped if it would wait longer than this
    /// before its transmission. Otherwise the limit is the number of bytes that the mean rate sends in this time.
    Delay(Span),
}

impl LinkConfig {
    /// Returns a link with the default queue for its rate and without faults.
    #[must_use]
    pub fn new(rate: RateSource, delay: Span) -> LinkConfig {
        LinkConfig {
            queue: LinkConfig::default_queue(rate.mean_rate()),
            rate,
            aqm: Aqm::DropTail,
            delay,
            delay_steps: Vec::new(),
            impairments: Impairments::NONE,
            cross: Vec::new(),
            mtu: Vec::new(),
            outages: Vec::new(),
        }
    }

    /// Returns the default queue: 100 ms at `rate`, but at least 10 packets of 1500 bytes. It is unlimited
    /// if the rate is.
    #[must_use]
    pub fn default_queue(rate: Rate) -> QueueLimit {
        if rate.is_infinite() {
            return QueueLimit::Infinite;
        }
        QueueLimit::Bytes(rate.bytes_in(Span::from_millis(100)).max(10 * FULL_PACKET))
    }
}

impl RateSource {
    /// Returns the mean rate, rounded down to whole bits per second.
    ///
    /// For a trace, it is the mean of one lap. For steps, it is the mean from the first step on. The last
    /// step has no end, so it counts with the average length of the steps before it.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        match self {
            RateSource::Fixed(rate) => *rate,
            RateSource::Steps(steps) => mean_of(&ordered(steps)),
            RateSource::Trace { trace, .. } => trace.mean_rate(),
        }
    }

    /// Returns the rate if it never changes.
    pub(crate) fn constant(&self) -> Option<Rate> {
        match self {
            RateSource::Fixed(rate) => Some(*rate),
            RateSource::Steps(steps) => match ordered(steps).as_slice() {
                [] => Some(Rate::INFINITE),
                [(_, rate)] => Some(*rate),
                _ => None,
            },
            RateSource::Trace { .. } => None,
        }
    }
}

/// Sorts the steps by time and keeps one for each time.
fn ordered(steps: &[(Time, Rate)]) -> Vec<(Time, Rate)> {
    let mut list = steps.to_vec();
    list.sort_by_key(|step| step.0);
    // Of two steps at one time the later one applies: the kept element takes the rate of the dropped one.
    list.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = next.1;
        }
        same
    });
    list
}

/// Returns an endless schedule that follows `steps`.
pub(crate) fn schedule_of(steps: &[(Time, Rate)]) -> Schedule {
    let list = ordered(steps);
    let ends = list.iter().skip(1).map(|step| step.0.as_nanos()).chain([u64::MAX]);
    Schedule::endless(ends.zip(list.iter().map(|step| step.1)).collect())
}

fn mean_of(steps: &[(Time, Rate)]) -> Rate {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return Rate::INFINITE;
    };
    if steps.len() == 1 {
        return first.1;
    }
    if steps.iter().any(|step| step.1.is_infinite()) {
        return Rate::INFINITE;
    }
    let count = steps.len() as u64 - 1;
    // Lengths are multiplied by the number of steps less one, which keeps the average an integer.
    let average = u128::from(last.0.since(first.0).as_nanos());
    let mut units = 0u128;
    for (step, next) in steps.iter().zip(&steps[1..]) {
        let length = u128::from(next.0.since(step.0).as_nanos()) * u128::from(count);
        units = units.saturating_add(length.saturating_mul(u128::from(step.1.as_bps())));
    }
    units = units.saturating_add(average.saturating_mul(u128::from(last.1.as_bps())));
    let total = average * u128::from(count) + average;
    Rate::from_bps(u64::try_from(units / total.max(1)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn mbit(n: u64) -> Rate {
        Rate::from_bps(n * 1_000_000)
    }

    fn at_secs(n: u64) -> Time {
        Time::ZERO + Span::from_secs(n)
    }

    #[test]
    fn the_default_queue_is_100_ms_and_at_least_ten_packets() {
        assert_eq!(LinkConfig::default_queue(mbit(25)), QueueLimit::Bytes(312_500));
        assert_eq!(LinkConfig::default_queue(mbit(1)), QueueLimit::Bytes(15_000));
        assert_eq!(LinkConfig::default_queue(Rate::ZERO), QueueLimit::Bytes(15_000));
        assert_eq!(LinkConfig::default_queue(Rate::INFINITE), QueueLimit::Infinite);
    }

    #[test]
    fn the_mean_of_steps_gives_the_endless_last_one_the_average_length() {
        let two = RateSource::Steps(vec![(at_secs(0), mbit(10)), (at_secs(20), mbit(4))]);
        assert_eq!(two.mean_rate(), mbit(7));
        // 10 s at 2, 30 s at 6, and 20 s (the average) at 9: 380 / 60.
        let three = RateSource::Steps(vec![
            (at_secs(10), mbit(6)),
            (at_secs(40), mbit(9)),
            (at_secs(0), mbit(2)),
        ]);
        assert_eq!(three.mean_rate(), Rate::from_bps(6_333_333));
        assert_eq!(RateSource::Steps(vec![(at_secs(5), mbit(3))]).mean_rate(), mbit(3));
        assert_eq!(RateSource::Steps(vec![]).mean_rate(), Rate::INFINITE);
        let burst = RateSource::Steps(vec![(at_secs(0), mbit(1)), (at_secs(1), Rate::INFINITE)]);
        assert_eq!(burst.mean_rate(), Rate::INFINITE);
    }

    #[test]
    fn extreme_steps_do_not_overflow_the_mean() {
        let huge = Rate::from_bps(u64::MAX - 1);
        let steps = vec![(Time::ZERO, huge), (Time::from_nanos(u64::MAX - 1), huge)];
        assert!(RateSource::Steps(steps).mean_rate() > mbit(1));
    }

    #[test]
    fn of_steps_at_one_time_the_last_counts() {
        let steps = vec![(at_secs(0), mbit(1)), (at_secs(0), mbit(2))];
        assert_eq!(RateSource::Steps(steps).constant(), Some(mbit(2)));
    }
}
