//! The handshake of a subflow: the state that it leaves, and the state that ends with it.

use crate::config::{Config, JoinTiming};
use crate::context::Context;
use core::marker::PhantomData;
use plait_base::{RecvSpace, SendSpace, Sequence, SubflowSpace, Time};
use plait_wire::{JoinSyn, Mptcp, Segment, WireSeq};

/// The initial sequence number of one direction as on the wire (RFC 9293 section 3.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct InitialSsn<S: SubflowSpace>(WireSeq, PhantomData<S>);

impl<S: SubflowSpace> InitialSsn<S> {
    pub(crate) const fn new(wire: WireSeq) -> InitialSsn<S> {
        InitialSsn(wire, PhantomData)
    }

    /// Returns the number of the SYN on the wire.
    pub(crate) const fn syn(self) -> WireSeq {
        self.0
    }

    /// Returns the number after the SYN on the wire, which acknowledges it.
    pub(crate) const fn after_syn(self) -> WireSeq {
        self.0.plus(1)
    }

    /// Returns `seq` as on the wire.
    pub(crate) fn wire(self, seq: Sequence<S>) -> WireSeq {
        self.0.plus(seq.low())
    }

    /// Returns the sequence number of the wire's `seq` that is closest to `near`.
    pub(crate) fn read(self, seq: WireSeq, near: Sequence<S>) -> Sequence<S> {
        Sequence::from_low(seq.since(self.0), near)
    }
}

/// How a subflow was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// This end sent the first SYN.
    pub(crate) initiator: bool,
    /// It joins an existing connection.
    pub(crate) join: bool,
    /// The identifier of the peer's address (RFC 8684 section 3.2).
    pub(crate) peer_id: u8,
}

/// What both SYNs have agreed on. Until the peer's SYN arrives, what our SYN offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Negotiated {
    pub(crate) iss: InitialSsn<SendSpace>,
    pub(crate) irs: InitialSsn<RecvSpace>,
    /// Window shifts, ours and the peer's.
    pub(crate) own_scale: u8,
    pub(crate) peer_scale: u8,
    pub(crate) timestamps: bool,
    pub(crate) sack: bool,
    /// The peer's maximum segment size.
    pub(crate) peer_mss: u16,
    /// The peer's timestamp to echo (RFC 7323 section 4.3).
    pub(crate) ts_recent: u32,
}

/// State of a subflow that may not carry data yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake {
    /// Random numbers of MP_JOIN.
    pub(crate) nonce: u32,
    pub(crate) peer_nonce: u32,
    /// When the SYN (or SYN/ACK) was first sent, and how often it was retransmitted.
    /// [`Time::NEVER`] if that is unknown, because the SYN was answered without state.
    pub(crate) sent_at: Time,
    pub(crate) retries: u8,
    /// The peer's SYN has a window scale. Until it arrives, ours has.
    pub(crate) scale: bool,
    /// The peer's SYN offers joins right after the SYN/ACK.
    pub(crate) early_joins: bool,
}

/// The state of a new subflow at its first SYN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SynState {
    pub(crate) origin: Origin,
    pub(crate) negotiated: Negotiated,
    pub(crate) handshake: Handshake,
}

impl Handshake {
    /// Returns true if our SYN with `option` offers joins right after the SYN/ACK, or agrees to them as an answer.
    pub(crate) fn offers_joins(
        &self,
        config: &Config,
        answer: bool,
        option: Option<&Mptcp>,
    ) -> bool {
        let asked = !answer || self.early_joins;
        let first = matches!(option, Some(Mptcp::Capable(_)));
        asked && first && config.joins.timing == JoinTiming::Agreed
    }
}

impl SynState {
    /// Returns the state of the first subflow, whose handshake starts now.
    pub(crate) fn new(ctx: &mut Context<'_>, config: &Config, initiator: bool) -> SynState {
        SynState {
            origin: Origin { initiator, join: false, peer_id: 0 },
            negotiated: Negotiated {
                iss: InitialSsn::new(ctx.first_sequence(config)),
                irs: InitialSsn::default(),
                own_scale: 0,
                peer_scale: 0,
                timestamps: true,
                sack: true,
                peer_mss: u16::MAX,
                ts_recent: 0,
            },
            handshake: Handshake {
                nonce: 0,
                peer_nonce: 0,
                sent_at: ctx.now,
                retries: 0,
                scale: true,
                early_joins: false,
            },
        }
    }

    /// Returns the state of a join that starts now.
    pub(crate) fn of_join(ctx: &mut Context<'_>, config: &Config, initiator: bool) -> SynState {
        let mut it = SynState::new(ctx, config, initiator);
        it.origin.join = true;
        it.handshake.nonce = ctx.draw() as u32;
        it
    }

    /// Returns the state after a peer's join.
    pub(crate) fn answering(
        ctx: &mut Context<'_>,
        config: &Config,
        syn: &Segment,
        join: &JoinSyn,
    ) -> SynState {
        let mut it = SynState::of_join(ctx, config, false);
        it.handshake.peer_nonce = join.nonce;
        it.origin.peer_id = join.address_id;
        it.take_syn(config, syn);
        it
    }

    /// Starts above `after`, the last sequence number of the previous connection with these
    /// addresses (RFC 9293 section 3.6.1).
    pub(crate) fn follow(&mut self, after: WireSeq) {
        let drawn = self.negotiated.iss.syn();
        self.negotiated.iss = InitialSsn::new(after.plus(1 + (drawn.0 >> 2)));
    }

    /// Continues from `iss`, with which the SYN was answered without state. The RTT of the
    /// handshake is unknown.
    pub(crate) fn resume(&mut self, iss: WireSeq) {
        self.negotiated.iss = InitialSsn::new(iss);
        self.handshake.sent_at = Time::NEVER;
    }

    /// Uses the window shift `scale` in the SYN/ACK if the peer's SYN has one.
    pub(crate) fn offer_scale(&mut self, scale: u8) {
        if self.handshake.scale {
            self.negotiated.own_scale = scale;
        }
    }

    /// Notes the options of the peer's SYN.
    pub(crate) fn take_syn(&mut self, config: &Config, syn: &Segment) {
        self.negotiated.take_syn(config, syn);
        self.handshake.scale = syn.options.window_scale.is_some();
        self.handshake.early_joins = syn.options.early_joins;
    }
}

impl Negotiated {
    /// Notes the options of the peer's SYN. If it has no MSS, a default is used.
    pub(super) fn take_syn(&mut self, config: &Config, syn: &Segment) {
        let scale = syn.options.window_scale;
        self.irs = InitialSsn::new(WireSeq(syn.seq));
        self.peer_scale = scale.unwrap_or(0).min(14);
        if scale.is_none() {
            // Both SYNs must have the option (RFC 7323 section 2.2).
            self.own_scale = 0;
        }
        self.timestamps = syn.options.timestamps.is_some();
        self.sack = syn.options.sack_permitted;
        self.peer_mss = syn.options.mss.unwrap_or(config.packets.unsaid_mss);
        self.ts_recent = syn.options.timestamps.map_or(0, |stamp| stamp.value);
    }
}
