//! Frames of HTTP/2 (RFC 9113) and their header blocks (RFC 7541), as far as a page needs them.

/// The preface of the client (RFC 9113 section 3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Maximum payload of a frame, and the size into which bodies are cut (section 4.2).
pub(super) const MAX_FRAME_BYTES: usize = 16_384;
/// Initial window of a connection, and the default window of a stream (section 6.9.2).
pub(super) const FIRST_WINDOW: u32 = 65_535;

pub(super) const DATA: u8 = 0;
pub(in super::super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// SETTINGS_INITIAL_WINDOW_SIZE (section 6.5.2).
pub(super) const INITIAL_WINDOW: u16 = 4;

/// Length of a header block in bytes. It is small, because names and values repeat on a connection.
const BLOCK: usize = 91;
/// Length in bytes of a request or of a response head, including its frame header.
pub(in super::super) const HEAD: usize = 9 + BLOCK;

/// The header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FrameHead {
    pub(super) len: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    pub(super) fn to_bytes(self) -> [u8; 9] {
        let [_, a, b, c] = (self.len as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }

    fn from_bytes(bytes: [u8; 9]) -> FrameHead {
        let [a, b, c, kind, flags, d, e, f, g] = bytes;
        FrameHead {
            len: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([d & 0x7f, e, f, g]),
        }
    }
}

/// Returns a frame with a short payload.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = FrameHead { len: payload.len(), kind, flags, stream }.to_bytes().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

/// A received item.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Got {
    /// Bytes of a body; `end` is true with the last of them.
    Data { stream: u32, count: usize, end: bool },
    /// Any other frame, complete.
    Frame { head: FrameHead, payload: Vec<u8> },
}

/// Parses frames.
#[derive(Debug)]
pub(super) struct Frames {
    head: [u8; 9],
    /// Number of received bytes of the frame header.
    have: usize,
    payload: Vec<u8>,
    /// Number of received bytes of a DATA frame.
    came: usize,
}

impl Frames {
    pub(super) const fn new() -> Frames {
        Frames { head: [0; 9], have: 0, payload: Vec::new(), came: 0 }
    }

    /// Takes bytes. Returns their number, and the item that they complete. Returns an error if a
    /// frame is too long, or has padding or priorities, which neither end sends.
    pub(super) fn take(&mut self, input: &[u8]) -> Result<(usize, Option<Got>), ()> {
        if self.have < 9 {
            let used = input.len().min(9 - self.have);
            self.head[self.have..self.have + used].copy_from_slice(&input[..used]);
            self.have += used;
            let head = FrameHead::from_bytes(self.head);
            if self.have < 9 || head.len > 0 {
                return if head.len > MAX_FRAME_BYTES && self.have == 9 {
                    Err(())
                } else {
                    Ok((used, None))
                };
            }
            self.have = 0;
            return Ok((used, Some(whole(head, Vec::new())?)));
        }
        let head = FrameHead::from_bytes(self.head);
        if head.kind == DATA {
            let count = input.len().min(head.len - self.came);
            self.came += count;
            let last = self.came == head.len;
            if last {
                (self.have, self.came) = (0, 0);
            }
            if head.flags & PADDED != 0 {
                return Err(());
            }
            let end = last && head.flags & END_STREAM != 0;
            return Ok((count, Some(Got::Data { stream: head.stream, count, end })));
        }
        let used = input.len().min(head.len - self.payload.len());
        self.payload.extend_from_slice(&input[..used]);
        if self.payload.len() < head.len {
            return Ok((used, None));
        }
        self.have = 0;
        Ok((used, Some(whole(head, core::mem::take(&mut self.payload))?)))
    }
}

fn whole(head: FrameHead, payload: Vec<u8>) -> Result<Got, ()> {
    if head.kind == DATA {
        let end = head.flags & END_STREAM != 0;
        return Ok(Got::Data { stream: head.stream, count: 0, end });
    }
    let whole = head.flags & (PADDED | PRIORITY) == 0 && head.flags & END_HEADERS != 0;
    if head.kind == HEADERS && !whole {
        return Err(());
    }
    Ok(Got::Frame { head, payload })
}

/// Returns the increment of a WINDOW_UPDATE.
pub(super) fn increment(payload: &[u8]) -> Option<u32> {
    let bytes: [u8; 4] = payload.try_into().ok()?;
    Some(u32::from_be_bytes(bytes) & 0x7fff_ffff).filter(|number| *number > 0)
}

/// Appends a literal without indexing: a name from the static table or spelled out, and a value.
fn literal(block: &mut Vec<u8>, name: Result<u8, &str>, value: &[u8]) {
    match name {
        Ok(index) if index < 15 => block.push(index),
        Ok(index) => block.extend_from_slice(&[15, index - 15]),
        Err(name) => {
            block.extend_from_slice(&[0, name.len() as u8]);
            block.extend_from_slice(name.as_bytes());
        }
    }
    block.push(value.len() as u8);
    block.extend_from_slice(value);
}

/// Pads a block to [`BLOCK`] bytes.
fn padded(mut block: Vec<u8>) -> Vec<u8> {
    let pad = BLOCK.saturating_sub(block.len() + 2 + "x-pad".len() + 1);
    literal(&mut block, Err("x-pad"), &[b'.'; BLOCK][..pad]);
    block
}

/// Returns the header block of a request for an object.
pub(super) fn request(object: u32) -> Vec<u8> {
    // The static table has `:method GET` and `:scheme http`, and the names `:authority` and
    // `:path`.
    let mut block = vec![0x82, 0x86];
    literal(&mut block, Ok(1), b"plait");
    literal(&mut block, Ok(4), format!("/{object}").as_bytes());
    padded(block)
}

/// Returns the header block of a response: `:status 200` or `:status 404`, and `content-length`.
pub(super) fn response(size: Option<u64>) -> Vec<u8> {
    let mut block = vec![if size.is_some() { 0x88 } else { 0x8d }];
    literal(&mut block, Ok(28), size.unwrap_or(0).to_string().as_bytes());
    padded(block)
}

/// Returns whether the block is that of a response with status 200.
pub(super) fn is_ok(block: &[u8]) -> bool {
    block.first() == Some(&0x88)
}

/// Returns the object that a block requests. Blocks must have no Huffman codes and no dynamic
/// table, like those of [`request`].
pub(super) fn asked(mut block: &[u8]) -> Option<u32> {
    while let Some((first, rest)) = block.split_first() {
        block = rest;
        match first {
            0x81..=0xbe => continue,
            0..=0x1e => {}
            _ => return None,
        }
        let mut index = first & 0x0f;
        if index == 15 {
            let (more, rest) = block.split_first()?;
            index = index.checked_add(*more).filter(|_| *more < 0x80)?;
            block = rest;
        }
        if index == 0 {
            block = string(block)?.1;
        }
        let (value, rest) = string(block)?;
        block = rest;
        if index == 4 {
            return core::str::from_utf8(value).ok()?.strip_prefix('/')?.parse().ok();
        }
    }
    None
}

/// Returns a string and the rest of the block.
fn string(block: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = block.split_first()?;
    if *len >= 0x7f { None } else { rest.split_at_checked((*len).into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn heads_have_one_length_and_tell_the_object() {
        for object in [0, 7, 227, 123_456] {
            let block = request(object);
            assert_eq!((block.len() + 9, asked(&block)), (HEAD, Some(object)));
        }
        assert_eq!((response(Some(1)).len(), response(Some(1 << 40)).len()), (BLOCK, BLOCK));
        assert!(is_ok(&response(Some(0))) && !is_ok(&response(None)));
        // RFC 7541 section 6.2.2: a literal without indexing, `:path` (4) `/sample/path`.
        assert_eq!(asked(b"\x04\x0c/sample/path"), None);
        assert_eq!(asked(b"\x04\x02/9"), Some(9));
    }

    #[test]
    fn a_frame_is_cut_anywhere() {
        // RFC 9113 section 4.1: length 24 bits, type, flags, stream identifier.
        let mut bytes = frame(WINDOW_UPDATE, 0, 3, &[0, 0, 1, 0]);
        assert_eq!(bytes, [0, 0, 4, 8, 0, 0, 0, 0, 3, 0, 0, 1, 0]);
        bytes.extend(FrameHead { len: 5, kind: DATA, flags: END_STREAM, stream: 1 }.to_bytes());
        bytes.extend([0; 5]);
        bytes.extend(frame(SETTINGS, ACK, 0, &[]));
        for step in 1..=bytes.len() {
            let (mut frames, mut got, mut body) = (Frames::new(), Vec::new(), 0);
            for mut part in bytes.chunks(step) {
                while !part.is_empty() {
                    let (used, what) = frames.take(part).unwrap();
                    part = &part[used..];
                    match what {
                        Some(Got::Data { stream: 1, count, end }) => {
                            body += count;
                            assert_eq!(end, body == 5);
                        }
                        Some(Got::Frame { head, payload }) => got.push((head.kind, payload)),
                        other => assert_eq!(other, None),
                    }
                }
            }
            assert_eq!(body, 5);
            assert_eq!(got, [(WINDOW_UPDATE, vec![0, 0, 1, 0]), (SETTINGS, vec![])]);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), step in 1usize..50) {
            let mut frames = Frames::new();
            'all: for mut part in bytes.chunks(step) {
                while !part.is_empty() {
                    let Ok((used, _)) = frames.take(part) else { break 'all };
                    prop_assert!(used > 0);
                    part = &part[used..];
                }
            }
            let _ = (asked(&bytes), increment(&bytes), is_ok(&bytes));
        }
    }
}
