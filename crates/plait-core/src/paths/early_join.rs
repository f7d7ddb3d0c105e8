//! Joins that arrive before the key that proves them
//! ([`JoinTiming::Simultaneous`](crate::JoinTiming::Simultaneous)).

use crate::context::Context;
use crate::data::window::scale_for;
use crate::segments::{Transmit, syn_segment};
use crate::spec::ConnectionSpec;
use crate::tcp::address::Address;
use crate::tcp::subflow::Handshake;
use plait_base::Time;
use plait_wire::{JoinSynAck, Mptcp, Segment};

/// A join that arrived before the key that proves it. It is answered, and kept until its connection
/// exists. Only plait's own ends use it ([`crate::JoinTiming::Simultaneous`]).
#[derive(Debug)]
pub(crate) struct EarlyJoin {
    pub(crate) address: Address,
    /// The token of the client's own key, which the server receives in the third ACK.
    pub(crate) token: u32,
    pub(crate) shake: Handshake,
    pub(crate) backup: bool,
    /// The third ACK, if it has already arrived.
    pub(crate) answer: Option<Segment>,
}

impl EarlyJoin {
    /// Processes a SYN with MP_JOIN.
    pub(crate) fn new(
        spec: &ConnectionSpec,
        address: Address,
        syn: &Segment,
        ctx: &mut Context<'_>,
    ) -> Option<EarlyJoin> {
        let Some(Mptcp::JoinSyn(join)) = syn.options.mptcp.as_deref() else { return None };
        let shake = Handshake::answering(ctx, &spec.config, syn, join);
        let own_scale = if shake.offer.scale { scale_for(spec.config.buffers.rcvbuf) } else { 0 };
        let shake = Handshake { own_scale, ..shake };
        let (token, backup) = (join.token, join.backup);
        Some(EarlyJoin { address, token, shake, backup, answer: None })
    }

    /// Returns the SYN/ACK. Its HMAC is zero, because there is no key yet.
    pub(crate) fn syn_ack(&self, spec: &ConnectionSpec, now: Time) -> Transmit {
        let answer = JoinSynAck { backup: false, address_id: 0, hmac: 0, nonce: self.shake.nonce };
        let window = spec.config.buffers.rcvbuf.min(0xffff);
        let option = Some(Mptcp::JoinSynAck(answer));
        syn_segment(&spec.config, &self.shake, self.address, true, window, now, option)
    }
}
