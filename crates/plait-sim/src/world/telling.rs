//! Reports events of the cores to the observers.

use super::World;
use crate::host::{ConnSlot, Host};
use crate::setup::Who;

impl World<'_> {
    /// Reports the core's events since the last call.
    #[inline(always)]
    pub(super) fn drain_core(&mut self, host: usize) {
        if self.hosts[host].endpoint.has_events() {
            self.tell_observers(host);
        }
    }

    #[inline(never)]
    fn tell_observers(&mut self, host: usize) {
        let World { hosts, observers, onlookers, told, now, .. } = self;
        let Host { endpoint, slots, side, .. } = &mut hosts[host];
        endpoint.swap_events(told);
        // Usually the host has one connection, and all events belong to it.
        let mut count = 0;
        if let [ConnSlot { conn: Some(conn), .. }] = slots.as_slice()
            && let Some(observer) = observers[host / 2].first_mut()
        {
            let said = told.iter().take_while(|(speaker, _)| speaker == conn);
            let said = said.map(|(_, event)| {
                count += 1;
                event
            });
            observer.observe_all(*now, *side, said);
            if count > 0 {
                let who = Who { pair: host / 2, connection: 0, host: *side };
                onlookers.on_core(*now, who, &told[..count]);
            }
        }
        if count < self.told.len() {
            self.tell_each(host, count);
        }
    }

    /// Reports the events of several connections, except the first `done` events.
    #[inline(never)]
    fn tell_each(&mut self, host: usize, done: usize) {
        let told = std::mem::take(&mut self.told);
        for said in told[done..].chunk_by(|one, next| one.0 == next.0) {
            let conn = said[0].0;
            // A server's connection has events before it is accepted.
            let slot = self.hosts[host].slot_of(conn);
            let Some(slot) = slot.or_else(|| self.slot_before_accept(host, conn)) else { continue };
            let who = Who { pair: host / 2, connection: slot, host: self.hosts[host].side };
            let observer = &mut self.observers[who.pair][slot];
            observer.observe_all(self.now, who.host, said.iter().map(|(_, event)| event));
            self.onlookers.on_core(self.now, who, said);
        }
        self.told = told;
    }
}
