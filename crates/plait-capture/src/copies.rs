//! Copies of packets: a capture of several interfaces may have a packet each time that it passes one of them.

use crate::packet::Seen;

/// Packets that are remembered.
const SLOTS: usize = 1 << 14;
/// A packet with the identification of an earlier one is its copy for this time, in nanoseconds.
const WITH_IDENT_NS: i64 = 1_000_000_000;
/// The same of packets without an identification. A retransmission that has the same clock value comes later.
const WITHOUT_IDENT_NS: i64 = 1_000_000;

/// A packet that is remembered.
#[derive(Clone, Copy)]
struct Slot {
    digest: u64,
    way: u64,
    at_ns: i64,
}

/// The latest packets of a file. The digest of a packet gives its slot, and a slot has its latest packet.
#[derive(Default)]
pub(crate) struct Copies {
    slots: Vec<Slot>,
}

impl Copies {
    /// Returns true if one of the latest packets equals a packet of another file.
    pub(crate) fn has(&self, seen: &Seen) -> bool {
        let slot = self.slots.get(seen.digest as usize % SLOTS);
        slot.is_some_and(|slot| slot.digest == seen.digest)
    }

    /// Takes the next packet. Returns true if it is a copy of an earlier one.
    pub(crate) fn is_copy(&mut self, seen: &Seen) -> bool {
        if self.slots.is_empty() {
            self.slots = vec![Slot { digest: 0, way: 0, at_ns: i64::MIN }; SLOTS];
        }
        let Seen { digest, way, at_ns, .. } = *seen;
        let limit = if seen.has_ident { WITH_IDENT_NS } else { WITHOUT_IDENT_NS };
        let Some(slot) = self.slots.get_mut(digest as usize % SLOTS) else { return false };
        // A receiver without SACK repeats its acknowledgements.
        let is_repeatable = seen.payload == 0 && seen.segment.options.sack.as_slice().is_empty();
        let differs = seen.has_ident || way != slot.way || !is_repeatable;
        if digest == slot.digest && at_ns.saturating_sub(slot.at_ns) < limit && differs {
            return true;
        }
        *slot = Slot { digest, way, at_ns };
        false
    }
}
