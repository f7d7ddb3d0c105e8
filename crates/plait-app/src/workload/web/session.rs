//! State that the connections of a client share.

use super::page::Page;
use super::walk::Walk;
use plait_base::Time;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session, shared by its connections.
pub(super) type Shared = Arc<Mutex<Session>>;

/// Locks a session. Each connection holds the lock only briefly.
pub(super) fn look(session: &Shared) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of a connection of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConnState {
    /// Not opened.
    Unopened,
    /// Opened, and without a request.
    Free,
    /// It has a pending request.
    Busy,
    /// Closed by the client.
    Left,
}

/// A page during loading over one or more connections.
#[derive(Debug)]
pub(super) struct Session {
    page: Arc<Page>,
    think: bool,
    /// Created at the first poll.
    walk: Option<Walk>,
    conns: Vec<ConnState>,
    /// A connection has reported that the page is loaded.
    told: bool,
    failed: bool,
}

impl Session {
    pub(super) fn new(page: Arc<Page>, think: bool, conns: usize) -> Session {
        let conns = vec![ConnState::Unopened; conns];
        Session { page, think, walk: None, conns, told: false, failed: false }
    }

    /// Processes all events that are due by now. The connection counts as opened from now on.
    pub(super) fn advance(&mut self, now: Time, index: usize) {
        if self.conns[index] == ConnState::Unopened {
            self.conns[index] = ConnState::Free;
        }
        let (page, think) = (&self.page, self.think);
        self.walk.get_or_insert_with(|| Walk::new(Arc::clone(page), think, now)).advance(now);
    }

    /// Returns the time of the next event.
    pub(super) fn next(&self) -> Option<Time> {
        self.walk.as_ref().and_then(Walk::next).filter(|_| !self.failed)
    }

    /// Returns whether the page is loaded.
    pub(super) fn is_over(&self) -> bool {
        self.walk.as_ref().is_some_and(Walk::is_over)
    }

    /// Returns whether the page is loaded, or loading has failed.
    pub(super) fn is_settled(&self) -> bool {
        self.failed || self.is_over()
    }

    /// Returns true once: the first time after the page is loaded.
    pub(super) fn tell_loaded(&mut self) -> bool {
        self.is_over() && !core::mem::replace(&mut self.told, true)
    }

    /// Notes that a connection failed, so that the page cannot be loaded.
    pub(super) fn fail(&mut self) {
        self.failed = true;
    }

    /// Notes that the client closed a connection.
    pub(super) fn leave(&mut self, index: usize) {
        self.conns[index] = ConnState::Left;
    }

    /// Returns whether objects wait for a request.
    pub(super) fn has_wanted(&self) -> bool {
        self.wanted() > 0 && !self.failed
    }

    fn wanted(&self) -> usize {
        self.walk.as_ref().map_or(0, Walk::wanted)
    }

    /// Returns whether to open a connection: more objects wait than connections are free or will be
    /// opened before this one.
    pub(super) fn opens(&self, index: usize) -> bool {
        let free = self.conns.iter().filter(|it| **it == ConnState::Free).count();
        let before = self.conns[..index].iter().filter(|it| **it == ConnState::Unopened).count();
        !self.is_settled()
            && self.conns[index] == ConnState::Unopened
            && self.wanted() > free + before
    }

    /// Returns whether a connection was never opened and never will be.
    pub(super) fn needs_not(&self, index: usize) -> bool {
        self.is_settled() && self.conns[index] == ConnState::Unopened
    }

    /// Assigns the next object to a connection, which must request it.
    pub(super) fn take(&mut self, index: usize) -> Option<u32> {
        let object = self.walk.as_mut()?.take()?;
        self.conns[index] = ConnState::Busy;
        Some(object)
    }

    /// Notes the first bytes of an object.
    pub(super) fn on_first_bytes(&mut self, now: Time, object: u32) {
        if let Some(walk) = &mut self.walk {
            walk.on_first_bytes(now, object);
        }
    }

    /// Notes the last byte of an object.
    pub(super) fn on_fetched(&mut self, now: Time, index: usize, object: u32) {
        self.conns[index] = ConnState::Free;
        if let Some(walk) = &mut self.walk {
            walk.on_fetched(now, object);
        }
    }
}
