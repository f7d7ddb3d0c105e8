//! A transfer that a program passes on packet by packet, in place of a file.

use crate::capture::Captures;
use crate::document::{CaptureExplanation, FileKind};
use crate::held::{Change, Held};
use crate::packet::{PacketReader, RAW_IP};
use crate::source::Frame;
use std::path::Path;

/// The packets and the states of a sender, as [`explain`](crate::explain) takes them from a file.
pub struct Recording {
    captures: Captures,
    reader: PacketReader,
    /// The end whose view it is.
    side: usize,
}

impl Recording {
    /// Begins a recording at one end of a connection. `name` stands for a file in the document, and `kind` is its
    /// kind. `paths` are the names of the paths.
    #[must_use]
    pub fn new(name: &Path, kind: FileKind, at_server: bool, paths: &[String]) -> Recording {
        let mut captures = Captures::empty(&[name.to_owned()]);
        captures.counts[0].kind = kind;
        for (index, path) in (0..).zip(paths) {
            captures.names.insert((0, index), path.clone());
        }
        Recording { captures, reader: PacketReader::new(), side: usize::from(at_server) }
    }

    /// Takes a packet from its IP header on. `number` identifies it in incidents, `path` is the index of its path, and
    /// `length` the length of the whole packet in bytes if `bytes` are its beginning.
    pub fn packet(&mut self, number: u64, path: u32, at_ns: u64, bytes: &[u8], length: u32) {
        let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
        let frame = Frame { number, link: RAW_IP, interface: path, at_ns, bytes, original: length };
        let seen = self.reader.read(0, &frame);
        self.captures.counts[0].packets += 1;
        if let Some(seen) = self.captures.counts[0].sort(seen) {
            self.captures.take_segment(seen);
        }
    }

    /// Takes a new state of the sender at this end. None is a sender without unsent data, or one that sends.
    pub fn held(&mut self, number: u64, at_ns: u64, held: Option<Held>) {
        let at_ns = i64::try_from(at_ns).unwrap_or(i64::MAX);
        self.captures.take_change((0, number, at_ns), None, Change { side: self.side, held });
    }

    /// Ends the recording and explains it. `command` is the command line of the document.
    #[must_use]
    pub fn explained(mut self, command: String) -> CaptureExplanation {
        self.captures.finish();
        crate::report::document(&self.captures, command)
    }
}
