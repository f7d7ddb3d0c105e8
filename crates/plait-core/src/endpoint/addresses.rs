//! Addresses that are added and removed while connections are open.

use crate::conn::Connection;
use crate::context::Context;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::tcp::address::Address;
use core::net::IpAddr;
use plait_base::{ConnId, PathId, Time};

impl Endpoint {
    /// Announces a further address of this end to the client of a connection (ADD_ADDR, RFC 8684
    /// section 3.4.1). The client may join it.
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

    /// Withdraws an announced address: the client receives REMOVE_ADDR (RFC 8684 section 3.4.2),
    /// and the subflows there are closed.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`], and [`Error::NotAnnounced`].
    pub fn withdraw(&mut self, now: Time, id: ConnId, address: IpAddr) -> Result<(), Error> {
        self.ask(now, id, |conn, ctx| conn.withdraw(ctx, address))?
    }

    /// Handles the loss of this host's address on `path`. Its client connections close their
    /// subflows there and send REMOVE_ADDR on other subflows.
    pub fn lose_address(&mut self, now: Time, path: PathId) {
        self.remnants.leave(path);
        self.with_all(now, |conn, ctx| conn.lose_address(ctx, path));
    }

    /// Handles the return of this host's address on `path`. Its client connections open their
    /// subflows there again.
    pub fn regain_address(&mut self, now: Time, path: PathId) {
        self.with_all(now, |conn, ctx| conn.regain_address(ctx, path));
    }

    /// Requests that the peer of a connection uses the subflows of `path` as backups (`backup`) or
    /// as regular ones (MP_PRIO, RFC 8684 section 3.3.8). This end does the same.
    ///
    /// A subflow is a backup if either end requested it. The option is sent once, on an
    /// acknowledgement. A subflow that is opened later uses the configuration of its path.
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

    /// Returns true if the number of `path` is in use: by a subflow, a starting subflow, or a
    /// connection with an ended subflow on it. Only an unused number may be given to another
    /// address.
    #[must_use]
    pub fn uses_path(&self, path: PathId) -> bool {
        let first = Address::default().on_path(path).key();
        self.addresses.has_any(first..=first | Address::WITHIN_PATH)
            || self.remnants.on(path).is_some()
            || self.early.held.iter().any(|join| join.path == path)
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
