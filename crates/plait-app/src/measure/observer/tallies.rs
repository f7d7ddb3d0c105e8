//! Counters of a running observation.

use crate::measure::PathMeasures;
use crate::measure::distribution::mean_millis;
use plait_base::{Dsn, Span, SubflowSet, Time};
use plait_core::{Block, Carry};

/// Maximum number of messages for which memory is reserved at the start. Further messages allocate.
const MAX_PREPARED: u64 = 1 << 20;

/// Payload bytes of the sender, by kind.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sent {
    pub(super) first: u64,
    pub(super) reinjected: u64,
    pub(super) retransmitted: u64,
    /// Subflows that have sent measured data.
    pub(super) active: SubflowSet,
    pub(super) idle_resets: u64,
}

impl Sent {
    /// Adds bytes, by the kind of their transmission.
    #[inline(never)]
    pub(super) fn again(&mut self, carry: Carry, bytes: u64) {
        match carry {
            Carry::New => self.first += bytes,
            _ if is_extra(carry) => self.reinjected += bytes,
            _ => self.retransmitted += bytes,
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

/// Returns true if the data was sent before on another subflow.
pub(super) const fn is_extra(carry: Carry) -> bool {
    match carry {
        Carry::New | Carry::Retransmission | Carry::TailProbe => false,
        Carry::Reinjection | Carry::Redundant | Carry::Opportunistic => true,
    }
}

/// Totals of one path at the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathTotals {
    pub(super) first: u64,
    /// All payload bytes, including copies and retransmissions.
    pub(super) sent: u64,
    /// Payload bytes of copies and reinjections.
    pub(super) extra: u64,
    rtt_sum: u128,
    rtt_count: u64,
    /// [`Span::MAX`] if there is no sample.
    rtt_min: Span,
    rtt_max: Span,
}

impl Default for PathTotals {
    fn default() -> PathTotals {
        let (rtt_min, rtt_max) = (Span::MAX, Span::ZERO);
        PathTotals { first: 0, sent: 0, extra: 0, rtt_sum: 0, rtt_count: 0, rtt_min, rtt_max }
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
        self.extra += other.extra;
        self.rtt_sum += other.rtt_sum;
        self.rtt_count += other.rtt_count;
        self.rtt_min = self.rtt_min.min(other.rtt_min);
        self.rtt_max = self.rtt_max.max(other.rtt_max);
    }

    /// Returns the measures of the path. `all` has the bytes of all paths.
    pub(super) fn measures(&self, all: &Sent) -> PathMeasures {
        let sampled = self.rtt_count > 0;
        PathMeasures {
            path_share: ratio(self.first, all.first),
            path_sent_share: ratio(self.sent, all.total()),
            sent_bytes: self.sent,
            extra_bytes: self.extra,
            rtt_ms: sampled.then(|| mean_millis(self.rtt_sum, self.rtt_count)),
            rtt_min_ms: sampled.then(|| self.rtt_min.as_millis_f64()),
            rtt_max_ms: sampled.then(|| self.rtt_max.as_millis_f64()),
            idle_share: None,
        }
    }
}

/// Time that the sender was blocked, by cause.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Blocked {
    now: Option<(Block, Time)>,
    pub(super) rwnd: Span,
    pub(super) sndbuf: Span,
}

impl Blocked {
    /// Adds the time of the current cause up to `now`, and starts `next`.
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

    /// Clears the sums, and keeps the current cause with `now` as its start.
    pub(super) fn restart(&mut self, now: Time) {
        let next = self.now.map(|(cause, _)| (cause, now));
        *self = Blocked { now: next, ..Blocked::default() };
    }
}

/// The messages that became due, and the delays of received ones.
#[derive(Debug)]
pub(super) struct Messages {
    /// For each message: the position after its last byte, and its due time.
    pub(super) due: Vec<(Dsn, Time)>,
    pub(super) delays: Vec<Span>,
    /// Position of the first byte that the receiver has not read in order.
    pub(super) frontier: Dsn,
    /// Measured bytes read in order.
    pub(super) read: u64,
    /// Time of the last read of measured bytes.
    pub(super) last: Time,
    /// Due time of the first message.
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

    /// Adds bytes read on another connection. Messages exist on the first connection only.
    pub(super) fn join(&mut self, other: &Messages) {
        self.read += other.read;
        self.last = self.last.max(other.last);
    }

    /// Records the delay of each message that is complete by now.
    pub(super) fn settle(&mut self, now: Time) {
        while let Some((end, due)) = self.due.get(self.delays.len()).copied()
            && end <= self.frontier
        {
            self.delays.push(now.since(due));
        }
    }
}

/// The objects that the client requested.
#[derive(Default, Debug)]
pub(super) struct Objects {
    /// Pending objects, and the time of each request.
    asked: Vec<(u64, Time)>,
    /// Time from the request to the last byte, for each received object.
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
