//! What the connections of a client know together.

use super::page::Page;
use super::walk::Walk;
use plait_base::Time;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session, for each of its connections.
pub(super) type Shared = Arc<Mutex<Session>>;

/// Looks into a session. Each connection asks for a moment only, so nobody waits for long.
pub(super) fn look(session: &Shared) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a connection of a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConnState {
    /// Not dialled.
    Unopened,
    /// Dialled, and without a request.
    Free,
    /// It has a request.
    Busy,
    /// It has taken leave.
    Left,
}

/// A page that is being loaded over some connections.
#[derive(Debug)]
pub(super) struct Session {
    page: Arc<Page>,
    think: bool,
    /// From the first poll on.
    walk: Option<Walk>,
    conns: Vec<ConnState>,
    /// Somebody has said that the page is loaded.
    told: bool,
    failed: bool,
}

impl Session {
    pub(super) fn new(page: Arc<Page>, think: bool, conns: usize) -> Session {
        let conns = vec![ConnState::Unopened; conns];
        Session { page, think, walk: None, conns, told: false, failed: false }
    }

    /// A connection was dialled, or is polled again: what is due by now happens.
    pub(super) fn advance(&mut self, now: Time, index: usize) {
        if self.conns[index] == ConnState::Unopened {
            self.conns[index] = ConnState::Free;
        }
        let (page, think) = (&self.page, self.think);
        self.walk.get_or_insert_with(|| Walk::new(Arc::clone(page), think, now)).advance(now);
    }

    /// When something happens by itself.
    pub(super) fn next(&self) -> Option<Time> {
        self.walk.as_ref().and_then(Walk::next).filter(|_| !self.failed)
    }

    /// Whether the page is loaded.
    pub(super) fn is_over(&self) -> bool {
        self.walk.as_ref().is_some_and(Walk::is_over)
    }

    /// Whether nothing is left to do: the page is loaded, or never will be.
    pub(super) fn is_settled(&self) -> bool {
        self.failed || self.is_over()
    }

    /// The first time after the page was loaded.
    pub(super) fn tell_loaded(&mut self) -> bool {
        self.is_over() && !core::mem::replace(&mut self.told, true)
    }

    /// A connection broke: the page will not be loaded.
    pub(super) fn fail(&mut self) {
        self.failed = true;
    }

    /// A connection takes leave.
    pub(super) fn leave(&mut self, index: usize) {
        self.conns[index] = ConnState::Left;
    }

    /// Whether objects wait to be asked for.
    pub(super) fn has_wanted(&self) -> bool {
        self.wanted() > 0 && !self.failed
    }

    fn wanted(&self) -> usize {
        self.walk.as_ref().map_or(0, Walk::wanted)
    }

    /// Whether a connection is to be dialled: more objects wait than connections are free or about to
    /// be dialled.
    pub(super) fn opens(&self, index: usize) -> bool {
        let free = self.conns.iter().filter(|it| **it == ConnState::Free).count();
        let before = self.conns[..index].iter().filter(|it| **it == ConnState::Unopened).count();
        !self.is_settled()
            && self.conns[index] == ConnState::Unopened
            && self.wanted() > free + before
    }

    /// Whether a connection was never opened and never will be.
    pub(super) fn needs_not(&self, index: usize) -> bool {
        self.is_settled() && self.conns[index] == ConnState::Unopened
    }

    /// Hands the next object to a connection, which asks for it.
    pub(super) fn take(&mut self, index: usize) -> Option<u32> {
        let object = self.walk.as_mut()?.take()?;
        self.conns[index] = ConnState::Busy;
        Some(object)
    }

    /// The first bytes of an object came.
    pub(super) fn on_first_bytes(&mut self, now: Time, object: u32) {
        if let Some(walk) = &mut self.walk {
            walk.on_first_bytes(now, object);
        }
    }

    /// The last bytes of an object came.
    pub(super) fn on_fetched(&mut self, now: Time, index: usize, object: u32) {
        self.conns[index] = ConnState::Free;
        if let Some(walk) = &mut self.walk {
            walk.on_fetched(now, object);
        }
    }
}
