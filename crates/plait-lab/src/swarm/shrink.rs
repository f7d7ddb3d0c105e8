//! Shrinks failing cases.

use super::case::{Case, End, EndCase, Finish, PathCase, Settings};
use super::run::{Violation, run_case};
use plait_cc::HyStart;
use std::sync::atomic::{AtomicBool, Ordering};

/// A shrunk case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shrunk {
    /// The case.
    pub case: Case,
    /// The violation of the shrunk case, of the same kind.
    pub violation: Violation,
    /// Number of runs that shrinking took.
    pub runs: u32,
}

/// Removes everything from a failing case that the failure does not need: faults, paths, bytes, settings. It
/// makes a limited number of runs. The same case gives the same result.
#[must_use]
pub fn shrink(
    case: &Case,
    violation: &Violation,
    most_runs: u32,
    cancelled: &AtomicBool,
) -> Shrunk {
    let mut best = Shrunk { case: case.clone(), violation: violation.clone(), runs: 0 };
    loop {
        let before = best.case.clone();
        for step in [fewer_faults, fewer_memories, fewer_paths, fewer_bytes, plainer, milder] {
            try_all(step, &mut best, most_runs, cancelled);
        }
        let over = best.runs >= most_runs || cancelled.load(Ordering::Relaxed);
        if best.case == before || over {
            return best;
        }
    }
}

/// Takes the first candidate with the same failure, repeatedly, until no candidate has it.
fn try_all(
    step: fn(&Case) -> Vec<Case>,
    best: &mut Shrunk,
    most_runs: u32,
    cancelled: &AtomicBool,
) {
    let mut from = 0;
    'again: loop {
        let candidates = step(&best.case);
        let count = candidates.len();
        // Candidates that just failed to help are tried last.
        for offset in 0..count {
            let index = (from + offset) % count;
            let candidate = &candidates[index];
            if *candidate == best.case {
                continue;
            }
            if best.runs >= most_runs || cancelled.load(Ordering::Relaxed) {
                return;
            }
            best.runs += 1;
            let found = run_case(candidate).violation;
            if let Some(violation) = found.filter(|found| found.is_like(&best.violation)) {
                best.case = candidate.clone();
                best.violation = violation;
                from = index;
                continue 'again;
            }
        }
        return;
    }
}

/// Returns the case without all faults, without half of them, and without each of them.
fn fewer_faults(case: &Case) -> Vec<Case> {
    let count = case.faults.len();
    let mut list = Vec::new();
    let mut without = |from: usize, to: usize| {
        let mut smaller = case.clone();
        smaller.faults.drain(from..to);
        list.push(smaller);
    };
    if count > 0 {
        without(0, count);
    }
    if count > 2 {
        without(0, count / 2);
        without(count / 2, count);
    }
    if count > 1 {
        (0..count).for_each(|index| without(index, index + 1));
    }
    list
}

/// Returns the case without all memories of paths, and without each of them.
fn fewer_memories(case: &Case) -> Vec<Case> {
    let mut list = vec![Case { memory: Vec::new(), ..case.clone() }];
    list.extend((0..case.memory.len()).map(|index| {
        let mut smaller = case.clone();
        smaller.memory.remove(index);
        smaller
    }));
    list
}

/// Returns the case without each path, and the faults and memories of that path.
fn fewer_paths(case: &Case) -> Vec<Case> {
    if case.paths.len() < 2 {
        return Vec::new();
    }
    (0..case.paths.len()).rev().map(|index| without_path(case, index)).collect()
}

fn without_path(case: &Case, gone: usize) -> Case {
    let mut smaller = case.clone();
    smaller.paths.remove(gone);
    smaller.faults.retain(|fault| fault.path() != Some(gone));
    smaller.memory.retain(|it| it.path != gone);
    smaller.memory.iter_mut().for_each(|it| it.path -= usize::from(it.path > gone));
    for path in smaller.faults.iter_mut().filter_map(|fault| fault.path_mut()) {
        *path -= usize::from(*path > gone);
    }
    // A late join is impossible on the path that is now the first.
    let count = smaller.paths.len();
    smaller.faults.retain(|fault| fault.verify(count).is_ok());
    smaller
}

fn fewer_bytes(case: &Case) -> Vec<Case> {
    let mut list = Vec::new();
    for end in [End::Client, End::Server] {
        let bytes = case.end(end).send_bytes;
        for less in [0, bytes / 8, bytes / 2, bytes - bytes / 4, bytes.saturating_sub(1_428)] {
            if less < bytes {
                let mut smaller = case.clone();
                smaller.end_mut(end).send_bytes = less;
                list.push(smaller);
            }
        }
    }
    list
}

/// Returns the case with each setting at its default or at a simpler value.
fn plainer(case: &Case) -> Vec<Case> {
    let usual = Case::default();
    let mut list = Vec::new();
    let mut with = |change: &dyn Fn(&mut Case)| {
        let mut plain = case.clone();
        change(&mut plain);
        list.push(plain);
    };
    with(&|case| case.pairs = 1);
    with(&|case| case.connections = 1);
    with(&|case| case.settings = Settings::default());
    with(&|case| case.scheduler.clone_from(&usual.scheduler));
    with(&|case| {
        let end = case.scheduler.find('+').unwrap_or(case.scheduler.len());
        case.scheduler.truncate(end);
    });
    with(&|case| case.controller.clone_from(&usual.controller));
    for end in [End::Client, End::Server] {
        with(&|case| {
            let own = case.end_mut(end);
            *own = EndCase { send_bytes: own.send_bytes, ..EndCase::default() };
        });
        for change in END_CHANGES {
            with(&|case| change(case.end_mut(end)));
        }
    }
    for change in SETTING_CHANGES {
        with(&|case| change(&mut case.settings));
    }
    with(&|case| case.paths.fill(PathCase::default()));
    for index in 0..case.paths.len() {
        for change in PATH_CHANGES {
            with(&|case| change(&mut case.paths[index]));
        }
    }
    with(&|case| {
        if !case.paths.iter().any(|path| path.shared) {
            case.shared_kbps = usual.shared_kbps;
        }
    });
    list
}

const END_CHANGES: &[fn(&mut EndCase)] = &[
    |end| end.finish = Finish::default(),
    |end| (end.write_bytes, end.write_every_ms) = (0, 0),
    |end| end.real_bytes = false,
    |end| end.multipath = true,
    |end| end.rcvbuf_bytes = EndCase::default().rcvbuf_bytes,
    |end| end.rcvbuf_bytes = 65_536.min(end.rcvbuf_bytes),
    |end| end.sndbuf_bytes = EndCase::default().sndbuf_bytes,
    |end| end.grows = false,
    |end| end.mtu_bytes = EndCase::default().mtu_bytes,
    |end| end.delayed_ack = true,
    |end| end.checksum = false,
];

const SETTING_CHANGES: &[fn(&mut Settings)] = &[
    |it| it.join = Settings::default().join,
    |it| it.rto = Settings::default().rto,
    |it| it.idle_restart = Settings::default().idle_restart,
    |it| it.reduce_from = Settings::default().reduce_from,
    |it| it.ssthresh_bytes = 0,
    |it| it.initial_window = Settings::default().initial_window,
    |it| it.hystart = HyStart::Off,
    |it| it.tsq = false,
    |it| it.probes = true,
    |it| it.subflows = 1,
    |it| it.second_address = false,
    |it| it.pacing = false,
    |it| it.undo = true,
    |it| it.prr = Settings::default().prr,
    |it| it.send_cost_ns = 0,
    |it| it.wire = false,
    |it| it.kernel = false,
];

const PATH_CHANGES: &[fn(&mut PathCase)] = &[
    |path| *path = PathCase::default(),
    |path| path.rate_kbps = PathCase::default().rate_kbps,
    |path| path.rtt_us = PathCase::default().rtt_us,
    |path| path.queue_packets = 0,
    |path| path.jitter_us = 0,
    |path| path.codel = false,
    |path| path.shared = false,
    |path| path.backup = false,
    |path| path.cost = 0,
    |path| path.quota_bytes = 0,
];

/// Returns the case with milder faults, and with an earlier end of faults.
fn milder(case: &Case) -> Vec<Case> {
    let mut list = Vec::new();
    for (index, fault) in case.faults.iter().enumerate() {
        for mild in fault.milder() {
            let mut milder = case.clone();
            milder.faults[index] = mild;
            list.push(milder);
        }
    }
    for heals_ms in [0, case.heals_ms / 2, case.heals_ms - case.heals_ms / 4] {
        if heals_ms < case.heals_ms {
            list.push(Case { heals_ms, ..case.clone() });
        }
    }
    list
}
