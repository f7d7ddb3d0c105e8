//! Routes, over netlink. Those through a device of ours go when it goes.

use crate::{Device, netlink};
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NetlinkPayload};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use std::io;
use std::net::IpAddr;

/// Sends packets for `address` alone to `device`, in the namespace of the calling thread.
///
/// # Errors
/// Where the process may not, or there is a route for that address already.
pub fn add_route(device: &Device, address: IpAddr) -> io::Result<()> {
    let (family, length, destination) = match address {
        IpAddr::V4(address) => (AddressFamily::Inet, 32, RouteAddress::Inet(address)),
        IpAddr::V6(address) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(address)),
    };
    let mut route = RouteMessage::default();
    route.header.address_family = family;
    route.header.destination_prefix_length = length;
    route.header.table = RouteHeader::RT_TABLE_MAIN;
    route.header.protocol = RouteProtocol::Static;
    route.header.scope = RouteScope::Universe;
    route.header.kind = RouteType::Unicast;
    route.attributes =
        vec![RouteAttribute::Destination(destination), RouteAttribute::Oif(device.index())];
    change(RouteNetlinkMessage::NewRoute(route))
}

/// Asks the kernel for a change, and waits for its answer.
fn change(message: RouteNetlinkMessage) -> io::Result<()> {
    let socket = netlink::ask(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = netlink::parse(&answer)?;
    match answer.payload {
        NetlinkPayload::Error(error) => match error.code {
            None => Ok(()),
            Some(_) => Err(error.to_io()),
        },
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "netlink answered with no verdict")),
    }
}
