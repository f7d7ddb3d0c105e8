//! Buffers of a connection: fixed, or growing with the connection.

use super::Scenario;
use super::path_parse::Reader;
use super::placed_text::PlacedText;
use super::setters::window_size;
use crate::error::{Fault, ScenarioError};
use plait_app::quantity::{Bytes, Size};

/// The size of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// Size at the start if the buffer grows.
    pub first: Option<Size>,
    /// Largest size.
    pub largest: Size,
}

/// First size of a receive buffer `auto`: the first window of Linux.
const FIRST_RCVBUF: Size = Size::Bytes(64 << 10);
/// First size of a send buffer `auto`.
const FIRST_SNDBUF: Size = Size::Bytes(4 << 20);
/// Largest default size of both (`net.ipv4.tcp_rmem` of Linux 6.18, third number).
const LARGEST: Size = Size::Bytes(32 << 20);

/// The receive buffer `auto`.
pub(super) const AUTO_RCVBUF: Buffer =
    Buffer { first: Some(FIRST_RCVBUF), largest: Size::Bytes(6 << 20) };
/// The default receive buffer.
pub(super) const DEFAULT_RCVBUF: Buffer =
    Buffer { first: Some(Size::Bytes(6 << 20)), largest: LARGEST };
/// The default send buffer, which is also `auto`.
pub(super) const DEFAULT_SNDBUF: Buffer = Buffer { first: Some(FIRST_SNDBUF), largest: LARGEST };

/// Buffers of the kernels of the papers, unless a scenario has its own.
pub(super) const FIXED: [(&str, &str); 2] = [("rcvbuf", "6MiB"), ("sndbuf", "4MiB")];

type Result<T> = core::result::Result<T, ScenarioError>;

/// Reads `6MiB`, `auto`, `auto:32MiB` or `auto:6MiB:32MiB`. `auto` has the sizes that the text
/// leaves out.
fn read(given: &PlacedText, auto: Buffer) -> Result<Buffer> {
    let size = |text: &str| window_size(&PlacedText::new(&given.place, text));
    let text = given.text.trim();
    if text.starts_with(|it: char| it.is_ascii_alphabetic()) && !text.starts_with("auto") {
        return Err(given.unknown("value", ["auto", "auto:32MiB", "auto:6MiB:32MiB", "6MiB"]));
    }
    let Some(rest) = text.strip_prefix("auto") else {
        return Ok(Buffer { first: None, largest: size(&given.text)? });
    };
    if rest.is_empty() {
        return Ok(auto);
    }
    let Some(sizes) = rest.strip_prefix(':') else {
        return Err(given.unknown("value", ["auto", "auto:32MiB", "auto:6MiB:32MiB"]));
    };
    let Some((first, largest)) = sizes.split_once(':') else {
        return Ok(Buffer { largest: size(sizes)?, ..auto });
    };
    let (first, largest) = (size(first)?, size(largest)?);
    if let (Size::Bytes(least), Size::Bytes(most)) = (first, largest)
        && least > most
    {
        let error = given.error(Fault::Conflict, "the first size is larger than the largest one");
        return Err(error.allow("auto:FIRST:MAX, FIRST at most MAX"));
    }
    Ok(Buffer { first: Some(first), largest })
}

/// Returns the form that [`read`] reads. `auto` has the first size of a text without one.
fn written(buffer: Buffer, auto: Buffer) -> Vec<String> {
    let largest = size_text(buffer.largest);
    vec![match buffer.first {
        None => largest,
        first if first == auto.first => format!("auto:{largest}"),
        Some(first) => format!("auto:{}:{largest}", size_text(first)),
    }]
}

/// Writes a size in binary units if it is whole in them, so that `6MiB` stays `6MiB`.
fn size_text(size: Size) -> String {
    match size {
        Size::Bytes(bytes) if bytes != 0 && bytes.is_multiple_of(1 << 20) => {
            format!("{}MiB", bytes >> 20)
        }
        Size::Bytes(bytes) => Bytes(bytes).to_string(),
        Size::Segments(_) => size.to_string(),
    }
}

pub(super) fn set_rcvbuf(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    it.transport.rcvbuf = read(given, AUTO_RCVBUF)?;
    Ok(())
}

pub(super) fn rcvbuf_text(it: &Scenario) -> Vec<String> {
    written(it.transport.rcvbuf, AUTO_RCVBUF)
}

pub(super) fn set_sndbuf(it: &mut Scenario, given: &PlacedText, _: Reader<'_>) -> Result<()> {
    it.transport.sndbuf = read(given, DEFAULT_SNDBUF)?;
    Ok(())
}

pub(super) fn sndbuf_text(it: &Scenario) -> Vec<String> {
    written(it.transport.sndbuf, DEFAULT_SNDBUF)
}
