//! Runs the links of a test in the simulator.

use super::Line;
use plait_lab::{RawScenario, Subject, cells, simulate};
use plait_sim::Watch;

/// An observer that ignores all events.
struct Unseen;

impl Watch for Unseen {}

/// Returns the share of the second path in the bytes that reach the client of a download of `size` bytes.
/// Both subflows exist from the start. `window` is the client's receive buffer, in the format of
/// `plait run --rcvbuf`.
pub fn share(scheduler: &str, lines: &[Line; 2], size: usize, window: &str) -> f64 {
    let mut raw = RawScenario::new();
    for (name, Line { mbit, rtt, queue, .. }) in ["a", "b"].into_iter().zip(lines) {
        let rtt = rtt.as_micros();
        let path = format!("{name}:rate={mbit}mbit,rtt={rtt}us,queue={queue}B");
        raw.argument("path", &path).unwrap();
    }
    raw.argument("workload", &format!("download:{size}B")).unwrap();
    raw.argument("schedulers", scheduler).unwrap();
    raw.argument("rcvbuf", window).unwrap();
    raw.argument("join", "simultaneous").unwrap();
    let scenario = raw.build().unwrap();
    let cells = cells(&scenario);
    let multipath = |it: &&plait_lab::Cell| matches!(it.subject, Subject::Scheduler(_));
    let outcome = simulate(cells.iter().find(multipath).unwrap(), scenario.seed, &mut Unseen);
    assert!(outcome.complete(), "{scheduler}: {size} bytes were not whole");
    let [first, second] = [0, 1].map(|path: usize| outcome.links[path].0.delivered_bytes as f64);
    second / (first + second)
}
