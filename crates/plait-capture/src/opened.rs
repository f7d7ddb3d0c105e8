//! A file that is being read: its packets in the order of time.

use crate::copies::Copies;
use crate::counts::FileCounts;
use crate::document::FileKind;
use crate::held::Change;
use crate::log::{Entry, LogSource, is_log};
use crate::order::{Clock, MAX_WAITING, Queue};
use crate::packet::{PacketReader, Seen};
use crate::source::{Broken, Source};
use plait_wire::Flags;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The input of a file.
enum Input {
    Capture(Source),
    Log(LogSource),
}

impl Input {
    /// Returns the next packet, or the next state of the sender; none at the end of the file.
    fn next(&mut self, file: usize, reader: &mut PacketReader) -> Result<Option<Entry>, Broken> {
        match self {
            Input::Capture(source) => {
                source.next(|frame| Entry::Packet(reader.read(file, frame).map(Box::new)))
            }
            Input::Log(log) => log.next(file, reader),
        }
    }

    const fn packets(&self) -> u64 {
        match self {
            Input::Capture(source) => source.packets(),
            Input::Log(log) => log.packets(),
        }
    }

    fn interface_name(&self, interface: u32) -> Option<&str> {
        match self {
            Input::Capture(source) => source.interface_name(interface),
            Input::Log(log) => log.path_name(interface),
        }
    }
}

/// The next part of a file that counts.
pub(crate) enum Next {
    Segment(Box<Seen>),
    Change { number: u64, at_ns: i64, group: Option<String>, change: Change },
}

impl Next {
    /// Returns the rank among packets of other files with the same time: a SYN is the first one, and acknowledgements
    /// follow the data.
    fn rank(&self) -> u8 {
        let Next::Segment(seen) = self else { return 0 };
        let flags = seen.segment.flags;
        match (flags.has(Flags::SYN), flags.has(Flags::ACK)) {
            (true, false) => 0,
            (false, _) if seen.payload == 0 => 2,
            _ => 1,
        }
    }
}

/// A file that is being read, or was read.
pub(crate) struct Opened {
    /// None at the end of the file.
    input: Option<(Input, PacketReader)>,
    /// The next packets and changes.
    queue: Queue<Next>,
    pub(crate) clock: Clock,
    copies: Copies,
}

impl Opened {
    /// Opens one of `files` files.
    ///
    /// # Errors
    /// If it cannot be opened or is no capture and no qlog.
    pub(crate) fn open(path: &Path, files: usize) -> Result<Opened, Broken> {
        let input = open_file(path)?;
        // The lines of a log are in the order of time.
        let room = if matches!(input, Input::Log(_)) { 1 } else { MAX_WAITING / files.max(1) };
        Ok(Opened {
            input: Some((input, PacketReader::new())),
            queue: Queue::new(room.max(1)),
            clock: Clock::default(),
            copies: Copies::default(),
        })
    }

    /// Returns the kind of the file, which is not yet read to its end.
    pub(crate) const fn kind(&self) -> FileKind {
        match self.input {
            Some((Input::Log(_), _)) => FileKind::Qlog,
            _ => FileKind::Capture,
        }
    }

    /// Returns true if nothing follows.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.input.is_none() && self.queue.first().is_none()
    }

    /// Returns true if a segment of another file is one of the latest of this file. Without an identification and a
    /// time stamp, data may be a retransmission.
    pub(crate) fn has_copy_of(&self, seen: &Seen) -> bool {
        let is_marked = seen.has_ident || seen.segment.options.timestamps.is_some();
        self.copies.has(seen) && (is_marked || seen.payload == 0)
    }

    /// Returns time and rank of the next item.
    pub(crate) fn first(&self) -> Option<(i64, u8)> {
        self.queue.first().map(|(at_ns, next)| (at_ns, next.rank()))
    }

    /// Removes the next item. Copies of packets are none.
    pub(crate) fn take(&mut self, counts: &mut FileCounts) -> Option<Next> {
        let next = self.queue.pop()?;
        counts.disorder = self.clock.disorder;
        counts.disorder.late = self.queue.late;
        match &next {
            Next::Segment(seen)
                if counts.kind == FileKind::Capture && self.copies.is_copy(seen) =>
            {
                counts.repeated += 1;
                None
            }
            _ => Some(next),
        }
    }

    /// Reads packets until the queue is full or the file ends. `index` is that of the file.
    pub(crate) fn fill(
        &mut self,
        index: usize,
        counts: &mut FileCounts,
        names: &mut BTreeMap<(usize, u32), String>,
    ) {
        while self.queue.has_room()
            && let Some((input, reader)) = &mut self.input
        {
            let next = input.next(index, reader);
            counts.packets = input.packets();
            match next {
                Ok(Some(Entry::Packet(read))) => {
                    let Some(mut seen) = counts.sort(read) else { continue };
                    if let Some(name) = input.interface_name(seen.interface)
                        && !names.contains_key(&(index, seen.interface))
                    {
                        names.insert((index, seen.interface), name.to_owned());
                    }
                    if counts.kind == FileKind::Capture {
                        seen.at_ns = self.clock.time_of(&seen);
                    }
                    self.queue.push(seen.at_ns, Next::Segment(seen));
                }
                Ok(Some(Entry::Change { number, at_ns, group, change })) => {
                    self.queue.push(at_ns, Next::Change { number, at_ns, group, change });
                }
                Ok(None) => self.input = None,
                Err(broken) => {
                    counts.error = Some(broken);
                    self.input = None;
                }
            }
        }
    }
}

fn open_file(path: &Path) -> Result<Input, Broken> {
    let broken = |problem: String| Broken { packet: 0, problem };
    let mut file = File::open(path).map_err(|error| {
        broken(format!(
            "it cannot be opened: {error}\n  allowed: a pcap or pcapng file that this user may read"
        ))
    })?;
    let mut head = Vec::new();
    (&mut file)
        .take(8)
        .read_to_end(&mut head)
        .map_err(|error| broken(format!("it cannot be read: {error}")))?;
    let is_log = is_log(&head);
    let whole = std::io::Cursor::new(head).chain(file);
    Ok(match is_log {
        true => Input::Log(LogSource::open(whole)?),
        false => Input::Capture(Source::open(whole)?),
    })
}
