//! Packet captures as files: pcapng with an interface for each path, IP packets without a link
//! layer, timestamps in nanoseconds, and comments.

use super::whole::{WholeRecords, problem};
use crate::{Contents, Error};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Stamps count nanoseconds.
const NANOSECONDS: u8 = 9;
/// Direction bits of a packet's flags.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

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
    out: PcapNgWriter<WholeRecords>,
    /// The first write error; the capture stops there.
    broken: Option<PcapError>,
}

impl CaptureFile {
    /// Creates the file with `comment` in its header.
    pub(crate) fn create<'a>(
        file: &Path,
        comment: &str,
        interfaces: impl Iterator<Item = &'a str>,
    ) -> Result<CaptureFile, Error> {
        let fail = |error| unwritable(file, error);
        let out = File::create(file).map_err(|error| fail(PcapError::IoError(error)))?;
        let program = format!("plait {}", crate::PROGRAM);
        let section = SectionHeaderBlock {
            // Little-endian on every machine, so that the bytes do not vary.
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::UserApplication(program.into()),
                SectionHeaderOption::Comment(comment.to_owned().into()),
            ],
            ..SectionHeaderBlock::default()
        };
        let mut out =
            PcapNgWriter::with_section_header(WholeRecords::new(out), section).map_err(fail)?;
        for name in interfaces {
            out.write_pcapng_block(interface(name)).map_err(fail)?;
        }
        let mut file = CaptureFile { file: file.to_owned(), out, broken: None };
        file.flush();
        Ok(file)
    }

    /// Adds an interface and returns its index. [`CaptureFile::finish`] reports write errors.
    pub(crate) fn add_interface(&mut self, name: &str) -> usize {
        let place = self.out.interfaces().len();
        if self.broken.is_none() {
            self.broken = self.out.write_pcapng_block(interface(name)).err();
        }
        place
    }

    /// Flushes the buffer to the operating system, for readers.
    pub(crate) fn flush(&mut self) {
        if self.broken.is_none() {
            self.broken = self.out.get_mut().flush().map_err(PcapError::IoError).err();
        }
    }

    /// Writes a packet. [`CaptureFile::finish`] reports write errors.
    pub(crate) fn write(&mut self, frame: &Frame<'_>) {
        if self.broken.is_some() {
            return;
        }
        let mut options = Vec::with_capacity(2);
        options.push(EnhancedPacketOption::Flags(if frame.outbound { OUTBOUND } else { INBOUND }));
        if !frame.comment.is_empty() {
            options.push(EnhancedPacketOption::Comment(frame.comment.into()));
        }
        let block = EnhancedPacketBlock {
            interface_id: frame.interface as u32,
            timestamp: Duration::from_nanos(frame.at_ns),
            original_len: frame.bytes.len() as u32,
            data: Cow::Borrowed(frame.bytes),
            options,
        };
        let written = self.out.write_pcapng_block(block);
        let ended =
            written.and_then(|_| self.out.get_mut().end_record().map_err(PcapError::IoError));
        self.broken = ended.err();
    }

    /// Returns the reason why writing has stopped, if it has.
    pub(crate) fn problem(&self) -> Option<String> {
        match self.broken.as_ref()? {
            PcapError::IoError(error) => problem(error),
            other => Some(other.to_string()),
        }
    }

    /// Ends the file; returns an error if a packet could not be written.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let flushed = || self.out.into_inner().flush().map_err(PcapError::IoError);
        let outcome = self.broken.map_or_else(flushed, Err);
        match outcome {
            // A reader that closed the pipe is no error.
            Err(PcapError::IoError(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome.map_err(|error| unwritable(&self.file, error)),
        }
    }
}

fn interface(name: &str) -> InterfaceDescriptionBlock<'_> {
    InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(name.into()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    }
}

fn unwritable(file: &Path, error: PcapError) -> Error {
    let error = match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    };
    Error::unwritable(Contents::Capture, file, &error)
}
