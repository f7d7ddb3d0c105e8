//! Packet captures as files: pcapng with an interface for each path, IP packets without a link
//! layer, timestamps in nanoseconds, and comments. The format is
//! <https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/>.

use super::whole::{WholeRecords, problem};
use crate::{Contents, Error};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Types of blocks: the section header, the description of an interface, and a packet.
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// Codes of options: the same in each block, in the section header, in the description of an
/// interface, and in a packet.
const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const TIMESTAMP_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// LINKTYPE_RAW: a packet begins with its IP header.
const RAW: u16 = 101;
/// Stamps count nanoseconds.
const NANOSECONDS: u8 = 9;
/// Direction bits of a packet's flags.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Encodes one block at a time. Its numbers are little-endian on every machine, so that the bytes
/// do not vary.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    /// Whether the block has an option, so that the list of options has an end.
    has_options: bool,
}

impl Block {
    fn begin(&mut self, kind: u32) -> &mut Block {
        self.bytes.clear();
        self.has_options = false;
        // The length follows when it is known.
        self.put(&kind.to_le_bytes()).put(&[0; 4])
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Block {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends bytes, padded to a multiple of four.
    fn put_padded(&mut self, bytes: &[u8]) -> &mut Block {
        self.put(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an option. A value is cut at the largest length that the format has.
    fn option(&mut self, code: u16, value: &[u8]) -> &mut Block {
        let len = value.len().min(usize::from(u16::MAX));
        self.has_options = true;
        self.put(&code.to_le_bytes()).put(&(len as u16).to_le_bytes()).put_padded(&value[..len])
    }

    /// Ends the block and returns its bytes.
    fn end(&mut self) -> &[u8] {
        if self.has_options {
            self.put(&[0; 4]);
        }
        let len = (self.bytes.len() as u32 + 4).to_le_bytes();
        self.put(&len);
        self.bytes[4..8].copy_from_slice(&len);
        &self.bytes
    }

    fn section(&mut self, comment: &str) -> &[u8] {
        let program = format!("plait {}", crate::PROGRAM);
        // The byte-order magic, version 1.0, and an unknown length of the section.
        self.begin(SECTION_HEADER)
            .put(&0x1A2B_3C4D_u32.to_le_bytes())
            .put(&1_u16.to_le_bytes())
            .put(&0_u16.to_le_bytes())
            .put(&(-1_i64).to_le_bytes())
            .option(USER_APPLICATION, program.as_bytes())
            .option(COMMENT, comment.as_bytes())
            .end()
    }

    fn interface(&mut self, name: &str) -> &[u8] {
        // Two reserved bytes, and no limit on the length of a packet.
        self.begin(INTERFACE_DESCRIPTION)
            .put(&RAW.to_le_bytes())
            .put(&[0; 6])
            .option(INTERFACE_NAME, name.as_bytes())
            .option(TIMESTAMP_RESOLUTION, &[NANOSECONDS])
            .end()
    }

    fn packet(&mut self, frame: &Frame<'_>) -> &[u8] {
        let len = (frame.bytes.len() as u32).to_le_bytes();
        self.begin(ENHANCED_PACKET)
            .put(&(frame.interface as u32).to_le_bytes())
            .put(&((frame.at_ns >> 32) as u32).to_le_bytes())
            .put(&(frame.at_ns as u32).to_le_bytes())
            .put(&len)
            .put(&len)
            .put_padded(frame.bytes);
        let direction = if frame.outbound { OUTBOUND } else { INBOUND };
        self.option(PACKET_FLAGS, &direction.to_le_bytes());
        if !frame.comment.is_empty() {
            self.option(COMMENT, frame.comment.as_bytes());
        }
        self.end()
    }
}

/// A packet of a capture.
pub(crate) struct Frame<'a> {
    /// Index of the interface.
    pub(crate) interface: usize,
    /// Nanoseconds since the epoch.
    pub(crate) at_ns: u64,
    /// True if the packet leaves the host of the capture.
    pub(crate) outbound: bool,
    /// The packet from the IP header on.
    pub(crate) bytes: &'a [u8],
    /// Empty if there is no comment.
    pub(crate) comment: &'a str,
}

/// A capture that is being written.
pub(crate) struct CaptureFile {
    file: PathBuf,
    out: WholeRecords,
    block: Block,
    interfaces: usize,
    /// The first write error; the capture stops there.
    broken: Option<io::Error>,
}

impl CaptureFile {
    /// Creates the file with `comment` in its header.
    pub(crate) fn create<'a>(
        file: &Path,
        comment: &str,
        interfaces: impl Iterator<Item = &'a str>,
    ) -> Result<CaptureFile, Error> {
        let fail = |error| Error::unwritable(Contents::Capture, file, &error);
        let (mut block, mut count) = (Block::default(), 0);
        let mut out = WholeRecords::new(File::create(file).map_err(fail)?);
        out.write_all(block.section(comment)).map_err(fail)?;
        for name in interfaces {
            out.write_all(block.interface(name)).map_err(fail)?;
            count += 1;
        }
        let file = file.to_owned();
        let mut file = CaptureFile { file, out, block, interfaces: count, broken: None };
        file.flush();
        Ok(file)
    }

    /// Adds an interface and returns its index. [`CaptureFile::finish`] reports write errors.
    pub(crate) fn add_interface(&mut self, name: &str) -> usize {
        let place = self.interfaces;
        self.interfaces += 1;
        if self.broken.is_none() {
            self.broken = self.out.write_all(self.block.interface(name)).err();
        }
        place
    }

    /// Flushes the buffer to the operating system, for readers.
    pub(crate) fn flush(&mut self) {
        if self.broken.is_none() {
            self.broken = self.out.flush().err();
        }
    }

    /// Writes a packet. [`CaptureFile::finish`] reports write errors.
    pub(crate) fn write(&mut self, frame: &Frame<'_>) {
        if self.broken.is_none() {
            let written = self.out.write_all(self.block.packet(frame));
            self.broken = written.and_then(|()| self.out.end_record()).err();
        }
    }

    /// Returns the reason why writing has stopped, if it has.
    pub(crate) fn problem(&self) -> Option<String> {
        problem(self.broken.as_ref()?)
    }

    /// Ends the file; returns an error if a packet could not be written.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.flush();
        match self.broken {
            // A reader that closed the pipe is no error.
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::unwritable(Contents::Capture, &self.file, &error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of the draft's figures: lengths at both ends, padding, and the end of the options.
    #[test]
    fn blocks_have_their_length_at_both_ends() {
        let mut block = Block::default();
        let interface = block.interface("wifi5").to_vec();
        let expected = [
            &[1, 0, 0, 0, 44, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0][..],
            &[2, 0, 5, 0, b'w', b'i', b'f', b'i', b'5', 0, 0, 0],
            &[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0],
        ];
        assert_eq!(interface, expected.concat());
        let frame = Frame {
            interface: 1,
            at_ns: 0x0102_0304_0506_0708,
            outbound: true,
            bytes: &[0x45, 6, 7],
            comment: "",
        };
        let expected = [
            &[6, 0, 0, 0, 48, 0, 0, 0, 1, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5][..],
            &[3, 0, 0, 0, 3, 0, 0, 0, 0x45, 6, 7, 0],
            &[2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0],
        ];
        assert_eq!(block.packet(&frame), expected.concat());
        let noted = Frame { comment: &"x".repeat(70_000), ..frame };
        // A longer comment is cut, so that the file can be read on.
        assert_eq!(block.packet(&noted).len(), 48 + 4 + 65_536);
        let section = block.section("seed 1").to_vec();
        assert_eq!(section[..4], [0x0A, 0x0D, 0x0D, 0x0A]);
        assert_eq!(section[8..12], [0x4D, 0x3C, 0x2B, 0x1A]);
        assert_eq!(section[16..24], [0xFF; 8]);
        assert_eq!(section[4..8], section[section.len() - 4..]);
        assert_eq!(section.len() % 4, 0);
    }
}
