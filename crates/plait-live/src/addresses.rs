//! Reads the addresses of this host's devices over netlink.

use crate::netlink;
use netlink_packet_core::{NLM_F_DUMP, NetlinkPayload};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{AddressFamily as Family, SocketType, netdevice::name_to_index, socket};
use std::io;
use std::net::IpAddr;

/// Returns whether a device in the namespace of the calling thread has an address. Needs no capability.
///
/// # Errors
/// If there is no such device, or if the netlink request fails.
pub fn has_address(device: &str, address: IpAddr) -> io::Result<bool> {
    let any = socket(Family::INET, SocketType::DGRAM, None)?;
    let index = name_to_index(&any, device)?;
    let mut found = false;
    each_address(address.is_ipv4(), |message| {
        let is_it = |attribute: &AddressAttribute| match attribute {
            AddressAttribute::Local(own) => *own == address,
            // In IPv4, this is the peer's address on a point-to-point link.
            AddressAttribute::Address(own) => address.is_ipv6() && *own == address,
            _ => false,
        };
        found |= message.header.index == index && message.attributes.iter().any(is_it);
    })?;
    Ok(found)
}

/// Returns whether any device in the namespace of the calling thread has an address of a family. If none
/// has, as when `lo` was never up, the kernel lets sockets bind any address.
///
/// # Errors
/// If the netlink request fails.
pub fn has_addresses(v4: bool) -> io::Result<bool> {
    let mut found = false;
    each_address(v4, |_| found = true)?;
    Ok(found)
}

/// Calls `f` with each address of a family.
fn each_address(v4: bool, mut f: impl FnMut(&AddressMessage)) -> io::Result<()> {
    let mut asked = AddressMessage::default();
    asked.header.family = if v4 { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = netlink::ask(RouteNetlinkMessage::GetAddress(asked), NLM_F_DUMP)?;
    loop {
        let (answers, _) = socket.recv_from_full()?;
        let mut rest = &answers[..];
        while !rest.is_empty() {
            let answer = netlink::parse(rest)?;
            match answer.payload {
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewAddress(message)) => {
                    f(&message);
                }
                _ => {}
            }
            // Each message begins at a multiple of four bytes.
            let len = (answer.header.length as usize).next_multiple_of(4).max(4);
            rest = rest.get(len..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn the_loopback_device_has_its_addresses_and_no_others() {
        assert!(has_address("lo", [127, 0, 0, 1].into()).unwrap());
        assert!(!has_address("lo", [192, 0, 2, 1].into()).unwrap());
        assert!(!has_address("lo", Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()).unwrap());
        assert!(has_address("nosuchdevice", [127, 0, 0, 1].into()).is_err());
        assert!(has_addresses(true).unwrap());
    }
}
