//! The application at one end of a case's connection. It writes its bytes, reads the peer's bytes at the
//! planned pace, closes, and compares the received bytes with the written ones.

use super::case::Finish;
use super::fault::Reading;
use plait_app::{App, AppEvent, Stream, StreamState};
use plait_base::{DataRange, Dsn, Span, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of bytes that are generated or compared at a time.
const BLOCK: usize = 4096;

/// The bytes of one direction. They depend on the position, so that misplaced bytes are detected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Content(u64);

impl Content {
    pub(super) const fn new(salt: u64) -> Content {
        Content(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn byte(self, position: u64) -> u8 {
        let mixed = (position ^ self.0).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed >> 32) as u8 ^ (mixed >> 56) as u8
    }

    fn fill(self, position: u64, block: &mut [u8]) {
        for (byte, position) in block.iter_mut().zip(position..) {
            *byte = self.byte(position);
        }
    }

    /// Returns the position of the first byte of `block` that differs from the written byte.
    fn mismatch(self, position: u64, block: &[u8]) -> Option<u64> {
        block.iter().zip(position..).find(|(byte, at)| **byte != self.byte(*at)).map(|(_, at)| at)
    }
}

/// The plan of one end.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Number of bytes to send, and to expect.
    pub(super) send: u64,
    pub(super) expect: u64,
    pub(super) finish: Finish,
    /// Bytes of one write (0: all), and the time from one write to the next.
    pub(super) write: u64,
    pub(super) every: Span,
    pub(super) reading: Reading,
    /// Varying bytes of this end and of the other; `None` for the pattern.
    pub(super) own: Option<Content>,
    pub(super) peer: Option<Content>,
}

/// The application.
#[derive(Debug)]
pub(super) struct SwarmApp {
    plan: Plan,
    written: u64,
    read: u64,
    /// Bytes that the plan allows to have written by now, and the time of the next write.
    due: u64,
    next_write: Time,
    /// Time of the next read of a slow reader.
    next_read: Time,
    stalled: bool,
    finished: bool,
    done: bool,
    wake: Option<Time>,
    /// Set once the reader has left data unread.
    held_back: Arc<AtomicBool>,
    block: Vec<u8>,
}

impl SwarmApp {
    pub(super) fn new(plan: Plan, held_back: Arc<AtomicBool>) -> SwarmApp {
        SwarmApp {
            plan,
            written: 0,
            read: 0,
            due: 0,
            next_write: Time::ZERO,
            next_read: Time::ZERO,
            stalled: false,
            finished: false,
            done: false,
            wake: None,
            held_back,
            block: Vec::new(),
        }
    }

    fn write(&mut self, now: Time, stream: &mut dyn Stream) {
        if self.plan.write == 0 || self.plan.every == Span::ZERO {
            self.due = self.plan.send;
        } else {
            while self.next_write <= now && self.due < self.plan.send {
                self.due = (self.due + self.plan.write).min(self.plan.send);
                self.next_write = now + self.plan.every;
            }
        }
        while self.written < self.due {
            let left = self.due - self.written;
            let taken = match self.plan.own {
                None => stream.write(left),
                Some(content) => {
                    self.block.resize(left.min(BLOCK as u64) as usize, 0);
                    content.fill(self.written, &mut self.block);
                    stream.write_bytes(&self.block)
                }
            };
            if taken == 0 {
                return;
            }
            self.written += taken;
        }
    }

    /// Returns the number of bytes that may be read now.
    fn allowance(&mut self, now: Time) -> u64 {
        let reading = &self.plan.reading;
        if now >= reading.heals {
            return u64::MAX;
        }
        if self.next_read > now {
            return 0;
        }
        let mut most = u64::MAX;
        if let Some((after, wait)) = reading.stop.filter(|_| !self.stalled) {
            if self.read >= after {
                self.stalled = true;
                self.next_read = (now + wait).min(reading.heals);
                return 0;
            }
            most = after - self.read;
        }
        if let Some((chunk, every)) = reading.pace {
            most = most.min(chunk);
            self.next_read = (now + every).min(reading.heals);
        }
        most
    }

    fn read(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        loop {
            if stream.readable() == 0 {
                return;
            }
            let mut left = self.allowance(now);
            if left == 0 {
                self.held_back.store(true, Ordering::Relaxed);
                return;
            }
            while left > 0 {
                let taken = self.take(left, stream, log);
                if taken == 0 {
                    break;
                }
                left -= taken;
            }
        }
    }

    fn take(&mut self, most: u64, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) -> u64 {
        let taken = match self.plan.peer {
            None => stream.read(most),
            Some(content) => {
                self.block.resize(most.min(BLOCK as u64) as usize, 0);
                let taken = stream.read_bytes(&mut self.block);
                let block = &self.block[..taken as usize];
                if let Some(position) = content.mismatch(self.read, block) {
                    log.push(AppEvent::Garbled { position: Dsn::new(position) });
                }
                taken
            }
        };
        let data = DataRange::with_len(Dsn::new(self.read), taken);
        self.read += taken;
        if taken > 0 {
            log.push(AppEvent::Read { data });
        }
        if self.read > self.plan.expect {
            log.push(AppEvent::Garbled { position: Dsn::new(self.plan.expect) });
        }
        taken
    }

    fn finish(&mut self, stream: &mut dyn Stream, peer_done: bool) {
        let received = self.read == self.plan.expect;
        let time = match self.plan.finish {
            Finish::AtOnce => true,
            Finish::AfterReceipt => received,
            Finish::AfterPeer => peer_done,
        };
        if !self.finished && self.written == self.plan.send && time {
            self.finished = true;
            stream.finish();
        }
    }
}

impl App for SwarmApp {
    fn poll(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        self.wake = None;
        if self.done {
            return;
        }
        match stream.state() {
            StreamState::Connecting => return,
            StreamState::Failed => {
                self.done = true;
                log.push(AppEvent::Failed);
                return;
            }
            _ => {}
        }
        if !self.finished {
            self.write(now, stream);
        }
        self.read(now, stream, log);
        let ended = matches!(stream.state(), StreamState::PeerDone | StreamState::Closed);
        let peer_done = ended && stream.readable() == 0;
        if peer_done && self.read < self.plan.expect {
            // The peer closed before all expected data arrived.
            self.done = true;
            log.push(AppEvent::Failed);
            return;
        }
        self.finish(stream, peer_done);
        if self.finished && peer_done && stream.unacked() == 0 {
            self.done = true;
            log.push(AppEvent::Complete);
            return;
        }
        let write = (self.due < self.plan.send).then_some(self.next_write);
        let read = (self.next_read > now).then_some(self.next_read);
        self.wake = write.into_iter().chain(read).min();
    }

    fn wake(&self) -> Option<Time> {
        self.wake
    }

    fn done(&self) -> bool {
        self.done
    }
}
