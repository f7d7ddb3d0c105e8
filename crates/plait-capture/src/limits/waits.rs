//! Waits for data that is missing at the receiver, and the data that paths lost.

use std::collections::VecDeque;

/// Shorter waits cost nothing, in nanoseconds.
const MIN_WAIT_NS: i64 = 2_000_000;
/// Waits and losses that are kept.
const MAX_WAITS: usize = 64;
const MAX_LOSSES: usize = 512;

/// Data that a path lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) data: (i64, i64),
    pub(super) path: usize,
}

/// The latest losses.
#[derive(Clone, Default, Debug)]
pub(super) struct Losses(VecDeque<Lost>);

impl Losses {
    pub(super) fn add(&mut self, lost: Lost) {
        if self.0.len() >= MAX_LOSSES {
            self.0.pop_front();
        }
        self.0.push_back(lost);
    }

    /// Returns the path that lost the byte at `position`.
    pub(super) fn path(&self, position: i64) -> Option<usize> {
        let of = |lost: &&Lost| (lost.data.0..lost.data.1).contains(&position);
        self.0.iter().rev().find(of).map(|lost| lost.path)
    }
}

/// A time in which the receiver waited for the byte at `position`.
#[derive(Clone, Copy, Debug)]
struct Wait {
    position: i64,
    from: i64,
    to: i64,
}

/// The latest waits.
#[derive(Clone, Default, Debug)]
pub(super) struct Waits {
    /// Begin of the present wait.
    since: Option<i64>,
    ended: VecDeque<Wait>,
    pub(super) lost: Losses,
}

impl Waits {
    /// Returns the begin of the present wait.
    pub(super) fn since(&self) -> i64 {
        self.since.unwrap_or(i64::MAX)
    }

    /// Ends the present wait, and begins the next one. Returns the times of the ended one.
    pub(super) fn next(&mut self, now: i64) -> (i64, i64) {
        (self.since.replace(now).unwrap_or(now), now)
    }

    /// Keeps a wait for the byte at `position`. The reason may become known later.
    pub(super) fn add(&mut self, position: i64, (from, to): (i64, i64)) {
        if to - from < MIN_WAIT_NS {
            return;
        }
        if self.ended.len() >= MAX_WAITS {
            self.ended.pop_front();
        }
        self.ended.push_back(Wait { position, from, to });
    }

    /// Returns the waits for a byte in a range.
    pub(super) fn of(&self, data: (i64, i64)) -> Vec<(i64, i64)> {
        let of = self.ended.iter().filter(|wait| (data.0..data.1).contains(&wait.position));
        of.map(|wait| (wait.from, wait.to)).collect()
    }
}
