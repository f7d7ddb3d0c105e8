use alloc::sync::Arc;

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
    pub const fn len(&self) -> u32 {
        match self {
            Payload::Empty => 0,
            Payload::Pattern { len, .. } | Payload::Bytes { len, .. } => *len,
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
            Payload::Bytes { buffer, start, .. } => {
                Payload::Bytes { buffer: buffer.clone(), start: start + skip, len }
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
