//! MP_CAPABLE and MP_JOIN (RFC 8684 sections 3.1 and 3.2), each on TCP's three-way handshake.

use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::address::Address;
use crate::tcp::mptcp_handshake::HandshakeOptions;
use plait_base::SubflowId;
use plait_wire::{Mptcp, Segment, WireSeq};

/// How a connection is opened.
pub(crate) enum Opening<'a> {
    /// This end dials.
    Active { address: Address },
    /// A SYN arrived. Its address may have been used before, up to the sequence number `after`.
    Passive { address: Address, syn: &'a Segment, after: Option<WireSeq> },
    /// A SYN arrived and is answered without state (RFC 4987 section 3.6). The initial sequence
    /// number is the cookie `iss`.
    Stateless { address: Address, syn: &'a Segment, iss: WireSeq },
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

impl Paths {
    /// Returns the MPTCP option of our SYN or SYN/ACK on the subflow `id`.
    pub(super) fn syn_option(&self, data: &DataLevel, id: SubflowId) -> Option<Mptcp> {
        let subflow = &self.subflows[id];
        let path = self.spec.path(subflow.address().path());
        let backup = path.is_some_and(|config| config.backup);
        let options = HandshakeOptions { subflow, data, config: &self.spec.config };
        options.of_syn(self.own_id(subflow.address()), backup)
    }
}
