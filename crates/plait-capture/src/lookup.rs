//! Numbers of address pairs. Most packets belong to a few pairs, so the latest ones are found without a search.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Pairs that are found without a search.
const SLOTS: usize = 1 << 12;

/// Two addresses with their ports, in an order.
pub(crate) type Ends = (SocketAddr, SocketAddr);

/// Address pairs, numbered from 0 in the order in which they were added.
#[derive(Default, Debug)]
pub(crate) struct Lookup {
    pairs: Vec<Ends>,
    sorted: BTreeMap<Ends, u32>,
    /// The number after that of the latest pair with this hash; zero if there is none.
    latest: Vec<u32>,
}

impl Lookup {
    /// Adds a new pair, and returns its number.
    pub(crate) fn add(&mut self, ends: Ends) -> usize {
        let number = self.pairs.len();
        self.pairs.push(ends);
        self.sorted.insert(ends, number as u32);
        number
    }

    /// Returns the number of a pair; none if it was not added.
    pub(crate) fn known(&self, ends: &Ends) -> Option<usize> {
        self.sorted.get(ends).map(|number| *number as usize)
    }

    /// Does the same. The pair is then found faster.
    pub(crate) fn find(&mut self, ends: &Ends) -> Option<usize> {
        if self.latest.is_empty() {
            self.latest = vec![0; SLOTS];
        }
        let slot = self.latest.get_mut(slot(ends))?;
        let latest = (*slot as usize).checked_sub(1);
        if let Some(number) = latest.filter(|number| self.pairs.get(*number) == Some(ends)) {
            return Some(number);
        }
        let number = *self.sorted.get(ends)?;
        *slot = number + 1;
        Some(number as usize)
    }
}

/// Returns the slot of a pair.
fn slot((first, second): &Ends) -> usize {
    let mut digest = Digest::default();
    for end in [first, second] {
        match end.ip() {
            IpAddr::V4(ip) => digest.add(u64::from(ip.to_bits()) << 16 | u64::from(end.port())),
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                digest.add((bits >> 64) as u64);
                digest.add(bits as u64 ^ u64::from(end.port()) << 48);
            }
        }
    }
    digest.value() as usize % SLOTS
}

/// A digest of words and bytes. It is the same in all runs, and not made against attacks.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    /// Adds a word: both halves of a long product depend on all of its bits.
    pub(crate) fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(23);
    }

    /// Adds bytes and their number, or that there are none.
    pub(crate) fn add_bytes(&mut self, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else { return self.add(u64::MAX) };
        self.add(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.add(u64::from_le_bytes(word));
        }
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn ends(number: u32) -> Ends {
        let client = match number % 2 {
            0 => IpAddr::from(number.to_be_bytes()),
            _ => IpAddr::from(u128::from(number).to_be_bytes()),
        };
        let (port, server) = (1_000 + number as u16 % 50, IpAddr::from([192, 0, 2, 1]));
        (SocketAddr::new(client, port), SocketAddr::new(server, 443))
    }

    #[test]
    fn more_pairs_than_slots_keep_their_numbers() {
        let mut lookup = Lookup::default();
        let count = SLOTS as u32 * 3;
        for number in 0..count {
            assert_eq!(lookup.find(&ends(number)), None);
            assert_eq!(lookup.add(ends(number)), number as usize);
        }
        for number in (0..count).chain((0..count).rev()).chain(0..count) {
            assert_eq!(lookup.find(&ends(number)), Some(number as usize));
            assert_eq!(lookup.known(&ends(number)), Some(number as usize));
        }
        assert_eq!(lookup.find(&ends(count)), None);
    }

    #[test]
    fn digests_differ_if_a_bit_differs() {
        let of = |bytes: &[u8]| {
            let mut digest = Digest::default();
            digest.add_bytes(Some(bytes));
            digest.value()
        };
        let mut seen = BTreeSet::from([of(&[0; 60]), of(&[0; 59]), of(&[])]);
        for bit in 0..480 {
            let mut bytes = [0u8; 60];
            bytes[bit / 8] |= 1 << (bit % 8);
            seen.insert(of(&bytes));
        }
        assert_eq!(seen.len(), 483);
        let slots: BTreeSet<u64> = seen.iter().map(|digest| digest % 16_384).collect();
        assert!(slots.len() > 460, "{}", slots.len());
    }
}
