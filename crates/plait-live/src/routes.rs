//! Adds routes over netlink. The kernel removes the routes of a device together with the device.

use crate::{Device, netlink};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use std::io;
use std::net::IpAddr;

/// Adds a host route for `address` to `device`, in the namespace of the calling thread.
///
/// # Errors
/// If the process may not add routes, or if the address already has a route.
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
    netlink::change(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_EXCL)
}
