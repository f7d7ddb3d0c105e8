//! Which app uses which connection: clients dial, servers take what was accepted, apps act.

use super::{FIRST_PORT, World, is_client};
use crate::host::{ConnSlot, Host};
use crate::setup::Who;
use plait_app::{AppEvent, Observer, Role};
use plait_base::{ConnId, Time};
use plait_core::{Event, SubflowStats};

impl World<'_> {
    /// The client dials the connections whose time has come.
    pub(super) fn dial(&mut self, host: usize) {
        if self.hosts[host].next_dial > self.now {
            return;
        }
        self.hosts[host].next_dial = Time::NEVER;
        let pair = host / 2;
        let Host { endpoint, slots, changes, next_dial, .. } = &mut self.hosts[host];
        for (index, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| slot.opens()) {
            let connection = &self.setup.pairs[pair].connections[slot.session];
            if connection.start > self.now {
                *next_dial = connection.start.min(*next_dial);
                continue;
            }
            let port = FIRST_PORT + index as u16;
            slot.conn = endpoint.connect(self.now, port, connection.client.clone()).ok();
            slot.wake = self.now;
            changes.repeat(self.now, endpoint);
        }
        self.hosts[host].note_wakes();
    }

    /// Lets the apps act that have something to do.
    #[inline(never)]
    pub(super) fn poll_apps(&mut self, host: usize) {
        while let Some(conn) = self.hosts[host].endpoint.poll_accept() {
            self.drain_core(host);
            let port = self.hosts[host].endpoint.service_port(conn).unwrap_or(FIRST_PORT);
            let slot = usize::from(port.saturating_sub(FIRST_PORT));
            self.fill_server_slot(host, slot, conn);
        }
        while let Some(conn) = self.hosts[host].endpoint.poll_news() {
            if let Some(slot) = self.hosts[host].slot_of(conn) {
                self.poll_app(host, slot);
            }
        }
        for slot in 0..self.hosts[host].slots.len() {
            if self.hosts[host].slots[slot].wake <= self.now {
                self.poll_app(host, slot);
            }
        }
    }

    /// Gives an accepted connection its app. A client that has begun again on another path may
    /// leave a ghost of its first attempt behind, accepted when its delayed last ACK arrives:
    /// nobody is at the other end, so it gets none.
    #[cold]
    fn fill_server_slot(&mut self, host: usize, slot: usize, conn: ConnId) {
        if slot >= self.hosts[host].slots.len() || !self.is_current(host, slot, conn) {
            return;
        }
        if let Some(before) = self.hosts[host].slots[slot].conn {
            if self.is_current(host, slot, before) {
                return;
            }
            // The client gave up the first attempt just after the server had accepted it.
            self.forget_first_attempt(host, slot, conn);
        }
        let place = &mut self.hosts[host].slots[slot];
        place.conn = Some(conn);
        place.wake = self.now;
        self.hosts[host].note_wakes();
    }

    /// The server's side of a connection begins again: another app, another observer, who learns
    /// of the subflows that `conn` has already.
    fn forget_first_attempt(&mut self, host: usize, slot: usize, conn: ConnId) {
        let ConnSlot { session, index, .. } = self.hosts[host].slots[slot];
        let config = &self.setup.pairs[host / 2].connections[session];
        let fresh = (self.apps)(host / 2, session).into_iter().nth(index);
        self.hosts[host].slots[slot].app = fresh.expect("a session has as many ends as before").1;
        self.failed[host / 2][slot] = None;
        // What the client's app said of data that it sends still holds.
        if config.workload.sender() == Role::Client {
            return;
        }
        let fresh = Observer::new(&config.workload, self.setup.paths.len(), config.start);
        let before = std::mem::replace(&mut self.observers[host / 2][slot], fresh);
        let mut observer = before.before_server();
        let stats = self.hosts[host].endpoint.stats(conn);
        for subflow in stats.iter().flat_map(|stats| &stats.subflows).filter(|s| s.up) {
            let SubflowStats { subflow, path, server, .. } = *subflow;
            let up = Event::SubflowUp { subflow, path, server };
            observer.observe(self.now, Role::Server, &up);
        }
        self.observers[host / 2][slot] = observer;
    }

    /// Whether the client at the other end still has the subflow that the server's connection
    /// began with.
    pub(super) fn is_current(&self, server: usize, slot: usize, conn: ConnId) -> bool {
        let client = &self.hosts[server - 1];
        let dialled = client.slots.get(slot).and_then(|slot| slot.conn);
        let Some(dialled) = dialled else { return false };
        let ports = |host: &Host, conn| host.endpoint.ports(conn);
        ports(&self.hosts[server], conn).is_some_and(|server_ports| {
            let theirs = ports(client, dialled).unwrap_or_default();
            server_ports
                .iter()
                .any(|(path, local, remote)| theirs.contains(&(*path, *remote, *local)))
        })
    }

    pub(super) fn slot_before_accept(&self, host: usize, conn: ConnId) -> Option<usize> {
        let port = self.hosts[host].endpoint.service_port(conn)?;
        let slot = usize::from(port.checked_sub(FIRST_PORT)?);
        (!is_client(host) && self.is_current(host, slot, conn)).then_some(slot)
    }

    fn poll_app(&mut self, host: usize, slot: usize) {
        // Events of the core up to here happened before what the app now does.
        self.drain_core(host);
        let this = &mut self.hosts[host];
        this.poll_app(self.now, slot);
        self.ending |= this.may_be_done(slot);
        if !this.app_log.is_empty() {
            self.tell_of_app(host, slot);
        }
    }

    /// Tells observers what an app has said.
    #[inline(never)]
    fn tell_of_app(&mut self, host: usize, slot: usize) {
        let World { hosts, observers, onlookers, failed, ending, now, .. } = self;
        let Host { app_log, side, .. } = &mut hosts[host];
        let who = Who { pair: host / 2, connection: slot, host: *side };
        let (observer, failed) = (&mut observers[who.pair][slot], &mut failed[who.pair][slot]);
        for event in app_log.drain(..) {
            match event {
                AppEvent::Failed => *failed = failed.or(Some(*now)),
                AppEvent::Garbled { position } => {
                    onlookers.violated(*now, || format!("wrong byte read at {position}"));
                    *ending = true;
                }
                _ => {}
            }
            observer.observe_app(*now, who.host, &event);
            onlookers.on_app(*now, who, &event);
        }
    }
}
