//! Timers of a subflow and of a connection: fixed arrays, read lazily. When to look at them is
//! never late but may be early: a timer that was put off or cleared is found out then, which costs
//! less than keeping the earliest exact with every segment.

use core::marker::PhantomData;
use plait_base::Time;

/// What a subflow may wait for.
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
    /// TIME-WAIT ends.
    TimeWait,
    /// A silent path is probed.
    Probe,
    /// The host's queue has drained far enough for more (TSQ).
    HostQueue,
    /// Pacing lets the next segment go.
    Pace,
}

impl Timer {
    const COUNT: usize = SLOTS;
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

/// Kinds of timers in one array.
const SLOTS: usize = 8;

/// Timers of the kinds `K`, at most [`SLOTS`] of them.
#[derive(Clone, Debug)]
pub(crate) struct Timers<K> {
    at: [Time; SLOTS],
    /// None of them is earlier.
    earliest: Time,
    kinds: PhantomData<K>,
}

impl<K: Into<usize> + Copy> Timers<K> {
    pub(crate) const fn new() -> Timers<K> {
        Timers { at: [Time::NEVER; SLOTS], earliest: Time::NEVER, kinds: PhantomData }
    }

    pub(crate) fn set(&mut self, timer: K, at: Time) {
        self.at[timer.into()] = at;
        self.earliest = self.earliest.min(at);
    }

    pub(crate) fn clear(&mut self, timer: K) {
        self.at[timer.into()] = Time::NEVER;
    }

    pub(crate) fn at(&self, timer: K) -> Time {
        self.at[timer.into()]
    }

    pub(crate) fn is_set(&self, timer: K) -> bool {
        self.at(timer) != Time::NEVER
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
        self.earliest = self.at.iter().copied().min().unwrap_or(Time::NEVER);
    }

    pub(crate) fn clear_all(&mut self) {
        *self = Timers::new();
    }
}
