//! The real-time class of the kernel's scheduler of threads.

use std::process::{Command, Stdio};

/// Moves the calling thread into the real-time class (SCHED_FIFO) with this priority, from 1 to 99. Threads and
/// programs that it starts later inherit the class. Returns false if the process may not do so, or if there is
/// no program `chrt` (util-linux).
#[must_use]
pub fn enter_realtime(priority: u8) -> bool {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let mut chrt = Command::new("chrt");
    chrt.args(["-f", "-p", &priority.to_string(), &thread]);
    chrt.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    chrt.status().is_ok_and(|status| status.success())
}
