//! Both ends of a workload over sockets, in one thread with one clock.

use super::stream::SocketStream;
use crate::Clock;
use crate::poller::{Poller, Ready};
use plait_app::{App, AppEvent, Measures, Observer, Role, Workload};
use plait_base::{Span, Time};
use plait_engine::Interest;
use socket2::Socket;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tokens of the poller.
const CLIENT: u64 = 0;
const SERVER: u64 = 1;
const LISTENER: u64 = 2;
/// Longest time between two looks at the flag of a cancellation.
const LOOKS: Span = Span::from_millis(50);

/// One end of the connection.
struct End {
    role: Role,
    app: Box<dyn App>,
    /// `None` before the connection exists.
    stream: Option<SocketStream>,
    /// What the poller waits for.
    interest: Option<Interest>,
}

impl End {
    fn token(&self) -> u64 {
        if self.role == Role::Client { CLIENT } else { SERVER }
    }
}

/// Both ends of a workload.
pub(super) struct Conversation {
    clock: Clock,
    poller: Poller,
    listener: Socket,
    ends: [End; 2],
    observer: Option<Observer>,
    log: Vec<AppEvent>,
}

impl Conversation {
    /// Creates the apps of a workload with one connection. The client has sent its SYN at zero of the clock.
    pub(super) fn new(
        workload: &Workload,
        paths: usize,
        clock: Clock,
        listener: Socket,
    ) -> io::Result<Conversation> {
        let poller = Poller::open()?;
        poller.add(&listener, LISTENER, true, false)?;
        let mut apps = workload.apps().into_iter();
        let (client, server) = apps.next().ok_or(io::ErrorKind::InvalidInput)?;
        let end = |role, app| End { role, app, stream: None, interest: None };
        Ok(Conversation {
            clock,
            poller,
            listener,
            ends: [end(Role::Client, client), end(Role::Server, server)],
            observer: Some(Observer::new(workload, paths, Time::ZERO)),
            log: Vec::new(),
        })
    }

    /// Gives the client its socket.
    pub(super) fn connect(&mut self, stream: SocketStream) -> io::Result<()> {
        self.ends[0].stream = Some(stream);
        self.watch(0)
    }

    /// Runs both ends until they are done. Returns false if they are not done at the deadline, or if `cancelled`
    /// becomes true. `stream` makes a stream of the accepted socket.
    pub(super) fn run(
        &mut self,
        deadline: Span,
        cancelled: &AtomicBool,
        stream: impl Fn(Socket) -> io::Result<SocketStream>,
    ) -> io::Result<bool> {
        let deadline = Time::ZERO + deadline;
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
                match *token {
                    LISTENER => self.accept(&stream)?,
                    token => {
                        let end = &mut self.ends[usize::from(token == SERVER)];
                        if let Some(stream) = end.stream.as_mut().filter(|_| *write) {
                            stream.on_writable();
                        }
                    }
                }
            }
        }
    }

    /// Returns the measures at the end.
    pub(super) fn finish(mut self) -> Measures {
        let now = self.clock.now();
        self.observer.take().map(|observer| observer.finish(now)).unwrap_or_default()
    }

    fn accept(&mut self, stream: impl Fn(Socket) -> io::Result<SocketStream>) -> io::Result<()> {
        match self.listener.accept() {
            Ok((socket, _)) if self.ends[1].stream.is_none() => {
                let mut stream = stream(socket)?;
                stream.on_writable();
                self.ends[1].stream = Some(stream);
                self.watch(1)
            }
            Ok(_) => Err(io::Error::other("a second connection was made")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
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
            if matches!(event, AppEvent::Failed | AppEvent::Garbled { .. }) {
                return Err(io::Error::other(format!("the {:?}'s connection failed", end.role)));
            }
            if let Some(observer) = &mut self.observer {
                observer.observe_app(after, end.role, &event);
            }
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
