//! The application's calls: data in and out, state, and the end of connections.

use crate::conn::Connection;
use crate::context::Context;
use crate::data::receiving::Reading;
use crate::data::sending::Written;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::spec::ConnectionState;
use crate::stats::{ConnectionStats, Progress, Totals};
use crate::tcp::address::Address;
use alloc::boxed::Box;
use alloc::vec::Vec;
use plait_base::{ConnId, PathId, Time};
use plait_sched::Scheduler;

/// The path and the ports of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SubflowPorts {
    /// Its path.
    pub path: PathId,
    /// The port at this end.
    pub local: u16,
    /// The port at the other end.
    pub remote: u16,
}

impl SubflowPorts {
    fn of(address: Address) -> SubflowPorts {
        let Address { local_port: local, remote_port: remote, .. } = address;
        SubflowPorts { path: address.path(), local, remote }
    }

    /// Returns the ports as the other end sees them.
    #[must_use]
    pub const fn reversed(self) -> SubflowPorts {
        SubflowPorts { path: self.path, local: self.remote, remote: self.local }
    }
}

impl Endpoint {
    /// Returns the path and the ports of every open subflow of a connection.
    #[must_use]
    pub fn ports(&self, id: ConnId) -> Option<Vec<SubflowPorts>> {
        let addresses = self.connection(id)?.paths().subflows().open_addresses();
        Some(addresses.map(SubflowPorts::of).collect())
    }

    /// Returns the port at which a connection's server listens.
    #[must_use]
    pub fn service_port(&self, id: ConnId) -> Option<u16> {
        self.connection(id)?.paths().service_port()
    }

    /// Returns the state of a connection.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn state(&self, id: ConnId) -> Result<ConnectionState, Error> {
        self.known(id).map(Connection::state)
    }

    /// Returns the bytes in order that the application has not read.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn readable(&self, id: ConnId) -> Result<u64, Error> {
        self.known(id).map(|conn| conn.data().reassembly().readable())
    }

    /// Returns the bytes written and not DATA_ACKed.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn unacked(&self, id: ConnId) -> Result<u64, Error> {
        self.known(id).map(|conn| conn.data().queue().occupied())
    }

    /// Returns the payload bytes of a full segment.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn segment_payload(&self, id: ConnId) -> Result<u64, Error> {
        self.known(id).map(|conn| conn.paths().mss())
    }

    fn known(&self, id: ConnId) -> Result<&Connection, Error> {
        self.connection(id).ok_or(Error::UnknownConnection(id))
    }

    /// Returns the progress of a connection's data.
    #[must_use]
    pub fn progress(&self, id: ConnId) -> Option<Progress> {
        self.connection(id).map(|conn| conn.paths().progress(conn.data()))
    }

    /// Returns true if every connection has closed all its subflows. Subflows in TIME-WAIT count as closed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.connections.iter().all(|(_, conn)| conn.is_over()) && self.remnants.half_closed() == 0
    }

    /// Writes `len` bytes of the test pattern: the byte at position n of the stream is byte n of
    /// the pattern. Returns how many bytes the send buffer accepted; 0 if it is full.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`], [`Error::Failed`], and [`Error::Finished`] after [`Endpoint::finish`].
    pub fn write(&mut self, now: Time, id: ConnId, len: u64) -> Result<u64, Error> {
        self.ask(now, id, |conn, ctx| conn.write(ctx, &Written::Pattern(len)))?
    }

    /// Writes bytes. Returns how many the send buffer accepted; 0 if it is full.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`], [`Error::Failed`], and [`Error::Finished`] after [`Endpoint::finish`].
    pub fn write_bytes(&mut self, now: Time, id: ConnId, bytes: &[u8]) -> Result<usize, Error> {
        let written = Written::Bytes(bytes);
        let taken = self.ask(now, id, |conn, ctx| conn.write(ctx, &written))??;
        Ok(taken as usize)
    }

    /// Reads and discards up to `max` bytes. Returns how many there were.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn skip(&mut self, now: Time, id: ConnId, max: u64) -> Result<u64, Error> {
        self.ask(now, id, |conn, ctx| conn.read(ctx.memory_limit(), Reading::Skip(max)))
    }

    /// Reads bytes into `buffer`. Returns how many there were.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn read(&mut self, now: Time, id: ConnId, buffer: &mut [u8]) -> Result<usize, Error> {
        let reading = Reading::Into(buffer);
        let taken = self.ask(now, id, |conn, ctx| conn.read(ctx.memory_limit(), reading))?;
        Ok(taken as usize)
    }

    /// Ends this end's data. The data written so far is still delivered.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn finish(&mut self, now: Time, id: ConnId) -> Result<(), Error> {
        self.ask(now, id, |conn, ctx| conn.finish(ctx.now))
    }

    /// Ends the connection at once. Undelivered data is lost in both directions. The peer receives
    /// MP_FASTCLOSE (RFC 8684 section 3.5), or a RST in plain TCP.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn abort(&mut self, now: Time, id: ConnId) -> Result<(), Error> {
        self.ask(now, id, |conn, ctx| conn.abort(ctx))
    }

    /// As [`Endpoint::with`], but returns an error if the connection is unknown.
    pub(super) fn ask<R>(
        &mut self,
        now: Time,
        id: ConnId,
        f: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Result<R, Error> {
        self.with(now, id, f).ok_or(Error::UnknownConnection(id))
    }

    /// Releases a connection: the user does not use it again. It is removed when all its subflows
    /// have ended, TIME-WAIT included.
    ///
    /// Until then it runs on without news: this end finishes, and received data is discarded. It is
    /// aborted if the peer does not finish and acknowledges no data for
    /// [`Timeouts::close`](crate::Timeouts::close). A connection that is not released stays, so
    /// that its state can be read.
    ///
    /// After the removal its identifier is unknown. An identifier is reused after 2^32 connections,
    /// unless it is still in use.
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

    /// Returns the number of connections held: open, half-open and not yet released ones. Each
    /// waiting subflow of a released connection counts as one.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.connections.len() + self.remnants.len()
    }

    /// Ends one of the oldest closing connections if too many released ones are closing. One whose
    /// data was all acknowledged is preferred.
    fn limit_closing(&mut self, now: Time) {
        if let Some(id) = self.connections.surplus_closing() {
            self.shared.counters.on_closing_aborted();
            self.with(now, id, |conn, ctx| conn.cut_off(ctx));
        }
    }

    /// Returns the state and counters of a connection.
    #[must_use]
    pub fn stats(&self, id: ConnId) -> Option<ConnectionStats> {
        self.connection(id).map(Connection::stats)
    }

    /// Returns the traffic of all subflows so far, removed connections included.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.connections.totals()
    }

    /// Replaces the scheduler of a connection. `None` creates a new one by
    /// [`ConnectionSpec::scheduler`](crate::ConnectionSpec::scheduler).
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
}
