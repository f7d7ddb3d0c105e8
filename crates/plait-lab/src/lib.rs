//! The laboratory (floor 5): runs a scenario as cells x seeds in parallel, and returns a report with
//! statistics and expectations.
//!
//! A [`RawScenario`] takes flags or a file. [`RawScenario::build`] turns it into a [`Scenario`], and
//! [`compare`] runs that in a [`World`] and returns a [`ComparisonDocument`].
//!
//! A comparison touches no file and no clock. The caller passes in a [reader](scenario::Reader) for traces,
//! pages and scenario files. A [`Control`] receives every run when it ends, and can stop a comparison inside
//! a run. [`Cell::address`] is the key under which runs of a cell may be kept. `examples/compare.rs` compares
//! two schedulers in this way.

#![forbid(unsafe_code)]

pub mod advise;
mod append_log;
mod bound;
mod compare;
mod error;
mod expect;
pub mod experiment;
pub mod explain;
pub mod links;
mod one_run;
mod path_memory;
pub mod race;
mod relation;
mod report;
mod run_setup;
pub mod scenario;
pub mod scoreboard;
mod simulated;
mod ssthresh_cache;
pub mod stats;
pub mod swarm;
mod workers;

pub use append_log::{AppendLog, fingerprint, sealed, unsealed};
pub use bound::Bound;
pub use compare::{
    Address, Cell, Control, EndedRun, KeepRuns, RunOutcome, Subject, World, cells, compare,
    run_seed,
};
pub use error::{Fault, Place, Refusal, ScenarioError, unreadable};
pub use expect::{Expectation, Names};
pub use report::{
    BufferLimit, Compared, ComparisonDocument, Difference, Failure, Findings, Messages, PathDelays,
    PathLosses, PathRates, PathReport, Precision, Report, Row, RunRecord, SCHEMA, Standing,
    TailDifference, Traffic, Varied, Verdict, schema,
};
pub use scenario::{Point, RawScenario, Scenario, Vary};
pub use simulated::{
    Attentive, Simulator, bound_of, broke, competing, setup, simulate, simulate_unless,
};
