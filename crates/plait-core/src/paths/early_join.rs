//! Joins that arrive before the key that proves them
//! ([`JoinTiming::Simultaneous`](crate::JoinTiming::Simultaneous)).

use crate::context::Context;
use crate::data::window::scale_for;
use crate::segments::{Syn, Transmit};
use crate::spec::ConnectionSpec;
use crate::tcp::address::Address;
use crate::tcp::handshake::SynState;
use plait_base::Time;
use plait_wire::{JoinSynAck, Mptcp, Segment};

/// A join that arrived before the key that proves it. It is answered, and kept until its connection
/// exists. Only plait's own ends use it ([`crate::JoinTiming::Simultaneous`]).
#[derive(Debug)]
pub(crate) struct EarlyJoin {
    pub(crate) address: Address,
    /// The token of the client's own key, which the server receives in the third ACK.
    pub(crate) token: u32,
    pub(crate) start: SynState,
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
        let mut start = SynState::answering(ctx, &spec.config, syn, join);
        start.offer_scale(scale_for(spec.config.buffers.rcvbuf));
        let (token, backup) = (join.token, join.backup);
        Some(EarlyJoin { address, token, start, backup, answer: None })
    }

    /// Keeps the third ACK. Returns false if one has already arrived.
    pub(crate) fn take_answer(&mut self, segment: &Segment) -> bool {
        let first = self.answer.is_none();
        if first {
            self.answer = Some(segment.clone());
        }
        first
    }

    /// Returns the SYN/ACK. Its HMAC is zero, because there is no key yet.
    pub(crate) fn syn_ack(&self, spec: &ConnectionSpec, now: Time) -> Transmit {
        let SynState { handshake, negotiated, .. } = &self.start;
        let answer = JoinSynAck { backup: false, address_id: 0, hmac: 0, nonce: handshake.nonce };
        let window = spec.config.buffers.rcvbuf.min(0xffff);
        let mptcp = Some(Mptcp::JoinSynAck(answer));
        let (scale, address) = (handshake.scale, self.address);
        let syn =
            Syn { negotiated, scale, address, answer: true, window, early_joins: false, mptcp };
        syn.transmit(&spec.config, now)
    }
}
