//! The output of an app: meaningful bytes, then filler.

use crate::Stream;

/// The content of bodies.
static FILLER: [u8; 16_384] = [0; 16_384];

/// Bytes that the send buffer has not accepted yet.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Number of `bytes` already written.
    gone: usize,
    /// Bytes of a body that follow `bytes`.
    filler: u64,
    /// Total bytes that the send buffer has accepted, and total bytes appended.
    taken: u64,
    put: u64,
}

impl Outbox {
    pub(super) const fn new() -> Outbox {
        Outbox { bytes: Vec::new(), gone: 0, filler: 0, taken: 0, put: 0 }
    }

    /// Appends bytes. No filler may be pending, so callers flush first.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.filler, 0, "bytes behind filler");
        if self.gone == self.bytes.len() {
            self.bytes.clear();
            self.gone = 0;
        }
        self.bytes.extend_from_slice(bytes);
        self.put += bytes.len() as u64;
    }

    /// Appends `count` bytes of a body.
    pub(super) fn fill(&mut self, count: u64) {
        self.filler += count;
        self.put += count;
    }

    /// Returns the total number of bytes appended.
    pub(super) const fn end(&self) -> u64 {
        self.put
    }

    /// Returns the total number of bytes that the send buffer has accepted.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Writes as much as the send buffer accepts. Returns whether nothing is left.
    pub(super) fn flush(&mut self, stream: &mut dyn Stream) -> bool {
        while self.taken < self.put {
            let left = &self.bytes[self.gone..];
            let wrote = if left.is_empty() {
                let len = self.filler.min(FILLER.len() as u64) as usize;
                let wrote = stream.write_bytes(&FILLER[..len]).min(len as u64);
                self.filler -= wrote;
                wrote
            } else {
                let wrote = stream.write_bytes(left).min(left.len() as u64);
                self.gone += wrote as usize;
                wrote
            };
            self.taken += wrote;
            if wrote == 0 {
                return false;
            }
        }
        true
    }
}

/// Maximum number of bytes that an app reads at a time.
pub(super) const CHUNK: usize = 16_384;
