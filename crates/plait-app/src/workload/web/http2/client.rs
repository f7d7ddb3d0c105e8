//! The HTTP/2 client.

use super::super::outbox::{CHUNK, Outbox};
use super::super::session::{Shared, look};
use super::frames::{
    ACK, END_HEADERS, END_STREAM, FIRST_WINDOW, Frames, GOAWAY, Got, HEADERS, INITIAL_WINDOW,
    PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, is_ok, request,
};
use crate::{App, AppEvent, Stream, StreamState};
use plait_base::{DataRange, Dsn, Time};
use std::collections::{BTreeMap, VecDeque};

/// Index of the only connection of the session.
const LANE: usize = 0;

/// An object that is being received.
#[derive(Debug)]
struct Coming {
    object: u32,
    /// Bytes received and not yet returned in a WINDOW_UPDATE.
    untold: u32,
}

/// A client that requests all objects on one connection.
#[derive(Debug)]
pub(in super::super) struct Client {
    session: Shared,
    window: u32,
    outbox: Outbox,
    frames: Frames,
    /// Open streams.
    coming: BTreeMap<u32, Coming>,
    next_stream: u32,
    /// Requests that the send buffer has not accepted yet: the position of the end, and the object.
    asking: VecDeque<(u64, u32)>,
    /// Bytes of the connection not yet returned in a WINDOW_UPDATE.
    untold: u32,
    position: Dsn,
    greeted: bool,
    done: bool,
}

impl Client {
    pub(in super::super) const fn new(session: Shared, window: u32) -> Client {
        Client {
            session,
            window,
            outbox: Outbox::new(),
            frames: Frames::new(),
            coming: BTreeMap::new(),
            next_stream: 1,
            asking: VecDeque::new(),
            untold: 0,
            position: Dsn::ZERO,
            greeted: false,
            done: false,
        }
    }

    /// Sends the preface and the settings, with the client's windows.
    fn greet(&mut self) {
        self.outbox.put(PREFACE);
        let mut setting = INITIAL_WINDOW.to_be_bytes().to_vec();
        setting.extend_from_slice(&self.window.to_be_bytes());
        self.outbox.put(&frame(SETTINGS, 0, 0, &setting));
        // The window of the connection can only grow.
        if let Some(more) = self.window.checked_sub(FIRST_WINDOW).filter(|more| *more > 0) {
            self.outbox.put(&frame(WINDOW_UPDATE, 0, 0, &more.to_be_bytes()));
        }
        self.greeted = true;
    }

    fn ask(&mut self) {
        let mut session = look(&self.session);
        while let Some(object) = session.take(LANE) {
            let flags = END_STREAM | END_HEADERS;
            self.outbox.put(&frame(HEADERS, flags, self.next_stream, &request(object)));
            self.asking.push_back((self.outbox.end(), object));
            self.coming.insert(self.next_stream, Coming { object, untold: 0 });
            self.next_stream += 2;
        }
    }

    fn read(
        &mut self,
        now: Time,
        stream: &mut dyn Stream,
        log: &mut Vec<AppEvent>,
    ) -> Result<(), ()> {
        let mut chunk = [0; CHUNK];
        loop {
            let count = stream.read_bytes(&mut chunk);
            if count == 0 {
                return Ok(());
            }
            let data = DataRange::with_len(self.position, count);
            self.position = data.end;
            log.push(AppEvent::Read { data });
            let mut input = chunk.get(..count as usize).unwrap_or_default();
            while !input.is_empty() {
                let (used, got) = self.frames.take(input)?;
                input = &input[used..];
                if let Some(got) = got {
                    self.on_frame(now, got, log)?;
                }
            }
        }
    }

    fn on_frame(&mut self, now: Time, got: Got, log: &mut Vec<AppEvent>) -> Result<(), ()> {
        let (id, end) = match got {
            Got::Data { stream, count, end } => {
                self.consume(stream, count as u32, end);
                (stream, end)
            }
            Got::Frame { head, payload } => match head.kind {
                HEADERS => {
                    let coming = self.coming.get(&head.stream).ok_or(())?;
                    if !is_ok(&payload) {
                        return Err(());
                    }
                    look(&self.session).on_first_bytes(now, coming.object);
                    (head.stream, head.flags & END_STREAM != 0)
                }
                SETTINGS if head.flags & ACK == 0 => {
                    self.outbox.put(&frame(SETTINGS, ACK, 0, &[]));
                    return Ok(());
                }
                RST_STREAM | GOAWAY => return Err(()),
                _ => return Ok(()),
            },
        };
        if end {
            let Coming { object, .. } = self.coming.remove(&id).ok_or(())?;
            log.push(AppEvent::ObjectRead { id: object.into() });
            look(&self.session).on_fetched(now, LANE, object);
        }
        Ok(())
    }

    /// Counts received bytes, and sends a WINDOW_UPDATE when they reach half a window.
    fn consume(&mut self, stream: u32, count: u32, end: bool) {
        let half = |window: u32| (window / 2).max(1);
        self.untold += count;
        if self.untold >= half(self.window.max(FIRST_WINDOW)) {
            self.outbox.put(&frame(WINDOW_UPDATE, 0, 0, &self.untold.to_be_bytes()));
            self.untold = 0;
        }
        if let Some(coming) = self.coming.get_mut(&stream) {
            coming.untold += count;
            if !end && coming.untold >= half(self.window) {
                self.outbox.put(&frame(WINDOW_UPDATE, 0, stream, &coming.untold.to_be_bytes()));
                coming.untold = 0;
            }
        }
    }

    /// Writes pending bytes, and logs the requests that are completely written.
    fn write(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        self.outbox.flush(stream);
        while let Some((end, object)) = self.asking.front().copied()
            && end <= self.outbox.taken()
        {
            self.asking.pop_front();
            log.push(AppEvent::ObjectAsked { id: object.into() });
        }
    }
}

impl App for Client {
    fn poll(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        if self.done {
            return;
        }
        look(&self.session).advance(now, LANE);
        let state = stream.state();
        let read = self.read(now, stream, log);
        if look(&self.session).tell_loaded() {
            log.push(AppEvent::Loaded);
            stream.finish();
            self.done = true;
            log.push(AppEvent::Complete);
        } else if read.is_err() || !matches!(state, StreamState::Connecting | StreamState::Open) {
            look(&self.session).fail();
            self.done = true;
            log.push(AppEvent::Failed);
        } else if state == StreamState::Open {
            if !self.greeted {
                self.greet();
            }
            self.ask();
            self.write(stream, log);
        }
    }

    fn wake(&self) -> Option<Time> {
        // `poll` requests all ready objects at once, so only time can add more.
        if self.done { None } else { look(&self.session).next() }
    }

    fn done(&self) -> bool {
        self.done
    }
}
