//! One-byte numbers for the addresses of listening hosts.

use alloc::vec::Vec;
use core::net::IpAddr;
use plait_base::ServerAddress;

/// First of the ephemeral ports (RFC 6335 section 6).
pub(crate) const FIRST_PORT: u16 = 49_152;

/// Beyond this many numbers, unused ones are reclaimed.
const CROWDED_ADDRESSES: usize = 128;

/// An address that has a number.
#[derive(Clone, Copy, Debug)]
struct Entry {
    address: IpAddr,
    /// A peer has announced it. Its number is freed when no connection uses it.
    learnt: bool,
}

/// The numbers that are in use.
pub(crate) struct InUse([bool; 256]);

impl InUse {
    pub(crate) const NONE: InUse = InUse([false; 256]);

    pub(crate) fn note(&mut self, number: ServerAddress) {
        self.0[usize::from(number.0)] = true;
    }
}

/// Addresses by number; number 0 is the one that clients dial and is not kept here.
#[derive(Default, Debug)]
pub(crate) struct Directory(Vec<Option<Entry>>);

impl Directory {
    /// Returns the number of an address of this host. It is never reclaimed.
    pub(crate) fn number(&mut self, address: IpAddr) -> Option<ServerAddress> {
        self.place(Entry { address, learnt: false })
    }

    /// Returns the number of an address that a peer has announced.
    pub(crate) fn learn(&mut self, address: IpAddr) -> Option<ServerAddress> {
        self.place(Entry { address, learnt: true })
    }

    /// Returns the number of an address, or assigns the lowest free one.
    fn place(&mut self, entry: Entry) -> Option<ServerAddress> {
        if let Some(number) = self.known(entry.address) {
            if let Some(Some(known)) = self.0.get_mut(usize::from(number.0) - 1) {
                known.learnt &= entry.learnt;
            }
            return Some(number);
        }
        let index = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        let number = u8::try_from(index + 1).ok().filter(|it| *it != ServerAddress::NONE.0)?;
        match self.0.get_mut(index) {
            Some(free) => *free = Some(entry),
            None => self.0.push(Some(entry)),
        }
        Some(ServerAddress(number))
    }

    /// Returns the number of an address, if it has one.
    pub(crate) fn known(&self, address: IpAddr) -> Option<ServerAddress> {
        let is = |entry: &Option<Entry>| entry.is_some_and(|entry| entry.address == address);
        let index = self.0.iter().position(is)?;
        u8::try_from(index + 1).ok().map(ServerAddress)
    }

    pub(crate) fn address(&self, number: ServerAddress) -> Option<IpAddr> {
        let index = usize::from(number.0).checked_sub(1)?;
        self.0.get(index)?.map(|entry| entry.address)
    }

    /// Returns true if enough numbers are assigned to call [`Directory::reclaim`].
    pub(crate) fn is_crowded(&self) -> bool {
        self.0.len() > CROWDED_ADDRESSES
    }

    /// Frees the numbers of announced addresses that are not in use.
    pub(crate) fn reclaim(&mut self, in_use: &InUse) {
        for (index, entry) in self.0.iter_mut().enumerate() {
            let used = in_use.0.get(index + 1).is_none_or(|used| *used);
            *entry = entry.filter(|entry| used || !entry.learnt);
        }
        while self.0.last().is_some_and(Option::is_none) {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u16) -> IpAddr {
        IpAddr::from([10, 0, (n >> 8) as u8, n as u8])
    }

    #[test]
    fn an_address_keeps_its_number_and_numbers_end() {
        let mut directory = Directory::default();
        for n in 1..=254 {
            assert_eq!(directory.number(at(n)), Some(ServerAddress(n as u8)));
        }
        assert_eq!(directory.number(at(7)), Some(ServerAddress(7)));
        assert_eq!(directory.number(at(255)), None);
        assert_eq!(directory.address(ServerAddress(254)), Some(at(254)));
        assert_eq!(directory.address(ServerAddress(0)), None);
    }

    #[test]
    fn numbers_of_announced_addresses_come_back() {
        let mut directory = Directory::default();
        directory.number(at(1));
        for n in 2..=254 {
            assert_eq!(directory.learn(at(n)), Some(ServerAddress(n as u8)));
        }
        // This host then registers the address as its own.
        assert_eq!(directory.number(at(9)), Some(ServerAddress(9)));
        assert!(directory.is_crowded() && directory.learn(at(300)).is_none());
        let mut in_use = InUse::NONE;
        in_use.note(ServerAddress(200));
        directory.reclaim(&in_use);
        let left: Vec<_> =
            (1..=254).filter(|n| directory.address(ServerAddress(*n)).is_some()).collect();
        assert_eq!(left, [1, 9, 200]);
        assert_eq!(directory.known(at(200)), Some(ServerAddress(200)));
        assert_eq!(directory.learn(at(300)), Some(ServerAddress(2)));
    }
}
