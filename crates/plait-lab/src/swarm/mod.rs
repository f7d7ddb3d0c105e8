//! The swarm: random networks and faults against the invariants (`spec`: protocol, sections 4 and
//! 5). A seed draws a [`Case`]; a run of it is checked after every event; then the faults heal and
//! everything must be over within [`GRACE`]. A case that fails is made smaller.

mod case;
mod draw;
mod fault;
mod party;
mod report;
mod run;
mod shrink;

pub use case::{
    Case, CaseError, End, EndCase, Finish, GRACE, Idle, Join, PathCase, Reduce, Rto, Settings,
    Start, Way,
};
pub use draw::draw;
pub use fault::{Fault, KINDS, Kind, Share, StripFrom};
pub use report::{
    Count, Failure, REPLAY_SCHEMA, Replay, Report, SCHEMA, Smaller, case_line, seed_line,
};
pub use run::{Broken, Verdict, Violation, replay, run_case};
pub use shrink::{Shrunk, shrink};

use crate::compare::Control;
use crate::workers::on_threads;
use report::Census;
use sha2::{Digest, Sha256};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many failures are told in full, and made smaller.
const TOLD: usize = 5;
/// Runs that one failure may cost to make it smaller.
const SHRINK_RUNS: u32 = 400;
/// What is kept of the time before a violation.
pub const TRAIL: usize = 30;

/// Which seeds to run, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The first seed.
    pub from: u64,
    /// How many, one after the other.
    pub seeds: u64,
    /// How many at a time; one for each processor if absent.
    pub jobs: Option<NonZeroUsize>,
    /// Stop at the first violation, and leave it as large as it is.
    pub first_only: bool,
    /// Encode and parse every segment.
    pub wire: bool,
}

impl Options {
    /// The case of a seed.
    fn case(&self, seed: u64) -> Case {
        let mut case = draw(seed);
        case.settings.wire = self.wire;
        case
    }
}

/// Runs a swarm. Apart from an interruption the report is the same whatever the number of jobs.
#[must_use]
pub fn swarm(options: &Options, control: &Control<'_>) -> Report {
    let verdicts = run_all(options, control);
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        command: format!(
            "plait swarm --from {} --seeds {}{}",
            options.from,
            options.seeds,
            report::wire_flag(options.wire)
        ),
        from: options.from,
        seeds: 0,
        asked: options.seeds,
        interrupted: control.cancelled.load(Ordering::Relaxed),
        broken: 0,
        failures: Vec::new(),
        faults: Vec::new(),
        faultless: 0,
        given_up: 0,
        schedulers: Vec::new(),
        controllers: Vec::new(),
        virtual_s: 0.0,
        segments: 0,
        digest: String::new(),
    };
    let mut hasher = Sha256::new();
    let mut census = Census::new();
    let mut virtual_ns: u128 = 0;
    for (seed, verdict) in verdicts {
        census.add(&options.case(seed), verdict.met);
        virtual_ns += u128::from(verdict.ended.as_nanos());
        report.segments += verdict.segments;
        report.given_up += u64::from(verdict.given_up);
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
    report
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

/// The verdicts in the order of seeds. With `first_only` those after the first violation are left
/// out, however far other threads had come.
fn run_all(options: &Options, control: &Control<'_>) -> Vec<(u64, Verdict)> {
    let (next, done) = (AtomicU64::new(0), AtomicUsize::new(0));
    // No seed beyond this place is needed any more.
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
            let verdict = run_case(&options.case(seed));
            if options.first_only && verdict.violation.is_some() {
                enough.fetch_min(place, Ordering::Relaxed);
            }
            if let Ok(mut found) = found.lock() {
                found.push((seed, verdict));
            }
            (control.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        }
    };
    on_threads(options.jobs, total, worker);
    let mut verdicts = found.into_inner().unwrap_or_default();
    verdicts.sort_unstable_by_key(|(seed, _)| *seed);
    let first = verdicts.iter().position(|(_, verdict)| verdict.violation.is_some());
    if let Some(first) = first.filter(|_| options.first_only) {
        verdicts.truncate(first + 1);
    }
    verdicts
}
