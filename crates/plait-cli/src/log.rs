//! The log of a server on stderr. A thread writes it, so that a reader that has stopped reading (a full pipe,
//! a stopped terminal) does not stop the server.

use std::fmt::{Display, Write as _};
use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes of lines in the queue. Further lines are dropped and counted.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// A buffer with a larger capacity is released after use.
const KEPT_BYTES: usize = 64 << 10;
/// Longest wait at exit for queued lines to be written.
const LAST_WAIT: Duration = Duration::from_secs(1);

static LOG: OnceLock<Log> = OnceLock::new();

/// Starts the thread that writes the lines of [`line()`]. Call it after taking over signals and dropping
/// privileges: both affect only threads that already exist.
///
/// # Errors
/// If the process has no file descriptor or no thread left.
pub(crate) fn start() -> io::Result<()> {
    // Not `io::stderr()`: its lock would be held for as long as the reader does not read.
    let out = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    if LOG.set(Log::default()).is_ok() {
        thread::Builder::new().name("log".into()).spawn(|| {
            if let Some(log) = LOG.get() {
                log.write_to(out);
            }
        })?;
    }
    Ok(())
}

/// Queues a line. Returns false if [`start`] was not called.
pub(crate) fn line(text: &dyn Display) -> bool {
    LOG.get().map(|log| log.add(text, MAX_WAITING_BYTES)).is_some()
}

/// Waits until all lines are written, for at most 1 second.
pub(crate) fn finish() {
    if let Some(log) = LOG.get() {
        let state = log.state();
        let unwritten = |state: &mut Waiting| state.writing || !state.text.is_empty();
        drop(log.written.wait_timeout_while(state, LAST_WAIT, unwritten));
    }
}

/// Queue of lines.
#[derive(Default)]
struct Waiting {
    text: String,
    /// Lines dropped since `text` was last taken.
    dropped: u64,
    /// True while lines that were taken are not yet written.
    writing: bool,
}

impl Waiting {
    /// Swaps the lines for an empty buffer. The last line says how many later lines were dropped.
    fn take(&mut self, into: &mut String) {
        into.clear();
        into.shrink_to(KEPT_BYTES);
        mem::swap(&mut self.text, into);
        let dropped = mem::take(&mut self.dropped);
        if dropped > 0 {
            let _ = writeln!(into, "event=lines-dropped count={dropped}");
        }
        self.writing = true;
    }
}

#[derive(Default)]
struct Log {
    waiting: Mutex<Waiting>,
    /// Signals that there is a line to write.
    added: Condvar,
    /// Signals that lines were written.
    written: Condvar,
}

impl Log {
    fn state(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line if the queue then holds at most `most` bytes.
    fn add(&self, text: &dyn Display, most: usize) {
        let mut state = self.state();
        let len = state.text.len();
        if state.dropped == 0 {
            let _ = writeln!(state.text, "{text}");
        }
        if state.dropped > 0 || state.text.len() > most {
            state.text.truncate(len);
            state.dropped += 1;
        }
        self.added.notify_one();
    }

    /// Writes queued lines. Lines are lost if stderr is closed.
    fn write_to(&self, mut out: impl Write) {
        let mut text = String::new();
        loop {
            let state = self.state();
            let waits = |state: &mut Waiting| state.text.is_empty();
            let mut state =
                self.added.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
            state.take(&mut text);
            drop(state);
            let _ = out.write_all(text.as_bytes());
            self.state().writing = false;
            self.written.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_limit_are_dropped_and_counted() {
        let (log, mut text) = (Log::default(), String::new());
        for number in 0..10 {
            // Each line has nine bytes.
            log.add(&format_args!("line {number:03}"), 30);
        }
        // After a drop, a shorter line that would fit is dropped too, so that lines keep their order.
        log.add(&"x", 30);
        log.state().take(&mut text);
        assert_eq!(text, "line 000\nline 001\nline 002\nevent=lines-dropped count=8\n");
        log.add(&"line 011", 30);
        log.state().take(&mut text);
        assert_eq!(text, "line 011\n");
    }
}
