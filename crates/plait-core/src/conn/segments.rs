//! Building segments: the fields and options that each kind carries.

use super::{Connection, Context, Mode};
use crate::config::Config;
use crate::data::window::scale_for;
use crate::planted::{Planted, planted};
use crate::tcp::clock::StampClock;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::{Address, Handshake, Offer};
use alloc::boxed::Box;
use plait_base::{ConnId, DataRange, Dsn, PathId, Ssn, SubflowId, Time};
use plait_wire::{DataAck, Dss, Flags, Mapping, Mptcp, Options, Payload, Segment, Timestamps};

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
pub(super) fn syn_segment(
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
        value: StampClock::new(config.offsets.timestamp).at(now),
        echo: shake.ts_recent,
    };
    let options = Options {
        mss: Some((config.mtu - 40).min(0xffff) as u16),
        window_scale: offer.scale.then(|| scale_for(config.rcvbuf)),
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

impl Connection {
    /// SYN or SYN/ACK, according to the state.
    pub(super) fn build_syn(&mut self, now: Time, index: usize) -> Transmit {
        let scale = scale_for(self.spec.config.rcvbuf);
        let mptcp = self.syn_option(index);
        let window = self.recv.window().min(0xffff);
        self.recv.on_advertised(window);
        let subflow = &mut self.subflows[index];
        let answer = subflow.state == State::SynReceived;
        subflow.shake.own_scale = if answer && !subflow.shake.offer.scale { 0 } else { scale };
        let (shake, address) = (&subflow.shake, subflow.address);
        syn_segment(&self.spec.config, shake, address, answer, window, now, mptcp)
    }

    /// A segment with everything an acknowledgement tells. `seq` counts from 0 at our SYN.
    #[inline]
    pub(super) fn build_ack(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        seq: Ssn,
        flags: Flags,
        payload: Payload,
        mapping: Option<DataRange>,
    ) -> Transmit {
        let segment = self.build_segment(ctx, index, seq, flags, payload, mapping);
        Transmit { path: self.subflows[index].address.path(), segment, report: None, cut: 0 }
    }

    /// The segment of [`Connection::build_ack`].
    pub(super) fn build_segment(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        seq: Ssn,
        flags: Flags,
        payload: Payload,
        mapping: Option<DataRange>,
    ) -> Box<Segment> {
        let receives_plain = self.receives_plain();
        let multipath = self.mode == Mode::Multipath && !(receives_plain && mapping.is_none());
        let mut window = self.window_to_tell(ctx.memory_limit);
        if self.spec.config.kernel_buffers.is_some() {
            window = self.recv.window_of(SubflowId(index as u8), window);
        }
        let scale = self.subflows[index].shake.own_scale;
        let field = (window >> scale).min(0xffff);
        self.recv.on_advertised(field << scale);
        let ahead = u64::from(planted(Planted::DataAckAhead) && self.recv.nxt() > Dsn::ZERO);
        let data_ack = self.keys.theirs.wire(self.recv.nxt() + ahead);
        let checksum = match mapping {
            Some(range) if self.checksums => self.checksum(range, seq, &payload),
            _ => None,
        };
        let signals = self.has_ack_option(index);
        // The first data rides on MP_CAPABLE, which implies its mapping (RFC 8684 section 3.1); a
        // join has no DSS until it is proven.
        let has_dss =
            multipath && (!signals || mapping.is_some_and(|range| range.start > Dsn::ZERO));
        let mut segment = ctx.blank_segment();
        let options = &mut segment.options;
        if has_dss {
            // Linux sends all 64 bits of both numbers.
            let long = self.spec.config.kernel_buffers.is_some();
            let wire = |number: u64| if long { number } else { number & 0xffff_ffff };
            let data_ack = DataAck { value: wire(data_ack), long };
            let dss = options.dss.insert(Dss::default());
            dss.data_ack = (!receives_plain).then_some(data_ack);
            if let Some(range) = mapping {
                dss.mapping = Some(Mapping {
                    dsn: wire(self.keys.own.wire(range.start)),
                    long,
                    ssn: seq.low(),
                    len: range.len() as u16,
                    checksum,
                });
            }
        }
        if signals && (!has_dss || mapping.is_none()) {
            let data_len =
                mapping.filter(|range| range.start == Dsn::ZERO).map(|range| range.len() as u16);
            options.mptcp = self.ack_option(index, data_len, checksum).map(Box::new);
        }
        let tells = {
            let subflow = &self.subflows[index];
            subflow.shake.offer.sack && subflow.rx.has_sack()
        };
        let packet = if tells { self.most_packet() } else { 0 };
        let subflow = &mut self.subflows[index];
        if subflow.shake.offer.timestamps {
            let (value, echo) = (subflow.clock.at(ctx.now), subflow.shake.ts_recent);
            options.timestamps = Some(Timestamps { value, echo });
        }
        if tells {
            // A superpacket is cut into full segments, which have room for as much.
            let most = if payload.len() > packet { self.mss } else { u32::MAX };
            let mtu_room = packet.saturating_sub(40 + payload.len().min(most));
            let room =
                plait_wire::MAX_OPTION_BYTES.min(mtu_room).saturating_sub(options.padded_len());
            let (shake, sack) = (&subflow.shake, &mut options.sack);
            subflow.rx.sack_blocks((room.saturating_sub(4) / 8) as usize, |block| {
                sack.push(shake.peer_wire(block.start), shake.peer_wire(block.end));
            });
        }
        subflow.rx.on_ack_sent();
        subflow.pending.ack = false;
        subflow.timers.clear(crate::tcp::timer::Timer::Ack);
        segment.src_port = subflow.address.local_port;
        segment.dst_port = subflow.address.remote_port;
        segment.seq = subflow.shake.wire(seq);
        segment.ack = subflow.shake.peer_wire(subflow.rx.nxt());
        segment.flags = flags.with(Flags::ACK);
        segment.server = subflow.address.server();
        segment.window = field as u16;
        segment.payload = payload;
        segment
    }

    /// A RST that the peer will accept.
    pub(super) fn build_rst(&mut self, index: usize) -> Transmit {
        let mptcp = self.reset_option(self.subflows[index].pending.cause).map(Box::new);
        let subflow = &self.subflows[index];
        let segment = Segment {
            src_port: subflow.address.local_port,
            dst_port: subflow.address.remote_port,
            seq: subflow.shake.wire(subflow.tx.nxt()),
            ack: subflow.shake.peer_wire(subflow.rx.nxt()),
            flags: Flags::RST.with(Flags::ACK),
            server: subflow.address.server(),
            window: 0,
            options: Options { mptcp, ..Options::default() },
            payload: Payload::Empty,
        };
        Transmit { path: subflow.address.path(), segment: Box::new(segment), report: None, cut: 0 }
    }

    /// A RST for a segment that acknowledged `seq` out of another conversation (RFC 9293 section
    /// 3.10.7.3).
    pub(super) fn build_stray_rst(&mut self, index: usize, seq: u32) -> Transmit {
        let mut transmit = self.build_rst(index);
        let segment = &mut transmit.segment;
        (segment.seq, segment.ack, segment.flags) = (seq, 0, Flags::RST);
        transmit
    }

    /// An ACK that tells the peer by its own key that the connection is over.
    pub(super) fn build_fast_close(&mut self, ctx: &mut Context<'_>, index: usize) -> Transmit {
        let seq = self.subflows[index].tx.nxt();
        let mut transmit = self.build_ack(ctx, index, seq, Flags::default(), Payload::Empty, None);
        let options = &mut transmit.segment.options;
        options.mptcp = self.keys.peer.map(|key| Box::new(Mptcp::FastClose(key)));
        options.give_way();
        transmit
    }

    /// An ACK with MP_FAIL, the infinite mapping or both (RFC 8684 section 3.7).
    pub(super) fn build_fallback_signal(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
    ) -> Transmit {
        let subflow = &mut self.subflows[index];
        let fail = subflow.pending.take(ControlSegment::Fail);
        let infinite = subflow.pending.take(ControlSegment::Infinite);
        let seq = subflow.tx.nxt();
        let mut transmit = self.build_ack(ctx, index, seq, Flags::default(), Payload::Empty, None);
        let options = &mut transmit.segment.options;
        if fail {
            options.mptcp = Some(Box::new(Mptcp::Fail(self.keys.theirs.wire(self.failed_dsn()))));
        }
        if infinite {
            // Beside MP_FAIL and timestamps there is no room for a DATA_ACK.
            let mapping = Some(self.infinite_mapping());
            let data_ack = options.dss.and_then(|dss| dss.data_ack).filter(|_| !fail);
            options.dss = Some(Dss { data_ack, mapping, data_fin: false });
        }
        options.give_way();
        transmit
    }

    /// Puts the infinite mapping on a segment with data; SACK blocks give way, and our keys, which a
    /// peer that fell back has no use for.
    pub(super) fn tell_infinite(&self, segment: &mut Segment) {
        let mapping = Some(self.infinite_mapping());
        segment.options.dss.get_or_insert_default().mapping = mapping;
        let most = self.most_packet();
        while segment.options.sack.count() > 0
            && (!segment.options.fits() || segment.ip_len() > most)
        {
            segment.options.sack.truncate(segment.options.sack.count() - 1);
        }
        if !segment.options.fits() || segment.ip_len() > most {
            segment.options.mptcp = None;
        }
    }

    /// A segment without payload that carries our DATA_FIN signal.
    pub(super) fn build_data_fin(&mut self, ctx: &mut Context<'_>, index: usize) -> Transmit {
        // Told again on an only subflow, every second time it has an old sequence number, which has
        // to be answered even where its options are taken off. Linux answers such a segment without
        // a look at its options, so the other times it has the present one.
        let retries = self.timers.retries();
        let old = retries > 0 && retries.is_multiple_of(2) && !self.fallback.others_used;
        let again = u64::from(old);
        let seq = self.subflows[index].tx.nxt() - again;
        let mut transmit = self.build_ack(ctx, index, seq, Flags::default(), Payload::Empty, None);
        self.tell_data_fin(&mut transmit.segment);
        transmit
    }

    /// A subflow's FIN. A peer that still maps what it sends may not know that this end has fallen
    /// back, and waits for a DATA_FIN: the end is told both ways.
    pub(super) fn build_fin(&mut self, ctx: &mut Context<'_>, index: usize, seq: Ssn) -> Transmit {
        let mut transmit = self.build_ack(ctx, index, seq, Flags::FIN, Payload::Empty, None);
        if self.sends_plain() && !self.receives_plain() && self.at_end() {
            self.tell_data_fin(&mut transmit.segment);
        }
        transmit
    }

    fn tell_data_fin(&self, segment: &mut Segment) {
        let dsn = self.keys.own.wire(self.queue.written());
        let checksum = self.fin_checksum();
        let dss = segment.options.dss.get_or_insert_default();
        // Alone, the DATA_FIN has SSN 0 and length 1 (RFC 8684 section 3.3.3).
        dss.mapping =
            Some(Mapping { dsn: dsn & 0xffff_ffff, long: false, ssn: 0, len: 1, checksum });
        dss.data_fin = true;
        segment.options.mptcp = None;
        segment.options.give_way();
    }
}
