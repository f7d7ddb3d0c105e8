//! One host: an endpoint and the apps that use its connections.

use crate::changes::PathChanges;
use crate::strict_turns::StrictTurns;
use plait_app::{App, AppEvent, Role, Stream, StreamState};
use plait_base::{ConnId, RandomStream, Time};
use plait_core::{ConnectionState, Endpoint, Entropy};
use plait_sched::Scheduler;

/// Seeded randomness for an endpoint in virtual time.
struct Seeded(RandomStream);

impl Entropy for Seeded {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }
}

/// An app and the connection it uses, once there is one.
#[derive(Debug)]
pub(crate) struct ConnSlot {
    pub(crate) app: Box<dyn App>,
    pub(crate) conn: Option<ConnId>,
    pub(crate) wake: Time,
    /// Which session of the pair the connection belongs to, and which connection of it this is.
    pub(crate) session: usize,
    pub(crate) index: usize,
}

impl ConnSlot {
    /// Whether a client is to dial it, where its session has begun.
    pub(crate) fn opens(&self) -> bool {
        self.conn.is_none() && (self.index == 0 || self.app.opens())
    }
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) side: Role,
    pub(crate) endpoint: Endpoint,
    /// One for each connection of the pair: those of the first session, then those of the next.
    pub(crate) slots: Vec<ConnSlot>,
    /// When the first of the apps wants to be called ([`Host::note_wakes`]).
    apps_wake: Time,
    /// When something of the host's own is to be done: by an app, for a path, to dial, or to send on.
    own_wake: Time,
    /// When it is done with the segment that it sent last, until it is called then.
    working: Option<Time>,
    pub(crate) app_log: Vec<AppEvent>,
    /// Of a client.
    pub(crate) changes: PathChanges,
    /// When a client dials the next of its connections.
    pub(crate) next_dial: Time,
}

impl Host {
    pub(crate) fn new(side: Role, pair: usize, seed: u64) -> Host {
        let name = if side == Role::Client { "client" } else { "server" };
        let stream = RandomStream::new(seed, &["host", name, &pair.to_string()]);
        let endpoint = Endpoint::new(Box::new(Seeded(stream)));
        Host {
            side,
            endpoint,
            slots: Vec::new(),
            apps_wake: Time::NEVER,
            own_wake: Time::NEVER,
            working: None,
            app_log: Vec::new(),
            changes: PathChanges::default(),
            next_dial: Time::NEVER,
        }
    }

    pub(crate) fn add(&mut self, session: usize, index: usize, app: Box<dyn App>) {
        self.slots.push(ConnSlot { app, conn: None, wake: Time::NEVER, session, index });
    }

    /// The slot of a connection: the client's by its id, the server's by the port that it listens
    /// on.
    pub(crate) fn slot_of(&self, conn: ConnId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.conn == Some(conn))
    }

    /// Lets the app at `place` act. Its events are in `app_log` afterwards.
    #[inline]
    pub(crate) fn poll_app(&mut self, now: Time, place: usize) {
        let Host { endpoint, slots, app_log, .. } = self;
        let slot = &mut slots[place];
        let Some(conn) = slot.conn else { return };
        let mut stream = End { endpoint, conn, now };
        slot.app.poll(now, &mut stream, app_log);
        slot.wake = slot.app.wake().unwrap_or(Time::NEVER);
        if self.side == Role::Client && self.shares_session(place) {
            self.ask_session(now, place);
        }
        self.note_wakes();
    }

    /// Whether all apps of a session may be done, now that the one at `place` has acted: it is done, or
    /// others may be since it has told them something.
    pub(crate) fn may_be_done(&self, place: usize) -> bool {
        self.slots[place].app.done() || self.shares_session(place)
    }

    /// Whether the slot's session has other connections.
    fn shares_session(&self, place: usize) -> bool {
        let ConnSlot { session, index, .. } = self.slots[place];
        index > 0 || self.slots.get(place + 1).is_some_and(|next| next.session == session)
    }

    /// One of a session's apps has acted: asks all of them what they want.
    fn ask_session(&mut self, now: Time, place: usize) {
        let ConnSlot { session, index, .. } = self.slots[place];
        let mut opens = false;
        let slots = self.slots[place - index..].iter_mut();
        for slot in slots.take_while(|slot| slot.session == session) {
            opens |= slot.opens();
            if slot.conn.is_some() {
                slot.wake = slot.app.wake().unwrap_or(Time::NEVER);
            }
        }
        if opens {
            self.next_dial = self.next_dial.min(now);
        }
    }

    /// Whether an app may have something to do now.
    #[inline]
    pub(crate) fn calls_apps(&self, now: Time) -> bool {
        self.endpoint.has_news() || self.apps_wake <= now
    }

    /// When the first of its apps wants to be called.
    pub(crate) const fn apps_wake(&self) -> Time {
        self.apps_wake
    }

    /// The times at which apps want to be called, at which paths change or at which connections are
    /// dialled have changed.
    pub(crate) fn note_wakes(&mut self) {
        self.apps_wake = match self.slots.as_slice() {
            [slot] => slot.wake,
            slots => slots.iter().map(|slot| slot.wake).min().unwrap_or(Time::NEVER),
        };
        let sends = self.working.unwrap_or(Time::NEVER);
        self.own_wake = self.apps_wake.min(self.changes.next()).min(self.next_dial).min(sends);
    }

    /// Until when it works on the segment that it sent last.
    pub(crate) fn busy_until(&self) -> Time {
        self.working.unwrap_or(Time::ZERO)
    }

    /// Whether it may send, as its work on the segment before is done.
    pub(crate) fn may_send(&mut self, now: Time) -> bool {
        let free = self.busy_until() <= now;
        if free && self.working.is_some() {
            self.working = None;
            self.note_wakes();
        }
        free
    }

    /// It has sent a segment, and wants to be called when its work on it is done.
    pub(crate) fn works_until(&mut self, done: Time) {
        self.working = Some(done);
        self.note_wakes();
    }

    /// When this host wants to be called.
    #[inline]
    pub(crate) fn next_wake(&self) -> Time {
        self.endpoint.poll_timeout().min(self.own_wake)
    }

    /// Whether every connection in use has taken leave. The ghost of an attempt that its client has
    /// given up may stay: nobody is at its other end.
    pub(crate) fn has_left(&self) -> bool {
        let left = |conn| self.endpoint.stats(conn).is_none_or(|stats| stats.over);
        self.slots.iter().filter_map(|slot| slot.conn).all(left)
    }
}

/// One end of a connection, lent to its app. An app sees the end of its connection by the state; until it
/// looks, a connection that is over takes and gives no data.
struct End<'a> {
    endpoint: &'a mut Endpoint,
    conn: ConnId,
    now: Time,
}

impl Stream for End<'_> {
    fn state(&self) -> StreamState {
        match self.endpoint.state(self.conn) {
            Ok(ConnectionState::Connecting) => StreamState::Connecting,
            Ok(ConnectionState::Open) => StreamState::Open,
            Ok(ConnectionState::PeerDone) => StreamState::PeerDone,
            Ok(ConnectionState::Closed) => StreamState::Closed,
            Ok(ConnectionState::Failed) | Err(_) => StreamState::Failed,
        }
    }

    fn write(&mut self, len: u64) -> u64 {
        self.endpoint.write(self.now, self.conn, len).unwrap_or(0)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> u64 {
        self.endpoint.write_bytes(self.now, self.conn, bytes).unwrap_or(0) as u64
    }

    fn read_bytes(&mut self, buffer: &mut [u8]) -> u64 {
        self.endpoint.read(self.now, self.conn, buffer).unwrap_or(0) as u64
    }

    fn readable(&self) -> u64 {
        self.endpoint.readable(self.conn).unwrap_or(0)
    }

    fn read(&mut self, max: u64) -> u64 {
        self.endpoint.skip(self.now, self.conn, max).unwrap_or(0)
    }

    fn unacked(&self) -> u64 {
        self.endpoint.unacked(self.conn).unwrap_or(0)
    }

    fn finish(&mut self) {
        self.endpoint.finish(self.now, self.conn).ok();
    }

    fn segment_payload(&self) -> u64 {
        self.endpoint.segment_payload(self.conn).unwrap_or(0)
    }

    fn subflows(&self) -> u32 {
        self.endpoint
            .stats(self.conn)
            .map_or(0, |stats| stats.subflows.iter().filter(|subflow| subflow.up).count() as u32)
    }

    fn subflows_ready(&self) -> bool {
        self.endpoint.stats(self.conn).is_some_and(|stats| stats.subflows_ready)
    }

    fn warm_up(&mut self, on: bool) {
        let turns = || -> Box<dyn Scheduler> { Box::new(StrictTurns::default()) };
        self.endpoint.set_scheduler(self.now, self.conn, on.then(turns)).ok();
    }

    fn initial_window_at(&self) -> Option<Time> {
        self.endpoint.stats(self.conn).and_then(|stats| stats.initial_window_at)
    }

    fn reset_windows(&mut self) {
        self.endpoint.reset_windows(self.now, self.conn);
    }
}
