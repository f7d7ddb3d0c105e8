use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

/// A network namespace. It lives for as long as somebody holds it, or has a socket or device in it.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

/// That of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

impl Namespace {
    /// A new namespace without any device but a loopback that is down.
    ///
    /// # Errors
    /// Where the process may not make one.
    pub fn create() -> io::Result<Namespace> {
        let made = thread::spawn(|| -> io::Result<Namespace> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Namespace::current()
        });
        made.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// Where `/proc` is not there.
    pub fn current() -> io::Result<Namespace> {
        Namespace::open(Path::new(OWN))
    }

    /// The namespace that a file names: one of `/run/netns` or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// Where the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Namespace> {
        Ok(Namespace { file: File::open(path)? })
    }

    /// The same namespace once more.
    ///
    /// # Errors
    /// Where the process has no file descriptor left.
    pub fn try_clone(&self) -> io::Result<Namespace> {
        Ok(Namespace { file: self.file.try_clone()? })
    }

    /// Moves the calling thread there. Processes that it starts and sockets that it opens are there
    /// from then on.
    ///
    /// # Errors
    /// Where the process may not enter it.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.file, CloneFlags::CLONE_NEWNET)?)
    }

    /// What `f` gives on a thread that is there.
    ///
    /// # Errors
    /// Where the process may not enter it.
    pub fn within<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let thread = scope.spawn(|| self.enter().map(|()| f()));
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}
