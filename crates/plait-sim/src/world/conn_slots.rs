//! Assigns connections to apps: clients connect, servers accept, apps run.

use super::{FIRST_PORT, World, is_client};
use crate::host::{ConnSlot, Host};
use crate::setup::Who;
use plait_app::{AppEvent, Observer, Role};
use plait_base::{ConnId, Time};
use plait_core::{Event, SubflowStats};

impl World<'_> {
    /// Opens the client's connections that are due.
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

    /// Polls the apps that have work.
    #[inline(never)]
    pub(super) fn poll_apps(&mut self, host: usize) {
        while let Some(conn) = self.hosts[host].endpoint.poll_accept() {
            self.drain_core(host);
            let port = self.hosts[host].endpoint.service_port(conn).unwrap_or(FIRST_PORT);
            let slot = usize::from(port.saturating_sub(FIRST_PORT));
            self.fill_server_slot(host, slot, conn);
        }
        loop {
            let this = &mut self.hosts[host];
            if !this.endpoint.has_news() {
                break;
            }
            let Some(conn) = this.endpoint.poll_news() else { break };
            if let Some(slot) = this.slot_of(conn) {
                self.poll_app(host, slot);
            }
        }
        if self.hosts[host].apps_wake() <= self.now {
            self.poll_woken_apps(host);
        }
    }

    /// Polls the apps whose time has come.
    #[inline(never)]
    fn poll_woken_apps(&mut self, host: usize) {
        for slot in 0..self.hosts[host].slots.len() {
            if self.hosts[host].slots[slot].wake <= self.now {
                self.poll_app(host, slot);
            }
        }
    }

    /// Assigns an accepted connection to its app.
    ///
    /// A client that restarted on another path may leave its first attempt behind at the server,
    /// which accepts it when the delayed third ACK arrives. Such a connection has no peer and gets
    /// no app.
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

    /// Restarts the server's side of a connection with a new app and a new observer. The observer
    /// learns the subflows that `conn` already has.
    fn forget_first_attempt(&mut self, host: usize, slot: usize, conn: ConnId) {
        let ConnSlot { session, index, .. } = self.hosts[host].slots[slot];
        let config = &self.setup.pairs[host / 2].connections[session];
        let fresh = (self.apps)(host / 2, session).into_iter().nth(index);
        self.hosts[host].slots[slot].app = fresh.expect("a session has as many ends as before").1;
        self.failed[host / 2][slot] = None;
        // Events of the client's app about data that it sends remain valid.
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

    /// Returns true if the client still has a subflow of the server's connection.
    pub(super) fn is_current(&self, server: usize, slot: usize, conn: ConnId) -> bool {
        let client = &self.hosts[server - 1];
        let dialled = client.slots.get(slot).and_then(|slot| slot.conn);
        let Some(dialled) = dialled else { return false };
        let ports = |host: &Host, conn| host.endpoint.ports(conn);
        ports(&self.hosts[server], conn).is_some_and(|server_ports| {
            let theirs = ports(client, dialled).unwrap_or_default();
            server_ports.iter().any(|it| theirs.contains(&it.reversed()))
        })
    }

    pub(super) fn slot_before_accept(&self, host: usize, conn: ConnId) -> Option<usize> {
        let port = self.hosts[host].endpoint.service_port(conn)?;
        let slot = usize::from(port.checked_sub(FIRST_PORT)?);
        (!is_client(host) && self.is_current(host, slot, conn)).then_some(slot)
    }

    #[inline(always)]
    fn poll_app(&mut self, host: usize, slot: usize) {
        // The core's earlier events precede the events of this poll.
        self.drain_core(host);
        let this = &mut self.hosts[host];
        self.ending |= this.poll_app(self.now, slot);
        if !this.app_log.is_empty() {
            self.tell_of_app(host, slot);
        }
    }

    /// Reports an app's events to the observers.
    #[inline(never)]
    fn tell_of_app(&mut self, host: usize, slot: usize) {
        let World { hosts, observers, onlookers, failed, ending, now, .. } = self;
        let Host { app_log, side, .. } = &mut hosts[host];
        let pair = host / 2;
        let observer = &mut observers[pair][slot];
        for event in app_log.iter() {
            match *event {
                AppEvent::Failed => {
                    failed[pair][slot].get_or_insert(*now);
                }
                AppEvent::Garbled { position } => {
                    onlookers.violated(*now, || format!("wrong byte read at {position}"));
                    *ending = true;
                }
                _ => {}
            }
            observer.observe_app(*now, *side, event);
        }
        onlookers.on_app(*now, Who { pair, connection: slot, host: *side }, app_log);
        app_log.clear();
    }
}
