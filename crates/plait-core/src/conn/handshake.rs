//! MP_CAPABLE and MP_JOIN (RFC 8684 sections 3.1 and 3.2), each on TCP's three-way handshake.

use super::joins::Joins;
use super::segments::Transmit;
use super::{Connection, ConnectionSpec, Context, FallbackCause, Mode};
use crate::config::{Config, JoinTiming};
use crate::tcp::pending::{Cause, ControlSegment};
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::{Address, Handshake, Offer};
use crate::tcp::timer::Timer;
use alloc::sync::Arc;
use plait_base::{Dsn, SubflowId, Time};
use plait_wire::{
    Flags, JoinAck, JoinSyn, JoinSynAck, Key, MpCapable, Mptcp, ResetReason, Segment, join_hmac,
};

/// How a connection begins.
pub(crate) enum Opening<'a> {
    /// We dial.
    Active { address: Address },
    /// A SYN came; the address may have been used up to the sequence number `after` before.
    Passive { address: Address, syn: &'a Segment, after: Option<u32> },
    /// A SYN came and is answered without state (RFC 4987 section 3.6): the initial sequence number is
    /// the cookie `iss`.
    Stateless { address: Address, syn: &'a Segment, iss: u32 },
}

/// What a SYN to a listening port asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asks {
    Plain,
    Multipath,
    Join(u32),
}

/// Reads the request of a SYN.
pub(crate) fn listen_syn(syn: &Segment) -> Asks {
    match syn.options.mptcp.as_deref() {
        Some(Mptcp::Capable(_)) => Asks::Multipath,
        Some(Mptcp::JoinSyn(join)) => Asks::Join(join.token),
        _ => Asks::Plain,
    }
}

impl Connection {
    /// The token of the peer's key.
    pub(crate) fn peer_token(&self) -> Option<u32> {
        self.keys.peer.map(Key::token)
    }

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
                conn.start_from(*address);
                conn.add_subflow(SubflowId(0), *address, State::SynSent, shake);
                let path = conn.spec.paths.iter().find(|config| config.path == address.path());
                conn.subflows[0].status.backup = path.is_some_and(|config| config.backup);
                conn.subflows[0].pending.add(ControlSegment::Syn);
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
        self.start_from(address);
        self.add_subflow(SubflowId(0), address, State::SynReceived, shake);
        self.subflows[0].pending.add(ControlSegment::Syn);
        self.window.update(Dsn::ZERO, u64::from(syn.window));
        if listen_syn(syn) != Asks::Multipath {
            self.start_plain(ctx, FallbackCause::Syn);
        }
        self.agree_on_checksums(syn);
        self.note_denial(ctx, syn);
    }

    /// Returns the SYN/ACK of a connection that has just been opened, and makes the connection one
    /// that has sent it.
    pub(crate) fn take_syn_ack(&mut self, now: Time) -> Transmit {
        self.subflows[0].pending.take(ControlSegment::Syn);
        self.build_syn(now, 0)
    }

    /// The addresses of the first subflow are known, and with them what is to be joined.
    pub(super) fn start_from(&mut self, address: Address) {
        self.addresses.begin(address);
        self.joins = if self.client {
            let each = self.spec.config.subflows;
            let mut joins = Joins::after_first(&self.spec.paths, address, each);
            joins.waiting.retain(|target| !self.addresses.removals.is_gone(target.path));
            joins
        } else {
            Joins::default()
        };
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
        self.add_subflow(id, address, State::SynReceived, shake);
        let subflow = &mut self.subflows[id.index()];
        subflow.status.peer_backup = join.backup;
        subflow.pending.add(ControlSegment::Syn);
        true
    }

    /// The MPTCP option of our SYN or SYN/ACK.
    pub(super) fn syn_option(&self, index: usize) -> Option<Mptcp> {
        let subflow = &self.subflows[index];
        let shake = &subflow.shake;
        let path = self.spec.paths.iter().find(|config| config.path == subflow.address.path());
        let backup = path.is_some_and(|config| config.backup);
        let address_id = self.own_id(subflow.address);
        match (shake.join, shake.initiator) {
            _ if self.plain() => None,
            (false, initiator) => Some(Mptcp::Capable(MpCapable {
                checksum_required: self.checksums,
                joins_denied: self.spec.config.deny_joins,
                sender_key: (!initiator).then_some(self.keys.local),
                receiver_key: None,
                data_len: None,
                checksum: None,
            })),
            (true, true) => {
                // With simultaneous joins the peer's key is not known yet: our own token stands in.
                let token = self.keys.peer.unwrap_or(self.keys.local).token();
                Some(Mptcp::JoinSyn(JoinSyn { backup, address_id, token, nonce: shake.nonce }))
            }
            (true, false) => {
                let hmac = self.keys.peer.map_or(0, |peer| {
                    join_hmac(self.keys.local, peer, shake.nonce, shake.peer_nonce).left64()
                });
                Some(Mptcp::JoinSynAck(JoinSynAck { backup, address_id, hmac, nonce: shake.nonce }))
            }
        }
    }

    /// Whether our ACKs carry [`Connection::ack_option`].
    #[inline]
    pub(super) fn has_ack_option(&self, index: usize) -> bool {
        let subflow = &self.subflows[index];
        let told =
            if subflow.shake.join { subflow.status.joined } else { self.joins.peer_dss_seen };
        !told && subflow.shake.initiator && self.mode == Mode::Multipath && self.keys.peer.is_some()
    }

    /// The MPTCP option that our ACKs carry until the peer is known to have the keys.
    #[cold]
    pub(super) fn ack_option(
        &self,
        index: usize,
        data_len: Option<u16>,
        checksum: Option<u16>,
    ) -> Option<Mptcp> {
        let peer = self.keys.peer.filter(|_| self.has_ack_option(index))?;
        let shake = &self.subflows[index].shake;
        if shake.join {
            let hmac = join_hmac(self.keys.local, peer, shake.nonce, shake.peer_nonce);
            return Some(Mptcp::JoinAck(JoinAck { hmac: hmac.left160() }));
        }
        Some(Mptcp::Capable(MpCapable {
            checksum_required: self.checksums,
            joins_denied: self.spec.config.deny_joins,
            sender_key: Some(self.keys.local),
            receiver_key: Some(peer),
            data_len,
            checksum,
        }))
    }

    /// SYN-SENT: only the SYN/ACK to our SYN counts.
    #[cold]
    pub(super) fn on_syn_sent(&mut self, ctx: &mut Context<'_>, index: usize, segment: &Segment) {
        let subflow = &mut self.subflows[index];
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
            return self.on_simultaneous_syn(index, segment);
        }
        if subflow.shake.join && self.keys.peer.is_none() {
            // A simultaneous join was answered before the first subflow: its proof needs the key.
            self.joins.early_answers.push((index, segment.clone()));
            return;
        }
        match (subflow.shake.join, segment.options.mptcp.as_deref()) {
            (false, Some(Mptcp::Capable(MpCapable { sender_key: Some(key), .. })))
                if self.mode == Mode::Offered =>
            {
                self.keys.set_peer(*key, self.spec.config.offsets.idsn);
                self.mode = Mode::Multipath;
                self.agree_on_checksums(segment);
                self.note_denial(ctx, segment);
            }
            (false, _) if self.mode == Mode::Offered => {
                self.start_plain(ctx, FallbackCause::SynAck);
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
                    || self.keys.peer.is_some_and(|peer| {
                        join_hmac(peer, self.keys.local, answer.nonce, own_nonce)
                            .matches64(answer.hmac)
                    });
                if !authentic {
                    return self.refuse(ctx, index);
                }
            }
            (true, _) => return self.refuse(ctx, index),
        }
        let subflow = &mut self.subflows[index];
        take_syn(&mut subflow.shake, segment, self.spec.config.unsaid_mss);
        subflow.step(Step::Established);
        subflow.pending.ack = true;
        if !subflow.shake.join {
            self.judge();
        }
        self.handshake_answered(ctx.now, index);
        if self.subflows[index].shake.join {
            // The peer may use it once it has our third ACK.
            self.fallback.others_used = true;
            // Repeated until the peer has acknowledged our HMAC.
            let subflow = &mut self.subflows[index];
            subflow.timers.set(Timer::Rto, ctx.now + subflow.rtt.rto());
        } else {
            self.window.update(Dsn::ZERO, u64::from(segment.window));
            self.subflow_up(ctx, index);
            for (early, answer) in self.joins.early_answers.take() {
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
        let subflow = &self.subflows[index];
        let expected = subflow.shake.iss.wrapping_add(1);
        if segment.flags.has(Flags::SYN.with(Flags::ACK)) && subflow.shake.initiator {
            self.on_simultaneous_syn_ack(ctx, index, segment);
            return false;
        }
        if segment.flags.has(Flags::SYN) {
            // The peer did not get our SYN/ACK.
            let may = self.challenges.take(ctx);
            if may {
                self.subflows[index].pending.add(ControlSegment::Syn);
            }
            return false;
        }
        if !segment.flags.has(Flags::ACK) {
            return false;
        }
        if segment.ack != expected {
            // RFC 9293 section 3.10.7.4, fifth check.
            self.subflows[index].pending.add_unacceptable_ack(segment.ack);
            return false;
        }
        match (subflow.shake.join, segment.options.mptcp.as_deref()) {
            (false, Some(Mptcp::Capable(capable))) if self.mode == Mode::Offered => {
                let echoed = capable.receiver_key == Some(self.keys.local);
                let Some(key) = capable.sender_key.filter(|_| echoed) else { return false };
                self.keys.set_peer(key, self.spec.config.offsets.idsn);
                self.mode = Mode::Multipath;
                self.announce_all(ctx);
            }
            // A later segment that overtook the one with the keys; it will come again.
            (false, _) if self.mode == Mode::Offered && segment.options.dss.is_some() => {
                return false;
            }
            (false, _) if self.mode == Mode::Offered => {
                self.start_plain(ctx, FallbackCause::ThirdAck);
            }
            (false, _) => self.tell_plain_syn(ctx),
            (true, Some(Mptcp::JoinAck(proof))) => {
                let shake = subflow.shake;
                let authentic = self.keys.peer.is_some_and(|peer| {
                    join_hmac(peer, self.keys.local, shake.peer_nonce, shake.nonce)
                        .matches160(&proof.hmac)
                });
                if !authentic {
                    self.refuse(ctx, index);
                    return false;
                }
                // The fourth ACK (RFC 8684 section 3.2).
                self.subflows[index].pending.ack = true;
            }
            (true, None) if segment.options.dss.is_none() => {
                // Nothing else comes before the fourth ACK: the proof was taken off.
                let cause = Cause::Reason(ResetReason::Middlebox);
                self.reset_subflow(ctx, index, cause);
                return false;
            }
            (true, _) => return false,
        }
        self.subflows[index].step(Step::Established);
        self.handshake_answered(ctx.now, index);
        self.subflow_up(ctx, index);
        true
    }

    pub(super) fn handshake_answered(&mut self, now: Time, index: usize) {
        let subflow = &mut self.subflows[index];
        subflow.tx.syn_acked();
        subflow.timers.clear(Timer::Rto);
        if subflow.shake.retries == 0 && subflow.shake.sent_at != Time::NEVER {
            subflow.rtt.sample(now, now.since(subflow.shake.sent_at));
        }
        subflow.rtt.start_data(subflow.shake.retries > 0);
        self.size_segments(index);
    }

    /// What our MTU and the peer's MSS, which counts no options (RFC 6691), leave for data on the
    /// subflow at `index`. Plain TCP has no DSS to leave room for, and no other subflow, and counts its
    /// window in such segments; else the least of all subflows counts.
    pub(super) fn size_segments(&mut self, index: usize) {
        let config = &self.spec.config;
        let mss = u64::from(self.subflows[index].shake.offer.mss);
        let left =
            |room: u64| config.room_for_data(room).min(mss.saturating_sub(room)).max(1) as u32;
        let usual = left(config.option_bytes());
        self.mss = match self.plain() && !self.narrowed {
            true => left(Config::PLAIN_OPTIONS),
            false => self.mss.min(usual),
        };
        self.ack_unit = self.ack_unit.min(usual);
        if self.plain() {
            self.subflows[index].cc.resize(self.mss);
        }
        self.scheduling.on_subflows_changed();
    }

    /// The peer speaks plain TCP, which has no other subflows: those that were begun together with
    /// the first one end.
    fn drop_joins(&mut self, ctx: &mut Context<'_>) {
        self.mode = Mode::Plain;
        self.joins.early_answers.clear();
        for index in 0..self.subflows.len() {
            if self.subflows[index].shake.join {
                self.kill_subflow(ctx, index, true);
            }
        }
    }

    fn refuse(&mut self, ctx: &mut Context<'_>, index: usize) {
        self.kill_subflow(ctx, index, true);
    }

    /// A DSS came: the peer has our key.
    pub(super) fn on_dss_seen(&mut self, ctx: &mut Context<'_>) {
        self.fallback.on_dss();
        if !self.joins.peer_dss_seen {
            self.joins.peer_dss_seen = true;
            self.tell_first_is_backup();
            self.start_joins(ctx);
        }
    }
}

/// Notes what the peer's SYN told; its MSS is `unsaid_mss` where it told none.
pub(super) fn take_syn(shake: &mut Handshake, syn: &Segment, unsaid_mss: u16) {
    shake.irs = syn.seq;
    shake.peer_scale = syn.options.window_scale.unwrap_or(0).min(14);
    shake.offer = Offer {
        scale: syn.options.window_scale.is_some(),
        timestamps: syn.options.timestamps.is_some(),
        sack: syn.options.sack_permitted,
        mss: syn.options.mss.unwrap_or(unsaid_mss),
    };
    if !shake.offer.scale {
        // Both SYNs or neither (RFC 7323 section 2.2).
        shake.own_scale = 0;
    }
    shake.ts_recent = syn.options.timestamps.map_or(0, |stamp| stamp.value);
}
