//! Imports the results of other tools as links (floor 6 of plait). They give a [`LinkFile`](plait_lab::links::LinkFile): each value with its range, its source and its date.
#![forbid(unsafe_code)]

mod date;
pub mod estimate;
pub mod import;

pub use date::day_of;
