//! Sets `PLAIT_COMMIT`, the commit of this build; `unknown` outside a git repository.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=PLAIT_COMMIT");
    // A linked worktree has its log elsewhere, so git must name it.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).map(PathBuf::from);
    let log = log.filter(|it| it.exists()).unwrap_or_else(|| PathBuf::from("build.rs"));
    println!("cargo::rerun-if-changed={}", log.display());
    let from_git = || git(&["rev-parse", "--short=12", "HEAD"]);
    let commit = std::env::var("PLAIT_COMMIT").ok().or_else(from_git);
    println!("cargo::rustc-env=PLAIT_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// Returns the answer of a command of git.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
