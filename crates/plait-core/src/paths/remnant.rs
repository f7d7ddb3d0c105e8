//! The remnant of one subflow in TIME-WAIT or FIN-WAIT-2.

use crate::data::closing::TIME_WAIT;
use crate::segments::Transmit;
use crate::tcp::address::Address;
use crate::tcp::clock::{StampClock, before};
use alloc::boxed::Box;
use plait_base::{Span, Time};
use plait_wire::{DataAck, Dss, Flags, Options, Payload, Segment, Timestamps, WireDsn, WireSeq};

/// A FIN is acknowledged at most once in this time.
const FIN_INTERVAL: Span = Span::from_millis(50);
/// Any other segment is answered at most once in this time (Linux: `tcp_invalid_ratelimit`).
const ANSWER_INTERVAL: Span = Span::from_millis(500);

/// A subflow in TIME-WAIT or FIN-WAIT-2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remnant {
    /// Our next sequence number, and the peer's.
    seq: WireSeq,
    ack: WireSeq,
    /// The window field of our acknowledgements.
    window: u16,
    /// The DATA_ACK of Multipath TCP.
    data_ack: Option<WireDsn>,
    /// Our clock and the peer's latest timestamp, if timestamps are in use.
    stamps: Option<(StampClock, u32)>,
    /// The peer's FIN has not arrived.
    half_closed: bool,
    /// When the wait ends.
    until: Time,
    /// Time from which a segment is answered again.
    answers_at: Time,
}

/// A subflow of a connection that is reduced to its remnants.
pub(crate) struct WaitingSubflow {
    pub(crate) address: Address,
    pub(crate) remnant: Remnant,
    /// An acknowledgement that it still has to send.
    pub(crate) answer: Option<Transmit>,
}

impl Remnant {
    /// Returns the remnant of a subflow whose last acknowledgement is `last`.
    pub(crate) fn new(
        last: &Segment,
        clock: StampClock,
        half_closed: bool,
        until: Time,
    ) -> Remnant {
        let data_ack = last.options.dss.and_then(|dss| dss.data_ack);
        Remnant {
            seq: WireSeq(last.seq),
            ack: WireSeq(last.ack),
            window: last.window,
            data_ack: data_ack.map(|it| it.value.field(false)),
            stamps: last.options.timestamps.map(|stamps| (clock, stamps.echo)),
            half_closed,
            until,
            answers_at: Time::ZERO,
        }
    }

    /// Returns the acknowledgement of everything received.
    pub(crate) fn acknowledgement(&self, now: Time, address: Address) -> Transmit {
        let data_ack = |value| DataAck { value, long: false };
        let dss = self.data_ack.map(|it| Dss { data_ack: Some(data_ack(it)), ..Dss::default() });
        let stamps = self.stamps.map(|(clock, echo)| Timestamps { value: clock.at(now), echo });
        let segment = Segment {
            src_port: address.local_port,
            dst_port: address.remote_port,
            seq: self.seq.0,
            ack: self.ack.0,
            flags: Flags::ACK,
            server: address.server(),
            window: self.window,
            options: Options { dss, timestamps: stamps, ..Options::default() },
            payload: Payload::Empty,
        };
        Transmit { path: address.path(), segment: Box::new(segment), report: None, cut: 0 }
    }

    /// Returns true if `syn` opens a new connection. Its timestamp, or without one its sequence
    /// number, is newer, so it is no late segment of the old connection (RFC 6191 section 2).
    pub(crate) fn gives_way_to(&self, syn: &Segment) -> bool {
        let beyond = self.ack.is_before(WireSeq(syn.seq));
        let newer = match (self.stamps, syn.options.timestamps) {
            (Some((_, known)), Some(stamps)) => {
                before(known, stamps.value) || known == stamps.value && beyond
            }
            _ => beyond,
        };
        newer && !self.half_closed
    }

    /// Takes in a segment in order with payload up to `end`. Returns true if it has payload or a FIN that is new,
    /// and so must be acknowledged.
    ///
    /// Another subflow has carried the same data, so the payload is dropped. The FIN starts the wait.
    pub(crate) fn takes(&mut self, now: Time, end: WireSeq, fin: bool) -> bool {
        let new = self.ack.is_before(end);
        if !self.half_closed || end.is_before(self.ack) || !(new || fin) {
            return false;
        }
        self.ack = end;
        if fin {
            self.ack = end.plus(1);
            (self.half_closed, self.until) = (false, now + TIME_WAIT);
            self.answers_at = now + FIN_INTERVAL;
        }
        true
    }

    /// Returns true if a segment may be answered now, and counts the answer. `fin` is set if the
    /// segment has a FIN.
    pub(crate) fn may_answer(&mut self, now: Time, fin: bool) -> bool {
        let may = now >= self.answers_at;
        if may {
            self.answers_at = now + if fin { FIN_INTERVAL } else { ANSWER_INTERVAL };
        }
        may
    }

    /// Returns our next sequence number.
    pub(crate) const fn seq(&self) -> WireSeq {
        self.seq
    }

    /// Returns the next expected sequence number of the peer.
    pub(crate) const fn ack(&self) -> WireSeq {
        self.ack
    }

    /// Returns true if the peer's FIN has not arrived.
    pub(crate) const fn is_half_closed(&self) -> bool {
        self.half_closed
    }

    /// Returns when the wait ends.
    pub(crate) const fn until(&self) -> Time {
        self.until
    }

    /// Notes the timestamp of a segment that is not ahead.
    pub(crate) fn note_stamp(&mut self, segment: &Segment) {
        if let (Some((_, known)), Some(stamps)) = (&mut self.stamps, segment.options.timestamps)
            && before(*known, stamps.value)
        {
            *known = stamps.value;
        }
    }
}
