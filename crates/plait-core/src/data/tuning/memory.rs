//! The receive window of Linux 6.18: its buffer is counted in bytes of memory, and grows with the
//! data read in a round trip.
//!
//! After `mptcp_rcv_space_adjust` and `mptcp_rcvbuf_grow` (net/mptcp/protocol.c) and
//! `tcp_rcv_rtt_measure_ts` and `tcp_measure_rcv_mss` (net/ipv4/tcp_input.c).

use crate::config::KernelBuffers;
use plait_base::{Dsn, Span, SubflowId, Time};

/// Bytes that count as read in the round trip before the first: ten segments.
const FIRST_SPACE_BYTES: u64 = 10 * ADVERTISED_MSS;
/// Payload of a full segment of plain TCP with timestamps, which Linux uses here.
const ADVERTISED_MSS: u64 = 1_448;
/// Denominator of the payload's share of memory (`TCP_RMEM_TO_WIN_SCALE`).
const RATIO_ONE: u64 = 256;
/// The share of payload until a subflow has received a full segment.
const FIRST_RATIO: u64 = RATIO_ONE / 2;
/// Memory of a segment's descriptor (`struct sk_buff`), and of a buffer besides the payload:
/// headers with options, and `struct skb_shared_info`.
const DESCRIPTOR_BYTES: u64 = 256;
const BESIDE_PAYLOAD_BYTES: u64 = 80 + 320;
/// Initial window of a subflow in bytes: half of 128 KiB less a segment.
const FIRST_WINDOW_BYTES: u64 = 65_536 - ADVERTISED_MSS;
/// Bytes by which a segment may grow the window of its subflow: two full segments.
const GROWTH_BYTES: u64 = 2 * ADVERTISED_MSS;
/// Smallest segment that grows it, in bytes.
const LEAST_GROWING_BYTES: u64 = 128;

/// Returns the memory of a segment with `payload` bytes: a power-of-two buffer and its descriptor,
/// so 2,304 bytes for an Ethernet packet (`__alloc_skb`, net/core/skbuff.c).
const fn segment_memory(payload: u64) -> u64 {
    (payload.saturating_add(BESIDE_PAYLOAD_BYTES)).next_power_of_two() + DESCRIPTOR_BYTES
}

/// A growing buffer of the connection or of a subflow.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// Bytes of memory.
    memory: u64,
    /// Bytes read in the round trip that last grew it (`rcvq_space.space`).
    space: u64,
}

impl Buffer {
    const fn new(memory: u64) -> Buffer {
        Buffer { memory, space: FIRST_SPACE_BYTES }
    }

    /// Grows the buffer to twice the bytes `copied` in a round trip, and twice the growth beyond
    /// that. `ratio` parts of the memory are payload. Returns true if the memory grew.
    fn grow(&mut self, copied: u64, ratio: u64, most: u64) -> bool {
        let before = core::mem::replace(&mut self.space, copied).max(1);
        let window = copied.saturating_mul(2);
        let growth = window.saturating_mul(copied.saturating_sub(before)) / before;
        let window = window.saturating_add(growth.saturating_mul(2));
        let memory = (window.saturating_mul(RATIO_ONE) / ratio).min(most);
        let grows = memory > self.memory;
        self.memory = self.memory.max(memory);
        grows
    }
}

/// State of one subflow.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    buffer: Buffer,
    /// Smoothed time from an acknowledgement to the data that it released.
    rtt: Option<Span>,
    /// The last timestamp that the peer echoed.
    echo: u32,
    /// A full segment has arrived.
    full: bool,
    /// A short segment has arrived since the reader had read everything.
    short: bool,
    /// Largest window to advertise on it, in bytes (`rcv_ssthresh`).
    limit: u64,
}

impl Arrivals {
    /// Notes an echoed timestamp. Returns true if the previous segment did not echo it.
    fn note_echo(&mut self, echo: u32) -> bool {
        core::mem::replace(&mut self.echo, echo) != echo
    }

    /// Adds a sample of the time since an acknowledgement. The average falls at once and rises
    /// slowly.
    fn note_age(&mut self, age: Span) {
        self.rtt = Some(match self.rtt {
            Some(rtt) if age > rtt => rtt + Span::from_nanos((age.as_nanos() - rtt.as_nanos()) / 8),
            _ => age,
        });
    }
}

/// State of the tuning.
#[derive(Clone, Debug)]
pub(crate) struct MemoryWindow {
    buffer: Buffer,
    /// Largest buffer, in bytes of memory.
    most: u64,
    /// Payload bytes of a full segment.
    mss: u64,
    /// Bytes of memory of a full segment.
    segment_memory: u64,
    /// Parts of [`RATIO_ONE`] of the connection's memory that are payload.
    ratio: u64,
    /// The connection is plain TCP.
    plain: bool,
    /// Read position at the start of this round trip, and that time. The first one starts with the connection in plain
    /// TCP (`tcp_init_buffer_space`), and counts as started long ago in Multipath TCP.
    read: Dsn,
    at: Option<Time>,
    rtt: Option<Span>,
    arrivals: [Arrivals; SubflowId::MAX],
}

impl MemoryWindow {
    /// Returns the initial window; `mss` is the payload bytes of a full segment.
    pub(crate) fn new(buffers: KernelBuffers, mss: u64) -> MemoryWindow {
        let buffer = Buffer::new(buffers.first_rcvbuf);
        let fresh = Arrivals {
            buffer,
            rtt: None,
            echo: 0,
            full: false,
            short: false,
            limit: FIRST_WINDOW_BYTES.min(buffers.first_rcvbuf / 2),
        };
        MemoryWindow {
            buffer,
            most: buffers.most_rcvbuf,
            mss,
            segment_memory: segment_memory(mss),
            ratio: FIRST_RATIO,
            plain: false,
            read: Dsn::ZERO,
            at: None,
            rtt: None,
            arrivals: [fresh; SubflowId::MAX],
        }
    }

    /// Notes that the handshake of plain TCP is over.
    pub(crate) const fn begin_plain(&mut self, now: Time) {
        (self.plain, self.at) = (true, Some(now));
    }

    /// Notes a segment of `len` bytes on `subflow` that echoes the timestamp `echo`, which is `age`
    /// old. Returns true if the window of the subflow grows: Linux acknowledges such a segment at
    /// once.
    pub(crate) fn on_segment(
        &mut self,
        subflow: SubflowId,
        len: u64,
        echo: u32,
        age: Span,
    ) -> bool {
        let full_ratio = self.full_ratio();
        let Some(arrivals) = self.arrivals.get_mut(subflow.index()) else { return false };
        let full = len >= self.mss;
        let anew = arrivals.note_echo(echo);
        if full {
            arrivals.full = true;
            if anew {
                arrivals.note_age(age);
            }
        } else {
            arrivals.short = true;
        }
        let ratio = if arrivals.full { full_ratio } else { FIRST_RATIO };
        // The segment itself uses memory while it is processed.
        let memory = arrivals.buffer.memory.saturating_sub(self.segment_memory);
        let room = (memory * ratio / RATIO_ONE).saturating_sub(arrivals.limit);
        let grows = room > 0 && len >= LEAST_GROWING_BYTES;
        if grows {
            arrivals.limit += room.min(GROWTH_BYTES);
        }
        grows
    }

    /// Notes an acknowledgement without payload on `subflow`, which echoes the timestamp `echo`. A
    /// server that acknowledges a request before it answers thus delays the growth of the window
    /// by a round trip.
    pub(crate) fn on_bare_ack(&mut self, subflow: SubflowId, echo: u32) {
        if let Some(arrivals) = self.arrivals.get_mut(subflow.index()) {
            arrivals.note_echo(echo);
        }
    }

    /// Returns the largest window to advertise on `subflow`.
    pub(crate) fn limit(&self, subflow: SubflowId) -> u64 {
        self.arrivals.get(subflow.index()).map_or(0, |it| it.limit)
    }

    /// Returns true if a short segment has arrived on `subflow` since the last call.
    pub(crate) fn take_short(&mut self, subflow: SubflowId) -> bool {
        let arrivals = self.arrivals.get_mut(subflow.index());
        arrivals.is_some_and(|it| core::mem::take(&mut it.short))
    }

    /// Grows the buffers if a round trip is over. `read`: DSN up to which the application has read.
    /// `subflows`: the number of subflows.
    pub(crate) fn on_read(&mut self, now: Time, read: Dsn, subflows: usize) {
        let elapsed = self.at.map_or(Span::MAX, |at| now.since(at));
        // Multipath TCP takes in the samples of its subflows once in a round trip.
        if !self.plain && self.rtt.is_some_and(|rtt| elapsed < rtt) {
            return;
        }
        let of_subflows = self.arrivals.iter().take(subflows);
        let longest = of_subflows.clone().filter_map(|it| it.rtt).max();
        let full = of_subflows.clone().all(|it| it.full);
        self.rtt = longest;
        self.ratio = if full { self.full_ratio() } else { FIRST_RATIO };
        if longest.is_none_or(|rtt| elapsed < rtt) {
            return;
        }
        let copied = read.saturating_sub(self.read);
        (self.read, self.at) = (read, Some(now));
        if copied <= self.buffer.space || !self.buffer.grow(copied, self.ratio, self.most) {
            return;
        }
        let (full_ratio, most) = (self.full_ratio(), self.most);
        for arrivals in self.arrivals.iter_mut().take(subflows) {
            let ratio = if arrivals.full { full_ratio } else { FIRST_RATIO };
            arrivals.buffer.grow(copied, ratio, most);
        }
    }

    fn full_ratio(&self) -> u64 {
        (self.mss * RATIO_ONE / self.segment_memory).clamp(1, RATIO_ONE)
    }

    /// Returns the window in bytes of payload from the next expected byte on, while `held` bytes
    /// use memory. Out-of-order data uses some of the window as well.
    pub(crate) fn window(&self, held: u64) -> u64 {
        let memory = held.saturating_mul(self.segment_memory) / self.mss.max(1);
        self.buffer.memory.saturating_sub(memory) * self.ratio / RATIO_ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_420;
    const BUFFERS: KernelBuffers = KernelBuffers::LINUX_6_18;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// One subflow whose segments arrive 50 ms after the acknowledgement that released them.
    fn window() -> MemoryWindow {
        let mut window = MemoryWindow::new(BUFFERS, MSS);
        window.on_segment(SubflowId(0), MSS, 1, Span::from_millis(50));
        window
    }

    #[test]
    fn half_of_the_memory_is_window_until_a_full_segment_came() {
        let mut window = MemoryWindow::new(BUFFERS, MSS);
        assert_eq!(window.window(0), 65_536);
        window.on_segment(SubflowId(0), 100, 1, Span::from_millis(50));
        window.on_read(at(10), Dsn::new(100), 1);
        assert_eq!(window.window(0), 65_536);
        window.on_segment(SubflowId(0), MSS, 2, Span::from_millis(50));
        window.on_read(at(20), Dsn::new(1_520), 1);
        // 157 of 256 parts.
        assert_eq!(window.window(0), 131_072 * 157 / 256);
        // With a second subflow that has carried nothing, the share is one half again.
        window.on_read(at(80), Dsn::new(1_520), 2);
        assert_eq!(window.window(0), 65_536);
    }

    #[test]
    fn data_out_of_order_takes_window() {
        let mut window = window();
        window.on_read(at(10), Dsn::ZERO, 1);
        let (all, less) = (window.window(0), window.window(10 * MSS));
        assert_eq!((all - less) / 1_000, 10 * 2_304 * 157 / 256 / 1_000);
        assert_eq!(window.window(u64::MAX), 0);
    }

    /// Sizes shown by `ss -m` on Linux 6.18: 173,424 bytes read in a round trip after 31,240. One
    /// subflow had grown with both, another with the second alone.
    #[test]
    fn buffers_grow_as_those_of_the_kernel() {
        let grown = |reads: &[u64]| {
            let mut buffer = Buffer::new(131_072);
            reads.iter().for_each(|copied| {
                buffer.grow(*copied, 157, BUFFERS.most_rcvbuf);
            });
            buffer.memory
        };
        assert_eq!(grown(&[31_240]), 337_717);
        assert!(grown(&[31_240, 173_424]).abs_diff(5_713_685) < 100);
        assert!(grown(&[173_424]).abs_diff(12_981_655) < 100);
        // A growth that needs no more memory still changes the base of the next one.
        assert!(grown(&[31_240, 173_424, 486_736]).abs_diff(7_322_689) < 100);
    }

    /// The longest round trip of the subflows is used.
    #[test]
    fn less_than_a_round_trip_counts_for_nothing() {
        let mut window = window();
        window.on_read(at(10), Dsn::ZERO, 1);
        window.on_read(at(59), Dsn::new(31_240), 1);
        assert_eq!(window.window(0), 131_072 * 157 / 256);
        window.on_read(at(60), Dsn::new(31_240), 1);
        assert_eq!(window.window(0), 337_717 * 157 / 256);
    }

    /// Round trips of plain TCP as the tracepoint `tcp_rcvbuf_grow` of Linux 6.18 showed them, over 8 Mbit/s with an RTT of
    /// 60 ms. The server had acknowledged the request, so the first ten segments gave no sample. The first round trip ends
    /// with the eleventh, and the next one with the thirty-second.
    #[test]
    fn the_first_round_trip_of_plain_tcp_begins_with_the_connection() {
        let mss = 1_448;
        let mut window = MemoryWindow::new(BUFFERS, mss);
        window.begin_plain(at(60));
        window.on_bare_ack(SubflowId(0), 1);
        let begun = |us: u64| at(60) + Span::from_micros(us);
        let mut read = |(us, segments): (u64, u64), echo: u32, age: u64| {
            window.on_segment(SubflowId(0), mss, echo, Span::from_millis(age));
            window.on_read(begun(us), Dsn::new(segments * mss), 1);
            (window.at.unwrap(), window.buffer.space / mss)
        };
        assert_eq!(read((61_920, 1), 1, 62), (begun(0), 10));
        assert_eq!(read((63_420, 2), 1, 64), (begun(0), 10));
        assert_eq!(read((123_965, 11), 2, 62), (begun(123_965), 11));
        assert_eq!(read((137_000, 20), 3, 75), (begun(123_965), 11));
        assert_eq!(read((184_150, 31), 4, 61), (begun(123_965), 11));
        assert_eq!(read((185_684, 32), 4, 62), (begun(185_684), 21));
        assert!(window.buffer.memory > 131_072);
    }

    /// `tcp_rcv_rtt_measure_ts`: only the first segment with an echo gives a sample, and only if it is
    /// full.
    #[test]
    fn an_acknowledgement_takes_the_sample_of_the_data_after_it() {
        fn sample(window: &mut MemoryWindow, echo: u32, age: u64) -> Option<Span> {
            window.on_segment(SubflowId(0), MSS, echo, Span::from_millis(age));
            window.arrivals[0].rtt
        }
        let mut it = MemoryWindow::new(BUFFERS, MSS);
        let first = [sample(&mut it, 7, 50), sample(&mut it, 8, 40)];
        it.on_bare_ack(SubflowId(0), 9);
        let later = [sample(&mut it, 9, 20), sample(&mut it, 10, 28)];
        assert_eq!([first, later].concat(), [50, 40, 40, 28].map(|it| Some(Span::from_millis(it))));
    }

    /// Two segments for each received one, up to the memory's limit.
    #[test]
    fn the_window_of_a_subflow_grows_with_its_segments() {
        let mut window = MemoryWindow::new(BUFFERS, MSS);
        let of = |window: &MemoryWindow| window.limit(SubflowId(0));
        assert_eq!(of(&window), 64_088);
        assert!(window.on_segment(SubflowId(0), MSS, 1, Span::from_millis(50)));
        assert_eq!((of(&window), window.limit(SubflowId(1))), (64_088 + 2_896, 64_088));
        assert!(!window.on_segment(SubflowId(0), 127, 1, Span::from_millis(50)));
        for _ in 0..10 {
            window.on_segment(SubflowId(0), MSS, 1, Span::from_millis(50));
        }
        // The buffer less the current segment, as `ss -i` shows it (rcv_ssthresh).
        assert!(of(&window).abs_diff(78_971) < 2);
        assert!(!window.on_segment(SubflowId(0), MSS, 1, Span::from_millis(50)));
    }

    /// Segments of jumbo frames take more memory than their payload, too.
    #[test]
    fn a_window_is_never_more_than_the_memory() {
        assert_eq!([536, 1_420, 1_428, 8_960].map(segment_memory), [1_280, 2_304, 2_304, 16_640]);
        let fixed = KernelBuffers { most_rcvbuf: BUFFERS.first_rcvbuf, ..BUFFERS };
        for mss in [536, 1_420, 8_920, 65_000] {
            let mut window = MemoryWindow::new(fixed, mss);
            window.on_segment(SubflowId(0), mss, 1, Span::from_millis(50));
            window.on_read(at(10), Dsn::new(mss), 1);
            let held = mss;
            assert!(held + window.window(held) <= BUFFERS.first_rcvbuf, "{mss}");
        }
    }

    #[test]
    fn the_memory_has_a_bound() {
        let mut window = window();
        window.on_read(at(10), Dsn::ZERO, 1);
        window.on_read(at(60), Dsn::new(1 << 30), 1);
        assert_eq!(window.window(0), BUFFERS.most_rcvbuf * 157 / 256);
    }

    #[test]
    fn the_round_trip_falls_at_once_and_rises_slowly() {
        let mut window = window();
        window.on_segment(SubflowId(0), MSS, 2, Span::from_millis(130));
        assert_eq!(window.arrivals[0].rtt, Some(Span::from_millis(60)));
        window.on_segment(SubflowId(0), MSS, 2, Span::from_millis(500));
        assert_eq!(window.arrivals[0].rtt, Some(Span::from_millis(60)));
        window.on_segment(SubflowId(0), MSS, 3, Span::from_millis(20));
        assert_eq!(window.arrivals[0].rtt, Some(Span::from_millis(20)));
    }
}
