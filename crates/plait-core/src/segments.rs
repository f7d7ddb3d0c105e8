//! Segments on their way out, and what SYNs carry.

use crate::config::Config;
use crate::data::window::scale_for;
use crate::tcp::address::Address;
use crate::tcp::clock::StampClock;
use crate::tcp::subflow::{Handshake, Offer};
use alloc::boxed::Box;
use plait_base::{ConnId, DataRange, PathId, Ssn, SubflowId, Time};
use plait_wire::{Flags, Mptcp, Options, Payload, Segment, Timestamps};

/// A segment on its way out.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// The path that it takes.
    pub path: PathId,
    /// The segment. Drivers that give it back with [`crate::Endpoint::recycle`] spare an
    /// allocation.
    pub segment: Box<Segment>,
    /// Set where the endpoint wants to know when the segment leaves the host:
    /// [`crate::Endpoint::on_departure`].
    pub report: Option<Report>,
    /// Payload bytes of the segments that the device cuts this one into; 0 where it goes as it is.
    pub cut: u16,
}

/// Whose segment it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    pub(crate) conn: ConnId,
    pub(crate) subflow: SubflowId,
}

/// A SYN, or with `answer` a SYN/ACK.
pub(crate) fn syn_segment(
    config: &Config,
    shake: &Handshake,
    address: Address,
    answer: bool,
    window: u64,
    now: Time,
    mptcp: Option<Mptcp>,
) -> Transmit {
    // An answer takes up what was offered, and nothing else.
    let offer = if answer { shake.offer } else { Offer::default() };
    let stamps = Timestamps {
        value: StampClock::new(config.start_offsets().timestamp).at(now),
        echo: shake.ts_recent,
    };
    let options = Options {
        mss: Some((config.packets.mtu - 40).min(0xffff) as u16),
        window_scale: offer.scale.then(|| scale_for(config.buffers.rcvbuf)),
        sack_permitted: offer.sack,
        timestamps: offer.timestamps.then_some(stamps),
        mptcp: mptcp.map(Box::new),
        ..Options::default()
    };
    let segment = Segment {
        src_port: address.local_port,
        dst_port: address.remote_port,
        seq: shake.iss,
        ack: if answer { shake.irs.wrapping_add(1) } else { 0 },
        flags: if answer { Flags::SYN.with(Flags::ACK) } else { Flags::SYN },
        server: address.server(),
        window: window as u16,
        options,
        payload: Payload::Empty,
    };
    Transmit { path: address.path(), segment: Box::new(segment), report: None, cut: 0 }
}

/// What a segment carries beside its acknowledgement. `seq` counts from 0 at our SYN.
pub(crate) struct Content {
    pub(crate) seq: Ssn,
    pub(crate) flags: Flags,
    pub(crate) payload: Payload,
    pub(crate) mapping: Option<DataRange>,
}

impl Content {
    /// Nothing, from `seq` on.
    pub(crate) const fn bare(seq: Ssn, flags: Flags) -> Content {
        Content { seq, flags, payload: Payload::Empty, mapping: None }
    }
}
