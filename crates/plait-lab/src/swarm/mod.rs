//! The swarm runs random networks and faults and checks invariants (docs/swarm.md). A seed draws a
//! [`Case`] of a network and a [`ServerCase`] (`server/`). A run of a network is checked after
//! every event. When the faults have healed, it must finish within [`Case::grace`]. A failing case
//! is shrunk.

mod case;
mod draw;
mod fault;
mod report;
mod run;
mod server;
mod shrink;
mod swarm_app;

pub use case::{
    Case, CaseError, Directions, End, EndCase, Finish, GRACE, MemoryCase, PathCase, Settings,
};
pub use draw::draw;
pub use fault::{Fault, FaultKind, KINDS, Share, StripFrom};
pub use report::{
    Count, Coverage, Failure, REPLAY_SCHEMA, Replay, Report, SCHEMA, ServerFailure, ServerReplay,
    ServerReport, Smaller, SmallerServer, case_line, seed_line, server_line,
};
pub use run::{Broken, Verdict, Violation, replay, run_case};
pub use server::{
    Blow, Group, ServerCase, ServiceCase, ShrunkServer, Visit, draw_server, replay_server,
    run_server, shrink_server,
};
pub use shrink::{Shrunk, shrink};

use case::shorten;

use crate::compare::Control;
use crate::error::{self, Place, ScenarioError};
use crate::workers::on_threads;
use report::{Census, ServerCensus};
use sha2::{Digest, Sha256};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of failures that are reported in full and shrunk.
const TOLD: usize = 5;
/// Limit of runs for shrinking one failure.
const SHRINK_RUNS: u32 = 400;
/// Number of events that are kept before a violation.
pub const TRAIL: usize = 30;

/// The seeds to run, and how to run them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The first seed.
    pub from: u64,
    /// Number of consecutive seeds.
    pub seeds: u64,
    /// Number of parallel runs; if absent, one for each processor.
    pub jobs: Option<NonZeroUsize>,
    /// If true, stops at the first violation and does not shrink it.
    pub first_only: bool,
    /// If true, encodes and parses every segment.
    pub wire: bool,
    /// Run only one of the two cases that a seed draws.
    pub only: Option<Only>,
}

/// One of the two cases that a seed draws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Only {
    /// Two endpoints and the paths between them.
    Network,
    /// A server, its clients and its service.
    Server,
}

impl Only {
    /// Returns the name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Only::Network => "network",
            Only::Server => "server",
        }
    }
}

/// The verdicts on the cases of a seed.
#[derive(Debug)]
struct Verdicts {
    network: Option<Verdict>,
    server: Option<Verdict>,
}

impl Verdicts {
    fn is_broken(&self) -> bool {
        let all = [&self.network, &self.server];
        all.into_iter().flatten().any(|verdict| verdict.violation.is_some())
    }
}

impl Options {
    /// Checks that all seeds fit into 64 bits.
    ///
    /// # Errors
    /// If the last seed would exceed the largest number.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let most = u64::MAX - self.seeds.saturating_sub(1);
        if self.from <= most {
            return Ok(());
        }
        let problem = format!("{} seeds from there go beyond the last one", self.seeds);
        let place = Place::Argument("--from".to_owned());
        let error =
            ScenarioError::new(&place, error::Fault::Invalid, &self.from.to_string(), &problem);
        Err(error.allow(&format!("up to {most}")))
    }

    /// Returns the case of a seed.
    fn case(&self, seed: u64) -> Case {
        let mut case = draw(seed);
        case.settings.wire = self.wire;
        case
    }

    fn run(&self, seed: u64) -> Verdicts {
        let network = self.only != Some(Only::Server);
        let server = self.only != Some(Only::Network);
        Verdicts {
            network: network.then(|| run_case(&self.case(seed))),
            server: server.then(|| run_server(&draw_server(seed))),
        }
    }
}

/// Runs a swarm. Unless it is interrupted, the report does not depend on the number of jobs.
///
/// # Errors
/// As [`Options::check`].
pub fn swarm(options: &Options, control: &Control<'_>) -> Result<Report, ScenarioError> {
    options.check()?;
    let verdicts = run_all(options, control);
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        command: format!(
            "plait swarm --from {} --seeds {}{}{}",
            options.from,
            options.seeds,
            report::wire_flag(options.wire),
            report::only_flag(options.only)
        ),
        from: options.from,
        seeds: 0,
        asked: options.seeds,
        interrupted: control.cancelled.load(Ordering::Relaxed),
        broken: 0,
        failures: Vec::new(),
        coverage: Coverage::default(),
        virtual_s: 0.0,
        segments: 0,
        digest: String::new(),
        server: None,
    };
    let mut hasher = Sha256::new();
    let mut census = Census::new();
    let mut virtual_ns: u128 = 0;
    let mut servers = ServerCensus::new();
    for (seed, Verdicts { network, server }) in verdicts {
        if let Some(verdict) = server {
            hasher.update(verdict.hash.to_le_bytes());
            hasher.update([u8::from(verdict.violation.is_some())]);
            servers.add(&verdict);
            if let Some(violation) = verdict.violation
                && servers.wants_more()
            {
                servers.tell(server_failure(seed, violation, options, control));
            }
        }
        let Some(verdict) = network else { continue };
        census.add(&options.case(seed), verdict.met);
        virtual_ns += u128::from(verdict.ended.as_nanos());
        report.segments += verdict.segments;
        report.coverage.given_up += u64::from(verdict.given_up);
        hasher.update(seed.to_le_bytes());
        hasher.update(verdict.hash.to_le_bytes());
        hasher.update([u8::from(verdict.violation.is_some())]);
        let Some(violation) = verdict.violation else { continue };
        hasher.update(violation.what.as_bytes());
        report.broken += 1;
        if report.failures.len() < TOLD {
            report.failures.push(failure(seed, violation, options, control));
        }
    }
    report.virtual_s = virtual_ns as f64 / 1e9;
    report.digest = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    census.tell(&mut report);
    if options.only != Some(Only::Network) {
        let servers = servers.finish();
        report.broken += servers.broken;
        report.seeds = servers.seeds;
        report.server = Some(servers);
    }
    Ok(report)
}

fn server_failure(
    seed: u64,
    violation: Violation,
    options: &Options,
    control: &Control<'_>,
) -> ServerFailure {
    let case = draw_server(seed);
    let smaller = || {
        let shrunk = shrink_server(&case, &violation, SHRINK_RUNS, control.cancelled);
        let (_, last) = replay_server(&shrunk.case, TRAIL);
        SmallerServer {
            replay: server_line(&shrunk.case),
            case: shrunk.case,
            violation: shrunk.violation,
            runs: shrunk.runs,
            last,
        }
    };
    let shrunk = (!options.first_only).then(smaller);
    let replay = format!("{}{}", seed_line(seed, false), report::only_flag(Some(Only::Server)));
    ServerFailure { seed, replay, case, violation, shrunk }
}

fn failure(seed: u64, violation: Violation, options: &Options, control: &Control<'_>) -> Failure {
    let smaller = || {
        let shrunk = shrink(&options.case(seed), &violation, SHRINK_RUNS, control.cancelled);
        let (_, last) = replay(&shrunk.case, TRAIL);
        Smaller {
            replay: case_line(&shrunk.case),
            case: shrunk.case,
            violation: shrunk.violation,
            runs: shrunk.runs,
            last,
        }
    };
    let shrunk = (!options.first_only).then(smaller);
    let case = options.case(seed);
    Failure { seed, replay: seed_line(seed, case.settings.wire), case, violation, shrunk }
}

/// Returns the verdicts in the order of seeds. With `first_only`, verdicts after the first violation are
/// dropped, even if other threads already had them.
fn run_all(options: &Options, control: &Control<'_>) -> Vec<(u64, Verdicts)> {
    let (next, done) = (AtomicU64::new(0), AtomicUsize::new(0));
    // Seeds beyond this index are no longer needed.
    let enough = AtomicU64::new(u64::MAX);
    let found = Mutex::new(Vec::new());
    let total = usize::try_from(options.seeds).unwrap_or(usize::MAX);
    let worker = || {
        while !control.cancelled.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= options.seeds || place > enough.load(Ordering::Relaxed) {
                return;
            }
            let Some(seed) = options.from.checked_add(place) else { return };
            let verdicts = options.run(seed);
            if options.first_only && verdicts.is_broken() {
                enough.fetch_min(place, Ordering::Relaxed);
            }
            if let Ok(mut found) = found.lock() {
                found.push((seed, verdicts));
            }
            (control.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        }
    };
    on_threads(options.jobs, total, worker);
    let mut verdicts = found.into_inner().unwrap_or_default();
    verdicts.sort_unstable_by_key(|(seed, _)| *seed);
    let first = verdicts.iter().position(|(_, verdicts)| verdicts.is_broken());
    if let Some(first) = first.filter(|_| options.first_only) {
        verdicts.truncate(first + 1);
    }
    verdicts
}
