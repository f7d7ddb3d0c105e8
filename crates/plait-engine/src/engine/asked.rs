//! Connections whose clients name their destination, at both ends.

use super::Engine;
use crate::log_event::LogEvent;
use crate::relay::Relay;
use crate::request::RequestKey;
use crate::requests::{Heard, Requests};
use crate::world::World;
use plait_base::{ConnId, Time};
use std::io;
use std::net::SocketAddr;

impl<W: World> Engine<W> {
    /// Relays each connection to the destination that its client requests with `key`, in place of a service.
    pub fn relay_by_request(&mut self, key: RequestKey) {
        (self.service, self.requests) = (None, Some(Requests::new(key)));
    }

    /// Sends `request` on a dialled connection, before the data of its stream.
    pub fn request(&mut self, conn: ConnId, request: &[u8]) {
        if let Some(relay) = self.relays.get_mut(&conn) {
            relay.request(request);
        }
    }

    /// Reads the request of a connection.
    pub(super) fn hear(&mut self, conn: ConnId) {
        let now = self.stack.world.now();
        let unix_s =
            (self.stack.world.epoch_ns() + now.since(Time::ZERO).as_nanos()) / 1_000_000_000;
        let Some(requests) = &mut self.requests else { return };
        match requests.read(now, unix_s, conn, &mut self.stack.endpoint) {
            Heard::Waits => {}
            Heard::Asks(request) => {
                let (by, to) = (request.by, request.to.clone());
                self.log_events.push(LogEvent::Asked { conn, by, to });
                self.wanted.push((conn, request.to));
            }
            Heard::Fails(problem) => self.end(conn, Some(problem)),
        }
    }

    /// Relays a connection to the address of its destination, or ends it with the problem. Nothing happens if the
    /// connection has ended.
    pub fn lead(&mut self, conn: ConnId, to: Result<SocketAddr, String>) {
        let known = self.requests.as_mut().is_some_and(|requests| requests.remove(conn));
        if !known {
            return;
        }
        let relayed = to.and_then(|to| {
            let unreached = |error: io::Error| format!("the destination {to}: {error}");
            let socket = self.stack.world.dial(to, None).map_err(unreached)?;
            let ports = self.stack.endpoint.ports(conn);
            let path = ports.and_then(|ports| Some(ports.first()?.path));
            let from = path.and_then(|path| self.stack.names.client_of(path));
            let relay = Relay::new(conn, socket, true).opened(self.stack.world.now(), from);
            self.add(relay).map_err(unreached)
        });
        if let Err(problem) = relayed {
            self.end(conn, Some(problem));
        }
    }
}
