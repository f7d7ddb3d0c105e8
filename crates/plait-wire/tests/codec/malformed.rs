//! Packets that are refused, options that are skipped, and their errors.

use super::{bytes_of, headers, hex, option_bytes, options_of};
use plait_wire::codec::{
    EncodeError, Field, Headers, ParseError, Problem, TcpChecksum, Unread, Verify, Why, encode,
    encode_to, parse,
};
use plait_wire::{
    DataAck, Dss, Flags, Key, MpCapable, Mptcp, Options, Payload, SackBlocks, Segment, WireDsn,
};

fn refused(packet: &[u8]) -> ParseError {
    parse(packet, Verify::Checksum).unwrap_err()
}

/// Sets bytes and corrects the checksum of the IPv4 header.
fn changed(packet: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    packet[10..12].fill(0);
    let mut sum = plait_wire::Sum::default();
    sum.add(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
    packet
}

/// R1, R79: each error names the problem and its position.
#[test]
fn packets_that_are_refused() {
    let packet = bytes_of(
        &headers(),
        &Segment { payload: Payload::from_bytes(b"hello"), ..Segment::default() },
    );
    let error = |problem, at| ParseError { problem, at };
    assert_eq!(refused(&[]), error(Problem::Short(Field::Ipv4Header), 0));
    assert_eq!(refused(&[0x50]), error(Problem::Version(5), 0));
    assert_eq!(refused(&packet[..19]), error(Problem::Short(Field::Ipv4Header), 19));
    assert_eq!(refused(&packet[..30]), error(Problem::Length(Field::TotalLength, 45), 2));
    assert_eq!(
        refused(&changed(&packet, 0, &[0x44])),
        error(Problem::Length(Field::Ipv4Header, 16), 0)
    );
    assert_eq!(
        refused(&changed(&packet, 2, &[0, 19])),
        error(Problem::Length(Field::TotalLength, 19), 2)
    );
    assert_eq!(
        refused(&changed(&packet, 2, &[0, 39])),
        error(Problem::Short(Field::TcpHeader), 39)
    );
    // R79: the first, a middle and the last fragment of a packet.
    for piece in [[0x20, 0], [0x20, 8], [0, 8]] {
        assert_eq!(refused(&changed(&packet, 6, &piece)), error(Problem::Fragment, 6));
    }
    assert_eq!(refused(&changed(&packet, 9, &[17])), error(Problem::Protocol(17), 9));
    let mut broken = packet.clone();
    broken[8] ^= 1;
    assert_eq!(refused(&broken), error(Problem::Checksum(Field::Ipv4Header), 10));
    broken = packet.clone();
    broken[44] ^= 1;
    assert_eq!(refused(&broken), error(Problem::Checksum(Field::Segment), 36));
    for words in [0, 4, 7, 15] {
        let said = words * 4;
        let shown = refused(&changed(&packet, 32, &[(words as u8) << 4]));
        assert_eq!(shown, error(Problem::Length(Field::DataOffset, said), 32));
    }
    let shown = refused(&packet[..30]).to_string();
    assert_eq!(shown, "the total length says 45 bytes, at byte 2 of the packet");
}

/// Bytes after the packet are ignored, such as the padding of short packets on Ethernet.
#[test]
fn padding_behind_the_packet_is_left_alone() {
    let mut packet = bytes_of(&headers(), &Segment::default());
    packet.extend([1, 2, 3]);
    assert_eq!(parse(&packet, Verify::Checksum).unwrap().1.payload.len(), 0);
}

/// An IPv6 packet with extension headers inserted.
fn with_extensions(first: u8, extensions: &[u8]) -> Vec<u8> {
    let headers = Headers::new("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let plain = bytes_of(&headers, &Segment { flags: Flags::SYN, ..Segment::default() });
    let mut packet = plain[..40].to_vec();
    packet[6] = first;
    packet[5] += extensions.len() as u8;
    packet.extend_from_slice(extensions);
    packet.extend_from_slice(&plain[40..]);
    packet
}

/// R78, R79: hop-by-hop options, destination options and routing headers without segments left are
/// skipped. Fragments and other routing headers are refused. The checksum covers the TCP segment after them.
#[test]
fn extension_headers() {
    let eight = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    let skipped = [eight(60), eight(6)].concat();
    assert!(parse(&with_extensions(0, &skipped), Verify::Checksum).is_ok());
    let sixteen = [[6, 1, 1, 12, 0, 0, 0, 0], [0; 8]].concat();
    assert!(parse(&with_extensions(60, &sixteen), Verify::Checksum).is_ok());
    let route = |left| [6, 0, 2, left, 0, 0, 0, 0];
    assert!(parse(&with_extensions(43, &route(0)), Verify::Checksum).is_ok());
    let error = |problem, at| ParseError { problem, at };
    assert_eq!(refused(&with_extensions(43, &route(1))), error(Problem::Extension(43), 43));
    assert_eq!(refused(&with_extensions(44, &eight(6))), error(Problem::Fragment, 6));
    assert_eq!(refused(&with_extensions(0, &eight(44))), error(Problem::Fragment, 40));
    assert_eq!(refused(&with_extensions(58, &[])), error(Problem::Protocol(58), 6));
    let long = [6, 200, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        refused(&with_extensions(60, &long)),
        error(Problem::Length(Field::Extension, 1608), 41)
    );
    let endless = eight(60).repeat(10);
    assert_eq!(refused(&with_extensions(60, &endless)), error(Problem::Extension(60), 104));
    let mut cut = with_extensions(0, &eight(6));
    cut.truncate(44);
    assert_eq!(refused(&cut), error(Problem::Length(Field::PayloadLength, 28), 4));
    cut[5] = 4;
    assert_eq!(refused(&cut), error(Problem::Short(Field::Extension), 40));
}

/// R1, R3, R11, R13, R15, R47, R64, R72: skipped options and the reasons; the other options are used.
#[test]
fn options_that_are_skipped() {
    let ack = Flags::ACK;
    let syn = Flags::SYN;
    let table = [
        ("2204 0000", syn, 34, Why::Kind),
        ("fe04 f989", syn, 254, Why::Kind),
        ("0000", syn, 0, Why::Kind),
        ("1e00", ack, 30, Why::Broken),
        ("1e01", ack, 30, Why::Broken),
        ("1eff 20", ack, 30, Why::Broken),
        ("020405b4", ack, 2, Why::Place),
        ("030307", ack, 3, Why::Place),
        ("0402", ack, 4, Why::Place),
        ("fd04504a", ack, 253, Why::Place),
        ("fd04504b", syn, 253, Why::Kind),
        ("fd06504a0001", syn, 253, Why::Kind),
        ("0206 05b4 0000", syn, 2, Why::Length(6)),
        ("0304 0700", syn, 3, Why::Length(4)),
        ("080800000001 0000", syn, 8, Why::Length(8)),
        ("050600000001", ack, 5, Why::Length(6)),
        ("050a 00000001 00000002", syn, 5, Why::Place),
        ("1e02", ack, 30, Why::Length(2)),
        // MP_CAPABLE of versions 0 and 2, with flag B, without flag H, and the one of a SYN on an ACK.
        ("1e0c0001 683e36b25f2dbc92", syn, 30, Why::Version(0)),
        ("1e040201", syn, 30, Why::Version(2)),
        ("1e040141", syn, 30, Why::Flags(0x41)),
        ("1e040100", syn, 30, Why::Flags(0)),
        ("1e040101", ack, 30, Why::Place),
        ("1e0c0101 683e36b25f2dbc92", syn, 30, Why::Place),
        ("1e060101 0000", syn, 30, Why::Length(6)),
        ("1e03 01", syn, 30, Why::Length(3)),
        // The MP_JOIN of a SYN on an ACK, and one that is too short.
        ("1e0c1001 09e08e65 f9391820", ack, 30, Why::Place),
        ("1e0b1001 09e08e65 f93918", syn, 30, Why::Length(11)),
        // A DSS on a SYN, one that is a byte too short for its flags, and one that is too long for them.
        ("1e082001 eccce7a8", syn, 30, Why::Place),
        ("1e072001 eccce7", ack, 30, Why::Length(7)),
        ("1e0a2001 eccce7a8 0000", ack, 30, Why::Length(10)),
        ("1e0f2004 ed808c0d 00000001 03e8 be", ack, 30, Why::Length(15)),
        // An echo with an HMAC, and an address without one.
        ("1e103101 0a4d0202 3fdc1272ab68df56", ack, 30, Why::Length(16)),
        ("1e083001 0a4d0202", ack, 30, Why::Length(8)),
        ("1e0340", ack, 30, Why::Length(3)),
        // MP_PRIO with the address identifier of version 0.
        ("1e045102", ack, 30, Why::Length(4)),
        ("1e0b6000 eccce7a8eff70a", ack, 30, Why::Length(11)),
        ("1e0d7000 683e36b25f2dbc9200", ack, 30, Why::Length(13)),
        ("1e0380", ack, 30, Why::Length(3)),
        ("1e0490 00", ack, 30, Why::Subtype(9)),
        ("1e04f0 00", ack, 30, Why::Subtype(15)),
    ];
    for (text, flags, kind, why) in table {
        let clock = hex("080a 00000001 00000002 01");
        let before = [clock.clone(), hex(text)].concat();
        let (options, skipped) = options_of(flags, &before);
        let expected = (kind != 0).then_some(Unread { at: 11, kind, why });
        assert_eq!(skipped.first, expected, "{text}");
        let alone = Options { timestamps: options.timestamps, ..Options::default() };
        assert!(options.timestamps.is_some() && options == alone, "{text}: {options:?}");
        if !matches!(why, Why::Broken) && kind != 0 {
            let after = [hex(text), clock].concat();
            assert!(options_of(flags, &after).0.timestamps.is_some(), "{text}");
        }
    }
}

/// R3: if a kind occurs twice, the first is used, in any order and with or without padding.
#[test]
fn the_first_of_a_kind_counts() {
    let twice = hex("1e082001 00000001 01 1e082001 00000002 080a 00000001 00000002");
    let (options, skipped) = options_of(Flags::ACK, &twice);
    assert_eq!(options.dss.unwrap().data_ack.unwrap().value, WireDsn(1));
    assert_eq!(skipped.first, Some(Unread { at: 9, kind: 30, why: Why::Twice }));
    assert!(options.timestamps.is_some());
    // A malformed first one is not used.
    let (options, _) = options_of(Flags::ACK, &hex("1e072001 000000 1e082001 00000002"));
    assert_eq!(options.dss.unwrap().data_ack.unwrap().value, WireDsn(2));
}

/// R4: options may share a segment, even with a DSS, unless one of them opens a subflow.
#[test]
fn several_options_in_one_segment() {
    let gone = Mptcp::RemoveAddr([2].into());
    let (prio, fail) = (Mptcp::Prio { backup: true }, Mptcp::Fail(WireDsn(7)));
    let bytes = hex("1e044002 1e082001 00000001 1e0351 01 1e0c6000 0000000000000007");
    let (options, skipped) = options_of(Flags::ACK, &bytes);
    assert_eq!(skipped.count, 0);
    assert!(options.dss.is_some());
    let all = [gone.clone(), prio.clone(), fail.clone()];
    assert_eq!(options.mptcp.as_deref(), Some(&Mptcp::Several(all.clone().into())));
    assert_eq!((options.padded_len(), options.raw_len()), (28, 27));
    let again = option_bytes(&with(Flags::ACK, options));
    assert_eq!(again, hex("1e082001 00000001 1e044002 1e0351 01 1e0c6000 0000000000000007"));
    let keys = "1e140101 73962198d473a3d9 683e36b25f2dbc92";
    for text in [format!("{keys} 1e0351"), format!("1e0350 01 {keys}"), "1e0351 1e0350".into()] {
        let (options, skipped) = options_of(Flags::ACK, &hex(&text));
        assert_eq!(skipped.first.map(|it| it.why), Some(Why::Twice), "{text}");
        assert!(!matches!(options.mptcp.as_deref(), None | Some(Mptcp::Several(_))), "{text}");
    }
    let refused = |options: &[Mptcp]| {
        let mptcp = Some(Box::new(Mptcp::Several(options.into())));
        encoded(&with(Flags::ACK, Options { mptcp, ..Options::default() })).is_err()
    };
    assert!(refused(&[]) && refused(std::slice::from_ref(&prio)) && refused(&[prio.clone(), prio]));
    assert!(refused(&[Mptcp::Several(all.into()), gone]) && refused(&[fail.clone(), fail]));
}

/// R64: a shift above 14 is read as 14 (RFC 7323 section 2.3).
#[test]
fn a_window_scale_ends_at_14() {
    assert_eq!(options_of(Flags::SYN, &hex("0303ff")).0.window_scale, Some(14));
}

fn encoded(segment: &Segment) -> Result<usize, EncodeError> {
    encode(&headers(), segment, TcpChecksum::Full, &mut Vec::new())
}

fn with(flags: Flags, options: Options) -> Segment {
    Segment { flags, options, ..Segment::default() }
}

/// R2, R4, R64: the encoder returns an error and never truncates.
#[test]
fn segments_that_are_refused() {
    let mptcp = |flags, option| {
        with(flags, Options { mptcp: Some(Box::new(option)), ..Options::default() })
    };
    let mut sack = SackBlocks::default();
    sack.push(1, 2);
    let dss = Some(Dss::default());
    let place = |name| Err(EncodeError::Place(name));
    let default = Options::default;
    assert_eq!(encoded(&with(Flags::ACK, Options { mss: Some(1), ..default() })), place("MSS"));
    assert_eq!(encoded(&with(Flags::SYN, Options { sack, ..default() })), place("SACK"));
    assert_eq!(encoded(&with(Flags::SYN, Options { dss, ..default() })), place("DSS"));
    let scale = |scale| with(Flags::SYN, Options { window_scale: Some(scale), ..default() });
    assert_eq!(encoded(&scale(15)), Err(EncodeError::Number("window scale")));
    assert!(encoded(&scale(14)).is_ok());
    assert_eq!(
        encoded(&mptcp(Flags::ACK, Mptcp::Capable(MpCapable::default()))),
        place("MP_CAPABLE")
    );
    assert_eq!(encoded(&mptcp(Flags::SYN, Mptcp::Prio { backup: true })), place("MP_PRIO"));
    let shape = MpCapable { receiver_key: Some(Key(1)), ..MpCapable::default() };
    assert!(matches!(
        encoded(&mptcp(Flags::SYN, Mptcp::Capable(shape))),
        Err(EncodeError::Shape(_))
    ));
    assert!(matches!(
        encoded(&mptcp(Flags::ACK, Mptcp::RemoveAddr([].into()))),
        Err(EncodeError::Shape(_))
    ));
    let many = Mptcp::RemoveAddr(vec![1; 38].into());
    assert_eq!(encoded(&mptcp(Flags::ACK, many)), Err(EncodeError::Options(44)));
    let ack = |value, long| {
        let data_ack = Some(DataAck { value: WireDsn(value), long });
        with(Flags::ACK, Options { dss: Some(Dss { data_ack, ..Dss::default() }), ..default() })
    };
    assert_eq!(encoded(&ack(1 << 32, false)), Err(EncodeError::Number("DATA_ACK")));
    assert!(encoded(&ack(1 << 32, true)).is_ok());
}

#[test]
fn packets_that_do_not_fit_are_refused() {
    let long =
        Segment { payload: Payload::Pattern { offset: 0, len: 65_496 }, ..Segment::default() };
    assert_eq!(encoded(&long), Err(EncodeError::Length(65_536)));
    let most =
        Segment { payload: Payload::Pattern { offset: 0, len: 65_495 }, ..Segment::default() };
    assert_eq!(encoded(&most), Ok(65_535));
    let mixed = Headers { dst: "::1".parse().unwrap(), ..headers() };
    let refused = encode(&mixed, &Segment::default(), TcpChecksum::Full, &mut Vec::new());
    assert_eq!(refused, Err(EncodeError::Families));
    let short = encode_to(&headers(), &Segment::default(), TcpChecksum::Full, &mut [0; 39]);
    assert_eq!(short, Err(EncodeError::Room { needs: 40, has: 39 }));
}
