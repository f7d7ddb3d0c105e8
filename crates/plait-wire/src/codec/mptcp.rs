//! The nine options of Multipath TCP (RFC 8684 section 3), kind 30.

use super::error::{EncodeError, Why};
use super::options::{MPTCP, Writer, once};
use crate::{
    AddAddr, DataAck, Dss, Flags, JoinAck, JoinSyn, JoinSynAck, Key, Mapping, MpCapable, Mptcp,
    Options, ResetReason, WireDsn,
};
use alloc::boxed::Box;
use core::net::IpAddr;

const CAPABLE: u8 = 0;
const JOIN: u8 = 1;
const DSS: u8 = 2;
const ADD_ADDR: u8 = 3;
const REMOVE_ADDR: u8 = 4;
const PRIO: u8 = 5;
const FAIL: u8 = 6;
const FAST_CLOSE: u8 = 7;
const RESET: u8 = 8;

const VERSION: u8 = 1;
/// MP_CAPABLE: checksum required.
const FLAG_A: u8 = 0x80;
/// MP_CAPABLE: the extensibility flag, for which no extension is defined.
const FLAG_B: u8 = 0x40;
/// MP_CAPABLE: no further subflows to this address and port.
const FLAG_C: u8 = 0x20;
/// MP_CAPABLE: HMAC-SHA256.
const FLAG_H: u8 = 0x01;
/// DSS flags (RFC 8684 section 3.3).
const DATA_FIN: u8 = 0x10;
const LONG_DSN: u8 = 0x08;
const HAS_MAPPING: u8 = 0x04;
const LONG_ACK: u8 = 0x02;
const HAS_ACK: u8 = 0x01;
/// MP_JOIN and MP_PRIO: the subflow is a backup.
const BACKUP: u8 = 0x01;
/// ADD_ADDR: an echo, which has no HMAC.
const ECHO: u8 = 0x01;
/// MP_TCPRST: the condition is transient.
const TRANSIENT: u8 = 0x01;

/// Returns an error if the option does not belong on a segment with these flags.
pub(super) fn check_place(option: &Mptcp, flags: Flags) -> Result<(), EncodeError> {
    if let Mptcp::Several(options) = option
        && (options.len() < 2 || !distinct(options))
    {
        return Err(EncodeError::Shape("several options"));
    }
    match option.all().iter().find(|option| !belongs(option, flags)) {
        None => Ok(()),
        Some(option) => Err(EncodeError::Place(name(option))),
    }
}

/// Returns true if the options may share a segment: none opens a subflow, and all subtypes differ.
fn distinct(options: &[Mptcp]) -> bool {
    let alone = |option: &Mptcp| {
        use Mptcp::{Capable, JoinAck, JoinSyn, JoinSynAck, Several};
        matches!(option, Capable(_) | JoinSyn(_) | JoinSynAck(_) | JoinAck(_) | Several(_))
    };
    let mut rest = options;
    while let Some((first, behind)) = rest.split_first() {
        if alone(first) || behind.iter().any(|option| name(option) == name(first)) {
            return false;
        }
        rest = behind;
    }
    true
}

/// Returns true if the option, with its fields, belongs on a segment with these flags.
fn belongs(option: &Mptcp, flags: Flags) -> bool {
    let (syn, ack) = (flags.has(Flags::SYN), flags.has(Flags::ACK));
    match option {
        Mptcp::Capable(MpCapable { sender_key: None, .. }) => syn && !ack,
        Mptcp::Capable(MpCapable { receiver_key: None, .. }) => syn && ack,
        Mptcp::JoinSyn(_) => syn && !ack,
        Mptcp::JoinSynAck(_) => syn && ack,
        _ => !syn,
    }
}

fn name(option: &Mptcp) -> &'static str {
    match option {
        Mptcp::Capable(_) => "MP_CAPABLE",
        Mptcp::JoinSyn(_) | Mptcp::JoinSynAck(_) | Mptcp::JoinAck(_) => "MP_JOIN",
        Mptcp::AddAddr(_) => "ADD_ADDR",
        Mptcp::RemoveAddr(_) => "REMOVE_ADDR",
        Mptcp::Prio { .. } => "MP_PRIO",
        Mptcp::Fail(_) => "MP_FAIL",
        Mptcp::FastClose(_) => "MP_FASTCLOSE",
        Mptcp::Reset { .. } => "MP_TCPRST",
        Mptcp::Several(_) => "several options",
    }
}

/// Writes kind, length and subtype, with the four bits beside the subtype.
fn begin(out: &mut Writer<'_>, len: u32, subtype: u8, low: u8) {
    out.put(&[MPTCP, len as u8, subtype << 4 | low]);
}

/// Writes a data sequence number in its short or long form.
fn put_number(
    out: &mut Writer<'_>,
    value: WireDsn,
    long: bool,
    name: &'static str,
) -> Result<(), EncodeError> {
    if long {
        out.put(&value.0.to_be_bytes());
        return Ok(());
    }
    let short = u32::try_from(value.0).map_err(|_| EncodeError::Number(name))?;
    out.put(&short.to_be_bytes());
    Ok(())
}

pub(super) fn write_dss(dss: &Dss, out: &mut Writer<'_>) -> Result<(), EncodeError> {
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    let flags = bit(dss.data_fin, DATA_FIN)
        | dss.data_ack.map_or(0, |ack| HAS_ACK | bit(ack.long, LONG_ACK))
        | dss.mapping.map_or(0, |map| HAS_MAPPING | bit(map.long, LONG_DSN));
    begin(out, dss.len(), DSS, 0);
    out.put(&[flags]);
    if let Some(ack) = dss.data_ack {
        put_number(out, ack.value, ack.long, "DATA_ACK")?;
    }
    if let Some(map) = dss.mapping {
        put_number(out, map.dsn, map.long, "DSN")?;
        out.put(&map.ssn.to_be_bytes());
        out.put(&map.len.to_be_bytes());
        if let Some(checksum) = map.checksum {
            out.put(&checksum.to_be_bytes());
        }
    }
    Ok(())
}

pub(super) fn write(option: &Mptcp, out: &mut Writer<'_>) -> Result<(), EncodeError> {
    let len = option.len();
    match option {
        Mptcp::Capable(capable) => return write_capable(capable, len, out),
        Mptcp::JoinSyn(join) => {
            begin(out, len, JOIN, u8::from(join.backup) * BACKUP);
            out.put(&[join.address_id]);
            out.put(&join.token.to_be_bytes());
            out.put(&join.nonce.to_be_bytes());
        }
        Mptcp::JoinSynAck(join) => {
            begin(out, len, JOIN, u8::from(join.backup) * BACKUP);
            out.put(&[join.address_id]);
            out.put(&join.hmac.to_be_bytes());
            out.put(&join.nonce.to_be_bytes());
        }
        Mptcp::JoinAck(join) => {
            begin(out, len, JOIN, 0);
            out.put(&[0]);
            out.put(&join.hmac);
        }
        Mptcp::AddAddr(add) => write_add_addr(add, len, out),
        Mptcp::RemoveAddr(ids) => {
            if ids.is_empty() || len > crate::MAX_OPTION_BYTES {
                return Err(EncodeError::Shape("a REMOVE_ADDR with so many addresses"));
            }
            begin(out, len, REMOVE_ADDR, 0);
            out.put(ids);
        }
        Mptcp::Prio { backup } => begin(out, len, PRIO, u8::from(*backup) * BACKUP),
        Mptcp::Fail(dsn) => {
            begin(out, len, FAIL, 0);
            out.put(&[0]);
            out.put(&dsn.0.to_be_bytes());
        }
        Mptcp::FastClose(key) => {
            begin(out, len, FAST_CLOSE, 0);
            out.put(&[0]);
            out.put(&key.0.to_be_bytes());
        }
        Mptcp::Reset { reason, transient } => {
            begin(out, len, RESET, u8::from(*transient) * TRANSIENT);
            out.put(&[*reason as u8]);
        }
        // The caller writes the options of `Several` one by one; a nested `Several` is invalid.
        Mptcp::Several(_) => return Err(EncodeError::Shape("several options")),
    }
    Ok(())
}

fn write_capable(capable: &MpCapable, len: u32, out: &mut Writer<'_>) -> Result<(), EncodeError> {
    let MpCapable { sender_key, receiver_key, data_len, checksum, .. } = capable;
    let keys_in_order = receiver_key.is_none() || sender_key.is_some();
    let data_on_keys = data_len.is_none() || receiver_key.is_some();
    let checksum_on_data = checksum.is_none() || data_len.is_some();
    if !(keys_in_order && data_on_keys && checksum_on_data) {
        return Err(EncodeError::Shape("an MP_CAPABLE with such fields"));
    }
    let (required, denied) = (capable.checksum_required, capable.joins_denied);
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    let flags = bit(required, FLAG_A) | bit(denied, FLAG_C) | FLAG_H;
    begin(out, len, CAPABLE, VERSION);
    out.put(&[flags]);
    for key in [sender_key, receiver_key].into_iter().flatten() {
        out.put(&key.0.to_be_bytes());
    }
    for half in [data_len, checksum].into_iter().flatten() {
        out.put(&half.to_be_bytes());
    }
    Ok(())
}

fn write_add_addr(add: &AddAddr, len: u32, out: &mut Writer<'_>) {
    begin(out, len, ADD_ADDR, u8::from(add.hmac.is_none()) * ECHO);
    out.put(&[add.address_id]);
    match add.address {
        IpAddr::V4(address) => out.put(&address.octets()),
        IpAddr::V6(address) => out.put(&address.octets()),
    }
    if let Some(port) = add.port {
        out.put(&port.to_be_bytes());
    }
    if let Some(hmac) = add.hmac {
        out.put(&hmac.to_be_bytes());
    }
}

/// Reads big-endian fields from the front. Missing bytes read as zero; the callers check lengths.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => [0; N],
        }
    }

    fn byte(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    fn half(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn long(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    fn number(&mut self, long: bool) -> WireDsn {
        WireDsn(if long { self.long() } else { u64::from(self.word()) })
    }
}

/// Reads an option without its kind and length.
pub(super) fn read(body: &[u8], flags: Flags, options: &mut Options) -> Result<(), Why> {
    let len = body.len() as u8 + 2;
    let Some((first, _)) = body.split_first() else { return Err(Why::Length(len)) };
    let (subtype, low) = (first >> 4, first & 0x0f);
    let mut fields = Fields(body.get(1..).unwrap_or_default());
    if subtype == DSS {
        let dss = read_dss(len, &mut fields)?;
        return if flags.has(Flags::SYN) { Err(Why::Place) } else { once(&mut options.dss, dss) };
    }
    let option = match (subtype, len) {
        (CAPABLE, _) => read_capable(len, low, &mut fields)?,
        (JOIN, 12 | 16 | 24) => read_join(len, low, &mut fields),
        (ADD_ADDR, _) => read_add_addr(len, low, &mut fields)?,
        (REMOVE_ADDR, 4..) => Mptcp::RemoveAddr(Box::from(fields.0)),
        (PRIO, 3) => Mptcp::Prio { backup: low & BACKUP != 0 },
        (FAIL, 12) => {
            fields.byte();
            Mptcp::Fail(WireDsn(fields.long()))
        }
        (FAST_CLOSE, 12) => {
            fields.byte();
            Mptcp::FastClose(Key(fields.long()))
        }
        (RESET, 4) => {
            Mptcp::Reset { reason: reset_reason(fields.byte()), transient: low & TRANSIENT != 0 }
        }
        (JOIN | REMOVE_ADDR | PRIO | FAIL | FAST_CLOSE | RESET, _) => return Err(Why::Length(len)),
        _ => return Err(Why::Subtype(subtype)),
    };
    if !belongs(&option, flags) {
        return Err(Why::Place);
    }
    let Some(known) = options.mptcp.take() else {
        options.mptcp = Some(Box::new(option));
        return Ok(());
    };
    let mut several = known.all().to_vec();
    several.push(option);
    let fits = distinct(&several);
    options.mptcp = Some(if fits { Box::new(Mptcp::Several(several.into())) } else { known });
    if fits { Ok(()) } else { Err(Why::Twice) }
}

fn read_dss(len: u8, fields: &mut Fields<'_>) -> Result<Dss, Why> {
    if len < 4 {
        return Err(Why::Length(len));
    }
    let flags = fields.byte();
    let has = |bit: u8| flags & bit != 0;
    let data_ack = has(HAS_ACK).then(|| {
        let long = has(LONG_ACK);
        DataAck { value: fields.number(long), long }
    });
    let mapping = has(HAS_MAPPING).then(|| {
        let long = has(LONG_DSN);
        let (dsn, ssn, len) = (fields.number(long), fields.word(), fields.half());
        Mapping { dsn, long, ssn, len, checksum: None }
    });
    let mut dss = Dss { data_ack, mapping, data_fin: has(DATA_FIN) };
    // No flag announces a checksum; only the length does.
    if let Some(map) = &mut dss.mapping
        && fields.0.len() == 2
    {
        map.checksum = Some(fields.half());
    }
    if dss.len() == u32::from(len) { Ok(dss) } else { Err(Why::Length(len)) }
}

fn read_capable(len: u8, version: u8, fields: &mut Fields<'_>) -> Result<Mptcp, Why> {
    if len < 4 {
        return Err(Why::Length(len));
    }
    if version != VERSION {
        return Err(Why::Version(version));
    }
    let flags = fields.byte();
    if flags & FLAG_B != 0 || flags & FLAG_H == 0 {
        return Err(Why::Flags(flags));
    }
    let mut capable = MpCapable {
        checksum_required: flags & FLAG_A != 0,
        joins_denied: flags & FLAG_C != 0,
        ..MpCapable::default()
    };
    match len {
        4 | 12 | 20 | 22 | 24 => {}
        _ => return Err(Why::Length(len)),
    }
    capable.sender_key = (len >= 12).then(|| Key(fields.long()));
    capable.receiver_key = (len >= 20).then(|| Key(fields.long()));
    capable.data_len = (len >= 22).then(|| fields.half());
    capable.checksum = (len >= 24).then(|| fields.half());
    Ok(Mptcp::Capable(capable))
}

fn read_join(len: u8, low: u8, fields: &mut Fields<'_>) -> Mptcp {
    let backup = low & BACKUP != 0;
    let address_id = fields.byte();
    match len {
        12 => {
            let (token, nonce) = (fields.word(), fields.word());
            Mptcp::JoinSyn(JoinSyn { backup, address_id, token, nonce })
        }
        16 => {
            let (hmac, nonce) = (fields.long(), fields.word());
            Mptcp::JoinSynAck(JoinSynAck { backup, address_id, hmac, nonce })
        }
        _ => Mptcp::JoinAck(JoinAck { hmac: fields.take() }),
    }
}

fn read_add_addr(len: u8, low: u8, fields: &mut Fields<'_>) -> Result<Mptcp, Why> {
    let (v6, port, hmac) = match (low & ECHO != 0, len) {
        (true, 8) => (false, false, false),
        (true, 10) => (false, true, false),
        (false, 16) => (false, false, true),
        (false, 18) => (false, true, true),
        (true, 20) => (true, false, false),
        (true, 22) => (true, true, false),
        (false, 28) => (true, false, true),
        (false, 30) => (true, true, true),
        _ => return Err(Why::Length(len)),
    };
    let address_id = fields.byte();
    let address =
        if v6 { IpAddr::from(fields.take::<16>()) } else { IpAddr::from(fields.take::<4>()) };
    let port = port.then(|| fields.half());
    let hmac = hmac.then(|| fields.long());
    Ok(Mptcp::AddAddr(AddAddr { address_id, address, port, hmac }))
}

/// Converts a reason code. Undefined codes are read as 0 (RFC 8684 section 3.6).
fn reset_reason(code: u8) -> ResetReason {
    match code {
        1 => ResetReason::Mptcp,
        2 => ResetReason::Resources,
        3 => ResetReason::Prohibited,
        4 => ResetReason::TooMuchOutstanding,
        5 => ResetReason::Performance,
        6 => ResetReason::Middlebox,
        _ => ResetReason::Unspecified,
    }
}
