use alloc::sync::Arc;
use alloc::vec::Vec;

use plait_base::{Chance, Rate, Span, Time};

use crate::schedule::Schedule;
use crate::{CrossTraffic, LossModel, Reorder, Trace};

/// Full packet of the default queue's lower bound, in bytes.
const FULL_PACKET: u64 = 1500;

/// What one direction of a path does to packets.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// How fast packets leave the queue, counted over whole IP packets.
    pub rate: RateSource,
    /// What the queue holds, the packet in transmission included.
    pub queue: QueueLimit,
    /// What the queue does before it is full.
    pub aqm: Aqm,
    /// Propagation delay, from departure to arrival.
    pub delay: Span,
    /// Later propagation delays, ascending: each holds for what departs from its time on, until the
    /// next one's. A packet never overtakes another: where the delay falls, those that departed
    /// earlier arrive first, and those behind wait for them.
    pub delay_steps: Vec<(Time, Span)>,
    /// Random extra delay, uniform in `[0, jitter]`; it never lets a packet overtake another.
    pub jitter: Span,
    /// Loss of packets before they reach the queue.
    pub loss: LossModel,
    /// Packets that arrive later than they should.
    pub reorder: Reorder,
    /// Chance of each packet to arrive twice.
    pub duplicate: Chance,
    /// Chance of each packet to arrive damaged.
    pub corrupt: Chance,
    /// What others send through the queue, where it is a drop-tail queue.
    pub cross: Vec<CrossTraffic>,
    /// The longest packet in bytes that gets through, each from its time on, until the next one's;
    /// before the first any does. A longer one vanishes, and nobody is told.
    pub mtu: Vec<(Time, u32)>,
    /// Outages `[from, to)`, in any order; [`Time::NEVER`] as the end means for ever.
    pub outages: Vec<(Time, Time)>,
    /// From here on nothing is lost at random, held back, doubled or damaged any more;
    /// [`Time::NEVER`] where that goes on.
    pub heals: Time,
}

/// The rate at which a link sends.
#[derive(Clone, Debug)]
pub enum RateSource {
    /// One rate all the time.
    Fixed(Rate),
    /// Each rate holds from its time until the next one's; the first holds before its time too,
    /// the last for ever. Of several steps at one time the last counts. No step means no limit.
    /// A rate of zero holds the queue.
    Steps(Vec<(Time, Rate)>),
    /// A recorded link, repeated without end.
    Trace {
        /// The recording.
        trace: Arc<Trace>,
        /// Where in the recording the link starts; wraps at its end.
        offset: Span,
    },
}

/// Active queue management.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Aqm {
    /// None: a packet that enters the queue leaves it.
    #[default]
    DropTail,
    /// CoDel (RFC 8289): once packets have waited for the target or longer during an interval, it
    /// drops at the head of the queue, faster and faster until they wait for less.
    Codel {
        /// The wait that may stand.
        target: Span,
        /// How long it may stand above the target, about the round-trip time of slow connections.
        interval: Span,
    },
}

impl Aqm {
    /// CoDel with the parameters of the Internet (RFC 8289 sections 4.2 and 4.3): 5 ms and 100 ms.
    pub const CODEL: Aqm =
        Aqm::Codel { target: Span::from_millis(5), interval: Span::from_millis(100) };
}

/// How much a queue holds at most. A packet that finds the queue empty is always taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// Everything.
    Infinite,
    /// At most so many bytes, those of the packet in transmission and of the new one included.
    Bytes(u64),
    /// At most so many packets, the one in transmission and the new one included.
    Packets(u32),
    /// At a fixed rate and without AQM: what would wait longer than this before its transmission
    /// begins is dropped. Otherwise: as many [`QueueLimit::Bytes`] as the mean rate sends in this
    /// time.
    Delay(Span),
}

impl LinkConfig {
    /// A link with the default queue for its rate, on which nothing ever goes wrong.
    #[must_use]
    pub fn new(rate: RateSource, delay: Span) -> LinkConfig {
        LinkConfig {
            queue: LinkConfig::default_queue(rate.mean_rate()),
            rate,
            aqm: Aqm::DropTail,
            delay,
            delay_steps: Vec::new(),
            jitter: Span::ZERO,
            loss: LossModel::NEVER,
            reorder: Reorder::default(),
            duplicate: Chance::NEVER,
            corrupt: Chance::NEVER,
            cross: Vec::new(),
            mtu: Vec::new(),
            outages: Vec::new(),
            heals: Time::NEVER,
        }
    }

    /// The queue of a link whose configuration names none: 100 ms at `rate`, and at least 10
    /// packets of 1500 bytes.
    #[must_use]
    pub fn default_queue(rate: Rate) -> QueueLimit {
        if rate.is_infinite() {
            return QueueLimit::Infinite;
        }
        QueueLimit::Bytes(rate.bytes_in(Span::from_millis(100)).max(10 * FULL_PACKET))
    }
}

impl RateSource {
    /// The mean rate, rounded down to whole bits per second: of a trace over one lap, of steps
    /// from the first one on, where the last, which has no end, counts as long as the average of
    /// those before it.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        match self {
            RateSource::Fixed(rate) => *rate,
            RateSource::Steps(steps) => mean_of(&ordered(steps)),
            RateSource::Trace { trace, .. } => trace.mean_rate(),
        }
    }

    /// The one rate that holds all the time, where there is only one.
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

/// Steps in order of time, one for each time.
fn ordered(steps: &[(Time, Rate)]) -> Vec<(Time, Rate)> {
    let mut list = steps.to_vec();
    list.sort_by_key(|step| step.0);
    // Keeps the later of two steps at one time: the kept element takes the dropped one's rate.
    list.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = next.1;
        }
        same
    });
    list
}

/// The rows of a schedule that follows `steps` and never ends.
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
    // Lengths are scaled by the number of steps but one, which keeps the average an integer.
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
