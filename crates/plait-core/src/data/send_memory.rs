//! The send buffers of Linux 6.18. Each subflow has one, in bytes of memory, that grows with its
//! congestion window. The buffer of the connection is their sum.
//!
//! After `tcp_sndbuf_expand` and `tcp_should_expand_sndbuf` (net/ipv4/tcp_input.c),
//! `__mptcp_sync_sndbuf` (net/mptcp/protocol.h) and `sk_stream_write_space` (net/core/stream.c).

use plait_base::{SendSsn, Span, SubflowId, Time};

/// Memory that Linux reserves for each segment of a congestion window: a full segment with its
/// headers, rounded up to a power of two, and the descriptor of its buffer.
const SEGMENT_MEMORY_BYTES: u64 = 2_048 + 256;
/// Smallest window, in segments, that a buffer is sized for (`TCP_INIT_CWND`).
const LEAST_SEGMENTS: u64 = 10;
/// Memory of a connection besides the buffers of its subflows (`tcp_wmem[0]`).
const OWN_BYTES: u64 = 4_096;
/// Largest piece in which data is written and assigned to subflows: a page fragment of 32 KiB less
/// the header of the piece.
pub(crate) const PIECE_BYTES: u64 = 32_768 - 48;

/// Shortest time until data is retransmitted (`TCP_RTO_MIN`).
const LEAST_TIMEOUT: Span = Span::from_millis(200);

/// The send buffers of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendMemory {
    /// Buffer of each subflow, in bytes of memory.
    limits: [u64; SubflowId::MAX],
    /// Largest buffer of a subflow (`tcp_wmem[2]`).
    most: u64,
    /// The writer waits until a third of the connection's buffer is free.
    waits: bool,
    /// Time to wait for a DATA_ACK before data is retransmitted (`timer_ival`).
    timeout: Span,
    /// For each subflow without progress at the last expiry of that time: when it had last made
    /// progress (`stale_count` and `stale_rcv_tstamp`).
    still_since: [Option<Time>; SubflowId::MAX],
    /// Used part of each subflow's window.
    unused_cwnd: [UnusedCwnd; SubflowId::MAX],
    /// Sequence number after the last short segment of each subflow, zero before the first one.
    short_end: [SendSsn; SubflowId::MAX],
}

impl SendMemory {
    pub(crate) fn new(most: u64) -> SendMemory {
        let mut memory = SendMemory {
            limits: [0; SubflowId::MAX],
            most,
            waits: false,
            timeout: LEAST_TIMEOUT,
            still_since: [None; SubflowId::MAX],
            unused_cwnd: [UnusedCwnd::default(); SubflowId::MAX],
            short_end: [SendSsn::ZERO; SubflowId::MAX],
        };
        for id in 0..SubflowId::MAX {
            memory.expand(SubflowId(id as u8), LEAST_SEGMENTS);
        }
        memory
    }

    /// Returns the send buffer of a subflow in bytes of memory.
    pub(crate) fn limit(&self, subflow: SubflowId) -> u64 {
        self.limits.get(subflow.index()).copied().unwrap_or(0)
    }

    /// Resets the buffer for a new subflow.
    pub(crate) fn reset(&mut self, subflow: SubflowId) {
        if let Some(limit) = self.limits.get_mut(subflow.index()) {
            *limit = 0;
        }
        if let Some(since) = self.still_since.get_mut(subflow.index()) {
            *since = None;
        }
        if let Some(unused_cwnd) = self.unused_cwnd.get_mut(subflow.index()) {
            *unused_cwnd = UnusedCwnd::default();
        }
        self.note_short(subflow, SendSsn::ZERO);
        self.expand(subflow, LEAST_SEGMENTS);
    }

    /// Grows the buffer to twice a congestion window of `segments`. A buffer never shrinks.
    pub(crate) fn expand(&mut self, subflow: SubflowId, segments: u64) {
        let most = self.most;
        if let Some(limit) = self.limits.get_mut(subflow.index()) {
            let wanted = 2 * segments.max(LEAST_SEGMENTS) * SEGMENT_MEMORY_BYTES;
            *limit = (*limit).max(wanted.min(most));
        }
    }

    /// Returns the send buffer of the connection with these subflows.
    pub(crate) fn total(&self, subflows: impl Iterator<Item = SubflowId>) -> u64 {
        subflows.fold(OWN_BYTES, |sum, id| sum + self.limit(id))
    }

    /// Returns the bytes that a writer of `len` more may write now, if the connection's buffer of
    /// `total` bytes holds `occupied`. A writer that found it full waits until a third of it is
    /// free.
    pub(crate) fn room(&mut self, len: u64, occupied: u64, total: u64) -> u64 {
        if self.waits && 3 * occupied > 2 * total {
            return 0;
        }
        // The last piece may exceed the end.
        let pieces = total.saturating_sub(occupied).div_ceil(PIECE_BYTES);
        let room = pieces * PIECE_BYTES;
        self.waits = len > room;
        len.min(room)
    }

    /// Notes that data is assigned; `longest` is the longest time until a retransmission timer of a
    /// subflow expires, or zero if none is set.
    pub(crate) fn note_timeout(&mut self, longest: Span) {
        self.timeout = if longest == Span::ZERO { LEAST_TIMEOUT } else { longest };
    }

    /// Returns the time to wait for a DATA_ACK before data is retransmitted.
    pub(crate) const fn timeout(&self) -> Span {
        self.timeout
    }

    /// Checks `subflow` when a DATA_ACK is overdue and it has data. `progress` is when its data was
    /// last acknowledged. Its timers are ignored until a later check finds progress
    /// (`mptcp_pm_subflow_chk_stale`, net/mptcp/pm.c).
    pub(crate) fn note_progress(&mut self, subflow: SubflowId, progress: Time) {
        if let Some(since) = self.still_since.get_mut(subflow.index()) {
            *since = match *since {
                Some(before) if before != progress => None,
                _ => Some(progress),
            };
        }
    }

    /// Returns true if `subflow` had made no progress at the last check.
    pub(crate) fn stands_still(&self, subflow: SubflowId) -> bool {
        self.still_since.get(subflow.index()).is_some_and(Option::is_some)
    }

    /// Returns the used part of the window of `subflow`.
    pub(crate) fn unused_cwnd(&mut self, subflow: SubflowId) -> Option<&mut UnusedCwnd> {
        self.unused_cwnd.get_mut(subflow.index())
    }

    /// Notes that `subflow` has sent a short segment that ends at `seq`.
    pub(crate) fn note_short(&mut self, subflow: SubflowId, seq: SendSsn) {
        if let Some(end) = self.short_end.get_mut(subflow.index()) {
            *end = seq;
        }
    }

    /// Returns the sequence number after the last short segment of `subflow`, zero before the first
    /// one.
    pub(crate) fn short_end(&self, subflow: SubflowId) -> SendSsn {
        self.short_end.get(subflow.index()).copied().unwrap_or(SendSsn::ZERO)
    }

    /// Returns true if a writer waits.
    pub(crate) const fn waits(&self) -> bool {
        self.waits
    }
}

/// The used part of a window that does not limit its sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnusedCwnd {
    /// Largest number of bytes outstanding since `full_at`.
    used: u64,
    /// When the window last limited the sender, or was last reduced because it did not.
    full_at: Time,
}

impl UnusedCwnd {
    /// Restarts the measurement after a reduction or at the start: earlier use does not count.
    pub(crate) fn restart(&mut self, now: Time) {
        (self.used, self.full_at) = (0, now);
    }

    /// Notes a sent segment. Returns the used bytes of a window that has not limited the sender for
    /// `rto`.
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        outstanding: u64,
        limited: bool,
        rto: Span,
    ) -> Option<u64> {
        if limited {
            self.restart(now);
            return None;
        }
        self.used = self.used.max(outstanding);
        if now.since(self.full_at) < rto {
            return None;
        }
        let used = self.used;
        self.restart(now);
        Some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: SubflowId = SubflowId(0);
    const SECOND: SubflowId = SubflowId(1);

    #[test]
    fn buffers_follow_the_window_and_never_shrink() {
        let mut memory = SendMemory::new(4 << 20);
        // `ss -m` shows this size for a new subflow.
        assert_eq!(memory.limit(FIRST), 46_080);
        memory.expand(FIRST, 100);
        assert_eq!(memory.limit(FIRST), 460_800);
        memory.expand(FIRST, 50);
        assert_eq!(memory.limit(FIRST), 460_800);
        memory.expand(FIRST, 1 << 40);
        assert_eq!(memory.limit(FIRST), 4 << 20);
        assert_eq!(memory.total([FIRST, SECOND].into_iter()), 4_096 + (4 << 20) + 46_080);
        memory.reset(FIRST);
        assert_eq!(memory.limit(FIRST), 46_080);
    }

    #[test]
    fn a_subflow_stands_still_until_a_look_finds_progress() {
        let mut memory = SendMemory::new(4 << 20);
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        assert!(!memory.stands_still(FIRST));
        memory.note_progress(FIRST, at(10));
        assert!(memory.stands_still(FIRST) && !memory.stands_still(SECOND));
        memory.note_progress(FIRST, at(10));
        assert!(memory.stands_still(FIRST));
        memory.note_progress(FIRST, at(20));
        assert!(!memory.stands_still(FIRST));
    }

    #[test]
    fn a_writer_waits_for_a_third_of_the_buffer() {
        let mut memory = SendMemory::new(4 << 20);
        let total = 90_000;
        assert_eq!(memory.room(1_000, 0, total), 1_000);
        assert!(!memory.waits());
        // Three pieces: the last one goes beyond the end.
        assert_eq!(memory.room(1_000_000, 0, total), 3 * PIECE_BYTES);
        assert!(memory.waits());
        assert_eq!(memory.room(1_000_000, 60_001, total), 0);
        assert_eq!(memory.room(1_000_000, 60_000, total), PIECE_BYTES);
        assert_eq!(memory.room(1_000, 60_000, total), 1_000);
        assert!(!memory.waits());
    }

    #[test]
    fn a_window_that_stays_unused_for_a_timeout_is_told_with_its_peak() {
        let mut cwnd = UnusedCwnd::default();
        let (at, rto) = (|ms| Time::ZERO + Span::from_millis(ms), Span::from_millis(200));
        assert_eq!(cwnd.on_sent(at(100), 9_000, true, rto), None);
        assert_eq!(cwnd.on_sent(at(200), 5_000, false, rto), None);
        assert_eq!(cwnd.on_sent(at(299), 3_000, false, rto), None);
        assert_eq!(cwnd.on_sent(at(300), 2_000, false, rto), Some(5_000));
        // The measurement restarts.
        assert_eq!(cwnd.on_sent(at(400), 1_000, false, rto), None);
        assert_eq!(cwnd.on_sent(at(500), 1_000, false, rto), Some(1_000));
    }
}
