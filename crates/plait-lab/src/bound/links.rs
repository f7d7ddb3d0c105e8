//! The paths of a run, as a bound on what they can deliver.

use plait_app::Role;
use plait_base::{Rate, Span, Time};
use plait_link::{Capacity, LinkConfig, RateSource};
use plait_sim::{PathSetup, Setup, SharedLink};

/// Rounds of slow start that are looked at. Later ones allow more than any link carries.
const MAX_ROUNDS: u32 = 40;

/// The limits of the senders in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Largest part of an IP packet that is payload.
    pub(super) efficiency: f64,
    /// Payload bytes that a path may send in its first round trip; infinite without slow start.
    pub(super) first_window: f64,
    /// Payload bytes that may be sent and not acknowledged on all paths together.
    pub(super) buffer: f64,
}

/// The paths of a run in the direction of the data.
#[derive(Clone, Debug)]
pub(super) struct Links {
    paths: Vec<PathCapacity>,
    shared: Vec<Pipe>,
    limits: Limits,
}

/// One path.
#[derive(Clone, Debug)]
struct PathCapacity {
    pipe: Pipe,
    /// The host's own link.
    host: Capacity,
    /// Index of the shared link that follows.
    via: Option<usize>,
    /// Least time from sending to arrival.
    there: Span,
    /// Least time of the other direction.
    back: Span,
    /// When the sender may send the first data.
    opens: Time,
}

/// A link and its least delay.
#[derive(Clone, Debug)]
struct Pipe {
    capacity: Capacity,
    delay: Span,
}

impl Pipe {
    fn new(link: &LinkConfig) -> Pipe {
        let later = link.delay_steps.iter().map(|(_, delay)| *delay);
        let delay = later.fold(link.delay, Span::min);
        Pipe { capacity: Capacity::new(&link.rate), delay }
    }
}

impl Links {
    /// Returns the paths of `setup` for data from `sender`. Each of them may be the first to be dialled,
    /// so its handshake begins with the run.
    pub(super) fn new(setup: &Setup, sender: Role, begin: Time, limits: Limits) -> Links {
        let toward = |link: &SharedLink| match sender {
            Role::Server => (Pipe::new(&link.down), Pipe::new(&link.up)),
            Role::Client => (Pipe::new(&link.up), Pipe::new(&link.down)),
        };
        let shared: Vec<(Pipe, Pipe)> = setup.shared.iter().map(toward).collect();
        let way = |path: &PathSetup| {
            let (data, acks, host): (&LinkConfig, &LinkConfig, Rate) = match sender {
                Role::Server => (&path.down, &path.up, path.nic_down),
                Role::Client => (&path.up, &path.down, path.nic_up),
            };
            let via = path.via.filter(|index| *index < shared.len());
            let more = via.and_then(|index| shared.get(index));
            let (pipe, back) = (Pipe::new(data), Pipe::new(acks));
            let there = pipe.delay + more.map_or(Span::ZERO, |it| it.0.delay);
            let back = back.delay + more.map_or(Span::ZERO, |it| it.1.delay);
            // SYN, SYN/ACK, third ACK: the client may send data with the third ACK, the server when
            // it arrives. Towards the server, `there` is the way of the SYN.
            let opens = match sender {
                Role::Client => begin + there + back,
                Role::Server => begin + back + there + back,
            };
            let host = Capacity::new(&RateSource::Fixed(host));
            PathCapacity { pipe, host, via, there, back, opens }
        };
        let paths = setup.paths.iter().map(way).collect();
        Links { paths, shared: shared.into_iter().map(|(data, _)| data).collect(), limits }
    }

    /// Returns when the sender may send the first data on any path.
    pub(super) fn opens(&self) -> Option<Time> {
        self.paths.iter().map(|way| way.opens).min()
    }

    /// Lets every path send from `time` on.
    pub(super) fn open_all(&mut self, time: Time) {
        self.paths.iter_mut().for_each(|way| way.opens = time);
    }

    /// Returns the least time from sending to arrival on any path.
    pub(super) fn there(&self) -> Span {
        self.paths.iter().map(|way| way.there).min().unwrap_or(Span::ZERO)
    }

    /// Returns the least time from sending to the arrival of an acknowledgement, on any paths.
    pub(super) fn round(&self) -> Span {
        let back = self.paths.iter().map(|way| way.back).min().unwrap_or(Span::ZERO);
        self.there() + back
    }

    /// Returns the payload bytes that may be sent and not acknowledged on all paths together.
    pub(super) fn buffer(&self) -> f64 {
        self.limits.buffer
    }

    /// Returns the payload bytes that can have arrived by `time` if the application has all of them
    /// from the start.
    pub(super) fn delivered(&self, time: Time) -> f64 {
        let sum = self.sum(time, |way| way.delivered(time, &self.limits));
        let Some(first) = self.opens().map(|opens| opens + self.there()) else { return 0.0 };
        if time < first {
            return 0.0;
        }
        let rounds = match self.round().as_nanos() {
            0 => return sum,
            round => time.since(first).as_nanos() / round,
        };
        sum.min(self.limits.buffer * (rounds + 1) as f64)
    }

    /// Returns the payload bytes that can have arrived by `time` of data that the application has from
    /// `from` on.
    pub(super) fn delivered_since(&self, from: Time, time: Time) -> f64 {
        self.sum(time, |way| way.sent(from, time, &self.limits))
    }

    /// Adds up the paths. Paths through one shared link carry at most what the link carries.
    fn sum(&self, time: Time, of: impl Fn(&PathCapacity) -> f64) -> f64 {
        let own: f64 = self.paths.iter().filter(|way| way.via.is_none()).map(&of).sum();
        let through = |(index, pipe): (usize, &Pipe)| {
            let members = || self.paths.iter().filter(move |way| way.via == Some(index));
            let first = members().map(|way| way.opens).min()?;
            let sum: f64 = members().map(&of).sum();
            let last = Time::ZERO + time.since(Time::ZERO).minus(pipe.delay);
            let most = pipe.capacity.bytes_between(first, last) * self.limits.efficiency;
            Some(sum.min(most))
        };
        own + self.shared.iter().enumerate().filter_map(through).sum::<f64>()
    }

    /// Returns the first time, at most `limit`, at which `bytes` have arrived by `of`, which does not
    /// decrease.
    pub(super) fn first(
        &self,
        bytes: f64,
        (from, limit): (Time, Time),
        of: impl Fn(&Links, Time) -> f64,
    ) -> Option<Time> {
        // Sums of floating-point numbers may be too small by a rounding error.
        let arrived = |nanos: u64| of(self, Time::from_nanos(nanos)) >= bytes * (1.0 - 1e-9);
        let (mut low, limit) = (from.as_nanos(), limit.as_nanos());
        if arrived(low) {
            return Some(from);
        }
        let mut step = 1_000_000;
        let mut high = low;
        while !arrived(high) {
            if high >= limit {
                return None;
            }
            low = high;
            high = high.saturating_add(step).min(limit);
            step *= 2;
        }
        while low + 1 < high {
            let middle = low.midpoint(high);
            if arrived(middle) { high = middle } else { low = middle }
        }
        Some(Time::from_nanos(high))
    }
}

impl PathCapacity {
    /// Returns the payload bytes that are sent from `from` on and have arrived by `time`.
    fn sent(&self, from: Time, time: Time, limits: &Limits) -> f64 {
        let from = from.max(self.opens);
        if time < from + self.there {
            return 0.0;
        }
        let last = Time::ZERO + time.since(Time::ZERO).minus(self.there);
        let link = self.pipe.capacity.bytes_between(from, last);
        link.min(self.host.bytes_between(from, last)) * limits.efficiency
    }

    /// Returns the payload bytes that have arrived by `time`. In slow start a sender has sent at most
    /// the first window and twice the acknowledged bytes. So before round `k` (from 0) it has sent at
    /// most `2^k - 1` windows, and the link adds at most its capacity from then on.
    fn delivered(&self, time: Time, limits: &Limits) -> f64 {
        let round = self.there + self.back;
        let mut least = self.sent(self.opens, time, limits);
        if !limits.first_window.is_finite() || round == Span::ZERO {
            return least;
        }
        let (mut start, mut earlier) = (self.opens, 0.0);
        for _ in 0..MAX_ROUNDS {
            least = least.min(earlier + self.sent(start, time, limits));
            if start + self.there > time || earlier >= least {
                break;
            }
            start += round;
            earlier = 2.0 * earlier + limits.first_window;
        }
        least
    }
}
