//! Floor 3: what runs over a connection and what is measured of it.
//!
//! A [`Workload`] is a pair of state machines, one for each end of a connection, that a world
//! drives over a [`Stream`]. An [`Observer`] takes in the stamped events of both hosts and ends as
//! [`Measures`]. [`quantity`] reads and writes numbers with their units, the same everywhere.

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
