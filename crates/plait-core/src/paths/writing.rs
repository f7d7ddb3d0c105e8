//! What the user of a connection writes and reads, as far as it concerns subflows: room for it, and windows that open.

use crate::data::level::DataLevel;
use crate::data::memory_limit::MemoryLimit;
use crate::paths::Paths;
use crate::tcp::timer::Timer;

impl Paths {
    /// Room in the send buffer for `len` bytes more, and whether that is too little. Where memory is short,
    /// the send buffer is no larger than `limit` says; if it is counted in memory, the sum of the subflows'
    /// buffers bounds it.
    pub(crate) fn room_to_write(
        &self,
        data: &mut DataLevel,
        limit: Option<MemoryLimit>,
        len: u64,
    ) -> (u64, bool) {
        let occupied = data.queue.occupied();
        if data.queue.counts_memory() {
            let open = self.subflows.iter().filter(|it| it.status.joined && it.state.sends_data());
            let Some(memory) = data.queue.memory() else { return (0, true) };
            let total = memory.total(open.map(|it| it.id));
            let room = memory.room(len, occupied, total);
            return (room, len > room);
        }
        let most = limit.map_or(u64::MAX, |limit| self.sendable(data, limit));
        let room = most.min(self.spec.config.buffers.sndbuf).saturating_sub(occupied);
        (len.min(room), len > room)
    }

    /// The reader has taken data: tells the peer of a window that opened well (RFC 9293 section
    /// 3.8.6.2.2).
    pub(crate) fn after_read(&mut self, data: &mut DataLevel, limit: Option<MemoryLimit>) {
        self.acknowledge_drained(data);
        let (told, now) = (data.recv.advertised(), data.window_to_tell(limit));
        let step = (2 * self.mss()).min(self.spec.config.buffers.rcvbuf / 2);
        if told < step && now >= told + step {
            for subflow in self.subflows.iter_mut().filter(|s| s.state.synchronised()) {
                subflow.pending.ack = true;
            }
        }
    }

    /// The reader has read everything: short segments are acknowledged without delay, if buffers are
    /// counted in memory (`mptcp_cleanup_rbuf` of Linux).
    pub(crate) fn acknowledge_drained(&mut self, data: &mut DataLevel) {
        if data.recv.readable() > 0 || data.recv.out_of_order() > 0 {
            return;
        }
        let Some(memory) = data.recv.memory() else { return };
        for subflow in &mut self.subflows {
            if memory.take_short(subflow.id) {
                subflow.pending.ack |= subflow.timers.is_set(Timer::Ack);
            }
        }
    }
}
