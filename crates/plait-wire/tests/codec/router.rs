//! ICMP errors about packets that exceed the MTU.

use plait_wire::codec::{Headers, TcpChecksum, encode};
use plait_wire::{Payload, Segment, Sum};
use std::net::IpAddr;

/// Returns the message of `router` about the packet of `headers` and `segment`. It quotes a part of the
/// packet, and the next hop has an MTU of `mtu` bytes.
pub(crate) fn too_big(
    router: IpAddr,
    headers: &Headers,
    segment: &Segment,
    mtu: u32,
    quoted: usize,
) -> Vec<u8> {
    let v6 = router.is_ipv6();
    let mut packet = Vec::new();
    encode(headers, segment, TcpChecksum::Full, &mut packet).unwrap();
    packet.truncate(quoted);
    let mut body = if v6 { vec![2, 0, 0, 0] } else { vec![3, 4, 0, 0] };
    body.extend_from_slice(&mtu.to_be_bytes());
    body.extend_from_slice(&packet);
    // The IP header is taken from an encoded segment from the router to us.
    let blank = Segment { payload: Payload::from_bytes(&body), ..Segment::default() };
    let mut out = Vec::new();
    encode(&Headers::new(router, headers.src), &blank, TcpChecksum::Full, &mut out).unwrap();
    let header = if v6 { 40 } else { 20 };
    out.truncate(header);
    if v6 {
        out[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
        out[6] = 58;
    } else {
        let total = (header + body.len()) as u16;
        out[2..4].copy_from_slice(&total.to_be_bytes());
        out[9] = 1;
        out[10..12].fill(0);
        let mut sum = Sum::default();
        sum.add(&out);
        out[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
    }
    out.extend_from_slice(&body);
    mend(&mut out);
    out
}

/// Corrects the checksum of such a message.
pub(crate) fn mend(message: &mut [u8]) {
    let v6 = message[0] >> 4 == 6;
    let (head, body) = message.split_at_mut(if v6 { 40 } else { 20 });
    let mut sum = Sum::default();
    if v6 {
        sum.add(&head[8..]);
        sum.add(&(body.len() as u32).to_be_bytes());
        sum.add(&[0, 58]);
    }
    body[2..4].fill(0);
    sum.add(body);
    body[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
}
