//! Workloads that run over a connection, and the measures of a run (floor 3 of plait).
//!
//! A [`Workload`] is a pair of state machines, one for each end of a connection. A world drives
//! them over a [`Stream`]. An [`Observer`] takes the timestamped events of both hosts and returns
//! [`Measures`]. [`quantity`] reads and writes numbers with units, for all files and options alike.

#![forbid(unsafe_code)]

pub mod file;
pub mod measure;
pub mod name;
pub mod provenance;
pub mod quantity;
pub mod workload;

pub use measure::{MEASURES, Measures, Observer, aggregation_benefit};
pub use workload::{
    App, AppEvent, Ends, Role, Size, Stream, StreamState, WORKLOADS, Workload, WorkloadError,
};
