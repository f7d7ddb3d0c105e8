//! The end that receives the data.

use super::{App, AppEvent, REQUEST, Stream, StreamState};
use plait_base::{DataRange, Dsn, Span, Time};

/// Reads until the peer has finished, or until a deadline. A client first sends a request.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Request bytes not yet written; `None` if this end is the server.
    request: Option<u64>,
    /// Position of the next byte to read.
    position: Dsn,
    /// Time after the first poll at which this end stops, even if more data would arrive.
    duration: Option<Span>,
    start: Option<Time>,
    done: bool,
}

impl Receiver {
    /// Creates a client, which writes a request and then reads.
    pub(crate) const fn client(duration: Option<Span>) -> Receiver {
        Receiver { request: Some(REQUEST), position: Dsn::ZERO, duration, start: None, done: false }
    }

    /// Creates a server, which reads the request and all data after it.
    pub(crate) const fn server() -> Receiver {
        Receiver { request: None, position: Dsn::ZERO, duration: None, start: None, done: false }
    }

    fn deadline(&self) -> Option<Time> {
        Some(self.start? + self.duration?)
    }

    fn ask(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        if let Some(left) = self.request
            && left > 0
        {
            let left = left - stream.write(left).min(left);
            self.request = Some(left);
            if left == 0 {
                log.push(AppEvent::RequestWritten);
            }
        }
    }

    fn take(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        let count = stream.read(u64::MAX);
        if count == 0 {
            return;
        }
        let data = DataRange::with_len(self.position, count);
        self.position = data.end;
        log.push(AppEvent::Read { data });
        if self.request.is_none() && data.start < Dsn::new(REQUEST) && data.end >= Dsn::new(REQUEST)
        {
            log.push(AppEvent::RequestRead);
        }
    }
}

impl App for Receiver {
    fn poll(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        self.start.get_or_insert(now);
        if self.done {
            return;
        }
        if self.request.is_some_and(|left| left > 0) && stream.state() == StreamState::Open {
            self.ask(stream, log);
        }
        self.take(stream, log);
        let over = match stream.state() {
            StreamState::Failed => {
                self.done = true;
                log.push(AppEvent::Failed);
                return;
            }
            StreamState::PeerDone | StreamState::Closed => true,
            StreamState::Connecting | StreamState::Open => {
                self.deadline().is_some_and(|deadline| now >= deadline)
            }
        };
        if over {
            stream.finish();
            self.done = true;
            log.push(AppEvent::Complete);
        }
    }

    fn wake(&self) -> Option<Time> {
        if self.done { None } else { self.deadline() }
    }

    fn done(&self) -> bool {
        self.done
    }
}
