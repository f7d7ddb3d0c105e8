//! Encodes rtnetlink requests (`linux/rtnetlink.h`), sends them, and parses the kernel's replies.

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;

/// RTM_NEWLINK, RTM_SETLINK, RTM_NEWADDR, RTM_GETADDR and RTM_NEWROUTE.
pub(crate) const NEW_LINK: u16 = 16;
pub(crate) const SET_LINK: u16 = 19;
pub(crate) const NEW_ADDRESS: u16 = 20;
pub(crate) const GET_ADDRESS: u16 = 22;
pub(crate) const NEW_ROUTE: u16 = 24;

/// NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_DUMP and NLM_F_CREATE.
pub(crate) const REQUEST: u16 = 1;
pub(crate) const ACK: u16 = 4;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const DUMP: u16 = 0x300;
pub(crate) const CREATE: u16 = 0x400;

/// NLMSG_ERROR: an acknowledgement if its code is 0, else an error.
pub(crate) const VERDICT: u16 = 2;
/// NLMSG_DONE: the end of a dump.
pub(crate) const DONE: u16 = 3;
/// Bytes of `struct nlmsghdr`.
pub(crate) const HEADER_BYTES: usize = 16;

/// Bytes of `struct ifinfomsg` and of `struct ifaddrmsg`.
pub(crate) const LINK_BYTES: usize = 16;
pub(crate) const ADDRESS_BYTES: usize = 8;

/// AF_INET and AF_INET6.
pub(crate) fn family(v4: bool) -> u8 {
    if v4 { 2 } else { 10 }
}

/// Encodes `struct nlattr` and its value, padded to a multiple of four bytes.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = (4 + value.len()) as u16;
    let mut bytes = [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Returns the kinds and values of encoded attributes. A truncated attribute ends them.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [a, b, c, d] = *bytes.first_chunk()?;
        let len = usize::from(u16::from_ne_bytes([a, b]));
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]), value))
    })
}

/// A message of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) kind: u16,
    /// The bytes after the header, without padding.
    pub(crate) body: &'a [u8],
}

impl Reply<'_> {
    /// Returns the error of a verdict, or `Ok` if the kernel has done the change.
    ///
    /// # Errors
    /// If the kernel refused the request, or if this is no verdict.
    pub(crate) fn verdict(&self) -> io::Result<()> {
        match (self.kind, self.body.first_chunk().map(|code| i32::from_ne_bytes(*code))) {
            (VERDICT, Some(0)) => Ok(()),
            (VERDICT, Some(code)) => Err(io::Error::from_raw_os_error(code.wrapping_neg())),
            _ => Err(invalid("netlink answered with no verdict")),
        }
    }

    /// Returns the number at a byte of the body, if the body is long enough.
    pub(crate) fn number(&self, at: usize) -> Option<u32> {
        self.body.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
    }
}

/// Returns the messages in `bytes`. A truncated message is an error and ends them.
pub(crate) fn replies(mut bytes: &[u8]) -> impl Iterator<Item = io::Result<Reply<'_>>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let header = bytes.first_chunk::<HEADER_BYTES>();
        let len = header.map_or(0, |it| u32::from_ne_bytes([it[0], it[1], it[2], it[3]]) as usize);
        let (Some(header), Some(body)) = (header, bytes.get(HEADER_BYTES..len)) else {
            bytes = &[];
            return Some(Err(invalid("netlink answered with a truncated message")));
        };
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(Reply { kind: u16::from_ne_bytes([header[4], header[5]]), body }))
    })
}

/// Sends a request with NLM_F_REQUEST and `flags`. The replies arrive at the returned socket.
pub(crate) fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<Socket> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&message(kind, REQUEST | flags, body), 0)?;
    Ok(socket)
}

/// Sends a change with NLM_F_ACK and `flags`, and waits for the kernel's reply.
pub(crate) fn change(kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    let (answer, _) = ask(kind, ACK | flags, body)?.recv_from_full()?;
    replies(&answer)
        .next()
        .unwrap_or_else(|| Err(invalid("netlink answered with no bytes")))?
        .verdict()
}

/// Encodes `struct nlmsghdr` and the body. Sequence and port are 0, because each socket has one request.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let len = (HEADER_BYTES + body.len()) as u32;
    [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8], body].concat()
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_their_length_and_are_filled_up() {
        let encoded = attribute(3, &[7]);
        let len = 5_u16.to_ne_bytes();
        assert_eq!(encoded, [&len[..], &3_u16.to_ne_bytes(), &[7, 0, 0, 0]].concat());
        let two = [encoded, attribute(9, b"nat\0")].concat();
        let found: Vec<_> = attributes(&two).collect();
        assert_eq!(found, [(3, &[7][..]), (9, b"nat\0")]);
        // Without its last byte, the second attribute is no attribute.
        assert_eq!(attributes(&two[..two.len() - 1]).count(), 1);
        assert_eq!(attributes(&[3, 0, 0, 0]).count(), 0);
    }

    #[test]
    fn replies_are_read_up_to_a_truncated_one() {
        let error = message(VERDICT, 0, &[&(-17_i32).to_ne_bytes()[..], &[0; 3]].concat());
        let done = message(DONE, 0, &0_i32.to_ne_bytes());
        let both = [&error[..], &[0], &done].concat();
        let found: Vec<_> = replies(&both).map(Result::unwrap).collect();
        assert_eq!(
            found.iter().map(|it| (it.kind, it.body.len())).collect::<Vec<_>>(),
            [(2, 7), (3, 4)]
        );
        assert_eq!(found[0].verdict().unwrap_err().raw_os_error(), Some(17));
        assert_eq!(found[1].verdict().unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(found[0].number(0), Some((-17_i32).cast_unsigned()));
        assert_eq!(found[0].number(4), None);
        for len in 1..done.len() {
            assert!(replies(&done[..len]).next().unwrap().is_err());
        }
        // A length below that of the header ends the messages.
        let short = [&4_u32.to_ne_bytes()[..], &done[4..]].concat();
        assert_eq!(replies(&short).map(|it| it.is_err()).collect::<Vec<_>>(), [true]);
    }
}
