//! The handshake of a subflow: its segments, and the resulting state.

use crate::data::level::DataLevel;
use crate::event::FallbackCause;
use crate::notices::Notices;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::paths::admission::{DENIED, JOINS_PER_SECOND, LIMIT_REACHED};
use crate::paths::early_join::EarlyJoin;
use crate::paths::handshake::{Opening, SynRequest, syn_request};
use crate::tcp::address::Address;
use crate::tcp::handshake::SynState;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use plait_base::{SubflowId, SubflowSet, Time};
use plait_wire::{Flags, JoinSyn, MpCapable, Mptcp, Segment, WireSeq};

/// The result of a SYN/ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SynAck {
    /// It does not answer our SYN, or is kept for later.
    Ignored,
    /// The subflow is given up: its proof is wrong or missing.
    Refused,
    /// The subflow is established.
    Accepted(JoinFate),
}

/// The result for joins that were started together with the first subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JoinFate {
    Continue,
    /// The peer's first address denies joins: unanswered ones end.
    Denied,
    /// The peer uses plain TCP: all end.
    Dropped,
}

/// The result of a third ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThirdAck {
    Ignored,
    /// The subflow is given up: its proof is wrong.
    Refused,
    /// The subflow is reset: a middlebox has stripped its proof.
    Stripped,
    Accepted,
    /// It contained the peer's key: further addresses can be announced.
    AcceptedWithKey,
}

/// Changes by an acceptable segment of a subflow.
pub(crate) struct AcceptedSegment {
    /// The subflow was silent.
    pub(crate) revived: bool,
    /// A keep-alive probe was unanswered.
    pub(crate) asked: bool,
    /// Our join may carry data from now on, because the peer has our HMAC.
    pub(crate) joined: bool,
}

impl Paths {
    /// Returns the subflows that end because of a SYN/ACK.
    pub(crate) fn ending(&self, joins: JoinFate) -> SubflowSet {
        self.subflows.set_of(|s| match joins {
            JoinFate::Continue => false,
            JoinFate::Denied => s.origin().join && s.state() == State::SynSent,
            JoinFate::Dropped => s.origin().join,
        })
    }

    /// Returns the option of the reset if a join at `address` must be refused.
    pub(crate) fn refuses_join(&mut self, now: Time, address: Address) -> Option<Mptcp> {
        let first = self.addresses.first();
        let own = |it: Address| match self.client {
            true => (it.path().0, it.local_port),
            false => (u32::from(it.server().0), it.local_port),
        };
        if self.spec.config.joins.deny && own(address) == own(first) {
            return Some(DENIED);
        }
        let room =
            self.subflows.free_slot().is_some() || self.subflows.half_open_joins().next().is_some();
        let may = room && self.admission.take(now, JOINS_PER_SECOND);
        (!may).then_some(LIMIT_REACHED)
    }

    /// Creates the peer's join in the slot `id`, with a pending SYN/ACK.
    pub(crate) fn answer_join(
        &mut self,
        parts: &mut Parts<'_>,
        id: SubflowId,
        address: Address,
        syn: &Segment,
        join: &JoinSyn,
    ) {
        let start = SynState::answering(&mut parts.ctx, &self.spec.config, syn, join);
        self.add_subflow(parts.notices, id, address, State::SynReceived, start);
        let subflow = &mut self.subflows[id];
        subflow.on_peer_priority(join.backup);
        subflow.queue_control(ControlSegment::Syn);
        parts.data.on_join_answered();
    }

    /// Takes over a join that arrived before its connection existed. Returns its third ACK, if that
    /// has arrived.
    pub(crate) fn adopt(
        &mut self,
        now: Time,
        notices: &mut Notices,
        id: SubflowId,
        early: EarlyJoin,
    ) -> Option<Segment> {
        self.add_subflow(notices, id, early.address, State::SynReceived, early.start);
        let subflow = &mut self.subflows[id];
        subflow.on_peer_priority(early.backup);
        subflow.arm_rto(now);
        early.answer
    }

    /// Processes a segment in SYN-SENT. Only the SYN/ACK to our SYN counts.
    #[cold]
    pub(crate) fn read_syn_ack(
        &mut self,
        parts: &mut Parts<'_>,
        id: SubflowId,
        segment: &Segment,
    ) -> SynAck {
        let subflow = &mut self.subflows[id];
        let expected = subflow.negotiated().iss.after_syn();
        if segment.flags.has(Flags::ACK) && WireSeq(segment.ack) != expected {
            // RFC 9293 section 3.10.7.3: the peer's segment belongs to another connection.
            subflow.refuse_ack(WireSeq(segment.ack));
            return SynAck::Ignored;
        }
        if !segment.flags.has(Flags::SYN) {
            return SynAck::Ignored;
        }
        if !segment.flags.has(Flags::ACK) {
            subflow.on_simultaneous_syn(parts.data, &self.spec.config, segment);
            return SynAck::Ignored;
        }
        if subflow.origin().join && parts.data.keys().peer.is_none() {
            // A simultaneous join was answered before the first subflow; its proof needs the key.
            self.joins.keep_answer(id, segment);
            return SynAck::Ignored;
        }
        match (subflow.origin().join, segment.options.mptcp.as_deref()) {
            (false, Some(Mptcp::Capable(MpCapable { sender_key: Some(key), .. })))
                if parts.data.is_offered() =>
            {
                parts.data.on_peer_key(&self.spec.config, *key);
                parts.data.agree(&self.spec.config, segment);
                if denies_joins(segment) {
                    self.deny_first_address();
                    return SynAck::Accepted(JoinFate::Denied);
                }
                SynAck::Accepted(JoinFate::Continue)
            }
            (false, _) => {
                if parts.data.is_offered() {
                    parts.data.start_plain(
                        &mut parts.ctx,
                        &self.spec.config,
                        parts.notices,
                        FallbackCause::SynAck,
                    );
                }
                parts.data.become_plain();
                self.joins.take_answers();
                SynAck::Accepted(JoinFate::Dropped)
            }
            (true, Some(Mptcp::JoinSynAck(answer))) => {
                subflow.on_peer_priority(answer.backup);
                subflow.note_join_answer(answer);
                let simultaneous = self.spec.config.joins.timing.is_simultaneous();
                let hmac = subflow.peer_hmac(parts.data);
                let authentic = simultaneous && answer.hmac == 0
                    || hmac.is_some_and(|it| it.matches64(answer.hmac));
                if authentic { SynAck::Accepted(JoinFate::Continue) } else { SynAck::Refused }
            }
            (true, _) => SynAck::Refused,
        }
    }

    /// Takes the options of the SYN/ACK on the subflow `id`, with a pending third ACK.
    pub(crate) fn take_offer(&mut self, id: SubflowId, segment: &Segment) {
        let subflow = &mut self.subflows[id];
        subflow.take_syn(&self.spec.config, segment);
        subflow.queue_ack();
    }

    /// Processes the third ACK in SYN-RECEIVED.
    #[cold]
    pub(crate) fn read_third_ack(
        &mut self,
        parts: &mut Parts<'_>,
        id: SubflowId,
        segment: &Segment,
    ) -> ThirdAck {
        if segment.flags.has(Flags::SYN) {
            // The peer did not receive our SYN/ACK.
            if self.challenges.take(&mut parts.ctx) {
                self.subflows[id].queue_control(ControlSegment::Syn);
            }
            return ThirdAck::Ignored;
        }
        if !segment.flags.has(Flags::ACK) {
            return ThirdAck::Ignored;
        }
        let subflow = &mut self.subflows[id];
        if WireSeq(segment.ack) != subflow.negotiated().iss.after_syn() {
            // RFC 9293 section 3.10.7.4, fifth check.
            subflow.refuse_ack(WireSeq(segment.ack));
            return ThirdAck::Ignored;
        }
        let offered = parts.data.is_offered();
        match (subflow.origin().join, segment.options.mptcp.as_deref()) {
            (false, Some(Mptcp::Capable(capable))) if offered => {
                let echoed = capable.receiver_key == Some(parts.data.keys().local);
                let Some(key) = capable.sender_key.filter(|_| echoed) else {
                    return ThirdAck::Ignored;
                };
                parts.data.on_peer_key(&self.spec.config, key);
                ThirdAck::AcceptedWithKey
            }
            // A later segment overtook the one with the keys, which will be retransmitted.
            (false, _) if offered && segment.options.dss.is_some() => ThirdAck::Ignored,
            (false, _) if offered => {
                parts.data.start_plain(
                    &mut parts.ctx,
                    &self.spec.config,
                    parts.notices,
                    FallbackCause::ThirdAck,
                );
                ThirdAck::Accepted
            }
            (false, _) => {
                parts.data.tell_plain_syn(&mut parts.ctx);
                ThirdAck::Accepted
            }
            (true, option) => read_proof(parts, subflow, segment, option),
        }
    }

    /// Establishes the subflow `id`, takes the RTT of its handshake, and stops its timer.
    pub(crate) fn on_handshake_answered(&mut self, data: &mut DataLevel, now: Time, id: SubflowId) {
        self.subflows[id].establish(now);
        data.on_handshake(now);
    }

    /// Handles the peer's SYN/ACK in SYN-RECEIVED after a simultaneous SYN. Returns true if both
    /// SYNs have arrived.
    pub(crate) fn on_simultaneous_syn_ack(&mut self, id: SubflowId, segment: &Segment) -> bool {
        let subflow = &mut self.subflows[id];
        let expected = subflow.negotiated().iss.after_syn();
        if WireSeq(segment.ack) != expected {
            subflow.refuse_ack(WireSeq(segment.ack));
            return false;
        }
        if WireSeq(segment.seq) != subflow.negotiated().irs.syn() {
            return false;
        }
        // The peer's SYN/ACK may need an answer, because ours may be lost.
        subflow.queue_ack();
        true
    }

    /// Notes that the peer's first address denies further subflows.
    fn deny_first_address(&mut self) {
        self.addresses.deny_first();
        let server = self.addresses.first().server();
        self.joins.drop_if(|target| target.server == server);
    }

    /// Opens the first subflow of a connection.
    pub(crate) fn open(&mut self, parts: &mut Parts<'_>, opening: &Opening<'_>) {
        let mut start = SynState::new(&mut parts.ctx, &self.spec.config, self.client);
        let (address, syn) = match opening {
            Opening::Active { address } => {
                self.start_from(*address);
                self.add_subflow(parts.notices, SubflowId(0), *address, State::SynSent, start);
                let path = self.spec.path(address.path());
                self.subflows[SubflowId::FIRST]
                    .set_backup(path.is_some_and(|config| config.backup));
                self.subflows[SubflowId::FIRST].queue_control(ControlSegment::Syn);
                return;
            }
            Opening::Passive { address, syn, after } => {
                if let Some(after) = after {
                    start.follow(*after);
                }
                (*address, *syn)
            }
            Opening::Stateless { address, syn, iss } => {
                start.resume(*iss);
                (*address, *syn)
            }
        };
        start.take_syn(&self.spec.config, syn);
        self.start_from(address);
        self.add_subflow(parts.notices, SubflowId(0), address, State::SynReceived, start);
        self.subflows[SubflowId::FIRST].queue_control(ControlSegment::Syn);
        if denies_joins(syn) {
            self.deny_first_address();
        }
        parts.data.on_syn_window(syn);
        if syn_request(syn) != SynRequest::Multipath {
            parts.data.start_plain(
                &mut parts.ctx,
                &self.spec.config,
                parts.notices,
                FallbackCause::Syn,
            );
        }
        parts.data.agree(&self.spec.config, syn);
    }

    /// Handles an acceptable segment on the subflow `id`: the peer is alive.
    pub(crate) fn on_accepted(&mut self, now: Time, id: SubflowId) -> AcceptedSegment {
        let subflow = &mut self.subflows[id];
        AcceptedSegment {
            joined: subflow.proof().take_fourth_ack(now),
            revived: subflow.revive(),
            asked: subflow.on_probe_answered(),
        }
    }

    /// Waits for the fourth ACK after the peer's answer to our join. The peer may use the subflow
    /// when it has our third ACK, which is retransmitted until the fourth ACK arrives. Returns true
    /// if this end may use it now.
    pub(crate) fn await_fourth_ack(
        &mut self,
        data: &mut DataLevel,
        now: Time,
        id: SubflowId,
    ) -> bool {
        data.on_others_used();
        self.subflows[id].proof().send_first(now, data);
        data.sends_early()
    }

    /// Answers the part of a handshake in `option`.
    #[cold]
    pub(crate) fn answer(&mut self, data: &DataLevel, id: SubflowId, option: &Mptcp) {
        answer_handshake(&mut self.subflows[id], option, data.agreed().early_joins());
    }
}

/// Answers the first data of the peer before data of this end: the peer may join when it has a DATA_ACK (RFC 8684
/// section 3.1), and a full segment arrives later than a pure ACK. With `early` joins, it needs no such answer.
///
/// If the peer repeats the third ACK of its join, repeats the fourth. The peer may not send data before that.
fn answer_handshake(subflow: &mut Subflow, option: &Mptcp, early: bool) {
    match option {
        Mptcp::Capable(MpCapable { data_len: Some(1..), .. }) if !early => {
            subflow.queue_control(ControlSegment::HandshakeAck);
        }
        Mptcp::JoinAck(_) => subflow.queue_ack_if(!subflow.origin().initiator),
        _ => {}
    }
}

/// Returns true if a peer's MP_CAPABLE denies joins to its source address.
fn denies_joins(syn: &Segment) -> bool {
    let option = syn.options.mptcp.as_deref();
    matches!(option, Some(Mptcp::Capable(MpCapable { joins_denied: true, .. })))
}

/// Processes the third ACK of the peer's join, or a segment that arrives before it.
fn read_proof(
    parts: &mut Parts<'_>,
    subflow: &mut Subflow,
    segment: &Segment,
    option: Option<&Mptcp>,
) -> ThirdAck {
    match option {
        Some(Mptcp::JoinAck(proof)) => {
            let hmac = subflow.peer_hmac(parts.data);
            let authentic = hmac.is_some_and(|it| it.matches160(&proof.hmac));
            // The fourth ACK (RFC 8684 section 3.2).
            subflow.queue_ack_if(authentic);
            if authentic {
                return ThirdAck::Accepted;
            }
            parts.ctx.counters().on_join_forged();
            ThirdAck::Refused
        }
        // No other segment may precede the fourth ACK: the proof was stripped.
        None if segment.options.dss.is_none() => ThirdAck::Stripped,
        _ => {
            if !segment.payload.is_empty() {
                // The peer retransmits it with its third ACK.
                parts.ctx.counters().on_unproven_data();
            }
            ThirdAck::Ignored
        }
    }
}
