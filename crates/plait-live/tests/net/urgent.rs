//! Runs whose times count. On a machine that is busy with other things they would measure how long
//! programs wait for a core; so for as long as they last, they go before all others.

use super::until;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Priorities of the real-time class: of all that the test starts, and of emulators, which nothing is
/// to hold up.
const ALL: &str = "10";
const EMULATOR: &str = "20";

static ON: AtomicBool = AtomicBool::new(false);

/// While it lives, this program and what it starts are of the real-time class, where the machine
/// allows that. Where it does not, the lateness of the emulator tells whether times count.
pub struct Urgent;

impl Urgent {
    /// Of tests that come one after the other.
    pub fn start() -> Urgent {
        ON.store(set(&["-a", "-f", "-p", ALL], &own()), Ordering::Relaxed);
        Urgent
    }
}

impl Urgent {
    /// Whether the machine has allowed it.
    pub fn holds(&self) -> bool {
        ON.load(Ordering::Relaxed)
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if ON.swap(false, Ordering::Relaxed) {
            set(&["-a", "-o", "-p", "0"], &own());
        }
    }
}

/// The emulators of this program go before what they hand packets to.
pub fn raise_emulators() {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    // A thread has its name once it runs.
    until("an emulator", || {
        let mut found = false;
        for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            if name.trim() == "emulator" {
                found = true;
                set(&["-f", "-p", EMULATOR], &task.file_name().to_string_lossy());
            }
        }
        found
    });
}

fn own() -> String {
    std::process::id().to_string()
}

/// Runs `chrt` of util-linux; whether it did what it was told.
fn set(args: &[&str], whom: &str) -> bool {
    let mut chrt = Command::new("chrt");
    chrt.args(args).arg(whom).stdout(Stdio::null()).stderr(Stdio::null());
    chrt.status().is_ok_and(|status| status.success())
}
