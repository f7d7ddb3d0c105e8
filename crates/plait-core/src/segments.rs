//! Outgoing segments, and the contents of SYNs.

use crate::config::Config;
use crate::data::window::scale_for;
use crate::tcp::address::Address;
use crate::tcp::clock::StampClock;
use crate::tcp::handshake::Negotiated;
use alloc::boxed::Box;
use plait_base::{ConnId, DataRange, PathId, SendSsn, SubflowId, Time};
use plait_wire::{Flags, Mptcp, Options, Payload, Segment, Timestamps};

/// An outgoing segment.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// The path to send it on.
    pub path: PathId,
    /// The segment. Returning it with [`crate::Endpoint::recycle`] saves an allocation.
    pub segment: Box<Segment>,
    /// Set if the driver must report when the segment leaves the host
    /// ([`crate::Endpoint::on_departure`]).
    pub report: Option<Report>,
    /// Payload bytes of the segments that the device splits this one into; 0 if it is not split.
    pub cut: u16,
}

/// The subflow of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    pub(crate) conn: ConnId,
    pub(crate) subflow: SubflowId,
}

/// A SYN, or a SYN/ACK.
pub(crate) struct Syn<'a> {
    pub(crate) negotiated: &'a Negotiated,
    /// It has a window scale. A SYN/ACK accepts offered options and offers none.
    pub(crate) scale: bool,
    pub(crate) address: Address,
    /// It answers the peer's SYN.
    pub(crate) answer: bool,
    pub(crate) window: u64,
    /// It offers joins right after the SYN/ACK, or agrees to them.
    pub(crate) early_joins: bool,
    pub(crate) mptcp: Option<Mptcp>,
}

impl Syn<'_> {
    /// Returns the segment as sent at `now`.
    pub(crate) fn transmit(self, config: &Config, now: Time) -> Transmit {
        let Syn { negotiated, scale, address, answer, window, early_joins, mptcp } = self;
        let stamps = Timestamps {
            value: StampClock::new(config.start_offsets().timestamp).at(now),
            echo: negotiated.ts_recent,
        };
        let options = Options {
            mss: Some((config.packets.mtu - 40).min(0xffff) as u16),
            window_scale: scale.then(|| scale_for(config.buffers.rcvbuf)),
            sack_permitted: negotiated.sack,
            early_joins,
            timestamps: negotiated.timestamps.then_some(stamps),
            mptcp: mptcp.map(Box::new),
            ..Options::default()
        };
        let segment = Segment {
            src_port: address.local_port,
            dst_port: address.remote_port,
            seq: negotiated.iss.syn().0,
            ack: if answer { negotiated.irs.after_syn().0 } else { 0 },
            flags: if answer { Flags::SYN.with(Flags::ACK) } else { Flags::SYN },
            server: address.server(),
            window: window as u16,
            options,
            payload: Payload::Empty,
        };
        Transmit { path: address.path(), segment: Box::new(segment), report: None, cut: 0 }
    }
}

/// Contents of a segment besides its acknowledgement. `seq` counts from 0 at our SYN.
#[derive(Clone, Copy)]
pub(crate) struct Content {
    pub(crate) seq: SendSsn,
    pub(crate) flags: Flags,
    /// The data in its payload.
    pub(crate) carried: Option<DataRange>,
    /// Its data has a mapping.
    pub(crate) mapped: bool,
}

impl Content {
    /// Returns an empty segment at `seq`.
    pub(crate) const fn bare(seq: SendSsn, flags: Flags) -> Content {
        Content { seq, flags, carried: None, mapped: false }
    }
}
