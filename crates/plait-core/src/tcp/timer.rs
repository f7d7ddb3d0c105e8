//! Timers of a subflow and of a connection: fixed arrays, checked lazily. The next check is never
//! late but may be early, if a timer was postponed or cleared. That costs less than keeping the
//! earliest time exact with every segment.

use alloc::boxed::Box;
use core::marker::PhantomData;
use plait_base::Time;

/// What the table of the timers says of one of them.
struct Properties {
    /// It is set often, so each subflow has 8 bytes for it. The rare timers have a block that is
    /// allocated when one of them is first set, so they cost an idle connection nothing.
    frequent: bool,
    /// The wait for the peer ends or is repeated when it expires. False for a timer that only counts,
    /// reports or acknowledges.
    progress: bool,
}

/// Declares [`Timer`] from one line per timer, and the constants that follow from the lines.
macro_rules! timers {
    ($($(#[doc = $doc:expr])+ $timer:ident { $($properties:tt)+ },)+) => {
        /// The timers of a subflow.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Timer {
            $($(#[doc = $doc])+ $timer,)+
        }

        impl Timer {
            const COUNT: usize = Timer::PROPERTIES.len();
            /// All timers, in the order of expiry at the same time.
            pub(crate) const ALL: [Timer; Timer::COUNT] = [$(Timer::$timer,)+];
            const PROPERTIES: &[Properties] = &[$(Properties { $($properties)+ },)+];
        }
    };
}

// In the order of expiry at the same time.
timers! {
    /// A reordered segment counts as lost (RFC 8985 section 6).
    Reorder { frequent: true, progress: true },
    /// Tail loss probe (RFC 8985 section 7).
    Tail { frequent: true, progress: true },
    /// Retransmission timeout of data, FIN or handshake (RFC 6298).
    Rto { frequent: true, progress: true },
    /// A delayed acknowledgement is due (RFC 9293 section 3.8.6.3).
    Ack { frequent: true, progress: false },
    /// TIME-WAIT ends, or the wait for the peer's FIN in FIN-WAIT-2.
    TimeWait { frequent: false, progress: true },
    /// A silent path is probed.
    Probe { frequent: false, progress: true },
    /// The host's queue has drained far enough for more (TSQ).
    HostQueue { frequent: false, progress: true },
    /// Pacing releases the next segment.
    Pace { frequent: false, progress: true },
}

impl Timer {
    /// Places of the timers in [`Timers`]: the frequent ones come first.
    const PLACES: [usize; Timer::COUNT] = {
        let (mut places, mut frequent, mut rare) = ([0; Timer::COUNT], 0, FREQUENT_TIMERS);
        let mut at = 0;
        while at < Timer::COUNT {
            let next = if Timer::PROPERTIES[at].frequent { &mut frequent } else { &mut rare };
            places[at] = *next;
            *next += 1;
            at += 1;
        }
        assert!(rare - FREQUENT_TIMERS <= MAX_RARE_TIMERS, "MAX_RARE_TIMERS is too small");
        places
    };

    /// Returns true if a wait for the peer ends or is repeated when this timer expires.
    pub(crate) fn holds_progress(self) -> bool {
        Timer::PROPERTIES[self as usize].progress
    }
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> usize {
        Timer::PLACES[timer as usize]
    }
}

/// Largest number of rarely set timers.
const MAX_RARE_TIMERS: usize = 7;
/// Number of frequently set timers of a subflow. Each takes 8 bytes of every subflow, also of an idle
/// one. `MOST_IDLE` of `tests/memory.rs` limits an idle connection of two subflows, and leaves room
/// for one more of these timers.
pub(crate) const FREQUENT_TIMERS: usize = {
    let (mut frequent, mut at) = (0, 0);
    while at < Timer::COUNT {
        frequent += Timer::PROPERTIES[at].frequent as usize;
        at += 1;
    }
    frequent
};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_timer_has_a_time_of_its_own() {
        let mut timers = Timers::<Timer, FREQUENT_TIMERS>::new();
        let times = || (1..).map(Time::from_nanos).zip(Timer::ALL);
        times().for_each(|(at, timer)| timers.set(timer, at));
        assert!(times().all(|(at, timer)| timers.at(timer) == at), "{timers:?}");
    }
}
