//! Watches over netlink whether the device is up.

use crate::netlink::{self, Reply};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// RTMGRP_LINK.
const LINKS: u32 = 1;

/// IFF_UP.
const UP: u32 = 1;

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
            for reply in netlink::replies(&bytes).map_while(Result::ok) {
                if let Some(up) = self.state(&reply).filter(|up| *up != self.up) {
                    self.up = up;
                    news.push(up);
                }
            }
        }
        news
    }

    /// Returns whether the device is up, if the message has its state.
    fn state(&self, reply: &Reply<'_>) -> Option<bool> {
        // `struct ifinfomsg` has the index and the flags at these bytes.
        let (index, flags) = (reply.number(4)?, reply.number(8)?);
        (reply.kind == netlink::NEW_LINK && index == self.index).then_some(flags & UP != 0)
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
