//! Measures links between two hosts that both run plait, and imports the results of other tools (floor 6 of plait).
//! Both give a [`LinkFile`](plait_lab::links::LinkFile): each value with its range, its source and its date.
#![forbid(unsafe_code)]

mod date;
pub mod estimate;
pub mod import;
#[cfg(all(target_os = "linux", feature = "live"))]
pub mod live;

pub use date::day_of;
