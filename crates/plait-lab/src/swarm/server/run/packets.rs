//! Packets between the server and its guests.

use super::{Event, Guest, Run};
use crate::swarm::run::Broken;
use plait_base::{ConnId, Span, Time};
use plait_engine::LogEvent;
use plait_wire::codec::{self, Verify};
use plait_wire::{Flags, Segment};
use std::net::IpAddr;

impl Run<'_> {
    /// Sends packets of guests to the server.
    pub(super) fn send_up(&mut self, client: bool, out: &mut Vec<Vec<u8>>) {
        for bytes in out.drain(..) {
            self.record.note(self.now, &bytes);
            let arrives = self.carry(client, true, &bytes, 12);
            if let Some(arrives) = arrives {
                self.at(arrives, Event::Arrive(bytes));
            }
        }
    }

    /// Returns the arrival time of a packet, or `None` if it is lost. The guest's address is at
    /// offset `field`.
    fn carry(&mut self, client: bool, up: bool, bytes: &[u8], field: usize) -> Option<Time> {
        if !client {
            // Strangers have links of their own.
            return Some(self.now + Span::from_micros(self.case.rtt_us / 2));
        }
        self.network.carry(self.case, self.now, up, bytes, field)
    }

    /// Sends a packet of the server.
    pub(super) fn send_down(&mut self, bytes: Vec<u8>) {
        self.record.note(self.now, &bytes);
        let Some(to) = bytes.get(16..20).and_then(|it| <[u8; 4]>::try_from(it).ok()) else {
            return;
        };
        let Some(guest) = self.guests.at(IpAddr::from(to)) else {
            return self.broke(
                Broken::Invariant,
                format!("a packet to {}, which no host has", IpAddr::from(to)),
            );
        };
        let client = matches!(guest, Guest::Client(_));
        match (self.carry(client, false, &bytes, 16), guest) {
            (Some(arrives), _) => self.at(arrives, Event::Deliver(guest, bytes)),
            (None, Guest::Client(at)) => self.miss(at, &bytes),
            (None, Guest::Stranger(_)) => {}
        }
    }

    /// Handles a lost packet to a client. If it is a RST, the client may wait for a connection that
    /// the server has lost.
    fn miss(&mut self, at: usize, bytes: &[u8]) {
        let mut segment = Segment::default();
        let parsed = codec::parse_into(bytes, Verify::Checksum, &mut segment);
        if parsed.is_ok() && segment.flags.has(Flags::RST) {
            self.guests.clients[at].miss_reset(segment.dst_port);
        }
    }

    /// Handles an accepted connection. It has the next stream.
    fn on_accepted(&mut self, conn: ConnId, from: Option<IpAddr>) {
        let guest = from.and_then(|from| self.guests.at(from));
        let Some(Guest::Client(at)) = guest else { return self.guests.owners.push(None) };
        self.guests.owners.push(Some(at));
        let engine = self.server.engine.as_ref();
        let ports = engine.and_then(|it| it.stack.endpoint.ports(conn)).unwrap_or_default();
        self.guests.clients[at].accept(self.now, ports.first().map(|it| it.remote));
    }

    pub(super) fn hear(&mut self, event: &LogEvent) {
        match event {
            LogEvent::TurnedAway { count, .. } => self.server.told_away += count,
            LogEvent::Accepted { conn, from, .. } => self.on_accepted(*conn, *from),
            _ => {}
        }
        if self.record.keeps_lines() {
            self.record.tell(self.now, &event.to_string());
        }
    }
}
