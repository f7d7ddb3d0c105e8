//! Watches over netlink whether the device is up.

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkFlags;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// RTMGRP_LINK.
const LINKS: u32 = 1;

/// Watches the state of one device. Needs no capability.
#[derive(Debug)]
pub(crate) struct LinkWatch {
    socket: Socket,
    index: u32,
    up: bool,
}

impl LinkWatch {
    /// Watches the device with this interface index. It must be up.
    pub(crate) fn open(index: u32) -> io::Result<LinkWatch> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, LINKS))?;
        socket.set_non_blocking(true)?;
        Ok(LinkWatch { socket, index, up: true })
    }

    /// Returns the changes since the last call, in order: true if the device came up, false if it went down.
    pub(crate) fn news(&mut self) -> Vec<bool> {
        let mut news = Vec::new();
        // If the kernel had to drop messages, the next message shows the state.
        while let Ok((bytes, _)) = self.socket.recv_from_full() {
            if let Some(up) = self.state(&bytes).filter(|up| *up != self.up) {
                self.up = up;
                news.push(up);
            }
        }
        news
    }

    fn state(&self, bytes: &[u8]) -> Option<bool> {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).ok()?;
        match message.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                (link.header.index == self.index).then(|| link.header.flags.contains(LinkFlags::Up))
            }
            _ => None,
        }
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
