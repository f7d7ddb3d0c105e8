//! Runs the same pairs in the simulator.

use super::pairs::{Load, Pair};
use super::table::Seen;
use plait_lab::{RawScenario, ScenarioError, Subject, cells, simulate};
use plait_sim::Watch;

/// Settings of the model, in the form of command-line options.
pub type Settings = Vec<(&'static str, String)>;

/// An observer that ignores all events.
struct Unwatched;

impl Watch for Unwatched {}

/// Runs a pair `runs` times in the simulator, with the host jitter of a comparison.
pub fn runs(pair: &Pair, settings: &Settings, runs: u64) -> Result<Vec<Seen>, ScenarioError> {
    let mut raw = RawScenario::new();
    for (name, text) in arguments(pair).iter().chain(settings) {
        raw.argument(name, text)?;
    }
    let scenario = raw.build()?;
    let cells = cells(&scenario);
    let multipath = |it: &&plait_lab::Cell| matches!(it.subject, Subject::Scheduler(_));
    let cell = cells.iter().find(multipath).expect("a scheduler is compared");
    let run = |seed| {
        let outcome = simulate(cell, seed, &mut Unwatched);
        assert!(outcome.complete(), "{}: the model did not finish", pair.name);
        let measures = &outcome.pairs[0][0].measures;
        let delays = measures.message_delay_ms;
        let bytes = [0, 1].map(|at: usize| outcome.links[at].0.delivered_bytes);
        Seen {
            completion_ms: measures.completion_ms.unwrap_or(f64::NAN),
            p50_ms: delays.map(|it| it.median),
            p99_ms: delays.map(|it| it.p99),
            second_share: bytes[1] as f64 / (bytes[0] + bytes[1]) as f64,
            dropped: [0, 1].map(|at: usize| outcome.links[at].0.dropped_packets()),
        }
    };
    Ok((1..=runs).map(run).collect())
}

/// Returns the links and the load of a pair as arguments of `plait compare`.
pub fn arguments(pair: &Pair) -> Settings {
    let path = |name: &str, line: &super::net::Line| {
        let (mbit, rtt, queue) = (line.mbit, line.rtt.as_micros() / 1_000, line.queue);
        format!("{name}:rate={mbit}mbit,rtt={rtt}ms,queue={queue}B")
    };
    let workload = match pair.load {
        Load::Download { bytes } => format!("download:{bytes}B"),
        Load::Stream { bytes, interval, messages } => {
            let (every, lasts) = (interval.as_micros() / 1_000, interval.as_micros() * messages);
            format!("stream:{bytes}B@{every}ms,for={}ms", lasts / 1_000)
        }
    };
    let mut arguments = vec![
        ("path", path("first", &pair.lines[0])),
        ("path", path("second", &pair.lines[1])),
        ("workload", workload),
        ("host-jitter", "200us".to_owned()),
    ];
    arguments.extend(pair.rcvbuf.map(|bytes| ("rcvbuf", format!("{bytes}B"))));
    arguments
}
