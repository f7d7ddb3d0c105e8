//! Changes of the received data by the subflows and the application.

use crate::config::Config;
use crate::data::level::DataLevel;
use crate::data::reassembly::{Readable, Reassembly, Round, Run};
use plait_base::{Dsn, Span, SubflowId, SubflowSet, Time};
use plait_wire::Segment;

/// How the application reads.
pub(crate) enum Reading<'a> {
    /// Discards at most so many bytes.
    Skip(u64),
    Into(&'a mut [u8]),
}

impl DataLevel {
    /// Returns the received data.
    #[inline(always)]
    pub(crate) const fn reassembly(&self) -> &Reassembly {
        &self.recv
    }

    /// Reads, and returns the number of bytes read.
    #[inline(always)]
    pub(crate) fn read(&mut self, reading: Reading<'_>) -> u64 {
        match reading {
            Reading::Skip(most) => self.recv.skip(most),
            Reading::Into(buffer) => self.recv.read(buffer) as u64,
        }
    }

    /// Accepts data of a subflow, and calls `tell` for data that becomes readable. Returns the
    /// number of new bytes.
    #[inline(always)]
    pub(crate) fn deliver(
        &mut self,
        now: Time,
        run: Run<'_>,
        tell: &mut impl FnMut(Readable),
    ) -> u64 {
        self.recv.insert(now, run, tell)
    }

    /// Notes the end of the peer's plain data.
    pub(crate) fn on_plain_fin(&mut self, end: Dsn) {
        self.recv.set_fin(end);
    }

    /// Notes an advertised window of `window` bytes.
    #[inline(always)]
    pub(crate) fn on_advertised(&mut self, window: u64) {
        self.recv.on_advertised(window);
    }

    /// Adjusts the window if a round trip is over; `rtt` is the longest of the subflows.
    pub(crate) fn retune(&mut self, now: Time, config: &Config, round: Round) {
        self.recv.retune(now, config.buffers.rcvbuf, round);
    }

    /// Notes a segment of `len` bytes on `subflow`, whose echoed timestamp `echo` has this `age`,
    /// for a buffer that is counted in memory. Returns true if it is acknowledged without delay.
    #[inline(always)]
    pub(crate) fn note_memory(
        &mut self,
        subflow: SubflowId,
        len: u64,
        echo: impl FnOnce() -> (u32, Span),
    ) -> bool {
        let Some(memory) = self.recv.memory() else { return false };
        let (echo, age) = echo();
        memory.on_segment(subflow, len, echo, age)
    }

    /// Notes a segment without payload on `subflow`, for a buffer that is counted in memory.
    pub(crate) fn note_bare_ack(&mut self, subflow: SubflowId, segment: &Segment) {
        if let (Some(memory), Some(stamps)) = (self.recv.memory(), segment.options.timestamps) {
            memory.on_bare_ack(subflow, stamps.echo);
        }
    }

    /// Returns the subflows on which a short segment has arrived since the last call, if the buffer
    /// is counted in memory.
    pub(crate) fn take_short(&mut self) -> SubflowSet {
        let Some(memory) = self.recv.memory() else { return SubflowSet::EMPTY };
        let ids = (0..SubflowId::MAX as u8).map(SubflowId);
        ids.filter(|id| memory.take_short(*id)).collect()
    }
}
