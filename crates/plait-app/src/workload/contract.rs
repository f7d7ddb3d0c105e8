//! What a workload and a world say to each other.

use core::fmt::Debug;
use plait_base::{DataRange, Dsn, Rate, Span, Time};

/// Length of a client's request in bytes.
pub const REQUEST: u64 = 200;

/// The client's end of a connection, and the server's.
pub type Ends = (Box<dyn App>, Box<dyn App>);

/// Where a connection stands, seen from one end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamState {
    /// The handshake is not complete.
    Connecting,
    /// Data may go both ways.
    Open,
    /// The peer's last byte was read and it has no more. This end may still write.
    PeerDone,
    /// Both ends are done.
    Closed,
    /// The connection broke.
    Failed,
}

/// One end of one connection, lent by the world for the length of a call.
///
/// Workloads send bytes of a known pattern, so that only their number passes through here; who
/// wants to see the bytes themselves writes and reads them.
pub trait Stream {
    /// Where the connection stands.
    fn state(&self) -> StreamState;

    /// Writes up to `len` bytes; returns how many the send buffer took.
    fn write(&mut self, len: u64) -> u64;

    /// Writes real bytes; returns how many the send buffer took. One end writes either these or the
    /// pattern.
    fn write_bytes(&mut self, bytes: &[u8]) -> u64;

    /// Bytes that are in order and not yet read.
    fn readable(&self) -> u64;

    /// Reads up to `max` bytes; returns how many.
    fn read(&mut self, max: u64) -> u64;

    /// Reads real bytes, which the other end wrote as such; returns how many.
    fn read_bytes(&mut self, buffer: &mut [u8]) -> u64;

    /// Bytes written and not yet DATA_ACKed.
    fn unacked(&self) -> u64;

    /// Promises that this end writes no more (DATA_FIN). Calling it again changes nothing.
    fn finish(&mut self);

    /// Payload bytes of a full segment of this connection: 1428 of 1500 where each segment carries
    /// a DSS, 1448 on plain TCP.
    fn segment_payload(&self) -> u64;

    /// How many subflows this connection has.
    fn subflows(&self) -> u32;

    /// Whether every subflow that this connection will have is established.
    fn subflows_ready(&self) -> bool;

    /// While on, segments go to the subflows in strict turn, so that each gets the same number.
    /// Turned off, the scheduler under test starts afresh.
    fn warm_up(&mut self, on: bool);

    /// From when on the next send would find every cwnd back at its initial window. `None`: not
    /// quiet, data are in flight. [`Time::NEVER`]: idling alone does not bring it back.
    fn initial_window_at(&self) -> Option<Time>;

    /// Sets every cwnd to its initial window and keeps ssthresh.
    fn reset_windows(&mut self);
}

/// One end of one connection of a workload.
///
/// Where a workload has several connections ([`Workload::connections`](crate::Workload)), its
/// client's apps know each other: what one of them learns may give another something to do, so the
/// world asks all of them for [`App::wake`] and [`App::opens`] whenever it has polled one. They are
/// done together. Nothing else is shared between connections, so an app needs to know no more than
/// its own stream and the time.
///
/// The world polls at the start of the run (for a client: when it sends its first SYN), when
/// [`App::wake`] is due, and whenever the stream has news: established, readable, writable,
/// acknowledged, a subflow more, closed. What an app wrote before it asked to be woken at once
/// has left for the send queue's subflows before it is polled again. Polls more often than that
/// do no harm.
pub trait App: Debug + Send {
    /// Goes on as far as the stream allows, and adds to `log` what happened.
    fn poll(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>);

    /// When to poll again although nothing happened.
    fn wake(&self) -> Option<Time>;

    /// Whether a client's connection is to be dialled by now. Once it was, nobody asks any more.
    /// The first connection of a workload is dialled in any case.
    fn opens(&self) -> bool {
        true
    }

    /// Whether this end has nothing left to do. A run ends when both ends are done.
    fn done(&self) -> bool;
}

/// Which end of a connection. The client opens it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The end that sends the first SYN.
    Client,
    /// The other end.
    Server,
}

/// What an app tells observers. Positions count the bytes of one direction from 0, as the DSNs of
/// the core's events do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AppEvent {
    /// The client's request was taken by its send buffer.
    RequestWritten,
    /// The server has read the request.
    RequestRead,
    /// Every subflow is established and the warm-up begins.
    WarmUp {
        /// The data that it sends.
        data: DataRange,
    },
    /// Measures concern the time from now on and this end's data from `offset` on. Where a workload
    /// never says so, everything is measured.
    MeasureFrom {
        /// Position of the first byte that counts.
        offset: Dsn,
    },
    /// A message is due; ids count from 0.
    MessageDue {
        /// The message.
        id: u64,
        /// Its bytes.
        data: DataRange,
        /// When it was due: not later than now.
        due: Time,
    },
    /// The send buffer took the last byte of a message.
    MessageWritten {
        /// The message.
        id: u64,
    },
    /// Bytes became readable in order and were read at once.
    Read {
        /// The bytes.
        data: DataRange,
    },
    /// The client's send buffer took the request for an object.
    ObjectAsked {
        /// The object; ids count from 0 within the workload.
        id: u64,
    },
    /// The client has read the last byte of an object, over the connection that it was asked on.
    ObjectRead {
        /// The object.
        id: u64,
    },
    /// The last activity of a page has ended.
    Loaded,
    /// A player has a whole chunk.
    Chunk {
        /// Which; they count from 0.
        id: u64,
        /// The bit rate of the encoding that it was asked for in.
        rate: Rate,
        /// How long it plays.
        lasts: Span,
    },
    /// A player's picture moves, or moves again.
    Playing,
    /// A player's buffer ran dry and the picture stands.
    Stalled,
    /// This end did all it had to.
    Complete,
    /// The byte read at this position is not the one that was written there.
    Garbled {
        /// Position of the first such byte.
        position: Dsn,
    },
    /// The connection broke, or closed too early.
    Failed,
}
