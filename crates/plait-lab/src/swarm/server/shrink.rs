//! Shrinks failing cases of a server.

use super::case::ServerCase;
use super::run_server;
use crate::swarm::run::Violation;
use std::sync::atomic::{AtomicBool, Ordering};

/// A shrunk case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShrunkServer {
    /// The case.
    pub case: ServerCase,
    /// The violation of the shrunk case, of the same kind.
    pub violation: Violation,
    /// Number of runs that shrinking took.
    pub runs: u32,
}

/// Removes everything from a failing case that the failure does not need: guests, blows, behaviour
/// of the service, bytes. It makes at most `most_runs` runs. The same case gives the same result.
#[must_use]
pub fn shrink_server(
    case: &ServerCase,
    violation: &Violation,
    most_runs: u32,
    cancelled: &AtomicBool,
) -> ShrunkServer {
    let mut best = ShrunkServer { case: case.clone(), violation: violation.clone(), runs: 0 };
    'again: loop {
        for candidate in smaller(&best.case) {
            if best.runs >= most_runs || cancelled.load(Ordering::Relaxed) {
                return best;
            }
            best.runs += 1;
            let found = run_server(&candidate).violation;
            if let Some(violation) = found.filter(|found| found.is_like(&best.violation)) {
                (best.case, best.violation) = (candidate, violation);
                continue 'again;
            }
        }
        return best;
    }
}

/// Returns cases with one part smaller than in this case.
fn smaller(case: &ServerCase) -> Vec<ServerCase> {
    let usual = ServerCase::default();
    let mut list = Vec::new();
    let mut with = |change: &dyn Fn(&mut ServerCase)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        if smaller != *case {
            list.push(smaller);
        }
    };
    for at in 0..case.guests.len() {
        with(&|case| {
            case.guests.remove(at);
        });
    }
    for at in 0..case.blows.len() {
        with(&|case| {
            case.blows.remove(at);
        });
    }
    with(&|case| case.service = usual.service);
    with(&|case| case.loss_ppm = 0);
    with(&|case| case.spread_us = 0);
    with(&|case| case.numbers = usual.numbers);
    with(&|case| case.check = false);
    with(&|case| case.proxy_header = false);
    with(&|case| case.scheduler.clone_from(&usual.scheduler));
    with(&|case| case.controller.clone_from(&usual.controller));
    for at in 0..case.guests.len() {
        with(&|case| case.guests[at].count = case.guests[at].count.div_ceil(2));
        with(&|case| case.guests[at].times = case.guests[at].times.div_ceil(2));
        with(&|case| case.guests[at].addresses = 1);
        with(&|case| case.guests[at].from_ms /= 2);
        with(&|case| case.guests[at].bytes /= 2);
    }
    list
}
