//! State requests from other threads to a running server.

use plait_engine::Overview;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::time::Duration;

/// The bytes that other threads write to the waker of a server.
pub(crate) const STOP: u8 = 0;
pub(crate) const ASK: u8 = 1;

/// Longest wait for an answer. After it, [`Asker::ask`] returns `None`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests the state of a running server from any thread.
#[derive(Clone, Debug)]
pub struct Asker {
    questions: Sender<SyncSender<Overview>>,
    waker: Arc<UnixStream>,
}

impl Asker {
    /// Returns the state of the server. Returns `None` if it does not answer within 5 s or no longer runs.
    #[must_use]
    pub fn ask(&self) -> Option<Overview> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.questions.send(answer).ok()?;
        (&*self.waker).write_all(&[ASK]).ok()?;
        answered.recv_timeout(ANSWER_TIMEOUT).ok()
    }
}

/// Pending state requests.
#[derive(Debug)]
pub(crate) struct Questions {
    asker: Asker,
    asked: Receiver<SyncSender<Overview>>,
}

impl Questions {
    pub(crate) fn new(waker: UnixStream) -> Questions {
        let (questions, asked) = mpsc::channel();
        Questions { asker: Asker { questions, waker: Arc::new(waker) }, asked }
    }

    pub(crate) fn asker(&self) -> Asker {
        self.asker.clone()
    }

    /// Answers all pending requests. Skips a request if its thread no longer waits.
    pub(crate) fn answer(&self, overview: impl Fn() -> Overview) {
        for answer in self.asked.try_iter() {
            let _ = answer.try_send(overview());
        }
    }
}
