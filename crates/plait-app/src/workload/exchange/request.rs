//! A request as bytes, so that the two ends share nothing but the connection.

use crate::workload::{AppEvent, REQUEST, Stream};
use std::collections::VecDeque;
use std::io::Write;

/// Bytes of a request.
const LEN: usize = REQUEST as usize;

/// `GET ID BYTES`, filled up to [`REQUEST`] bytes with spaces, and a line end.
fn encode(id: u64, bytes: u64) -> [u8; LEN] {
    let mut text = [b' '; LEN];
    text[LEN - 1] = b'\n';
    // Two numbers of at most 20 digits leave room.
    let _ = write!(&mut text[..LEN - 1], "GET {id} {bytes}");
    text
}

/// Which answer, and how long.
fn decode(text: &[u8; LEN]) -> Option<(u64, u64)> {
    let line = core::str::from_utf8(text).ok()?.strip_suffix('\n')?.trim_end();
    let (id, bytes) = line.strip_prefix("GET ")?.split_once(' ')?;
    Some((id.parse().ok()?, bytes.parse().ok()?))
}

/// The client's half: requests that are to be written.
#[derive(Default, Debug)]
pub(crate) struct Requests {
    waiting: VecDeque<(u64, u64)>,
    /// The one that is being written, and how much of it was.
    current: Option<([u8; LEN], usize)>,
}

impl Requests {
    /// Asks for answer `id` of `bytes`.
    pub(crate) fn push(&mut self, id: u64, bytes: u64) {
        self.waiting.push_back((id, bytes));
    }

    /// Writes as much as the send buffer takes.
    pub(crate) fn write(&mut self, stream: &mut dyn Stream, log: &mut Vec<AppEvent>) {
        loop {
            if self.current.is_none() {
                let Some((id, bytes)) = self.waiting.pop_front() else { return };
                self.current = Some((encode(id, bytes), 0));
            }
            let Some((text, written)) = &mut self.current else { return };
            *written += stream.write_bytes(&text[*written..]) as usize;
            if *written < LEN {
                return;
            }
            self.current = None;
            log.push(AppEvent::RequestWritten);
        }
    }
}

/// The server's half: the request that is being read.
#[derive(Debug)]
pub(super) struct Incoming {
    text: [u8; LEN],
    read: usize,
}

/// What a server found in its stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Nothing whole.
    Nothing,
    /// A request for this answer of this length.
    Request(u64, u64),
    /// Bytes that are no request.
    Garbage,
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming { text: [0; LEN], read: 0 }
    }
}

impl Incoming {
    /// Reads what is missing of the next request.
    pub(super) fn read(&mut self, stream: &mut dyn Stream) -> Found {
        if stream.readable() > 0 {
            self.read += stream.read_bytes(&mut self.text[self.read..]) as usize;
        }
        if self.read < LEN {
            return Found::Nothing;
        }
        self.read = 0;
        match decode(&self.text) {
            Some((id, bytes)) => Found::Request(id, bytes),
            None => Found::Garbage,
        }
    }

    /// Whether a request has begun.
    pub(super) const fn begun(&self) -> bool {
        self.read > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_asked_is_what_is_understood(id: u64, bytes: u64) {
            let text = encode(id, bytes);
            prop_assert_eq!(text[LEN - 1], b'\n');
            prop_assert_eq!(decode(&text), Some((id, bytes)));
        }

        #[test]
        fn other_bytes_are_no_request_and_no_panic(
            id: u64, at in 0..LEN, byte: u8, noise in proptest::collection::vec(any::<u8>(), LEN),
        ) {
            let mut text = encode(id, 1);
            text[at] = byte;
            let _ = decode(&text);
            let mut text = [0; LEN];
            text.copy_from_slice(&noise);
            prop_assert_eq!(decode(&text), None);
        }
    }
}
