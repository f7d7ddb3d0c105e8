//! MP_CAPABLE and MP_JOIN (RFC 8684 sections 3.1 and 3.2), each on TCP's three-way handshake.

use crate::config::Config;
use crate::data::agreement::{Mode, ModeStep};
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::address::Address;
use crate::tcp::handshake::{Handshake, Origin};
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::Step;
use crate::tcp::subflow::Subflow;
use plait_base::Dsn;
use plait_wire::{JoinAck, JoinHmac, JoinSyn, JoinSynAck, MpCapable, Mptcp, Segment, join_hmac};

/// How a connection is opened.
pub(crate) enum Opening<'a> {
    /// This end dials.
    Active { address: Address },
    /// A SYN arrived. Its address may have been used before, up to the sequence number `after`.
    Passive { address: Address, syn: &'a Segment, after: Option<u32> },
    /// A SYN arrived and is answered without state (RFC 4987 section 3.6). The initial sequence
    /// number is the cookie `iss`.
    Stateless { address: Address, syn: &'a Segment, iss: u32 },
}

/// The request of a SYN to a listening port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SynRequest {
    Plain,
    Multipath,
    Join(u32),
}

/// Returns the request of a SYN.
pub(crate) fn syn_request(syn: &Segment) -> SynRequest {
    match syn.options.mptcp.as_deref() {
        Some(Mptcp::Capable(_)) => SynRequest::Multipath,
        Some(Mptcp::JoinSyn(join)) => SynRequest::Join(join.token),
        _ => SynRequest::Plain,
    }
}

impl Subflow {
    /// Returns the MPTCP option of our SYN or SYN/ACK. `address_id` and `backup` belong to our
    /// address.
    fn syn_option(
        &self,
        data: &DataLevel,
        config: &Config,
        address_id: u8,
        backup: bool,
    ) -> Option<Mptcp> {
        let handshake = self.handshake()?;
        let Origin { join, initiator, .. } = self.origin();
        match (join, initiator) {
            _ if data.plain() => None,
            (false, initiator) => Some(Mptcp::Capable(MpCapable {
                checksum_required: data.agreed.checksums(),
                joins_denied: config.joins.deny,
                sender_key: (!initiator).then_some(data.keys.local),
                receiver_key: None,
                data_len: None,
                checksum: None,
            })),
            (true, true) => {
                // In simultaneous joins the peer's key is not available yet, so our own token
                // replaces it.
                let token = data.keys.peer.unwrap_or(data.keys.local).token();
                Some(Mptcp::JoinSyn(JoinSyn { backup, address_id, token, nonce: handshake.nonce }))
            }
            (true, false) => {
                let hmac = data.keys.peer.map_or(0, |peer| {
                    join_hmac(data.keys.local, peer, handshake.nonce, handshake.peer_nonce).left64()
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

    /// Returns true if our ACKs carry [`Subflow::ack_option`].
    #[inline]
    pub(super) fn has_ack_option(&self, data: &DataLevel) -> bool {
        let told =
            if self.origin().join { self.status.joined() } else { data.agreed.peer_dss_seen() };
        !told
            && self.origin().initiator
            && data.agreed.mode() == Mode::Multipath
            && data.keys.peer.is_some()
    }

    /// Returns the MPTCP option of our ACKs until the peer is known to have the keys.
    #[cold]
    pub(super) fn ack_option(
        &self,
        data: &DataLevel,
        config: &Config,
        data_len: Option<u16>,
        checksum: Option<u16>,
    ) -> Option<Mptcp> {
        let peer = data.keys.peer.filter(|_| self.has_ack_option(data))?;
        if self.origin().join {
            let Handshake { nonce, peer_nonce, .. } = *self.handshake()?;
            let hmac = join_hmac(data.keys.local, peer, nonce, peer_nonce);
            return Some(Mptcp::JoinAck(JoinAck { hmac: hmac.left160() }));
        }
        Some(Mptcp::Capable(MpCapable {
            checksum_required: data.agreed.checksums(),
            joins_denied: config.joins.deny,
            sender_key: Some(data.keys.local),
            receiver_key: Some(peer),
            data_len,
            checksum,
        }))
    }

    /// Returns the peer's proof of a join, if its key is known.
    pub(super) fn peer_hmac(&self, data: &DataLevel) -> Option<JoinHmac> {
        let Handshake { nonce, peer_nonce, .. } = *self.handshake()?;
        Some(join_hmac(data.keys.peer?, data.keys.local, peer_nonce, nonce))
    }

    /// Handles a SYN without an ACK in SYN-SENT (simultaneous open). RFC 8684 has no key exchange
    /// for it, so the connection is plain TCP; a join cannot be opened this way.
    pub(super) fn on_simultaneous_syn(
        &mut self,
        data: &mut DataLevel,
        config: &Config,
        syn: &Segment,
    ) {
        if self.origin().join {
            return;
        }
        data.agreed.step(ModeStep::FallBack);
        self.take_syn(config, syn);
        self.step(Step::SynCrossed);
        self.pending.add(ControlSegment::Syn);
        data.window.update(Dsn::ZERO, u64::from(syn.window));
    }
}

impl Paths {
    /// Returns the MPTCP option of our SYN or SYN/ACK on the subflow at `index`.
    pub(super) fn syn_option(&self, data: &DataLevel, index: usize) -> Option<Mptcp> {
        let subflow = &self.subflows[index];
        let path = self.spec.paths.iter().find(|config| config.path == subflow.address().path());
        let backup = path.is_some_and(|config| config.backup);
        subflow.syn_option(data, &self.spec.config, self.own_id(subflow.address()), backup)
    }
}
