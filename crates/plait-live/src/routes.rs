//! Routes, over netlink. Those through a device of ours go when it goes.

use crate::Device;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
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
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&bytes, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    match answer.payload {
        NetlinkPayload::Error(error) => match error.code {
            None => Ok(()),
            Some(_) => Err(error.to_io()),
        },
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "netlink answered with no verdict")),
    }
}
