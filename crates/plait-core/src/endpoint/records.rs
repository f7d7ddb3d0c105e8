//! The connections of an endpoint.

use crate::conn::Connection;
use crate::context::{Context, Shared};
use crate::endpoint::wakes::{Slot, Wakes};
use crate::stats::Totals;
use crate::tcp::remembered::Remembered;
use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use plait_base::{ConnId, Time};

/// Largest number of released connections that have not ended.
const MAX_CLOSING: usize = 8_192;
/// How many of the oldest of them are checked to select one to end.
const LOOKS: usize = 8;

/// A connection and its entries in the endpoint's tables.
pub(super) struct Record {
    id: ConnId,
    /// The token registered for it.
    pub(super) token: u32,
    /// The addresses registered for it.
    pub(super) addresses: Vec<u64>,
    /// Its wake-up time unless it is busy, and the handle of that time.
    wake: Time,
    slot: Slot,
    /// Its user has its identifier: it was dialled or accepted.
    told: bool,
    /// Its user has released it.
    closing: bool,
    /// It may have something to send, and its timers may have changed since the last update.
    busy: bool,
    /// It is in the list of connections with news.
    newsworthy: bool,
    pub(super) conn: Connection,
}

/// Connections by identifier. Removed connections leave nothing behind. The cost per packet does
/// not depend on their number, except for the logarithm of a search.
#[derive(Default)]
pub(super) struct Records {
    /// In order of identifiers.
    #[expect(clippy::vec_box, reason = "they are many, and moved when one goes")]
    list: Vec<Box<Record>>,
    /// The least identifier.
    first: u32,
    /// Identifier of the next connection. Identifiers increase, and are reused only after they
    /// wrap.
    next: u32,
    /// Connections not yet accepted.
    untold: usize,
    /// Released connections, oldest first; removed ones may be among them.
    released: VecDeque<ConnId>,
    /// How many released connections still exist.
    closing: usize,
    /// Traffic of removed connections.
    gone: Totals,
    /// Connections that may have something to send, the next one last.
    busy: Vec<ConnId>,
    wakes: Wakes,
    /// Connections that may have news, the least identifier first.
    news: BinaryHeap<Reverse<ConnId>>,
    /// Connections whose timers are due; empty between calls.
    due: Vec<ConnId>,
}

/// A connection in use, with the tables that record its changes.
pub(super) struct Entry<'a> {
    record: &'a mut Record,
    busy: &'a mut Vec<ConnId>,
    wakes: &'a mut Wakes,
    news: &'a mut BinaryHeap<Reverse<ConnId>>,
}

impl Entry<'_> {
    #[inline]
    pub(super) fn conn(&mut self) -> &mut Connection {
        &mut self.record.conn
    }

    /// Notes a change: the connection may have something to send, or news.
    #[inline]
    pub(super) fn on_touched(&mut self) {
        if !self.record.busy {
            self.record.busy = true;
            self.busy.push(self.record.id);
        }
        self.on_news();
    }

    /// Notes an input. `sends` is false if it has certainly caused nothing to send.
    #[inline(always)]
    pub(super) fn on_input(&mut self, sends: bool, ctx: &mut Context<'_>) {
        if sends {
            return self.on_touched();
        }
        if !self.record.busy {
            debug_assert!(self.record.conn.poll_transmit(ctx).is_none());
            self.on_timers();
        }
        self.on_news();
    }

    /// Notes that the connection may have news.
    #[inline]
    pub(super) fn on_news(&mut self) {
        if self.record.conn.notices().has_news() && !self.record.newsworthy {
            self.record.newsworthy = true;
            self.news.push(Reverse(self.record.id));
        }
    }

    /// Notes that the first busy connection has nothing to send.
    #[inline]
    pub(super) fn on_idle(&mut self) {
        self.busy.pop();
        self.record.busy = false;
        self.on_timers();
    }

    /// Notes that the timers of the connection may have changed.
    #[inline]
    fn on_timers(&mut self) {
        let wake = self.record.conn.poll_timeout();
        if self.record.wake != wake {
            self.record.wake = wake;
            self.wakes.set(self.record.slot, wake);
        }
    }
}

impl Records {
    /// Capacity in connections that is never given back.
    const MIN_CAPACITY: usize = 64;

    #[inline]
    fn place(&self, id: ConnId) -> Result<usize, usize> {
        // Identifiers are consecutive: if none was removed, the position follows from the
        // identifier.
        let guess = id.0.wrapping_sub(self.first) as usize;
        match self.list.get(guess) {
            Some(record) if record.id == id => Ok(guess),
            _ => self.search(id),
        }
    }

    #[inline(never)]
    fn search(&self, id: ConnId) -> Result<usize, usize> {
        self.list.binary_search_by_key(&id, |record| record.id)
    }

    /// Returns the identifier of the next connection.
    pub(super) fn next_id(&self) -> ConnId {
        let mut id = ConnId(self.next);
        while self.place(id).is_ok() {
            id = ConnId(id.0.wrapping_add(1));
        }
        id
    }

    /// Adds a connection under [`Records::next_id`].
    pub(super) fn add(&mut self, conn: Connection) -> ConnId {
        let id = self.next_id();
        let (told, token, at) =
            (conn.paths().client, conn.data().keys().local.token(), conn.poll_timeout());
        self.next = id.0.wrapping_add(1);
        if !told {
            self.untold += 1;
        }
        let record = Record {
            id,
            token,
            addresses: Vec::new(),
            wake: at,
            slot: self.wakes.add(id, at),
            told,
            closing: false,
            busy: false,
            newsworthy: false,
            conn,
        };
        let (Ok(at) | Err(at)) = self.place(id);
        self.list.insert(at, Box::new(record));
        self.first = self.list[0].id.0;
        id
    }

    #[inline]
    pub(super) fn record(&mut self, id: ConnId) -> Option<&mut Record> {
        let at = self.place(id).ok()?;
        self.list.get_mut(at).map(|record| &mut **record)
    }

    #[inline]
    pub(super) fn find(&self, id: ConnId) -> Option<&Connection> {
        let at = self.place(id).ok()?;
        self.list.get(at).map(|record| &record.conn)
    }

    pub(super) fn find_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        Some(&mut self.record(id)?.conn)
    }

    /// Returns a connection and its table entries, found once for all operations.
    #[inline]
    pub(super) fn entry(&mut self, id: ConnId) -> Option<Entry<'_>> {
        let at = self.place(id).ok()?;
        let Records { list, busy, wakes, news, .. } = self;
        Some(Entry { record: list.get_mut(at)?, busy, wakes, news })
    }

    /// Returns the next connection to poll for segments.
    pub(super) fn busiest(&self) -> Option<ConnId> {
        self.busy.last().copied()
    }

    /// Removes [`Records::busiest`], which no longer exists.
    pub(super) fn forget_busiest(&mut self) {
        self.busy.pop();
    }

    /// Notes that the timers of a connection may have changed.
    pub(super) fn on_timers(&mut self, id: ConnId) {
        if let Some(mut entry) = self.entry(id)
            && !entry.record.busy
        {
            entry.on_timers();
        }
    }

    /// Returns the earliest wake-up time.
    #[inline(always)]
    pub(super) fn next_wake(&self) -> Time {
        let busy = self.busy.iter().filter_map(|id| self.find(*id));
        busy.fold(self.wakes.first(), |first, conn| first.min(conn.poll_timeout()))
    }

    /// Returns the connections whose timers are due, in order of identifiers. [`Records::keep_due`]
    /// takes the list back.
    pub(super) fn take_due(&mut self, now: Time) -> Vec<ConnId> {
        for busy in 0..self.busy.len() {
            if let Some(mut entry) = self.entry(self.busy[busy]) {
                entry.on_timers();
            }
        }
        let mut due = core::mem::take(&mut self.due);
        self.wakes.each_due(now, |id| due.push(id));
        due.sort_unstable();
        due
    }

    pub(super) fn keep_due(&mut self, mut due: Vec<ConnId>) {
        due.clear();
        self.due = due;
    }

    /// Returns true if any connection may have news.
    pub(super) fn have_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Returns the first connection with news, and clears its news.
    #[inline(always)]
    pub(super) fn take_news(&mut self) -> Option<ConnId> {
        loop {
            let Reverse(id) = self.news.pop()?;
            if let Some(record) = self.record(id) {
                record.newsworthy = false;
                if record.conn.notices().take_news() {
                    return Some(id);
                }
            }
        }
    }

    /// Notes that the user of a connection has its identifier.
    pub(super) fn tell(&mut self, id: ConnId) {
        let told = self.record(id).is_some_and(|it| !core::mem::replace(&mut it.told, true));
        self.untold -= usize::from(told);
    }

    /// Returns the number of connections opened by a peer and not yet accepted.
    pub(super) fn untold(&self) -> usize {
        self.untold
    }

    /// Notes that a connection was released; it may already be removed.
    pub(super) fn note_release(&mut self, id: ConnId) {
        let Some(record) = self.record(id) else { return };
        record.closing = true;
        self.closing += 1;
        if self.released.len() >= 2 * self.closing + Records::MIN_CAPACITY {
            let mut all = core::mem::take(&mut self.released);
            all.retain(|id| self.place(*id).is_ok());
            self.released = all;
        }
        self.released.push_back(id);
    }

    /// Returns the released connection to end, if there are more than [`MAX_CLOSING`].
    pub(super) fn surplus_closing(&mut self) -> Option<ConnId> {
        if self.closing <= MAX_CLOSING {
            return None;
        }
        while self.released.front().is_some_and(|id| self.place(*id).is_err()) {
            self.released.pop_front();
        }
        let is_drained =
            |id: &ConnId| self.find(*id).is_some_and(|conn| conn.data().queue().is_drained());
        let chosen = self.released.iter().take(LOOKS).position(is_drained);
        self.released.remove(chosen.unwrap_or(0))
    }

    /// Removes a connection in its current state.
    pub(super) fn remove(&mut self, id: ConnId) {
        let Ok(at) = self.place(id) else { return };
        let Record { conn, told, slot, closing, .. } = &*self.list[at];
        self.untold -= usize::from(!told);
        self.closing -= usize::from(*closing);
        self.gone.add(&conn.paths().subflows().totals());
        self.wakes.remove(*slot);
        self.list.remove(at);
        self.first = self.list.first().map_or(0, |record| record.id.0);
        self.shrink();
    }

    /// Removes a connection that is over, if its user has released it or never had its identifier.
    /// Returns true if it is gone.
    pub(super) fn let_go(&mut self, id: ConnId) -> bool {
        let Ok(at) = self.place(id) else { return true };
        let Record { conn, told, .. } = &*self.list[at];
        let unwanted = conn.data().is_released() || !told && conn.data().closing().failed();
        if !unwanted || !conn.is_gone() {
            return false;
        }
        self.remove(id);
        true
    }

    /// Leaves the values of open subflows in the path memory.
    pub(super) fn leave_values(&self, shared: &mut Shared, now: Time) {
        for record in &self.list {
            let mut ctx = shared.context(now, record.id);
            let open = record.conn.paths().subflows().iter();
            let open = open.filter(|it| it.status().joined() && it.state().synchronised());
            open.for_each(|it| Remembered(it).leave(&mut ctx, false));
        }
    }

    /// Returns the traffic of all connections, removed ones included.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.gone;
        self.list.iter().for_each(|record| totals.add(&record.conn.paths().subflows().totals()));
        totals
    }

    /// Frees memory left from times with far more connections.
    fn shrink(&mut self) {
        let (len, capacity) = (self.list.len(), self.list.capacity());
        if capacity <= Records::MIN_CAPACITY || capacity / 4 <= len {
            return;
        }
        self.wakes = Wakes::default();
        for record in &mut self.list {
            record.slot = self.wakes.add(record.id, record.wake);
        }
        self.list.shrink_to_fit();
        self.busy.shrink_to_fit();
        self.news.shrink_to_fit();
        self.due.shrink_to_fit();
        self.released.shrink_to_fit();
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ConnId, &Connection)> {
        self.list.iter().map(|record| (record.id, &record.conn))
    }

    /// Frees memory of connections that have nothing in flight and have sent nothing since
    /// `before`.
    pub(super) fn shrink_idle(&mut self, before: Time) {
        for record in &mut self.list {
            record.addresses.shrink_to_fit();
            record.conn.shrink_idle(before);
        }
    }

    /// Returns the first connection after `last`.
    pub(super) fn after(&self, last: Option<ConnId>) -> Option<ConnId> {
        let from = last.map_or(0, |last| match self.place(last) {
            Ok(at) => at + 1,
            Err(at) => at,
        });
        self.list.get(from).map(|record| record.id)
    }
}
