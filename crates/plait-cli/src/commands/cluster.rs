//! `--cluster`: the Python package makes the runs of an experiment on a Dask cluster. They are then in the cache.

use crate::failure::Failure;
use crate::invocation::interpreter;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The runs that are wanted.
pub(super) struct Wanted<'a> {
    pub(super) experiment: &'a str,
    pub(super) seed: u64,
    pub(super) quick: bool,
}

/// Makes the runs that the cache lacks on the cluster at `address`.
pub(super) fn make(address: &str, wanted: &Wanted<'_>, cache: &Path) -> Result<(), Failure> {
    check_package()?;
    let seed = wanted.seed.to_string();
    let mut command = Command::new(interpreter());
    command.args(["-m", "plait.cluster", "--runs-only"]);
    let program = plait_report::program();
    let flags = [
        ("--cluster", OsStr::new(address)),
        ("--experiment", OsStr::new(wanted.experiment)),
        ("--seed", OsStr::new(&seed)),
        ("--cache", cache.as_os_str()),
        ("--program", OsStr::new(&program)),
    ];
    for (flag, value) in flags {
        let mut word = OsStr::new(flag).to_owned();
        word.push("=");
        word.push(value);
        command.arg(word);
    }
    command.args(wanted.quick.then_some("--quick"));
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = ended.map_err(|error| missing(&plait_lab::unreadable(&error)))?;
    let text = || "--cluster: the Python package made no further runs".to_owned();
    match status.code() {
        Some(0) => Ok(()),
        Some(2) => Err(Failure::Usage(text())),
        Some(130) | None => Err(Failure::Interrupted),
        Some(_) => Err(Failure::Peer(text())),
    }
}

/// Fails if Python or the package is missing.
fn check_package() -> Result<(), Failure> {
    let mut command = Command::new(interpreter());
    command.args(["-c", "import plait.cluster"]);
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(missing("it has no package plait.cluster")),
        Err(error) => Err(missing(&plait_lab::unreadable(&error))),
    }
}

fn missing(problem: &str) -> Failure {
    let install = "pip install 'plait[cluster]', or the wheel of `make wheel`";
    let python = interpreter();
    Failure::Usage(format!("--cluster: `{}`: {problem}\n  install it: {install}", python.display()))
}
