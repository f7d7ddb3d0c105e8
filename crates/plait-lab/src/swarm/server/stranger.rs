//! Strangers: scripted peers without an endpoint, cheap enough for thousands of them.

use super::case::Visit;
use super::client::{PORT, SERVER};
use super::service::request;
use plait_base::RandomStream;
use plait_wire::codec::{self, Headers, TcpChecksum, Verify};
use plait_wire::{Flags, Payload, Segment};
use std::net::IpAddr;

/// Window of a stranger that does not read, in bytes.
const WINDOW: u16 = 16_000;

/// One stranger.
#[derive(Debug)]
pub(super) struct Stranger {
    pub(super) address: IpAddr,
    visit: Visit,
    port: u16,
    /// Next sequence number of the stranger, and of the server.
    seq: u32,
    ack: u32,
    /// Remaining receive window in bytes.
    room: u16,
    established: bool,
    bytes: u64,
}

impl Stranger {
    pub(super) fn new(visit: Visit, address: IpAddr, port: u16, bytes: u64) -> Stranger {
        Stranger {
            address,
            visit,
            port,
            seq: 1_000,
            ack: 0,
            room: WINDOW,
            established: false,
            bytes,
        }
    }

    /// Sends its first packet.
    pub(super) fn begin(&mut self, stream: &mut RandomStream, out: &mut Vec<Vec<u8>>) {
        if self.visit == Visit::Garbage {
            return self.rubbish(stream, out);
        }
        let segment = Segment { flags: Flags::SYN, ..self.segment() };
        self.send(&segment, out);
        self.seq += 1;
    }

    /// Handles a packet.
    pub(super) fn take(&mut self, bytes: &[u8], out: &mut Vec<Vec<u8>>) {
        let mut segment = Segment::default();
        let Ok(packet) = codec::parse_into(bytes, Verify::Checksum, &mut segment) else { return };
        let syn_ack = segment.flags.has(Flags::SYN) && segment.flags.has(Flags::ACK);
        let answers = matches!(self.visit, Visit::OneShot | Visit::Idle | Visit::Unread);
        if !answers || segment.flags.has(Flags::RST) {
            return;
        }
        if syn_ack && !self.established {
            self.established = true;
            self.ack = segment.seq.wrapping_add(1);
            return self.ask(out);
        }
        if self.visit != Visit::Unread || !self.established {
            return;
        }
        let len = packet.payload.len() as u32;
        if segment.seq == self.ack && len <= u32::from(self.room) {
            self.ack = self.ack.wrapping_add(len);
            self.room -= len as u16;
        }
        if len > 0 || segment.seq != self.ack {
            // It also answers window probes.
            self.send(&self.segment(), out);
        }
    }

    /// Sends the segment that follows the handshake.
    fn ask(&mut self, out: &mut Vec<Vec<u8>>) {
        let asks = match self.visit {
            Visit::OneShot => &request(1, 0, 1)[..],
            Visit::Unread => &request(1, 0, self.bytes)[..],
            _ => &[],
        };
        let mut segment = self.segment();
        if !asks.is_empty() {
            segment.payload = Payload::from_bytes(asks);
        }
        if self.visit == Visit::OneShot {
            segment.flags = Flags::ACK.with(Flags::FIN);
        }
        self.send(&segment, out);
        self.seq = self.seq.wrapping_add(asks.len() as u32);
    }

    /// Sends a segment with random content.
    fn rubbish(&self, stream: &mut RandomStream, out: &mut Vec<Vec<u8>>) {
        let bits = stream.bits();
        let all = [Flags::SYN, Flags::ACK, Flags::FIN, Flags::RST, Flags::PSH];
        let mut flags = Flags::default();
        for (at, flag) in all.into_iter().enumerate() {
            if bits >> at & 1 == 1 {
                flags = flags.with(flag);
            }
        }
        let segment = Segment {
            flags,
            seq: stream.bits() as u32,
            ack: stream.bits() as u32,
            window: (bits >> 8) as u16,
            payload: if bits >> 40 & 3 == 0 {
                Payload::from_bytes(&[7; 99])
            } else {
                Payload::Empty
            },
            ..self.segment()
        };
        self.send(&segment, out);
        if bits >> 50 & 1 == 1
            && let Some(packet) = out.last_mut()
        {
            let at = stream.below(packet.len() as u64) as usize;
            packet[at] ^= (bits >> 52) as u8 | 1;
        }
    }

    fn segment(&self) -> Segment {
        Segment {
            src_port: self.port,
            dst_port: PORT,
            seq: self.seq,
            ack: self.ack,
            flags: if self.established { Flags::ACK } else { Flags::SYN },
            window: self.room,
            ..Segment::default()
        }
    }

    fn send(&self, segment: &Segment, out: &mut Vec<Vec<u8>>) {
        let mut bytes = Vec::new();
        let headers = Headers::new(self.address, SERVER);
        if codec::encode(&headers, segment, TcpChecksum::Full, &mut bytes).is_ok() {
            out.push(bytes);
        }
    }
}
