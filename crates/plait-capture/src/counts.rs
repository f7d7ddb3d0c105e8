//! What is counted of a file.

use crate::document::FileKind;
use crate::order::Disorder;
use crate::packet::{Seen, Unread};
use crate::source::Broken;
use std::borrow::Borrow;

/// Places of a file at which the time jumps ahead.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Jumps {
    pub(crate) count: u64,
    /// The first packet after a jump, and the time in nanoseconds; none if earlier packets have no times.
    pub(crate) first: Option<(u64, Option<i64>)>,
}

impl Jumps {
    /// Counts a jump before the packet `number`.
    pub(crate) fn add(&mut self, number: u64, ahead_ns: Option<i64>) {
        self.count += 1;
        self.first.get_or_insert((number, ahead_ns));
    }
}

/// Counts of a file.
#[derive(Clone, Default, Debug)]
pub(crate) struct FileCounts {
    pub(crate) kind: FileKind,
    pub(crate) packets: u64,
    pub(crate) segments: u64,
    pub(crate) fragments: u64,
    pub(crate) malformed: u64,
    /// Packets that were cut before the TCP header's end.
    pub(crate) cut: u64,
    /// Segments whose options were cut.
    pub(crate) cut_options: u64,
    /// Packets of link types that are not supported, and the first such type.
    pub(crate) unknown_link: (u64, Option<i32>),
    /// Packets of a direction that is taken from another file.
    pub(crate) copies: u64,
    /// Copies of packets of this file.
    pub(crate) repeated: u64,
    pub(crate) disorder: Disorder,
    pub(crate) jumps: Jumps,
    /// Packets of subflows beyond the limit.
    pub(crate) not_followed: u64,
    pub(crate) error: Option<Broken>,
}

impl FileCounts {
    /// Counts a packet, and returns its segment.
    pub(crate) fn sort<S: Borrow<Seen>>(&mut self, read: Result<S, Unread>) -> Option<S> {
        match read {
            Ok(seen) => {
                self.segments += 1;
                self.cut_options += u64::from(seen.borrow().cut);
                return Some(seen);
            }
            Err(Unread::Other) => {}
            Err(Unread::Fragment) => self.fragments += 1,
            Err(Unread::Malformed) => self.malformed += 1,
            Err(Unread::Cut) => self.cut += 1,
            Err(Unread::Link(link)) => {
                self.unknown_link.0 += 1;
                self.unknown_link.1.get_or_insert(link);
            }
        }
        None
    }
}
