//! The origin of results: date, version, commit and machine.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

static STAMP: OnceLock<String> = OnceLock::new();

/// Returns date, version, commit, kernel, machine and build. Call it when the program starts, because the
/// sources may change before the results are written.
pub fn stamp() -> &'static str {
    STAMP.get_or_init(made)
}

fn made() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let build = if cfg!(debug_assertions) { "test" } else { "release" };
    format!(
        "{}, plait {} ({}), Linux {}, {} ({cores} cores), {build} build",
        said("date", &["-u", "+%F"]),
        env!("CARGO_PKG_VERSION"),
        commit(),
        said("uname", &["-r"]),
        model.unwrap_or("?"),
    )
}

/// Returns the commit of the sources, and whether they have been changed since. Results do not count as
/// sources.
fn commit() -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = sources.to_string_lossy().into_owned();
    let git = |args: &[&str]| said("git", &[&["-C", &sources], args].concat());
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changed = git(&["status", "--porcelain", "--", "crates", "Cargo.toml", "Cargo.lock"]);
    if changed.is_empty() || commit == "?" { commit } else { format!("{commit} with changes") }
}

/// Returns the first line of a command's output, or a question mark if the command cannot be run.
fn said(command: &str, args: &[&str]) -> String {
    match Command::new(command).args(args).output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            text.lines().next().unwrap_or_default().to_owned()
        }
        _ => "?".to_owned(),
    }
}
