//! Periods of a path with one limit, and their log.

use crate::subflow::Mark;
use std::collections::{BTreeMap, VecDeque};

/// Periods that are kept. Beyond it, a period joins the latest one of its kind.
const MAX_PERIODS: usize = 20_000;
/// Periods of one kind with a smaller pause between them are one stall, in nanoseconds.
const PAUSE_NS: i64 = 100_000_000;

/// The limit of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Label {
    /// The rate of the link: packets wait in its queue.
    Link,
    /// The congestion window, which had no loss yet.
    Ramp,
    /// The first loss is being repaired.
    FirstRecovery,
    /// The window after the first loss.
    AfterFirst,
    /// A later loss is being repaired.
    Recovery,
    /// The window after a later loss.
    AfterLoss,
    /// Data is on its way and nothing is acknowledged.
    Silent,
    /// The path was reset.
    Reset,
    /// The receive window is full, and nothing is missing.
    Window,
    /// Later data has arrived, and another path has the missing data. `window` is true if the receive window
    /// is full, and `buffer` if a log shows that the send buffer is full.
    Behind { window: bool, buffer: bool },
    /// After the last new data, another path has the missing data.
    Tail,
    /// Nothing is outstanding.
    Idle,
    /// Some data is outstanding, less than the path takes.
    Short,
    /// The other paths are full and this one is not.
    Unused,
    /// By a log, the scheduler waits although this path has room.
    Declined,
    /// By a log, the send buffer is full.
    BufferFull,
    /// By a log, the sender has no unsent data.
    NothingToSend,
    /// The path is not open yet.
    BeforeJoin,
}

impl Label {
    /// Returns true if the path could have carried more.
    pub(crate) const fn has_room(self) -> bool {
        matches!(
            self,
            Label::Short
                | Label::Idle
                | Label::Unused
                | Label::Behind { .. }
                | Label::Window
                | Label::BufferFull
                | Label::NothingToSend
                | Label::Declined
        )
    }
}

/// A period of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) label: Label,
    /// The path that is the cause; none if it is the connection.
    pub(crate) blamed: Option<usize>,
    /// The path with the next byte that the receiver expects.
    pub(crate) holder: Option<usize>,
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// Bytes that the path delivered.
    pub(crate) bytes: u64,
    /// The packets that begin and end it.
    pub(crate) packets: (Mark, Mark),
    /// Largest window of the receiver, in bytes.
    pub(crate) window: i64,
    /// Largest amount of unacknowledged data, in bytes.
    pub(crate) unacked: i64,
    /// Sum of the unacknowledged bytes, each times its nanoseconds.
    pub(crate) byte_time: f64,
}

impl Period {
    /// Returns the parts before and after a time. The bytes are divided like the time.
    pub(crate) fn split(self, at: i64) -> (Period, Period) {
        let at = at.clamp(self.from, self.to);
        let whole = (self.to - self.from).max(1) as f64;
        let bytes = (self.bytes as f64 * (at - self.from) as f64 / whole) as u64;
        let byte_time = self.byte_time * (at - self.from) as f64 / whole;
        let before = Period { to: at, bytes, byte_time, ..self };
        let bytes = self.bytes - bytes.min(self.bytes);
        (before, Period { from: at, bytes, byte_time: self.byte_time - byte_time, ..self })
    }

    /// Returns true if it has a duration.
    pub(crate) const fn is_some(&self) -> bool {
        self.to > self.from
    }

    /// Returns true if the next period has the same kind, and both get the same label in the log. If a path waits for another
    /// path, the label depends on the length of the period.
    pub(crate) fn adds_up_with(&self, next: &Period) -> bool {
        let waits = |it: &Period| match it.label {
            Label::Behind { .. } | Label::Tail => true,
            label => label.has_room() && it.holder.is_some(),
        };
        (self.label, self.blamed, self.to) == (next.label, next.blamed, next.from)
            && !waits(self)
            && !waits(next)
    }

    /// Takes a period into this one, as the log does: the packet that ends both is the later one.
    pub(crate) fn add_up(&mut self, other: &Period) {
        let last = self.packets.1;
        self.extend(other);
        if last.at_ns > other.packets.1.at_ns {
            self.packets.1 = last;
        }
    }

    /// Takes the next period into this one.
    pub(crate) fn extend(&mut self, next: &Period) {
        self.to = self.to.max(next.to);
        self.bytes += next.bytes;
        self.window = self.window.max(next.window);
        self.unacked = self.unacked.max(next.unacked);
        self.byte_time += next.byte_time;
        self.packets.1 = next.packets.1;
    }
}

/// Joins periods that add up in the log. Periods on different sides of one of the times `ends` stay apart, because they
/// end in different ways.
pub(super) fn join(periods: &mut VecDeque<Period>, ends: [i64; 3]) {
    let sides = |period: &Period| ends.map(|end| period.from >= end);
    // The next period may extend the latest one.
    let latest = periods.pop_back();
    let mut joined: VecDeque<Period> = VecDeque::new();
    for period in std::mem::take(periods) {
        match joined.back_mut() {
            Some(last) if last.adds_up_with(&period) && sides(last) == sides(&period) => {
                last.add_up(&period);
            }
            _ => joined.push_back(period),
        }
    }
    joined.extend(latest);
    *periods = joined;
}

/// Time and bytes of one path.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Share {
    /// Time in nanoseconds.
    pub(crate) time: i64,
    /// Bytes that the path delivered in this time.
    pub(crate) bytes: u64,
}

/// The shares of the paths, in the order of their numbers. Most stalls have one or two.
#[derive(Clone, Default, Debug)]
pub(crate) struct Shares(Vec<(usize, Share)>);

impl Shares {
    /// Returns the share of a path.
    fn of(&mut self, path: usize) -> &mut Share {
        let at = match self.0.binary_search_by_key(&path, |(path, _)| *path) {
            Ok(at) => at,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (path, Share::default()));
                at
            }
        };
        &mut self.0[at].1
    }

    /// Returns the number of each path and its share.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Share)> {
        self.0.iter().copied()
    }
}

/// A stall: periods of one kind, of all paths, without a longer pause between them.
#[derive(Clone, Debug)]
pub(crate) struct Stall {
    pub(crate) whole: Period,
    pub(crate) shares: Shares,
}

impl Stall {
    /// Returns the mean amount of unacknowledged data, in bytes.
    pub(crate) fn mean_unacked(&self) -> f64 {
        let time: i64 = self.shares.iter().map(|(_, share)| share.time).sum();
        self.whole.byte_time / time.max(1) as f64
    }
}

/// The stalls of one direction.
#[derive(Clone, Default, Debug)]
pub(crate) struct Log {
    pub(crate) stalls: Vec<Stall>,
    /// The latest stall of each label and blamed path.
    latest: BTreeMap<(Label, Option<usize>), usize>,
}

impl Log {
    /// Adds a period of `path`.
    pub(crate) fn add(&mut self, path: usize, period: &Period) {
        let key = (period.label, period.blamed);
        let full = self.stalls.len() >= MAX_PERIODS;
        let latest = self.latest.get(&key).copied();
        let close = latest.filter(|at| full || period.from - self.stalls[*at].whole.to < PAUSE_NS);
        let at = match close {
            Some(at) => {
                let whole = &mut self.stalls[at].whole;
                if period.from < whole.from {
                    (whole.from, whole.packets.0) = (period.from, period.packets.0);
                }
                whole.add_up(period);
                at
            }
            None => {
                self.stalls.push(Stall { whole: *period, shares: Shares::default() });
                self.stalls.len() - 1
            }
        };
        self.latest.insert(key, at);
        let share = self.stalls[at].shares.of(path);
        share.time += period.to - period.from;
        share.bytes += period.bytes;
    }
}
