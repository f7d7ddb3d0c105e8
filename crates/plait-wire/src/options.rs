use alloc::boxed::Box;
use core::fmt;
use core::net::IpAddr;

use crate::header::{IPV4_HEADER, TCP_HEADER};
use crate::{Key, WireDsn};

/// Maximum length of the options of a TCP header, in bytes (RFC 9293 section 3.1).
pub const MAX_OPTION_BYTES: u32 = 40;

/// The timestamps option (RFC 7323 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamps {
    /// The sender's clock (TSval).
    pub value: u32,
    /// The most recent clock value of the peer (TSecr).
    pub echo: u32,
}

/// Up to four selective acknowledgement blocks (RFC 2018 section 3), most recent first.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    len: u8,
    blocks: [(u32, u32); 4],
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &SackBlocks) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl SackBlocks {
    /// Adds the block from `left` up to, but not including, `right`. Returns false if there are four
    /// blocks already.
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

    /// Returns the blocks, in the order in which they were added.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Returns the number of blocks.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.len as u32
    }

    /// Keeps the first `count` blocks and removes the others.
    pub fn truncate(&mut self, count: u32) {
        self.len = self.len.min(count as u8);
    }
}

/// A DATA_ACK of 4 or 8 bytes (RFC 8684 section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataAck {
    /// Next data sequence number expected. The short form carries the low 32 bits only.
    pub value: WireDsn,
    /// True if all 64 bits are sent.
    pub long: bool,
}

/// Maps subflow bytes to data sequence numbers (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Data sequence number of the first byte. The short form carries the low 32 bits only.
    pub dsn: WireDsn,
    /// True if all 64 bits of the DSN are sent.
    pub long: bool,
    /// Subflow sequence number of the first byte, relative to the subflow's first SYN.
    pub ssn: u32,
    /// Bytes covered, DATA_FIN included.
    pub len: u16,
    /// DSS checksum, if the connection uses checksums.
    pub checksum: Option<u16>,
}

/// The data sequence signal (RFC 8684 section 3.3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dss {
    /// Connection-level acknowledgement, if the option has one.
    pub data_ack: Option<DataAck>,
    /// Mapping of the payload, if the option has one.
    pub mapping: Option<Mapping>,
    /// DATA_FIN: the mapping's last byte is the end of the data.
    pub data_fin: bool,
}

/// MP_CAPABLE (RFC 8684 section 3.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MpCapable {
    /// Flag A: the DSS checksum is required.
    pub checksum_required: bool,
    /// Flag C: the sender accepts no further subflow to the source address and port of this segment.
    pub joins_denied: bool,
    /// Key of the segment's sender; absent in a SYN.
    pub sender_key: Option<Key>,
    /// Key of the segment's receiver; present from the third ACK on.
    pub receiver_key: Option<Key>,
    /// Length of the payload in bytes, on the first data segment.
    pub data_len: Option<u16>,
    /// DSS checksum of the payload, if the connection uses checksums.
    pub checksum: Option<u16>,
}

/// MP_JOIN on a SYN (RFC 8684 section 3.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinSyn {
    /// True if the sender requests that this subflow be a backup.
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
    /// True if the sender requests that this subflow be a backup.
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
    /// Port, if it differs from the port of the connection.
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

/// Any MPTCP option except the DSS, which has its own field (RFC 8684 section 3).
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
    /// Subtype 4: identifiers of the addresses that are no longer available.
    RemoveAddr(Box<[u8]>),
    /// Subtype 5: changes the backup priority of this subflow.
    Prio {
        /// Flag B: true if the sender requests that this subflow be a backup.
        backup: bool,
    },
    /// Subtype 6: the DSN of the data whose checksum failed.
    Fail(WireDsn),
    /// Subtype 7: the receiver's key.
    FastClose(Key),
    /// Subtype 8.
    Reset {
        /// Reason code.
        reason: ResetReason,
        /// Flag T: the condition is transient, so a new subflow may succeed.
        transient: bool,
    },
    /// Two or more options of an established connection, each of another subtype. For example, a
    /// peer may send REMOVE_ADDR and MP_PRIO in one segment. Plait sends one option per segment.
    Several(Box<[Mptcp]>),
}

/// The options of a segment. Common options are stored inline. Options of handshakes and of
/// address management are boxed to keep the struct small.
///
/// # Examples
/// ```
/// use plait_wire::{DataAck, Dss, Mptcp, Options, WireDsn};
///
/// let data_ack = Some(DataAck { value: WireDsn(1_000), long: false });
/// let options = Options {
///     dss: Some(Dss { data_ack, ..Dss::default() }),
///     mptcp: Some(Box::new(Mptcp::Prio { backup: true })),
///     ..Options::default()
/// };
/// // A DSS of 8 bytes and an MP_PRIO of 3 bytes, in whole words.
/// assert_eq!(options.header_len(), 12);
/// assert!(options.fits());
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Maximum segment size (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// The sender agrees on joins right after the SYN/ACK. RFC 8684 section 3.2 allows them later only.
    /// The option is an experiment of plait (RFC 6994): kind 253 with the identifier 0x504A. Other stacks ignore it.
    pub early_joins: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// Data sequence signal.
    pub dss: Option<Dss>,
    /// Any other MPTCP option. It may share a segment with a DSS.
    pub mptcp: Option<Box<Mptcp>>,
}

impl Dss {
    /// Returns the length of the option in bytes, without padding.
    #[must_use]
    pub const fn len(&self) -> u32 {
        let ack = match &self.data_ack {
            None => 0,
            Some(ack) if ack.long => 8,
            Some(_) => 4,
        };
        let map = match &self.mapping {
            None => 0,
            Some(map) => {
                (if map.long { 14 } else { 10 }) + if map.checksum.is_some() { 2 } else { 0 }
            }
        };
        4 + ack + map
    }

    /// Returns the length in whole words. A checksum fills the last word of a mapping.
    const fn padded_len(&self) -> u32 {
        let ack = match &self.data_ack {
            None => 0,
            Some(ack) => 4 + 4 * ack.long as u32,
        };
        let map = match &self.mapping {
            None => 0,
            Some(map) => 12 + 4 * map.long as u32,
        };
        4 + ack + map
    }

    /// Returns true if the option has no DATA_ACK, no mapping and no DATA_FIN.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.data_ack.is_none() && self.mapping.is_none() && !self.data_fin
    }
}

impl Mptcp {
    /// Returns the length in bytes (RFC 8684 section 3), without padding.
    #[must_use]
    pub fn len(&self) -> u32 {
        match self {
            Mptcp::Capable(capable) => {
                let keys = u32::from(capable.sender_key.is_some())
                    + u32::from(capable.receiver_key.is_some());
                let data = match capable.data_len {
                    None => 0,
                    Some(_) if capable.checksum.is_some() => 4,
                    Some(_) => 2,
                };
                4 + 8 * keys + data
            }
            Mptcp::JoinSyn(_) => 12,
            Mptcp::JoinSynAck(_) => 16,
            Mptcp::JoinAck(_) => 24,
            Mptcp::AddAddr(add) => {
                let address = if add.address.is_ipv4() { 4 } else { 16 };
                4 + address + 2 * u32::from(add.port.is_some()) + 8 * u32::from(add.hmac.is_some())
            }
            Mptcp::RemoveAddr(ids) => 3 + ids.len() as u32,
            Mptcp::Prio { .. } => 3,
            Mptcp::Fail(_) => 12,
            Mptcp::FastClose(_) => 12,
            Mptcp::Reset { .. } => 4,
            Mptcp::Several(options) => options.iter().map(Mptcp::len).sum(),
        }
    }

    /// Returns the length in the padded form, in which each option takes whole words.
    #[cold]
    fn padded_len(&self) -> u32 {
        self.all().iter().map(|option| words(option.len())).sum()
    }

    /// Returns the options of `Several`, or this option alone.
    #[must_use]
    pub fn all(&self) -> &[Mptcp] {
        match self {
            Mptcp::Several(options) => options,
            one => core::slice::from_ref(one),
        }
    }

    /// Returns false: an option has at least its header.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// Rounds `len` up to whole 32-bit words.
const fn words(len: u32) -> u32 {
    len.div_ceil(4) * 4
}

impl Options {
    /// Removes every option.
    pub fn clear(&mut self) {
        self.clear_inline();
        self.mptcp = None;
    }

    /// Removes every option except the boxed MPTCP option.
    #[inline]
    pub fn clear_inline(&mut self) {
        // Field by field, to avoid writing the storage of the SACK blocks.
        self.mss = None;
        self.window_scale = None;
        self.sack_permitted = false;
        self.early_joins = false;
        self.timestamps = None;
        self.sack.truncate(0);
        self.dss = None;
    }

    /// Returns the length of all options, each padded with NOPs to whole words as in common stacks.
    ///
    /// Lengths in bytes: MSS 4, window scale 4, early joins 4, timestamps 12, SACK 4 + 8n. SACK permitted shares the
    /// 12 bytes of the timestamps on a SYN. MPTCP options are rounded up to whole words.
    #[must_use]
    #[inline]
    pub fn padded_len(&self) -> u32 {
        let clock = if self.timestamps.is_some() { 12 } else { 0 };
        let sack = match self.sack.count() {
            0 => 0,
            n => 4 + 8 * n,
        };
        let dss = self.dss.as_ref().map_or(0, Dss::padded_len);
        // One branch for all of them.
        let offers = self.mss.is_some() | self.window_scale.is_some() | self.sack_permitted;
        let offers = offers | self.early_joins | self.mptcp.is_some();
        let rare = if offers { self.padded_len_of_rare() } else { 0 };
        clock + sack + dss + rare
    }

    /// Returns the padded length of the options that few segments have.
    #[cold]
    fn padded_len_of_rare(&self) -> u32 {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let permitted = if self.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        let early = if self.early_joins { 4 } else { 0 };
        let mptcp = self.mptcp.as_ref().map_or(0, |option| option.padded_len());
        mss + scale + permitted + early + mptcp
    }

    /// Returns the length in bytes of all options back to back, without padding.
    #[must_use]
    pub fn raw_len(&self) -> u32 {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 3 } else { 0 };
        let permitted = if self.sack_permitted { 2 } else { 0 };
        let early = if self.early_joins { 4 } else { 0 };
        let clock = if self.timestamps.is_some() { 10 } else { 0 };
        let sack = match self.sack.count() {
            0 => 0,
            n => 2 + 8 * n,
        };
        let dss = self.dss.map_or(0, |dss| dss.len());
        let mptcp = self.mptcp.as_ref().map_or(0, |option| option.len());
        mss + scale + permitted + early + clock + sack + dss + mptcp
    }

    /// Returns the bytes that the options occupy in the header, always whole words.
    ///
    /// The codec follows this rule in both directions. Options are written in the padded form, which
    /// other stacks and middleboxes know from Linux. If the padded form exceeds
    /// [`MAX_OPTION_BYTES`], the packed form is used. It has options back to back without NOPs, then
    /// zeros (end of option list, RFC 9293 section 3.1) up to the next word. In the packed form, a DSS
    /// with a 4-byte DSN and a 4-byte DATA_ACK leaves room for one SACK block. An ADD_ADDR for an IPv6
    /// address with a port then fits beside timestamps.
    #[must_use]
    #[inline]
    pub fn header_len(&self) -> u32 {
        let padded = self.padded_len();
        if padded <= MAX_OPTION_BYTES { padded } else { words(self.raw_len()) }
    }

    /// Returns true if the options need the packed form (see [`Options::header_len`]).
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.padded_len() > MAX_OPTION_BYTES
    }

    /// Returns true if the options fit a TCP header in the padded or the packed form.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.header_len() <= MAX_OPTION_BYTES
    }
}

/// Returns the payload of a full segment in bytes.
///
/// It is `mtu` less the headers of IPv4 and TCP (40 bytes) and less `options_padded` bytes of
/// options, or zero if nothing is left. With an MTU of 1500 bytes it is 1448 for TCP with
/// timestamps, and 1428 with a DSS of 20 bytes in addition.
#[must_use]
pub const fn payload_per_segment(mtu: u32, options_padded: u32) -> u32 {
    mtu.saturating_sub(IPV4_HEADER + TCP_HEADER).saturating_sub(options_padded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;
    use alloc::boxed::Box;
    use alloc::vec;
    use core::net::{Ipv4Addr, Ipv6Addr};

    const CLOCK: Option<Timestamps> = Some(Timestamps { value: 1, echo: 2 });

    fn ack(long: bool) -> Option<DataAck> {
        Some(DataAck { value: WireDsn(7), long })
    }

    fn map(long: bool, checksum: Option<u16>) -> Option<Mapping> {
        Some(Mapping { dsn: WireDsn(1), long, ssn: 1, len: 1000, checksum })
    }

    fn dss(data_ack: Option<DataAck>, mapping: Option<Mapping>) -> Options {
        let dss = Some(Dss { data_ack, mapping, data_fin: false });
        Options { timestamps: CLOCK, dss, ..Options::default() }
    }

    fn sacked(mut options: Options, blocks: u32) -> Options {
        for n in 0..blocks {
            assert!(options.sack.push(10 * n, 10 * n + 5));
        }
        options
    }

    fn capable(keys: usize, data_len: Option<u16>, checksum_required: bool) -> Mptcp {
        let checksum = data_len.filter(|_| checksum_required).map(|_| 1);
        let key = |wanted| (keys >= wanted).then_some(Key(1));
        let (sender_key, receiver_key) = (key(1), key(2));
        Mptcp::Capable(MpCapable {
            checksum_required,
            joins_denied: false,
            sender_key,
            receiver_key,
            data_len,
            checksum,
        })
    }

    fn add_addr(address: IpAddr, port: Option<u16>, hmac: Option<u64>) -> Mptcp {
        Mptcp::AddAddr(AddAddr { address_id: 2, address, port, hmac })
    }

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    /// Options of a segment of an established connection, with timestamps.
    fn with(option: Mptcp) -> Options {
        Options { timestamps: CLOCK, mptcp: Some(Box::new(option)), ..Options::default() }
    }

    /// A SYN or SYN/ACK as Linux sends it.
    fn syn(option: Mptcp) -> Options {
        let (mss, window_scale) = (Some(1460), Some(10));
        Options { mss, window_scale, sack_permitted: true, ..with(option) }
    }

    /// R2, R4, R5, R6, R7, R20, R21, R28, R43: every row of the option table of the protocol
    /// notes (section 1.9).
    #[test]
    fn the_option_table() {
        let join_syn = JoinSyn { backup: false, address_id: 1, token: 1, nonce: 1 };
        let join_syn_ack = JoinSynAck { backup: false, address_id: 1, hmac: 1, nonce: 1 };
        let acked = |option, long| Options { dss: dss(ack(long), None).dss, ..with(option) };
        let table = [
            ("SYN", syn(capable(0, None, false)), 24, 23),
            ("SYN/ACK", syn(capable(1, None, false)), 32, 31),
            ("third ACK", with(capable(2, None, false)), 32, 30),
            ("first data", with(capable(2, Some(1000), false)), 36, 32),
            ("first data with checksum", with(capable(2, Some(1000), true)), 36, 34),
            ("JOIN SYN", syn(Mptcp::JoinSyn(join_syn)), 32, 31),
            ("JOIN SYN/ACK", syn(Mptcp::JoinSynAck(join_syn_ack)), 36, 35),
            ("JOIN ACK", with(Mptcp::JoinAck(JoinAck { hmac: [0; 20] })), 36, 34),
            ("data 8, ack 4", dss(ack(false), map(true, None)), 36, 32),
            ("data 8, ack 8", dss(ack(true), map(true, None)), 40, 36),
            ("data 8, ack 8, checksum", dss(ack(true), map(true, Some(1))), 40, 38),
            ("data 4, ack 4", dss(ack(false), map(false, None)), 32, 28),
            ("data 4, ack 4, checksum", dss(ack(false), map(false, Some(1))), 32, 30),
            ("pure ack 4", dss(ack(false), None), 20, 18),
            ("pure ack 8", dss(ack(true), None), 24, 22),
            ("ADD_ADDR v4", acked(add_addr(V4, None, Some(1)), false), 36, 34),
            ("ADD_ADDR v4 and port", acked(add_addr(V4, Some(80), Some(1)), false), 40, 36),
            ("ADD_ADDR v6", with(add_addr(V6, None, Some(1))), 40, 38),
            ("MP_FAIL", acked(Mptcp::Fail(WireDsn(1)), false), 32, 30),
            ("MP_FASTCLOSE", acked(Mptcp::FastClose(Key(1)), false), 32, 30),
        ];
        for (name, options, padded, raw) in table {
            assert_eq!(options.padded_len(), padded, "{name}, padded");
            assert_eq!(options.raw_len(), raw, "{name}, raw");
            assert_eq!(options.header_len(), padded, "{name}, in the header");
            assert!(options.fits() && !options.is_packed(), "{name}");
        }
    }

    /// R43, R47, R49: the other options.
    #[test]
    fn other_option_lengths() {
        let table = [
            (Mptcp::Prio { backup: true }, 3),
            (Mptcp::RemoveAddr(vec![1].into()), 4),
            (Mptcp::RemoveAddr(vec![1, 2, 3].into()), 6),
            (Mptcp::Reset { reason: ResetReason::Mptcp, transient: false }, 4),
            (add_addr(V4, None, None), 8),
            (add_addr(V4, Some(80), None), 10),
            (add_addr(V6, None, None), 20),
            (add_addr(V6, Some(80), None), 22),
            (add_addr(V6, Some(80), Some(1)), 30),
        ];
        for (option, len) in table {
            assert_eq!(option.len(), len, "{option:?}");
        }
    }

    /// R2, R28: how many SACK blocks fit beside each kind of DSS, padded and packed.
    #[test]
    fn what_room_is_left_for_sack() {
        let table = [
            ("data 4, ack 4", dss(ack(false), map(false, None)), 0, 1),
            ("data 4, ack 4, checksum", dss(ack(false), map(false, Some(1))), 0, 1),
            ("data 8, ack 4", dss(ack(false), map(true, None)), 0, 0),
            ("data 8, ack 8", dss(ack(true), map(true, None)), 0, 0),
            ("pure ack 4", dss(ack(false), None), 2, 2),
            ("pure ack 8", dss(ack(true), None), 1, 2),
            ("no DSS", Options { timestamps: CLOCK, ..Options::default() }, 3, 3),
        ];
        for (name, options, padded, packed) in table {
            let most = |fits: fn(&Options) -> bool| {
                (0..=4).rev().find(|n| fits(&sacked(options.clone(), *n)))
            };
            assert_eq!(most(|options| !options.is_packed()), Some(padded), "{name}, padded");
            assert_eq!(most(Options::fits), Some(packed), "{name}, packed");
        }
    }

    /// R2.
    #[test]
    fn packed_options_still_take_whole_words() {
        // 10 + 18 + 10 bytes.
        let data = sacked(dss(ack(false), map(false, None)), 1);
        assert_eq!((data.padded_len(), data.raw_len(), data.header_len()), (44, 38, 40));
        // 10 + 30 bytes.
        let address = with(add_addr(V6, Some(80), Some(1)));
        assert_eq!((address.padded_len(), address.raw_len(), address.header_len()), (44, 40, 40));
        assert!(data.is_packed() && data.fits() && address.is_packed() && address.fits());
        // 10 + 30 + 8 bytes exceed both forms.
        let both = Options { dss: dss(ack(false), None).dss, ..address };
        assert!(!both.fits());
    }

    #[test]
    fn payload_of_a_full_segment() {
        let plain = Options { timestamps: CLOCK, ..Options::default() };
        assert_eq!(payload_per_segment(1500, plain.padded_len()), 1448);
        let short = dss(ack(false), map(false, None));
        assert_eq!(payload_per_segment(1500, short.padded_len()), 1428);
        assert_eq!(payload_per_segment(1500, 0), 1460);
        assert_eq!(payload_per_segment(50, 32), 0);
    }

    #[test]
    fn the_packet_has_the_length_of_its_header() {
        let options = sacked(dss(ack(false), map(false, None)), 1);
        let segment = Segment { options, ..Segment::default() };
        assert_eq!(segment.ip_len(), 80);
    }
}
