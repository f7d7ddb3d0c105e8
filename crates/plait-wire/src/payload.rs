use alloc::sync::Arc;

/// Mask that an edit applies to a byte. A change of one bit always changes a ones' complement sum.
const EDIT: u8 = 0x01;

/// Difference between consecutive words of the pattern.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns eight bytes of the pattern, the first in the most significant place. They are multiples of
/// an odd number, so no two words of the pattern are equal.
pub(crate) const fn pattern_word(index: u64) -> u64 {
    index.wrapping_add(1).wrapping_mul(STEP)
}

/// Writes the bytes of the pattern from position `offset` on, eight at a time.
fn write_pattern(offset: u64, out: &mut [u8]) {
    let odd = (offset % 8) as usize;
    let head = if odd == 0 { 0 } else { (8 - odd).min(out.len()) };
    let (first, rest) = out.split_at_mut(head);
    first.copy_from_slice(&pattern_word(offset / 8).to_be_bytes()[odd..odd + head]);
    let start = (offset + head as u64) / 8;
    let (words, tail) = rest.as_chunks_mut::<8>();
    // Adding a step costs less than a multiplication per word.
    let mut next = pattern_word(start);
    for word in words {
        *word = next.to_be_bytes();
        next = next.wrapping_add(STEP);
    }
    let last = next.to_be_bytes();
    tail.copy_from_slice(&last[..tail.len()]);
}

/// Returns true if `bytes` are the pattern from position `offset` on.
fn is_pattern(offset: u64, bytes: &[u8]) -> bool {
    let odd = (offset % 8) as usize;
    let head = if odd == 0 { 0 } else { (8 - odd).min(bytes.len()) };
    let (first, rest) = bytes.split_at(head);
    let start = (offset + head as u64) / 8;
    let (words, tail) = rest.as_chunks::<8>();
    let (mut next, mut differs) = (pattern_word(start), 0);
    for word in words {
        differs |= u64::from_be_bytes(*word) ^ next;
        next = next.wrapping_add(STEP);
    }
    let last = next.to_be_bytes();
    first == &pattern_word(offset / 8).to_be_bytes()[odd..odd + head]
        && differs == 0
        && tail == &last[..tail.len()]
}

/// The payload of a segment.
#[derive(Clone, Debug, Default)]
pub enum Payload {
    /// No bytes.
    #[default]
    Empty,
    /// `len` bytes of a known pattern from `offset` on. Simulations carry these.
    Pattern {
        /// Position of the first byte in the pattern.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Bytes of the pattern, one of which was changed by a middlebox.
    Edited {
        /// Position of the first byte in the pattern.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// Index of the changed byte, from 0.
        at: u32,
    },
    /// Real bytes in a shared buffer.
    Bytes {
        /// The buffer.
        buffer: Arc<[u8]>,
        /// Number of bytes.
        len: u32,
        /// Index of the first byte in the buffer.
        start: u32,
    },
}

impl Payload {
    /// Returns a payload with a copy of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Payload {
        Payload::Bytes { buffer: Arc::from(bytes), start: 0, len: bytes.len() as u32 }
    }

    /// Returns the number of bytes.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> u32 {
        match self {
            Payload::Pattern { len, .. } => *len,
            Payload::Empty => 0,
            Payload::Edited { len, .. } | Payload::Bytes { len, .. } => *len,
        }
    }

    /// Returns true if there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `len` bytes from `skip` on, or fewer if the payload ends before.
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

    /// Returns the payload with its byte at `at` changed, as a middlebox may do. If there is no such
    /// byte, or if a pattern was edited before, the payload is returned unchanged.
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

    /// Returns the byte of the pattern at `position`.
    #[must_use]
    pub const fn pattern_byte(position: u64) -> u8 {
        pattern_word(position / 8).to_be_bytes()[(position % 8) as usize]
    }

    /// Returns the byte of the pattern at `position` after an edit.
    pub(crate) const fn edited_byte(position: u64) -> u8 {
        Payload::pattern_byte(position) ^ EDIT
    }

    /// Copies the payload to the front of `out`; bytes that do not fit are left out.
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

    /// Returns true if the payload equals `bytes`. A pattern is compared without being stored.
    #[must_use]
    pub fn is(&self, bytes: &[u8]) -> bool {
        let same = |from: usize, to: usize, offset: u64| {
            bytes.get(from..to).is_some_and(|bytes| is_pattern(offset, bytes))
        };
        match self {
            _ if bytes.len() != self.len() as usize => false,
            Payload::Empty => true,
            Payload::Bytes { .. } => self.bytes() == Some(bytes),
            Payload::Pattern { offset, .. } => is_pattern(*offset, bytes),
            Payload::Edited { offset, at, .. } => {
                let (edit, next) = (*at as usize, u64::from(*at) + 1);
                same(0, edit, *offset)
                    && same(edit + 1, bytes.len(), offset + next)
                    && bytes.get(edit) == Some(&Payload::edited_byte(offset + u64::from(*at)))
            }
        }
    }

    /// Returns the real bytes, or `None` for an empty payload and for the pattern.
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// The written bytes equal those of `pattern_byte` and are recognised; with one byte changed they
    /// are not. Offsets and lengths cover every place within a word.
    #[test]
    fn bytes_are_written_and_known_again() {
        for (offset, len) in (0..17).flat_map(|offset| (0..40).map(move |len| (offset, len))) {
            let slow: Vec<u8> =
                (0..u64::from(len)).map(|n| Payload::pattern_byte(offset + n)).collect();
            let pattern = Payload::Pattern { offset, len };
            let mut bytes = vec![0xaa; len as usize + 3];
            pattern.copy_to(&mut bytes);
            assert_eq!(bytes, [&slow[..], &[0xaa; 3]].concat(), "{offset}, {len}");
            assert!(pattern.is(&slow) && Payload::from_bytes(&slow).is(&slow));
            assert!(!pattern.is(&bytes));
            for at in 0..len {
                let (edited, mut bytes) = (pattern.edited(at), slow.clone());
                bytes[at as usize] ^= EDIT;
                assert!(edited.is(&bytes) && !edited.is(&slow), "{offset}, {len}, {at}");
                assert!(!pattern.is(&bytes), "{offset}, {len}, {at}");
                let mut out = vec![0; len as usize];
                edited.copy_to(&mut out);
                assert_eq!(out, bytes);
            }
        }
    }
}
