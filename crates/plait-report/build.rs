//! Sets `PLAIT_COMMIT`, the commit of this build; `unknown` outside a git repository.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=PLAIT_COMMIT");
    let log = Path::new("../../.git/logs/HEAD");
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    } else {
        println!("cargo::rerun-if-changed=build.rs");
    }
    let commit = std::env::var("PLAIT_COMMIT").ok().or_else(from_git);
    println!("cargo::rustc-env=PLAIT_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

fn from_git() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
