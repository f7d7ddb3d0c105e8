//! Addresses that come and go while connections are open.

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::tcp::address::Address;
use core::net::IpAddr;
use plait_base::{ConnId, PathId, Time};

impl Endpoint {
    /// Announces a further address of this end to the client of a connection, which may join it (ADD_ADDR,
    /// RFC 8684 section 3.4.1).
    ///
    /// # Errors
    /// [`Error::UnknownConnection`], [`Error::NotServer`], [`Error::Failed`], [`Error::PlainTcp`], and
    /// [`Error::UnknownAddress`] if the address has no number.
    pub fn announce(
        &mut self,
        now: Time,
        id: ConnId,
        address: IpAddr,
        port: Option<u16>,
    ) -> Result<(), Error> {
        self.ask(now, id, |conn, ctx| conn.announce(ctx, address, port))?
    }

    /// Takes an announced address back: the client learns of it (REMOVE_ADDR, RFC 8684 section 3.4.2), and
    /// the subflows there are closed.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`], and [`Error::NotAnnounced`].
    pub fn withdraw(&mut self, now: Time, id: ConnId, address: IpAddr) -> Result<(), Error> {
        self.ask(now, id, |conn, ctx| conn.withdraw(ctx, address))?
    }

    /// This host's own address on `path` is gone: its connections as a client close their subflows
    /// there and tell their peers (REMOVE_ADDR) on others.
    pub fn lose_address(&mut self, now: Time, path: PathId) {
        self.remnants.leave(path);
        self.with_all(now, |conn, ctx| conn.lose_address(ctx, path));
    }

    /// This host has an address on `path` again: its connections as a client open their subflows
    /// there anew.
    pub fn regain_address(&mut self, now: Time, path: PathId) {
        self.with_all(now, |conn, ctx| conn.regain_address(ctx, path));
    }

    /// Asks the peer of a connection to send on the subflows of `path` only where no other works
    /// (`backup`), or again as on others; this end does the same (MP_PRIO, RFC 8684 section 3.3.8).
    /// A peer's own wish stands beside it: a subflow is a backup where either end asked for that. The
    /// option goes out once, on an acknowledgement. A subflow that is opened later is a backup if its path was
    /// configured so.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`], [`Error::Failed`], [`Error::PlainTcp`], and [`Error::NoSubflow`] if no
    /// established subflow is on the path.
    pub fn set_backup(
        &mut self,
        now: Time,
        id: ConnId,
        path: PathId,
        backup: bool,
    ) -> Result<(), Error> {
        self.ask(now, id, |conn, ctx| conn.set_backup(ctx, path, backup))?
    }

    /// Whether a conversation on `path`, or one that is only beginning, is kept, or a connection names the path
    /// as that of a subflow which has ended. The number of any other path may be given to another address.
    #[must_use]
    pub fn uses_path(&self, path: PathId) -> bool {
        let first = Address::default().on_path(path).key();
        self.addresses.range(first..=first | Address::WITHIN_PATH).next().is_some()
            || self.remnants.on(path).is_some()
            || self.early.syns.iter().any(|(early, ..)| *early == path)
            || self.early.answered.iter().any(|early| early.address.path() == path)
            || self.answers.iter().any(|answer| answer.path == path)
    }

    fn with_all(&mut self, now: Time, mut f: impl FnMut(&mut Connection, &mut Context<'_>)) {
        let mut last = None;
        while let Some(id) = self.connections.after(last) {
            self.with(now, id, &mut f);
            last = Some(id);
        }
    }
}
