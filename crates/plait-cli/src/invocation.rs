//! How this process was started: its arguments, and the program that it is part of.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A process of another program that performs a command of `plait`, such as the interpreter of Python.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The arguments, from `plait` on.
    pub arguments: Vec<OsString>,
    /// The interpreter of Python that runs this process.
    pub interpreter: PathBuf,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Sets the host of this process. A later call has no effect.
pub(crate) fn set(host: Host) {
    let _ = HOST.set(host);
}

/// Returns the arguments, from the name of the program on.
pub(crate) fn arguments() -> Vec<OsString> {
    HOST.get().map_or_else(|| std::env::args_os().collect(), |host| host.arguments.clone())
}

/// Returns the arguments as text.
pub(crate) fn words() -> Vec<String> {
    arguments().iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns the interpreter of Python: the one of this process, or else the one of the user.
pub(crate) fn interpreter() -> PathBuf {
    HOST.get().map_or_else(|| PathBuf::from("python3"), |host| host.interpreter.clone())
}

/// Returns the file that can have capabilities. It is `None` for a host: its file runs other programs too.
#[cfg(live)]
pub(crate) fn own_executable() -> Option<PathBuf> {
    if HOST.get().is_some() {
        return None;
    }
    std::env::current_exe().ok()
}
