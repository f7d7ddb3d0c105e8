//! One host: an endpoint and the apps that use its connections.

use crate::changes::PathChanges;
use crate::strict_turns::StrictTurns;
use plait_app::{App, AppEvent, Role, Stream, StreamState};
use plait_base::{ConnId, PathId, RandomStream, Time};
use plait_core::{ConnectionState, Endpoint, Entropy, Lent, MemorySettings, PathEntry, PathName};
use plait_sched::Scheduler;

/// Seeded randomness for an endpoint in virtual time.
struct Seeded(RandomStream);

impl Entropy for Seeded {
    fn bits(&mut self) -> u64 {
        self.0.bits()
    }
}

/// An app and its connection, which is `None` until it exists.
#[derive(Debug)]
pub(crate) struct ConnSlot {
    pub(crate) app: Box<dyn App>,
    pub(crate) conn: Option<ConnId>,
    pub(crate) wake: Time,
    /// Session of the connection within the pair; `index` is the connection's place within the
    /// session.
    pub(crate) session: usize,
    pub(crate) index: usize,
}

impl ConnSlot {
    /// Returns true if a client must open this connection once its session has started.
    pub(crate) fn opens(&self) -> bool {
        self.conn.is_none() && (self.index == 0 || self.app.opens())
    }
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) side: Role,
    pub(crate) endpoint: Endpoint,
    /// One slot for each connection of the pair, session by session.
    pub(crate) slots: Vec<ConnSlot>,
    /// Earliest wake-up of the apps ([`Host::note_wakes`]).
    apps_wake: Time,
    /// Earliest wake-up of the host's own: for an app, a path change, a new connection, or the next
    /// segment.
    own_wake: Time,
    /// Time at which the work on the last segment ends; `None` once the host was called then.
    working: Option<Time>,
    pub(crate) app_log: Vec<AppEvent>,
    /// It sends what it owes before its apps run, as a kernel does. So a server acknowledges a request before it
    /// answers.
    pub(crate) sends_first: bool,
    /// Used by clients only.
    pub(crate) changes: PathChanges,
    /// Time at which a client opens its next connection.
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
            sends_first: false,
            changes: PathChanges::default(),
            next_dial: Time::NEVER,
        }
    }

    /// Remembers paths from now on, and begins with these entries. `names` has every path.
    pub(crate) fn remember(
        &mut self,
        settings: &MemorySettings,
        names: impl Iterator<Item = (PathId, PathName)>,
        entries: &[PathEntry],
    ) {
        self.endpoint.remember_paths(settings);
        if let Some(memory) = self.endpoint.path_memory() {
            names.for_each(|(path, name)| memory.name(path, name));
            entries.iter().for_each(|entry| memory.restore(Time::ZERO, entry));
        }
    }

    /// Returns the entries of the path memory, with the values of open subflows.
    pub(crate) fn remembered(&mut self, now: Time) -> Vec<PathEntry> {
        self.endpoint.learn_paths(now);
        self.endpoint.path_memory().map_or_else(Vec::new, |memory| memory.entries(now))
    }

    pub(crate) fn add(&mut self, session: usize, index: usize, app: Box<dyn App>) {
        self.slots.push(ConnSlot { app, conn: None, wake: Time::NEVER, session, index });
    }

    /// Returns the slot of a connection. A server's slot is set when the connection is accepted.
    pub(crate) fn slot_of(&self, conn: ConnId) -> Option<usize> {
        match self.slots.as_slice() {
            [only] => (only.conn == Some(conn)).then_some(0),
            slots => slots.iter().position(|slot| slot.conn == Some(conn)),
        }
    }

    /// Polls the app at `place`. Its events are in `app_log` afterwards. Returns true if all apps of
    /// its session may be done.
    #[inline]
    pub(crate) fn poll_app(&mut self, now: Time, place: usize) -> bool {
        let Host { endpoint, slots, app_log, .. } = self;
        let alone = slots.len() == 1;
        let slot = &mut slots[place];
        if let Some(conn) = slot.conn {
            let app = &mut slot.app;
            Lent::to(endpoint, now, conn, |lent| app.poll(now, &mut End { lent }, app_log));
            let wake = slot.app.wake().unwrap_or(Time::NEVER);
            let same = wake == slot.wake;
            slot.wake = wake;
            // The other reasons to wake up are noted when they change.
            if !(alone && same) {
                if self.side == Role::Client && self.shares_session(place) {
                    self.ask_session(now, place);
                }
                self.note_wakes();
            }
        }
        // Apps of one session share state, so one app can complete another.
        self.slots[place].app.done() || !alone && self.shares_session(place)
    }

    /// Returns true if the slot's session has other connections.
    fn shares_session(&self, place: usize) -> bool {
        let ConnSlot { session, index, .. } = self.slots[place];
        index > 0 || self.slots.get(place + 1).is_some_and(|next| next.session == session)
    }

    /// Updates the wake-ups of all apps of a session after one of them has run.
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

    /// Returns true if an app may have work now.
    #[inline]
    pub(crate) fn calls_apps(&self, now: Time) -> bool {
        self.endpoint.has_news() || self.apps_wake <= now
    }

    /// Returns the earliest wake-up of the apps.
    pub(crate) const fn apps_wake(&self) -> Time {
        self.apps_wake
    }

    /// Recomputes the wake-ups after a change to apps, path changes, new connections or sending
    /// work.
    pub(crate) fn note_wakes(&mut self) {
        self.apps_wake = match self.slots.as_slice() {
            [slot] => slot.wake,
            slots => slots.iter().map(|slot| slot.wake).min().unwrap_or(Time::NEVER),
        };
        let sends = self.working.unwrap_or(Time::NEVER);
        self.own_wake = self.apps_wake.min(self.changes.next()).min(self.next_dial).min(sends);
    }

    /// Returns the time until which the host works on its last segment.
    pub(crate) fn busy_until(&self) -> Time {
        self.working.unwrap_or(Time::ZERO)
    }

    /// Returns true if the work on the previous segment is done, so that the host may send.
    pub(crate) fn may_send(&mut self, now: Time) -> bool {
        let free = self.busy_until() <= now;
        if free && self.working.is_some() {
            self.working = None;
            self.note_wakes();
        }
        free
    }

    /// Keeps the host busy with the segment that it sent, and wakes it at `done`.
    pub(crate) fn works_until(&mut self, done: Time) {
        self.working = Some(done);
        self.note_wakes();
    }

    /// Returns the time of the next wake-up.
    #[inline]
    pub(crate) fn next_wake(&self) -> Time {
        self.endpoint.poll_timeout().min(self.own_wake)
    }

    /// Returns true if every connection in use has closed. A server may keep a connection from an
    /// attempt that its client gave up, because that connection has no peer.
    pub(crate) fn has_left(&self) -> bool {
        let left = |conn| self.endpoint.stats(conn).is_none_or(|stats| stats.over);
        self.slots.iter().filter_map(|slot| slot.conn).all(left)
    }
}

/// One end of a connection, lent to its app. The app detects the end of its connection by the
/// state. Until then, a finished connection accepts no data and returns none.
struct End<'a, 'c, 's> {
    lent: &'a mut Lent<'c, 's>,
}

impl Stream for End<'_, '_, '_> {
    fn state(&self) -> StreamState {
        match self.lent.state() {
            ConnectionState::Connecting => StreamState::Connecting,
            ConnectionState::Open => StreamState::Open,
            ConnectionState::PeerDone => StreamState::PeerDone,
            ConnectionState::Closed => StreamState::Closed,
            ConnectionState::Failed => StreamState::Failed,
        }
    }

    fn write(&mut self, len: u64) -> u64 {
        self.lent.write(len).unwrap_or(0)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> u64 {
        self.lent.write_bytes(bytes).unwrap_or(0) as u64
    }

    fn read_bytes(&mut self, buffer: &mut [u8]) -> u64 {
        self.lent.read(buffer) as u64
    }

    fn readable(&self) -> u64 {
        self.lent.readable()
    }

    fn read(&mut self, max: u64) -> u64 {
        self.lent.skip(max)
    }

    fn unacked(&self) -> u64 {
        self.lent.unacked()
    }

    fn finish(&mut self) {
        self.lent.finish();
    }

    fn segment_payload(&self) -> u64 {
        self.lent.segment_payload()
    }

    fn subflows(&self) -> u32 {
        self.lent.stats().subflows.iter().filter(|subflow| subflow.up).count() as u32
    }

    fn subflows_ready(&self) -> bool {
        self.lent.stats().subflows_ready
    }

    fn warm_up(&mut self, on: bool) {
        let turns = || -> Box<dyn Scheduler> { Box::new(StrictTurns::default()) };
        self.lent.set_scheduler(on.then(turns));
    }

    fn initial_window_at(&self) -> Option<Time> {
        self.lent.stats().initial_window_at
    }

    fn reset_windows(&mut self) {
        self.lent.reset_windows();
    }
}
