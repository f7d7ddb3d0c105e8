use alloc::sync::Arc;

/// What an edit does to a byte. No edit of one bit leaves a ones' complement sum as it was.
const EDIT: u8 = 0x01;

/// Eight bytes of the pattern, the first in the highest place: multiples of an odd number, so that
/// no two stretches of it are alike.
pub(crate) const fn pattern_word(index: u64) -> u64 {
    index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Writes the bytes of the pattern from position `offset` on, eight at a time.
fn write_pattern(offset: u64, out: &mut [u8]) {
    let odd = (offset % 8) as usize;
    let head = if odd == 0 { 0 } else { (8 - odd).min(out.len()) };
    let (first, rest) = out.split_at_mut(head);
    first.copy_from_slice(&pattern_word(offset / 8).to_be_bytes()[odd..odd + head]);
    let start = (offset + head as u64) / 8;
    for (word, chunk) in (start..).zip(rest.chunks_mut(8)) {
        chunk.copy_from_slice(&pattern_word(word).to_be_bytes()[..chunk.len()]);
    }
}

/// The bytes that a segment carries.
#[derive(Clone, Debug, Default)]
pub enum Payload {
    /// None.
    #[default]
    Empty,
    /// `len` bytes of a known pattern, from `offset` on: what simulations carry.
    Pattern {
        /// Where in the pattern the bytes start.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Pattern bytes of which a middlebox has changed one.
    Edited {
        /// Where in the pattern the bytes start.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Which of them was changed, counted from the first.
        at: u32,
    },
    /// Real bytes, shared.
    Bytes {
        /// The buffer that holds them.
        buffer: Arc<[u8]>,
        /// First byte within the buffer.
        start: u32,
        /// Number of bytes.
        len: u32,
    },
}

impl Payload {
    /// A payload of real bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Payload {
        Payload::Bytes { buffer: Arc::from(bytes), start: 0, len: bytes.len() as u32 }
    }

    /// Number of bytes.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> u32 {
        match self {
            Payload::Pattern { len, .. } => *len,
            Payload::Empty => 0,
            Payload::Edited { len, .. } | Payload::Bytes { len, .. } => *len,
        }
    }

    /// Whether there is no byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `len` bytes from `skip` on, cut where the payload ends.
    #[must_use]
    pub fn slice(&self, skip: u32, len: u32) -> Payload {
        let skip = skip.min(self.len());
        let len = len.min(self.len() - skip);
        if len == 0 {
            return Payload::Empty;
        }
        match self {
            Payload::Empty => Payload::Empty,
            Payload::Pattern { offset, .. } => {
                Payload::Pattern { offset: offset + u64::from(skip), len }
            }
            Payload::Edited { offset, at, .. } => {
                let offset = offset + u64::from(skip);
                match at.checked_sub(skip).filter(|at| *at < len) {
                    Some(at) => Payload::Edited { offset, len, at },
                    None => Payload::Pattern { offset, len },
                }
            }
            Payload::Bytes { buffer, start, .. } => {
                Payload::Bytes { buffer: buffer.clone(), start: start + skip, len }
            }
        }
    }

    /// The payload with its byte at `at` changed, as a middlebox may; the same where there is no
    /// such byte.
    #[must_use]
    pub fn edited(&self, at: u32) -> Payload {
        match self {
            _ if at >= self.len() => self.clone(),
            Payload::Pattern { offset, len } => Payload::Edited { offset: *offset, len: *len, at },
            Payload::Empty | Payload::Edited { .. } => self.clone(),
            Payload::Bytes { .. } => {
                let mut bytes = self.bytes().unwrap_or_default().to_vec();
                if let Some(byte) = bytes.get_mut(at as usize) {
                    *byte ^= EDIT;
                }
                Payload::from_bytes(&bytes)
            }
        }
    }

    /// The byte of the pattern at `position`.
    #[must_use]
    pub const fn pattern_byte(position: u64) -> u8 {
        pattern_word(position / 8).to_be_bytes()[(position % 8) as usize]
    }

    /// What an edit leaves there.
    pub(crate) const fn edited_byte(position: u64) -> u8 {
        Payload::pattern_byte(position) ^ EDIT
    }

    /// Writes the bytes, real or not, to the front of `out`: as many as there are and as fit.
    pub fn copy_to(&self, out: &mut [u8]) {
        let len = out.len().min(self.len() as usize);
        let out = out.get_mut(..len).unwrap_or_default();
        match self {
            Payload::Empty => {}
            Payload::Bytes { .. } => {
                if let Some(bytes) = self.bytes().and_then(|bytes| bytes.get(..len)) {
                    out.copy_from_slice(bytes);
                }
            }
            Payload::Pattern { offset, .. } => write_pattern(*offset, out),
            Payload::Edited { offset, at, .. } => {
                write_pattern(*offset, out);
                if let Some(byte) = out.get_mut(*at as usize) {
                    *byte ^= EDIT;
                }
            }
        }
    }

    /// The real bytes, where there are any.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Payload::Bytes { buffer, start, len } => {
                buffer.get(*start as usize..(*start + *len) as usize)
            }
            _ => None,
        }
    }
}
