//! The subflows' part of writing and reading: free send buffer, and window updates.

use crate::config::MemoryLimit;
use crate::data::level::DataLevel;
use crate::data::send_queue::SendQueue;
use crate::paths::Paths;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;

/// Room for data of the application.
pub(crate) struct WriteRoom {
    /// Bytes that can be written.
    pub(crate) room: u64,
    /// The application has more to write.
    pub(crate) blocked: bool,
}

impl Paths {
    /// Returns the free send buffer for `len` more bytes, and whether it is too small. If memory is
    /// short, `limit` bounds the send buffer and its growth. If it is counted in memory, the sum of
    /// the subflows' buffers bounds it. `waited`: the application found it full before.
    pub(crate) fn room_to_write(
        &self,
        data: &mut DataLevel,
        limit: Option<MemoryLimit>,
        len: u64,
        waited: bool,
    ) -> WriteRoom {
        let open =
            self.subflows.iter().filter(|it| it.status().joined() && it.state().sends_data());
        if let Some(room) = data.room_in_memory(len, open.map(Subflow::id)) {
            return WriteRoom { room, blocked: len > room };
        }
        let most = limit.map_or(u64::MAX, |limit| self.sendable(data, limit));
        let free = |queue: &SendQueue| most.min(queue.size()).saturating_sub(queue.occupied());
        let mut room = free(data.queue());
        let largest = most.min(self.spec.config.buffers.sndbuf);
        if len > room && waited && data.queue().size() < largest {
            self.expand_send_buffer(data, largest);
            room = free(data.queue());
        }
        WriteRoom { room: len.min(room), blocked: len > room }
    }

    /// Grows the send buffer, up to `largest`, if the congestion windows have more room than unsent
    /// data could fill (`tcp_should_expand_sndbuf` and `tcp_sndbuf_expand` of Linux). A larger
    /// buffer would not make full windows send more.
    #[cold]
    fn expand_send_buffer(&self, data: &mut DataLevel, largest: u64) {
        let (mut windows, mut free) = (0, 0);
        for subflow in self.subflows.iter() {
            if subflow.status().joined() && subflow.state().sends_data() {
                let (sender, id) = (subflow.sender(), subflow.id());
                let used = sender.tx.inflight() + data.queue().assigned(id);
                windows += sender.cwnd();
                free += sender.cwnd().saturating_sub(used);
            }
        }
        if free > data.queue().unsent() {
            data.expand_send_buffer(windows, largest);
        }
    }

    /// Sends a window update after a read if the window has opened enough (RFC 9293 section
    /// 3.8.6.2.2).
    pub(crate) fn after_read(&mut self, data: &mut DataLevel, limit: Option<MemoryLimit>) {
        self.acknowledge_drained(data);
        let (told, now) = (data.reassembly().advertised(), data.window_to_tell(limit));
        let step = (2 * self.mss()).min(self.spec.config.buffers.rcvbuf / 2);
        if told < step && now >= told + step {
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
