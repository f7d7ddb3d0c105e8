//! Progress on a terminal, and Ctrl-C.

use crate::console::{Console, remark};
use crate::failure::Failure;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use plait_app::Workload;
use plait_base::{Span, Time};
use plait_core::Detail;
use plait_sim::{Snapshot, Watch};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Virtual time between two steps of a [`Clock`].
const STEP: Span = Span::from_millis(100);

static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Installs the handler of Ctrl-C. The first Ctrl-C requests an early end, the second exits at once.
pub(crate) fn on_interrupt() -> Result<&'static AtomicBool, Failure> {
    let handler = || {
        if CANCELLED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Failure::Interrupted.code()));
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::Internal(error.to_string()))?;
    Ok(&CANCELLED)
}

/// Progress over many runs. A terminal shows a bar. Otherwise a line is written each minute, so that the log of
/// a long command shows progress.
pub(crate) struct Tally {
    bar: ProgressBar,
    /// Writes lines instead of a bar.
    lines: bool,
    /// Last minute for which a line was written.
    minute: AtomicU64,
}

impl Tally {
    /// Creates a tally that shows nothing yet.
    pub(crate) fn new(console: Console) -> Tally {
        let bar = styled(console, "{bar:40} {pos} of {len} runs{msg}");
        let lines = !console.animate && console.chatter > 0;
        Tally { bar, lines, minute: AtomicU64::new(0) }
    }

    /// Shows that `made` of `all` runs are finished.
    pub(crate) fn tell(&self, made: usize, all: usize) {
        self.bar.set_length(all as u64);
        self.bar.set_position(made as u64);
        let elapsed = self.bar.elapsed();
        let left = estimate(elapsed, made as u64, all as u64);
        self.bar.set_message(left.clone());
        if self.lines && self.is_due(elapsed) {
            remark(&format_args!("plait: {made} of {all} runs{left}"));
        }
    }

    /// Returns true on the first call in each minute after minute 0.
    fn is_due(&self, elapsed: Duration) -> bool {
        let minute = elapsed.as_secs() / 60;
        self.minute.fetch_max(minute, Ordering::Relaxed) < minute
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Elapsed time before which there is no estimate.
const FIRST_ESTIMATE: Duration = Duration::from_secs(2);

/// Share of the work before which there is no estimate: one part in this many.
const FIRST_SHARE: u64 = 50;

/// Returns the estimate of the remaining time, such as `, about 2 minutes left`. The text is empty while too
/// little is `done` of `all` for an estimate. Runs differ in length, so the mean over all runs predicts better
/// than the last run.
fn estimate(elapsed: Duration, done: u64, all: u64) -> String {
    if elapsed < FIRST_ESTIMATE || done == 0 || done.saturating_mul(FIRST_SHARE) < all {
        return String::new();
    }
    let left = elapsed.div_f64(done as f64).mul_f64(all.saturating_sub(done) as f64);
    format!(", about {} left", HumanDuration(left))
}

fn styled(console: Console, template: &str) -> ProgressBar {
    if !console.animate {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
    }
    bar
}

/// Progress of one run in virtual time. It shows a bar if the workload has a fixed length, otherwise only the
/// time. It also ends the run early if the user cancels it.
pub(crate) struct Clock {
    bar: ProgressBar,
    /// Length of the workload in ms; 0 if it is unknown.
    length: u64,
    cancelled: &'static AtomicBool,
}

impl Clock {
    /// Creates a clock that shows nothing yet. The run ends early when `cancelled` is set.
    pub(crate) fn new(
        console: Console,
        workload: &Workload,
        cancelled: &'static AtomicBool,
    ) -> Clock {
        let length = match workload {
            Workload::Bulk { duration }
            | Workload::Stream { duration, .. }
            | Workload::Blocks { duration, .. } => millis(*duration),
            Workload::Maps(maps) => millis(maps.duration),
            Workload::Video(video) => video.length().map_or(0, millis),
            Workload::Download { .. }
            | Workload::Upload { .. }
            | Workload::Burst { .. }
            | Workload::Web(_) => 0,
        };
        let template = if length > 0 { "{bar:40} {msg}" } else { "{spinner} {msg}" };
        let bar = styled(console, template);
        bar.set_length(length);
        Clock { bar, length, cancelled }
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Clock {
    fn detail(&self) -> Detail {
        Detail::Nothing
    }

    fn interval(&self) -> Option<Span> {
        Some(STEP)
    }

    fn on_sample(&mut self, at: Time, _: &Snapshot) {
        let now = millis(at.since(Time::ZERO));
        // Another watcher may request a shorter interval.
        if self.bar.is_hidden() || now < self.bar.position() + millis(STEP) {
            return;
        }
        let seconds = |millis: u64| millis as f64 / 1e3;
        self.bar.set_message(match self.length {
            0 => format!("{:.1} s of virtual time", seconds(now)),
            all => {
                let left = estimate(self.bar.elapsed(), now, all);
                format!("{:.1} of {:.1} s of virtual time{left}", seconds(now), seconds(all))
            }
        });
        self.bar.set_position(now);
    }

    fn goes_on(&self) -> bool {
        !self.cancelled.load(Ordering::Relaxed)
    }
}

fn millis(span: Span) -> u64 {
    span.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_a_line_a_minute() {
        let console = Console { width: 80, colour: false, animate: false, chatter: 1 };
        let tally = Tally::new(console);
        let due =
            [0, 59, 60, 61, 119, 125, 400, 401].map(|at| tally.is_due(Duration::from_secs(at)));
        assert_eq!(due, [false, false, true, false, false, true, true, false]);
    }

    #[test]
    fn an_estimate_needs_time_and_a_share_of_the_runs() {
        let after = |seconds, done, all| estimate(Duration::from_secs(seconds), done, all);
        assert_eq!(after(1, 500, 1000), "");
        assert_eq!(after(60, 0, 0), "");
        assert_eq!(after(60, 1, 1000), "");
        assert_eq!(after(60, 20, 1000), ", about 49 minutes left");
        assert_eq!(after(60, 500, 1000), ", about 60 seconds left");
    }
}
