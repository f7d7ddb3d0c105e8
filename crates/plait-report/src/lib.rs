//! Reports of runs, of comparisons and of reproductions: documents, text, pages, figures, captures and
//! logs. The laboratory (`plait-lab`) makes the numbers; the command line (`plait-cli`) asks for a
//! report and shows it.
//!
//! * [`run`] has the document (JSON) and the text of one run, [`reproduction`] the document of the
//!   papers' experiments. The documents of comparisons and explanations are in `plait-lab`.
//! * [`render`] draws text: tables, charts, timelines and the sentences around them.
//! * [`page`] and [`papers`] write pages for browsers, and figures (SVG, PDF).
//! * [`events`], [`capture`] and [`qlog`] write files while a run goes on. [`live`] writes captures
//!   and qlog beside a kernel. [`recorded`] reads a file of events back.
//! * [`recorder`] watches a run for its timeline. [`Watchers`] lets several watch one run.
//! * [`decide`] asks a scheduler or a congestion controller outside any connection: JSON in, JSON
//!   out.
//! * [`names`] finds the nearest name for an unknown one.
//!
//! Nothing here reads flags or looks at a terminal: a function that makes text takes its width, and
//! whether colour is wanted. An [`Error`] names a file by its [`Contents`].

pub mod capture;
pub mod decide;
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
mod watchers;
mod weighed;
mod whole;
mod words;

pub use error::{Contents, Error, unwritable};
pub use watchers::Watchers;

/// The version of plait.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it is made of; `unknown` outside of git.
pub const COMMIT: &str = env!("PLAIT_COMMIT");

/// Both, as documents name the program that wrote them.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PLAIT_COMMIT"), ")");
