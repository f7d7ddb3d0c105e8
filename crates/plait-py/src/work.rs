//! A task on a thread of its own, while the calling thread looks for signals and reports progress.

use crate::Error;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Time between two looks for signals.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The state that a task shares with the thread that waits for it.
#[derive(Default)]
pub(crate) struct Shared {
    /// True if the result is no longer wanted.
    pub(crate) cancelled: AtomicBool,
    done: AtomicUsize,
    total: AtomicUsize,
}

impl Shared {
    /// Records that `done` of `total` parts are finished.
    pub(crate) fn advance(&self, done: usize, total: usize) {
        self.total.store(total, Ordering::Relaxed);
        self.done.fetch_max(done, Ordering::Relaxed);
    }

    fn progress(&self) -> (usize, usize) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}

/// Runs `task` on another thread and returns its result. The calling thread gives up the interpreter's lock. Every
/// 50 ms it calls the handlers of pending signals, and `progress` with the number of finished parts and their
/// total.
///
/// # Errors
/// If a handler or `progress` raises an exception, it is returned at once, and the task is cancelled.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    task: impl FnOnce(&Shared) -> T + Send + 'static,
) -> PyResult<T> {
    let shared = Arc::new(Shared::default());
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let for_task = Arc::clone(&shared);
    let started = thread::Builder::new().name("plait".to_owned()).spawn(move || {
        // If the caller was interrupted, the result is not wanted.
        let _ = sender.send(task(&for_task));
    });
    started.map_err(|error| Error::new_err(format!("a thread cannot be started: {error}")))?;
    let mut told = 0;
    loop {
        let waiting = &mut receiver;
        let ended = match py.detach(move || waiting.recv_timeout(BETWEEN_LOOKS)) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let text = "internal error, please report it: the task has panicked";
                return Err(Error::new_err(text));
            }
        };
        let (done, total) = shared.progress();
        let looked = py.check_signals().and_then(|()| match progress {
            Some(progress) if done > told => progress.call1((done, total)).map(drop),
            _ => Ok(()),
        });
        told = done;
        match (looked, ended) {
            (Ok(()), Some(result)) => return Ok(result),
            (Ok(()), None) => {}
            (Err(error), _) => {
                shared.cancelled.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    }
}
