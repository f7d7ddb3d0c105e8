//! One direction of an emulated path.

use super::strip::has_fin;
use super::{Direction, Reading, Strip, Switches};
use plait_base::Time;
use plait_link::{Fate, Link, LinkCounters};
use std::collections::{BTreeMap, VecDeque};

/// Most buffers kept for later packets. Further ones are freed.
const SPARES: usize = 256;

pub(super) struct EmulatedLink {
    link: Link,
    direction: Direction,
    switches: Switches,
    strip: Strip,
    /// Packets in a managed queue.
    waiting: VecDeque<Vec<u8>>,
    /// Packets in flight, by arrival time and order of departure.
    under_way: BTreeMap<(Time, u64), Vec<u8>>,
    sent: u64,
    spare: Vec<Vec<u8>>,
}

impl EmulatedLink {
    pub(super) fn new(
        link: Link,
        direction: Direction,
        switches: Switches,
        strip: Strip,
    ) -> EmulatedLink {
        EmulatedLink {
            link,
            direction,
            switches,
            strip,
            waiting: VecDeque::new(),
            under_way: BTreeMap::new(),
            sent: 0,
            spare: Vec::new(),
        }
    }

    pub(super) const fn direction(&self) -> Direction {
        self.direction
    }

    /// Offers a packet to the link. It is lost if a switch of this direction loses it.
    pub(super) fn offer(&mut self, now: Time, bytes: &[u8]) {
        let switches = &self.switches;
        let lost = switches.fins.is_on(self.direction) && has_fin(bytes);
        if lost || switches.cut.is_on(self.direction) {
            return;
        }
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(bytes);
        self.strip.apply(&mut packet);
        if self.switches.strip.is_on(self.direction) {
            Strip::AfterSyn.apply(&mut packet);
        }
        match self.link.offer(now, packet.len() as u32) {
            Fate::Queued => {
                self.waiting.push_back(packet);
                self.dequeue(now);
            }
            fate => self.send_off(fate, packet),
        }
    }

    /// Moves the packets that leave the managed queue by `now` into flight.
    pub(super) fn dequeue(&mut self, now: Time) {
        if self.waiting.is_empty() {
            return;
        }
        let mut fates = Vec::new();
        self.link.dequeue(now, |fate| fates.push(fate));
        for fate in fates {
            if let Some(packet) = self.waiting.pop_front() {
                self.send_off(fate, packet);
            }
        }
    }

    fn send_off(&mut self, fate: Fate, mut packet: Vec<u8>) {
        let Fate::Deliver { arrives, twin, corrupt, .. } = fate else {
            return self.recycle(packet);
        };
        if arrives == Time::NEVER {
            return self.recycle(packet);
        }
        if corrupt && let Some(last) = packet.last_mut() {
            *last ^= 0x10;
        }
        if let Some(at) = twin {
            let copy = packet.clone();
            self.under_way.insert((at, self.sent + 1), copy);
        }
        self.under_way.insert((arrives, self.sent), packet);
        self.sent += 2;
    }

    /// Returns the time of the next arrival or dequeue.
    pub(super) fn next(&self) -> Time {
        let arrival = self.under_way.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        arrival.min(self.link.next_dequeue())
    }

    /// Returns a packet that has arrived by `now`, and its arrival time. Packets that arrive during a cut are
    /// lost.
    pub(super) fn take_arrival(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        loop {
            let first = self.under_way.first_entry().filter(|first| first.key().0 <= now)?;
            let ((at, _), packet) = first.remove_entry();
            if !self.switches.cut.is_on(self.direction) {
                return Some((at, packet));
            }
            self.recycle(packet);
        }
    }

    /// Keeps a buffer for reuse, unless there are [`SPARES`] already.
    pub(super) fn recycle(&mut self, packet: Vec<u8>) {
        if self.spare.len() < SPARES {
            self.spare.push(packet);
        }
    }

    pub(super) fn reading(&mut self, now: Time) -> Reading {
        let queued_bytes = self.link.queued_bytes(now);
        // The counters include the packets in the queue.
        let left_bytes = self.link.counters().delivered_bytes.saturating_sub(queued_bytes);
        Reading { left_bytes, queued_bytes }
    }

    pub(super) fn counters(&self) -> LinkCounters {
        self.link.counters()
    }
}
