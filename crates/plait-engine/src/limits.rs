//! Limits of all connections together, so that no number of clients exhausts the host.

use plait_base::{Span, Time};
use plait_core::{Endpoint, MemoryLimit, Overflows};
use std::collections::BTreeMap;

/// Interval of memory measurements during a shortage, so that its end is noticed.
const LOOK_INTERVAL: Span = Span::from_millis(100);
/// Least time between two reports of refused connections.
const REPORT_INTERVAL: Span = Span::from_secs(10);
/// A connection may hold one part in `SHARE_PARTS` of its share of the unused memory. Shares assume
/// at least `LEAST_SHARERS` connections that hold much.
const SHARE_PARTS: u64 = 4;
const LEAST_SHARERS: u64 = 4;
/// Divisor for a connection whose peer reads nothing. Even thousands of such connections leave three fifths
/// of the memory.
const IDLE_PARTS: u64 = 16;
/// Connections are refused while less than this part of the limit is left.
const RESERVE_PARTS: u64 = 16;
/// Bytes that a connection may always hold, so that it makes progress. There is no limit from
/// `UNLIMITED_BYTES` on: both buffers of a connection can then hold a quarter of its part of the
/// unused memory at most.
const LEAST_BYTES: u64 = 16 * 1024;
const UNLIMITED_BYTES: u64 = 16 << 20;
/// Bytes that a new connection counts as until the next memory measurement.
const NEW_CONNECTION_BYTES: u64 = 8_192;

/// Limits of all connections together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections relayed at the same time. Further ones are refused.
    pub connections: usize,
    /// Bytes of memory for data: [`plait_core::MemoryReport::bytes`], and data between sockets and
    /// connections. Connections may use three quarters of it. New connections are refused when the
    /// unused part of these is below a sixteenth of the limit.
    ///
    /// Each connection has a dynamic threshold (Choudhury and Hahne, IEEE/ACM Transactions on
    /// Networking 6(2), 1998). The unused part is divided by the number of connections that hold
    /// much. A connection may hold a quarter of that share as received data and a sixteenth as data
    /// to send, at least 16 KiB of each. It may also hold the data that its peer takes.
    pub memory: u64,
}

impl Default for Limits {
    /// Returns limits that refuse nothing.
    fn default() -> Limits {
        Limits { connections: usize::MAX, memory: u64::MAX }
    }
}

impl Limits {
    /// Least memory per connection in bytes. A quarter of it covers the data that a connection may
    /// always hold in both directions, with its bookkeeping.
    pub const LEAST_EACH: u64 = 256 * 1024;
    /// Returns the number of connections for which this memory suffices.
    #[must_use]
    pub fn fit(memory: u64) -> usize {
        usize::try_from(memory / Limits::LEAST_EACH).unwrap_or(usize::MAX).max(1)
    }
}

/// A shortage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Shortage {
    /// The limit of connections is reached.
    Connections,
    /// Connections hold almost all memory of the limit.
    Memory,
    /// All numbers for addresses of clients are in use.
    Addresses,
}

impl Shortage {
    /// Every kind.
    pub const ALL: [Shortage; 3] = [Shortage::Connections, Shortage::Memory, Shortage::Addresses];

    /// Returns its name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Shortage::Connections => "connections",
            Shortage::Memory => "memory",
            Shortage::Addresses => "addresses",
        }
    }
}

/// Keeps connections within limits.
#[derive(Default, Debug)]
pub(crate) struct Guard {
    pub(crate) limits: Limits,
    /// Time of the last memory measurement, and bytes received until then.
    looked: Time,
    before: u64,
    /// Limits of each connection during a shortage of memory.
    memory_limit: Option<MemoryLimit>,
    /// No memory is left for new connections.
    filled: bool,
    /// Refused connections, and the part that the endpoint has reported.
    pub(crate) refused: BTreeMap<Shortage, u64>,
    by_endpoint: u64,
    /// Packets refused for want of a path number at the last count, and whether that count had
    /// grown.
    by_names: u64,
    short_of_addresses: bool,
    /// Refusals since the last report, and the time of that report.
    untold: u64,
    told: Option<Time>,
    /// Overflows of the endpoint's tables at the last report, and the time of that report.
    overflows: Overflows,
    overflow_told: Option<Time>,
}

impl Guard {
    /// Returns the present shortage, if there is one.
    pub(crate) fn shortage(&self, relays: usize) -> Option<Shortage> {
        match relays >= self.limits.connections {
            true => Some(Shortage::Connections),
            false => self.filled.then_some(Shortage::Memory),
        }
    }

    /// Returns the shortage to report. A shortage of path numbers counts too, although known
    /// clients need none.
    pub(crate) fn told_shortage(&self, relays: usize) -> Option<Shortage> {
        self.shortage(relays).or(self.short_of_addresses.then_some(Shortage::Addresses))
    }

    /// Updates the number of packets of new clients refused so far because all numbers were in use.
    pub(crate) fn note_unnumbered(&mut self, so_far: u64) {
        let more = so_far - std::mem::replace(&mut self.by_names, so_far);
        if more > 0 {
            self.short_of_addresses = true;
            self.refuse(Shortage::Addresses, more);
        }
    }

    /// Returns true if the memory should be measured, after `taken_in` received bytes in total.
    /// This is due if memory may have grown by a 64th of the limit, or regularly during a shortage.
    pub(crate) fn is_due(&self, now: Time, taken_in: u64) -> bool {
        taken_in - self.before >= self.limits.memory / 64
            || self.memory_limit.is_some() && now >= self.looked + LOOK_INTERVAL
    }

    /// Processes a measurement: the bytes held, and the number of connections that hold much.
    /// Returns the limits of each connection.
    pub(crate) fn look(
        &mut self,
        now: Time,
        taken_in: u64,
        held: u64,
        above_threshold: usize,
    ) -> Option<MemoryLimit> {
        (self.looked, self.before) = (now, taken_in);
        let left = (self.limits.memory / 4 * 3).saturating_sub(held);
        let each = left / LEAST_SHARERS.max(above_threshold as u64);
        let (share, unsent) = (each / SHARE_PARTS, each / IDLE_PARTS);
        self.filled = left < self.limits.memory / RESERVE_PARTS;
        let limit = MemoryLimit {
            unread: share.max(LEAST_BYTES),
            unsent: unsent.max(LEAST_BYTES),
            max_unsent: left / SHARE_PARTS,
        };
        self.memory_limit = (unsent < UNLIMITED_BYTES).then_some(limit);
        self.memory_limit
    }

    /// Returns the bytes that a relay moves at a time.
    pub(crate) fn piece(&self, most: usize) -> usize {
        self.memory_limit.map_or(most, |it| most.min(it.unread as usize / 4))
    }

    /// Returns the bytes that a new connection counts as.
    pub(crate) const fn newcomer() -> u64 {
        NEW_CONNECTION_BYTES
    }

    /// Makes the endpoint refuse connections during a shortage, and counts the refused ones.
    pub(crate) fn stand(&mut self, endpoint: &mut Endpoint, relays: usize) {
        let so_far = endpoint.turned_away();
        let shortage = self.shortage(relays);
        let more = so_far - std::mem::replace(&mut self.by_endpoint, so_far);
        if more > 0 {
            // If the shortage is already over, it was one of connections, which end often.
            self.refuse(shortage.unwrap_or(Shortage::Connections), more);
        }
        endpoint.turn_away(shortage.is_some());
    }

    /// Counts refused connections for the next report.
    pub(crate) fn refuse(&mut self, shortage: Shortage, count: u64) {
        *self.refused.entry(shortage).or_default() += count;
        self.untold += count;
    }

    /// Returns the overflows of the endpoint's tables since the last report, at most once every ten
    /// seconds.
    pub(crate) fn overflowed(&mut self, now: Time, so_far: Overflows) -> Option<Overflows> {
        let due = self.overflow_told.is_none_or(|told| now >= told + REPORT_INTERVAL);
        if so_far == self.overflows || !due {
            return None;
        }
        self.overflow_told = Some(now);
        Some(so_far.since(&std::mem::replace(&mut self.overflows, so_far)))
    }

    /// Returns when the next report of refusals or overflows is due; [`Time::NEVER`] if there is
    /// nothing to report.
    pub(crate) fn report_due(&self, so_far: Overflows) -> Time {
        let due = |told: Option<Time>| told.map_or(Time::ZERO, |told| told + REPORT_INTERVAL);
        let refused = if self.untold > 0 { due(self.told) } else { Time::NEVER };
        let overflowed = so_far != self.overflows;
        let overflowed = if overflowed { due(self.overflow_told) } else { Time::NEVER };
        refused.min(overflowed)
    }

    /// Returns the refusals since the last report, at most once every ten seconds.
    pub(crate) fn tell(&mut self, now: Time) -> Option<u64> {
        let due = self.told.is_none_or(|told| now >= told + REPORT_INTERVAL);
        if self.untold == 0 || !due {
            return None;
        }
        self.told = Some(now);
        self.short_of_addresses = false;
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(connections: usize, memory: u64) -> Guard {
        Guard { limits: Limits { connections, memory }, ..Guard::default() }
    }

    /// Limits of each connection in KiB (received data, data to send), and the shortage, if this
    /// many MiB of 1 GiB are held.
    #[test]
    fn a_connection_may_hold_a_part_of_what_is_left() {
        let mut guard = guard(1_000, 1 << 30);
        let mut at = |mb: u64, above_threshold: usize| {
            let share = guard.look(Time::ZERO, 0, mb << 20, above_threshold);
            let share = share.map(|it| (it.unread >> 10, it.unsent >> 10));
            (share, guard.shortage(8), guard.piece(256 << 10) >> 10)
        };
        // 768 MiB are for connections.
        assert_eq!(at(0, 0), (Some((48 << 10, 12 << 10)), None, 256));
        assert_eq!(at(512, 16), (Some((4_096, 1_024)), None, 256));
        assert_eq!(at(700, 4), (Some((4_352, 1_088)), None, 256));
        assert_eq!(at(704, 64), (Some((256, 64)), None, 64));
        assert_eq!(at(704, 4_096), (Some((16, 16)), None, 4));
        // 64 MiB are reserved.
        assert_eq!(at(705, 4_096), (Some((16, 16)), Some(Shortage::Memory), 4));
        assert_eq!(at(900, 1), (Some((16, 16)), Some(Shortage::Memory), 4));
        assert_eq!(at(511, 0), (Some((16_448, 4_112)), None, 256));
        assert_eq!(guard.shortage(1_000), Some(Shortage::Connections));
    }

    /// Clients that read nothing connect one after the other, and each fills its share. There must
    /// be room for later clients, and for one that reads.
    #[test]
    fn thousands_that_do_not_read_leave_room() {
        let mut guard = guard(10_000, 512 << 20);
        let mut holds: Vec<u64> = Vec::new();
        for _ in 0..2_048 {
            let held = holds.iter().sum();
            let above_threshold =
                holds.iter().filter(|it| **it > plait_core::MemoryReport::THRESHOLD_BYTES).count();
            let unsent =
                guard.look(Time::ZERO, 0, held, above_threshold).map_or(4 << 20, |it| it.unsent);
            assert_eq!(guard.shortage(holds.len()), None, "{held} held by {}", holds.len());
            holds.push(unsent.min(4 << 20) + 4_096);
        }
        let held: u64 = holds.iter().sum();
        assert!(held < 200 << 20, "{held}");
        let limit = guard.look(Time::ZERO, 0, held, holds.len()).unwrap();
        assert!(limit.max_unsent >= 32 << 20, "{limit:?}");
    }

    #[test]
    fn it_is_looked_at_where_it_may_have_changed() {
        let mut guard = guard(1_000, 64 << 20);
        let later = Time::ZERO + LOOK_INTERVAL;
        assert!(!guard.is_due(later, (1 << 20) - 1));
        assert!(guard.is_due(Time::ZERO, 1 << 20));
        guard.look(Time::ZERO, 1 << 20, 40 << 20, 4);
        assert!(!guard.is_due(Time::ZERO, 1 << 20));
        assert!(guard.is_due(later, 1 << 20));
        // Without a limit, memory is never measured.
        assert!(!Guard::default().is_due(later, u64::MAX / 65));
    }

    #[test]
    fn a_report_that_was_too_early_is_due_later() {
        let at = |seconds: u64| Time::ZERO + Span::from_secs(seconds);
        let nothing = Overflows::default();
        let mut guard = guard(1, 64 << 20);
        assert_eq!(guard.report_due(nothing), Time::NEVER);
        guard.refuse(Shortage::Connections, 1);
        assert!(guard.report_due(nothing) <= at(0));
        assert_eq!(guard.tell(at(5)), Some(1));
        assert_eq!(guard.report_due(nothing), Time::NEVER);
        guard.refuse(Shortage::Connections, 2);
        assert_eq!((guard.tell(at(6)), guard.report_due(nothing)), (None, at(15)));
        assert_eq!((guard.tell(at(15)), guard.report_due(nothing)), (Some(2), Time::NEVER));
        let more = Overflows { cookies_sent: 1, ..nothing };
        assert!(guard.report_due(more) <= at(0));
    }

    #[test]
    fn overflows_are_reported_once_in_ten_seconds() {
        let mut guard = guard(1, 64 << 20);
        let mut at = |seconds: u64, cookies_sent: u64| {
            let so_far = Overflows { cookies_sent, ..Overflows::default() };
            let more = guard.overflowed(Time::ZERO + Span::from_secs(seconds), so_far);
            more.map(|it| it.cookies_sent)
        };
        assert_eq!(
            [at(0, 0), at(1, 1), at(2, 5), at(10, 5), at(11, 7)],
            [None, Some(1), None, None, Some(6)]
        );
        assert_eq!(at(100, 7), None);
    }

    #[test]
    fn what_is_turned_away_is_told_now_and_then() {
        let mut guard = guard(1, 64 << 20);
        assert_eq!(guard.tell(Time::ZERO), None);
        guard.refuse(Shortage::Connections, 1);
        assert_eq!(guard.tell(Time::ZERO), Some(1));
        guard.refuse(Shortage::Connections, 3);
        guard.refuse(Shortage::Memory, 2);
        assert_eq!(guard.tell(Time::ZERO + Span::from_secs(9)), None);
        assert_eq!(guard.tell(Time::ZERO + Span::from_secs(10)), Some(5));
        let counted: Vec<_> = guard.refused.into_iter().collect();
        assert_eq!(counted, [(Shortage::Connections, 4), (Shortage::Memory, 2)]);
    }
}
