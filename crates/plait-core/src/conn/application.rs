//! What the user of a connection sees of it, and asks of it.

use crate::conn::context::Context;
use crate::conn::{Connection, ConnectionState};
use crate::data::fallback::Mode;
use crate::data::memory_limit::MemoryLimit;
use crate::error::Error;
use crate::stats::ConnectionStats;
use plait_base::Time;

impl Connection {
    /// State and counters.
    pub(crate) fn stats(&self) -> ConnectionStats {
        let subflows = self.paths.subflow_stats();
        ConnectionStats {
            state: self.state(),
            multipath: self.data.speaks_multipath(),
            fallback: self.data.fallback_cause(),
            readable: self.data.readable(),
            unacked: self.data.unacked(),
            segment_payload: self.paths.mss(),
            subflows_ready: self.paths.subflows_ready(&self.spec, &self.data),
            initial_window_at: self.paths.initial_window_at(&self.spec.config, &self.data),
            waits: self.timers.awaits_subflow(),
            timed_out: self.data.timed_out(),
            over: self.is_over(),
            subflows,
        }
    }

    /// The state as the connection's user sees it.
    pub(crate) fn state(&self) -> ConnectionState {
        if self.data.closing.failed {
            ConnectionState::Failed
        } else if self.data.closing.done() {
            ConnectionState::Closed
        } else if self.data.recv.finished() && self.data.recv.readable() == 0 {
            ConnectionState::PeerDone
        } else if self.paths.subflows.iter().any(|s| s.state.synchronised() && !s.shake.join)
            || self.data.agreed.mode == Mode::Multipath
        {
            ConnectionState::Open
        } else {
            ConnectionState::Connecting
        }
    }

    /// Takes `len` pattern bytes into the send buffer, as far as there is room.
    pub(crate) fn write_pattern(&mut self, ctx: &Context<'_>, len: u64) -> Result<u64, Error> {
        let taken = self.room_for(ctx.memory_limit, len)?;
        if taken > 0 {
            self.data.queue.write_pattern(taken);
            self.on_written(ctx.now);
        }
        Ok(taken)
    }

    /// Takes real bytes into the send buffer, as far as there is room.
    pub(crate) fn write_bytes(&mut self, ctx: &Context<'_>, bytes: &[u8]) -> Result<usize, Error> {
        let taken = self.room_for(ctx.memory_limit, bytes.len() as u64)? as usize;
        if taken > 0 {
            self.data.queue.write_bytes(&bytes[..taken]);
            self.on_written(ctx.now);
        }
        Ok(taken)
    }

    fn on_written(&mut self, now: Time) {
        self.scheduling.on_data();
        self.timers.arm_user_timeout(&self.spec.config, &self.data, now);
    }

    /// Where memory is short, the send buffer is no larger than `memory_limit` says.
    fn room_for(&mut self, limit: Option<MemoryLimit>, len: u64) -> Result<u64, Error> {
        if self.data.closing.failed {
            return Err(Error::Failed);
        }
        if self.data.closing.asked {
            return Err(Error::Finished);
        }
        if self.data.queue.counts_memory() {
            return Ok(self.memory_for(len));
        }
        let most = limit.map_or(u64::MAX, |limit| self.paths.sendable(&self.data, limit));
        let most = most.min(self.spec.config.sndbuf);
        let room = most.saturating_sub(self.data.queue.occupied());
        self.scheduling.app_blocked = len > room;
        Ok(len.min(room))
    }

    /// The same if the send buffers are counted in memory: their sum bounds what is written.
    fn memory_for(&mut self, len: u64) -> u64 {
        let occupied = self.data.queue.occupied();
        let open =
            self.paths.subflows.iter().filter(|it| it.status.joined && it.state.sends_data());
        let Some(memory) = self.data.queue.memory() else { return 0 };
        let total = memory.total(open.map(|it| it.id));
        let room = memory.room(len, occupied, total);
        self.scheduling.app_blocked = len > room;
        room
    }

    /// Reads up to `max` bytes without looking at them.
    pub(crate) fn skip(&mut self, limit: Option<MemoryLimit>, max: u64) -> u64 {
        let taken = self.data.recv.skip(max);
        self.after_read(limit, taken);
        taken
    }

    /// Reads real bytes.
    pub(crate) fn read_bytes(&mut self, limit: Option<MemoryLimit>, buffer: &mut [u8]) -> usize {
        let taken = self.data.recv.read(buffer);
        self.after_read(limit, taken as u64);
        taken
    }

    /// Tells the peer of a window that opened well (RFC 9293 section 3.8.6.2.2).
    fn after_read(&mut self, limit: Option<MemoryLimit>, taken: u64) {
        if taken == 0 {
            return;
        }
        self.paths.acknowledge_drained(&mut self.data);
        let (told, now) = (self.data.recv.advertised(), self.data.window_to_tell(limit));
        let step = (2 * self.paths.mss()).min(self.spec.config.rcvbuf / 2);
        if told < step && now >= told + step {
            for subflow in self.paths.subflows.iter_mut().filter(|s| s.state.synchronised()) {
                subflow.pending.ack = true;
            }
        }
    }

    /// Whether something happened that its user was not told yet.
    pub(crate) const fn has_news(&self) -> bool {
        self.notices.news
    }

    /// Whether something happened since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.notices.news)
    }
}
