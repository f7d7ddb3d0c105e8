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

/// Bytes of lines that wait to be written. Further lines are dropped and counted.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// A buffer with more room than this gives it back.
const KEPT_BYTES: usize = 64 << 10;
/// How long the end of the program waits for lines to be written.
const LAST_WAIT: Duration = Duration::from_secs(1);

static LOG: OnceLock<Log> = OnceLock::new();

/// From now on a thread writes the lines of [`line()`]. Call it after signals are taken over and privileges are
/// given up: both concern the threads that are there.
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

/// Takes a line. False if [`start`] was not called.
pub(crate) fn line(text: &dyn Display) -> bool {
    LOG.get().map(|log| log.add(text, MAX_WAITING_BYTES)).is_some()
}

/// Waits until all lines are written, for a second at most.
pub(crate) fn finish() {
    if let Some(log) = LOG.get() {
        let state = log.state();
        let unwritten = |state: &mut Waiting| state.writing || !state.text.is_empty();
        drop(log.written.wait_timeout_while(state, LAST_WAIT, unwritten));
    }
}

/// Lines that wait to be written.
#[derive(Default)]
struct Waiting {
    text: String,
    /// Lines that found no room since `text` was last taken.
    dropped: u64,
    /// Lines that were taken are not written yet.
    writing: bool,
}

impl Waiting {
    /// Exchanges the lines for an empty buffer. The last line tells how many were dropped after them.
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
    /// There is a line to write.
    added: Condvar,
    /// Lines were written.
    written: Condvar,
}

impl Log {
    fn state(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line, if with it no more than `most` bytes wait.
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

    /// Writes lines as they come. If nobody reads them any more, they are lost.
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
            // Nine bytes each.
            log.add(&format_args!("line {number:03}"), 30);
        }
        // A shorter one, which would fit, does not overtake those that were dropped.
        log.add(&"x", 30);
        log.state().take(&mut text);
        assert_eq!(text, "line 000\nline 001\nline 002\nevent=lines-dropped count=8\n");
        log.add(&"line 011", 30);
        log.state().take(&mut text);
        assert_eq!(text, "line 011\n");
    }
}
