//! What an application asks of its connections: data in and out, their state, their end.

use super::Endpoint;
use crate::conn::{Connection, ConnectionState};
use crate::stats::{ConnectionStats, Progress, Totals};
use alloc::vec::Vec;
use plait_base::{ConnId, PathId, Time};

impl Endpoint {
    /// Path, local port and remote port of every open subflow of a connection.
    #[must_use]
    pub fn ports(&self, id: ConnId) -> Option<Vec<(PathId, u16, u16)>> {
        let addresses = self.connection(id)?.open_addresses();
        Some(addresses.map(|at| (at.path(), at.local_port, at.remote_port)).collect())
    }

    /// The port at which a connection's server listens.
    #[must_use]
    pub fn service_port(&self, id: ConnId) -> Option<u16> {
        self.connection(id)?.service_port()
    }

    /// State of a connection; one that does not exist, or not any more, has failed.
    #[must_use]
    pub fn state(&self, id: ConnId) -> ConnectionState {
        self.connection(id).map_or(ConnectionState::Failed, Connection::state)
    }

    /// Bytes in order that wait for the reader.
    #[must_use]
    pub fn readable(&self, id: ConnId) -> u64 {
        self.connection(id).map_or(0, Connection::readable)
    }

    /// Bytes written and not DATA_ACKed.
    #[must_use]
    pub fn unacked(&self, id: ConnId) -> u64 {
        self.connection(id).map_or(0, Connection::unacked)
    }

    /// Payload bytes of a full segment.
    #[must_use]
    pub fn segment_payload(&self, id: ConnId) -> u64 {
        self.connection(id).map_or(0, Connection::mss)
    }

    /// How far a connection's data has come.
    #[must_use]
    pub fn progress(&self, id: ConnId) -> Option<Progress> {
        self.connection(id).map(Connection::progress)
    }

    /// Whether every connection has taken leave on all its subflows (those in TIME-WAIT count as
    /// gone).
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.connections.iter().all(|(_, conn)| conn.is_over()) && self.remnants.half_closed() == 0
    }

    /// Writes `len` bytes of the known pattern (the byte at position n of the stream is position
    /// n of the pattern). Returns how many the send buffer took.
    pub fn write(&mut self, now: Time, id: ConnId, len: u64) -> u64 {
        self.with(now, id, |conn, ctx| conn.write_pattern(ctx, len)).unwrap_or(0)
    }

    /// Writes real bytes. Returns how many the send buffer took.
    pub fn write_bytes(&mut self, now: Time, id: ConnId, bytes: &[u8]) -> usize {
        self.with(now, id, |conn, ctx| conn.write_bytes(ctx, bytes)).unwrap_or(0)
    }

    /// Reads up to `max` bytes without looking at them. Returns how many there were.
    pub fn skip(&mut self, now: Time, id: ConnId, max: u64) -> u64 {
        self.with(now, id, |conn, ctx| conn.skip(ctx.memory_limit, max)).unwrap_or(0)
    }

    /// Reads real bytes into `buffer`. Returns how many there were.
    pub fn read(&mut self, now: Time, id: ConnId, buffer: &mut [u8]) -> usize {
        self.with(now, id, |conn, ctx| conn.read_bytes(ctx.memory_limit, buffer)).unwrap_or(0)
    }

    /// No more data from this end; what was written is still delivered.
    pub fn finish(&mut self, now: Time, id: ConnId) {
        self.with(now, id, |conn, ctx| conn.finish(ctx.now));
    }

    /// Ends the connection at once: what was not delivered is lost at both ends. The peer is told
    /// by MP_FASTCLOSE (RFC 8684 section 3.5), by a RST in plain TCP.
    pub fn abort(&mut self, now: Time, id: ConnId) {
        self.with(now, id, |conn, ctx| conn.abort(ctx));
    }

    /// The user is done with a connection, and will not name it again. It is let go as soon as it is
    /// over on all its subflows, TIME-WAIT included; until then it goes on by itself, without news:
    /// this end finishes, what the peer sends is thrown away, and where nothing of ours is
    /// acknowledged for [`Config::close_timeout`](crate::Config::close_timeout) while the peer does
    /// not finish, it is aborted. What nobody releases is kept, so that its state can be asked for.
    ///
    /// One that has been let go is like one that never was: [`Endpoint::state`] says `Failed`,
    /// [`Endpoint::stats`] `None`, and nothing can be written or read. Identifiers are counted on:
    /// one comes back after 2^32 connections, unless it is still in use.
    pub fn release(&mut self, now: Time, id: ConnId) {
        if self.with(now, id, |conn, ctx| conn.release(ctx)) == Some(true) {
            self.connections.note_release(id);
            self.limit_closing(now);
        }
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

    /// While `on`, segments go to the subflows in strict turn; off, a fresh scheduler takes over.
    pub fn warm_up(&mut self, now: Time, id: ConnId, on: bool) {
        self.with(now, id, |conn, _| conn.set_warm_up(on));
    }

    /// Sets every congestion window of a connection to its initial value; thresholds stay.
    pub fn reset_windows(&mut self, now: Time, id: ConnId) {
        self.with(now, id, |conn, ctx| conn.reset_windows(ctx));
    }
}
