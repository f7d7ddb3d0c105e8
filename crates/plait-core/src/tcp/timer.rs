//! Timers of a subflow: a fixed array, read lazily. Setting one costs a store; the earliest is
//! found by looking at all of them.

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

#[derive(Clone, Debug)]
pub(crate) struct Timers([Time; Timer::COUNT]);

impl Timers {
    pub(crate) const fn new() -> Timers {
        Timers([Time::NEVER; Timer::COUNT])
    }

    pub(crate) const fn set(&mut self, timer: Timer, at: Time) {
        self.0[timer as usize] = at;
    }

    pub(crate) const fn clear(&mut self, timer: Timer) {
        self.0[timer as usize] = Time::NEVER;
    }

    pub(crate) const fn at(&self, timer: Timer) -> Time {
        self.0[timer as usize]
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.at(timer) != Time::NEVER
    }

    /// Clears `timer` and tells whether it was due.
    pub(crate) fn take_due(&mut self, timer: Timer, now: Time) -> bool {
        let due = self.at(timer) <= now;
        if due {
            self.clear(timer);
        }
        due
    }

    pub(crate) fn next(&self) -> Time {
        self.0.iter().copied().min().unwrap_or(Time::NEVER)
    }

    pub(crate) fn clear_all(&mut self) {
        *self = Timers::new();
    }
}
