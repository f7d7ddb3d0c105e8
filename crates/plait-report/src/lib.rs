//! What is written of a run, of a comparison or of a reproduction. The laboratory makes the numbers,
//! and a program says what to make; a report is what lies between them.
//!
//! * [`render`] draws text: tables, charts, timelines and the sentences around them.
//! * [`reproduction`] is the document of `plait reproduce` and `plait experiment run`.
//! * [`recorder`] watches a run for its timeline.
//!
//! Nothing here reads flags or looks at a terminal: a function that makes text takes its width, and
//! whether colour is wanted.

pub mod recorder;
pub mod render;
pub mod reproduction;

/// The version of plait.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it is made of; `unknown` outside of git.
pub const COMMIT: &str = env!("PLAIT_COMMIT");

/// Both, as documents name the program that wrote them.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PLAIT_COMMIT"), ")");
