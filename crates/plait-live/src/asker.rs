//! Questions to a running server from other threads, and what wakes it.

use plait_engine::Overview;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::time::Duration;

/// What is written to a server's waker.
pub(crate) const STOP: u8 = 0;
pub(crate) const ASK: u8 = 1;

/// How long an answer is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks a running server how it stands, from any thread.
#[derive(Clone, Debug)]
pub struct Asker {
    questions: Sender<SyncSender<Overview>>,
    waker: Arc<UnixStream>,
}

impl Asker {
    /// How it stands; `None` where it does not run any more.
    #[must_use]
    pub fn ask(&self) -> Option<Overview> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.questions.send(answer).ok()?;
        (&*self.waker).write_all(&[ASK]).ok()?;
        answered.recv_timeout(ANSWER_TIMEOUT).ok()
    }
}

/// Questions that wait for an answer.
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

    /// Answers all of them; who does not wait any more gets none.
    pub(crate) fn answer(&self, overview: impl Fn() -> Overview) {
        for answer in self.asked.try_iter() {
            let _ = answer.try_send(overview());
        }
    }
}
