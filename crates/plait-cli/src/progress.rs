//! Progress on a terminal, and Ctrl-C.

use crate::console::Console;
use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};

static CANCELLED: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C asks for an early end, and the second ends the program.
pub(crate) fn on_interrupt() -> Result<&'static AtomicBool, Failure> {
    let handler = || {
        if CANCELLED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Failure::Interrupted.code()));
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::Internal(error.to_string()))?;
    Ok(&CANCELLED)
}

/// A bar of runs, invisible where stderr is no terminal.
pub(crate) fn bar(console: Console) -> ProgressBar {
    if !console.animate {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    let template = "{bar:40} {pos} of {len} runs, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
    }
    bar
}
