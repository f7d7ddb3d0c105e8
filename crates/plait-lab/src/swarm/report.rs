//! The report of a swarm.

use super::case::Case;
use super::fault::KINDS;
use super::run::{Verdict, Violation};
use super::server::{Blow, ServerCase, Visit};
use super::{Only, TOLD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the document.
pub const SCHEMA: &str = "plait.swarm/1";

/// The report of a swarm, as `plait swarm --json` prints it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Always `plait.swarm/1`.
    pub schema: String,
    /// Command line that runs it again.
    pub command: String,
    /// The first seed.
    pub from: u64,
    /// Number of seeds that were run.
    pub seeds: u64,
    /// Number of requested seeds.
    pub asked: u64,
    /// True if the run was interrupted, so that seeds are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Number of seeds with a violation.
    pub broken: u64,
    /// The first seeds with a violation, in the order of seeds.
    pub failures: Vec<Failure>,
    /// Coverage of the seeds.
    #[serde(flatten)]
    pub coverage: Coverage,
    /// Virtual time of all runs together, in seconds.
    pub virtual_s: f64,
    /// Segments sent, delivered and dropped in all runs.
    pub segments: u64,
    /// SHA-256, in hexadecimal, over each seed's segments and verdict.
    pub digest: String,
    /// Report on the cases of servers; absent if only cases of networks were run. `broken` counts
    /// these cases, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerReport>,
}

/// Coverage of the seeds.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Counts for each kind of fault.
    pub faults: Vec<Count>,
    /// Number of seeds without a fault.
    pub faultless: u64,
    /// Number of seeds whose connection was reset because a middlebox left no alternative.
    pub given_up: u64,
    /// Counts for each scheduler.
    pub schedulers: Vec<Count>,
    /// Counts for each congestion controller.
    pub controllers: Vec<Count>,
}

/// Report on the cases of servers.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerReport {
    /// Number of cases that were run, one per seed.
    pub seeds: u64,
    /// Number of cases with a violation.
    pub broken: u64,
    /// The first cases with a violation.
    pub failures: Vec<ServerFailure>,
    /// Counts for each kind of guest and each kind of server fault.
    pub drawn: Vec<Count>,
    /// Virtual time of all runs together, in seconds.
    pub virtual_s: f64,
    /// Packets sent in all runs.
    pub packets: u64,
}

/// A seed with a violation in its case of a server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerFailure {
    /// The seed.
    pub seed: u64,
    /// The case drawn from the seed.
    pub case: ServerCase,
    /// The violation.
    pub violation: Violation,
    /// Command line that reproduces the run exactly.
    pub replay: String,
    /// A smaller case with the same violation; absent if the case was not shrunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<SmallerServer>,
}

/// A smaller case of a server with the same violation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SmallerServer {
    /// The case.
    pub case: ServerCase,
    /// The violation.
    pub violation: Violation,
    /// Command line that runs it.
    pub replay: String,
    /// Number of runs that shrinking took.
    pub runs: u32,
    /// The last events before the violation.
    pub last: Vec<String>,
}

/// Output of `plait swarm --case --json` for the case of a server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerReplay {
    /// Always `plait.swarm.replay/1`.
    pub schema: String,
    /// Command line that runs it again.
    pub command: String,
    /// The case.
    pub case: ServerCase,
    /// The violation; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation: Option<Violation>,
    /// The last events.
    pub last: Vec<String>,
    /// Packets sent.
    pub segments: u64,
    /// End of the run, in nanoseconds of virtual time.
    pub ended_ns: u64,
    /// Running hash over every packet, in hexadecimal.
    pub digest: String,
}

/// Returns the command line that runs one case of a server.
#[must_use]
pub fn server_line(case: &ServerCase) -> String {
    format!("plait swarm --case '{case}'")
}

/// Returns the flags that run only one kind of case.
pub(super) fn only_flag(only: Option<Only>) -> String {
    only.map_or_else(String::new, |only| format!(" --only {}", only.name()))
}

/// Counters of the cases of servers.
#[derive(Debug)]
pub(super) struct ServerCensus {
    report: ServerReport,
    drawn: Vec<u64>,
    virtual_ns: u128,
}

impl ServerCensus {
    pub(super) fn new() -> ServerCensus {
        let kinds = Visit::ALL.len() + Blow::ALL.len();
        ServerCensus { report: ServerReport::default(), drawn: vec![0; kinds], virtual_ns: 0 }
    }

    pub(super) fn add(&mut self, verdict: &Verdict) {
        self.report.seeds += 1;
        self.report.packets += verdict.segments;
        self.report.broken += u64::from(verdict.violation.is_some());
        self.virtual_ns += u128::from(verdict.ended.as_nanos());
        for (at, count) in self.drawn.iter_mut().enumerate() {
            *count += u64::from(verdict.met >> at & 1);
        }
    }

    /// Returns true if another failure is reported in full.
    pub(super) const fn wants_more(&self) -> bool {
        self.report.failures.len() < TOLD
    }

    pub(super) fn tell(&mut self, failure: ServerFailure) {
        self.report.failures.push(failure);
    }

    pub(super) fn finish(mut self) -> ServerReport {
        let names = Visit::ALL.iter().map(|it| it.name()).chain(Blow::ALL);
        let seeds = self.report.seeds.max(1) as f64;
        let count = |(name, drawn): (&str, u64)| Count {
            name: name.to_owned(),
            drawn,
            met: None,
            share: drawn as f64 / seeds,
        };
        self.report.drawn = names.zip(self.drawn).map(count).collect();
        self.report.virtual_s = self.virtual_ns as f64 / 1e9;
        self.report
    }
}

/// Counts for one choice or kind of fault.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// Its name.
    pub name: String,
    /// Number of seeds that drew it.
    pub drawn: u64,
    /// Number of seeds in which it took effect, for example a packet was lost. Absent for choices
    /// that always take effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<u64>,
    /// Share of the seeds: `met` if present, otherwise `drawn`.
    pub share: f64,
}

/// A seed with a violation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The case drawn from the seed.
    pub case: Case,
    /// The violation.
    pub violation: Violation,
    /// Command line that reproduces the run exactly.
    pub replay: String,
    /// A smaller case with the same violation; absent if the case was not shrunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<Smaller>,
}

/// A smaller case with the same violation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Smaller {
    /// The case.
    pub case: Case,
    /// The violation.
    pub violation: Violation,
    /// Command line that runs it.
    pub replay: String,
    /// Number of runs that shrinking took.
    pub runs: u32,
    /// The last events before the violation.
    pub last: Vec<String>,
}

/// Output of `plait swarm --case --json` and `--replay --json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// Always `plait.swarm.replay/1`.
    pub schema: String,
    /// Command line that runs it again.
    pub command: String,
    /// The case.
    pub case: Case,
    /// The violation; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation: Option<Violation>,
    /// The last events.
    pub last: Vec<String>,
    /// Segments sent, delivered and dropped.
    pub segments: u64,
    /// End of the run, in nanoseconds of virtual time.
    pub ended_ns: u64,
    /// Running hash over every segment sent and delivered, in hexadecimal.
    pub digest: String,
}

/// Name and version of a replay's document.
pub const REPLAY_SCHEMA: &str = "plait.swarm.replay/1";

/// Returns the command line that runs one seed.
#[must_use]
pub fn seed_line(seed: u64, wire: bool) -> String {
    format!("plait swarm --from {seed} --seeds 1{}", wire_flag(wire))
}

/// Returns the flag that encodes and parses segments.
pub(super) const fn wire_flag(wire: bool) -> &'static str {
    if wire { " --wire" } else { "" }
}

/// Returns the command line that runs one case.
#[must_use]
pub fn case_line(case: &Case) -> String {
    // The text of a case has no single quote: its strings are names of schedulers and controllers.
    format!("plait swarm --case '{case}'")
}

/// Counters of the cases of networks.
#[derive(Debug)]
pub(super) struct Census {
    seeds: u64,
    faultless: u64,
    drawn: Vec<u64>,
    met: Vec<u64>,
    schedulers: Vec<(String, u64)>,
    controllers: Vec<(String, u64)>,
}

impl Census {
    pub(super) fn new() -> Census {
        let schedulers =
            plait_sched::SCHEDULERS.iter().map(|entry| (entry.about.name.to_owned(), 0));
        let decorated = plait_sched::DECORATORS.iter().map(|it| (format!("+{}", it.about.name), 0));
        let controllers =
            plait_cc::CONTROLLERS.iter().map(|entry| (entry.about.name.to_owned(), 0));
        Census {
            seeds: 0,
            faultless: 0,
            drawn: vec![0; KINDS.len()],
            met: vec![0; KINDS.len()],
            schedulers: schedulers.chain(decorated).collect(),
            controllers: controllers.collect(),
        }
    }

    pub(super) fn add(&mut self, case: &Case, met: u32) {
        self.seeds += 1;
        self.faultless += u64::from(case.faults.is_empty());
        for (index, kind) in KINDS.iter().enumerate() {
            let drawn = case.faults.iter().any(|fault| fault.kind() == kind.name);
            self.drawn[index] += u64::from(drawn);
            self.met[index] += u64::from(met >> index & 1);
        }
        let bare = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_owned();
        let (scheduler, controller) = (bare(&case.scheduler, '+'), bare(&case.controller, ':'));
        for (name, count) in &mut self.schedulers {
            let decorated = name.starts_with('+') && case.scheduler.contains(name.as_str());
            *count += u64::from(*name == scheduler || decorated);
        }
        for (name, count) in &mut self.controllers {
            *count += u64::from(*name == controller);
        }
    }

    pub(super) fn tell(self, report: &mut Report) {
        let share =
            |count: u64| if self.seeds == 0 { 0.0 } else { count as f64 / self.seeds as f64 };
        let faults = KINDS.iter().zip(self.drawn.iter().zip(&self.met));
        report.coverage.faults = faults
            .map(|(kind, (drawn, met))| Count {
                name: kind.name.to_owned(),
                drawn: *drawn,
                met: Some(*met),
                share: share(*met),
            })
            .collect();
        let plain = |list: &[(String, u64)]| -> Vec<Count> {
            let count = |(name, drawn): &(String, u64)| Count {
                name: name.clone(),
                drawn: *drawn,
                met: None,
                share: share(*drawn),
            };
            list.iter().map(count).collect()
        };
        report.coverage.schedulers = plain(&self.schedulers);
        report.coverage.controllers = plain(&self.controllers);
        report.coverage.faultless = self.faultless;
        report.seeds = self.seeds;
    }
}
