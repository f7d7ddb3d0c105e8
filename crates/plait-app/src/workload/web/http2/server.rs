//! The HTTP/2 server.

use super::super::outbox::{CHUNK, Outbox};
use super::super::page::Page;
use super::frames::{
    ACK, DATA, END_HEADERS, END_STREAM, FIRST_WINDOW, FrameHead, Frames, Got, HEADERS,
    INITIAL_WINDOW, MAX_FRAME_BYTES, PREFACE, SETTINGS, WINDOW_UPDATE, asked, frame, increment,
    response,
};
use crate::{App, AppEvent, Stream, StreamState};
use plait_base::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of pending control bytes; if they exceed it, the connection fails.
const MOST_WAITING: usize = 1 << 20;

/// A body that is being sent.
#[derive(Debug)]
struct Going {
    stream: u32,
    left: u64,
    /// Flow-control window of the stream; negative if the client has reduced its initial window.
    window: i64,
}

/// A server that sends the objects of a page, one frame of each in turn.
#[derive(Debug)]
pub(in super::super) struct Server {
    page: Arc<Page>,
    outbox: Outbox,
    frames: Frames,
    /// Received bytes of the preface.
    preface: usize,
    /// Frames to send before the next frame of a body.
    words: Vec<u8>,
    /// Bodies in the order of their turns; the next one is first.
    going: VecDeque<Going>,
    window: i64,
    first_window: i64,
    done: bool,
}

impl Server {
    pub(in super::super) const fn new(page: Arc<Page>) -> Server {
        Server {
            page,
            outbox: Outbox::new(),
            frames: Frames::new(),
            preface: 0,
            words: Vec::new(),
            going: VecDeque::new(),
            window: FIRST_WINDOW as i64,
            first_window: FIRST_WINDOW as i64,
            done: false,
        }
    }

    fn read(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) -> Result<(), ()> {
        let mut chunk = [0; CHUNK];
        loop {
            let count = stream.read_bytes(&mut chunk) as usize;
            if count == 0 {
                return Ok(());
            }
            let mut input = chunk.get(..count).unwrap_or_default();
            while let Some((byte, rest)) = input.split_first()
                && let Some(expected) = PREFACE.get(self.preface)
            {
                if byte != expected {
                    return Err(());
                }
                self.preface += 1;
                input = rest;
                if self.preface == PREFACE.len() {
                    self.words.extend(frame(SETTINGS, 0, 0, &[]));
                }
            }
            while !input.is_empty() {
                let (used, got) = self.frames.take(input)?;
                input = &input[used..];
                if let Some(Got::Frame { head, payload }) = got {
                    self.on_frame(head, &payload, log)?;
                }
            }
            if self.words.len() > MOST_WAITING {
                return Err(());
            }
        }
    }

    fn on_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        log: &mut Vec<AppEvent>,
    ) -> Result<(), ()> {
        match head.kind {
            HEADERS => {
                log.push(AppEvent::RequestRead);
                let size = asked(payload).and_then(|object| self.page.size(object));
                let left = size.unwrap_or(0);
                let flags = END_HEADERS | if left == 0 { END_STREAM } else { 0 };
                self.words.extend(frame(HEADERS, flags, head.stream, &response(size)));
                if left > 0 {
                    let window = self.first_window;
                    self.going.push_back(Going { stream: head.stream, left, window });
                }
            }
            SETTINGS if head.flags & ACK == 0 => {
                for setting in payload.chunks_exact(6) {
                    let [a, b, value @ ..] = setting else { continue };
                    if u16::from_be_bytes([*a, *b]) == INITIAL_WINDOW {
                        let value = value.try_into().map_or(0, u32::from_be_bytes);
                        let window = i64::from(value);
                        let change = window - self.first_window;
                        self.going.iter_mut().for_each(|going| going.window += change);
                        self.first_window = window;
                    }
                }
                self.words.extend(frame(SETTINGS, ACK, 0, &[]));
            }
            WINDOW_UPDATE => {
                let more = i64::from(increment(payload).ok_or(())?);
                if head.stream == 0 {
                    self.window = self.window.saturating_add(more);
                } else if let Some(going) =
                    self.going.iter_mut().find(|going| going.stream == head.stream)
                {
                    going.window = going.window.saturating_add(more);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes as much as the send buffer and the client's windows allow.
    fn write(&mut self, stream: &mut dyn Stream) {
        while self.outbox.flush(stream) {
            if !self.words.is_empty() {
                self.outbox.put(&core::mem::take(&mut self.words));
            } else if !self.turn() {
                return;
            }
        }
    }

    /// Queues the next frame of the first body in turn that has an open window. Returns whether
    /// there was one.
    fn turn(&mut self) -> bool {
        let Some(next) = self.going.iter().position(|going| going.window > 0 && self.window > 0)
        else {
            return false;
        };
        let Some(mut going) = self.going.remove(next) else { return false };
        let most = (MAX_FRAME_BYTES as i64).min(going.window).min(self.window) as u64;
        let len = most.min(going.left);
        going.left -= len;
        going.window -= len as i64;
        self.window -= len as i64;
        let flags = if going.left == 0 { END_STREAM } else { 0 };
        let head = FrameHead { len: len as usize, kind: DATA, flags, stream: going.stream };
        self.outbox.put(&head.to_bytes());
        self.outbox.fill(len);
        if going.left > 0 {
            self.going.push_back(going);
        }
        true
    }
}

impl App for Server {
    fn poll(&mut self, _: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        if self.done {
            return;
        }
        let read = self.read(stream, log);
        self.write(stream);
        let state = stream.state();
        let failed = read.is_err() || matches!(state, StreamState::Closed | StreamState::Failed);
        if failed || state == StreamState::PeerDone {
            stream.finish();
            self.done = true;
            log.push(if failed { AppEvent::Failed } else { AppEvent::Complete });
        }
    }

    fn wake(&self) -> Option<Time> {
        None
    }

    fn done(&self) -> bool {
        self.done
    }
}
