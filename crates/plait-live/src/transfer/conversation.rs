//! One end or both ends of a workload over sockets, in one thread with one clock.

use super::door::Door;
use super::stream::SocketStream;
use crate::Clock;
use crate::poller::{Poller, Ready};
use plait_app::{App, AppEvent, Measures, Observer, Role, Workload};
use plait_base::{DataRange, Span, Time};
use plait_engine::Interest;
use socket2::Socket;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tokens of the poller. The door has all others.
const CLIENT: u64 = 0;
const SERVER: u64 = 1;
/// Longest time between two looks at the flag of a cancellation.
const LOOKS: Span = Span::from_millis(50);
/// Most reads that are kept for later.
const MAX_READS: usize = 1 << 20;

/// Data of an end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct EndData {
    /// Bytes of the messages that were due.
    pub(super) due_bytes: u64,
    /// When the first of them was due.
    pub(super) first_due: Option<Time>,
    /// Bytes that the receiver of the workload's data has read.
    pub(super) read_bytes: u64,
    /// Time of the last of these reads.
    pub(super) last_read: Option<Time>,
}

/// One end of the connection.
struct End {
    role: Role,
    app: Box<dyn App>,
    /// `None` before the connection exists.
    stream: Option<SocketStream>,
    /// What the poller waits for.
    interest: Option<Interest>,
    data: EndData,
}

impl End {
    fn token(&self) -> u64 {
        if self.role == Role::Client { CLIENT } else { SERVER }
    }
}

/// One end or both ends of a workload.
pub(super) struct Conversation {
    clock: Clock,
    poller: Poller,
    /// Where the server's end gets its socket.
    door: Option<Door>,
    ends: Vec<End>,
    observer: Observer,
    /// Reads that the observer gets after the events of an end that is elsewhere.
    kept: Option<Vec<(Time, DataRange)>>,
    log: Vec<AppEvent>,
}

impl Conversation {
    /// Creates the apps of a workload with one connection: both of them, or that of `only`. The client sends its SYN
    /// at `start`. A server's end needs a `door`.
    pub(super) fn new(
        (workload, paths): (&Workload, usize),
        (clock, start): (Clock, Time),
        only: Option<Role>,
        door: Option<Door>,
    ) -> io::Result<Conversation> {
        let poller = Poller::open()?;
        if let Some(door) = &door {
            door.watch(&poller)?;
        }
        let mut apps = workload.apps().into_iter();
        let (client, server) = apps.next().ok_or(io::ErrorKind::InvalidInput)?;
        let end = |(role, app)| {
            let (stream, interest, data) = (None, None, EndData::default());
            End { role, app, stream, interest, data }
        };
        let both = [(Role::Client, client), (Role::Server, server)].into_iter();
        let here = both.filter(|(role, _)| only.is_none_or(|only| only == *role));
        Ok(Conversation {
            clock,
            poller,
            door,
            ends: here.map(end).collect(),
            observer: Observer::new(workload, paths, start),
            kept: None,
            log: Vec::new(),
        })
    }

    /// Keeps reads for [`Conversation::take_reads`], in place of observing them.
    pub(super) fn keep_reads(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// Returns the reads that were kept, with their times.
    pub(super) fn take_reads(&mut self) -> Vec<(Time, DataRange)> {
        self.kept.take().unwrap_or_default()
    }

    /// Gives the client its socket.
    pub(super) fn connect(&mut self, stream: SocketStream) -> io::Result<()> {
        self.begin(Role::Client, stream)
    }

    /// Runs the ends until they are done. Returns false if they are not done at the deadline, or if `cancelled`
    /// becomes true. `stream` makes a stream of the accepted socket.
    pub(super) fn run(
        &mut self,
        deadline: Time,
        cancelled: &AtomicBool,
        stream: impl Fn(Socket) -> io::Result<SocketStream>,
    ) -> io::Result<bool> {
        let mut ready: Vec<Ready> = Vec::new();
        loop {
            let mut next = deadline;
            for at in 0..self.ends.len() {
                next = next.min(self.poll(at)?);
            }
            if self.ends.iter().all(|end| end.app.done()) {
                return Ok(true);
            }
            if self.clock.now() >= deadline || cancelled.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.poller.wait(&self.clock, next, LOOKS, &mut ready)?;
            for Ready { token, write, .. } in &ready {
                let role = match *token {
                    CLIENT => Role::Client,
                    SERVER => Role::Server,
                    other => {
                        self.admit(other, &stream)?;
                        continue;
                    }
                };
                let end = self.ends.iter_mut().find(|end| end.role == role);
                if let Some(stream) = end.and_then(|end| end.stream.as_mut()).filter(|_| *write) {
                    stream.on_writable();
                }
            }
        }
    }

    /// Returns the data of an end.
    pub(super) fn data(&self, role: Role) -> EndData {
        self.ends.iter().find(|end| end.role == role).map(|end| end.data).unwrap_or_default()
    }

    /// Adds an event of an end that is elsewhere.
    pub(super) fn observe(&mut self, at: Time, role: Role, event: &AppEvent) {
        self.observer.observe_app(at, role, event);
    }

    /// Returns the measures at the end.
    pub(super) fn finish(self) -> Measures {
        self.observer.finish(self.clock.now())
    }

    fn begin(&mut self, role: Role, stream: SocketStream) -> io::Result<()> {
        let Some(at) = self.ends.iter().position(|end| end.role == role) else { return Ok(()) };
        self.ends[at].stream = Some(stream);
        self.watch(at)
    }

    /// Gives the server's end the socket that the door lets in.
    fn admit(
        &mut self,
        token: u64,
        stream: impl Fn(Socket) -> io::Result<SocketStream>,
    ) -> io::Result<()> {
        let Some(door) = &mut self.door else { return Ok(()) };
        if let Some(socket) = door.on_ready(&self.poller, token)? {
            let mut stream = stream(socket)?;
            stream.on_writable();
            self.begin(Role::Server, stream)?;
        }
        Ok(())
    }

    /// Polls an app until it waits. Returns the time of its next poll.
    fn poll(&mut self, at: usize) -> io::Result<Time> {
        let end = &mut self.ends[at];
        let Some(stream) = &mut end.stream else { return Ok(Time::NEVER) };
        if end.app.done() {
            return Ok(Time::NEVER);
        }
        let now = self.clock.now();
        stream.begin();
        end.app.poll(now, stream, &mut self.log);
        // The reads and writes have taken time.
        let after = self.clock.now();
        for event in self.log.drain(..) {
            match &event {
                AppEvent::Failed | AppEvent::Garbled { .. } => {
                    let role = end.role;
                    return Err(io::Error::other(format!("the {role:?}'s connection failed")));
                }
                AppEvent::MessageDue { data, due, .. } => {
                    end.data.due_bytes += data.len();
                    end.data.first_due.get_or_insert(*due);
                }
                AppEvent::Read { data } => {
                    end.data.read_bytes += data.len();
                    end.data.last_read = Some(after);
                    if let Some(kept) = &mut self.kept {
                        if kept.len() >= MAX_READS {
                            return Err(io::Error::other(format!("more than {MAX_READS} reads")));
                        }
                        kept.push((after, *data));
                        continue;
                    }
                }
                _ => {}
            }
            self.observer.observe_app(after, end.role, &event);
        }
        let next = match stream.is_cut_short() {
            true => after,
            false => end.app.wake().unwrap_or(Time::NEVER),
        };
        self.watch(at)?;
        Ok(next)
    }

    /// Tells the poller what an end waits for.
    fn watch(&mut self, at: usize) -> io::Result<()> {
        let end = &mut self.ends[at];
        let token = end.token();
        let Some(stream) = &end.stream else { return Ok(()) };
        let wanted = stream.interest().filter(|_| !end.app.done());
        if wanted != end.interest {
            self.poller.change(stream.socket(), token, end.interest, wanted)?;
            end.interest = wanted;
        }
        Ok(())
    }
}
