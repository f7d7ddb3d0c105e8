//! Demultiplexing of incoming segments.

use crate::endpoint::cookies::Client;
use crate::endpoint::{Endpoint, KnownSubflow};
use crate::spec::ConnectionState;
use crate::tcp::address::Address;
use core::net::IpAddr;
use plait_base::{PathId, Time};
use plait_wire::{Flags, Segment};

impl Endpoint {
    /// Processes a segment that arrived on `path`. The path number identifies the client's address.
    /// A driver that reuses path numbers must call [`Endpoint::handle_from`].
    pub fn handle(&mut self, now: Time, path: PathId, segment: &Segment) {
        self.take(now, Client::on(path), path, segment);
    }

    /// Processes a segment that arrived on `path` from `source`. Only a SYN that is answered without
    /// state uses the address, because its path number may have changed when the handshake ends.
    pub fn handle_from(&mut self, now: Time, source: IpAddr, path: PathId, segment: &Segment) {
        self.take(now, Client::at(source), path, segment);
    }

    #[inline(always)]
    fn take(&mut self, now: Time, client: Client, path: PathId, segment: &Segment) {
        let address = Address::of_arrival(path, segment);
        let opens = segment.flags.has(Flags::SYN)
            && !segment.flags.has(Flags::ACK)
            && !segment.flags.has(Flags::RST);
        let known = self.addresses.find(address.key());
        if opens && let Some(KnownSubflow { conn: id, .. }) = known {
            let left = self.with(now, id, |conn, _| conn.reuse_time_wait(address, segment));
            if let Some(after) = left.flatten() {
                return self.on_syn(now, client, address, segment, Some(after));
            }
        }
        match known {
            Some(known) => self.handle_known(now, known, address, segment),
            None => self.handle_unknown(now, client, address, segment),
        }
    }

    /// Processes a segment of a known connection.
    #[inline(always)]
    pub(super) fn handle_known(
        &mut self,
        now: Time,
        known: KnownSubflow,
        address: Address,
        segment: &Segment,
    ) {
        let KnownSubflow { conn: id, subflow } = known;
        if self.checks.are_on()
            && let Some((audit, conn)) = self.audit(id)
        {
            audit.before(conn, address, segment);
        }
        let accepted = self.with(now, id, |conn, ctx| {
            let waited = !conn.paths().client && conn.state() == ConnectionState::Connecting;
            conn.handle_at(ctx, address, subflow, segment);
            // The peer may have no data: its FIN can arrive with the last ACK of the handshake.
            let settled = [ConnectionState::Connecting, ConnectionState::Failed];
            waited && !settled.contains(&conn.state())
        });
        if self.checks.are_on()
            && let Some((audit, conn)) = self.audit(id)
        {
            let violation = audit.after(conn);
            self.checks.note(violation);
        }
        if accepted == Some(true) {
            self.accepted.push_back(id);
            self.connections.tell(id);
            self.take_up_early_joins(now, id);
        }
    }

    /// Processes a segment of an unknown connection, which may open one.
    #[cold]
    fn handle_unknown(&mut self, now: Time, client: Client, address: Address, segment: &Segment) {
        if self.handle_remnant(now, client, address, segment) {
            return;
        }
        if let Some(early) = self.early.answered.iter_mut().find(|early| early.address == address) {
            if segment.flags.has(Flags::RST) {
                // The client has aborted the join.
                self.early.answered.retain(|early| early.address != address);
            } else if segment.flags.has(Flags::SYN) {
                // The client did not receive our SYN/ACK.
                let Some(spec) = self.listeners.get(&address.local_port) else { return };
                self.answers.push_back(early.syn_ack(spec, now));
            } else if !early.take_answer(segment) {
                // The third ACK arrives again and its connection does not exist: the connection's
                // last ACK was lost. The client gets a reset.
                self.early.answered.retain(|early| early.address != address);
                self.reset(address, segment, None);
            }
        } else if segment.flags.has(Flags::RST) {
            // A RST is never answered.
        } else if segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) {
            self.on_syn(now, client, address, segment, None);
        } else if !self.completes_handshake(now, client, address, segment) {
            self.reset(address, segment, None);
        }
    }
}
