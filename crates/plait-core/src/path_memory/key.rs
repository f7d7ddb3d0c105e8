//! The addresses that an entry of the path memory is for.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The key of an entry: an address of this host, and the network of the other end.
///
/// Hosts of one network mostly share the path to it, so they share an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PathKey {
    own: IpAddr,
    network: IpAddr,
}

impl PathKey {
    /// Bits of an IPv4 address that name the network.
    pub const V4_BITS: u8 = 24;
    /// Bits of an IPv6 address that name the network.
    pub const V6_BITS: u8 = 48;

    /// Returns the key for packets between `own` and `theirs`.
    #[must_use]
    pub fn new(own: IpAddr, theirs: IpAddr) -> PathKey {
        let network = match theirs {
            IpAddr::V4(theirs) => {
                let mask = u32::MAX << (32 - PathKey::V4_BITS);
                Ipv4Addr::from(u32::from(theirs) & mask).into()
            }
            IpAddr::V6(theirs) => {
                let mask = u128::MAX << (128 - PathKey::V6_BITS);
                Ipv6Addr::from(u128::from(theirs) & mask).into()
            }
        };
        PathKey { own, network }
    }

    /// Returns the address of this host.
    #[must_use]
    pub const fn own(&self) -> IpAddr {
        self.own
    }

    /// Returns the first address of the other end's network.
    #[must_use]
    pub const fn network(&self) -> IpAddr {
        self.network
    }

    /// Returns the length of the network's prefix in bits.
    #[must_use]
    pub const fn bits(&self) -> u8 {
        if self.network.is_ipv4() { PathKey::V4_BITS } else { PathKey::V6_BITS }
    }
}

impl fmt::Display for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.own, self.network, self.bits())
    }
}

/// The addresses of a path, which the driver knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathName {
    /// The address of this host, if it belongs to the path (an end that dials). On an end that
    /// listens, a path is a client's address, and a segment has the number of the own address.
    pub own: Option<IpAddr>,
    /// The address of the other end. On an end that dials, it is the dialled address.
    pub theirs: IpAddr,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn hosts_of_a_network_share_a_key() {
        let key = |own: &str, theirs: &str| {
            PathKey::new(own.parse().unwrap(), theirs.parse().unwrap()).to_string()
        };
        for (own, theirs, shown) in [
            ("10.0.0.7", "192.0.2.255", "10.0.0.7 192.0.2.0/24"),
            ("10.0.0.7", "192.0.2.1", "10.0.0.7 192.0.2.0/24"),
            ("10.0.0.8", "192.0.3.1", "10.0.0.8 192.0.3.0/24"),
            ("fd00::7", "2001:db8:1:2::9", "fd00::7 2001:db8:1::/48"),
            ("fd00::7", "2001:db8:1:ffff::", "fd00::7 2001:db8:1::/48"),
            ("fd00::7", "2001:db8:2::", "fd00::7 2001:db8:2::/48"),
        ] {
            assert_eq!(key(own, theirs), shown);
        }
    }
}
