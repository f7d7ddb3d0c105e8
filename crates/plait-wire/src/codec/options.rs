//! The options of a TCP header. [`Options::header_len`] defines which of two forms is used.

use super::error::{EncodeError, Skipped, Unread, Why};
use super::mptcp;
use crate::{Flags, Options, Segment, Timestamps};

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
pub(super) const MPTCP: u8 = 30;
const EXPERIMENT: u8 = 253;

/// Identifier of the experiment [`Options::early_joins`] (RFC 6994 section 3).
const EARLY_JOINS: [u8; 2] = [0x50, 0x4a];

/// The largest window scale shift (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;

/// Writes options to the option space of a header.
pub(super) struct Writer<'a> {
    room: &'a mut [u8],
    at: usize,
    padded: bool,
}

impl Writer<'_> {
    /// Appends bytes. Bytes beyond the room are counted but not written.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if let Some(room) = self.room.get_mut(self.at..self.at + bytes.len()) {
            room.copy_from_slice(bytes);
        }
        self.at += bytes.len();
    }

    /// In the padded form, writes NOPs before an option whose length is not a multiple of four.
    fn lead(&mut self, nops: &[u8]) {
        if self.padded {
            self.put(nops);
        }
    }

    /// In the padded form, writes NOPs up to the next word.
    pub(super) fn align(&mut self) {
        while self.padded && !self.at.is_multiple_of(4) {
            self.put(&[NOP]);
        }
    }
}

/// Writes the options of a segment. `room` has the length of the options.
pub(super) fn write(segment: &Segment, room: &mut [u8]) -> Result<(), EncodeError> {
    let options = &segment.options;
    check_places(segment)?;
    let needs = room.len();
    let mut out = Writer { room, at: 0, padded: !options.is_packed() };
    if let Some(mss) = options.mss {
        let [high, low] = mss.to_be_bytes();
        out.put(&[MSS, 4, high, low]);
    }
    match (options.sack_permitted, options.timestamps.is_some()) {
        (false, false) => {}
        (false, true) => out.lead(&[NOP, NOP]),
        (true, clock) => {
            if !clock {
                out.lead(&[NOP, NOP]);
            }
            out.put(&[SACK_PERMITTED, 2]);
        }
    }
    if let Some(clock) = options.timestamps {
        out.put(&[TIMESTAMPS, 10]);
        out.put(&clock.value.to_be_bytes());
        out.put(&clock.echo.to_be_bytes());
    }
    if let Some(scale) = options.window_scale {
        out.lead(&[NOP]);
        out.put(&[WINDOW_SCALE, 3, scale]);
    }
    if options.early_joins {
        out.put(&[EXPERIMENT, 4]);
        out.put(&EARLY_JOINS);
    }
    if options.sack.count() > 0 {
        out.lead(&[NOP, NOP]);
        out.put(&[SACK, 2 + 8 * options.sack.count() as u8]);
        for (left, right) in options.sack.as_slice() {
            out.put(&left.to_be_bytes());
            out.put(&right.to_be_bytes());
        }
    }
    if let Some(dss) = &options.dss {
        mptcp::write_dss(dss, &mut out)?;
        out.align();
    }
    if let Some(option) = options.mptcp.as_deref() {
        for option in option.all() {
            mptcp::write(option, &mut out)?;
            out.align();
        }
    }
    // The packed form ends with zeros, which mean end of option list.
    while !out.at.is_multiple_of(4) {
        out.put(&[END]);
    }
    if out.at == needs { Ok(()) } else { Err(EncodeError::Options(out.at as u32)) }
}

/// Returns an error if a parser would skip an option on a segment with these flags.
fn check_places(segment: &Segment) -> Result<(), EncodeError> {
    let options = &segment.options;
    let syn = segment.flags.has(Flags::SYN);
    let place = |wrong: bool, name| if wrong { Err(EncodeError::Place(name)) } else { Ok(()) };
    place(options.mss.is_some() && !syn, "MSS")?;
    place(options.window_scale.is_some() && !syn, "window scale")?;
    place(options.sack_permitted && !syn, "SACK permitted")?;
    place(options.early_joins && !syn, "early joins")?;
    place(options.sack.count() > 0 && syn, "SACK")?;
    place(options.dss.is_some() && syn, "DSS")?;
    if options.window_scale.is_some_and(|scale| scale > MAX_SCALE) {
        return Err(EncodeError::Number("window scale"));
    }
    match options.mptcp.as_deref() {
        Some(option) => mptcp::check_place(option, segment.flags),
        None => Ok(()),
    }
}

/// Reads the options of a segment with `flags` into `options`, which must be empty.
pub(super) fn read(bytes: &[u8], flags: Flags, options: &mut Options) -> Skipped {
    let mut skipped = Skipped::default();
    let (mut rest, mut at) = (bytes, 0u8);
    loop {
        let kind = match rest {
            [] | [END, ..] => return skipped,
            [NOP, tail @ ..] => {
                (rest, at) = (tail, at + 1);
                continue;
            }
            [kind, ..] => *kind,
        };
        let unread = |why| Unread { at, kind, why };
        let len = rest.get(1).copied().unwrap_or(0);
        let Some(body) = rest.get(2..usize::from(len)) else {
            skipped.push(unread(Why::Broken));
            return skipped;
        };
        if let Err(why) = read_one(kind, body, flags, options) {
            skipped.push(unread(why));
        }
        rest = rest.get(usize::from(len)..).unwrap_or_default();
        at += len;
    }
}

/// Reads one option without its kind and length.
fn read_one(kind: u8, body: &[u8], flags: Flags, options: &mut Options) -> Result<(), Why> {
    let syn = flags.has(Flags::SYN);
    let wrong_len = Err(Why::Length(body.len() as u8 + 2));
    match (kind, body) {
        (MPTCP, _) => mptcp::read(body, flags, options),
        (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
            let value = u32::from_be_bytes([a, b, c, d]);
            let echo = u32::from_be_bytes([e, f, g, h]);
            once(&mut options.timestamps, Timestamps { value, echo })
        }
        (SACK, _) => {
            let (blocks, rest) = body.as_chunks::<8>();
            match (blocks.len(), rest) {
                (1..=4, []) if syn => Err(Why::Place),
                (1..=4, []) if options.sack.count() > 0 => Err(Why::Twice),
                (1..=4, []) => {
                    for [a, b, c, d, e, f, g, h] in blocks.iter().copied() {
                        let left = u32::from_be_bytes([a, b, c, d]);
                        let right = u32::from_be_bytes([e, f, g, h]);
                        options.sack.push(left, right);
                    }
                    Ok(())
                }
                _ => wrong_len,
            }
        }
        (MSS, [_, _]) | (WINDOW_SCALE, [_]) | (SACK_PERMITTED, []) if !syn => Err(Why::Place),
        (MSS, &[high, low]) => once(&mut options.mss, u16::from_be_bytes([high, low])),
        (WINDOW_SCALE, [scale]) => once(&mut options.window_scale, (*scale).min(MAX_SCALE)),
        (SACK_PERMITTED, []) if options.sack_permitted => Err(Why::Twice),
        (SACK_PERMITTED, []) => {
            options.sack_permitted = true;
            Ok(())
        }
        (EXPERIMENT, [high, low]) if [*high, *low] == EARLY_JOINS => match () {
            () if !syn => Err(Why::Place),
            () if options.early_joins => Err(Why::Twice),
            () => {
                options.early_joins = true;
                Ok(())
            }
        },
        (MSS | WINDOW_SCALE | SACK_PERMITTED | TIMESTAMPS, _) => wrong_len,
        _ => Err(Why::Kind),
    }
}

/// Stores the first option of a kind. A second one is skipped with [`Why::Twice`].
pub(super) fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), Why> {
    if slot.is_some() {
        return Err(Why::Twice);
    }
    *slot = Some(value);
    Ok(())
}
