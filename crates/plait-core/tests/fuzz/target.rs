//! A server that receives the packets of a conversation, and conversations encoded as bytes. The
//! test `fuzz` and the libFuzzer target `endpoint` share this file.

use crate::common::endpoint;
use plait_base::{PathId, Span, Time};
use plait_core::{Config, ConnectionSpec, Endpoint};
use plait_wire::codec::{Headers, TcpChecksum, Verify, encode, parse_into, parse_too_big};
use plait_wire::{Payload, Segment, Sum};
use std::net::IpAddr;

pub(crate) const PORT: u16 = 80;

/// A packet, and the step at which its client sent it.
pub(crate) type Sent = (u64, Vec<u8>);

pub(crate) fn spec(checksum: bool) -> ConnectionSpec {
    ConnectionSpec {
        config: Config { checksum, ..Config::default() },
        addresses: vec![IpAddr::from([10, 9, 9, 9])],
        ..crate::common::spec("roundrobin", "reno", 0..2)
    }
}

pub(crate) fn at(step: u64) -> Time {
    Time::ZERO + Span::from_millis(10 * step)
}

pub(crate) fn headers(path: PathId) -> Headers {
    Headers::new(IpAddr::from([10, 0, path.0 as u8, 2]), IpAddr::from([10, 9, 9, 1]))
}

/// Passes a router's message to the server. Returns false if the packet is none.
pub(crate) fn tell(server: &mut Endpoint, now: Time, packet: &[u8]) -> bool {
    let Some(told) = parse_too_big(packet) else { return false };
    let path = match told.dst {
        IpAddr::V4(to) => to.octets()[2],
        IpAddr::V6(to) => to.octets()[14],
    };
    let segment = Segment {
        src_port: told.src_port,
        dst_port: told.dst_port,
        seq: told.seq,
        ..Segment::default()
    };
    server.on_too_big(now, PathId(path.into()), &segment, told.mtu);
    true
}

/// A server that receives played packets.
pub(crate) struct Target {
    pub(crate) server: Endpoint,
    pub(crate) segment: Segment,
    pub(crate) step: u64,
    pub(crate) accepted: Vec<plait_base::ConnId>,
    pub(crate) read: u64,
    /// Packets that the codec accepted.
    pub(crate) taken: u64,
    /// Prints the packets in both directions.
    pub(crate) aloud: bool,
}

impl Target {
    pub(crate) fn new(checksum: bool) -> Target {
        let mut server = endpoint(5, "server");
        server.listen(PORT, spec(checksum));
        server.check_invariants(true);
        let segment = Segment::default();
        Target { server, segment, step: 0, accepted: Vec::new(), read: 0, taken: 0, aloud: false }
    }

    /// Advances time to `step` and runs the server's timers.
    pub(crate) fn step_to(&mut self, step: u64) -> Result<(), String> {
        self.step = self.step.max(step);
        self.server.handle_timeout(at(self.step));
        self.serve()
    }

    pub(crate) fn play(&mut self, packet: &[u8]) -> Result<(), String> {
        let Ok(parsed) = parse_into(packet, Verify::Trusted, &mut self.segment) else {
            let told = tell(&mut self.server, at(self.step), packet);
            self.taken += u64::from(told);
            return if told { self.serve() } else { Ok(()) };
        };
        self.taken += 1;
        let IpAddr::V4(from) = parsed.headers.src else { return Ok(()) };
        self.segment.payload = match parsed.payload {
            [] => Payload::Empty,
            bytes => Payload::from_bytes(bytes),
        };
        let path = PathId(from.octets()[2].into());
        if self.aloud {
            println!("{} > {path:?} {:?}", self.step, self.segment);
        }
        self.server.handle(at(self.step), path, &self.segment);
        self.serve()
    }

    fn serve(&mut self) -> Result<(), String> {
        let now = at(self.step);
        self.accepted.extend(core::iter::from_fn(|| self.server.poll_accept()));
        for id in self.accepted.clone() {
            let mut buffer = [0; 4_096];
            self.read += self.server.read(now, id, &mut buffer).unwrap_or(0) as u64;
            if self.step == 5 {
                self.server.write_bytes(now, id, &[b's'; 3_000]).ok();
            }
            if self.step == 18 {
                self.server.finish(now, id).ok();
            }
        }
        while self.server.poll_news().is_some() {}
        let mut out = Vec::new();
        for _ in 0..1_000 {
            let Some(transmit) = self.server.poll_transmit(now) else {
                return self.server.violation().map_or(Ok(()), |broken| Err(broken.to_owned()));
            };
            out.clear();
            if self.aloud {
                println!("{} < {:?}", self.step, transmit.segment);
            }
            encode(&headers(transmit.path), &transmit.segment, TcpChecksum::Full, &mut out)
                .map_err(|error| format!("{error}: {:?}", transmit.segment))?;
        }
        Err("the server sends without end".to_owned())
    }
}

/// Corrects the length and the checksum in the IP header of a packet.
pub(crate) fn mend(packet: &mut [u8]) {
    let len = (packet.len() as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&len);
    packet[10..12].fill(0);
    let mut sum = Sum::default();
    sum.add(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
}

/// Encodes a conversation. The first byte is 1 if checksums are in use. Each packet follows as:
/// steps since the last packet (one byte), length (two bytes, big-endian), bytes.
#[allow(dead_code, reason = "libFuzzer only reads conversations")]
pub(crate) fn join(checksum: bool, packets: &[Sent]) -> Vec<u8> {
    let (mut whole, mut last) = (vec![u8::from(checksum)], 0);
    for (step, packet) in packets {
        whole.push((step - last) as u8);
        whole.extend((packet.len() as u16).to_be_bytes());
        whole.extend(packet);
        last = *step;
    }
    whole
}

/// Decodes a conversation. Any bytes are valid: a length beyond the end counts as the rest.
#[allow(dead_code, reason = "planted bugs are looked for in other ways")]
pub(crate) fn split(whole: &[u8]) -> (bool, Vec<Sent>) {
    let (first, mut rest) = whole.split_first().unwrap_or((&0, &[]));
    let (mut packets, mut step) = (Vec::new(), 0);
    while let [wait, high, low, more @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (packet, after) = more.split_at(len);
        step += u64::from(*wait);
        packets.push((step, packet.to_vec()));
        rest = after;
    }
    (first & 1 == 1, packets)
}

/// Plays a conversation of [`split`], with corrected lengths and IP checksums. Then it advances
/// time until all state must have expired.
///
/// # Errors
/// Returns a description of the violation.
#[allow(dead_code, reason = "the test plays conversations in its own way")]
pub(crate) fn play_whole(whole: &[u8]) -> Result<u64, String> {
    let (checksum, packets) = split(whole);
    let mut target = Target::new(checksum);
    for (step, mut packet) in packets {
        target.step_to(step)?;
        if packet.len() >= 40 && packet[0] >> 4 == 4 {
            mend(&mut packet);
        }
        target.play(&packet)?;
    }
    for later in [40, 100, 1_000, 10_000] {
        target.step_to(target.step + later)?;
    }
    Ok(target.read)
}
