//! MP_CAPABLE and MP_JOIN (RFC 8684 sections 3.1 and 3.2), each on TCP's three-way handshake.

use crate::config::JoinTiming;
use crate::conn::context::Context;
use crate::conn::{Connection, ConnectionSpec};
use crate::data::fallback::{FallbackCause, Mode};
use crate::paths::handshake::{Asks, Opening, listen_syn, take_syn};
use crate::segments::Transmit;
use crate::tcp::pending::{Cause, ControlSegment};
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::{Address, Handshake};
use crate::tcp::timer::Timer;
use alloc::sync::Arc;
use plait_base::{Dsn, SubflowId, Time};
use plait_wire::{Flags, Key, MpCapable, Mptcp, ResetReason, Segment, join_hmac};

impl Connection {
    /// A connection with its first subflow.
    pub(crate) fn open(
        spec: Arc<ConnectionSpec>,
        key: Key,
        opening: &Opening<'_>,
        ctx: &mut Context<'_>,
    ) -> Connection {
        let client = matches!(opening, Opening::Active { .. });
        let mut conn = Connection::new(spec, client, ctx.now, key);
        let mut shake = Handshake {
            iss: ctx.first_sequence(&conn.spec.config),
            initiator: client,
            sent_at: ctx.now,
            ..Handshake::default()
        };
        match opening {
            Opening::Active { address } => {
                conn.data.agreed.peer_dss_seen = false;
                conn.paths.start_from(&conn.spec, *address);
                conn.paths.add_subflow(
                    &conn.spec,
                    &mut conn.notices,
                    SubflowId(0),
                    *address,
                    State::SynSent,
                    shake,
                );
                let path = conn.spec.paths.iter().find(|config| config.path == address.path());
                conn.paths.subflows[0].status.backup = path.is_some_and(|config| config.backup);
                conn.paths.subflows[0].pending.add(ControlSegment::Syn);
                conn.start_joins(ctx);
            }
            Opening::Passive { address, syn, after } => {
                if let Some(after) = after {
                    // Beyond what the last conversation used (RFC 9293 section 3.6.1).
                    shake.iss = after.wrapping_add(1 + (shake.iss >> 2));
                }
                conn.answer_syn(ctx, *address, syn, shake);
            }
            Opening::Stateless { address, syn, iss } => {
                (shake.iss, shake.sent_at) = (*iss, Time::NEVER);
                conn.answer_syn(ctx, *address, syn, shake);
            }
        }
        conn
    }

    /// The first subflow of a server, whose SYN/ACK is to be sent.
    fn answer_syn(
        &mut self,
        ctx: &mut Context<'_>,
        address: Address,
        syn: &Segment,
        mut shake: Handshake,
    ) {
        take_syn(&mut shake, syn, self.spec.config.unsaid_mss);
        self.data.agreed.peer_dss_seen = false;
        self.paths.start_from(&self.spec, address);
        self.paths.add_subflow(
            &self.spec,
            &mut self.notices,
            SubflowId(0),
            address,
            State::SynReceived,
            shake,
        );
        self.paths.subflows[0].pending.add(ControlSegment::Syn);
        self.data.window.update(Dsn::ZERO, u64::from(syn.window));
        if listen_syn(syn) != Asks::Multipath {
            self.data.start_plain(ctx, &self.spec.config, &mut self.notices, FallbackCause::Syn);
        }
        self.data.agree_on_checksums(syn);
        self.note_denial(ctx, syn);
    }

    /// Returns the SYN/ACK of a connection that has just been opened, and makes the connection one
    /// that has sent it.
    pub(crate) fn take_syn_ack(&mut self, now: Time) -> Transmit {
        self.paths.subflows[0].pending.take(ControlSegment::Syn);
        self.paths.build_syn(&self.spec, &mut self.data, now, 0)
    }

    /// A SYN with MP_JOIN for this connection (RFC 8684 section 3.2), which was admitted. False where
    /// there is no room for it.
    pub(crate) fn accept_join(
        &mut self,
        ctx: &mut Context<'_>,
        address: Address,
        syn: &Segment,
    ) -> bool {
        let Some(Mptcp::JoinSyn(join)) = syn.options.mptcp.as_deref() else { return false };
        let Some(id) = self.slot_for_join(ctx) else { return false };
        let mut shake = Handshake {
            iss: ctx.first_sequence(&self.spec.config),
            nonce: ctx.entropy.bits() as u32,
            peer_nonce: join.nonce,
            peer_id: join.address_id,
            join: true,
            sent_at: ctx.now,
            ..Handshake::default()
        };
        take_syn(&mut shake, syn, self.spec.config.unsaid_mss);
        self.paths.add_subflow(
            &self.spec,
            &mut self.notices,
            id,
            address,
            State::SynReceived,
            shake,
        );
        let subflow = &mut self.paths.subflows[id.index()];
        subflow.status.peer_backup = join.backup;
        subflow.pending.add(ControlSegment::Syn);
        true
    }

    /// SYN-SENT: only the SYN/ACK to our SYN counts.
    #[cold]
    pub(super) fn on_syn_sent(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment) {
        let subflow = &mut self.paths.subflows[index];
        let expected = subflow.shake.iss.wrapping_add(1);
        if segment.flags.has(Flags::ACK) && segment.ack != expected {
            // RFC 9293 section 3.10.7.3: the peer is in another conversation.
            subflow.pending.add_unacceptable_ack(segment.ack);
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        if !segment.flags.has(Flags::ACK) {
            return self.paths.on_simultaneous_syn(
                &self.spec.config,
                &mut self.data,
                index,
                segment,
            );
        }
        if subflow.shake.join && self.data.keys.peer.is_none() {
            // A simultaneous join was answered before the first subflow: its proof needs the key.
            self.paths.joins.early_answers.push((index, segment.clone()));
            return;
        }
        match (subflow.shake.join, segment.options.mptcp.as_deref()) {
            (false, Some(Mptcp::Capable(MpCapable { sender_key: Some(key), .. })))
                if self.data.agreed.mode == Mode::Offered =>
            {
                self.data.keys.set_peer(*key, self.spec.config.offsets.idsn);
                self.data.agreed.mode = Mode::Multipath;
                self.data.agree_on_checksums(segment);
                self.note_denial(ctx, segment);
            }
            (false, _) if self.data.agreed.mode == Mode::Offered => {
                self.data.start_plain(
                    ctx,
                    &self.spec.config,
                    &mut self.notices,
                    FallbackCause::SynAck,
                );
                self.drop_joins(ctx);
            }
            (false, _) => self.drop_joins(ctx),
            (true, Some(Mptcp::JoinSynAck(answer))) => {
                subflow.status.peer_backup = answer.backup;
                subflow.shake.peer_nonce = answer.nonce;
                subflow.shake.peer_id = answer.address_id;
                let own_nonce = subflow.shake.nonce;
                let simultaneous = self.spec.config.join == JoinTiming::Simultaneous;
                let authentic = simultaneous && answer.hmac == 0
                    || self.data.keys.peer.is_some_and(|peer| {
                        join_hmac(peer, self.data.keys.local, answer.nonce, own_nonce)
                            .matches64(answer.hmac)
                    });
                if !authentic {
                    return self.refuse(ctx, index);
                }
            }
            (true, _) => return self.refuse(ctx, index),
        }
        let subflow = &mut self.paths.subflows[index];
        take_syn(&mut subflow.shake, segment, self.spec.config.unsaid_mss);
        subflow.step(Step::Established);
        subflow.pending.ack = true;
        if !subflow.shake.join {
            self.data.judge(&self.spec.config, &mut self.notices);
        }
        self.handshake_answered(ctx.now, index);
        if self.paths.subflows[index].shake.join {
            // The peer may use it once it has our third ACK.
            self.data.agreed.others_used = true;
            // Repeated until the peer has acknowledged our HMAC.
            let subflow = &mut self.paths.subflows[index];
            subflow.timers.set(Timer::Rto, ctx.now + subflow.rtt.rto());
        } else {
            self.data.window.update(Dsn::ZERO, u64::from(segment.window));
            self.subflow_up(ctx, index);
            for (early, answer) in self.paths.joins.early_answers.take() {
                self.handle(ctx, early, &answer);
            }
        }
        self.start_joins(ctx);
    }

    /// SYN-RECEIVED: the third ACK. Returns whether the segment is to be read further.
    #[cold]
    pub(super) fn on_syn_received(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
    ) -> bool {
        let subflow = &self.paths.subflows[index];
        let expected = subflow.shake.iss.wrapping_add(1);
        if segment.flags.has(Flags::SYN.with(Flags::ACK)) && subflow.shake.initiator {
            self.on_simultaneous_syn_ack(ctx, index, segment);
            return false;
        }
        if segment.flags.has(Flags::SYN) {
            // The peer did not get our SYN/ACK.
            let may = self.paths.challenges.take(ctx);
            if may {
                self.paths.subflows[index].pending.add(ControlSegment::Syn);
            }
            return false;
        }
        if !segment.flags.has(Flags::ACK) {
            return false;
        }
        if segment.ack != expected {
            // RFC 9293 section 3.10.7.4, fifth check.
            self.paths.subflows[index].pending.add_unacceptable_ack(segment.ack);
            return false;
        }
        match (subflow.shake.join, segment.options.mptcp.as_deref()) {
            (false, Some(Mptcp::Capable(capable))) if self.data.agreed.mode == Mode::Offered => {
                let echoed = capable.receiver_key == Some(self.data.keys.local);
                let Some(key) = capable.sender_key.filter(|_| echoed) else { return false };
                self.data.keys.set_peer(key, self.spec.config.offsets.idsn);
                self.data.agreed.mode = Mode::Multipath;
                self.announce_all(ctx);
            }
            // A later segment that overtook the one with the keys; it will come again.
            (false, _)
                if self.data.agreed.mode == Mode::Offered && segment.options.dss.is_some() =>
            {
                return false;
            }
            (false, _) if self.data.agreed.mode == Mode::Offered => {
                self.data.start_plain(
                    ctx,
                    &self.spec.config,
                    &mut self.notices,
                    FallbackCause::ThirdAck,
                );
            }
            (false, _) => self.data.tell_plain_syn(ctx),
            (true, Some(Mptcp::JoinAck(proof))) => {
                let shake = subflow.shake;
                let authentic = self.data.keys.peer.is_some_and(|peer| {
                    join_hmac(peer, self.data.keys.local, shake.peer_nonce, shake.nonce)
                        .matches160(&proof.hmac)
                });
                if !authentic {
                    self.refuse(ctx, index);
                    return false;
                }
                // The fourth ACK (RFC 8684 section 3.2).
                self.paths.subflows[index].pending.ack = true;
            }
            (true, None) if segment.options.dss.is_none() => {
                // Nothing else comes before the fourth ACK: the proof was taken off.
                let cause = Cause::Reason(ResetReason::Middlebox);
                self.reset_subflow(ctx, index, cause);
                return false;
            }
            (true, _) => return false,
        }
        self.paths.subflows[index].step(Step::Established);
        self.handshake_answered(ctx.now, index);
        self.subflow_up(ctx, index);
        true
    }

    pub(super) fn handshake_answered(&mut self, now: Time, index: usize) {
        let subflow = &mut self.paths.subflows[index];
        subflow.tx.syn_acked();
        subflow.timers.clear(Timer::Rto);
        if subflow.shake.retries == 0 && subflow.shake.sent_at != Time::NEVER {
            subflow.rtt.sample(now, now.since(subflow.shake.sent_at));
        }
        subflow.rtt.start_data(subflow.shake.retries > 0);
        self.size_segments(index);
    }

    /// The peer speaks plain TCP, which has no other subflows: those that were begun together with
    /// the first one end.
    fn drop_joins(&mut self, ctx: &mut Context<'_>) {
        self.data.agreed.mode = Mode::Plain;
        self.paths.joins.early_answers.clear();
        for index in 0..self.paths.subflows.len() {
            if self.paths.subflows[index].shake.join {
                self.kill_subflow(ctx, index, true);
            }
        }
    }

    fn refuse(&mut self, ctx: &mut Context<'_>, index: usize) {
        self.kill_subflow(ctx, index, true);
    }

    /// A DSS came: the peer has our key.
    pub(super) fn on_dss_seen(&mut self, ctx: &mut Context<'_>) {
        self.data.agreed.on_dss();
        if !self.data.agreed.peer_dss_seen {
            self.data.agreed.peer_dss_seen = true;
            self.paths.tell_first_is_backup(&self.data);
            self.start_joins(ctx);
        }
    }
}
