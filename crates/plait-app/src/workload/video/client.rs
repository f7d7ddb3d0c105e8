//! The client of an adaptive stream.

use super::abr::{Abr, PlayerState};
use super::player::Player;
use super::{Clip, Session};
use crate::workload::exchange::Requests;
use crate::workload::{App, AppEvent, Stream, StreamState};
use plait_base::{DataRange, Dsn, Time};

/// State of the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Requests the next chunk as soon as the buffer and the connection allow.
    Resting,
    /// Waits for a chunk that ends at this position.
    Waiting {
        end: Dsn,
        rung: usize,
        asked: Time,
    },
    Done,
}

/// Requests one chunk after the other over one connection, in the encoding that the adaptation
/// chooses. It pauses while the buffer is full.
#[derive(Debug)]
pub(crate) struct Client {
    session: Session,
    known: PlayerState,
    player: Player,
    requests: Requests,
    phase: Phase,
    start: Option<Time>,
    /// Position of the next byte to read.
    position: Dsn,
    wake: Option<Time>,
}

impl Client {
    pub(crate) fn new(session: &Session) -> Client {
        Client {
            known: PlayerState::new(session.buffer),
            player: Player::new(session.start),
            requests: Requests::default(),
            phase: Phase::Resting,
            start: None,
            position: Dsn::ZERO,
            wake: None,
            session: session.clone(),
        }
    }

    fn clip(&self) -> &Clip {
        &self.session.clip
    }

    fn abr(&self) -> Abr {
        self.session.abr
    }

    fn deadline(&self) -> Option<Time> {
        Some(self.start? + self.session.duration?)
    }

    fn read(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        let count = stream.read(u64::MAX);
        if count > 0 {
            let data = DataRange::with_len(self.position, count);
            self.position = data.end;
            log.push(AppEvent::Read { data });
        }
    }

    /// Takes the pending chunk if it is complete. Returns whether it was the last chunk.
    fn take(&mut self, now: Time, log: &mut Vec<AppEvent>) -> bool {
        let Phase::Waiting { end, rung, asked } = self.phase else { return false };
        if self.position < end {
            return false;
        }
        let chunk = self.known.chunk;
        let (lasts, encoding) = (self.clip().lasts(chunk), &self.clip().rungs()[rung]);
        let (rate, bytes) = (encoding.rate, encoding.size(chunk));
        log.push(AppEvent::Chunk { id: chunk as u64, rate, lasts });
        self.known.learn(bytes, now.since(asked));
        self.known.last = rung;
        self.known.chunk += 1;
        let last = self.known.chunk == self.clip().chunks();
        self.player.fill(now, lasts, last, log);
        self.phase = Phase::Resting;
        last
    }

    /// Requests the next chunk, or sets the time for the request.
    fn ask(&mut self, now: Time, log: &mut Vec<AppEvent>) {
        let at = self.player.below(self.session.buffer, now);
        if at.is_none_or(|at| at > now) {
            self.wake = at;
            return;
        }
        self.known.level = self.player.level(now);
        let (id, rung) = (self.known.chunk, self.abr().choose(self.clip(), &self.known));
        let bytes = self.clip().rungs()[rung].size(id);
        let data = DataRange::with_len(self.position, bytes);
        log.push(AppEvent::MessageDue { id: id as u64, data, due: now });
        self.requests.push(id as u64, bytes);
        self.phase = Phase::Waiting { end: data.end, rung, asked: now };
    }

    fn leave(&mut self, stream: &mut dyn Stream, last_word: AppEvent, log: &mut Vec<AppEvent>) {
        stream.finish();
        self.phase = Phase::Done;
        self.wake = None;
        log.push(last_word);
    }
}

impl App for Client {
    fn poll(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        self.start.get_or_insert(now);
        if self.phase == Phase::Done {
            return;
        }
        self.wake = None;
        let state = stream.state();
        self.read(stream, log);
        if self.take(now, log) {
            return self.leave(stream, AppEvent::Complete, log);
        }
        self.player.settle(now, log);
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            return self.leave(stream, AppEvent::Complete, log);
        }
        match state {
            StreamState::Connecting => {}
            StreamState::Open => {
                if self.phase == Phase::Resting {
                    self.ask(now, log);
                }
                self.requests.write(stream, log);
            }
            StreamState::PeerDone | StreamState::Closed | StreamState::Failed => {
                return self.leave(stream, AppEvent::Failed, log);
            }
        }
        let times = [self.wake, self.player.dry_at(), self.deadline()];
        self.wake = times.into_iter().flatten().min();
    }

    fn wake(&self) -> Option<Time> {
        self.wake
    }

    fn done(&self) -> bool {
        self.phase == Phase::Done
    }
}
