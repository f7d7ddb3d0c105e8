//! The command of `plait shell`.

use plait_live::{End, Process, Signals, Wish};
use std::io;
use std::process::Child;
use std::sync::Arc;
use std::thread;

/// Waits until the command has ended, and returns its exit code, or 128 and the number of the signal that ended it.
///
/// Signals of other processes are passed on, and the second one ends the command. Ctrl-C reaches the command from
/// the terminal.
pub(super) fn wait(child: Child, signals: Signals) -> io::Result<u8> {
    let command = Arc::new(Process::new(child));
    let other = command.clone();
    thread::spawn(move || {
        let mut earlier = 0;
        while let Ok((wish, by_process)) = signals.wait_for_sender() {
            if !by_process {
                continue;
            }
            other.end(match wish {
                _ if earlier > 0 => End::Kill,
                Wish::Interrupt => End::Interrupt,
                Wish::Terminate => End::Terminate,
            });
            earlier += 1;
        }
    });
    command.wait()
}
