//! A task on a thread of its own, while the calling thread looks for signals and reports progress.

use crate::ending::{self, calling, waiting};
use crate::error::Error;
use plait_lab::{Bound as SpeedBound, Cell, RunOutcome, World};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two looks for signals.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The state that a task shares with the thread that waits for it.
#[derive(Default)]
pub(crate) struct Shared {
    /// True if the result is no longer wanted.
    pub(crate) cancelled: AtomicBool,
    done: AtomicUsize,
    total: AtomicUsize,
    /// The first exception of a scheduler in Python.
    failure: Mutex<Option<PyErr>>,
}

thread_local! {
    /// The task of this thread.
    static TASK: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// True if this process is the command `plait`.
static IS_COMMAND: AtomicBool = AtomicBool::new(false);

/// Exit code of the command `plait` after an exception of a scheduler. It is that of an invalid input.
const CODE_OF_EXCEPTION: i32 = 2;

/// Makes an exception of a scheduler end the process.
pub(crate) fn become_command() {
    IS_COMMAND.store(true, Ordering::Relaxed);
}

/// Ends the task of this thread with an exception.
pub(crate) fn failed(py: Python<'_>, error: &PyErr) {
    if IS_COMMAND.load(Ordering::Relaxed) {
        // `print` would end the interpreter if the exception is a SystemExit, on the wrong thread.
        error.display(py);
        std::process::exit(CODE_OF_EXCEPTION);
    }
    let Some(task) = TASK.with_borrow(Option::clone) else {
        // No call of this thread could raise it.
        return error.clone_ref(py).write_unraisable(py, None);
    };
    // Nothing that holds this lock waits for the interpreter.
    let mut first = task.failure.lock().unwrap_or_else(PoisonError::into_inner);
    first.get_or_insert_with(|| error.clone_ref(py));
    task.cancelled.store(true, Ordering::Relaxed);
}

/// Ends the task of this thread, because the interpreter ends.
pub(crate) fn cancel() {
    if let Some(task) = TASK.with_borrow(Option::clone) {
        task.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Runs a call that needs no other thread as a task of its own.
///
/// # Errors
/// Returns the first exception of its schedulers.
pub(crate) fn on_this_thread<R: Send>(call: impl Fn() -> R + Sync) -> PyResult<R> {
    ending::refuse()?;
    let task = Arc::new(Shared::default());
    let result = task.watch(call);
    task.failure().map(|()| result)
}

/// True if a Python class is a scheduler.
static HAS_CLASSES: AtomicBool = AtomicBool::new(false);

/// Prepares later tasks for schedulers that are Python classes.
pub(crate) fn expect_classes() {
    HAS_CLASSES.store(true, Ordering::Relaxed);
}

/// Runs `part`. If classes are schedulers, the interpreter keeps its state of this thread meanwhile. Otherwise it would
/// make a new state for each decision.
fn with_thread_state<R: Send>(part: impl Fn() -> R + Sync) -> R {
    if !HAS_CLASSES.load(Ordering::Relaxed) {
        return part();
    }
    ending::with_thread_state(part)
}

/// A world whose runs belong to a task.
pub(crate) struct Watched<'a, W> {
    pub(crate) world: W,
    pub(crate) task: &'a Arc<Shared>,
}

impl<W: World> World for Watched<'_, W> {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        self.task.watch(|| self.world.run(cell, seed))
    }

    fn run_unless(&self, cell: &Cell, seed: u64, cancelled: &AtomicBool) -> Option<RunOutcome> {
        self.task.watch(|| self.world.run_unless(cell, seed, cancelled))
    }

    fn bound(&self, cell: &Cell, seed: u64) -> Option<SpeedBound> {
        self.world.bound(cell, seed)
    }

    fn keeps_runs(&self) -> bool {
        self.world.keeps_runs()
    }
}

impl Shared {
    /// Records that `done` of `total` parts are finished.
    pub(crate) fn advance(&self, done: usize, total: usize) {
        self.total.store(total, Ordering::Relaxed);
        self.done.fetch_max(done, Ordering::Relaxed);
    }

    /// Runs a part of the task on this thread. Exceptions of its schedulers end the task.
    pub(crate) fn watch<R: Send>(self: &Arc<Shared>, part: impl Fn() -> R + Sync) -> R {
        let before = TASK.replace(Some(Arc::clone(self)));
        let result = with_thread_state(part);
        TASK.set(before);
        result
    }

    /// Takes the first exception of the schedulers of the task.
    pub(crate) fn failure(&self) -> PyResult<()> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
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
/// If a handler, `progress` or a scheduler raises an exception, it is returned at once, and the task is
/// cancelled.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    task: impl Fn(&Arc<Shared>) -> T + Send + Sync + 'static,
) -> PyResult<T> {
    ending::refuse()?;
    let shared = Arc::new(Shared::default());
    let (sender, receiver) = mpsc::sync_channel(1);
    let for_task = Arc::clone(&shared);
    let started = thread::Builder::new().name("plait".to_owned()).spawn(move || {
        // If the caller was interrupted, the result is not wanted.
        let _ = sender.send(for_task.watch(|| task(&for_task)));
    });
    started.map_err(|error| Error::new_err(format!("a thread cannot be started: {error}")))?;
    let result = wait(py, progress, receiver, &shared);
    result.inspect_err(|_| shared.cancelled.store(true, Ordering::Relaxed))
}

/// Waits for the result of a task.
fn wait<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    mut receiver: Receiver<T>,
    shared: &Shared,
) -> PyResult<T> {
    let mut told = 0;
    loop {
        let results = &mut receiver;
        let ended = match waiting(py, move || results.recv_timeout(BETWEEN_LOOKS)) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let text = "internal error, please report it: the task has panicked";
                return Err(Error::new_err(text));
            }
        };
        let (done, total) = shared.progress();
        py.check_signals()?;
        shared.failure()?;
        if let Some(progress) = progress
            && done > told
        {
            calling(py, || progress.call1((done, total)))?;
        }
        told = done;
        if let Some(result) = ended {
            return Ok(result);
        }
    }
}
