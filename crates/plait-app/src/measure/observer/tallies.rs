//! What is counted while a run goes on.

use crate::measure::PathMeasures;
use crate::measure::distribution::mean_millis;
use plait_base::{Dsn, Span, SubflowSet, Time};
use plait_core::{Block, Carry};

/// Room for this many messages is made at the start, at most.
const MAX_PREPARED: u64 = 1 << 20;

/// Payload bytes of the sender.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sent {
    pub(super) first: u64,
    pub(super) reinjected: u64,
    pub(super) retransmitted: u64,
    /// Subflows that have sent data that count.
    pub(super) active: SubflowSet,
    pub(super) idle_resets: u64,
}

impl Sent {
    /// Bytes that were sent before.
    #[inline(never)]
    pub(super) fn again(&mut self, carry: Carry, bytes: u64) {
        match carry {
            Carry::New => self.first += bytes,
            Carry::Retransmission | Carry::TailProbe => self.retransmitted += bytes,
            Carry::Reinjection | Carry::Redundant | Carry::Opportunistic => {
                self.reinjected += bytes;
            }
        }
    }

    pub(super) fn join(&mut self, other: Sent) {
        self.first += other.first;
        self.reinjected += other.reinjected;
        self.retransmitted += other.retransmitted;
        self.idle_resets += other.idle_resets;
    }

    pub(super) fn total(&self) -> u64 {
        self.first + self.reinjected + self.retransmitted
    }
}

/// Totals of one path at the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathTotals {
    pub(super) first: u64,
    /// With copies and retransmissions.
    pub(super) sent: u64,
    rtt_sum: u128,
    rtt_count: u64,
    /// [`Span::MAX`] where there is none.
    rtt_min: Span,
    rtt_max: Span,
}

impl Default for PathTotals {
    fn default() -> PathTotals {
        let (rtt_min, rtt_max) = (Span::MAX, Span::ZERO);
        PathTotals { first: 0, sent: 0, rtt_sum: 0, rtt_count: 0, rtt_min, rtt_max }
    }
}

impl PathTotals {
    pub(super) fn sample(&mut self, rtt: Span) {
        self.rtt_sum += u128::from(rtt.as_nanos());
        self.rtt_count += 1;
        self.rtt_min = self.rtt_min.min(rtt);
        self.rtt_max = self.rtt_max.max(rtt);
    }

    pub(super) fn join(&mut self, other: &PathTotals) {
        self.first += other.first;
        self.sent += other.sent;
        self.rtt_sum += other.rtt_sum;
        self.rtt_count += other.rtt_count;
        self.rtt_min = self.rtt_min.min(other.rtt_min);
        self.rtt_max = self.rtt_max.max(other.rtt_max);
    }

    pub(super) fn measures(&self, all: u64) -> PathMeasures {
        let sampled = self.rtt_count > 0;
        PathMeasures {
            path_share: ratio(self.first, all),
            sent_bytes: self.sent,
            rtt_ms: sampled.then(|| mean_millis(self.rtt_sum, self.rtt_count)),
            rtt_min_ms: sampled.then(|| self.rtt_min.as_millis_f64()),
            rtt_max_ms: sampled.then(|| self.rtt_max.as_millis_f64()),
            idle_share: None,
        }
    }
}

/// How long the sender was held back, by cause.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Blocked {
    now: Option<(Block, Time)>,
    pub(super) rwnd: Span,
    pub(super) sndbuf: Span,
}

impl Blocked {
    /// Settles the running cause up to `now` and goes on with `next`.
    pub(super) fn turn(&mut self, now: Time, next: Option<Block>) {
        if let Some((cause, since)) = self.now {
            match cause {
                Block::ReceiveWindow => self.rwnd += now.since(since),
                Block::SendBuffer => self.sndbuf += now.since(since),
                _ => {}
            }
        }
        self.now = next.map(|cause| (cause, now));
    }

    pub(super) fn join(&mut self, other: Blocked) {
        self.rwnd += other.rwnd;
        self.sndbuf += other.sndbuf;
    }

    /// Forgets the past, not the present.
    pub(super) fn restart(&mut self, now: Time) {
        let next = self.now.map(|(cause, _)| (cause, now));
        *self = Blocked { now: next, ..Blocked::default() };
    }
}

/// The messages that were due, and those that came.
#[derive(Debug)]
pub(super) struct Messages {
    /// Of each message: position of its last byte plus one, and when it was due.
    pub(super) due: Vec<(Dsn, Time)>,
    pub(super) delays: Vec<Span>,
    /// Position of the first byte that the receiver has not read in order.
    pub(super) frontier: Dsn,
    /// Bytes read in order that count.
    pub(super) read: u64,
    /// When the last of them was read.
    pub(super) last: Time,
    /// When the first message was due.
    pub(super) first_due: Option<Time>,
}

impl Messages {
    pub(super) fn new(count: u64) -> Messages {
        let room = count.min(MAX_PREPARED) as usize;
        Messages {
            due: Vec::with_capacity(room),
            delays: Vec::with_capacity(room),
            frontier: Dsn::ZERO,
            read: 0,
            last: Time::ZERO,
            first_due: None,
        }
    }

    /// Takes in what came over another connection. Messages are those of the first one.
    pub(super) fn join(&mut self, other: &Messages) {
        self.read += other.read;
        self.last = self.last.max(other.last);
    }

    /// Counts the messages that have come by now.
    pub(super) fn settle(&mut self, now: Time) {
        while let Some((end, due)) = self.due.get(self.delays.len()).copied()
            && end <= self.frontier
        {
            self.delays.push(now.since(due));
        }
    }
}

/// The objects that the client asked for.
#[derive(Default, Debug)]
pub(super) struct Objects {
    /// Those on their way, and when each was asked for.
    asked: Vec<(u64, Time)>,
    /// Of each that came: from the request to its last byte.
    pub(super) times: Vec<Span>,
    pub(super) loaded: Option<Time>,
}

impl Objects {
    pub(super) fn asked(&mut self, now: Time, id: u64) {
        self.asked.push((id, now));
    }

    pub(super) fn read(&mut self, now: Time, id: u64) {
        if let Some(place) = self.asked.iter().position(|asked| asked.0 == id) {
            self.times.push(now.since(self.asked.swap_remove(place).1));
        }
    }

    pub(super) fn join(&mut self, other: Objects) {
        self.asked.extend(other.asked);
        self.times.extend(other.times);
        self.loaded = self.loaded.max(other.loaded);
    }
}

pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
