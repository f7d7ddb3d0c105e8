//! A connection that its user has for several calls.

use crate::conn::Connection;
use crate::context::Context;
use crate::data::receiving::Reading;
use crate::data::sending::Written;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::spec::ConnectionState;
use crate::stats::ConnectionStats;
use alloc::boxed::Box;
use plait_base::{ConnId, Time};
use plait_sched::Scheduler;

/// A connection of an endpoint, lent to its user. Its calls are those of the endpoint with the same names, and
/// the connection is found once for all of them.
pub struct Lent<'c, 's> {
    conn: &'c mut Connection,
    ctx: &'c mut Context<'s>,
}

impl core::fmt::Debug for Lent<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Lent").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Lent<'_, '_> {
    /// Lends a connection of `endpoint` to `f`. Returns the result of `f`, or `None` if the connection is unknown.
    pub fn to<R>(
        endpoint: &mut Endpoint,
        now: Time,
        id: ConnId,
        f: impl FnOnce(&mut Lent<'_, '_>) -> R,
    ) -> Option<R> {
        endpoint.with(now, id, |conn, ctx| f(&mut Lent { conn, ctx }))
    }

    /// See [`Endpoint::state`].
    #[must_use]
    #[inline]
    pub fn state(&self) -> ConnectionState {
        self.conn.state()
    }

    /// See [`Endpoint::readable`].
    #[must_use]
    #[inline]
    pub fn readable(&self) -> u64 {
        self.conn.data().reassembly().readable()
    }

    /// See [`Endpoint::unacked`].
    #[must_use]
    #[inline]
    pub fn unacked(&self) -> u64 {
        self.conn.data().queue().occupied()
    }

    /// See [`Endpoint::segment_payload`].
    #[must_use]
    pub fn segment_payload(&self) -> u64 {
        self.conn.paths().mss()
    }

    /// See [`Endpoint::stats`].
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.conn.stats()
    }

    /// See [`Endpoint::write`].
    ///
    /// # Errors
    /// [`Error::Failed`], and [`Error::Finished`] after [`Lent::finish`].
    #[inline]
    pub fn write(&mut self, len: u64) -> Result<u64, Error> {
        self.conn.write(self.ctx, &Written::Pattern(len))
    }

    /// See [`Endpoint::write_bytes`].
    ///
    /// # Errors
    /// [`Error::Failed`], and [`Error::Finished`] after [`Lent::finish`].
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.conn.write(self.ctx, &Written::Bytes(bytes)).map(|taken| taken as usize)
    }

    /// See [`Endpoint::skip`].
    #[inline]
    pub fn skip(&mut self, max: u64) -> u64 {
        self.conn.read(self.ctx.memory_limit(), Reading::Skip(max))
    }

    /// See [`Endpoint::read`].
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        self.conn.read(self.ctx.memory_limit(), Reading::Into(buffer)) as usize
    }

    /// See [`Endpoint::finish`].
    pub fn finish(&mut self) {
        self.conn.finish(self.ctx.now);
    }

    /// See [`Endpoint::set_scheduler`].
    pub fn set_scheduler(&mut self, scheduler: Option<Box<dyn Scheduler>>) {
        self.conn.set_scheduler(scheduler);
    }

    /// Resets every congestion window to its initial value. Thresholds stay.
    #[cfg(feature = "laboratory")]
    pub fn reset_windows(&mut self) {
        self.conn.reset_windows(self.ctx);
    }
}
