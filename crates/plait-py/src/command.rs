//! The command line.

use crate::work::become_command;
use plait_cli::Host;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// Performs a command of `plait` and returns its exit code. `arguments` begin with `plait`; `interpreter` is the
/// one of this process. A process performs only one command.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>, interpreter: PathBuf) -> u8 {
    become_command();
    py.detach(move || plait_cli::main_within(Host { arguments, interpreter }))
}
