//! The largest transfer over time, for a drawing. Its files are read a second time, when the transfer is known, so that
//! nothing is kept for the others.

use crate::document::ConnectionReport;
use crate::limits::{AckEvent, DataEvent, UnderWay};

/// Larger windows stand for one of an unknown scale, in bytes: TCP has none of more than 1 GB.
const MAX_WINDOW: i64 = 1 << 31;

/// An observer of the transfer that the first sentence is about.
pub trait Watch {
    /// Begins with a connection, whose numbers are known already.
    fn begin(&mut self, connection: &ConnectionReport);

    /// Takes what happens next, in the order of time.
    fn happens(&mut self, moment: &Moment);
}

/// An event, and the state of the sender after it.
///
/// An acknowledgement has the time at which the sender gets it, as in incidents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Time from the first data of the connection, in nanoseconds.
    pub at_ns: u64,
    /// Index of the path.
    pub path: usize,
    /// The event.
    pub what: Happening,
    /// Bytes of the connection that were sent and are not acknowledged.
    pub unacked: u64,
    /// The same of the path, by its own sequence numbers.
    pub path_unacked: u64,
    /// Receive window of the connection in bytes; none if it is unknown.
    pub window: Option<u64>,
}

/// An event on a path. Positions of data count from the first byte of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happening {
    /// The capture has a segment with the data from `start` up to `end`.
    Data {
        /// First byte.
        start: u64,
        /// Byte after the last one.
        end: u64,
        /// The kind of the data.
        kind: DataKind,
    },
    /// The receiver has the data below this position.
    Acked(u64),
    /// A round trip took so many nanoseconds.
    RoundTrip(u64),
}

/// The kind of the data in a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataKind {
    /// It has some data for the first time.
    First,
    /// The path has sent it before, or its first copy was lost before the capture.
    Again,
    /// Another path has sent it before.
    Reinjected,
}

/// Sent and acknowledged positions.
#[derive(Clone, Copy, Default, Debug)]
struct Outstanding {
    next: i64,
    acked: i64,
}

impl Outstanding {
    fn bytes(self) -> u64 {
        (self.next - self.acked).max(0).unsigned_abs()
    }
}

/// The data of one side of a connection, as it is passed on.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub(crate) side: usize,
    began: Option<i64>,
    under_way: UnderWay,
    whole: Outstanding,
    paths: Vec<Outstanding>,
    /// Right edge of the receive window.
    edge: Option<i64>,
    moments: Vec<Moment>,
}

impl Watched {
    pub(crate) fn new(side: usize) -> Watched {
        Watched {
            side,
            began: None,
            under_way: UnderWay::default(),
            whole: Outstanding::default(),
            paths: Vec::new(),
            edge: None,
            moments: Vec::new(),
        }
    }

    fn path(&mut self, path: usize) -> &mut Outstanding {
        if self.paths.len() <= path {
            self.paths.resize(path + 1, Outstanding::default());
        }
        &mut self.paths[path]
    }

    fn tell(&mut self, at_ns: i64, path: usize, what: Happening) {
        let Some(began) = self.began else { return };
        let path_unacked = self.path(path).bytes();
        let window = self.edge.map(|edge| edge - self.whole.acked);
        let window = window.filter(|window| (0..MAX_WINDOW).contains(window));
        self.moments.push(Moment {
            at_ns: (at_ns - began).max(0).unsigned_abs(),
            path,
            what,
            unacked: self.whole.bytes(),
            path_unacked,
            window: window.map(i64::unsigned_abs),
        });
    }

    /// Takes a segment with data.
    pub(crate) fn on_data(&mut self, event: &DataEvent) {
        self.advance(event.at_ns);
        self.began.get_or_insert(event.at_ns);
        self.whole.next = self.whole.next.max(event.data.1);
        let path = self.path(event.path);
        path.next = path.next.max(event.next);
        let kind = match event.again || event.missing_since.is_some() {
            true => DataKind::Again,
            false if event.copy => DataKind::Reinjected,
            false => DataKind::First,
        };
        let [start, end] = [event.data.0, event.data.1].map(|at| at.max(0).unsigned_abs());
        self.tell(event.at_ns, event.path, Happening::Data { start, end, kind });
    }

    /// Takes an acknowledgement, which has the time at which the sender gets it.
    pub(crate) fn on_ack(&mut self, event: &AckEvent) {
        self.advance(event.packet.at_ns);
        self.under_way.add(*event);
    }

    /// Takes a round trip that the capture shows at the receiver.
    pub(crate) fn on_rtt(&mut self, at_ns: i64, path: usize, rtt_ns: i64) {
        self.advance(at_ns);
        self.tell(at_ns, path, Happening::RoundTrip(rtt_ns.max(0).unsigned_abs()));
    }

    fn advance(&mut self, now: i64) {
        while let Some(event) = self.under_way.arrived(now) {
            self.acked(&event);
        }
    }

    fn acked(&mut self, event: &AckEvent) {
        // The DATA_FIN has a number too.
        self.whole.acked = self.whole.acked.max(event.data_acked.min(self.whole.next));
        let path = self.path(event.path);
        path.acked = path.acked.max(event.ack);
        self.edge = event.is_edge_known.then_some(event.edge).filter(|edge| *edge > 0);
        let acked = self.whole.acked.max(0).unsigned_abs();
        self.tell(event.at_ns, event.path, Happening::Acked(acked));
        if let Some(rtt) = event.rtt_ns {
            self.tell(event.at_ns, event.path, Happening::RoundTrip(rtt.max(0).unsigned_abs()));
        }
    }

    /// Returns what has happened since the last call. At the end, all acknowledgements have arrived.
    pub(crate) fn moments(&mut self, is_end: bool) -> std::vec::Drain<'_, Moment> {
        if is_end {
            self.advance(i64::MAX);
        }
        self.moments.drain(..)
    }
}
