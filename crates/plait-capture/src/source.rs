//! Capture files: pcap and pcapng, read as a stream with a bounded buffer.

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, InterfaceDescriptionBlock, PcapBlockOwned, PcapError, create_reader};
use std::io::Read;

/// Size of the buffer in bytes, which is also the limit for one record.
const BUFFER_BYTES: usize = 1 << 20;
/// Largest number of interfaces of a section.
const MAX_INTERFACES: usize = 4_096;
/// Type of the obsolete Packet Block of pcapng. Tshark counts it as a packet.
const OBSOLETE_PACKET_BLOCK: u32 = 2;

/// The bytes with which a file of each kind begins.
const CAPTURES: [[u8; 4]; 6] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0x34, 0xcd, 0xb2, 0xa1],
];

/// Formats that contain a capture, or are one of another program, with the command that makes a readable file.
const OTHERS: [(&[u8], &str); 5] = [
    (&[0x1f, 0x8b], "it is compressed by gzip\n  unpack it first: gunzip FILE"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "it is compressed by zstd\n  unpack it first: unzstd FILE"),
    (&[0xfd, 0x37, 0x7a, 0x58], "it is compressed by xz\n  unpack it first: unxz FILE"),
    (b"snoop\0", "it is in the format of snoop\n  convert it: editcap -F pcapng FILE NEW"),
    (b"XCP\0", "it is in the format of Sniffer\n  convert it: editcap -F pcapng FILE NEW"),
];

/// Returns true if a file that begins with these bytes is a capture, or contains a compressed one.
pub(crate) fn is_packets(head: &[u8]) -> bool {
    CAPTURES.iter().any(|magic| head.starts_with(magic))
        || OTHERS.iter().any(|(magic, _)| head.starts_with(magic))
}

/// A packet of a capture, from its link layer on.
pub(crate) struct Frame<'a> {
    /// Number of the packet in its file, from 1, as tshark counts.
    pub(crate) number: u64,
    /// Link type (<https://www.tcpdump.org/linktypes.html>).
    pub(crate) link: i32,
    /// Number of the interface in its file; changes with each section.
    pub(crate) interface: u32,
    /// Time in nanoseconds since the epoch.
    pub(crate) at_ns: i64,
    /// The captured bytes.
    pub(crate) bytes: &'a [u8],
    /// Length of the packet on the link, in bytes.
    pub(crate) original: u32,
}

/// The reason why a file cannot be read further.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Number of the packet that cannot be read, from 1; zero if the file is no capture.
    pub packet: u64,
    /// The problem and the remedy.
    pub problem: String,
}

/// An interface of a pcapng section, or the only one of a pcap file.
struct Interface {
    link: i32,
    name: Option<String>,
    /// Units of a second in time stamps.
    resolution: u64,
    /// Seconds that are added to time stamps.
    offset: i64,
}

impl Interface {
    /// Converts a time stamp to nanoseconds. Stamps beyond the year 2262 are cut to it.
    fn at_ns(&self, stamp: u64) -> i64 {
        let (seconds, rest) = (stamp / self.resolution, stamp % self.resolution);
        let rest = u128::from(rest) * 1_000_000_000 / u128::from(self.resolution);
        let seconds = i128::from(seconds) + i128::from(self.offset);
        let ns = seconds * 1_000_000_000 + rest as i128;
        i64::try_from(ns.clamp(0, i128::from(i64::MAX))).unwrap_or(0)
    }
}

/// The kind of a block of the file.
enum BlockKind<T> {
    Packet(T),
    Other,
    Bad(String),
}

/// A capture that is being read.
pub(crate) struct Source {
    reader: Box<dyn PcapReaderIterator + Send>,
    /// Interfaces of all sections so far.
    interfaces: Vec<Interface>,
    /// Index of the first interface of this section.
    section: usize,
    /// Number of packets so far, and the time of the latest one.
    packets: u64,
    at_ns: i64,
}

impl Source {
    /// Opens a capture.
    ///
    /// # Errors
    /// If it begins like no capture. [`Broken::packet`] is then zero.
    pub(crate) fn open(input: impl Read + Send + 'static) -> Result<Source, Broken> {
        let mut input = input;
        let mut head = Vec::new();
        let read = (&mut input).take(8).read_to_end(&mut head);
        let refused = |problem: &str| Broken { packet: 0, problem: problem.to_owned() };
        if let Err(error) = read {
            return Err(refused(&format!("it cannot be read: {error}")));
        }
        if let Some((_, why)) = OTHERS.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Err(refused(why));
        }
        let rest = std::io::Cursor::new(head).chain(input);
        let reader = create_reader(BUFFER_BYTES, Whole(rest));
        let reader = reader.map_err(|error| match error {
            PcapError::Eof => refused("it is empty\n  allowed: a pcap or pcapng file"),
            _ => refused("it is no capture\n  allowed: a pcap or pcapng file"),
        })?;
        Ok(Source { reader, interfaces: Vec::new(), section: 0, packets: 0, at_ns: 0 })
    }

    /// Returns the number of packets so far.
    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the name of an interface, if the file has it.
    pub(crate) fn interface_name(&self, interface: u32) -> Option<&str> {
        self.interfaces.get(interface as usize)?.name.as_deref()
    }

    /// Passes the next packet to `take` and returns its result; none at the end of the file.
    ///
    /// # Errors
    /// If a record is damaged or incomplete. Reading cannot go on after it.
    pub(crate) fn next<T>(
        &mut self,
        mut take: impl FnMut(&Frame<'_>) -> T,
    ) -> Result<Option<T>, Broken> {
        loop {
            let number = self.packets + 1;
            let broken = |problem: String| Err(Broken { packet: number, problem });
            let (used, found) = match self.reader.next() {
                Ok((used, block)) => {
                    let interfaces = (&mut self.interfaces, &mut self.section);
                    let latest = (&mut self.packets, &mut self.at_ns);
                    let found = read_block(&block, interfaces, latest, &mut take);
                    (used, found)
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(_)) => match self.reader.refill() {
                    Ok(()) => continue,
                    Err(_) => return broken("the file cannot be read here".to_owned()),
                },
                Err(PcapError::UnexpectedEof) => {
                    return broken("the file ends inside this packet's record".to_owned());
                }
                Err(PcapError::BufferTooSmall) => {
                    return broken(format!("its record is longer than {BUFFER_BYTES} bytes"));
                }
                Err(_) => return broken("its record is damaged".to_owned()),
            };
            self.reader.consume(used);
            match found {
                BlockKind::Packet(result) => return Ok(Some(result)),
                BlockKind::Other => {}
                BlockKind::Bad(problem) => return broken(problem),
            }
        }
    }
}

/// Reads one block or record of the file.
fn read_block<T>(
    block: &PcapBlockOwned<'_>,
    (interfaces, section): (&mut Vec<Interface>, &mut usize),
    (packets, latest): (&mut u64, &mut i64),
    take: &mut impl FnMut(&Frame<'_>) -> T,
) -> BlockKind<T> {
    // A packet without a stamp has the time of the packet before it.
    let mut emit = |index: usize, stamp: Option<u64>, bytes: &[u8], original: u32| {
        let Some(interface) = interfaces.get(index) else {
            return BlockKind::Bad("its interface has no description before it".to_owned());
        };
        *packets += 1;
        let (link, at_ns) = (interface.link, stamp.map_or(*latest, |it| interface.at_ns(it)));
        *latest = at_ns;
        let (number, interface) = (*packets, index as u32);
        BlockKind::Packet(take(&Frame { number, link, interface, at_ns, bytes, original }))
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution =
                if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            // The upper bits hold the length of a frame check sequence.
            let link = header.network.0 & 0x0fff_ffff;
            interfaces.push(Interface { link, name: None, resolution, offset: 0 });
            BlockKind::Other
        }
        PcapBlockOwned::Legacy(record) => {
            let resolution = interfaces.first().map_or(1_000_000, |it| it.resolution);
            let fraction = u64::from(record.ts_usec).min(resolution - 1);
            let stamp = u64::from(record.ts_sec) * resolution + fraction;
            emit(0, Some(stamp), record.data, record.origlen)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            *section = interfaces.len();
            BlockKind::Other
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
            match interface(described, interfaces.len()) {
                Ok(interface) => interfaces.push(interface),
                Err(problem) => return BlockKind::Bad(problem),
            }
            BlockKind::Other
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let stamp = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let index = *section + packet.if_id as usize;
            emit(index, Some(stamp), packet.packet_data(), packet.origlen)
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            emit(*section, None, packet.packet_data(), packet.origlen)
        }
        PcapBlockOwned::NG(Block::Unknown(other)) => {
            if other.block_type == OBSOLETE_PACKET_BLOCK {
                *packets += 1;
            }
            BlockKind::Other
        }
        PcapBlockOwned::NG(_) => BlockKind::Other,
    }
}

/// Returns a described interface of a file with `known` others.
fn interface(described: &InterfaceDescriptionBlock<'_>, known: usize) -> Result<Interface, String> {
    if known >= MAX_INTERFACES {
        return Err(format!("the file has more than {MAX_INTERFACES} interfaces"));
    }
    let resolution = match described.if_tsresol {
        decimal @ 0..0x80 => 10_u64.checked_pow(u32::from(decimal)),
        binary => 1_u64.checked_shl(u32::from(binary & 0x7f)),
    };
    let name = described.if_name().and_then(Result::ok).map(str::to_owned);
    Ok(Interface {
        link: described.linktype.0,
        name: name.filter(|name| !name.is_empty()),
        resolution: resolution.ok_or("its interface has an unknown unit of time")?,
        offset: described.ts_offset(),
    })
}

/// Fills the whole buffer with each call, because [`create_reader`] reads only once.
struct Whole<R>(R);

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            match self.0.read(&mut out[done..])? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }
}
