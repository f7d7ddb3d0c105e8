//! Conversations made by hand, and the files that contain them.

use plait_capture::{CaptureExplanation, explain};
use plait_wire::codec::{Headers, TcpChecksum, encode};
use plait_wire::{
    DataAck, Dss, Flags, JoinAck, JoinSyn, JoinSynAck, Key, Mapping, MpCapable, Mptcp, Options,
    Payload, ResetReason, Segment, Timestamps, WireDsn,
};
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

pub const CLIENT_KEY: Key = Key(0x0102_0304_0506_0708);
pub const SERVER_KEY: Key = Key(0x1112_1314_1516_1718);
/// Payload of each data segment.
pub const PIECE: u32 = 1_000;

/// A packet from its IP header on.
#[derive(Clone)]
pub struct Packet {
    pub at_ns: u64,
    pub bytes: Vec<u8>,
    /// Index of the subflow.
    pub path: usize,
}

/// A conversation between a client and a server, as a host sees it that is `to_client` from the client and
/// `to_server` from the server, in nanoseconds one way.
pub struct Talk {
    pub packets: Vec<Packet>,
    pub now: u64,
    v6: bool,
    paths: Vec<Path>,
}

struct Path {
    client_port: u16,
    /// Next sequence numbers of client and server.
    seq: [u32; 2],
}

impl Talk {
    pub fn new(v6: bool) -> Talk {
        Talk { packets: Vec::new(), now: 1_700_000_000_000_000_000, v6, paths: Vec::new() }
    }

    fn address(&self, path: usize, server: bool) -> IpAddr {
        let host = if server { 9 } else { 1 };
        match self.v6 {
            false => IpAddr::from([10, 0, path as u8, host]),
            true => IpAddr::from([0xfd00, 0, 0, path as u16, 0, 0, 0, u16::from(host)]),
        }
    }

    /// Returns the packets of the server, or those of the client.
    pub fn of(&self, server: bool) -> Vec<Packet> {
        let sent = |packet: &&Packet| {
            let host = if self.v6 { packet.bytes[23] } else { packet.bytes[15] };
            (host == 9) == server
        };
        self.packets.iter().filter(sent).cloned().collect()
    }

    /// Waits.
    pub fn wait(&mut self, ms: u64) {
        self.now += ms * 1_000_000;
    }

    /// Adds a segment of one side.
    fn send(
        &mut self,
        path: usize,
        server: bool,
        flags: Flags,
        options: Options,
        payload: u32,
        seq: u32,
    ) {
        let (own, other) = (usize::from(server), usize::from(!server));
        let port = self.paths[path].client_port;
        let (src_port, dst_port) = if server { (443, port) } else { (port, 443) };
        let segment = Segment {
            src_port,
            dst_port,
            seq,
            ack: if flags.has(Flags::ACK) { self.paths[path].seq[other] } else { 0 },
            flags,
            window: 60_000,
            options,
            payload: Payload::from_bytes(&vec![7; payload as usize]),
            ..Segment::default()
        };
        let headers = Headers::new(self.address(path, server), self.address(path, !server));
        let mut bytes = Vec::new();
        encode(&headers, &segment, TcpChecksum::Full, &mut bytes).unwrap();
        self.packets.push(Packet { at_ns: self.now, bytes, path });
        let next = seq.wrapping_add(segment.seq_len());
        if next.wrapping_sub(self.paths[path].seq[own]) as i32 > 0 {
            self.paths[path].seq[own] = next;
        }
    }

    /// Opens a subflow, captured at the server, with an RTT of `rtt` ms. The first one is of MPTCP if `multipath`.
    pub fn open(&mut self, multipath: bool, rtt: u64) -> usize {
        self.open_between(multipath, [0, rtt])
    }

    /// Opens a subflow of MPTCP, captured at the client.
    pub fn open_at_client(&mut self, rtt: u64) -> usize {
        self.open_between(true, [rtt, 0])
    }

    /// Opens a subflow. `legs` are the times in ms to the server and back, and to the client and back.
    fn open_between(&mut self, multipath: bool, legs: [u64; 2]) -> usize {
        let path = self.paths.len();
        let port = 50_000 + path as u16;
        // The numbers wrap soon.
        self.paths.push(Path { client_port: port, seq: [u32::MAX - 500, u32::MAX - 3_000] });
        let [client, server] = self.paths[path].seq;
        let joins = path > 0;
        let of = |option: Mptcp| Some(Box::new(option));
        let capable = |sender: Option<Key>, receiver: Option<Key>| {
            of(Mptcp::Capable(MpCapable {
                sender_key: sender,
                receiver_key: receiver,
                ..MpCapable::default()
            }))
        };
        let (syn, syn_ack, ack) = match (multipath, joins) {
            (false, _) => (None, None, None),
            (true, false) => (
                capable(None, None),
                capable(Some(SERVER_KEY), None),
                capable(Some(CLIENT_KEY), Some(SERVER_KEY)),
            ),
            (true, true) => (
                of(Mptcp::JoinSyn(JoinSyn {
                    backup: false,
                    address_id: 1,
                    token: SERVER_KEY.token(),
                    nonce: 5,
                })),
                of(Mptcp::JoinSynAck(JoinSynAck {
                    backup: false,
                    address_id: 1,
                    hmac: 1,
                    nonce: 6,
                })),
                of(Mptcp::JoinAck(JoinAck { hmac: [0; 20] })),
            ),
        };
        let first = |mptcp| Options {
            mss: Some(1_460),
            window_scale: Some(4),
            mptcp,
            ..Options::default()
        };
        self.send(path, false, Flags::SYN, first(syn), 0, client);
        self.wait(legs[0]);
        self.send(path, true, Flags::SYN.with(Flags::ACK), first(syn_ack), 0, server);
        self.wait(legs[1]);
        let seq = self.paths[path].seq[0];
        self.send(path, false, Flags::ACK, Options { mptcp: ack, ..Options::default() }, 0, seq);
        path
    }

    /// The server sends piece `piece` of the data on `path`.
    pub fn data(&mut self, path: usize, piece: u64) {
        let seq = self.paths[path].seq[1];
        self.data_at(path, piece, seq);
    }

    /// The server sends its last segment on `path` again, with piece `piece`.
    pub fn again(&mut self, path: usize, piece: u64) {
        let seq = self.paths[path].seq[1].wrapping_sub(PIECE);
        self.data_at(path, piece, seq);
    }

    /// A segment of `path` is lost before the capture.
    pub fn lose(&mut self, path: usize) {
        self.paths[path].seq[1] = self.paths[path].seq[1].wrapping_add(PIECE);
    }

    /// The segment that is `back` segments before the next one of `path` arrives, with piece `piece`.
    pub fn late(&mut self, path: usize, piece: u64, back: u32) {
        let seq = self.paths[path].seq[1].wrapping_sub(back * PIECE);
        self.data_at(path, piece, seq);
    }

    /// The client acknowledges `path` without its last `back` segments, and the first `pieces` of the data.
    pub fn ack_without(&mut self, path: usize, back: u32, pieces: u64) {
        let next = self.paths[path].seq[1];
        self.paths[path].seq[1] = next.wrapping_sub(back * PIECE);
        self.ack(path, Some(pieces));
        self.paths[path].seq[1] = next;
    }

    fn data_at(&mut self, path: usize, piece: u64, seq: u32) {
        let first = u32::MAX - 3_000;
        let dsn = SERVER_KEY.idsn().plus(1 + piece * u64::from(PIECE));
        let mapping = Mapping {
            dsn,
            long: piece.is_multiple_of(2),
            ssn: seq.wrapping_sub(first),
            len: PIECE as u16,
            checksum: None,
        };
        let mapping = Mapping { dsn: mapping.dsn.field(mapping.long), ..mapping };
        let dss = Some(Dss { mapping: Some(mapping), ..Dss::default() });
        self.send(path, true, Flags::ACK, Options { dss, ..Options::default() }, PIECE, seq);
    }

    /// The server sends a segment of plain TCP.
    pub fn plain(&mut self, path: usize) {
        let seq = self.paths[path].seq[1];
        self.send(path, true, Flags::ACK, Options::default(), PIECE, seq);
    }

    /// The server sends a segment of plain TCP with a time stamp of `clock`.
    pub fn plain_with_clock(&mut self, path: usize, clock: u32) {
        let seq = self.paths[path].seq[1];
        let timestamps = Some(Timestamps { value: clock, echo: 0 });
        self.send(path, true, Flags::ACK, Options { timestamps, ..Options::default() }, PIECE, seq);
    }

    /// The server sends a segment of plain TCP with `bytes` bytes.
    pub fn plain_of(&mut self, path: usize, bytes: u32) {
        let seq = self.paths[path].seq[1];
        self.send(path, true, Flags::ACK, Options::default(), bytes, seq);
    }

    /// The client acknowledges `path` without its last `bytes` bytes.
    pub fn ack_before(&mut self, path: usize, bytes: u32) {
        let next = self.paths[path].seq[1];
        self.paths[path].seq[1] = next.wrapping_sub(bytes);
        self.ack(path, None);
        self.paths[path].seq[1] = next;
    }

    /// One side resets `path`, with a reason of MPTCP or without.
    pub fn reset(&mut self, path: usize, server: bool, reason: Option<ResetReason>) {
        let seq = self.paths[path].seq[usize::from(server)];
        let mptcp = reason.map(|reason| Box::new(Mptcp::Reset { reason, transient: false }));
        let flags = Flags::RST.with(Flags::ACK);
        self.send(path, server, flags, Options { mptcp, ..Options::default() }, 0, seq);
    }

    /// The client acknowledges all of `path`, and the first `pieces` of the data; of plain TCP only the former.
    pub fn ack(&mut self, path: usize, pieces: Option<u64>) {
        let value = |pieces: u64| SERVER_KEY.idsn().plus(1 + pieces * u64::from(PIECE));
        let data_ack = pieces.map(|pieces| DataAck { value: WireDsn(value(pieces).0), long: true });
        let dss = data_ack.map(|ack| Dss { data_ack: Some(ack), ..Dss::default() });
        let seq = self.paths[path].seq[0];
        self.send(path, false, Flags::ACK, Options { dss, ..Options::default() }, 0, seq);
    }
}

/// Two paths of 20 and 50 ms, 6 pieces, of which one is reinjected and one retransmitted.
pub fn two_paths(v6: bool) -> Talk {
    let mut talk = Talk::new(v6);
    let fast = talk.open(true, 20);
    talk.ack(fast, Some(0));
    let slow = talk.open(true, 50);
    talk.data(fast, 0);
    talk.data(slow, 1);
    talk.data(fast, 2);
    talk.wait(20);
    talk.ack(fast, Some(1));
    // Piece 1 again, on the other path.
    talk.data(fast, 1);
    talk.wait(20);
    talk.ack(fast, Some(3));
    talk.wait(10);
    talk.ack(slow, Some(3));
    talk.data(fast, 3);
    talk.wait(300);
    talk.again(fast, 3);
    talk.wait(20);
    talk.ack(fast, Some(4));
    talk.data(slow, 4);
    talk.data(slow, 5);
    talk.wait(50);
    talk.ack(slow, Some(6));
    talk
}

/// The link layer of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    Raw,
    Ethernet,
    Vlan,
    Cooked1,
    Cooked2,
    Loopback,
    Pppoe,
}

impl Link {
    pub const ALL: [Link; 7] = [
        Link::Raw,
        Link::Ethernet,
        Link::Vlan,
        Link::Cooked1,
        Link::Cooked2,
        Link::Loopback,
        Link::Pppoe,
    ];

    const fn kind(self) -> u32 {
        match self {
            Link::Raw => 101,
            Link::Ethernet | Link::Vlan | Link::Pppoe => 1,
            Link::Cooked1 => 113,
            Link::Cooked2 => 276,
            Link::Loopback => 0,
        }
    }

    /// Returns the frame of a packet.
    pub fn frame(self, ip: &[u8]) -> Vec<u8> {
        let v6 = ip[0] >> 4 == 6;
        let kind: [u8; 2] = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        let mut frame = match self {
            Link::Raw => vec![],
            Link::Ethernet => vec![2; 12],
            Link::Vlan => [&[2; 12][..], &[0x81, 0, 0, 5]].concat(),
            Link::Cooked1 => vec![0; 14],
            Link::Cooked2 => [kind, [0, 0]].concat(),
            Link::Loopback => vec![if v6 { 10 + 20 } else { 2 }, 0, 0, 0],
            Link::Pppoe => {
                let protocol: [u8; 2] = if v6 { [0, 0x57] } else { [0, 0x21] };
                [&[2; 12][..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 0], &protocol].concat()
            }
        };
        match self {
            Link::Raw | Link::Loopback | Link::Pppoe => {}
            Link::Cooked2 => frame.extend([0; 16]),
            _ => frame.extend(kind),
        }
        frame.extend_from_slice(ip);
        frame
    }
}

/// A file format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    pub next_generation: bool,
    pub big_endian: bool,
    pub nanoseconds: bool,
    pub link: Link,
    pub snap: usize,
}

impl Format {
    pub const USUAL: Format = Format {
        next_generation: true,
        big_endian: false,
        nanoseconds: true,
        link: Link::Raw,
        snap: 65_535,
    };

    fn word(self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn half(self, value: u16) -> [u8; 2] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    /// Returns a file with these packets. Each path is an interface if `named`.
    pub fn file(self, packets: &[Packet], named: bool) -> Vec<u8> {
        if self.next_generation { self.pcapng(packets, named) } else { self.pcap(packets) }
    }

    fn pcap(self, packets: &[Packet]) -> Vec<u8> {
        let magic = if self.nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
        let mut file = self.word(magic).to_vec();
        file.extend(self.half(2));
        file.extend(self.half(4));
        for value in [0, 0, self.snap as u32, self.link.kind()] {
            file.extend(self.word(value));
        }
        let unit = if self.nanoseconds { 1 } else { 1_000 };
        for packet in packets {
            let frame = self.link.frame(&packet.bytes);
            let kept = &frame[..frame.len().min(self.snap)];
            let (seconds, rest) =
                (packet.at_ns / 1_000_000_000, packet.at_ns % 1_000_000_000 / unit);
            for value in [seconds as u32, rest as u32, kept.len() as u32, frame.len() as u32] {
                file.extend(self.word(value));
            }
            file.extend(kept);
        }
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let len = self.word(padded as u32 + 12);
        let mut block = [self.word(kind), len].concat();
        block.extend(body);
        block.resize(8 + padded, 0);
        block.extend(len);
        block
    }

    fn pcapng(self, packets: &[Packet], named: bool) -> Vec<u8> {
        let mut header = self.word(0x1a2b_3c4d).to_vec();
        header.extend(self.half(1));
        header.extend(self.half(0));
        header.extend([0xff; 8]);
        let mut file = self.block(0x0a0d_0d0a, &header);
        for name in ["wifi", "lte"] {
            let mut interface = self.half(self.link.kind() as u16).to_vec();
            interface.extend(self.half(0));
            interface.extend(self.word(self.snap as u32));
            if named {
                interface.extend(self.half(2));
                interface.extend(self.half(name.len() as u16));
                interface.extend(name.as_bytes());
                interface.resize(interface.len().next_multiple_of(4), 0);
            }
            if self.nanoseconds {
                interface.extend(self.half(9));
                interface.extend(self.half(1));
                interface.extend([9, 0, 0, 0]);
            }
            interface.extend([0; 4]);
            file.extend(self.block(1, &interface));
        }
        let unit = if self.nanoseconds { 1 } else { 1_000 };
        for packet in packets {
            let frame = self.link.frame(&packet.bytes);
            let kept = &frame[..frame.len().min(self.snap)];
            let stamp = packet.at_ns / unit;
            let interface = if named { packet.path as u32 } else { 0 };
            let mut body = self.word(interface).to_vec();
            for value in [(stamp >> 32) as u32, stamp as u32, kept.len() as u32, frame.len() as u32]
            {
                body.extend(self.word(value));
            }
            body.extend(kept);
            file.extend(self.block(6, &body));
            // Blocks without packets do not count.
            file.extend(self.block(0x0bad, &[1, 2, 3, 4]));
        }
        file
    }
}

/// Writes a file of this test.
pub fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join(name);
    fs::write(&file, bytes).unwrap();
    file
}

/// Returns the explanation of files that can be explained.
pub fn explained(files: &[PathBuf]) -> CaptureExplanation {
    explain(files, "command".to_owned(), &mut |_| true).unwrap()
}
