//! DSN order: out-of-order data waits here for earlier data, and data in order waits for the
//! application.

use crate::config::KernelBuffers;
use crate::data::memory_usage::MemoryUsage;
use crate::data::tuning::Tuning;
use crate::data::tuning::memory::MemoryWindow;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use plait_base::{DataRange, Dsn, Slim, Span, SubflowId, Time, reserve_ahead};
use plait_wire::Payload;

/// A run of bytes in subflow order.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    /// DSN of its first byte.
    pub(crate) dsn: Dsn,
    pub(crate) payload: &'a Payload,
    /// When it arrived, and on which subflow.
    pub(crate) at: Time,
    pub(crate) subflow: SubflowId,
}

/// A run that waits for earlier data.
#[derive(Debug)]
struct Held {
    range: DataRange,
    at: Time,
    subflow: SubflowId,
    payload: Payload,
}

/// A run of bytes that became readable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readable {
    pub(crate) data: DataRange,
    pub(crate) waited: Span,
    pub(crate) subflow: SubflowId,
}

/// The round trip that the window is adjusted after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Longest round trip time of the subflows.
    pub(crate) rtt: Span,
    /// Payload bytes of a full segment.
    pub(crate) mss: u64,
    /// Number of subflows.
    pub(crate) subflows: usize,
}

/// Bytes of a connection before a large window is tuned.
const UNTUNED_BYTES: u64 = 1 << 20;

/// How the window grows with the data read.
#[derive(Debug)]
enum Tuned {
    /// In bytes of payload.
    Payload(Tuning),
    /// In bytes of memory, as Linux 6.18 does.
    Memory(Box<MemoryWindow>),
}

#[derive(Debug)]
pub(crate) struct Reassembly {
    /// Next expected DSN, sent as the DATA_ACK.
    nxt: Dsn,
    /// DSN up to which the application has read.
    read: Dsn,
    /// The advertised part of the buffer.
    rcvbuf: u64,
    /// `None` if that part is constant.
    tuning: Option<Box<Tuned>>,
    /// Right edge of the largest window advertised so far.
    edge: Dsn,
    held: VecDeque<Held>,
    /// Bytes in `held`.
    waiting: u64,
    /// Number of pieces in `held` from which on further ones are refused.
    most: u32,
    /// Bytes in order; pattern bytes follow from their position.
    ready: VecDeque<Payload>,
    /// DSN of the DATA_FIN, once known.
    fin: Slim<Dsn>,
    fin_taken: bool,
    /// A run of pattern bytes did not match its position.
    misplaced: Option<Box<DataRange>>,
}

impl Reassembly {
    pub(crate) fn new(rcvbuf: u64, most: u32) -> Reassembly {
        Reassembly {
            nxt: Dsn::ZERO,
            read: Dsn::ZERO,
            rcvbuf,
            tuning: None,
            edge: Dsn::ZERO,
            held: VecDeque::new(),
            waiting: 0,
            most,
            ready: VecDeque::new(),
            fin: Slim::NONE,
            fin_taken: false,
            misplaced: None,
        }
    }

    /// Starts with a window of `first` bytes, which grows with the data read, up to the whole
    /// buffer. A large window is tuned only after [`UNTUNED_BYTES`], so that a connection with
    /// little data needs no memory for it.
    pub(crate) fn tune(mut self, first: Option<u64>, mss: u64) -> Reassembly {
        if let Some(first) = first.filter(|first| *first < self.rcvbuf) {
            if first < UNTUNED_BYTES {
                self.start_tuning(self.rcvbuf, mss);
            }
            self.rcvbuf = first;
        }
        self
    }

    /// Starts to measure the data read, so that the window grows up to `largest` bytes.
    fn start_tuning(&mut self, largest: u64, mss: u64) {
        self.tuning = Some(Box::new(Tuned::Payload(Tuning::new(largest, mss))));
    }

    /// Counts the buffer in memory, as Linux does.
    pub(crate) fn count_memory(mut self, buffers: Option<KernelBuffers>, mss: u64) -> Reassembly {
        if let Some(buffers) = buffers {
            let memory = Box::new(MemoryWindow::new(buffers, mss));
            self.tuning = Some(Box::new(Tuned::Memory(memory)));
        }
        self
    }

    /// Returns the size of the receive buffer, unless it is counted in memory.
    pub(crate) const fn size(&self) -> u64 {
        self.rcvbuf
    }

    /// Returns true if the window may change now ([`Reassembly::retune`]), at most to `largest`.
    #[inline]
    pub(crate) fn is_tuned(&self, now: Time, largest: u64) -> bool {
        match self.tuning.as_deref() {
            None => self.rcvbuf < largest && self.nxt > Dsn::new(UNTUNED_BYTES),
            Some(Tuned::Payload(tuning)) => tuning.is_due(now),
            Some(Tuned::Memory(_)) => true,
        }
    }

    /// Returns the state of the buffer, if it is counted in memory.
    #[inline]
    pub(crate) fn memory(&mut self) -> Option<&mut MemoryWindow> {
        match self.tuning.as_deref_mut()? {
            Tuned::Memory(memory) => Some(memory),
            Tuned::Payload(_) => None,
        }
    }

    /// Returns the window to advertise on `subflow`, if the connection could advertise `window` and
    /// counts memory. An already advertised window stays.
    pub(crate) fn window_of(&self, subflow: SubflowId, window: u64) -> u64 {
        match self.tuning.as_deref() {
            Some(Tuned::Memory(memory)) => {
                window.min(memory.limit(subflow)).max(self.edge.saturating_sub(self.nxt()))
            }
            _ => window,
        }
    }

    /// Adjusts the window if a round trip is over, at most to `largest`. Data in order counts as
    /// read in memory.
    #[cold]
    pub(crate) fn retune(&mut self, now: Time, largest: u64, round: Round) {
        let Round { rtt, mss, subflows } = round;
        if self.tuning.is_none() {
            self.start_tuning(largest, mss);
        }
        match self.tuning.as_deref_mut() {
            Some(Tuned::Payload(tuning)) => {
                self.rcvbuf = tuning.turn(now, self.read, rtt, mss, self.rcvbuf);
            }
            Some(Tuned::Memory(memory)) => memory.on_read(now, self.nxt, subflows),
            None => {}
        }
    }

    /// Returns the next expected DSN, the DATA_FIN's included.
    pub(crate) fn nxt(&self) -> Dsn {
        self.nxt + u64::from(self.fin_taken)
    }

    /// Returns the bytes in order that the application has not read.
    pub(crate) fn readable(&self) -> u64 {
        self.nxt - self.read
    }

    /// Returns the bytes that have arrived in order, from the first byte of the connection.
    pub(crate) const fn arrived(&self) -> u64 {
        self.nxt.get()
    }

    /// Returns true if the DATA_FIN was reached.
    pub(crate) const fn finished(&self) -> bool {
        self.fin_taken
    }

    /// Returns the first delivered run with wrong bytes. Pattern bytes encode their position.
    pub(crate) fn misplaced(&self) -> Option<DataRange> {
        self.misplaced.as_deref().copied()
    }

    /// Returns the bytes that wait for earlier ones.
    pub(crate) const fn out_of_order(&self) -> u64 {
        self.waiting
    }

    /// Returns the memory of received data that was not read.
    pub(crate) fn memory_usage(&self) -> MemoryUsage {
        MemoryUsage::bytes(self.readable() + self.waiting)
            + MemoryUsage::pieces(&self.ready)
            + MemoryUsage::pieces(&self.held)
    }

    /// Returns true if `range` ends more than `most` bytes beyond the read position.
    pub(crate) fn is_far(&self, range: DataRange, most: u64) -> bool {
        range.end > self.read.saturating_add(most)
    }

    /// Frees the memory of empty buffers.
    pub(crate) fn give_back(&mut self) {
        if self.held.is_empty() {
            self.held = VecDeque::new();
        }
        if self.ready.is_empty() {
            self.ready = VecDeque::new();
        }
    }

    /// Returns the right edge of the window: the advertised edge, or the buffer's edge if it is
    /// higher.
    pub(crate) fn right_edge(&self) -> Dsn {
        self.edge.max(self.room(u64::MAX))
    }

    /// Returns the right edge that the buffer has room for, limited to `most` bytes.
    #[inline]
    fn room(&self, most: u64) -> Dsn {
        match self.tuning.as_deref() {
            Some(Tuned::Memory(memory)) => {
                self.nxt + memory.window(self.readable() + self.waiting).min(most)
            }
            _ => self.read.saturating_add(self.rcvbuf.min(most)),
        }
    }

    /// Returns the window to advertise with a DATA_ACK of [`Reassembly::nxt`].
    pub(crate) fn window(&self) -> u64 {
        self.right_edge().saturating_sub(self.nxt())
    }

    /// Returns the window limited to `most` bytes beyond the read position. An already advertised
    /// window stays.
    pub(crate) fn window_within(&self, most: u64) -> u64 {
        self.edge.max(self.room(most)).saturating_sub(self.nxt())
    }

    /// Returns true if all of `range` has arrived, delivered or out of order.
    pub(crate) fn has(&self, range: DataRange) -> bool {
        let mut reached = self.nxt;
        for held in &self.held {
            if reached >= range.end || held.range.start > reached.max(range.start) {
                break;
            }
            reached = held.range.end;
        }
        reached >= range.end
    }

    /// Returns the window as last advertised.
    pub(crate) fn advertised(&self) -> u64 {
        self.edge.saturating_sub(self.nxt())
    }

    /// Notes an advertised window of `window` bytes.
    pub(crate) fn on_advertised(&mut self, window: u64) {
        self.edge = self.edge.max(self.nxt() + window);
    }

    /// Returns true if `range` lies within the window. Other data is discarded (RFC 8684 section
    /// 3.3.5).
    pub(crate) fn fits(&self, range: DataRange) -> bool {
        self.fits_up_to(range.end)
    }

    /// Returns true if data that ends at `end` lies within the window.
    #[inline]
    pub(crate) fn fits_up_to(&self, end: Dsn) -> bool {
        // Nearly all data lies within the advertised window.
        end <= self.edge || end <= self.right_edge()
    }

    /// Returns true if so many pieces wait that only earlier data is accepted.
    pub(crate) fn is_crowded(&self) -> bool {
        self.held.len() >= self.most as usize
    }

    /// Sets the end of the peer's data to `dsn`.
    pub(crate) fn set_fin(&mut self, dsn: Dsn) -> bool {
        if self.fin.is_none() {
            self.fin = Slim::some(dsn);
        }
        self.try_finish()
    }

    fn try_finish(&mut self) -> bool {
        let reached = !self.fin_taken && self.fin.value() == Some(self.nxt);
        self.fin_taken |= reached;
        reached
    }

    /// Accepts a run. Passes readable data to `on_readable`. Returns how many bytes were new.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        now: Time,
        run: Run<'_>,
        on_readable: &mut impl FnMut(Readable),
    ) -> u64 {
        let Run { dsn, payload, at, subflow } = run;
        let range = DataRange::with_len(dsn, u64::from(payload.len()));
        if range.end <= self.nxt {
            return 0;
        }
        let new = if dsn > self.nxt {
            self.hold(range, run)
        } else if self.held.is_empty() {
            let new = range.end - self.nxt;
            self.deliver(range.start, payload, range.end, &mut |data| {
                on_readable(Readable { data, waited: now.since(at), subflow });
            });
            new
        } else {
            let run = Held { range, at, subflow, payload: payload.clone() };
            self.insert_in_order(now, &run, on_readable)
        };
        if self.fin.is_some() {
            self.try_finish();
        }
        new
    }

    /// Delivers a run that starts at or below the next byte, and held data that follows it. Bytes
    /// that arrived before are delivered from the first copy (R35). Returns how many were new.
    fn insert_in_order(
        &mut self,
        now: Time,
        run: &Held,
        on_readable: &mut impl FnMut(Readable),
    ) -> u64 {
        let mut new = 0;
        loop {
            let gap_end = self.held.front().map_or(Dsn::MAX, |held| held.range.start);
            let end = run.range.end.min(gap_end);
            new += end.saturating_sub(self.nxt);
            self.deliver_held(now, run, end, on_readable);
            if self.held.front().is_none_or(|held| held.range.start > self.nxt) {
                return new;
            }
            if let Some(held) = self.held.pop_front() {
                self.waiting -= held.range.len();
                self.deliver_held(now, &held, held.range.end, on_readable);
            }
        }
    }

    /// Makes the new part of `held` below `end` readable.
    fn deliver_held(
        &mut self,
        now: Time,
        held: &Held,
        end: Dsn,
        on_readable: &mut impl FnMut(Readable),
    ) {
        let Held { range, at, subflow, ref payload } = *held;
        self.deliver(range.start, payload, end, &mut |data| {
            on_readable(Readable { data, waited: now.since(at), subflow });
        });
    }

    /// Makes the new part below `end` of a run that starts at `start` readable.
    #[inline(always)]
    fn deliver(
        &mut self,
        start: Dsn,
        payload: &Payload,
        end: Dsn,
        on_readable: &mut impl FnMut(DataRange),
    ) {
        if end <= self.nxt {
            return;
        }
        let skip = self.nxt - start;
        let data = DataRange { start: self.nxt, end };
        self.nxt = end;
        match payload {
            Payload::Pattern { offset, .. } | Payload::Edited { offset, .. } => {
                if *offset != start.get() {
                    self.misplaced.get_or_insert_with(|| Box::new(data));
                }
            }
            Payload::Bytes { .. } => {
                self.ready.push_back(payload.slice(skip as u32, data.len() as u32));
            }
            Payload::Empty => {}
        }
        on_readable(data);
    }

    /// Holds the parts of `range` that are not held yet.
    fn hold(&mut self, range: DataRange, run: Run<'_>) -> u64 {
        let Run { payload, at, subflow, .. } = run;
        if self.held.back().is_none_or(|last| last.range.end <= range.start) {
            reserve_ahead(&mut self.held, 512);
            self.held.push_back(Held { range, at, subflow, payload: payload.clone() });
            self.waiting += range.len();
            return range.len();
        }
        let mut index = self.held.partition_point(|held| held.range.end <= range.start);
        let (mut start, mut new) = (range.start, 0);
        while start < range.end {
            let next = self.held.get(index).map(|held| held.range);
            let gap_end = next.map_or(range.end, |next| next.start.min(range.end));
            if start < gap_end {
                let gap = DataRange::new(start, gap_end);
                let piece = payload.slice((start - range.start) as u32, gap.len() as u32);
                reserve_ahead(&mut self.held, 512);
                self.held.insert(index, Held { range: gap, at, subflow, payload: piece });
                new += gap.len();
                index += 1;
            }
            start = next.map_or(range.end, |next| next.end.max(start));
            index += 1;
        }
        self.waiting += new;
        new
    }

    /// Reads and discards up to `max` bytes, for pattern data.
    pub(crate) fn skip(&mut self, max: u64) -> u64 {
        let taken = max.min(self.readable());
        self.read += taken;
        let mut left = taken;
        while let Some(front) = self.ready.front_mut() {
            let len = u64::from(front.len());
            if left < len {
                *front = front.slice(left as u32, u32::MAX);
                break;
            }
            left -= len;
            self.ready.pop_front();
        }
        taken
    }

    /// Reads bytes into `buffer` and returns how many.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(front) = self.ready.front_mut() {
            let Some(bytes) = front.bytes() else { break };
            let count = bytes.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&bytes[..count]);
            filled += count;
            if count < bytes.len() {
                *front = front.slice(count as u32, u32::MAX);
                break;
            }
            self.ready.pop_front();
        }
        self.read += filled as u64;
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        /// R37: the right edge of a window that grows with the data read never moves left, and
        /// never leaves the largest buffer.
        #[test]
        fn a_growing_window_never_shrinks(
            first in prop::sample::select(alloc::vec![1u64 << 16, 1 << 20, 6 << 20]),
            rounds in proptest::collection::vec((1u64..8 << 20, 1u64..200), 1..40),
        ) {
            let largest = 32 << 20;
            let mut reassembly = Reassembly::new(largest, 64).tune(Some(first), 1_428);
            let (mut now, mut grew, mut edge) = (Time::ZERO, false, Dsn::ZERO);
            prop_assert_eq!(reassembly.window(), first);
            for (len, rtt) in rounds {
                let (offset, len) = (reassembly.nxt().get(), len.min(reassembly.window()) as u32);
                let payload = Payload::Pattern { offset, len };
                let run = Run { dsn: reassembly.nxt(), payload: &payload, at: now, subflow: SubflowId(0) };
                reassembly.insert(now, run, &mut |_| {});
                let told = reassembly.window();
                reassembly.on_advertised(told);
                reassembly.skip(u64::MAX);
                if reassembly.is_tuned(now, largest) {
                    let round = Round { rtt: Span::from_millis(rtt), mss: 1_428, subflows: 1 };
                    reassembly.retune(now, largest, round);
                }
                grew |= reassembly.size() > first;
                prop_assert!(reassembly.right_edge() >= edge);
                edge = reassembly.right_edge();
                prop_assert!(reassembly.size() >= first && reassembly.size() <= largest);
                prop_assert!(reassembly.window() <= largest);
                now += Span::from_millis(rtt);
            }
            // A window is at most four times the data read, and 32 segments.
            prop_assert!(!grew || reassembly.size() <= 4 * reassembly.read.get() + 32 * 1_428);
        }

        /// R35: for any order, overlaps and repetitions, every byte is readable once, in order, and
        /// counted as new once.
        #[test]
        fn every_byte_once_in_order(
            total in 1u64..200,
            pieces in proptest::collection::vec((0u64..200, 1u64..40), 1..80),
        ) {
            let source: Vec<u8> = (0..total).map(|n| n as u8).collect();
            let mut reassembly = Reassembly::new(1 << 20, 64);
            let mut model = alloc::collections::BTreeSet::new();
            let rest = (0..total).step_by(7).map(|start| (start, 7));
            let mut got = Vec::new();
            for (start, len) in pieces.into_iter().chain(rest) {
                let (start, end) = (start.min(total - 1), (start + len).min(total));
                if start >= end {
                    continue;
                }
                let payload = Payload::from_bytes(&source[start as usize..end as usize]);
                let mut runs = Vec::new();
                let new = reassembly.insert(
                    Time::ZERO,
                    Run { dsn: Dsn::new(start), payload: &payload, at: Time::ZERO, subflow: SubflowId(0) },
                    &mut |run| runs.push(run.data),
                );
                let fresh = (start..end).filter(|byte| model.insert(*byte)).count() as u64;
                prop_assert_eq!(new, fresh);
                let held: u64 = reassembly.held.iter().map(|held| held.range.len()).sum();
                prop_assert_eq!(reassembly.out_of_order(), held);
                prop_assert!(runs.windows(2).all(|pair| pair[0].end == pair[1].start));
                let mut buffer = [0; 64];
                loop {
                    let count = reassembly.read(&mut buffer);
                    if count == 0 { break }
                    got.extend_from_slice(&buffer[..count]);
                }
            }
            prop_assert_eq!(got, source);
        }
    }

    /// A window of 6 MiB grows when more than a quarter of it is read in a round trip. It needs no
    /// state before a megabyte, and a fixed window none at all.
    #[test]
    fn a_large_window_grows_with_the_data_read() {
        let round = Round { rtt: Span::from_millis(10), mss: 1_000, subflows: 1 };
        let mut reassembly = Reassembly::new(32 << 20, 64).tune(Some(6 << 20), 1_000);
        let mut sizes = Vec::new();
        for (index, len) in
            [1 << 20, 1, 1 << 20, 3 << 20, 4 << 20, 20 << 20].into_iter().enumerate()
        {
            let now = Time::ZERO + Span::from_millis(10 * index as u64);
            let dsn = reassembly.nxt();
            let payload = Payload::Pattern { offset: dsn.get(), len };
            let run = Run { dsn, payload: &payload, at: now, subflow: SubflowId(0) };
            reassembly.insert(now, run, &mut |_| {});
            reassembly.skip(u64::MAX);
            assert_eq!(reassembly.is_tuned(now, 32 << 20), index > 0);
            assert!(!reassembly.is_tuned(now, reassembly.size()) || reassembly.tuning.is_some());
            if index > 0 {
                reassembly.retune(now, 32 << 20, round);
            }
            sizes.push(reassembly.size());
        }
        let twice = |read: u64| 2 * read + 16_000;
        let grown = [2 * twice(3 << 20), 3 * twice(4 << 20) / 2, 32 << 20];
        assert_eq!(sizes, [6 << 20, 6 << 20, 6 << 20, grown[0], grown[0].max(grown[1]), grown[2]]);
        assert!(
            !Reassembly::new(6 << 20, 64).tune(Some(6 << 20), 1_000).is_tuned(Time::ZERO, 6 << 20)
        );
    }
}
