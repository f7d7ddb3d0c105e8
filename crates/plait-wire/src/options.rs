use alloc::boxed::Box;
use core::net::IpAddr;

use crate::Key;

/// Room for options in a TCP header (RFC 9293 section 3.1).
pub const MAX_OPTION_BYTES: u32 = 40;

/// The timestamps option (RFC 7323 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamps {
    /// Sender's clock.
    pub value: u32,
    /// The peer's clock as last seen.
    pub echo: u32,
}

/// Up to four selective acknowledgement blocks (RFC 2018 section 3), most recent first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlocks {
    len: u8,
    blocks: [(u32, u32); 4],
}

impl SackBlocks {
    /// Adds a block from `left` up to, not including, `right`; false where there is no room.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        match self.blocks.get_mut(usize::from(self.len)) {
            None => false,
            Some(block) => {
                *block = (left, right);
                self.len += 1;
                true
            }
        }
    }

    /// The blocks in order.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Number of blocks.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.len as u32
    }

    /// Keeps the first `count` blocks.
    pub fn truncate(&mut self, count: u32) {
        self.len = self.len.min(count as u8);
    }
}

/// A DATA_ACK of 4 or 8 bytes (RFC 8684 section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataAck {
    /// Next data sequence number expected; the low 32 bits count in the short form.
    pub value: u64,
    /// Whether all 64 bits are sent.
    pub long: bool,
}

/// Which data a run of subflow bytes carries (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Data sequence number of the first byte; the low 32 bits count in the short form.
    pub dsn: u64,
    /// Whether all 64 bits of the DSN are sent.
    pub long: bool,
    /// Subflow sequence number of the first byte, relative to the subflow's first SYN.
    pub ssn: u32,
    /// Bytes covered, DATA_FIN included.
    pub len: u16,
    /// DSS checksum, where the connection uses it.
    pub checksum: Option<u16>,
}

/// The data sequence signal (RFC 8684 section 3.3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dss {
    /// Connection-level acknowledgement.
    pub data_ack: Option<DataAck>,
    /// Mapping of the payload.
    pub mapping: Option<Mapping>,
    /// DATA_FIN: the mapping's last byte is the end of the data.
    pub data_fin: bool,
}

/// MP_CAPABLE (RFC 8684 section 3.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MpCapable {
    /// Flag A: the DSS checksum is required.
    pub checksum_required: bool,
    /// Key of the segment's sender; absent in a SYN.
    pub sender_key: Option<Key>,
    /// Key of the segment's receiver; present from the third ACK on.
    pub receiver_key: Option<Key>,
    /// Length of the data that rides along, on the first data segment.
    pub data_len: Option<u16>,
}

/// MP_JOIN on a SYN (RFC 8684 section 3.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinSyn {
    /// The sender asks to use this subflow as a backup.
    pub backup: bool,
    /// Identifier of the sender's address.
    pub address_id: u8,
    /// Token of the connection to join.
    pub token: u32,
    /// The sender's random number.
    pub nonce: u32,
}

/// MP_JOIN on a SYN/ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinSynAck {
    /// The sender asks to use this subflow as a backup.
    pub backup: bool,
    /// Identifier of the sender's address.
    pub address_id: u8,
    /// Leftmost 64 bits of the sender's HMAC.
    pub hmac: u64,
    /// The sender's random number.
    pub nonce: u32,
}

/// MP_JOIN on the third ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinAck {
    /// Leftmost 160 bits of the sender's HMAC.
    pub hmac: [u8; 20],
}

/// ADD_ADDR (RFC 8684 section 3.4.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddAddr {
    /// Identifier of the address.
    pub address_id: u8,
    /// The address.
    pub address: IpAddr,
    /// A port other than the connection's own.
    pub port: Option<u16>,
    /// Rightmost 64 bits of the HMAC; absent in an echo.
    pub hmac: Option<u64>,
}

/// Why a subflow was reset (MP_TCPRST, RFC 8684 section 3.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResetReason {
    /// Code 0.
    Unspecified,
    /// Code 1: an error in the MPTCP protocol.
    Mptcp,
    /// Code 2: lack of resources.
    Resources,
    /// Code 3: administratively prohibited.
    Prohibited,
    /// Code 4: too much outstanding data.
    TooMuchOutstanding,
    /// Code 5: unacceptable performance.
    Performance,
    /// Code 6: interference by a middlebox.
    Middlebox,
}

/// Every MPTCP option but the DSS, which has a place of its own (RFC 8684 section 3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mptcp {
    /// Subtype 0.
    Capable(MpCapable),
    /// Subtype 1 on a SYN.
    JoinSyn(JoinSyn),
    /// Subtype 1 on a SYN/ACK.
    JoinSynAck(JoinSynAck),
    /// Subtype 1 on the third ACK.
    JoinAck(JoinAck),
    /// Subtype 3.
    AddAddr(AddAddr),
    /// Subtype 4: the addresses with these identifiers are gone.
    RemoveAddr(Box<[u8]>),
    /// Subtype 5: whether the sender asks to use this subflow as a backup.
    Prio {
        /// Flag B.
        backup: bool,
    },
    /// Subtype 6: the DSN at which a checksum failed.
    Fail(u64),
    /// Subtype 7: the receiver's key.
    FastClose(Key),
    /// Subtype 8.
    Reset {
        /// Why.
        reason: ResetReason,
        /// Flag T: trying again may help.
        transient: bool,
    },
}

/// The options of a segment. Small and inline; what only appears in handshakes and address
/// management is boxed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Maximum segment size (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// Data sequence signal.
    pub dss: Option<Dss>,
    /// Any other MPTCP option; it may share a segment with a DSS.
    pub mptcp: Option<Box<Mptcp>>,
}

impl Dss {
    /// Bytes of the option.
    #[must_use]
    pub const fn len(&self) -> u32 {
        let ack = match self.data_ack {
            None => 0,
            Some(ack) if ack.long => 8,
            Some(_) => 4,
        };
        let map = match self.mapping {
            None => 0,
            Some(map) => {
                (if map.long { 14 } else { 10 }) + if map.checksum.is_some() { 2 } else { 0 }
            }
        };
        4 + ack + map
    }

    /// Whether the option says nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.data_ack.is_none() && self.mapping.is_none() && !self.data_fin
    }
}

impl Mptcp {
    /// Bytes of the option (RFC 8684 section 3; table in section 1.9 of the protocol notes).
    #[must_use]
    pub fn len(&self) -> u32 {
        match self {
            Mptcp::Capable(capable) => {
                let keys =
                    capable.sender_key.is_some() as u32 + capable.receiver_key.is_some() as u32;
                let data = match capable.data_len {
                    None => 0,
                    Some(_) if capable.checksum_required => 4,
                    Some(_) => 2,
                };
                4 + 8 * keys + data
            }
            Mptcp::JoinSyn(_) => 12,
            Mptcp::JoinSynAck(_) => 16,
            Mptcp::JoinAck(_) => 24,
            Mptcp::AddAddr(add) => {
                let address = if add.address.is_ipv4() { 4 } else { 16 };
                4 + address + 2 * add.port.is_some() as u32 + 8 * add.hmac.is_some() as u32
            }
            Mptcp::RemoveAddr(ids) => 3 + ids.len() as u32,
            Mptcp::Prio { .. } => 3,
            Mptcp::Fail(_) => 12,
            Mptcp::FastClose(_) => 12,
            Mptcp::Reset { .. } => 4,
        }
    }

    /// Never: an option has at least its header.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// `len` rounded up to whole 32-bit words.
const fn words(len: u32) -> u32 {
    len.div_ceil(4) * 4
}

impl Options {
    /// Bytes of all options, each padded with NOPs to whole words as common stacks do: MSS 4,
    /// SACK permitted and timestamps share 12 on a SYN, window scale 4, SACK 4 + 8n, MPTCP
    /// options rounded up.
    #[must_use]
    pub fn padded_len(&self) -> u32 {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let clock = match (self.timestamps.is_some(), self.sack_permitted) {
            (true, _) => 12,
            (false, true) => 4,
            (false, false) => 0,
        };
        let sack = match self.sack.count() {
            0 => 0,
            n => 4 + 8 * n,
        };
        let dss = self.dss.map_or(0, |dss| words(dss.len()));
        let mptcp = self.mptcp.as_ref().map_or(0, |option| words(option.len()));
        mss + scale + clock + sack + dss + mptcp
    }

    /// Whether the options fit a TCP header.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.padded_len() <= MAX_OPTION_BYTES
    }
}
