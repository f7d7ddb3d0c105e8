//! Real-time priority for timed runs. On a busy machine, they would otherwise measure how long programs
//! wait for a core.

use super::until;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Real-time priorities of the processes that the test starts, and of emulators, which nothing may delay.
const ALL: &str = "10";
const EMULATOR: &str = "20";

static ON: AtomicBool = AtomicBool::new(false);

/// Gives this program and its children real-time priority until it is dropped, if the machine allows it.
/// If not, the lateness of the emulator decides whether times are valid.
pub struct Urgent;

impl Urgent {
    /// Raises the priority. Only one test may run at a time.
    pub fn start() -> Urgent {
        ON.store(set(&["-a", "-f", "-p", ALL], &own()), Ordering::Relaxed);
        Urgent
    }
}

impl Urgent {
    /// Returns whether the machine allowed the priority.
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

/// Raises the emulators of this program above the receivers of their packets.
pub fn raise_emulators() {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    // A thread has its name only when it runs.
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

/// Runs `chrt` of util-linux and returns whether it succeeded.
fn set(args: &[&str], whom: &str) -> bool {
    let mut chrt = Command::new("chrt");
    chrt.args(args).arg(whom).stdout(Stdio::null()).stderr(Stdio::null());
    chrt.status().is_ok_and(|status| status.success())
}
