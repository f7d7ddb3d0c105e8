//! The playback buffer.

use crate::workload::AppEvent;
use plait_base::{Span, Time};

/// State of playback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Picture {
    /// Not started: the player buffers the first chunks.
    Starting,
    Moving,
    /// The buffer is empty.
    Stalled,
}

/// The buffer of a player, measured in playing time.
#[derive(Clone, Debug)]
pub(super) struct Player {
    picture: Picture,
    /// Buffered playing time at `at`.
    level: Span,
    at: Time,
    /// Playback starts when this much is buffered.
    start: Span,
    /// All chunks have arrived.
    whole: bool,
}

impl Player {
    /// Creates a player that starts when `start` is buffered.
    pub(super) const fn new(start: Span) -> Player {
        Player {
            picture: Picture::Starting,
            level: Span::ZERO,
            at: Time::ZERO,
            start,
            whole: false,
        }
    }

    /// Returns the buffered playing time.
    pub(super) fn level(&self, now: Time) -> Span {
        match self.picture {
            Picture::Moving => self.level.minus(now.since(self.at)),
            Picture::Starting | Picture::Stalled => self.level,
        }
    }

    /// Adds a chunk that plays for `lasts`; `last` marks the last chunk.
    pub(super) fn fill(&mut self, now: Time, lasts: Span, last: bool, log: &mut Vec<AppEvent>) {
        self.level = self.level(now) + lasts;
        self.at = now;
        self.whole |= last;
        let moves = match self.picture {
            Picture::Starting => self.level >= self.start || last,
            Picture::Stalled => true,
            Picture::Moving => false,
        };
        if moves {
            self.picture = Picture::Moving;
            log.push(AppEvent::Playing);
        }
    }

    /// Stops playback if the buffer is empty by now.
    pub(super) fn settle(&mut self, now: Time, log: &mut Vec<AppEvent>) {
        if self.dry_at().is_some_and(|dry| dry <= now) {
            self.picture = Picture::Stalled;
            self.level = Span::ZERO;
            self.at = now;
            log.push(AppEvent::Stalled);
        }
    }

    /// Returns the time at which the buffer becomes empty if no chunk arrives.
    pub(super) fn dry_at(&self) -> Option<Time> {
        (self.picture == Picture::Moving && !self.whole).then(|| self.at + self.level)
    }

    /// Returns the earliest time at which less than `most` is buffered. Returns `None` if playback
    /// stands still above that level.
    pub(super) fn below(&self, most: Span, now: Time) -> Option<Time> {
        let level = self.level(now);
        if level < most {
            return Some(now);
        }
        let excess = level.minus(most) + Span::from_nanos(1);
        (self.picture == Picture::Moving).then(|| now + excess)
    }
}
