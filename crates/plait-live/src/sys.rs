//! The system calls that no library offers as safe functions. All unsafe code of the project is here.

use crate::signals;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Returns all free pages of the heap to the operating system.
#[cfg(target_env = "gnu")]
#[expect(
    unsafe_code,
    reason = "no safe function of a library returns the free pages of glibc's heap"
)]
pub(crate) fn return_free_memory() {
    // SAFETY: `malloc_trim` has no preconditions, and it changes no memory in use.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators return pages by themselves.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn return_free_memory() {}

/// Gives the program of a command the default actions of the signals that this process takes over. They stay blocked
/// in all threads of this process.
#[expect(unsafe_code, reason = "a new process has the signal mask of the thread that starts it")]
pub(crate) fn release_signals(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between `fork` and `execve`. It calls `pthread_sigmask` alone, which is allowed there
    // (async-signal-safe), and it allocates nothing: an error is an error number.
    unsafe { command.pre_exec(|| Ok(signals::taken_over().thread_unblock()?)) }
}

#[cfg(test)]
mod tests {
    use super::release_signals;
    use crate::signals::taken_over;
    use nix::sys::signal::{SigSet, Signal};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::thread;

    /// By SIGTERM, because programs in the background may ignore SIGINT.
    #[test]
    fn a_signal_ends_a_program_whose_parent_takes_signals_over() {
        let parent = thread::spawn(|| {
            taken_over().thread_block().unwrap();
            let kill = || {
                let mut it = Command::new("sh");
                it.args(["-c", "kill -TERM $$; exit 7"]);
                it
            };
            let blocked = kill().status().unwrap();
            let released = release_signals(&mut kill()).status().unwrap();
            (blocked.code(), released.signal(), SigSet::thread_get_mask().unwrap())
        });
        let (blocked, released, mask) = parent.join().unwrap();
        assert_eq!((blocked, released), (Some(7), Some(Signal::SIGTERM as i32)));
        assert!(taken_over().iter().all(|it| mask.contains(it)));
    }
}
