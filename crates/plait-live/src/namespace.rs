use crate::sys;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// A network namespace. The kernel keeps it while a file descriptor, a process or a socket refers to it.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

impl Namespace {
    /// Creates a namespace. Its only device is a loopback device that is down.
    ///
    /// # Errors
    /// If the process may not create one.
    pub fn create() -> io::Result<Namespace> {
        let made = thread::spawn(|| -> io::Result<Namespace> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Namespace::current()
        });
        made.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    /// If `/proc` is not mounted.
    pub fn current() -> io::Result<Namespace> {
        Namespace::open(Path::new(OWN))
    }

    /// Opens the namespace of a file: one of `/run/netns`, or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Namespace> {
        Ok(Namespace { file: File::open(path)? })
    }

    /// Returns a second handle to the same namespace.
    ///
    /// # Errors
    /// If the process has no file descriptor left.
    pub fn try_clone(&self) -> io::Result<Namespace> {
        Ok(Namespace { file: self.file.try_clone()? })
    }

    /// Returns the file of the namespace as a stream of a new process.
    ///
    /// # Errors
    /// If the process has no file descriptor left.
    pub(crate) fn to_stdio(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }

    /// Returns the path by which other programs can open the namespace while this value exists.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// Moves the calling thread into the namespace. Its later processes and sockets are in it too.
    ///
    /// # Errors
    /// If the process may not enter it.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.file, CloneFlags::CLONE_NEWNET)?)
    }

    /// Starts a program in the namespace. Signals have their default actions in it, even if this process takes them
    /// over.
    ///
    /// # Errors
    /// If the process may not enter the namespace, or if the program cannot be started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let command = sys::release_signals(command);
        self.within(|| command.spawn())?
    }

    /// Runs `f` on a new thread in the namespace and returns its result.
    ///
    /// # Errors
    /// If the process may not enter it.
    pub fn within<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let thread = scope.spawn(|| self.enter().map(|()| f()));
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}
