//! Timers of a subflow and of a connection: fixed arrays, read lazily. When to look at them is
//! never late but may be early: a timer that was put off or cleared is found out then, which costs
//! less than keeping the earliest exact with every segment.

use alloc::boxed::Box;
use core::marker::PhantomData;
use plait_base::Time;

/// What a subflow may wait for; the first [`FREQUENT_TIMERS`] often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// Retransmission timeout of data, FIN or handshake (RFC 6298).
    Rto,
    /// Probe for a lost tail (RFC 8985 section 7).
    Tail,
    /// A reordered segment becomes a lost one (RFC 8985 section 6).
    Reorder,
    /// A delayed acknowledgement is due (RFC 9293 section 3.8.6.3).
    Ack,
    /// TIME-WAIT ends, or the wait for the peer's FIN in FIN-WAIT-2 does.
    TimeWait,
    /// A silent path is probed.
    Probe,
    /// The host's queue has drained far enough for more (TSQ).
    HostQueue,
    /// Pacing lets the next segment go.
    Pace,
}

impl Timer {
    const COUNT: usize = 8;
    /// All timers, in the order in which those due at the same time expire.
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

/// Kinds of timers that are seldom set, at most.
const MAX_RARE_TIMERS: usize = 7;
/// How many of them are set all the time. The others take memory from the first time on.
pub(crate) const FREQUENT_TIMERS: usize = 4;

/// None is set.
const NONE: [Time; MAX_RARE_TIMERS] = [Time::NEVER; MAX_RARE_TIMERS];

/// Timers of the kinds `K`, the first `N` of which are set often, and at most [`MAX_RARE_TIMERS`] more.
#[derive(Clone, Debug)]
pub(crate) struct Timers<K, const N: usize> {
    at: [Time; N],
    others: Option<Box<[Time; MAX_RARE_TIMERS]>>,
    /// None of them is earlier.
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

    /// Whether any timer is set.
    pub(crate) fn any_set(&self) -> bool {
        let others = self.others.iter().flat_map(|others| others.iter());
        self.at.iter().chain(others).any(|at| *at != Time::NEVER)
    }

    /// Clears `timer` and tells whether it was due.
    pub(crate) fn take_due(&mut self, timer: K, now: Time) -> bool {
        let due = self.at(timer) <= now;
        if due {
            self.clear(timer);
        }
        due
    }

    /// When to look at the timers, at the latest.
    pub(crate) fn next(&self) -> Time {
        self.earliest
    }

    /// Those that were due are done: the next look is due when the next of them is.
    pub(crate) fn on_looked(&mut self) {
        let others = self.others.iter().flat_map(|others| others.iter());
        self.earliest = self.at.iter().chain(others).copied().min().unwrap_or(Time::NEVER);
    }

    /// Makes room for those that are seldom set.
    pub(crate) fn make_room(&mut self) {
        self.others.get_or_insert_with(|| Box::new(NONE));
    }

    /// Gives back the memory of those that are seldom set, where none of them is.
    pub(crate) fn give_back(&mut self) {
        self.others.take_if(|others| **others == NONE);
    }

    pub(crate) fn clear_all(&mut self) {
        *self = Timers::new();
    }
}
