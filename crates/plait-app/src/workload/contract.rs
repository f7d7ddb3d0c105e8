//! The interface between a workload and the world that runs it.

use core::fmt::Debug;
use plait_base::{DataRange, Dsn, Rate, Span, Time};

/// Length of a client's request in bytes.
pub const REQUEST: u64 = 200;

/// The two ends of a connection: the client's, then the server's.
pub type Ends = (Box<dyn App>, Box<dyn App>);

/// State of a connection at one end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamState {
    /// The handshake is not complete.
    Connecting,
    /// Both ends may send data.
    Open,
    /// The peer has finished sending, and all of its data was read. This end may still write.
    PeerDone,
    /// Both ends have finished.
    Closed,
    /// The connection failed.
    Failed,
}

/// One end of a connection. The world lends it to an app for one call.
///
/// By default a workload sends bytes of a known pattern, and only their number passes through this
/// trait. A workload that needs the bytes themselves uses `write_bytes` and `read_bytes`.
pub trait Stream {
    /// Returns the state of the connection.
    fn state(&self) -> StreamState;

    /// Writes up to `len` bytes of the pattern. Returns the number that the send buffer accepted.
    fn write(&mut self, len: u64) -> u64;

    /// Writes real bytes. Returns the number that the send buffer accepted. One end writes either
    /// real bytes or the pattern, never both.
    fn write_bytes(&mut self, bytes: &[u8]) -> u64;

    /// Returns the number of bytes that are in order and not yet read.
    fn readable(&self) -> u64;

    /// Reads up to `max` bytes. Returns the number read.
    fn read(&mut self, max: u64) -> u64;

    /// Reads bytes that the peer wrote with `write_bytes`. Returns the number read.
    fn read_bytes(&mut self, buffer: &mut [u8]) -> u64;

    /// Returns the number of bytes written and not yet DATA_ACKed.
    fn unacked(&self) -> u64;

    /// Closes the sending direction (DATA_FIN): this end writes no more. Further calls have no
    /// effect.
    fn finish(&mut self);

    /// Returns the payload of a full segment in bytes. With an MTU of 1500 bytes it is 1428 if each
    /// segment carries a DSS option, and 1448 on plain TCP.
    fn segment_payload(&self) -> u64;

    /// Returns the number of subflows of this connection.
    fn subflows(&self) -> u32;

    /// Returns whether every subflow that this connection will have is established.
    fn subflows_ready(&self) -> bool;

    /// Starts or ends the warm-up. During the warm-up segments go to the subflows in strict
    /// rotation, so that each subflow gets the same number. When it ends, the scheduler under test
    /// starts with fresh state.
    fn warm_up(&mut self, on: bool);

    /// Returns the time from which the next send would find every cwnd at its initial window.
    /// Returns `None` if data are in flight, and [`Time::NEVER`] if idle time alone does not reset
    /// the windows.
    fn initial_window_at(&self) -> Option<Time>;

    /// Sets every cwnd to its initial window. ssthresh is not changed.
    fn reset_windows(&mut self);
}

/// One end of one connection of a workload.
///
/// A workload may have several connections ([`Workload::connections`](crate::Workload)). The client
/// apps of such a workload share state: a poll of one may give work to another. So the world calls
/// [`App::wake`] and [`App::opens`] of all of them after it has polled any of them. They are done
/// at the same time. An app shares nothing else; it depends only on its own stream and the time.
///
/// The world polls an app at the start of the run (a client: when it sends its first SYN) and when
/// [`App::wake`] is due. It also polls after each change of the stream: established, readable,
/// writable, acknowledged, a new subflow, closed. An app may ask to be woken at once: its earlier
/// writes have then been handed to the subflows before the next poll. Additional polls have no
/// effect.
pub trait App: Debug + Send {
    /// Advances as far as the stream allows, and appends the resulting events to `log`.
    fn poll(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>);

    /// Returns the time of the next poll if the stream does not change before.
    fn wake(&self) -> Option<Time>;

    /// Returns whether the client's connection must be opened by now. It is not called again after
    /// the connection was opened. The first connection of a workload is always opened.
    fn opens(&self) -> bool {
        true
    }

    /// Returns whether this end has finished. A run ends when both ends have finished.
    fn done(&self) -> bool;
}

/// One end of a connection. The client opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The end that sends the first SYN.
    Client,
    /// The other end.
    Server,
}

/// An event of an app, for observers. Positions count the bytes of one direction from 0, like the
/// DSNs in the events of the core.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AppEvent {
    /// The client's send buffer accepted the whole request.
    RequestWritten,
    /// The server has read the request.
    RequestRead,
    /// Every subflow is established and the warm-up begins.
    WarmUp {
        /// The data of the warm-up.
        data: DataRange,
    },
    /// Measurement starts now, with this end's data from `offset` on. If a workload never emits
    /// this event, the whole run is measured.
    MeasureFrom {
        /// Position of the first byte that is measured.
        offset: Dsn,
    },
    /// A message is due; ids count from 0.
    MessageDue {
        /// The message.
        id: u64,
        /// Its bytes.
        data: DataRange,
        /// Due time, never later than the time of the event.
        due: Time,
    },
    /// The send buffer accepted the last byte of a message.
    MessageWritten {
        /// The message.
        id: u64,
    },
    /// Bytes became readable in order, and the app read them at once.
    Read {
        /// The bytes.
        data: DataRange,
    },
    /// The client's send buffer accepted the request for an object.
    ObjectAsked {
        /// The object; ids count from 0 within the workload.
        id: u64,
    },
    /// The client read the last byte of an object, on the connection that carried the request.
    ObjectRead {
        /// The object.
        id: u64,
    },
    /// The last activity of a page has ended.
    Loaded,
    /// A player has received a whole chunk.
    Chunk {
        /// Number of the chunk, from 0.
        id: u64,
        /// Bit rate of the encoding that the player requested.
        rate: Rate,
        /// Playing time of the chunk.
        lasts: Span,
    },
    /// A player starts or resumes playback.
    Playing,
    /// A player's buffer is empty and playback has stopped.
    Stalled,
    /// This end has finished its part of the workload.
    Complete,
    /// The byte read at this position differs from the byte that was written.
    Garbled {
        /// Position of the first such byte.
        position: Dsn,
    },
    /// The connection failed, or closed too early.
    Failed,
}
