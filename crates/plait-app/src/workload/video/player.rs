//! What is buffered and what is shown.

use crate::workload::AppEvent;
use plait_base::{Span, Time};

/// Whether the picture moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Picture {
    /// Not yet: the first chunks are being buffered.
    Starting,
    Moving,
    /// The buffer ran dry.
    Stalled,
}

/// The buffer of a player, in time that it lasts.
#[derive(Clone, Debug)]
pub(super) struct Player {
    picture: Picture,
    /// What was there at `at`.
    level: Span,
    at: Time,
    /// It starts with this much.
    start: Span,
    /// No chunk is missing any more.
    whole: bool,
}

impl Player {
    /// One that starts when it has `start`.
    pub(super) const fn new(start: Span) -> Player {
        Player {
            picture: Picture::Starting,
            level: Span::ZERO,
            at: Time::ZERO,
            start,
            whole: false,
        }
    }

    /// What is buffered now.
    pub(super) fn level(&self, now: Time) -> Span {
        match self.picture {
            Picture::Moving => self.level.minus(now.since(self.at)),
            Picture::Starting | Picture::Stalled => self.level,
        }
    }

    /// A chunk that lasts `lasts` is there; `last` if it is the last one.
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

    /// Notices that the buffer has run dry.
    pub(super) fn settle(&mut self, now: Time, log: &mut Vec<AppEvent>) {
        if self.dry_at().is_some_and(|dry| dry <= now) {
            self.picture = Picture::Stalled;
            self.level = Span::ZERO;
            self.at = now;
            log.push(AppEvent::Stalled);
        }
    }

    /// When the buffer runs dry if nothing comes.
    pub(super) fn dry_at(&self) -> Option<Time> {
        (self.picture == Picture::Moving && !self.whole).then(|| self.at + self.level)
    }

    /// When less than `most` is buffered: now, or later. `None` if it never is.
    pub(super) fn below(&self, most: Span, now: Time) -> Option<Time> {
        let level = self.level(now);
        if level < most {
            return Some(now);
        }
        let excess = level.minus(most) + Span::from_nanos(1);
        (self.picture == Picture::Moving).then(|| now + excess)
    }
}
