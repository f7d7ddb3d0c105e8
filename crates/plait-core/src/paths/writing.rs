//! The subflows' part of writing and reading: free send buffer, and window updates.

use crate::config::MemoryLimit;
use crate::data::level::DataLevel;
use crate::data::send_queue::SendQueue;
use crate::paths::Paths;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use plait_base::Span;

/// Room for data of the application.
pub(crate) struct WriteRoom {
    /// Bytes that can be written.
    pub(crate) room: u64,
    /// The application has more to write.
    pub(crate) blocked: bool,
}

/// A write of the application.
#[derive(Clone, Copy)]
pub(crate) struct Write {
    /// Its bytes.
    pub(crate) len: u64,
    /// The application found the send buffer full before.
    pub(crate) waited: bool,
}

impl Write {
    /// Returns the room in a send buffer that may hold `most` bytes and grow to `largest`, with
    /// these `open` subflows.
    #[inline]
    fn room<'a>(
        self,
        data: &mut DataLevel,
        open: impl Iterator<Item = &'a Subflow> + Clone,
        (most, largest): (u64, u64),
    ) -> WriteRoom {
        let free = |queue: &SendQueue| most.min(queue.size()).saturating_sub(queue.occupied());
        let mut room = free(data.queue());
        if self.len > room && self.waited && data.queue().size() < most.min(largest) {
            expand(data, open, most.min(largest));
            room = free(data.queue());
        }
        WriteRoom { room: self.len.min(room), blocked: self.len > room }
    }
}

/// Grows the send buffer, up to `largest`, if the congestion windows of the `open` subflows have
/// more room than unsent data could fill (`tcp_should_expand_sndbuf` and `tcp_sndbuf_expand` of
/// Linux). A larger buffer would not make full windows send more.
#[cold]
fn expand<'a>(data: &mut DataLevel, open: impl Iterator<Item = &'a Subflow> + Clone, largest: u64) {
    let free = |it: &Subflow| {
        let used = it.sender().tx.inflight() + data.queue().assigned(it.id());
        it.sender().cwnd().saturating_sub(used)
    };
    if open.clone().map(free).sum::<u64>() <= data.queue().unsent() {
        return;
    }
    data.expand_send_buffer(carried_in_longest_rtt(open), largest);
}

/// Returns the bytes that the `open` subflows carry in the longest of their RTTs (RFC 6182 section 5.3). With
/// a smaller send buffer, the fast subflows stop while the slowest one repairs a loss. A window in slow start
/// counts half, because it may be twice the capacity of its path.
fn carried_in_longest_rtt<'a>(open: impl Iterator<Item = &'a Subflow> + Clone) -> u64 {
    let srtt = |it: &Subflow| it.sender().rtt.srtt().filter(|srtt| *srtt > Span::ZERO);
    let longest = open.clone().filter_map(srtt).max();
    let carried = |it: &Subflow| {
        let cwnd = it.sender().cwnd();
        let window = if it.sender().cc.in_slow_start() { cwnd / 2 } else { cwnd };
        let (Some(srtt), Some(longest)) = (srtt(it), longest) else { return window };
        let carried =
            u128::from(window) * u128::from(longest.as_nanos()) / u128::from(srtt.as_nanos());
        u64::try_from(carried).unwrap_or(u64::MAX)
    };
    open.map(carried).fold(0, u64::saturating_add)
}

impl Paths {
    /// Returns the free send buffer for a write, and whether it is too small. If memory is short,
    /// `limit` bounds the send buffer and its growth. If it is counted in memory, the sum of the
    /// subflows' buffers bounds it.
    pub(crate) fn room_to_write(
        &self,
        data: &mut DataLevel,
        limit: Option<MemoryLimit>,
        write: Write,
    ) -> WriteRoom {
        let open =
            self.subflows.iter().filter(|it| it.status().joined() && it.state().sends_data());
        if let Some(room) = data.room_in_memory(write.len, open.clone().map(Subflow::id)) {
            return WriteRoom { room, blocked: write.len > room };
        }
        let most = limit.map_or(u64::MAX, |limit| self.sendable(data, limit));
        write.room(data, open, (most, self.spec.config.buffers.sndbuf))
    }

    /// Sends a window update after a read if the window has opened enough (RFC 9293 section
    /// 3.8.6.2.2).
    pub(crate) fn after_read(&mut self, data: &mut DataLevel, limit: Option<MemoryLimit>) {
        self.acknowledge_drained(data);
        let told = data.reassembly().advertised();
        let step = (2 * self.mss()).min(self.spec.config.buffers.rcvbuf / 2);
        if told < step && data.window_to_tell(limit) >= told + step {
            for subflow in self.subflows.iter_mut().filter(|s| s.state().synchronised()) {
                subflow.queue_ack();
            }
        }
    }

    /// Acknowledges short segments without delay after the reader has read everything, if buffers
    /// are counted in memory (`mptcp_cleanup_rbuf` of Linux).
    pub(crate) fn acknowledge_drained(&mut self, data: &mut DataLevel) {
        if data.reassembly().readable() > 0 || data.reassembly().out_of_order() > 0 {
            return;
        }
        let short = data.take_short();
        if short.is_empty() {
            return;
        }
        for subflow in self.subflows.iter_mut().filter(|it| short.contains(it.id())) {
            let delayed = subflow.timers().is_set(Timer::Ack);
            subflow.queue_ack_if(delayed);
        }
    }
}
