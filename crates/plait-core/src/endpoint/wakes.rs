//! Wake-up times of connections: a binary heap in which every entry stores its position, so that a
//! time can be changed in place.

use alloc::vec::Vec;
use plait_base::{ConnId, Time};

/// Handle of one wake-up time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Slot(u32);

/// The wake-up times.
#[derive(Default, Debug)]
pub(super) struct Wakes {
    /// No entry is earlier than its parent, which is at half its index.
    heap: Vec<(Time, Slot, ConnId)>,
    /// Position in the heap by slot.
    places: Vec<u32>,
    /// Unused slots.
    free: Vec<Slot>,
}

impl Wakes {
    /// Returns the earliest time; [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn first(&self) -> Time {
        self.heap.first().map_or(Time::NEVER, |(at, ..)| *at)
    }

    /// Adds a time for `id`.
    pub(super) fn add(&mut self, id: ConnId, at: Time) -> Slot {
        let place = self.heap.len();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(0);
            Slot(self.places.len() as u32 - 1)
        });
        self.heap.push((at, slot, id));
        self.places[slot.0 as usize] = place as u32;
        self.rise(place);
        slot
    }

    /// Changes the time of a slot.
    #[inline(never)]
    pub(super) fn set(&mut self, slot: Slot, at: Time) {
        let place = self.places[slot.0 as usize] as usize;
        self.heap[place].0 = at;
        self.on_changed(place);
    }

    fn on_changed(&mut self, place: usize) {
        self.rise(place);
        self.sink(place);
    }

    /// Removes a slot and its time.
    pub(super) fn remove(&mut self, slot: Slot) {
        let place = self.places[slot.0 as usize] as usize;
        self.heap.swap_remove(place);
        self.free.push(slot);
        if let Some((_, moved, _)) = self.heap.get(place) {
            self.places[moved.0 as usize] = place as u32;
            self.on_changed(place);
        }
    }

    /// Calls `f` for each connection that is due, in no particular order.
    pub(super) fn each_due(&self, now: Time, mut f: impl FnMut(ConnId)) {
        let is_due = |place: usize| self.heap.get(place).is_some_and(|(at, ..)| *at <= now);
        // Descend to the first child that is due, else continue with the next node of a traversal
        // that needs no stack: up while this is a right child, then to the right.
        let mut place = 0;
        while is_due(place) {
            f(self.heap[place].2);
            place = 2 * place + 1;
            while !is_due(place) {
                while place != 0 && place.is_multiple_of(2) {
                    place = (place - 1) / 2;
                }
                if place == 0 {
                    return;
                }
                place += 1;
            }
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].0 <= self.heap[place].0 {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let Some((at, ..)) = self.heap.get(left) else { return };
            let child = match self.heap.get(right) {
                Some((other, ..)) if other < at => right,
                _ => left,
            };
            if self.heap[place].0 <= self.heap[child].0 {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            self.places[self.heap[place].1.0 as usize] = place as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use plait_base::{RandomStream, Span};

    /// Compares with an ordered map, under random insertions, changes and removals.
    #[test]
    fn the_earliest_is_known_whatever_changes() {
        let mut stream = RandomStream::new(7, &["wakes"]);
        let mut draw = |below: u64| stream.bits() % below;
        let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
        let (mut wakes, mut model) = (Wakes::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let id = ConnId(draw(60) as u32);
            let time = if draw(10) == 0 { Time::NEVER } else { at(draw(50)) };
            match model.get_mut(&id) {
                Some((slot, _)) if draw(3) == 0 => {
                    wakes.remove(*slot);
                    model.remove(&id);
                }
                Some((slot, known)) => {
                    wakes.set(*slot, time);
                    *known = time;
                }
                None => {
                    model.insert(id, (wakes.add(id, time), time));
                }
            }
            let first = model.values().map(|(_, at)| *at).min();
            assert_eq!(wakes.first(), first.unwrap_or(Time::NEVER));
            let now = at(draw(50));
            let mut due = Vec::new();
            wakes.each_due(now, |id| due.push(id));
            due.sort_unstable();
            let is_due = |(_, (_, at)): &(_, &(_, Time))| *at <= now;
            let expected: Vec<_> = model.iter().filter(is_due).map(|(id, _)| *id).collect();
            assert_eq!(due, expected);
        }
        assert!(wakes.places.len() <= 60);
    }
}
