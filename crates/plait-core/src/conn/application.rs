//! What the user of a connection sees of it, and asks of it.

use super::{Connection, ConnectionState, Context, MemoryLimit, Mode};
use crate::error::Error;
use crate::stats::Progress;
use crate::tcp::timer::Timer;
use plait_base::{Dsn, Time};

impl Connection {
    /// The state as the connection's user sees it.
    pub(crate) fn state(&self) -> ConnectionState {
        if self.failed {
            ConnectionState::Failed
        } else if self.closing.done() {
            ConnectionState::Closed
        } else if self.recv.finished() && self.recv.readable() == 0 {
            ConnectionState::PeerDone
        } else if self.subflows.iter().any(|s| s.state.synchronised() && !s.shake.join)
            || self.mode == Mode::Multipath
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
            self.queue.write_pattern(taken);
            self.on_written(ctx.now);
        }
        Ok(taken)
    }

    /// Takes real bytes into the send buffer, as far as there is room.
    pub(crate) fn write_bytes(&mut self, ctx: &Context<'_>, bytes: &[u8]) -> Result<usize, Error> {
        let taken = self.room_for(ctx.memory_limit, bytes.len() as u64)? as usize;
        if taken > 0 {
            self.queue.write_bytes(&bytes[..taken]);
            self.on_written(ctx.now);
        }
        Ok(taken)
    }

    fn on_written(&mut self, now: Time) {
        self.scheduling.on_data();
        self.arm_user_timeout(now);
    }

    /// Where memory is short, the send buffer is no larger than `memory_limit` says.
    fn room_for(&mut self, limit: Option<MemoryLimit>, len: u64) -> Result<u64, Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        if self.closing.asked {
            return Err(Error::Finished);
        }
        if self.queue.counts_memory() {
            return Ok(self.memory_for(len));
        }
        let most = limit.map_or(u64::MAX, |limit| self.sendable(limit));
        let most = most.min(self.spec.config.sndbuf);
        let room = most.saturating_sub(self.queue.occupied());
        self.scheduling.app_blocked = len > room;
        Ok(len.min(room))
    }

    /// The same if the send buffers are counted in memory: their sum bounds what is written.
    fn memory_for(&mut self, len: u64) -> u64 {
        let occupied = self.queue.occupied();
        let open = self.subflows.iter().filter(|it| it.status.joined && it.state.sends_data());
        let Some(memory) = self.queue.memory() else { return 0 };
        let total = memory.total(open.map(|it| it.id));
        let room = memory.room(len, occupied, total);
        self.scheduling.app_blocked = len > room;
        room
    }

    /// Bytes in order that wait for the reader.
    pub(crate) fn readable(&self) -> u64 {
        self.recv.readable()
    }

    /// Reads up to `max` bytes without looking at them.
    pub(crate) fn skip(&mut self, limit: Option<MemoryLimit>, max: u64) -> u64 {
        let taken = self.recv.skip(max);
        self.after_read(limit, taken);
        taken
    }

    /// Reads real bytes.
    pub(crate) fn read_bytes(&mut self, limit: Option<MemoryLimit>, buffer: &mut [u8]) -> usize {
        let taken = self.recv.read(buffer);
        self.after_read(limit, taken as u64);
        taken
    }

    /// Tells the peer of a window that opened well (RFC 9293 section 3.8.6.2.2).
    fn after_read(&mut self, limit: Option<MemoryLimit>, taken: u64) {
        if taken == 0 {
            return;
        }
        self.acknowledge_drained();
        let (told, now) = (self.recv.advertised(), self.window_to_tell(limit));
        let step = (2 * self.mss()).min(self.spec.config.rcvbuf / 2);
        if told < step && now >= told + step {
            for subflow in self.subflows.iter_mut().filter(|s| s.state.synchronised()) {
                subflow.pending.ack = true;
            }
        }
    }

    /// The reader has read everything: short segments are acknowledged without delay, if buffers are
    /// counted in memory (`mptcp_cleanup_rbuf` of Linux).
    fn acknowledge_drained(&mut self) {
        if self.recv.readable() > 0 || self.recv.out_of_order() > 0 {
            return;
        }
        let Some(memory) = self.recv.memory() else { return };
        for subflow in &mut self.subflows {
            if memory.take_short(subflow.id) {
                subflow.pending.ack |= subflow.timers.is_set(Timer::Ack);
            }
        }
    }

    /// Bytes written and not DATA_ACKed.
    pub(crate) fn unacked(&self) -> u64 {
        self.queue.occupied()
    }

    /// How far the data of both directions has come.
    pub(crate) fn progress(&self) -> Progress {
        let held = self.subflows.iter().filter_map(|it| it.verifier.as_ref()?.held_to());
        Progress {
            acked: self.queue.una(),
            in_step: self.sends_plain(),
            arrived: self.recv.nxt(),
            held: held.fold(self.recv.nxt(), Dsn::max),
        }
    }

    /// Whether something happened that its user was not told yet.
    pub(crate) const fn has_news(&self) -> bool {
        self.news
    }

    /// Whether something happened since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.news)
    }
}
