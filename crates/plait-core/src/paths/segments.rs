//! Builds the segments of a subflow, with the fields and options of each kind.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::data::window::scale_for;
use crate::event::Carry;
use crate::paths::Paths;
use crate::paths::control::Control;
use crate::paths::sizing::Rules;
use crate::segments::{Content, Syn, Transmit};
use crate::tcp::mptcp_handshake::HandshakeOptions;
use crate::tcp::pending::ControlSegment;
use crate::tcp::sender::note_backlog;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use plait_base::{DataRange, Dsn, SendSsn, SubflowId, Time};
use plait_wire::{Dss, Flags, Mptcp, Options, Payload, Segment, Timestamps, WireSeq};

/// Writes the segments of a subflow.
pub(crate) struct Writer<'a> {
    subflow: &'a mut Subflow,
    rules: Rules<'a>,
    ctx: Context<'a>,
    data: &'a mut DataLevel,
}

impl Writer<'_> {
    /// Builds a RST that the peer will accept.
    pub(super) fn rst(&self) -> Transmit {
        let mptcp = self.data.reset_option(self.subflow.pending().cause()).map(Box::new);
        let segment = Segment {
            src_port: self.subflow.address().local_port,
            dst_port: self.subflow.address().remote_port,
            seq: self.subflow.negotiated().iss.wire(self.subflow.sender().tx.nxt()).0,
            ack: self.subflow.negotiated().irs.wire(self.subflow.rx().nxt()).0,
            flags: Flags::RST.with(Flags::ACK),
            server: self.subflow.address().server(),
            window: 0,
            options: Options { mptcp, ..Options::default() },
            payload: Payload::Empty,
        };
        Transmit {
            path: self.subflow.address().path(),
            segment: Box::new(segment),
            report: None,
            cut: 0,
        }
    }

    /// Builds a RST for a segment that acknowledged `seq` of another connection (RFC 9293 section
    /// 3.10.7.3).
    fn stray_rst(&self, seq: WireSeq) -> Transmit {
        let mut transmit = self.rst();
        let segment = &mut transmit.segment;
        (segment.seq, segment.ack, segment.flags) = (seq.0, 0, Flags::RST);
        transmit
    }

    /// Builds an acknowledgement with sequence number `seq`.
    fn ack(&mut self, seq: SendSsn, flags: Flags) -> Transmit {
        self.ack_inlined(seq, flags)
    }

    #[inline(always)]
    fn ack_inlined(&mut self, seq: SendSsn, flags: Flags) -> Transmit {
        let segment = self.segment(Content::bare(seq, flags));
        Transmit { path: self.subflow.address().path(), segment, report: None, cut: 0 }
    }

    /// Builds a pure ACK, in the code of its caller: received data is acknowledged so often.
    #[inline(always)]
    pub(super) fn ack_of_data(&mut self) -> Transmit {
        let seq = self.subflow.sender().tx.nxt();
        self.ack_inlined(seq, Flags::default())
    }

    /// Builds a pure ACK.
    pub(super) fn pure_ack(&mut self) -> Transmit {
        self.ack_of_data()
    }

    /// Returns the next segment that is due before a SYN: an MP_FASTCLOSE, a RST for a segment of
    /// another connection, or a signal about a fallback.
    pub(super) fn next_urgent(&mut self) -> Option<Transmit> {
        if self.subflow.take_control(ControlSegment::FastClose) {
            return Some(self.fast_close());
        }
        if let Some(seq) = self.subflow.take_refused_ack() {
            return Some(self.stray_rst(seq));
        }
        let pending = self.subflow.pending();
        let falls = pending.has(ControlSegment::Fail) || pending.has(ControlSegment::Infinite);
        falls.then(|| self.fallback_signal())
    }

    /// Returns the next pure ACK of a handshake, or a probe.
    pub(super) fn next_probe(&mut self) -> Option<Control> {
        let subflow = &mut *self.subflow;
        let id = subflow.id();
        if subflow.take_control(ControlSegment::HandshakeAck) {
            return Some(Control::Ready(self.pure_ack()));
        }
        if subflow.take_control(ControlSegment::WindowProbe) {
            // A sequence number below the left edge: the peer answers with its window and discards
            // the probe.
            let seq = subflow.sender().tx.una().before();
            return Some(Control::Ready(self.ack(seq, Flags::default())));
        }
        if subflow.take_control(ControlSegment::PathProbe)
            && let Some(sent) = subflow.sender().tx.first().copied()
        {
            return Some(Control::Again { id, sent, carry: Carry::Retransmission });
        }
        if subflow.take_control(ControlSegment::TailProbe)
            && let Some(sent) = subflow.sender().tx.last().copied()
        {
            return Some(Control::Again { id, sent, carry: Carry::TailProbe });
        }
        None
    }

    /// Builds an ACK with MP_FASTCLOSE, which contains the peer's own key.
    fn fast_close(&mut self) -> Transmit {
        let mut transmit = self.pure_ack();
        let options = &mut transmit.segment.options;
        options.mptcp = self.data.keys().peer.map(|key| Box::new(Mptcp::FastClose(key)));
        options.give_way();
        transmit
    }

    /// Builds an ACK with MP_FAIL, the infinite mapping, or both (RFC 8684 section 3.7).
    fn fallback_signal(&mut self) -> Transmit {
        let fail = self.subflow.take_control(ControlSegment::Fail);
        let infinite = self.subflow.take_control(ControlSegment::Infinite);
        let mut transmit = self.pure_ack();
        let options = &mut transmit.segment.options;
        if fail {
            options.mptcp =
                Some(Box::new(Mptcp::Fail(self.data.keys().theirs.wire(self.data.failed_dsn()))));
        }
        if infinite {
            // Beside MP_FAIL and timestamps there is no room for a DATA_ACK.
            let mapping = Some(self.data.infinite_mapping());
            let data_ack = options.dss.and_then(|dss| dss.data_ack).filter(|_| !fail);
            options.dss = Some(Dss { data_ack, mapping, data_fin: false });
        }
        options.give_way();
        transmit
    }

    /// Adds the infinite mapping to a data segment. It replaces SACK blocks, and our keys, which a
    /// peer that has fallen back does not need.
    pub(super) fn tell_infinite(&self, segment: &mut Segment) {
        let mapping = Some(self.data.infinite_mapping());
        segment.options.dss.get_or_insert_default().mapping = mapping;
        let most = self.rules.most_packet(self.data);
        while segment.options.sack.count() > 0
            && (!segment.options.fits() || segment.ip_len() > most)
        {
            segment.options.sack.truncate(segment.options.sack.count() - 1);
        }
        if !segment.options.fits() || segment.ip_len() > most {
            segment.options.mptcp = None;
        }
    }

    /// Builds a subflow's FIN. A peer that still maps its data may not have detected that this end
    /// has fallen back. It waits for a DATA_FIN, so the end is signalled both ways.
    pub(crate) fn fin(&mut self, seq: SendSsn) -> Transmit {
        let mut transmit = self.ack(seq, Flags::FIN);
        if self.data.sends_plain() && !self.data.receives_plain() && self.data.at_end() {
            self.data.tell_data_fin(&mut transmit.segment);
        }
        transmit
    }

    /// Builds a segment without payload that carries our DATA_FIN.
    pub(super) fn data_fin(&mut self, retries: u32) -> Transmit {
        // On the only subflow, every second retransmission has an old sequence number, which must
        // be answered even if its options are stripped. Linux answers such a segment without
        // reading its options, so the other retransmissions have the current number.
        let old = retries > 0 && retries.is_multiple_of(2) && !self.data.agreed().others_used();
        let again = u64::from(old);
        let seq = self.subflow.sender().tx.nxt() - again;
        let mut transmit = self.ack(seq, Flags::default());
        self.data.tell_data_fin(&mut transmit.segment);
        transmit
    }

    /// Builds the segment that carries `range` from `seq` on.
    #[inline(always)]
    pub(crate) fn data_segment(&mut self, seq: SendSsn, range: DataRange) -> Box<Segment> {
        note_backlog(self.subflow, self.data.queue().unsent());
        let mapped = !self.data.sends_plain();
        self.segment(Content { seq, flags: Flags::PSH, carried: Some(range), mapped })
    }

    /// Builds a segment with `content` and a full acknowledgement.
    #[inline(always)]
    fn segment(&mut self, content: Content) -> Box<Segment> {
        let Content { seq, flags, carried, mapped } = content;
        let mapping = carried.filter(|_| mapped);
        let field = self.advertise();
        let Writer { subflow, rules, ctx, data } = self;
        let checksum = mapping.and_then(|range| data.checksum(range, seq));
        let signals = subflow.has_ack_option(data);
        // The first data is carried with MP_CAPABLE, which implies its mapping, from the first byte of the
        // subflow on (RFC 8684 section 3.1). On a join, only its data has a DSS until our HMAC is acknowledged.
        let first = seq == SendSsn::FIRST && !subflow.origin().join;
        let implied = |range: &DataRange| first && range.start == Dsn::ZERO;
        let has_dss =
            data.tells_dss(mapping) && (!signals || mapping.is_some_and(|range| !implied(&range)));
        let mut segment = ctx.blank_segment();
        let options = &mut segment.options;
        if has_dss {
            // Linux sends all 64 bits of both numbers.
            let long = rules.config.buffers.kernel.is_some();
            options.dss = Some(data.dss(long, mapping.map(|range| (seq, range)), checksum));
        }
        if signals && (!has_dss || mapping.is_none()) {
            let data_len = mapping.filter(implied).map(|range| range.len() as u16);
            let handshake = HandshakeOptions { subflow, data, config: rules.config };
            options.mptcp = handshake.of_ack(data_len, checksum).map(Box::new);
        }
        let sacks = subflow.negotiated().sack && subflow.rx().has_sack();
        let packet = if sacks { rules.most_packet(data) } else { 0 };
        if subflow.negotiated().timestamps {
            let (value, echo) = (subflow.clock().at(ctx.now), subflow.negotiated().ts_recent);
            options.timestamps = Some(Timestamps { value, echo });
        }
        if sacks {
            // A superpacket is split into full segments, each with the same room.
            let len = carried.map_or(0, |range| range.len() as u32);
            let most = if len > packet { rules.sizes.mss() as u32 } else { u32::MAX };
            let room = packet.saturating_sub(40 + len.min(most));
            subflow.put_sacks(options, room);
        }
        subflow.note_acknowledged();
        segment.src_port = subflow.address().local_port;
        segment.dst_port = subflow.address().remote_port;
        segment.seq = subflow.negotiated().iss.wire(seq).0;
        segment.ack = subflow.negotiated().irs.wire(subflow.rx().nxt()).0;
        segment.flags = flags.with(Flags::ACK);
        segment.server = subflow.address().server();
        segment.window = field as u16;
        // Last, so that it is written once and not kept until here.
        segment.payload = carried.map_or(Payload::Empty, |range| data.queue().payload(range));
        segment
    }

    /// Returns the window field, and notes the window as advertised.
    #[inline(always)]
    fn advertise(&mut self) -> u64 {
        let mut window = self.data.window_to_tell(self.ctx.memory_limit());
        if self.rules.config.buffers.kernel.is_some() {
            window = self.data.reassembly().window_of(self.subflow.id(), window);
        }
        let scale = self.subflow.negotiated().own_scale;
        let field = (window >> scale).min(0xffff);
        self.data.on_advertised(field << scale);
        field
    }
}

impl Paths {
    /// Returns the writer for the subflow `id`.
    #[inline(always)]
    pub(crate) fn writer<'a>(
        &'a mut self,
        ctx: &'a mut Context<'_>,
        data: &'a mut DataLevel,
        id: SubflowId,
    ) -> Writer<'a> {
        let (subflow, rules) = self.at(id);
        Writer { subflow, rules, ctx: ctx.again(), data }
    }

    /// Builds a SYN or SYN/ACK of the subflow `id`, depending on its state.
    pub(crate) fn build_syn(&mut self, data: &mut DataLevel, now: Time, id: SubflowId) -> Transmit {
        let config = &self.spec.config;
        let scale = scale_for(config.buffers.rcvbuf);
        let mptcp = self.syn_option(data, id);
        let window = data.reassembly().window().min(0xffff);
        data.on_advertised(window);
        let subflow = &mut self.subflows[id];
        let answer = subflow.state() == State::SynReceived;
        let early_joins =
            subflow.handshake().is_some_and(|it| it.offers_joins(config, answer, mptcp.as_ref()));
        let scale = subflow.offer_scale(scale);
        let (negotiated, address) = (subflow.negotiated(), subflow.address());
        let syn = Syn { negotiated, scale, address, answer, window, early_joins, mptcp };
        syn.transmit(config, now)
    }

    /// Returns the SYN/ACK of a connection that has just been opened, and notes it as sent.
    pub(crate) fn take_syn_ack(&mut self, data: &mut DataLevel, now: Time) -> Transmit {
        self.subflows[SubflowId::FIRST].take_control(ControlSegment::Syn);
        self.build_syn(data, now, SubflowId::FIRST)
    }
}
