//! Floor 5: from what a person asks (a scenario) to what is read in the end (a report): cells x
//! seeds in parallel, statistics, expectations.
//!
//! A [`RawScenario`] takes flags or a file, [`RawScenario::build`] makes a [`Scenario`] of it, [`compare`] runs
//! it in a [`World`] and returns a [`Document`].
//!
//! A comparison touches no file and no clock. Traces, pages and scenario files come from a
//! [reader](scenario::Reader) that the caller passes in. A [`Control`] gets every run as it ends, and stops a
//! comparison inside a run. [`Cell::address`] is the key under which runs of a cell may be kept.
//! `examples/compare.rs` compares two schedulers in this way.

mod compare;
mod error;
mod expect;
pub mod experiment;
pub mod explain;
mod lists;
mod one_run;
mod relation;
mod report;
pub mod scenario;
pub mod scoreboard;
mod simulated;
mod ssthresh_cache;
pub mod stats;
pub mod swarm;
mod sweep;
mod vary;
mod workers;

pub use compare::{
    Address, Cell, Control, EndedRun, KeepRuns, RunOutcome, Subject, World, cells, compare,
    run_seed,
};
pub use error::{Fault, Place, Refusal, ScenarioError, unreadable};
pub use expect::{Compared, Expectation, Names, Verdict};
pub use report::{
    BufferLimit, Difference, Document, Failure, Findings, Messages, PathDelays, PathLosses,
    PathRates, PathReport, Precision, Report, Row, RunRecord, SCHEMA, Standing, TailDifference,
    Traffic, Varied, schema,
};
pub use scenario::{RawScenario, Scenario};
pub use simulated::{Attentive, Simulator, broke, competing, setup, simulate, simulate_unless};
pub use vary::{Point, Vary};
