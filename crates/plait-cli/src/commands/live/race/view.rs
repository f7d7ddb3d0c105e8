//! The live view of a race in a terminal: the sender, the rate and the queue of each path, and the medians so far.

use crate::console::Console;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use plait_app::measure::is_higher_better;
use plait_base::Time;
use plait_lab::race::{Entrant, Heat, LiveRuns, measures};
use plait_lab::stats::median;
use plait_live::Clock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(200);
/// Rates that are drawn for a path: those of the last six seconds.
const HISTORY: usize = 30;
/// Width of the longest bar.
const BAR: usize = 30;
/// Blocks of eight heights.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The standing of a sender: its name, and the median of the measure over its counted runs.
struct Standing {
    sender: String,
    median: Option<f64>,
}

/// The reading of a path, in the direction of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gauge {
    /// Bytes that it has carried.
    pub(super) bytes: u64,
    /// Bytes in its queue, if they are known.
    pub(super) queued_bytes: Option<u64>,
}

/// The links of the current run.
struct Course {
    read: Box<dyn Fn() -> Vec<Gauge> + Send>,
    names: Vec<String>,
    before: Option<(Time, Vec<Gauge>)>,
    /// Bits a second of each path, the newest last.
    rates: Vec<VecDeque<f64>>,
}

impl Course {
    /// Reads the links, and returns a line for each path.
    fn lines(&mut self, now: Time) -> Vec<String> {
        let readings = (self.read)();
        let Course { before, rates, .. } = self;
        if let Some((then, old)) = before {
            let seconds = now.since(*then).as_secs_f64().max(1e-3);
            for ((rates, new), old) in rates.iter_mut().zip(&readings).zip(old) {
                let bytes = new.bytes.saturating_sub(old.bytes);
                rates.push_back(bytes as f64 * 8.0 / seconds);
                if rates.len() > HISTORY {
                    rates.pop_front();
                }
            }
        }
        let width = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let most = self.rates.iter().flatten().copied().fold(1.0, f64::max);
        let line = |((name, reading), rates): ((&String, &Gauge), &VecDeque<f64>)| {
            let rate = rates.back().copied().unwrap_or(0.0) / 1e6;
            let queue = |bytes| format!("  queue {:6.0} kB", bytes as f64 / 1e3);
            let queue = reading.queued_bytes.map(queue).unwrap_or_default();
            let drawn: String = rates.iter().map(|rate| block(rate / most)).collect();
            format!("  {name:width$}  {rate:7.2} Mbit/s{queue}  {drawn}")
        };
        let lines = self.names.iter().zip(&readings).zip(&self.rates).map(line).collect();
        self.before = Some((now, readings));
        lines
    }
}

/// Returns a block whose height is this share of a line.
fn block(share: f64) -> char {
    BLOCKS[((share * 8.0).ceil() as usize).clamp(1, 8) - 1]
}

#[derive(Default)]
struct State {
    heading: String,
    course: Option<Course>,
    standings: Vec<Standing>,
    measure: &'static str,
}

impl State {
    fn frame(&mut self, now: Time) -> String {
        let mut lines = vec![self.heading.clone()];
        lines.extend(self.course.iter_mut().flat_map(|it| it.lines(now)));
        lines.extend(standings(&self.standings, self.measure));
        lines.join("\n")
    }
}

/// Returns a line for each sender that has a median. The best one comes first.
fn standings(all: &[Standing], measure: &str) -> Vec<String> {
    let mut known: Vec<(&Standing, f64)> =
        all.iter().filter_map(|it| Some((it, it.median?))).collect();
    known.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    if is_higher_better(measure) {
        known.reverse();
    }
    let width = known.iter().map(|(it, _)| it.sender.chars().count()).max().unwrap_or(0);
    let most = known.iter().map(|(_, median)| *median).fold(1e-9, f64::max);
    let line = |(it, median): &(&Standing, f64)| {
        let bar = "█".repeat(((median / most * BAR as f64).round() as usize).max(1));
        format!("  {:width$}  {median:9.1} {bar}", it.sender)
    };
    let head = (!known.is_empty()).then(|| format!("median {measure} so far"));
    head.into_iter().chain(known.iter().map(line)).collect()
}

/// Shows a race on stderr, if that is a terminal.
pub(super) struct View {
    state: Arc<Mutex<State>>,
    shown: MultiProgress,
    ended: Arc<AtomicBool>,
    drawing: Option<JoinHandle<()>>,
}

impl View {
    #[expect(clippy::disallowed_methods, reason = "what is watched goes on in real time")]
    pub(super) fn start(console: Console) -> View {
        let state: Arc<Mutex<State>> = Arc::default();
        let ended = Arc::new(AtomicBool::new(false));
        if !console.animate {
            let shown = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
            return View { state, shown, ended, drawing: None };
        }
        let shown = MultiProgress::new();
        let bar = shown.add(ProgressBar::new_spinner().with_style(style()));
        let (seen, over, clock) = (state.clone(), ended.clone(), Clock::start());
        let drawing = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let frame = locked(&seen).frame(clock.now());
                bar.set_message(frame);
                thread::sleep(PERIOD);
            }
            bar.finish_and_clear();
        });
        View { state, shown, ended, drawing: Some(drawing) }
    }

    /// Shows this heading.
    pub(super) fn head(&self, heading: String) {
        locked(&self.state).heading = heading;
    }

    /// Shows these links. `read` returns the reading of each.
    pub(super) fn watch(&self, names: &[String], read: impl Fn() -> Vec<Gauge> + Send + 'static) {
        let rates = vec![VecDeque::new(); names.len()];
        let (names, read) = (names.to_vec(), Box::new(read));
        locked(&self.state).course = Some(Course { read, names, before: None, rates });
    }

    /// Shows the medians of a heat so far.
    pub(super) fn stand(&self, heat: &Heat, live: &[LiveRuns]) {
        let name = measures(&heat.scenario.workload)[0];
        let of = |(entrant, live): (&Entrant, &LiveRuns)| {
            let runs = live.runs.iter().flatten();
            let values: Vec<f64> = runs.filter_map(|run| run.measures.value(name)).collect();
            Standing { sender: entrant.name.clone(), median: median(&values) }
        };
        let standings = heat.entrants.iter().zip(live).map(of).collect();
        let mut state = locked(&self.state);
        (state.standings, state.measure) = (standings, name);
        state.course = None;
    }

    /// Writes a remark above the view.
    pub(super) fn remark(&self, console: Console, text: &str) {
        self.shown.suspend(|| console.remark(1, text));
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(drawing) = self.drawing.take() {
            let _ = drawing.join();
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn locked(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_sender_stands_first() {
        let of = |sender: &str, median| Standing { sender: sender.to_owned(), median };
        let all = [of("kernel:cubic", Some(60.0)), of("slot", Some(20.0)), of("tcp:a", None)];
        let lines = standings(&all, "completion_ms");
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[1].contains("slot") && lines[1].contains("20.0"), "{lines:?}");
        let bars: Vec<_> = lines.iter().map(|it| it.matches('█').count()).collect();
        assert_eq!(bars, [0, 10, 30]);
        let lines = standings(&all, "goodput_mbps");
        assert!(lines[1].contains("kernel:cubic"), "{lines:?}");
    }

    #[test]
    fn a_path_shows_its_rate_and_its_queue_if_that_is_known() {
        let gauge = |queued_bytes| vec![Gauge { bytes: 1_250_000, queued_bytes }];
        for (queued, expected) in [(Some(60_000), "queue     60 kB"), (None, "0.00 Mbit/s  ")] {
            let read: Box<dyn Fn() -> Vec<Gauge> + Send> = Box::new(move || gauge(queued));
            let (names, rates) = (vec!["wifi".to_owned()], vec![VecDeque::new()]);
            let before = Some((Time::ZERO, vec![Gauge { bytes: 0, queued_bytes: None }]));
            let mut course = Course { read, names, before, rates };
            let first = course.lines(Time::ZERO + plait_base::Span::from_secs(1)).remove(0);
            assert!(first.starts_with("  wifi    10.00 Mbit/s"), "{first}");
            let later = course.lines(Time::ZERO + plait_base::Span::from_secs(2)).remove(0);
            assert!(later.contains(expected) && later.ends_with("█▁"), "{later}");
        }
    }

    #[test]
    fn a_block_is_as_high_as_its_share() {
        assert_eq!([0.0, 0.125, 0.5, 1.0, 2.0].map(block), ['▁', '▁', '▄', '█', '█']);
    }
}
