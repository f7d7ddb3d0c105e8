//! Numbers for the addresses of clients: the endpoint knows a client's address by the number of a
//! path.

use plait_base::PathId;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses by number, and the other way round.
#[derive(Default, Debug)]
pub(crate) struct Peers {
    numbers: BTreeMap<IpAddr, PathId>,
    addresses: Vec<IpAddr>,
    /// Numbers whose addresses were forgotten.
    free: Vec<PathId>,
}

impl Peers {
    /// The number of an address, if it has one or there is one left.
    pub(crate) fn number(&mut self, address: IpAddr) -> Option<PathId> {
        if let Some(number) = self.numbers.get(&address) {
            return Some(*number);
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.addresses[number.index()] = address;
                number
            }
            None => {
                let number = PathId(u16::try_from(self.addresses.len()).ok()?);
                self.addresses.push(address);
                number
            }
        };
        self.numbers.insert(address, number);
        Some(number)
    }

    /// Whether an address that has no number would get none.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty() && self.addresses.len() > usize::from(u16::MAX)
    }

    /// The address with a number.
    pub(crate) fn address(&self, number: PathId) -> Option<IpAddr> {
        self.addresses.get(number.index()).copied()
    }

    /// Forgets the addresses whose numbers are not in use.
    pub(crate) fn forget(&mut self, in_use: impl Fn(PathId) -> bool) {
        let free = &mut self.free;
        self.numbers.retain(|_, number| {
            let keep = in_use(*number);
            if !keep {
                free.push(*number);
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_and_come_back() {
        let mut peers = Peers::default();
        let at = |n: u32| IpAddr::from(n.to_be_bytes());
        for n in 0..=0xffff {
            assert_eq!(peers.number(at(n)), Some(PathId(n as u16)));
        }
        assert_eq!(peers.number(at(7)), Some(PathId(7)));
        assert!(peers.is_full());
        assert_eq!(peers.number(at(0x1_0000)), None);
        peers.forget(|number| number != PathId(7));
        assert_eq!(peers.number(at(0x1_0000)), Some(PathId(7)));
        assert_eq!(peers.address(PathId(7)), Some(at(0x1_0000)));
        assert_eq!(peers.number(at(7)), None);
    }
}
