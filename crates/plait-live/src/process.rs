use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::{Mutex, PoisonError};

/// A child process that other threads may send signals to while one waits for it.
#[derive(Debug)]
pub struct Process {
    pid: Option<Pid>,
    /// `None` once the process was waited for: its number may then belong to another one.
    child: Mutex<Option<Child>>,
}

/// A signal that asks a process to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

impl Process {
    /// Takes a child process.
    #[must_use]
    pub fn new(child: Child) -> Process {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Process { pid, child: Mutex::new(Some(child)) }
    }

    /// Sends a signal, unless the process has ended.
    pub fn end(&self, by: End) {
        let signal = match by {
            End::Interrupt => Signal::INT,
            End::Terminate => Signal::TERM,
            End::Kill => Signal::KILL,
        };
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(_), Some(pid)) = (child.as_ref(), self.pid) {
            // It may have ended already.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until the process has ended, and returns its exit code. If a signal has ended it, returns 128 and the
    /// number of the signal.
    ///
    /// # Errors
    /// If another thread has waited for it.
    pub fn wait(&self) -> io::Result<u8> {
        let pid = self.pid.ok_or(io::ErrorKind::NotFound)?;
        // The process keeps its number until the lock is held.
        while let Err(error) =
            waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        let status = child.ok_or(io::ErrorKind::NotFound)?.wait()?;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Ok(u8::try_from(code.unwrap_or(0)).unwrap_or(u8::MAX))
    }
}
