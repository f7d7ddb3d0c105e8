//! Bytes on their way out of an app: some that mean something, then filler.

use crate::Stream;

/// What bodies are made of.
static FILLER: [u8; 16_384] = [0; 16_384];

/// Holds what the send buffer has not taken yet.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// How many of them are gone.
    gone: usize,
    /// Bytes of a body that follow them.
    filler: u64,
    /// How many bytes the send buffer has taken, and how many it is to take.
    taken: u64,
    put: u64,
}

impl Outbox {
    pub(super) const fn new() -> Outbox {
        Outbox { bytes: Vec::new(), gone: 0, filler: 0, taken: 0, put: 0 }
    }

    /// Appends bytes. Only where no filler waits: callers flush before they go on.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.filler, 0, "bytes behind filler");
        if self.gone == self.bytes.len() {
            self.bytes.clear();
            self.gone = 0;
        }
        self.bytes.extend_from_slice(bytes);
        self.put += bytes.len() as u64;
    }

    /// Appends bytes of a body.
    pub(super) fn fill(&mut self, count: u64) {
        self.filler += count;
        self.put += count;
    }

    /// How many bytes were put, ever.
    pub(super) const fn end(&self) -> u64 {
        self.put
    }

    /// How many bytes the send buffer has taken, ever.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Writes what the send buffer takes; whether that was all.
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

/// Bytes that an app reads at a time.
pub(super) const CHUNK: usize = 16_384;
