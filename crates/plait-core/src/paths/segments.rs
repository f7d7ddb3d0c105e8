//! Builds the segments of a subflow, with the fields and options of each kind.

use crate::config::Config;
use crate::context::Context;
use crate::data::level::DataLevel;
use crate::data::window::scale_for;
use crate::paths::Paths;
use crate::paths::sizing::Rules;
use crate::segments::{Content, Transmit, syn_segment};
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use plait_base::{DataRange, Dsn, Ssn, Time};
use plait_wire::{Dss, Flags, Mptcp, Options, Payload, Segment, Timestamps};

impl Subflow {
    /// Builds a RST that the peer will accept.
    pub(super) fn build_rst(&self, data: &DataLevel) -> Transmit {
        let mptcp = data.reset_option(self.pending.cause()).map(Box::new);
        let segment = Segment {
            src_port: self.address.local_port,
            dst_port: self.address.remote_port,
            seq: self.shake.wire(self.sender.tx.nxt()),
            ack: self.shake.peer_wire(self.rx.nxt()),
            flags: Flags::RST.with(Flags::ACK),
            server: self.address.server(),
            window: 0,
            options: Options { mptcp, ..Options::default() },
            payload: Payload::Empty,
        };
        Transmit { path: self.address.path(), segment: Box::new(segment), report: None, cut: 0 }
    }

    /// Builds a RST for a segment that acknowledged `seq` of another connection (RFC 9293 section
    /// 3.10.7.3).
    pub(super) fn build_stray_rst(&self, data: &DataLevel, seq: u32) -> Transmit {
        let mut transmit = self.build_rst(data);
        let segment = &mut transmit.segment;
        (segment.seq, segment.ack, segment.flags) = (seq, 0, Flags::RST);
        transmit
    }

    /// Builds an acknowledgement with sequence number `seq`.
    #[inline]
    pub(super) fn build_ack(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        rules: Rules<'_>,
        seq: Ssn,
        flags: Flags,
    ) -> Transmit {
        let content = Content::bare(seq, flags);
        let segment = self.build_segment(ctx, data, rules, content);
        Transmit { path: self.address.path(), segment, report: None, cut: 0 }
    }

    /// Builds a pure ACK.
    pub(super) fn pure_ack(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        rules: Rules<'_>,
    ) -> Transmit {
        let seq = self.sender.tx.nxt();
        self.build_ack(ctx, data, rules, seq, Flags::default())
    }

    /// Builds an ACK with MP_FASTCLOSE, which contains the peer's own key.
    pub(super) fn build_fast_close(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        rules: Rules<'_>,
    ) -> Transmit {
        let mut transmit = self.pure_ack(ctx, data, rules);
        let options = &mut transmit.segment.options;
        options.mptcp = data.keys.peer.map(|key| Box::new(Mptcp::FastClose(key)));
        options.give_way();
        transmit
    }

    /// Builds an ACK with MP_FAIL, the infinite mapping, or both (RFC 8684 section 3.7).
    pub(super) fn build_fallback_signal(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        rules: Rules<'_>,
    ) -> Transmit {
        let fail = self.pending.take(ControlSegment::Fail);
        let infinite = self.pending.take(ControlSegment::Infinite);
        let mut transmit = self.pure_ack(ctx, data, rules);
        let options = &mut transmit.segment.options;
        if fail {
            options.mptcp = Some(Box::new(Mptcp::Fail(data.keys.theirs.wire(data.failed_dsn()))));
        }
        if infinite {
            // Beside MP_FAIL and timestamps there is no room for a DATA_ACK.
            let mapping = Some(data.infinite_mapping());
            let data_ack = options.dss.and_then(|dss| dss.data_ack).filter(|_| !fail);
            options.dss = Some(Dss { data_ack, mapping, data_fin: false });
        }
        options.give_way();
        transmit
    }

    /// Adds the infinite mapping to a data segment. It replaces SACK blocks, and our keys, which a
    /// peer that has fallen back does not need.
    pub(super) fn tell_infinite(&self, data: &DataLevel, rules: Rules<'_>, segment: &mut Segment) {
        let mapping = Some(data.infinite_mapping());
        segment.options.dss.get_or_insert_default().mapping = mapping;
        let most = rules.most_packet(data);
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
    pub(super) fn build_fin(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        rules: Rules<'_>,
        seq: Ssn,
    ) -> Transmit {
        let mut transmit = self.build_ack(ctx, data, rules, seq, Flags::FIN);
        if data.sends_plain() && !data.receives_plain() && data.at_end() {
            data.tell_data_fin(&mut transmit.segment);
        }
        transmit
    }

    /// Builds a segment without payload that carries our DATA_FIN.
    pub(super) fn build_data_fin(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        rules: Rules<'_>,
        retries: u32,
    ) -> Transmit {
        // On the only subflow, every second retransmission has an old sequence number, which must
        // be answered even if its options are stripped. Linux answers such a segment without
        // reading its options, so the other retransmissions have the current number.
        let old = retries > 0 && retries.is_multiple_of(2) && !data.agreed.others_used();
        let again = u64::from(old);
        let seq = self.sender.tx.nxt() - again;
        let mut transmit = self.build_ack(ctx, data, rules, seq, Flags::default());
        data.tell_data_fin(&mut transmit.segment);
        transmit
    }

    /// Builds the segment that carries `range` from `seq` on.
    #[inline(always)]
    pub(super) fn data_segment(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        rules: Rules<'_>,
        seq: Ssn,
        range: DataRange,
    ) -> Box<Segment> {
        let payload = data.queue.payload(range);
        let mapping = (!data.sends_plain()).then_some(range);
        let content = Content { seq, flags: Flags::PSH, payload, mapping };
        self.build_segment(ctx, data, rules, content)
    }

    /// Builds a segment with `content` and a full acknowledgement.
    pub(super) fn build_segment(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        rules: Rules<'_>,
        content: Content,
    ) -> Box<Segment> {
        let Content { seq, flags, payload, mapping } = content;
        let field = self.advertise(ctx, data, rules.config);
        let checksum = match mapping {
            Some(range) if data.agreed.checksums() => data.checksum(range, seq, &payload),
            _ => None,
        };
        let signals = self.has_ack_option(data);
        // The first data is carried with MP_CAPABLE, which implies its mapping (RFC 8684 section
        // 3.1). A join has no DSS until it is proven.
        let has_dss = data.tells_dss(mapping)
            && (!signals || mapping.is_some_and(|range| range.start > Dsn::ZERO));
        let mut segment = ctx.blank_segment();
        let options = &mut segment.options;
        if has_dss {
            // Linux sends all 64 bits of both numbers.
            let long = rules.config.buffers.kernel.is_some();
            options.dss = Some(data.dss(long, mapping.map(|range| (seq, range)), checksum));
        }
        if signals && (!has_dss || mapping.is_none()) {
            let data_len =
                mapping.filter(|range| range.start == Dsn::ZERO).map(|range| range.len() as u16);
            options.mptcp = self.ack_option(data, rules.config, data_len, checksum).map(Box::new);
        }
        let sacks = self.shake.offer.sack && self.rx.has_sack();
        let packet = if sacks { rules.most_packet(data) } else { 0 };
        if self.shake.offer.timestamps {
            let (value, echo) = (self.clock.at(ctx.now), self.shake.ts_recent);
            options.timestamps = Some(Timestamps { value, echo });
        }
        if sacks {
            // A superpacket is split into full segments, each with the same room.
            let most = if payload.len() > packet { rules.sizes.mss() as u32 } else { u32::MAX };
            let room = packet.saturating_sub(40 + payload.len().min(most));
            self.put_sacks(options, room);
        }
        self.note_acknowledged();
        segment.src_port = self.address.local_port;
        segment.dst_port = self.address.remote_port;
        segment.seq = self.shake.wire(seq);
        segment.ack = self.shake.peer_wire(self.rx.nxt());
        segment.flags = flags.with(Flags::ACK);
        segment.server = self.address.server();
        segment.window = field as u16;
        segment.payload = payload;
        segment
    }

    /// Returns the window field, and notes the window as advertised.
    #[inline(always)]
    fn advertise(&self, ctx: &Context<'_>, data: &mut DataLevel, config: &Config) -> u64 {
        let mut window = data.window_to_tell(ctx.memory_limit());
        if config.buffers.kernel.is_some() {
            window = data.recv.window_of(self.id, window);
        }
        let scale = self.shake.own_scale;
        let field = (window >> scale).min(0xffff);
        data.recv.on_advertised(field << scale);
        field
    }
}

impl Paths {
    /// Builds a SYN or SYN/ACK of the subflow at `index`, depending on its state.
    pub(crate) fn build_syn(&mut self, data: &mut DataLevel, now: Time, index: usize) -> Transmit {
        let config = &self.spec.config;
        let scale = scale_for(config.buffers.rcvbuf);
        let mptcp = self.syn_option(data, index);
        let window = data.recv.window().min(0xffff);
        data.recv.on_advertised(window);
        let subflow = &mut self.subflows[index];
        let answer = subflow.state == State::SynReceived;
        subflow.shake.own_scale = if answer && !subflow.shake.offer.scale { 0 } else { scale };
        let (shake, address) = (&subflow.shake, subflow.address);
        syn_segment(config, shake, address, answer, window, now, mptcp)
    }

    /// Returns the SYN/ACK of a connection that has just been opened, and notes it as sent.
    pub(crate) fn take_syn_ack(&mut self, data: &mut DataLevel, now: Time) -> Transmit {
        self.subflows[0].pending.take(ControlSegment::Syn);
        self.build_syn(data, now, 0)
    }

    /// Builds a FIN of the subflow at `index` ([`Subflow::build_fin`]).
    pub(crate) fn build_fin(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        index: usize,
        seq: Ssn,
    ) -> Transmit {
        let (subflow, rules) = self.at(index);
        subflow.build_fin(ctx, data, rules, seq)
    }

    /// Builds the segment that carries `range` from `seq` of the subflow at `index` on.
    #[inline(always)]
    pub(crate) fn data_segment(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        index: usize,
        seq: Ssn,
        range: DataRange,
    ) -> Box<Segment> {
        let (subflow, rules) = self.at(index);
        subflow.data_segment(ctx, data, rules, seq, range)
    }
}
