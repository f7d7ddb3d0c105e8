//! Reports of runs, of comparisons and of reproductions, as documents, text, pages, figures,
//! captures and logs. The laboratory (`plait-lab`) computes the numbers. The command line
//! (`plait-cli`) chooses a report and prints it.
//!
//! * [`run`] has the document (JSON) and the text of one run; [`reproduction`] has the document of
//!   the papers' experiments. The documents of comparisons and explanations are in `plait-lab`.
//! * [`render`] draws text: tables, charts, timelines and the sentences around them.
//! * [`page`] and [`papers`] write pages for browsers, and figures (SVG, PDF).
//! * [`events`], [`capture`] and [`qlog`] write files during a run. [`live`] writes captures and
//!   qlog of connections with a kernel. [`recorded`] reads a file of events back.
//! * [`transfer`] finds the lost time of a run as `plait-capture` does for a capture.
//! * [`recorder`] records a run for its timeline. [`Watchers`] lets several observers watch one
//!   run.
//! * [`decide`] runs a scheduler or a congestion controller outside any connection: JSON in, JSON
//!   out.
//! * [`names`] finds the nearest name for an unknown one.
//!
//! This crate does not read flags and does not inspect the terminal: a function that makes text
//! takes its width, and whether to use colour. An [`Error`] names a file by its [`Contents`].

#![forbid(unsafe_code)]

pub mod capture;
pub mod decide;
mod encoded;
mod error;
pub mod events;
pub mod list;
pub mod live;
pub mod metrics;
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
pub mod top;
pub mod trace;
pub mod transfer;
mod watchers;
mod weighed;
mod whole;
mod words;

pub use error::{Contents, Error, unwritable};
pub use watchers::Watchers;

/// The version of plait.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit of this build; `unknown` if it was built outside a git repository.
pub const COMMIT: &str = env!("PLAIT_COMMIT");

/// Version and commit, the form in which documents name the program.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PLAIT_COMMIT"), ")");

/// Returns version, commit and a hash of the sources: the name of the program in the content addresses of runs. All
/// builds of the same sources have the same name, on any machine.
#[must_use]
pub fn program() -> String {
    format!("{PROGRAM} {}", plait_lab::experiment::SOURCES)
}
