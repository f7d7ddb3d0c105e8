//! HTTP/1.1 over several persistent connections, each with one request at a time.

use super::outbox::{CHUNK, Outbox};
use super::page::Page;
use super::session::{Shared, look};
use crate::{App, AppEvent, Stream, StreamState};
use plait_base::{DataRange, Dsn, Time};
use std::sync::Arc;

/// Length of a request in bytes, typical of browsers with cookies.
pub(super) const REQUEST: usize = 400;
/// Length of a response head in bytes.
pub(super) const RESPONSE: usize = 300;
/// Longest head that is read, in bytes; a longer one is an error.
const LONGEST_HEAD: usize = 65_536;

/// Returns `lines`, a line that pads the head to `len` bytes, and the empty line.
fn head(lines: &str, len: usize) -> Vec<u8> {
    const PAD: &str = "X-Pad: ";
    let pad = len.saturating_sub(lines.len() + PAD.len() + 4);
    let mut head = Vec::with_capacity(len);
    head.extend_from_slice(lines.as_bytes());
    head.extend_from_slice(PAD.as_bytes());
    head.resize(head.len() + pad, b'.');
    head.extend_from_slice(b"\r\n\r\n");
    head
}

/// Collects a head.
#[derive(Debug, Default)]
struct Head(Vec<u8>);

impl Head {
    /// Takes bytes up to the end of the head. Returns their number, and whether the head is
    /// complete.
    fn take(&mut self, input: &[u8]) -> Result<(usize, bool), ()> {
        for (index, byte) in input.iter().enumerate() {
            self.0.push(*byte);
            if self.0.ends_with(b"\r\n\r\n") {
                return Ok((index + 1, true));
            }
        }
        if self.0.len() > LONGEST_HEAD { Err(()) } else { Ok((input.len(), false)) }
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        core::str::from_utf8(&self.0).unwrap_or("").split("\r\n")
    }
}

/// The data that a client expects next.
#[derive(Debug)]
enum Expect {
    Nothing,
    /// The head of the response for an object.
    Head(u32, Head),
    /// This many more bytes of the object.
    Body(u32, u64),
}

/// A client's end of one connection of a session.
#[derive(Debug)]
pub(super) struct Client {
    session: Shared,
    index: usize,
    outbox: Outbox,
    expect: Expect,
    /// The object whose request the send buffer has not accepted yet.
    asking: Option<u32>,
    position: Dsn,
    open: bool,
    done: bool,
}

impl Client {
    pub(super) const fn new(session: Shared, index: usize) -> Client {
        Client {
            session,
            index,
            outbox: Outbox::new(),
            expect: Expect::Nothing,
            asking: None,
            position: Dsn::ZERO,
            open: false,
            done: false,
        }
    }

    fn fail(&mut self, log: &mut Vec<AppEvent>) {
        let mut session = look(&self.session);
        session.fail();
        session.leave(self.index);
        self.done = true;
        log.push(AppEvent::Failed);
    }

    /// Reads all received bytes. Returns an error if they are not a valid response.
    fn read(
        &mut self,
        now: Time,
        stream: &mut dyn Stream,
        log: &mut Vec<AppEvent>,
    ) -> Result<(), ()> {
        let mut chunk = [0; CHUNK];
        loop {
            let count = stream.read_bytes(&mut chunk) as usize;
            if count == 0 {
                return Ok(());
            }
            let data = DataRange::with_len(self.position, count as u64);
            self.position = data.end;
            log.push(AppEvent::Read { data });
            let mut input = chunk.get(..count).unwrap_or_default();
            while !input.is_empty() {
                let used = self.take(now, input, log)?;
                input = &input[used..];
            }
        }
    }

    /// Takes bytes of a response. Returns their number.
    fn take(&mut self, now: Time, input: &[u8], log: &mut Vec<AppEvent>) -> Result<usize, ()> {
        let (object, used, left) = match &mut self.expect {
            Expect::Nothing => return Err(()),
            Expect::Head(object, head) => {
                let object = *object;
                if head.0.is_empty() {
                    look(&self.session).on_first_bytes(now, object);
                }
                let (used, whole) = head.take(input)?;
                if !whole {
                    return Ok(used);
                }
                let mut lines = head.lines();
                if lines.next() != Some("HTTP/1.1 200 OK") {
                    return Err(());
                }
                let length = lines.find_map(|line| line.strip_prefix("Content-Length: "));
                (object, used, length.and_then(|length| length.parse().ok()).ok_or(())?)
            }
            Expect::Body(object, left) => {
                let used = (*left).min(input.len() as u64);
                (*object, used as usize, *left - used)
            }
        };
        self.expect = if left > 0 {
            Expect::Body(object, left)
        } else {
            log.push(AppEvent::ObjectRead { id: object.into() });
            look(&self.session).on_fetched(now, self.index, object);
            Expect::Nothing
        };
        Ok(used)
    }

    /// Requests the next object, if there is one.
    fn ask(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        if matches!(self.expect, Expect::Nothing)
            && let Some(object) = look(&self.session).take(self.index)
        {
            self.outbox.put(&head(&format!("GET /{object} HTTP/1.1\r\nHost: plait\r\n"), REQUEST));
            self.expect = Expect::Head(object, Head::default());
            self.asking = Some(object);
        }
        if self.outbox.flush(stream)
            && let Some(object) = self.asking.take()
        {
            log.push(AppEvent::ObjectAsked { id: object.into() });
        }
    }
}

impl App for Client {
    fn poll(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        if self.done {
            return;
        }
        look(&self.session).advance(now, self.index);
        let state = stream.state();
        self.open = state == StreamState::Open;
        let read = self.read(now, stream, log);
        if look(&self.session).tell_loaded() {
            log.push(AppEvent::Loaded);
        }
        if look(&self.session).is_settled() {
            stream.finish();
            look(&self.session).leave(self.index);
            self.done = true;
            log.push(AppEvent::Complete);
        } else if read.is_err() || !matches!(state, StreamState::Connecting | StreamState::Open) {
            self.fail(log);
        } else if self.open {
            self.ask(stream, log);
        }
    }

    fn wake(&self) -> Option<Time> {
        if self.done {
            return None;
        }
        let session = look(&self.session);
        let asks = self.open && matches!(self.expect, Expect::Nothing) && session.has_wanted();
        if asks || session.is_settled() {
            return Some(Time::ZERO);
        }
        session.next().filter(|_| self.index == 0)
    }

    fn opens(&self) -> bool {
        look(&self.session).opens(self.index)
    }

    fn done(&self) -> bool {
        self.done || look(&self.session).needs_not(self.index)
    }
}

/// A server's end of one connection.
#[derive(Debug)]
pub(super) struct Server {
    page: Arc<Page>,
    head: Head,
    outbox: Outbox,
    done: bool,
}

impl Server {
    pub(super) const fn new(page: Arc<Page>) -> Server {
        Server { page, head: Head(Vec::new()), outbox: Outbox::new(), done: false }
    }

    /// Answers the complete request.
    fn answer(&mut self) {
        let line = self.head.lines().next().unwrap_or("");
        let object = line.strip_prefix("GET /").and_then(|line| line.strip_suffix(" HTTP/1.1"));
        let size = object.and_then(|it| it.parse().ok()).and_then(|it| self.page.size(it));
        let (status, size) = match size {
            Some(size) => ("200 OK", size),
            None => ("404 Not Found", 0),
        };
        let lines = format!("HTTP/1.1 {status}\r\nContent-Length: {size}\r\n");
        self.outbox.put(&head(&lines, RESPONSE));
        self.outbox.fill(size);
        self.head.0.clear();
    }

    /// Answers all received requests in order. Returns an error if a request is invalid.
    fn turn(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) -> Result<(), ()> {
        let mut byte = [0; 1];
        // One answer at a time: further requests stay in the stream.
        while self.outbox.flush(stream) && stream.read_bytes(&mut byte) > 0 {
            if self.head.take(&byte)?.1 {
                log.push(AppEvent::RequestRead);
                self.answer();
            }
        }
        Ok(())
    }
}

impl App for Server {
    fn poll(&mut self, _: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        if self.done {
            return;
        }
        let turn = self.turn(stream, log);
        match stream.state() {
            StreamState::PeerDone => {
                stream.finish();
                self.done = true;
                log.push(AppEvent::Complete);
            }
            StreamState::Closed | StreamState::Failed => {
                self.done = true;
                log.push(AppEvent::Failed);
            }
            StreamState::Connecting | StreamState::Open => {
                if turn.is_err() {
                    stream.finish();
                    self.done = true;
                    log.push(AppEvent::Failed);
                }
            }
        }
    }

    fn wake(&self) -> Option<Time> {
        None
    }

    fn done(&self) -> bool {
        self.done
    }
}
