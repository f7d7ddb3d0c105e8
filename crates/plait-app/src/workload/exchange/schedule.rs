//! A client that sends requests at given times, whether or not earlier answers have arrived.

use super::Requests;
use crate::workload::{App, AppEvent, Stream, StreamState};
use plait_base::{DataRange, Dsn, Span, Time};
use std::sync::Arc;

/// One request of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Due {
    /// Time of the request, counted from the establishment of the connection.
    pub at: Span,
    /// Length of the answer in bytes.
    pub bytes: u64,
}

/// Sends requests on a schedule and reads the answers.
#[derive(Debug)]
pub(crate) struct Asking {
    schedule: Arc<[Due]>,
    requests: Requests,
    /// Time at which the connection was established.
    opened: Option<Time>,
    /// Number of requests made.
    made: usize,
    /// Position after the last requested answer.
    asked: Dsn,
    /// Position of the next byte to read.
    position: Dsn,
    done: bool,
}

impl Asking {
    /// Creates a client with this schedule. The times must not decrease.
    pub(crate) fn new(schedule: Arc<[Due]>) -> Asking {
        Asking {
            schedule,
            requests: Requests::default(),
            opened: None,
            made: 0,
            asked: Dsn::ZERO,
            position: Dsn::ZERO,
            done: false,
        }
    }

    /// Makes the requests that are due.
    fn ask(&mut self, now: Time, log: &mut Vec<AppEvent>) {
        let Some(opened) = self.opened else { return };
        while let Some(next) = self.schedule.get(self.made)
            && opened + next.at <= now
        {
            let id = self.made as u64;
            let data = DataRange::with_len(self.asked, next.bytes);
            log.push(AppEvent::MessageDue { id, data, due: opened + next.at });
            self.requests.push(id, next.bytes);
            self.asked = data.end;
            self.made += 1;
        }
    }

    fn over(&self) -> bool {
        self.made == self.schedule.len() && self.position == self.asked
    }
}

impl App for Asking {
    fn poll(&mut self, now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        if self.done {
            return;
        }
        let state = stream.state();
        let count = stream.read(u64::MAX);
        if count > 0 {
            let data = DataRange::with_len(self.position, count);
            self.position = data.end;
            log.push(AppEvent::Read { data });
        }
        if state == StreamState::Open {
            self.opened.get_or_insert(now);
            self.ask(now, log);
            self.requests.write(stream, log);
        }
        let gone = matches!(state, StreamState::PeerDone | StreamState::Closed);
        if self.opened.is_some() && self.over() {
            stream.finish();
            self.done = true;
            log.push(AppEvent::Complete);
        } else if gone || state == StreamState::Failed {
            self.done = true;
            log.push(AppEvent::Failed);
        }
    }

    fn wake(&self) -> Option<Time> {
        let next = self.schedule.get(self.made).filter(|_| !self.done)?;
        Some(self.opened? + next.at)
    }

    fn done(&self) -> bool {
        self.done
    }
}
