//! Numbers for the addresses of listening hosts, so that a segment names one in a byte.

use alloc::vec::Vec;
use core::net::IpAddr;
use plait_base::ServerAddress;

/// Addresses by number; number 0 is the one that clients dial and is not kept here.
#[derive(Default, Debug)]
pub(crate) struct Directory(Vec<IpAddr>);

impl Directory {
    pub(crate) fn number(&mut self, address: IpAddr) -> Option<ServerAddress> {
        let known = self.0.iter().position(|it| *it == address);
        let index = known.unwrap_or(self.0.len());
        let number = u8::try_from(index + 1).ok()?;
        if known.is_none() {
            self.0.push(address);
        }
        Some(ServerAddress(number))
    }

    pub(crate) fn address(&self, number: ServerAddress) -> Option<IpAddr> {
        self.0.get(usize::from(number.0).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_number_and_numbers_end() {
        let mut directory = Directory::default();
        let at = |n: u16| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        for n in 1..=255 {
            assert_eq!(directory.number(at(n)), Some(ServerAddress(n as u8)));
        }
        assert_eq!(directory.number(at(7)), Some(ServerAddress(7)));
        assert_eq!(directory.number(at(256)), None);
        assert_eq!(directory.address(ServerAddress(255)), Some(at(255)));
        assert_eq!(directory.address(ServerAddress(0)), None);
    }
}
