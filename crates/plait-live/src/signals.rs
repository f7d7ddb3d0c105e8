use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;

/// What somebody wants of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Ctrl-C (SIGINT).
    Interrupt,
    /// Another end in order (SIGTERM, SIGHUP).
    Terminate,
}

/// SIGINT, SIGTERM and SIGHUP as something to wait for, in place of what they do otherwise.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
}

impl Signals {
    /// Takes them over, for the calling thread and those that it starts later; so no other thread may
    /// be running.
    ///
    /// # Errors
    /// Where the process has no file descriptor left.
    pub fn take_over() -> io::Result<Signals> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block()?;
        Ok(Signals { fd: SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)? })
    }

    /// Waits for the next one.
    ///
    /// # Errors
    /// What reading its file descriptor gives.
    pub fn wait(&self) -> io::Result<Wish> {
        loop {
            if let Some(info) = self.fd.read_signal()? {
                let interrupt = info.ssi_signo == Signal::SIGINT as u32;
                return Ok(if interrupt { Wish::Interrupt } else { Wish::Terminate });
            }
        }
    }
}
