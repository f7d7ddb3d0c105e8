use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;

/// A request from a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Ctrl-C (SIGINT).
    Interrupt,
    /// Another request to stop (SIGTERM, SIGHUP).
    Terminate,
}

/// Receives SIGINT, SIGTERM and SIGHUP by a file descriptor, in place of their default actions.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
}

/// Returns the signals that a process takes over.
pub(crate) fn taken_over() -> SigSet {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        set.add(signal);
    }
    set
}

impl Signals {
    /// Blocks the signals for the calling thread and the threads that it starts later. No other thread may
    /// be running.
    ///
    /// # Errors
    /// If the process has no file descriptor left.
    pub fn take_over() -> io::Result<Signals> {
        let set = taken_over();
        set.thread_block()?;
        Ok(Signals { fd: SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)? })
    }

    /// Waits for the next signal.
    ///
    /// # Errors
    /// If reading the file descriptor fails.
    pub fn wait(&self) -> io::Result<Wish> {
        self.wait_for_sender().map(|(wish, _)| wish)
    }

    /// Waits for the next signal. Returns true with it if a process has sent it, and false if the terminal has:
    /// then all processes of the group have it.
    ///
    /// # Errors
    /// If reading the file descriptor fails.
    pub fn wait_for_sender(&self) -> io::Result<(Wish, bool)> {
        loop {
            if let Some(info) = self.fd.read_signal()? {
                let interrupt = info.ssi_signo == Signal::SIGINT as u32;
                let wish = if interrupt { Wish::Interrupt } else { Wish::Terminate };
                // Codes of the kernel are positive (`include/uapi/asm-generic/siginfo.h`).
                return Ok((wish, info.ssi_code <= 0));
            }
        }
    }
}
