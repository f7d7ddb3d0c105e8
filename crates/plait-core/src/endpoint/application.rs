//! What an application asks of its connections: data in and out, their state, their end.

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::conn::spec::ConnectionState;
use crate::data::reassembly::Reassembly;
use crate::data::send_queue::SendQueue;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::stats::{ConnectionStats, Progress, Totals};
use alloc::boxed::Box;
use alloc::vec::Vec;
use plait_base::{ConnId, PathId, Time};
use plait_sched::Scheduler;

impl Endpoint {
    /// Path, local port and remote port of every open subflow of a connection.
    #[must_use]
    pub fn ports(&self, id: ConnId) -> Option<Vec<(PathId, u16, u16)>> {
        let addresses = self.connection(id)?.paths().open_addresses();
        Some(addresses.map(|at| (at.path(), at.local_port, at.remote_port)).collect())
    }

    /// The port at which a connection's server listens.
    #[must_use]
    pub fn service_port(&self, id: ConnId) -> Option<u16> {
        self.connection(id)?.paths().service_port()
    }

    /// State of a connection.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn state(&self, id: ConnId) -> Result<ConnectionState, Error> {
        self.known(id).map(Connection::state)
    }

    /// Bytes in order that wait for the reader.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn readable(&self, id: ConnId) -> Result<u64, Error> {
        self.known(id).map(|conn| conn.data().readable())
    }

    /// Bytes written and not DATA_ACKed.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn unacked(&self, id: ConnId) -> Result<u64, Error> {
        self.known(id).map(|conn| conn.data().unacked())
    }

    /// Payload bytes of a full segment.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn segment_payload(&self, id: ConnId) -> Result<u64, Error> {
        self.known(id).map(|conn| conn.paths().mss())
    }

    fn known(&self, id: ConnId) -> Result<&Connection, Error> {
        self.connection(id).ok_or(Error::UnknownConnection(id))
    }

    /// How far a connection's data has come.
    #[must_use]
    pub fn progress(&self, id: ConnId) -> Option<Progress> {
        self.connection(id).map(|conn| conn.paths().progress(conn.data()))
    }

    /// Whether every connection has taken leave on all its subflows (those in TIME-WAIT count as
    /// gone).
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.connections.iter().all(|(_, conn)| conn.is_over()) && self.remnants.half_closed() == 0
    }

    /// Writes `len` bytes of the known pattern (the byte at position n of the stream is position
    /// n of the pattern). Returns how many the send buffer took; none if it is full.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`], [`Error::Failed`], and [`Error::Finished`] after [`Endpoint::finish`].
    pub fn write(&mut self, now: Time, id: ConnId, len: u64) -> Result<u64, Error> {
        self.ask(now, id, |conn, ctx| conn.write(ctx, len, |queue, len| queue.write_pattern(len)))?
    }

    /// Writes real bytes. Returns how many the send buffer took; none if it is full.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`], [`Error::Failed`], and [`Error::Finished`] after [`Endpoint::finish`].
    pub fn write_bytes(&mut self, now: Time, id: ConnId, bytes: &[u8]) -> Result<usize, Error> {
        let write = |queue: &mut SendQueue, len: u64| queue.write_bytes(&bytes[..len as usize]);
        let taken = self.ask(now, id, |conn, ctx| conn.write(ctx, bytes.len() as u64, write))??;
        Ok(taken as usize)
    }

    /// Reads up to `max` bytes without looking at them. Returns how many there were.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn skip(&mut self, now: Time, id: ConnId, max: u64) -> Result<u64, Error> {
        self.ask(now, id, |conn, ctx| conn.read(ctx.memory_limit, |recv| recv.skip(max)))
    }

    /// Reads real bytes into `buffer`. Returns how many there were.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn read(&mut self, now: Time, id: ConnId, buffer: &mut [u8]) -> Result<usize, Error> {
        let read = |recv: &mut Reassembly| recv.read(buffer) as u64;
        let taken = self.ask(now, id, |conn, ctx| conn.read(ctx.memory_limit, read))?;
        Ok(taken as usize)
    }

    /// Ends this end's data. The data written so far is still delivered.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn finish(&mut self, now: Time, id: ConnId) -> Result<(), Error> {
        self.ask(now, id, |conn, ctx| conn.finish(ctx.now))
    }

    /// Ends the connection at once: data that was not delivered is lost at both ends. The peer learns of it
    /// by MP_FASTCLOSE (RFC 8684 section 3.5), by a RST in plain TCP.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn abort(&mut self, now: Time, id: ConnId) -> Result<(), Error> {
        self.ask(now, id, |conn, ctx| conn.abort(ctx))
    }

    /// [`Endpoint::with`], with an error in place of nothing.
    pub(super) fn ask<R>(
        &mut self,
        now: Time,
        id: ConnId,
        f: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Result<R, Error> {
        self.with(now, id, f).ok_or(Error::UnknownConnection(id))
    }

    /// The user is done with a connection, and will not name it again. It is let go as soon as it is
    /// over on all its subflows, TIME-WAIT included; until then it goes on by itself, without news:
    /// this end finishes, what the peer sends is thrown away, and where nothing of ours is
    /// acknowledged for [`Timeouts::close`](crate::Timeouts::close) while the peer does
    /// not finish, it is aborted. What nobody releases is kept, so that its state can be asked for.
    ///
    /// Once it is let go, its identifier is unknown. Identifiers are counted on: one comes back after 2^32
    /// connections, unless it is still in use.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn release(&mut self, now: Time, id: ConnId) -> Result<(), Error> {
        if self.ask(now, id, |conn, ctx| conn.release(ctx))? {
            self.connections.note_release(id);
            self.limit_closing(now);
        }
        Ok(())
    }

    /// Returns how many connections are kept: those in use, half-open ones and those that are not
    /// released. Each subflow of a released connection that only waits counts as one.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.connections.len() + self.remnants.len()
    }

    /// Ends a released connection for good if there are too many of them: of the oldest, one whose data
    /// was all acknowledged comes first.
    fn limit_closing(&mut self, now: Time) {
        if let Some(id) = self.connections.surplus_closing() {
            self.shared.overflows.closing_aborted += 1;
            self.with(now, id, |conn, ctx| conn.cut_off(ctx));
        }
    }

    /// State and counters of a connection.
    #[must_use]
    pub fn stats(&self, id: ConnId) -> Option<ConnectionStats> {
        self.connection(id).map(Connection::stats)
    }

    /// What the subflows of all connections have carried so far, those that were let go included.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.connections.totals()
    }

    /// Puts another scheduler in charge of a connection from now on; `None` is a fresh one of those that
    /// [`ConnectionSpec::scheduler`](crate::ConnectionSpec::scheduler) makes.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn set_scheduler(
        &mut self,
        now: Time,
        id: ConnId,
        scheduler: Option<Box<dyn Scheduler>>,
    ) -> Result<(), Error> {
        self.ask(now, id, |conn, _| conn.set_scheduler(scheduler))
    }

    /// Sets every congestion window of a connection to its initial value; thresholds stay.
    pub fn reset_windows(&mut self, now: Time, id: ConnId) {
        self.with(now, id, |conn, ctx| conn.reset_windows(ctx));
    }
}
