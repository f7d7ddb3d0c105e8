//! The MPTCP options of a subflow's handshake (RFC 8684 sections 3.1 and 3.2).

use crate::config::Config;
use crate::data::level::DataLevel;
use crate::tcp::handshake::{Handshake, Origin};
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::Step;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use plait_base::Time;
use plait_wire::{JoinAck, JoinHmac, JoinSyn, JoinSynAck, MpCapable, Mptcp, Segment, join_hmac};

impl Subflow {
    /// Returns true if our ACKs carry [`HandshakeOptions::of_ack`].
    #[inline]
    pub(crate) fn has_ack_option(&self, data: &DataLevel) -> bool {
        let told =
            if self.origin().join { self.status.proven() } else { data.agreed().peer_dss_seen() };
        !told && self.origin().initiator && data.speaks_multipath() && data.keys().peer.is_some()
    }

    /// Returns the peer's proof of a join, if its key is known.
    pub(crate) fn peer_hmac(&self, data: &DataLevel) -> Option<JoinHmac> {
        let Handshake { nonce, peer_nonce, .. } = *self.handshake()?;
        Some(join_hmac(data.keys().peer?, data.keys().local, peer_nonce, nonce))
    }

    /// Handles a SYN without an ACK in SYN-SENT (simultaneous open). RFC 8684 has no key exchange
    /// for it, so the connection is plain TCP; a join cannot be opened this way.
    pub(crate) fn on_simultaneous_syn(
        &mut self,
        data: &mut DataLevel,
        config: &Config,
        syn: &Segment,
    ) {
        if self.origin().join {
            return;
        }
        data.become_plain();
        self.take_syn(config, syn);
        self.step(Step::SynCrossed);
        self.pending.add(ControlSegment::Syn);
        data.on_syn_window(syn);
    }

    /// Returns true if it is our join, and the peer has not acknowledged our HMAC.
    pub(crate) const fn awaits_fourth_ack(&self) -> bool {
        let Origin { initiator, join, .. } = self.origin;
        !self.status.proven() && initiator && join && self.state.synchronised()
    }

    /// Returns our HMAC of a join, to send it or to note its acknowledgement.
    pub(crate) const fn proof(&mut self) -> Proof<'_> {
        Proof(self)
    }
}

/// The third ACK of a subflow, if it is our join. Until the peer has it, the peer ignores our data.
pub(crate) struct Proof<'a>(&'a mut Subflow);

impl Proof<'_> {
    /// Sends the third ACK after the answer of the peer. If data may follow at once, it is sent before the
    /// data, and not with it.
    pub(crate) fn send_first(&mut self, now: Time, data: &DataLevel) {
        self.0.arm_rto(now);
        if data.agreed().early_joins() {
            self.0.pending.add(ControlSegment::HandshakeAck);
        }
    }

    /// Handles an acceptable segment of the peer at `now`. If it is the fourth ACK, our HMAC has
    /// arrived. Returns true if data may be sent from now on.
    pub(crate) fn take_fourth_ack(&mut self, now: Time) -> bool {
        let subflow = &mut *self.0;
        if !subflow.awaits_fourth_ack() {
            return false;
        }
        let waited = !subflow.status.joined();
        // The timer of the third ACK is that of data from now on.
        if subflow.is_quiet() {
            subflow.timers.clear(Timer::Rto);
        } else {
            subflow.arm_rto(now);
        }
        subflow.end_handshake();
        waited
    }

    /// Retransmits an unanswered third ACK. Returns the number of retransmissions so far.
    pub(crate) fn repeat(&mut self, now: Time) -> u8 {
        let subflow = &mut *self.0;
        subflow.pending.add(ControlSegment::HandshakeAck);
        if subflow.is_quiet() {
            // Otherwise the timeout of the data does this.
            subflow.sender.rtt.back_off();
            subflow.arm_rto(now);
            if subflow.status.joined() {
                subflow.status.suspect();
            }
        }
        subflow.count_handshake_retry()
    }

    /// Queues `segment` behind an unacknowledged third ACK.
    pub(crate) fn queue(&mut self, segment: ControlSegment) {
        if self.0.awaits_fourth_ack() {
            self.0.pending.add(ControlSegment::HandshakeAck);
        }
        self.0.pending.add(segment);
    }

    /// Queues a challenge ACK if it is `wanted`. Data does not replace it if it is the third ACK.
    pub(crate) fn challenge(&mut self, wanted: bool) {
        let unanswered = wanted && self.0.awaits_fourth_ack();
        self.0.queue_ack_if(wanted);
        if unanswered {
            self.0.pending.add(ControlSegment::HandshakeAck);
        }
    }
}

/// The MPTCP options of the handshake of `subflow`.
pub(crate) struct HandshakeOptions<'a> {
    pub(crate) subflow: &'a Subflow,
    pub(crate) data: &'a DataLevel,
    pub(crate) config: &'a Config,
}

impl HandshakeOptions<'_> {
    /// Returns the MPTCP option of our SYN or SYN/ACK. `address_id` and `backup` belong to our
    /// address.
    pub(crate) fn of_syn(&self, address_id: u8, backup: bool) -> Option<Mptcp> {
        let HandshakeOptions { subflow, data, config } = *self;
        let handshake = subflow.handshake()?;
        let Origin { join, initiator, .. } = subflow.origin;
        match (join, initiator) {
            _ if data.plain() => None,
            (false, initiator) => Some(Mptcp::Capable(MpCapable {
                checksum_required: data.agreed().checksums(),
                joins_denied: config.joins.deny,
                sender_key: (!initiator).then_some(data.keys().local),
                receiver_key: None,
                data_len: None,
                checksum: None,
            })),
            (true, true) => {
                // In simultaneous joins the peer's key is not available yet, so our own token
                // replaces it.
                let token = data.keys().peer.unwrap_or(data.keys().local).token();
                Some(Mptcp::JoinSyn(JoinSyn { backup, address_id, token, nonce: handshake.nonce }))
            }
            (true, false) => {
                let hmac = data.keys().peer.map_or(0, |peer| {
                    join_hmac(data.keys().local, peer, handshake.nonce, handshake.peer_nonce)
                        .left64()
                });
                Some(Mptcp::JoinSynAck(JoinSynAck {
                    backup,
                    address_id,
                    hmac,
                    nonce: handshake.nonce,
                }))
            }
        }
    }

    /// Returns the MPTCP option of our ACKs until the peer is known to have the keys.
    #[cold]
    pub(crate) fn of_ack(&self, data_len: Option<u16>, checksum: Option<u16>) -> Option<Mptcp> {
        let HandshakeOptions { subflow, data, config } = *self;
        let peer = data.keys().peer.filter(|_| subflow.has_ack_option(data))?;
        if subflow.origin.join {
            let Handshake { nonce, peer_nonce, .. } = *subflow.handshake()?;
            let hmac = join_hmac(data.keys().local, peer, nonce, peer_nonce);
            return Some(Mptcp::JoinAck(JoinAck { hmac: hmac.left160() }));
        }
        Some(Mptcp::Capable(MpCapable {
            checksum_required: data.agreed().checksums(),
            joins_denied: config.joins.deny,
            sender_key: Some(data.keys().local),
            receiver_key: Some(peer),
            data_len,
            checksum,
        }))
    }
}
