//! `--top`: shows connections and their paths, once a second.

use crate::console::Console;
use plait_live::{Asker, Overview};
use plait_report::top::frame;
use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::Duration;

const PERIOD: Duration = Duration::from_secs(1);
/// Largest number of subflow lines if the height of the terminal is unknown. Subflows with the most traffic
/// come first.
const LINES: usize = 40;
/// Clears a terminal and moves the cursor to its corner.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the server on stdout, on its own thread, until the server ends.
#[expect(clippy::disallowed_methods, reason = "what is watched goes on in real time")]
pub(super) fn show(asker: Asker, console: Console) {
    let terminal = console.animate && io::stdout().is_terminal();
    let clear = if terminal { CLEAR } else { "" };
    thread::spawn(move || {
        let mut before = Overview::default();
        while let Some(now) = asker.ask() {
            // The size of the window may change at any time.
            let size = terminal_size::terminal_size().filter(|_| terminal);
            let (width, lines) = size.map_or((console.width, LINES), |(width, height)| {
                // The head has two lines. A count and an empty line may follow.
                (usize::from(width.0), usize::from(height.0).saturating_sub(4).max(1))
            });
            let frame = frame(&before, &now, width, lines);
            if write!(io::stdout().lock(), "{clear}{frame}").is_err() {
                break;
            }
            before = now;
            thread::sleep(PERIOD);
        }
    });
}
