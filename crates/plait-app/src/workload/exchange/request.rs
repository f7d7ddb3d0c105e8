//! The encoding of a request as bytes. The two ends share only the connection.

use crate::workload::{AppEvent, REQUEST, Stream};
use std::collections::VecDeque;
use std::io::Write;

/// Length of a request in bytes.
const LEN: usize = REQUEST as usize;

/// Returns `GET ID BYTES`, padded with spaces, and a line end: [`REQUEST`] bytes in total.
fn encode(id: u64, bytes: u64) -> [u8; LEN] {
    let mut text = [b' '; LEN];
    text[LEN - 1] = b'\n';
    // Two numbers have at most 20 digits each, so they fit.
    let _ = write!(&mut text[..LEN - 1], "GET {id} {bytes}");
    text
}

/// Returns the id and the length of the requested answer.
fn decode(text: &[u8; LEN]) -> Option<(u64, u64)> {
    let line = core::str::from_utf8(text).ok()?.strip_suffix('\n')?.trim_end();
    let (id, bytes) = line.strip_prefix("GET ")?.split_once(' ')?;
    Some((id.parse().ok()?, bytes.parse().ok()?))
}

/// The client's half: requests not yet written.
#[derive(Default, Debug)]
pub(crate) struct Requests {
    waiting: VecDeque<(u64, u64)>,
    /// The request that is being written, and the number of its bytes that are written.
    current: Option<([u8; LEN], usize)>,
}

impl Requests {
    /// Queues a request for answer `id` of `bytes` bytes.
    pub(crate) fn push(&mut self, id: u64, bytes: u64) {
        self.waiting.push_back((id, bytes));
    }

    /// Writes as much as the send buffer accepts.
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

/// Result of reading the server's stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// No complete request.
    Nothing,
    /// A request: the id and the length of the answer.
    Request(u64, u64),
    /// Bytes that are not a request.
    Garbage,
}

impl Default for Incoming {
    fn default() -> Incoming {
        Incoming { text: [0; LEN], read: 0 }
    }
}

impl Incoming {
    /// Reads the missing bytes of the next request.
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

    /// Returns whether a request has been read in part.
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
