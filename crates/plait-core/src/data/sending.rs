//! Changes of the send queue by the application, the scheduler, and the subflows.

use crate::data::level::DataLevel;
use crate::data::send_queue::SendQueue;
use crate::event::Carry;
use crate::stats::UniqueBytes;
use plait_base::{DataRange, Dsn, SendSsn, Span, SubflowId, SubflowSet, Time};

/// Data of the application.
pub(crate) enum Written<'a> {
    /// So many bytes of the pattern.
    Pattern(u64),
    Bytes(&'a [u8]),
}

impl Written<'_> {
    pub(crate) const fn len(&self) -> u64 {
        match self {
            Written::Pattern(len) => *len,
            Written::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

impl DataLevel {
    /// Returns the data to send.
    #[inline(always)]
    pub(crate) const fn queue(&self) -> &SendQueue {
        &self.queue
    }

    /// Returns the bytes sent and arrived, each counted once.
    pub(crate) fn unique(&self) -> UniqueBytes {
        UniqueBytes { sent: self.queue.sent_once(), arrived: self.reassembly().arrived() }
    }

    /// Appends the first `room` bytes of `written`, for which the send buffer has room.
    #[inline(always)]
    pub(crate) fn write(&mut self, written: &Written<'_>, room: u64) {
        match written {
            Written::Pattern(_) => self.queue.write_pattern(room),
            Written::Bytes(bytes) => self.queue.write_bytes(&bytes[..room as usize]),
        }
    }

    /// Takes the segment of at most `len` bytes that starts `offset` bytes into the unsent data.
    #[inline(always)]
    pub(crate) fn take_new(
        &mut self,
        offset: u64,
        len: u64,
        subflow: SubflowId,
    ) -> Option<DataRange> {
        self.queue.take_new(offset, len, subflow)
    }

    /// Returns the first data to reinject, which `subflow` sends. If that subflow has carried it
    /// already, every subflow has: any may carry it again.
    pub(crate) fn take_reinjection(&mut self, subflow: SubflowId) -> Option<DataRange> {
        let next = self.queue.next_reinjection()?;
        if next.carried.contains(subflow) {
            self.queue.forget_carried(next.range);
        }
        Some(next.range)
    }

    /// Notes that sent data is sent on `subflow` too.
    pub(crate) fn on_sent_again(&mut self, range: DataRange, subflow: SubflowId, carry: Carry) {
        self.queue.mark_carried(range, subflow);
        if matches!(carry, Carry::Reinjection | Carry::Opportunistic) {
            self.queue.note_again(range);
        }
    }

    /// Notes that a subflow retransmits `range`.
    pub(crate) fn on_retransmitted(&mut self, range: DataRange) {
        self.queue.note_again(range);
    }

    /// Leaves `range` with `subflow`, whose timeout was spurious.
    pub(crate) fn on_spurious_timeout(&mut self, range: DataRange, subflow: SubflowId) {
        self.queue.mark_carried(range, subflow);
    }

    /// Queues the sent and not DATA_ACKed parts of `ranges` for reinjection, without data that one of `carriers`
    /// carries.
    pub(crate) fn reinject(
        &mut self,
        ranges: impl IntoIterator<Item = DataRange>,
        carriers: SubflowSet,
    ) {
        ranges.into_iter().for_each(|range| self.queue.queue_reinjection(range, carriers));
    }

    /// Assigns data to subflows. Returns the subflows with changed assignments.
    pub(crate) fn apply_plan(&mut self, plan: &[(DataRange, SubflowId)]) -> SubflowSet {
        self.queue.assign_all(plan)
    }

    /// Reclaims everything assigned and not sent.
    pub(crate) fn withdraw_plan(&mut self) {
        self.queue.unassign_all();
    }

    /// Notes that `range`, assigned to `subflow`, is sent.
    pub(crate) fn take_assigned(&mut self, range: DataRange, subflow: SubflowId) {
        self.queue.take_assigned(range, subflow);
    }

    /// Takes the assigned part of `range` to be sent on `subflow`, if the window allows it. Returns
    /// it with the subflow that it was assigned to.
    pub(crate) fn take_waiting(
        &mut self,
        range: DataRange,
        subflow: SubflowId,
    ) -> Option<(DataRange, SubflowId)> {
        if range.end > self.window.end() {
            return None;
        }
        self.queue.take_waiting(range, subflow)
    }

    /// Moves the data of an ended subflow to the subflows of `open`.
    pub(crate) fn on_subflow_ended(&mut self, open: SubflowSet) {
        self.queue.reinject_orphans(open);
        self.queue.unassign_all();
    }

    /// Removes an ended subflow, whose id is reused.
    pub(crate) fn forget_subflow(&mut self, subflow: SubflowId) {
        self.queue.forget_subflow(subflow);
    }

    /// Splits sent data into segments of at most `size` bytes.
    pub(crate) fn on_lower_size(&mut self, size: u64) {
        self.queue.cut_to(size);
        self.queue.unassign_all();
    }

    /// Notes that the peer of a plain subflow has acknowledged the data below `edge`. Returns true
    /// if this is new.
    pub(crate) fn on_plain_ack(&mut self, edge: Dsn) -> bool {
        self.queue.on_data_ack(edge.min(self.queue.nxt())) > 0
    }

    /// Returns how many of `len` bytes may be written now, if the send buffers of the subflows
    /// `open` are counted in memory.
    pub(crate) fn room_in_memory(
        &mut self,
        len: u64,
        open: impl Iterator<Item = SubflowId>,
    ) -> Option<u64> {
        let occupied = self.queue.occupied();
        let memory = self.queue.memory()?;
        let total = memory.total(open);
        Some(memory.room(len, occupied, total))
    }

    /// Returns true if a writer waits for a send buffer that is counted in memory.
    pub(crate) fn writer_waits(&mut self) -> bool {
        self.queue.memory().is_some_and(|memory| memory.waits())
    }

    /// Grows the send buffer of `subflow` for a window of `segments`.
    pub(crate) fn grow_send_memory(&mut self, subflow: SubflowId, segments: u64) {
        if let Some(memory) = self.queue.memory() {
            memory.expand(subflow, segments);
        }
    }

    /// Grows the send buffer to twice the bytes `carried` in the longest RTT, at most to `most`.
    pub(crate) fn expand_send_buffer(&mut self, carried: u64, most: u64) {
        self.queue.expand(carried, most);
    }

    /// Notes when data of `subflow` was last acknowledged. A DATA_ACK is overdue.
    pub(crate) fn note_progress(&mut self, subflow: SubflowId, progress: Time) {
        if let Some(memory) = self.queue.memory() {
            memory.note_progress(subflow, progress);
        }
    }

    /// Notes that data is assigned; `longest` is the longest time until a retransmission timer of a
    /// subflow expires.
    pub(crate) fn note_timeout(&mut self, longest: Span) {
        if let Some(memory) = self.queue.memory() {
            memory.note_timeout(longest);
        }
    }

    /// Notes that `subflow` has sent a short segment that ends at `end`.
    pub(crate) fn note_short(&mut self, subflow: SubflowId, end: SendSsn) {
        if let Some(memory) = self.queue.memory() {
            memory.note_short(subflow, end);
        }
    }

    /// Notes a reduction of the window of `subflow`: its earlier use does not count.
    pub(crate) fn on_window_reduced(&mut self, subflow: SubflowId, now: Time) {
        if let Some(used) = self.queue.memory().and_then(|it| it.unused_cwnd(subflow)) {
            used.restart(now);
        }
    }

    /// Notes a segment sent on `subflow`, whose window has `outstanding` bytes. Returns the used
    /// bytes of a window that has not `limited` the sender for `rto`, if use is measured.
    pub(crate) fn unused_window(
        &mut self,
        subflow: SubflowId,
        now: Time,
        outstanding: u64,
        limited: bool,
        rto: Span,
    ) -> Option<u64> {
        self.queue.memory()?.unused_cwnd(subflow)?.on_sent(now, outstanding, limited, rto)
    }
}
