//! The connections that an endpoint keeps.

use crate::conn::Connection;
use crate::endpoint::wakes::{Slot, Wakes};
use crate::stats::Totals;
use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use plait_base::{ConnId, Time};

/// Connections that were released and have not ended, at most.
const MAX_CLOSING: usize = 8_192;
/// How many of the oldest of them are looked at for one to end.
const LOOKS: usize = 8;

/// A connection and what the endpoint's books say of it.
pub(super) struct Record {
    id: ConnId,
    /// The token that is booked as its own.
    pub(super) token: u32,
    /// The conversations that are booked as its own.
    pub(super) addresses: Vec<u64>,
    /// When it is to be called, unless it is busy, and the place of that.
    wake: Time,
    slot: Slot,
    /// Its user knows of it: it was dialled, or handed out to be accepted.
    told: bool,
    /// Its user has released it.
    closing: bool,
    /// It may have something to send, and its timers may have changed since they were booked.
    busy: bool,
    /// It is among those that have news.
    newsworthy: bool,
    pub(super) conn: Connection,
}

/// Connections by identifier. Those that are gone leave nothing behind. Nothing that is done for
/// each packet takes time that grows with their number, but for the logarithm of a search.
#[derive(Default)]
pub(super) struct Records {
    /// In the order of their identifiers.
    #[expect(clippy::vec_box, reason = "they are many, and moved when one goes")]
    list: Vec<Box<Record>>,
    /// The least identifier.
    first: u32,
    /// The identifier of the next one: they are counted on, and only the end of the numbers brings
    /// one back.
    next: u32,
    /// Those that nobody was told of.
    untold: usize,
    /// Those that were released, oldest first; some that are gone are among them.
    released: VecDeque<ConnId>,
    /// How many of them are there.
    closing: usize,
    /// What those have carried that were let go.
    gone: Totals,
    /// Connections that may have something to send, the next one last.
    busy: Vec<ConnId>,
    wakes: Wakes,
    /// Those that may have news, the least identifier first.
    news: BinaryHeap<Reverse<ConnId>>,
    /// Those whose timers are due; empty between calls.
    due: Vec<ConnId>,
}

/// A connection in use, and the books that note what becomes of it.
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

    /// The connection was touched: it may have something to send or to tell.
    #[inline]
    pub(super) fn on_touched(&mut self) {
        if !self.record.busy {
            self.record.busy = true;
            self.busy.push(self.record.id);
        }
        self.on_news();
    }

    /// The connection may have something to tell.
    #[inline]
    pub(super) fn on_news(&mut self) {
        if self.record.conn.notices().news && !self.record.newsworthy {
            self.record.newsworthy = true;
            self.news.push(Reverse(self.record.id));
        }
    }

    /// The connection, which is the busiest, has nothing to send.
    #[inline]
    pub(super) fn on_idle(&mut self) {
        self.busy.pop();
        self.record.busy = false;
        self.on_timers();
    }

    /// The timers of the connection may have changed.
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
    /// Room for so many is never given back.
    const MIN_CAPACITY: usize = 64;

    #[inline]
    fn place(&self, id: ConnId) -> Result<usize, usize> {
        // Identifiers are counted on: where none has gone, they tell the place.
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

    /// The identifier that the next connection gets.
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
        let (told, token, at) = (conn.paths().client, conn.data().token(), conn.poll_timeout());
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

    /// A connection and its place in the books, found once for all that is done with it.
    #[inline]
    pub(super) fn entry(&mut self, id: ConnId) -> Option<Entry<'_>> {
        let at = self.place(id).ok()?;
        let Records { list, busy, wakes, news, .. } = self;
        Some(Entry { record: list.get_mut(at)?, busy, wakes, news })
    }

    /// The connection that is to be asked next whether it has something to send.
    pub(super) fn busiest(&self) -> Option<ConnId> {
        self.busy.last().copied()
    }

    /// [`Records::busiest`] is not there any more.
    pub(super) fn forget_busiest(&mut self) {
        self.busy.pop();
    }

    /// The timers of a connection may have changed.
    pub(super) fn on_timers(&mut self, id: ConnId) {
        if let Some(mut entry) = self.entry(id)
            && !entry.record.busy
        {
            entry.on_timers();
        }
    }

    /// When the first of them is to be called.
    #[inline]
    pub(super) fn next_wake(&self) -> Time {
        let busy = self.busy.iter().filter_map(|id| self.find(*id));
        busy.fold(self.wakes.first(), |first, conn| first.min(conn.poll_timeout()))
    }

    /// The connections whose timers are due, in the order of their identifiers, in memory that is
    /// to come back by [`Records::keep_due`].
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

    /// Whether any may have news.
    pub(super) fn have_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// The first connection that has news, which it has no more.
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

    /// The user of a connection gets to know it.
    pub(super) fn tell(&mut self, id: ConnId) {
        let told = self.record(id).is_some_and(|it| !core::mem::replace(&mut it.told, true));
        self.untold -= usize::from(told);
    }

    /// Connections that a peer has begun and nobody was told of.
    pub(super) fn untold(&self) -> usize {
        self.untold
    }

    /// A connection was released, and may be gone by now.
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

    /// The released connection to end if there are more than [`MAX_CLOSING`].
    pub(super) fn surplus_closing(&mut self) -> Option<ConnId> {
        if self.closing <= MAX_CLOSING {
            return None;
        }
        while self.released.front().is_some_and(|id| self.place(*id).is_err()) {
            self.released.pop_front();
        }
        let is_drained = |id: &ConnId| self.find(*id).is_some_and(|conn| conn.data().is_drained());
        let chosen = self.released.iter().take(LOOKS).position(is_drained);
        self.released.remove(chosen.unwrap_or(0))
    }

    /// Drops a connection as it stands.
    pub(super) fn remove(&mut self, id: ConnId) {
        let Ok(at) = self.place(id) else { return };
        let Record { conn, told, slot, closing, .. } = &*self.list[at];
        self.untold -= usize::from(!told);
        self.closing -= usize::from(*closing);
        self.gone.add(&conn.paths().totals());
        self.wakes.remove(*slot);
        self.list.remove(at);
        self.first = self.list.first().map_or(0, |record| record.id.0);
        self.shrink();
    }

    /// Lets a connection go that nobody will ask for any more: its user has released it, or was
    /// never told of it, and it is over. True if it is gone.
    pub(super) fn let_go(&mut self, id: ConnId) -> bool {
        let Ok(at) = self.place(id) else { return true };
        let Record { conn, told, .. } = &*self.list[at];
        let unwanted = conn.data().is_released() || !told && conn.data().has_failed();
        if !unwanted || !conn.is_gone() {
            return false;
        }
        self.remove(id);
        true
    }

    /// What connections have carried, those that are gone included.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.gone;
        self.list.iter().for_each(|record| totals.add(&record.conn.paths().totals()));
        totals
    }

    /// Gives back the memory of times with far more connections.
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

    /// Memory of connections on which nothing is under way and nothing was sent since `before`.
    pub(super) fn shrink_idle(&mut self, before: Time) {
        for record in &mut self.list {
            record.addresses.shrink_to_fit();
            record.conn.shrink_idle(before);
        }
    }

    /// The first connection after `last`.
    pub(super) fn after(&self, last: Option<ConnId>) -> Option<ConnId> {
        let from = last.map_or(0, |last| match self.place(last) {
            Ok(at) => at + 1,
            Err(at) => at,
        });
        self.list.get(from).map(|record| record.id)
    }
}
