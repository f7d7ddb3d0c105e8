//! Reads the addresses of this host's devices over netlink.

use crate::netlink::{self, attributes};
use rustix::net::{
    AddressFamily as Family, SocketType,
    netdevice::{index_to_name, name_to_index},
    socket,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// IFA_ADDRESS and IFA_LOCAL.
const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;

/// Returns whether a device in the namespace of the calling thread has an address. Needs no capability.
///
/// # Errors
/// If there is no such device, or if the netlink request fails.
pub fn has_address(device: &str, address: IpAddr) -> io::Result<bool> {
    let any = socket(Family::INET, SocketType::DGRAM, None)?;
    let index = name_to_index(&any, device)?;
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let mut found = false;
    each_address(address.is_ipv4(), |device, rest| {
        found |= device == index && has(rest, &octets);
    })?;
    Ok(found)
}

/// Returns whether these attributes have an address.
fn has(rest: &[u8], octets: &[u8]) -> bool {
    // In IPv4, ADDRESS is the peer's address on a point-to-point link.
    let is_v6 = octets.len() > 4;
    attributes(rest)
        .any(|(kind, value)| value == octets && (kind == LOCAL || kind == ADDRESS && is_v6))
}

/// Returns the first IPv4 address of a device in the namespace of the calling thread; `None` if it has none.
/// Needs no capability.
///
/// # Errors
/// If there is no such device, or if the netlink request fails.
pub fn first_v4(device: &str) -> io::Result<Option<Ipv4Addr>> {
    let any = socket(Family::INET, SocketType::DGRAM, None)?;
    let index = name_to_index(&any, device)?;
    let mut first = None;
    each_address(true, |device, rest| {
        let mut own = attributes(rest).filter(|(kind, _)| device == index && *kind == LOCAL);
        let own = own.find_map(|(_, value)| <[u8; 4]>::try_from(value).ok());
        first = first.or(own.map(Ipv4Addr::from));
    })?;
    Ok(first)
}

/// Returns the name of the device in the namespace of the calling thread that has an address. Needs no capability.
///
/// # Errors
/// If the netlink request fails.
pub fn device_of(address: IpAddr) -> io::Result<Option<String>> {
    let any = socket(Family::INET, SocketType::DGRAM, None)?;
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let mut found = None;
    each_address(address.is_ipv4(), |device, rest| {
        if has(rest, &octets) {
            found = Some(device);
        }
    })?;
    Ok(found.and_then(|index| index_to_name(&any, index).ok()))
}

/// Returns whether any device in the namespace of the calling thread has an address of a family. If none
/// has, as when `lo` was never up, the kernel lets sockets bind any address.
///
/// # Errors
/// If the netlink request fails.
pub fn has_addresses(v4: bool) -> io::Result<bool> {
    let mut found = false;
    each_address(v4, |_, _| found = true)?;
    Ok(found)
}

/// Calls `f` with each address of a family: the index of its device, and its attributes.
fn each_address(v4: bool, mut f: impl FnMut(u32, &[u8])) -> io::Result<()> {
    // `struct ifaddrmsg`: the family, and no device in particular.
    let mut body = [0; netlink::ADDRESS_BYTES];
    body[0] = netlink::family(v4);
    let socket = netlink::ask(netlink::GET_ADDRESS, netlink::DUMP, &body)?;
    loop {
        let (answers, _) = socket.recv_from_full()?;
        for reply in netlink::replies(&answers) {
            let reply = reply?;
            match reply.kind {
                netlink::DONE => return Ok(()),
                netlink::VERDICT => return reply.verdict(),
                netlink::NEW_ADDRESS => {
                    if let (Some(index), Some(rest)) =
                        (reply.number(4), reply.body.get(netlink::ADDRESS_BYTES..))
                    {
                        f(index, rest);
                    }
                }
                _ => {}
            }
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
        assert_eq!(device_of([127, 0, 0, 1].into()).unwrap().as_deref(), Some("lo"));
        assert_eq!(device_of([192, 0, 2, 1].into()).unwrap(), None);
        assert_eq!(first_v4("lo").unwrap(), Some(Ipv4Addr::LOCALHOST));
        assert!(first_v4("nosuchdevice").is_err());
    }
}
