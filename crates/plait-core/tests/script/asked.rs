//! Requests and offers of a peer: unsupported options, addresses, priorities, fallback, floods.

use crate::harness::{MSS, Script, capable_syn, multipath, plain, spec};
use crate::segment::{ACK, PSH, RST, SYN, Seg, want};
use plait_base::PathId;
use plait_core::{Config, ConnectionState, Error};
use plait_wire::{Flags, Mptcp};

/// R64 (RFC 7323 section 1.3): the answer to a SYN without a window scale has none, and windows are
/// not scaled.
#[test]
fn no_scale_unless_offered() {
    let mut s = Script::server(spec(plain(), 1, None));
    let mut syn = s.syn(0);
    syn.scale = None;
    s.send(syn);
    s.expect(want(0, SYN.with(ACK)).scale(None));
}

/// R65 (RFC 7323 section 3.2): after a SYN without timestamps, no segment has them.
#[test]
fn no_timestamps_unless_offered() {
    let mut s = Script::plain_server(|syn| Seg { stamps: None, ..syn });
    s.expect(want(0, SYN.with(ACK)).set("echo", "-"));
    s.write(100);
    s.expect(want(0, PSH).len(100).set("echo", "-"));
}

/// R66 (RFC 2018 section 2): no SACK blocks are sent to a peer that does not permit them.
#[test]
fn no_sack_unless_permitted() {
    let mut s = Script::plain_server(|syn| Seg { sack_permitted: false, ..syn });
    s.lose_all();
    let mut late = s.tx(0).seq(101);
    late.len = 100;
    s.send(late);
    s.expect(want(0, ACK).sack(&[]));
}

/// R62 (RFC 9293 section 3.7.1): segments are no larger than the peer's MSS allows.
#[test]
fn the_peers_mss_is_respected() {
    let mut s = Script::plain_server(|syn| Seg { mss: Some(536), ..syn });
    s.lose_all();
    s.write(5_000);
    // The MSS excludes options (RFC 6691), so the sender subtracts 12 bytes for timestamps.
    s.expect(want(0, PSH).len(524));
}

/// RFC 9293 section 3.7.1: a peer without Multipath TCP needs no room for a DSS. A congestion
/// window of ten segments holds ten of these longer ones.
#[test]
fn after_a_fallback_in_the_handshake_segments_are_those_of_plain_tcp() {
    for (told, len) in [(1_460, MSS + 20), (536, 524)] {
        let mut s = Script::client(spec(multipath(), 1, None));
        s.expect(want(0, SYN));
        s.after(20);
        s.send(Seg { mss: Some(told), ..s.syn_ack(0).stripped() });
        s.expect(want(0, ACK).plain());
        s.write(50_000);
        for _ in 0..10 {
            s.expect(want(0, PSH).len(len).plain());
        }
        assert!(s.out.is_empty(), "{}", s.log);
    }
}

/// Windows count in segments that the peer accepts (RFC 5681 section 2): the first one has ten of them.
#[test]
fn the_first_window_has_segments_of_the_peers_mss() {
    for told in [536, 1_240] {
        let mut s = Script::client(spec(multipath(), 1, None));
        s.after(20);
        s.send(Seg { mss: Some(told), ..s.syn_ack(0) });
        s.lose_all();
        s.write(100_000);
        // Timestamps and a DSS take 32 bytes, and MP_CAPABLE takes four more than a DSS.
        let full = u32::from(told) - 32;
        let lens: Vec<u32> = s.out.iter().map(|(_, seg, _)| seg.len).collect();
        assert_eq!(lens, [[full - 4].as_slice(), &[full; 9]].concat());
    }
}

/// R62 (RFC 9293 section 3.7.1): a SYN without an MSS means 536 bytes, or 1,220 over IPv6.
/// Timestamps take 12 of them.
#[test]
fn a_peer_that_tells_no_mss() {
    for (unsaid_mss, len) in [(Config::UNSAID_MSS_V4, 524), (Config::UNSAID_MSS_V6, 1_208)] {
        let mut s =
            Script::server(spec(plain().with(|it| it.packets.unsaid_mss = unsaid_mss), 1, None));
        let syn = s.syn(0);
        s.send(Seg { mss: None, ..syn });
        s.after(20);
        s.send(s.tx(0));
        s.id = s.endpoint.poll_accept().unwrap();
        s.lose_all();
        s.write(5_000);
        s.expect(want(0, PSH).len(len));
    }
}

/// R65 (RFC 7323 section 5.2): a RST needs no timestamp, and one with an old timestamp is accepted.
#[test]
fn a_reset_is_exempt_from_timestamps() {
    for stamps in [None, Some((1, 1))] {
        let mut s = Script::open_server(plain(), 1);
        let reset = s.tx(0).flags(Flags::RST);
        s.send(Seg { stamps, ..reset });
        assert_eq!(s.state(), ConnectionState::Failed);
    }
}

/// R65 (RFC 7323 section 5.2): the peer's clock wraps. Older timestamps are refused on both sides
/// of the wrap.
#[test]
fn the_peers_clock_wraps() {
    let mut s = Script::server(spec(plain(), 1, None));
    let syn = s.syn(0).stamp(u32::MAX - 1);
    s.send(syn);
    s.lose_all();
    s.after(20);
    s.send(s.tx(0).stamp(u32::MAX));
    s.id = s.endpoint.poll_accept().unwrap();
    let data = |s: &mut Script, stamp: u32| {
        let mut data =
            s.tx(0).seq(1 + s.endpoint.readable(s.id).unwrap() as u32).flags(PSH).stamp(stamp);
        data.len = 100;
        s.send(data);
        s.endpoint.readable(s.id).unwrap()
    };
    for (stamp, readable) in [(u32::MAX, 100), (3, 200), (u32::MAX, 200), (2, 200), (3, 300)] {
        assert_eq!(data(&mut s, stamp), readable, "stamp {stamp}");
    }
    s.expect(want(0, ACK).echo(u32::MAX));
    s.expect(want(0, ACK).echo(3));
}

/// R20, R24, R49: the reset of a join with an unknown token has a reason.
#[test]
fn an_unknown_token_is_told() {
    let mut s = Script::open_server(multipath(), 1);
    let mut syn = s.join_syn(1, false);
    let Some(Mptcp::JoinSyn(join)) = &mut syn.mptcp else { panic!() };
    join.token ^= 1;
    s.send(syn);
    s.expect(want(1, RST).mptcp("Reset { reason: Mptcp, transient: false }"));
}

/// R51: the peer fell back because our third ACK lost its option. Its first data has no DSS and is
/// plain.
#[test]
fn a_client_falls_back_on_plain_data() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.after(20);
    s.send(s.syn_ack(0));
    s.lose_all();
    let mut data = s.tx(0).flags(PSH).stripped();
    data.len = 100;
    s.send(data);
    s.expect(want(0, ACK).ack(101).plain());
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
}

/// R51: an acknowledgement of our first data without a DSS means the same.
#[test]
fn a_client_falls_back_on_a_plain_acknowledgement() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.after(20);
    s.send(s.syn_ack(0));
    s.lose_all();
    s.write(100);
    s.expect(want(0, PSH).len(100).mptcp("capable2 100"));
    s.send(s.tx(0).ack(101).stripped());
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
    s.write(100);
    s.expect(want(0, PSH).seq(101).plain());
}

/// R32: an earlier mapping covers a segment without a DSS, because a middlebox has split a segment.
#[test]
fn data_under_an_earlier_mapping() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(0, 100).map(0, 1, 300));
    s.lose_all();
    let mut rest = s.tx(0).flags(PSH).stripped();
    (rest.len, rest.bytes) = (200, None);
    s.sent.insert(plait_base::DataRange::between(100, 300));
    s.send(rest);
    s.expect(want(0, ACK).ack(301));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 300);
}

/// R4, R47: MP_PRIO beside a DSS makes a subflow a backup or a regular one. Repetitions have no
/// effect.
#[test]
fn priority_changes() {
    let mut s = Script::open_server(multipath(), 2);
    s.send(s.tx(0).mptcp(Mptcp::Prio { backup: true }));
    s.send(s.tx(0).mptcp(Mptcp::Prio { backup: true }));
    s.write(1_000);
    s.expect(want(1, PSH));
    s.send(s.tx(0).mptcp(Mptcp::Prio { backup: false }));
    s.write(1_000);
    s.expect(want(0, PSH));
}

/// R4: two options beside a DSS both take effect.
#[test]
fn two_options_in_one_segment() {
    let mut s = Script::open_server(multipath(), 2);
    let (gone, prio) = (Mptcp::RemoveAddr([9].into()), Mptcp::Prio { backup: true });
    s.send(s.tx(0).mptcp(Mptcp::Several([gone, prio].into())));
    s.write(1_000);
    s.expect(want(1, PSH));
}

/// RFC 9293 section 3.10.7.2: a listener ignores every segment with RST.
#[test]
fn a_reset_opens_nothing() {
    let mut s = Script::server(spec(multipath(), 1, None));
    let syn = s.syn(0).mptcp(capable_syn()).flags(SYN.with(Flags::RST));
    s.send(syn);
    s.expect_nothing();
}

/// R70 (RFC 5961 section 7): challenge ACKs are limited in rate.
#[test]
fn challenges_are_limited() {
    let mut s = Script::open_server(plain(), 1);
    for _ in 0..1_000 {
        s.send(s.tx(0).flags(Flags::RST).seq(2));
    }
    assert!(s.lose_all() <= 100);
}

/// R47, R48: this end makes a subflow a backup. It sends the option once on that subflow, and no
/// data until it makes it regular again.
#[test]
fn a_backup_is_asked_for() {
    let mut s = Script::open_client(multipath(), 2);
    let ask = |s: &mut Script, path: u32, backup: bool| {
        let asked = s.endpoint.set_backup(s.now, s.id, PathId(path), backup);
        s.drain();
        asked
    };
    assert_eq!(ask(&mut s, 1, true), Ok(()));
    s.expect(want(1, ACK).mptcp("Prio { backup: true }").len(0).dack(0));
    assert_eq!(ask(&mut s, 1, true), Ok(()), "nothing new");
    s.expect_nothing();
    s.write(40 * u64::from(MSS));
    assert!(s.out.iter().all(|(_, seg, _)| seg.path == 0));
    assert_eq!(s.lose_all(), 10);
    assert_eq!(ask(&mut s, 1, false), Ok(()));
    s.expect(want(1, ACK).mptcp("Prio { backup: false }"));
    assert!(s.lose_all() > 0 && s.log_has_data_on(1));
    // Changes on two paths at once: one option on each, with the last value.
    for (path, backup) in [(0, true), (1, true), (0, false)] {
        s.endpoint.set_backup(s.now, s.id, PathId(path), backup).unwrap();
    }
    s.drain();
    let told = |path: u32| {
        let of_path = s.out.iter().filter(|(_, seg, _)| seg.path == path);
        of_path.filter_map(|(_, seg, _)| seg.mptcp.clone()).collect::<Vec<_>>()
    };
    assert_eq!(told(0), [Mptcp::Prio { backup: false }]);
    assert_eq!(told(1), [Mptcp::Prio { backup: true }]);
}

/// R47: the call fails without such a subflow. A pending option of a dead subflow is not sent on
/// another one.
#[test]
fn a_backup_cannot_be_asked_for() {
    let mut s = Script::open_client(plain(), 1);
    assert_eq!(s.endpoint.set_backup(s.now, s.id, PathId(0), true), Err(Error::PlainTcp));
    let mut s = Script::open_client(multipath(), 2);
    assert_eq!(
        s.endpoint.set_backup(s.now, s.id, PathId(2), true),
        Err(Error::NoSubflow(PathId(2)))
    );
    assert_eq!(s.endpoint.set_backup(s.now, s.id, PathId(1), true), Ok(()));
    let reset = s.tx(1).flags(RST);
    s.send(reset);
    assert!(s.out.iter().all(|(_, seg, _)| seg.mptcp.is_none()), "{}", s.log);
    assert_eq!(
        s.endpoint.set_backup(s.now, s.id, PathId(1), false),
        Err(Error::NoSubflow(PathId(1)))
    );
}

/// R65 (RFC 7323 section 5): a segment older than the last one in order is not accepted.
#[test]
fn protection_against_wrapped_sequences() {
    let mut s = Script::open_server(plain(), 1);
    let mut data = s.tx(0).flags(PSH).stamp(9_000);
    data.len = 100;
    s.send(data);
    let mut old = s.tx(0).flags(PSH).stamp(8_000);
    old.len = 100;
    s.send(old);
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
}

/// R80, S3: half-open connections are bounded.
#[test]
fn a_flood_of_syns() {
    let mut s = Script::server(spec(multipath(), 1, None));
    for port in 0..10_000 {
        let syn = plait_wire::Segment {
            src_port: port,
            dst_port: crate::harness::PORT,
            flags: SYN,
            ..plait_wire::Segment::default()
        };
        s.endpoint.handle(s.now, PathId(0), &syn);
        while s.endpoint.poll_transmit(s.now).is_some() {}
    }
    let open = (0..10_000).filter(|id| s.endpoint.stats(plait_base::ConnId(*id)).is_some()).count();
    assert!(open <= 4_096, "{open}");
}

/// R51: the peer fell back after the third ACK: its first data has no DSS.
#[test]
fn a_server_falls_back_on_plain_data() {
    let mut s = Script::open_server(multipath(), 1);
    s.lose_all();
    let mut data = s.tx(0).flags(PSH).stripped();
    data.len = 100;
    s.sent.insert(plait_base::DataRange::between(0, 100));
    s.send(data);
    s.expect(want(0, ACK).ack(101).plain());
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
}
