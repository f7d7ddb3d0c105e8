//! What is written of a run, of a comparison or of a reproduction. The laboratory makes the numbers,
//! and a program says what to make; a report is what lies between them.
//!
//! * [`run`] is the report of one run, [`reproduction`] that of the papers' experiments: documents
//!   (JSON) and how they are made. A comparison and an explanation are documents of `plait-lab`.
//! * [`render`] draws text: tables, charts, timelines and the sentences around them.
//! * [`page`] and [`papers`] draw pages for browsers, and pictures (SVG, PDF).
//! * [`events`], [`capture`] and [`qlog`] write files while a run goes on, [`live`] the last two of
//!   them in front of a kernel. [`recorded`] reads a file of events back.
//! * [`recorder`] watches a run for its timeline; with [`Watchers`] several watch one run.
//! * [`decide`] asks a scheduler or a congestion controller outside any connection: JSON in, JSON
//!   out.
//! * [`names`] says what a name that is not known may have been meant to be.
//!
//! Nothing here reads flags or looks at a terminal: a function that makes text takes its width, and
//! whether colour is wanted. Files are told apart by the flags of `plait` that ask for them, so that
//! an [`Error`] says which one cannot be written.

pub mod capture;
pub mod decide;
mod error;
pub mod events;
pub mod live;
pub mod names;
pub mod page;
pub mod papers;
mod pcapng;
pub mod qlog;
mod reasons;
pub mod recorded;
pub mod recorder;
pub mod render;
pub mod reproduction;
pub mod run;
mod watchers;
mod weighed;
mod whole;
mod words;

pub use error::Error;
pub use watchers::Watchers;

/// The version of plait.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it is made of; `unknown` outside of git.
pub const COMMIT: &str = env!("PLAIT_COMMIT");

/// Both, as documents name the program that wrote them.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PLAIT_COMMIT"), ")");
