//! The command of `plait shell`.

use plait_live::{Cleaner, End, Process, Signals, Wish};
use std::io;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A program that handles a signal writes its result after it, and then ends with a code of its own.
const GRACE: Duration = Duration::from_millis(500);

/// Waits until the command and then all other programs have ended. Returns the command's exit code, or 128 and the
/// number of the signal that ended it.
///
/// A signal of another process is passed on to the command, and so is the end of the terminal. The command may end
/// by itself within `GRACE`; after that `cleaner` begins. A second signal ends the command. Ctrl-C reaches the
/// command from the terminal and ends nothing else.
pub(super) fn wait(child: Child, signals: Signals, cleaner: Cleaner) -> io::Result<u8> {
    let command = Arc::new(Process::new(child));
    let cleaner = Arc::new(Mutex::new(Some(cleaner)));
    let (other, ending) = (command.clone(), cleaner.clone());
    thread::spawn(move || {
        let mut earlier = 0;
        while let Ok((wish, by_process)) = signals.wait_for_sender() {
            if !by_process && wish == Wish::Interrupt {
                continue;
            }
            other.end(match wish {
                _ if earlier > 0 => End::Kill,
                Wish::Interrupt => End::Interrupt,
                Wish::Terminate => End::Terminate,
            });
            let late = ending.clone();
            thread::spawn(move || begin_late(&late));
            earlier += 1;
        }
    });
    let code = command.wait();
    let cleaner = locked(&cleaner).take();
    drop(cleaner);
    code
}

/// Begins to end all programs, unless the command has ended within `GRACE`.
#[expect(clippy::disallowed_methods, reason = "the command ends in real time")]
fn begin_late(cleaner: &Mutex<Option<Cleaner>>) {
    thread::sleep(GRACE);
    locked(cleaner).as_mut().map(Cleaner::begin);
}

fn locked(cleaner: &Mutex<Option<Cleaner>>) -> std::sync::MutexGuard<'_, Option<Cleaner>> {
    cleaner.lock().unwrap_or_else(PoisonError::into_inner)
}
