//! Segments of a run as packets.

use plait_base::PathId;
use plait_lab::Cell;
use plait_sim::{Addresses, Direction};
use plait_wire::Segment;
use plait_wire::codec::{TcpChecksum, encode};

/// Encodes the segments of a run.
pub(super) struct Encoder {
    addresses: Addresses,
    bytes: Vec<u8>,
    /// The error of a segment that is no packet.
    pub(super) refused: Option<String>,
}

/// A packet.
pub(super) struct Encoded<'a> {
    /// The headers, without the payload.
    pub(super) headers: &'a [u8],
    /// Length of the whole packet in bytes.
    pub(super) length: u32,
}

impl Encoder {
    /// Returns an encoder for a run of `cell`.
    pub(super) fn new(cell: &Cell, seed: u64) -> Encoder {
        let addresses = Addresses::new(&plait_lab::setup(cell, seed));
        Encoder { addresses, bytes: Vec::new(), refused: None }
    }

    /// Returns a segment as a packet; none if it cannot be one.
    pub(super) fn packet(
        &mut self,
        path: PathId,
        way: Direction,
        segment: &Segment,
    ) -> Option<Encoded<'_>> {
        self.bytes.clear();
        let headers = self.addresses.headers(0, path, way, segment.server);
        if let Err(error) = encode(&headers, segment, TcpChecksum::Full, &mut self.bytes) {
            self.refused.get_or_insert_with(|| format!("{error}: {segment:?}"));
            return None;
        }
        Some(Encoded { headers: headers_of(&self.bytes, segment), length: self.bytes.len() as u32 })
    }
}

/// Returns the headers of a packet with this segment.
pub(super) fn headers_of<'a>(packet: &'a [u8], segment: &Segment) -> &'a [u8] {
    let payload = segment.payload.len() as usize;
    packet.get(..packet.len().saturating_sub(payload)).unwrap_or(packet)
}
