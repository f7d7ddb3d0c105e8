//! The connections that an endpoint keeps.

use crate::conn::Connection;
use crate::stats::Totals;
use alloc::boxed::Box;
use alloc::vec::Vec;
use plait_base::ConnId;

/// A connection and what the endpoint's books say of it.
pub(super) struct Record {
    id: ConnId,
    pub(super) conn: Box<Connection>,
    /// The conversations and the token that are booked as its own.
    pub(super) addresses: Vec<u64>,
    pub(super) token: u32,
    /// Its user knows of it: it was dialled, or handed out to be accepted.
    told: bool,
}

/// Connections by identifier. Those that are gone leave nothing behind.
#[derive(Default)]
pub(super) struct Records {
    /// In the order of their identifiers.
    list: Vec<Record>,
    /// The identifier of the next one: they are counted on, and only the end of the numbers brings
    /// one back.
    next: u32,
    /// Those that nobody was told of.
    untold: usize,
    /// What those have carried that were let go.
    gone: Totals,
}

impl Records {
    fn place(&self, id: ConnId) -> Result<usize, usize> {
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
        let (told, token) = (conn.is_client(), conn.token());
        self.next = id.0.wrapping_add(1);
        self.untold += usize::from(!told);
        let record = Record { id, conn: Box::new(conn), addresses: Vec::new(), token, told };
        let (Ok(at) | Err(at)) = self.place(id);
        self.list.insert(at, record);
        id
    }

    pub(super) fn record(&mut self, id: ConnId) -> Option<&mut Record> {
        let at = self.place(id).ok()?;
        self.list.get_mut(at)
    }

    pub(super) fn find(&self, id: ConnId) -> Option<&Connection> {
        let at = self.place(id).ok()?;
        Some(&self.list[at].conn)
    }

    pub(super) fn find_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        Some(&mut self.record(id)?.conn)
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

    /// Lets a connection go that nobody will ask for any more: its user has released it, or was
    /// never told of it, and it is over. True if it is gone.
    pub(super) fn let_go(&mut self, id: ConnId) -> bool {
        let Ok(at) = self.place(id) else { return true };
        let Record { conn, told, .. } = &self.list[at];
        let unwanted = conn.is_released() || !told && conn.has_failed();
        if !unwanted || !conn.is_gone() {
            return false;
        }
        self.untold -= usize::from(!told);
        self.gone.add(&conn.totals());
        self.list.remove(at);
        true
    }

    /// What connections have carried, those that are gone included.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.gone;
        self.list.iter().for_each(|record| totals.add(&record.conn.totals()));
        totals
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ConnId, &Connection)> {
        self.list.iter().map(|record| (record.id, &*record.conn))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (ConnId, &mut Connection)> {
        self.list.iter_mut().map(|record| (record.id, &mut *record.conn))
    }

    /// The first connection after `last` that `wanted` holds for.
    pub(super) fn after(
        &self,
        last: Option<ConnId>,
        wanted: impl Fn(&Connection) -> bool,
    ) -> Option<ConnId> {
        let from = last.map_or(0, |last| match self.place(last) {
            Ok(at) => at + 1,
            Err(at) => at,
        });
        self.list[from..].iter().find(|it| wanted(&it.conn)).map(|it| it.id)
    }
}
