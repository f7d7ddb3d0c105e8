//! The world of a simulated server: virtual time, packet queues, and services in memory.

use super::service::{Pipe, Program};
use plait_base::{ConnId, RandomStream, Time};
use plait_core::Entropy;
use plait_engine::{Buffers, Interest, Outgoing, Ready, Virtio, World};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// State of the simulated kernel for all streams.
#[derive(Default)]
pub(super) struct Host {
    pub(super) now: Cell<Time>,
    /// Bytes that services have written and the server has not read.
    pub(super) unread: Cell<u64>,
    /// Limit of unread bytes. Beyond it the kernel shrinks the windows of all streams.
    pub(super) limit: Cell<u64>,
    /// Error text if a program read bytes that no client has sent.
    pub(super) wrong: Cell<Option<String>>,
    /// Bytes that the server has read from streams and written to them.
    pub(super) moved: Cell<u64>,
    /// Indices of streams that may have become ready for the server.
    pub(super) stirred: RefCell<BTreeSet<usize>>,
    /// Indices of streams whose program may have work.
    pub(super) due: RefCell<BTreeSet<usize>>,
}

/// Entropy from a seed.
pub(super) struct Seeded(pub(super) RandomStream);

impl Entropy for Seeded {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }
}

/// Creates the stream to the service for the next connection.
pub(super) type Reception = Box<dyn FnMut(Option<Buffers>) -> io::Result<Pipe>>;

/// The world of one life of the server.
pub(super) struct Virtual {
    pub(super) host: Rc<Host>,
    pub(super) arrived: VecDeque<Vec<u8>>,
    pub(super) left: Vec<Vec<u8>>,
    /// The device is up.
    pub(super) up: bool,
    /// Streams by index. The streams of ended connections are empty.
    pub(super) pipes: Rc<RefCell<Vec<Rc<RefCell<Pipe>>>>>,
    reception: Reception,
    /// The streams that the server watches, each with its connection and its interest in reading
    /// and writing.
    watched: BTreeMap<usize, (ConnId, Interest)>,
}

impl Virtual {
    pub(super) fn new(
        host: Rc<Host>,
        pipes: Rc<RefCell<Vec<Rc<RefCell<Pipe>>>>>,
        reception: Reception,
    ) -> Virtual {
        Virtual {
            host,
            arrived: VecDeque::new(),
            left: Vec::new(),
            up: true,
            pipes,
            reception,
            watched: BTreeMap::new(),
        }
    }

    /// Returns everything that is ready, in a fixed order. A ready stream is reported again in the
    /// next turn.
    pub(super) fn ready(&mut self, ready: &mut Vec<Ready>) {
        ready.clear();
        if !self.arrived.is_empty() {
            ready.push(Ready::Packets);
        }
        let pipes = self.pipes.borrow();
        let mut stirred = self.host.stirred.borrow_mut();
        let watched = &mut self.watched;
        stirred.retain(|place| {
            let Some((conn, Interest { read, write })) = watched.get(place) else { return false };
            let pipe = pipes[*place].borrow();
            if pipe.dropped {
                // A kernel removes a closed socket from its poller.
                watched.remove(place);
                return false;
            }
            let is_ready = pipe.is_ready(*read, *write);
            if is_ready {
                ready.push(Ready::Stream(*conn));
            }
            is_ready
        });
    }
}

impl World for Virtual {
    type Stream = Program;

    fn now(&self) -> Time {
        self.host.now.get()
    }

    fn epoch_ns(&self) -> u64 {
        0
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, Virtio)>> {
        let Some(packet) = self.arrived.pop_front() else { return Ok(None) };
        let len = packet.len().min(buffer.len());
        buffer[..len].copy_from_slice(&packet[..len]);
        Ok(Some((len, Virtio::default())))
    }

    fn offloads(&self) -> bool {
        false
    }

    fn send(&mut self, packet: &Outgoing<'_>) -> io::Result<io::Result<()>> {
        if !self.up {
            return Ok(Err(io::ErrorKind::NetworkDown.into()));
        }
        let mut bytes = Vec::with_capacity(packet.headers.len() + packet.payload.len());
        bytes.extend_from_slice(packet.headers);
        bytes.extend_from_slice(packet.payload);
        self.left.push(bytes);
        Ok(Ok(()))
    }

    fn dial(&mut self, _: SocketAddr, buffers: Option<Buffers>) -> io::Result<Program> {
        let pipe = Rc::new(RefCell::new((self.reception)(buffers)?));
        let mut pipes = self.pipes.borrow_mut();
        let place = pipes.len();
        pipes.push(Rc::clone(&pipe));
        self.host.due.borrow_mut().insert(place);
        Ok(Program { pipe, host: Rc::clone(&self.host), place })
    }

    fn watch(
        &mut self,
        conn: ConnId,
        stream: &Program,
        _: Option<Interest>,
        to: Option<Interest>,
    ) -> io::Result<()> {
        match to {
            Some(interest) => {
                self.watched.insert(stream.place, (conn, interest));
                self.host.stirred.borrow_mut().insert(stream.place);
            }
            None => {
                self.watched.remove(&stream.place);
            }
        }
        Ok(())
    }
}
