//! Floor 5: from what a person asks (a scenario) to what he reads (a report): cells x seeds in
//! parallel, statistics, expectations.

mod error;
pub mod stats;

pub use error::{Fault, Place, ScenarioError};
