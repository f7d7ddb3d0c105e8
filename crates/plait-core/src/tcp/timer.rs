//! Timers of a subflow and of a connection: fixed arrays, checked lazily. The next check is never
//! late but may be early, if a timer was postponed or cleared. That costs less than keeping the
//! earliest time exact with every segment.

use alloc::boxed::Box;
use core::marker::PhantomData;
use plait_base::Time;

/// The timers of a subflow. The first [`FREQUENT_TIMERS`] are set often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// Retransmission timeout of data, FIN or handshake (RFC 6298).
    Rto,
    /// Tail loss probe (RFC 8985 section 7).
    Tail,
    /// A reordered segment counts as lost (RFC 8985 section 6).
    Reorder,
    /// A delayed acknowledgement is due (RFC 9293 section 3.8.6.3).
    Ack,
    /// TIME-WAIT ends, or the wait for the peer's FIN in FIN-WAIT-2.
    TimeWait,
    /// A silent path is probed.
    Probe,
    /// The host's queue has drained far enough for more (TSQ).
    HostQueue,
    /// Pacing releases the next segment.
    Pace,
}

impl Timer {
    const COUNT: usize = 8;
    /// All timers, in the order of expiry at the same time.
    pub(crate) const ALL: [Timer; Timer::COUNT] = [
        Timer::Reorder,
        Timer::Tail,
        Timer::Rto,
        Timer::Ack,
        Timer::TimeWait,
        Timer::Probe,
        Timer::HostQueue,
        Timer::Pace,
    ];
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> usize {
        timer as usize
    }
}

/// Largest number of rarely set timers.
const MAX_RARE_TIMERS: usize = 7;
/// Number of frequently set timers. The others are allocated when first set.
pub(crate) const FREQUENT_TIMERS: usize = 4;

/// None is set.
const NONE: [Time; MAX_RARE_TIMERS] = [Time::NEVER; MAX_RARE_TIMERS];

/// Timers of the kinds `K`: the first `N` are set often, at most [`MAX_RARE_TIMERS`] more rarely.
#[derive(Clone, Debug)]
pub(crate) struct Timers<K, const N: usize> {
    at: [Time; N],
    others: Option<Box<[Time; MAX_RARE_TIMERS]>>,
    /// No timer is earlier.
    earliest: Time,
    kinds: PhantomData<K>,
}

impl<K: Into<usize> + Copy, const N: usize> Timers<K, N> {
    pub(crate) const fn new() -> Timers<K, N> {
        Timers { at: [Time::NEVER; N], others: None, earliest: Time::NEVER, kinds: PhantomData }
    }

    pub(crate) fn set(&mut self, timer: K, at: Time) {
        match self.at.get_mut(timer.into()) {
            Some(slot) => *slot = at,
            None => self.others.get_or_insert_with(|| Box::new(NONE))[timer.into() - N] = at,
        }
        self.earliest = self.earliest.min(at);
    }

    pub(crate) fn clear(&mut self, timer: K) {
        if let Some(slot) = self.at.get_mut(timer.into()) {
            *slot = Time::NEVER;
        } else if let Some(others) = &mut self.others {
            others[timer.into() - N] = Time::NEVER;
        }
    }

    pub(crate) fn at(&self, timer: K) -> Time {
        match (self.at.get(timer.into()), &self.others) {
            (Some(at), _) => *at,
            (None, Some(others)) => others[timer.into() - N],
            (None, None) => Time::NEVER,
        }
    }

    pub(crate) fn is_set(&self, timer: K) -> bool {
        self.at(timer) != Time::NEVER
    }

    /// Returns true if any timer is set.
    pub(crate) fn any_set(&self) -> bool {
        let others = self.others.iter().flat_map(|others| others.iter());
        self.at.iter().chain(others).any(|at| *at != Time::NEVER)
    }

    /// Clears `timer` and returns true if it was due.
    pub(crate) fn take_due(&mut self, timer: K, now: Time) -> bool {
        let due = self.at(timer) <= now;
        if due {
            self.clear(timer);
        }
        due
    }

    /// Returns when the timers must be checked at the latest.
    pub(crate) fn next(&self) -> Time {
        self.earliest
    }

    /// Sets the next check after all due timers were handled.
    pub(crate) fn on_looked(&mut self) {
        let others = self.others.iter().flat_map(|others| others.iter());
        self.earliest = self.at.iter().chain(others).copied().min().unwrap_or(Time::NEVER);
    }

    /// Allocates the rarely set timers.
    pub(crate) fn make_room(&mut self) {
        self.others.get_or_insert_with(|| Box::new(NONE));
    }

    /// Frees the rarely set timers if none is set.
    pub(crate) fn give_back(&mut self) {
        self.others.take_if(|others| **others == NONE);
    }

    pub(crate) fn clear_all(&mut self) {
        *self = Timers::new();
    }
}
