//! The end that answers.

use super::request::{Found, Incoming};
use crate::workload::{App, AppEvent, Stream, StreamState};
use plait_base::Time;
use std::collections::VecDeque;

/// Answers requests in order until the client has finished.
#[derive(Default, Debug)]
pub(crate) struct Server {
    incoming: Incoming,
    /// Answers not yet fully written: the id, and the bytes left.
    answers: VecDeque<(u64, u64)>,
    done: bool,
}

impl Server {
    fn fail(&mut self, log: &mut Vec<AppEvent>) {
        self.done = true;
        log.push(AppEvent::Failed);
    }

    fn write(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        while let Some((id, left)) = self.answers.front_mut() {
            *left -= stream.write(*left).min(*left);
            if *left > 0 {
                return;
            }
            log.push(AppEvent::MessageWritten { id: *id });
            self.answers.pop_front();
        }
    }
}

impl App for Server {
    fn poll(&mut self, _now: Time, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        if self.done {
            return;
        }
        if stream.state() == StreamState::Failed {
            return self.fail(log);
        }
        loop {
            match self.incoming.read(stream) {
                Found::Nothing => break,
                Found::Request(id, bytes) => {
                    log.push(AppEvent::RequestRead);
                    self.answers.push_back((id, bytes));
                }
                Found::Garbage => {
                    stream.finish();
                    return self.fail(log);
                }
            }
        }
        match stream.state() {
            StreamState::Open => self.write(stream, log),
            // A client that leaves has all the data it needs, so pending answers are dropped.
            StreamState::PeerDone | StreamState::Closed => {
                stream.finish();
                if self.incoming.begun() {
                    return self.fail(log);
                }
                self.done = true;
                log.push(AppEvent::Complete);
            }
            StreamState::Connecting | StreamState::Failed => {}
        }
    }

    fn wake(&self) -> Option<Time> {
        None
    }

    fn done(&self) -> bool {
        self.done
    }
}
