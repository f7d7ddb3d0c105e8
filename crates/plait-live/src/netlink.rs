//! Sends rtnetlink requests about routes, addresses and devices, and parses the replies.

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;

/// Sends a request with NLM_F_REQUEST and `flags`. The replies arrive at the returned socket.
pub(crate) fn ask(message: RouteNetlinkMessage, flags: u16) -> io::Result<Socket> {
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | flags;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&bytes, 0)?;
    Ok(socket)
}

/// Sends a change with NLM_F_ACK and `flags`, and waits for the kernel's reply.
pub(crate) fn change(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let socket = ask(message, NLM_F_ACK | flags)?;
    let (answer, _) = socket.recv_from_full()?;
    match parse(&answer)?.payload {
        NetlinkPayload::Error(error) => match error.code {
            None => Ok(()),
            Some(_) => Err(error.to_io()),
        },
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "netlink answered with no verdict")),
    }
}

/// Parses the first reply in `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> io::Result<NetlinkMessage<RouteNetlinkMessage>> {
    NetlinkMessage::deserialize(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}
