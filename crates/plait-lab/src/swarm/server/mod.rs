//! The swarm of servers: the engine of `plait serve` in virtual time, with clients, strangers and
//! services. A seed draws a [`ServerCase`], and its run is checked continuously. In the end all
//! faults heal, and the server must release everything within a limited time.

mod case;
mod client;
mod draw;
mod run;
mod service;
mod shrink;
mod stranger;
mod world;

pub use case::{Blow, Group, ServerCase, ServiceCase, Visit};
pub use draw::draw_server;
pub use shrink::{ShrunkServer, shrink_server};

use super::run::{Broken, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a case and judges it.
#[must_use]
pub fn run_server(case: &ServerCase) -> Verdict {
    replay_server(case, 0).0
}

/// Runs a case and returns the last `keep` events, one a line.
#[must_use]
pub fn replay_server(case: &ServerCase, keep: usize) -> (Verdict, Vec<String>) {
    match catch_unwind(AssertUnwindSafe(|| run::run(case, keep))) {
        Ok(told) => told,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let mut verdict = run::failed(text.unwrap_or("a panic without a message").to_owned());
            if let Some(violation) = &mut verdict.violation {
                violation.broken = Broken::Panic;
            }
            (verdict, Vec::new())
        }
    }
}
