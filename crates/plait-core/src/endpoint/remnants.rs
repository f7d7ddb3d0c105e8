//! State of subflows in TIME-WAIT, or in FIN-WAIT-2 after both directions of the data have ended.
//! The connection itself is removed, so that many short connections need little memory.

use crate::endpoint::Endpoint;
use crate::endpoint::cookies::Client;
use crate::endpoint::ordered::{MIN_CAPACITY, Ordered};
use crate::paths::remnant::Remnant;
use crate::tcp::address::Address;
use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use plait_base::{PathId, ServerAddress, Time};
use plait_wire::{Flags, Segment, WireSeq};

/// Largest number of remnants. A further one replaces the one whose wait ends first.
const MAX_REMNANTS: usize = 32_768;
/// Bytes of memory of a remnant, table entries included.
const REMNANT_BYTES: u64 = 160;

/// All remnants of an endpoint, in two arrays that shrink as they empty.
#[derive(Default, Debug)]
pub(super) struct Remnants {
    by_address: Ordered<Address, Remnant>,
    /// The end of each wait, the first one on top. Entries of removed remnants may remain below it.
    by_end: BinaryHeap<Reverse<(Time, Address)>>,
    /// How many are in FIN-WAIT-2.
    half_closed: usize,
}

impl Remnants {
    /// Adds a remnant. Returns true if it replaced another one.
    pub(super) fn add(&mut self, address: Address, remnant: Remnant) -> bool {
        self.remove(address);
        let full = self.by_address.len() >= MAX_REMNANTS;
        if let Some(Reverse((_, oldest))) = self.by_end.peek().copied().filter(|_| full) {
            self.remove(oldest);
        }
        self.half_closed += usize::from(remnant.is_half_closed());
        self.by_end.push(Reverse((remnant.until(), address)));
        self.by_address.insert(address, remnant);
        full
    }

    fn remove(&mut self, address: Address) -> Option<Remnant> {
        let remnant = self.by_address.remove(address)?;
        self.half_closed -= usize::from(remnant.is_half_closed());
        while let Some(Reverse(first)) = self.by_end.peek()
            && !self.is_awaited(first)
        {
            self.by_end.pop();
        }
        if self.by_end.len() > 2 * self.by_address.len() + MIN_CAPACITY {
            let mut ends = core::mem::take(&mut self.by_end).into_vec();
            ends.retain(|Reverse(end)| self.is_awaited(end));
            ends.sort_unstable();
            ends.dedup();
            self.by_end = ends.into();
        }
        let (len, capacity) = (self.by_end.len(), self.by_end.capacity());
        if capacity > MIN_CAPACITY && capacity / 4 > len {
            self.by_end.shrink_to(2 * len);
        }
        Some(remnant)
    }

    /// Returns true if this is the end of the wait of a remnant.
    fn is_awaited(&self, (until, address): &(Time, Address)) -> bool {
        self.by_address.get(*address).is_some_and(|remnant| remnant.until() == *until)
    }

    pub(super) fn contains(&self, address: Address) -> bool {
        self.by_address.get(address).is_some()
    }

    /// Returns when the next wait ends.
    pub(super) fn next(&self) -> Time {
        self.by_end.peek().map_or(Time::NEVER, |Reverse((until, _))| *until)
    }

    /// Removes remnants whose wait has ended.
    pub(super) fn expire(&mut self, now: Time) {
        while let Some(Reverse((until, address))) = self.by_end.peek().copied()
            && until <= now
        {
            self.remove(address);
        }
    }

    /// Removes the remnants on a path.
    pub(super) fn leave(&mut self, path: PathId) {
        while let Some(address) = self.on(path) {
            self.remove(address);
        }
    }

    /// Returns one remnant on a path.
    pub(super) fn on(&self, path: PathId) -> Option<Address> {
        let address = self.by_address.first_from(Address::default().on_path(path))?;
        (address.path() == path).then_some(address)
    }

    /// Returns the number of the server's address of each remnant.
    pub(super) fn servers(&self) -> impl Iterator<Item = ServerAddress> {
        self.by_address.iter().map(|(address, _)| address.server())
    }

    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    pub(super) fn half_closed(&self) -> usize {
        self.half_closed
    }

    /// Returns the approximate bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.len() as u64 * REMNANT_BYTES
    }
}

impl Endpoint {
    /// Processes a segment for the address of a remnant. Returns false if there is no remnant.
    #[cold]
    pub(super) fn handle_remnant(
        &mut self,
        now: Time,
        client: Client,
        address: Address,
        segment: &Segment,
    ) -> bool {
        let Some(remnant) = self.remnants.by_address.get_mut(address) else { return false };
        if segment.flags.has(Flags::RST) {
            // RFC 5961 section 3.2: only the exact sequence number resets a subflow.
            if WireSeq(segment.seq) == remnant.ack() {
                self.remnants.remove(address);
            }
            return true;
        }
        let syn = segment.flags.has(Flags::SYN);
        if syn && !segment.flags.has(Flags::ACK) && remnant.gives_way_to(segment) {
            let after = remnant.seq();
            self.remnants.remove(address);
            self.on_syn(now, client, address, segment, Some(after));
            return true;
        }
        let fin = segment.flags.has(Flags::FIN) && !syn;
        let seq = WireSeq(segment.seq);
        let end = seq.plus(segment.payload.len());
        let in_order = !syn && segment.flags.has(Flags::ACK) && !remnant.ack().is_before(seq);
        if in_order {
            remnant.note_stamp(segment);
        }
        let mut later = *remnant;
        if in_order && later.takes(now, end, fin) {
            self.answers.push_back(later.acknowledgement(now, address));
            self.remnants.add(address, later);
            return true;
        }
        // A retransmission must be acknowledged again; a bare acknowledgement must not.
        let tells_end = segment.options.dss.is_some_and(|dss| dss.data_fin);
        let repeats = segment.seq_len() > 0 || seq.is_before(remnant.ack()) || tells_end;
        if repeats && remnant.may_answer(now, fin) {
            let answer = remnant.acknowledgement(now, address);
            self.answers.push_back(answer);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::clock::StampClock;
    use plait_base::Span;

    /// The table has a limit; a new remnant replaces the one whose wait ends first.
    #[test]
    fn the_oldest_gives_way() {
        let at = |number: usize| Time::ZERO + Span::from_millis(number as u64);
        let address = |number: usize| {
            let path = PathId((number >> 8) as u32);
            Address::new(path, ServerAddress(0), 0, number as u16 & 0xff)
        };
        let clock = StampClock::new(0);
        let remnant =
            |number| Remnant::new(&Segment::default(), clock, number % 2 == 0, at(number));
        let mut all = Remnants::default();
        for number in 0..MAX_REMNANTS {
            assert!(!all.add(address(number), remnant(number)));
        }
        assert!(all.add(address(MAX_REMNANTS), remnant(MAX_REMNANTS)));
        assert_eq!((all.len(), all.next(), all.contains(address(0))), (MAX_REMNANTS, at(1), false));
        assert_eq!(all.half_closed(), MAX_REMNANTS / 2);
        all.leave(PathId(0));
        assert_eq!((all.len(), all.on(PathId(0))), (MAX_REMNANTS - 255, None));
        all.expire(at(MAX_REMNANTS));
        assert_eq!((all.len(), all.half_closed(), all.by_end.len()), (0, 0, 0));
        assert_eq!(all.next(), Time::NEVER);
        assert!(all.by_end.capacity() <= MIN_CAPACITY);
        assert!(size_of::<(Address, Remnant)>() <= 72);
    }

    /// A client opens the same connection again and again, each time with a new wait. Outdated ends
    /// of waits do not accumulate.
    #[test]
    fn replaced_remnants_leave_no_ends() {
        let at = |second: u64| Time::ZERO + Span::from_secs(second);
        let clock = StampClock::new(0);
        let remnant = |until| Remnant::new(&Segment::default(), clock, false, at(until));
        let mut all = Remnants::default();
        for port in 0..10 {
            let address = Address::new(PathId(1), ServerAddress(0), 0, port);
            all.add(address, remnant(100_000 + u64::from(port)));
        }
        for second in 0..10_000 {
            let address = Address::new(PathId(0), ServerAddress(0), 0, 1);
            all.add(address, remnant(200_000 - second));
            assert_eq!(all.next(), at(100_000));
        }
        assert!(all.by_end.len() <= 2 * 11 + MIN_CAPACITY, "{}", all.by_end.len());
        all.leave(PathId(1));
        assert_eq!((all.len(), all.next()), (1, at(200_000 - 9_999)));
    }
}
