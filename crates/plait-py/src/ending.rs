//! The end of the interpreter, which no thread of a call may meet.
//!
//! A thread that waits for the interpreter's lock while the interpreter ends is ended in the middle of Rust code, and the process may
//! crash. So a thread asks here before it takes the lock. At its end, the interpreter calls [`end_calls`]: from then on every
//! thread is refused, and the interpreter goes on as soon as those that are inside have left.

use pyo3::exceptions::{PyRuntimeError, PySystemExit};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// True if the interpreter ends. It is set by a thread that holds the interpreter's lock.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Number of times that threads are inside the interpreter, or wait for its lock.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// The threads whose state the interpreter keeps, with its numbers of them.
static KEPT: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Time between two looks at the threads that are inside.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// Looks before the threads that are still inside are interrupted: half a second.
const MAX_LOOKS: u32 = 100;
/// Looks after each interruption: a tenth of a second.
const LOOKS_AFTER_INTERRUPTION: u32 = 20;
/// Interruptions of each thread: they take one and a half seconds.
const MAX_INTERRUPTIONS: u32 = 15;

/// A thread that may be inside the interpreter. The interpreter does not end meanwhile.
struct Inside(());

impl Inside {
    /// Returns `None` if the interpreter ends.
    fn enter() -> Option<Inside> {
        // Whoever sets the flag looks at the number afterwards. So either this thread sees the flag, or it is counted.
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(());
        (!ENDING.load(Ordering::SeqCst)).then_some(inside)
    }

    /// Stops this thread for good if the interpreter ends, because its caller would take the lock.
    fn enter_again() -> Inside {
        Inside::enter().unwrap_or_else(|| {
            loop {
                thread::park();
            }
        })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Fails if the interpreter ends.
pub(crate) fn refuse() -> PyResult<()> {
    match ENDING.load(Ordering::SeqCst) {
        true => Err(PyRuntimeError::new_err("plait: the interpreter ends")),
        false => Ok(()),
    }
}

/// Calls `work` with the interpreter's lock. Returns `None` if the interpreter ends.
pub(crate) fn attached<R>(work: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    let _inside = Inside::enter()?;
    Python::try_attach(work)
}

/// Calls `work` without the interpreter's lock. If the interpreter ends meanwhile, the thread stops and this never returns.
///
/// # Errors
/// Fails if the interpreter ends already.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    refuse()?;
    Ok(waiting(py, work))
}

/// As [`detached`], in the middle of a call: an interpreter that ends already stops the thread too.
pub(crate) fn waiting<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    let (result, _inside) = py.detach(|| {
        let result = work();
        (result, Inside::enter_again())
    });
    result
}

/// Calls code in Python in the middle of a call. The interpreter does not end meanwhile.
pub(crate) fn calling<R>(py: Python<'_>, code: impl FnOnce() -> R) -> R {
    let _inside = Inside::enter().unwrap_or_else(|| py.detach(Inside::enter_again));
    code()
}

/// The number of a thread in [`KEPT`].
struct Kept(u64);

impl Kept {
    fn of_this_thread(py: Python<'_>) -> PyResult<Kept> {
        let number = py.import("_thread")?.call_method0("get_ident")?.extract()?;
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        Ok(Kept(number))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().position(|number| *number == self.0) {
            all.swap_remove(at);
        }
    }
}

/// Calls `part` without the interpreter's lock. The interpreter keeps its state of this thread meanwhile.
pub(crate) fn with_thread_state<R: Send>(part: impl Fn() -> R + Sync) -> R {
    let Some(inside) = Inside::enter() else { return part() };
    let made = Python::try_attach(|py| {
        // Without its number, the thread is not interrupted.
        let _kept = Kept::of_this_thread(py);
        py.detach(|| {
            drop(inside);
            let result = part();
            (result, Inside::enter_again())
        })
    });
    // The thread is inside until the lock is given up.
    made.map_or_else(&part, |(result, _inside)| result)
}

/// Lets the interpreter call [`end_calls`] at its end.
pub(crate) fn expect(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end_calls = wrap_pyfunction!(end_calls, module)?;
    module.py().import("atexit")?.call_method1("register", (end_calls,)).map(drop)
}

/// Keeps further threads out of the interpreter, and waits until those inside have left. A thread that takes long is interrupted.
/// After two seconds the interpreter ends in spite of it.
#[pyfunction]
fn end_calls(py: Python<'_>) {
    ENDING.store(true, Ordering::SeqCst);
    let mut left = py.detach(|| all_leave(MAX_LOOKS));
    for _ in 0..MAX_INTERRUPTIONS {
        if left {
            return;
        }
        // An interpreter without `ctypes` can only wait.
        let _ = interrupt(py);
        left = py.detach(|| all_leave(LOOKS_AFTER_INTERRUPTION));
    }
}

/// Waits until no thread is inside, without the interpreter's lock. Returns false after some looks.
fn all_leave(looks: u32) -> bool {
    let empty = || INSIDE.load(Ordering::SeqCst) == 0;
    (0..looks).any(|_| {
        let left = empty();
        if !left {
            thread::park_timeout(BETWEEN_LOOKS);
        }
        left
    }) || empty()
}

/// Raises an exception in the code in Python that the threads of [`KEPT`] run. A thread that runs none is never inside again.
fn interrupt(py: Python<'_>) -> PyResult<()> {
    let threads = KEPT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let ctypes = py.import("ctypes")?;
    let functions = ctypes.getattr("pythonapi")?;
    for thread in threads {
        let thread = ctypes.call_method1("c_ulong", (thread,))?;
        let exception = ctypes.call_method1("py_object", (py.get_type::<PySystemExit>(),))?;
        functions.call_method1("PyThreadState_SetAsyncExc", (thread, exception))?;
    }
    Ok(())
}
