//! A segment of an event.

use super::super::words::{DirectionWord, OptionWord};
use plait_sim::Direction;
use plait_wire::{Flags, Segment};
use schemars::JsonSchema;
use serde::Serialize;

/// A segment as on the wire. Its data sequence numbers have 64 bits. They are hexadecimal text,
/// because JSON readers round such numbers.
#[derive(Serialize, JsonSchema, Debug)]
pub(super) struct Packet<'a> {
    path: &'a str,
    direction: DirectionWord,
    src_port: u16,
    dst_port: u16,
    flags: String,
    seq: u32,
    ack: Option<u32>,
    window: u16,
    payload_bytes: u32,
    ip_bytes: u32,
    sack: Vec<(u32, u32)>,
    mptcp: Option<OptionWord>,
    wire_dsn: Option<String>,
    wire_data_ack: Option<String>,
    data_fin: bool,
}

impl<'a> Packet<'a> {
    pub(super) fn of(path: &'a str, way: Direction, segment: &Segment) -> Packet<'a> {
        let dss = segment.options.dss.unwrap_or_default();
        let hex = |value: u64, long: bool| {
            if long { format!("0x{value:016x}") } else { format!("0x{:08x}", value as u32) }
        };
        Packet {
            path,
            direction: way.into(),
            src_port: segment.src_port,
            dst_port: segment.dst_port,
            flags: format!("{:?}", segment.flags),
            seq: segment.seq,
            ack: segment.flags.has(Flags::ACK).then_some(segment.ack),
            window: segment.window,
            payload_bytes: segment.payload.len(),
            ip_bytes: segment.ip_len(),
            sack: segment.options.sack.as_slice().to_vec(),
            mptcp: segment.options.mptcp.as_deref().map(Into::into),
            wire_dsn: dss.mapping.map(|mapping| hex(mapping.dsn.0, mapping.long)),
            wire_data_ack: dss.data_ack.map(|ack| hex(ack.value.0, ack.long)),
            data_fin: dss.data_fin,
        }
    }
}
