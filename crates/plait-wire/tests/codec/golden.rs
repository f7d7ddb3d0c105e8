//! Bytes that a stock Linux 6.18 sent or accepted (protocol notes, sections 1 and 3).

use super::{hex, option_bytes, options_of};
use plait_wire::codec::{Headers, TcpChecksum, Verify, encode, parse, parse_into};
use plait_wire::{
    AddAddr, DataAck, Dss, Flags, JoinAck, JoinSyn, JoinSynAck, Key, Mapping, MpCapable, Mptcp,
    Options, ResetReason, Segment, Timestamps, WireDsn,
};

const SYN_ACK: Flags = Flags(0x12);
const CLIENT: Key = Key(0x7396_2198_d473_a3d9);
const SERVER: Key = Key(0x683e_36b2_5f2d_bc92);

fn capable() -> MpCapable {
    MpCapable::default()
}

/// Options of one MPTCP option.
fn with(option: Mptcp) -> Options {
    Options { mptcp: Some(Box::new(option)), ..Options::default() }
}

/// R1, R5: the SYN of the kernel parses and encodes byte for byte, including its checksums.
#[test]
fn the_syn_of_a_kernel() {
    let packet =
        hex("45000040c0d540003f0664310a6201010a4d0102 df1611514ced7aec00000000b002faf085af0000
         020405b4 0402 080a74ea547600000000 01 03030a 1e040101");
    let (headers, segment) = parse(&packet, Verify::Checksum).unwrap();
    let expected = Headers {
        hop_limit: 63,
        ident: 0xc0d5,
        ..Headers::new([10, 98, 1, 1].into(), [10, 77, 1, 2].into())
    };
    assert_eq!(headers, expected);
    assert_eq!((segment.src_port, segment.dst_port), (57_110, 4_433));
    assert_eq!((segment.seq, segment.ack, segment.window), (0x4ced_7aec, 0, 64_240));
    assert_eq!(segment.flags, Flags::SYN);
    let options = Options {
        mss: Some(1460),
        window_scale: Some(10),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 0x74ea_5476, echo: 0 }),
        ..with(Mptcp::Capable(capable()))
    };
    assert_eq!(segment.options, options);
    let mut again = Vec::new();
    encode(&headers, &segment, TcpChecksum::Full, &mut again).unwrap();
    assert_eq!(again, packet);
}

/// R6: the SYN/ACK of plait that the kernel accepted.
#[test]
fn the_syn_ack_that_a_kernel_took() {
    let bytes = hex("02040578 0402 080a001a55d074ea5476 01030307 1e0c0101 683e36b25f2dbc92");
    let mptcp = Mptcp::Capable(MpCapable { sender_key: Some(SERVER), ..capable() });
    let options = Options {
        mss: Some(1400),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 0x001a_55d0, echo: 0x74ea_5476 }),
        ..with(mptcp)
    };
    let segment = Segment { flags: SYN_ACK, options, ..Segment::default() };
    assert_eq!(option_bytes(&segment), bytes);
    assert_eq!(options_of(SYN_ACK, &bytes).0, segment.options);
}

/// A SYN/ACK of plait to plait. One word of the option space is left.
#[test]
fn a_syn_ack_that_agrees_on_early_joins() {
    let bytes =
        hex("02040578 0402 080a001a55d074ea5476 01030307 fd04504a 1e0c0101 683e36b25f2dbc92");
    let mptcp = Mptcp::Capable(MpCapable { sender_key: Some(SERVER), ..capable() });
    let options = Options {
        mss: Some(1400),
        window_scale: Some(7),
        sack_permitted: true,
        early_joins: true,
        timestamps: Some(Timestamps { value: 0x001a_55d0, echo: 0x74ea_5476 }),
        ..with(mptcp)
    };
    let segment = Segment { flags: SYN_ACK, options, ..Segment::default() };
    assert_eq!((segment.options.header_len(), segment.options.raw_len()), (36, 35));
    assert_eq!(option_bytes(&segment), bytes);
    assert_eq!(options_of(SYN_ACK, &bytes).0, segment.options);
}

fn keys(data_len: Option<u16>, checksum: Option<u16>) -> MpCapable {
    let (sender_key, receiver_key) = (Some(CLIENT), Some(SERVER));
    MpCapable { sender_key, receiver_key, data_len, checksum, ..capable() }
}

/// Every MPTCP option in every shape and length, as bytes. They are from the kernel if the notes have
/// them, and otherwise composed by hand from the figures of RFC 8684.
///
/// R1, R5, R6, R7, R12, R14, R20, R21, R43, R46, R47, R49, R53, R55.
#[test]
fn every_option_in_every_shape() {
    let v4 = [10, 77, 2, 2].into();
    let v6 = "2001:db8::2".parse().unwrap();
    let add = |address, port, hmac| Mptcp::AddAddr(AddAddr { address_id: 1, address, port, hmac });
    let hmac = Some(0x3fdc_1272_ab68_df56);
    let left160 = hex("762cdba99df52c78fed0a4bc79bd969ef39a5bac").try_into().unwrap();
    let checked = MpCapable { checksum_required: true, ..keys(None, None) };
    let denied = MpCapable { joins_denied: true, sender_key: Some(SERVER), ..capable() };
    let join_syn = JoinSyn { backup: false, address_id: 1, token: 0x09e0_8e65, nonce: 0xf939_1820 };
    let join_syn_ack = JoinSynAck {
        backup: false,
        address_id: 1,
        hmac: 0x2f9f_de68_e236_3546,
        nonce: 0xceec_a092,
    };
    let keys_hex = "73962198d473a3d9 683e36b25f2dbc92";
    let reset = |reason, transient| Mptcp::Reset { reason, transient };
    let table = [
        ("1e040101".into(), Flags::SYN, Mptcp::Capable(capable())),
        (format!("1e140101 {keys_hex}"), Flags::ACK, Mptcp::Capable(keys(None, None))),
        (format!("1e140181 {keys_hex}"), Flags::ACK, Mptcp::Capable(checked)),
        (format!("1e160101 {keys_hex} 03e8"), Flags::ACK, Mptcp::Capable(keys(Some(1000), None))),
        (
            format!("1e180101 {keys_hex} 03e8 abcd"),
            Flags::ACK,
            Mptcp::Capable(keys(Some(1000), Some(0xabcd))),
        ),
        ("1e0c0121 683e36b25f2dbc92".into(), SYN_ACK, Mptcp::Capable(denied)),
        ("1e0c1001 09e08e65 f9391820".into(), Flags::SYN, Mptcp::JoinSyn(join_syn.clone())),
        (
            "1e0c1101 09e08e65 f9391820".into(),
            Flags::SYN,
            Mptcp::JoinSyn(JoinSyn { backup: true, ..join_syn }),
        ),
        (
            "1e101001 2f9fde68e2363546 ceeca092".into(),
            SYN_ACK,
            Mptcp::JoinSynAck(join_syn_ack.clone()),
        ),
        (
            "1e101101 2f9fde68e2363546 ceeca092".into(),
            SYN_ACK,
            Mptcp::JoinSynAck(JoinSynAck { backup: true, ..join_syn_ack }),
        ),
        (
            "1e181000 762cdba99df52c78fed0a4bc79bd969ef39a5bac".into(),
            Flags::ACK,
            Mptcp::JoinAck(JoinAck { hmac: left160 }),
        ),
        ("1e083101 0a4d0202".into(), Flags::ACK, add(v4, None, None)),
        ("1e0a3101 0a4d0202 1151".into(), Flags::ACK, add(v4, Some(4433), None)),
        ("1e103001 0a4d0202 3fdc1272ab68df56".into(), Flags::ACK, add(v4, None, hmac)),
        ("1e123001 0a4d0202 1151 3fdc1272ab68df56".into(), Flags::ACK, add(v4, Some(4433), hmac)),
        ("1e143101 20010db8000000000000000000000002".into(), Flags::ACK, add(v6, None, None)),
        (
            "1e163101 20010db8000000000000000000000002 1151".into(),
            Flags::ACK,
            add(v6, Some(4433), None),
        ),
        (
            "1e1c3001 20010db8000000000000000000000002 3fdc1272ab68df56".into(),
            Flags::ACK,
            add(v6, None, hmac),
        ),
        (
            "1e1e3001 20010db8000000000000000000000002 1151 3fdc1272ab68df56".into(),
            Flags::ACK,
            add(v6, Some(4433), hmac),
        ),
        ("1e044002".into(), Flags::ACK, Mptcp::RemoveAddr([2].into())),
        ("1e0840 0203040506".into(), Flags::ACK, Mptcp::RemoveAddr([2, 3, 4, 5, 6].into())),
        ("1e0350".into(), Flags::ACK, Mptcp::Prio { backup: false }),
        ("1e0351".into(), Flags::ACK, Mptcp::Prio { backup: true }),
        (
            "1e0c6000 eccce7a8eff70ab6".into(),
            Flags::ACK,
            Mptcp::Fail(WireDsn(0xeccc_e7a8_eff7_0ab6)),
        ),
        ("1e0c7000 683e36b25f2dbc92".into(), Flags::ACK, Mptcp::FastClose(SERVER)),
        ("1e048001".into(), Flags(0x14), reset(ResetReason::Mptcp, false)),
        ("1e048106".into(), Flags(0x14), reset(ResetReason::Middlebox, true)),
    ];
    for (text, flags, option) in table {
        let bytes = hex(&text);
        assert_eq!(option.len(), bytes.len() as u32, "{text}");
        let segment = Segment { flags, options: with(option), ..Segment::default() };
        let written = option_bytes(&segment);
        let (option, padding) = written.split_at(bytes.len());
        assert_eq!((option, padding), (&bytes[..], &[1, 1, 1][..padding.len()]), "{text}");
        let (read, skipped) = options_of(flags, &bytes);
        assert_eq!((read, skipped.count), (segment.options, 0), "{text}");
    }
}

/// R18, R28, R29, R30, R33, R34, R41: the DSS in every shape: 4 + {0, 4, 8} + {0, 10, 14} (+ 2).
#[test]
fn the_dss_in_every_shape() {
    let ack = |value, long| Some(DataAck { value: WireDsn(value), long });
    let map =
        |dsn, long, len, checksum| Some(Mapping { dsn: WireDsn(dsn), long, ssn: 1, len, checksum });
    let dss = |data_ack, mapping| Dss { data_ack, mapping, data_fin: false };
    let fin = Dss {
        data_ack: None,
        mapping: Some(Mapping { dsn: WireDsn(7), long: false, ssn: 0, len: 1, checksum: None }),
        data_fin: true,
    };
    let table = [
        ("1e042000", dss(None, None)),
        ("1e082001 eccce7a8", dss(ack(0xeccc_e7a8, false), None)),
        ("1e0c2003 f61f2d04eccce7a8", dss(ack(0xf61f_2d04_eccc_e7a8, true), None)),
        ("1e0e2004 ed808c0d 00000001 03e8", dss(None, map(0xed80_8c0d, false, 1000, None))),
        (
            "1e102004 ed808c0d 00000001 03e8 beef",
            dss(None, map(0xed80_8c0d, false, 1000, Some(0xbeef))),
        ),
        // The first data segment of the kernel: 8-byte DSN, 4-byte DATA_ACK.
        (
            "1e16200d eccce7a8 eff70ab6ed808c0d 00000001 03e8",
            dss(ack(0xeccc_e7a8, false), map(0xeff7_0ab6_ed80_8c0d, true, 1000, None)),
        ),
        (
            "1e18200d eccce7a8 eff70ab6ed808c0d 00000001 03e8 0001",
            dss(ack(0xeccc_e7a8, false), map(0xeff7_0ab6_ed80_8c0d, true, 1000, Some(1))),
        ),
        (
            "1e122005 eccce7a8 ed808c0d 00000001 03e8",
            dss(ack(0xeccc_e7a8, false), map(0xed80_8c0d, false, 1000, None)),
        ),
        (
            "1e162007 f61f2d04eccce7a8 ed808c0d 00000001 03e8",
            dss(ack(0xf61f_2d04_eccc_e7a8, true), map(0xed80_8c0d, false, 1000, None)),
        ),
        (
            "1e1a200f f61f2d04eccce7a8 eff70ab6ed808c0d 00000001 03e8",
            dss(ack(0xf61f_2d04_eccc_e7a8, true), map(0xeff7_0ab6_ed80_8c0d, true, 1000, None)),
        ),
        (
            "1e1c200f f61f2d04eccce7a8 eff70ab6ed808c0d 00000001 03e8 ffff",
            dss(
                ack(0xf61f_2d04_eccc_e7a8, true),
                map(0xeff7_0ab6_ed80_8c0d, true, 1000, Some(0xffff)),
            ),
        ),
        // Infinite mappings, without checksums and with.
        (
            "1e12200c eff70ab6ed808c0d 00000001 0000",
            dss(None, map(0xeff7_0ab6_ed80_8c0d, true, 0, None)),
        ),
        (
            "1e14200c eff70ab6ed808c0d 00000001 0000 0000",
            dss(None, map(0xeff7_0ab6_ed80_8c0d, true, 0, Some(0))),
        ),
        ("1e0e2014 00000007 00000000 0001", fin),
    ];
    for (text, dss) in table {
        let bytes = hex(text);
        assert_eq!(dss.len(), bytes.len() as u32, "{text}");
        let options = Options { dss: Some(dss), ..Options::default() };
        let segment = Segment { flags: Flags::ACK, options, ..Segment::default() };
        let written = option_bytes(&segment);
        let (option, padding) = written.split_at(bytes.len());
        assert_eq!((option, padding), (&bytes[..], &[1, 1][..padding.len()]), "{text}");
        let (read, skipped) = options_of(Flags::ACK, &bytes);
        assert_eq!((read, skipped.count), (segment.options, 0), "{text}");
    }
}

/// R2: a DSS with a 4-byte DSN and a 4-byte DATA_ACK leaves room for one SACK block when packed.
#[test]
fn packed_options_have_no_nops() {
    let mut options = Options {
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        dss: Some(Dss {
            data_ack: Some(DataAck { value: WireDsn(3), long: false }),
            mapping: Some(Mapping { dsn: WireDsn(4), long: false, ssn: 5, len: 6, checksum: None }),
            data_fin: false,
        }),
        ..Options::default()
    };
    options.sack.push(7, 8);
    let segment = Segment { flags: Flags::ACK, options, ..Segment::default() };
    let bytes = hex("080a 00000001 00000002 050a 00000007 00000008
         1e122005 00000003 00000004 00000005 0006 0000");
    assert_eq!(option_bytes(&segment), bytes);
    assert_eq!(options_of(Flags::ACK, &bytes).0, segment.options);
}

/// R78: over IPv6 the pseudo header has 128-bit addresses. The checksum was computed by hand.
#[test]
fn a_syn_over_ipv6() {
    let (src, dst) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let headers = Headers { flow_label: 0xa_bcde, traffic_class: 0x02, ..Headers::new(src, dst) };
    let segment = Segment {
        src_port: 1,
        dst_port: 2,
        seq: 3,
        flags: Flags::SYN,
        window: 4,
        options: with(Mptcp::Capable(capable())),
        ..Segment::default()
    };
    let mut packet = Vec::new();
    encode(&headers, &segment, TcpChecksum::Full, &mut packet).unwrap();
    // 2 x 2001, 2 x 0db8, 1, 2; 24 bytes, protocol 6; then the words of the segment.
    let sum: u32 =
        2 * 0x2001 + 2 * 0x0db8 + 1 + 2 + 24 + 6 + 1 + 2 + 3 + 0x6002 + 4 + 0x1e04 + 0x0101;
    let checksum = format!("{:04x}", !(sum as u16));
    assert!(sum >> 16 == 0);
    let expected = hex(&format!(
        "602abcde 0018 06 40 20010db8000000000000000000000001 20010db8000000000000000000000002
         0001 0002 00000003 00000000 6002 0004 {checksum} 0000 1e040101"
    ));
    assert_eq!(packet, expected);
    let mut read = Segment::default();
    let parsed = parse_into(&packet, Verify::Checksum, &mut read).unwrap();
    assert_eq!((parsed.headers, read.options), (headers, segment.options));
}

/// With offload, the field holds the sum of the pseudo header, and the device adds the rest.
#[test]
fn a_device_completes_the_checksum() {
    let segment = Segment { src_port: 1, dst_port: 2, flags: Flags::SYN, ..Segment::default() };
    let (mut full, mut partial) = (Vec::new(), Vec::new());
    encode(&super::headers(), &segment, TcpChecksum::Full, &mut full).unwrap();
    encode(&super::headers(), &segment, TcpChecksum::PseudoHeader, &mut partial).unwrap();
    assert!(parse(&partial, Verify::Checksum).is_err() && parse(&partial, Verify::Trusted).is_ok());
    // As a device does: sums from csum_start on and writes to csum_start + csum_offset.
    let mut sum = plait_wire::Sum::default();
    sum.add(&partial[20..]);
    let at = 20 + usize::from(plait_wire::codec::TCP_CHECKSUM_OFFSET);
    partial[at..at + 2].copy_from_slice(&sum.checksum().to_be_bytes());
    assert_eq!(partial, full);
}
