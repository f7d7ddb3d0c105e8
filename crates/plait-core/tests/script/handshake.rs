//! Handshakes: plain, MP_CAPABLE, and the fallback between them.

use crate::harness::{KEY, MSS, SCALE, Script, capable_syn, multipath, plain, spec};
use crate::segment::{ACK, PSH, SYN, Seg, want};
use plait_base::Time;
use plait_core::{Config, ConnectionState};
use plait_wire::{Key, MpCapable, Mptcp};

const FIRST: u32 = 100;

fn capable(sender: Option<Key>, receiver: Option<Key>, data_len: Option<u16>) -> Mptcp {
    Mptcp::Capable(MpCapable {
        checksum_required: false,
        joins_denied: false,
        sender_key: sender,
        receiver_key: receiver,
        data_len,
        checksum: None,
    })
}

/// R61: the three-way handshake of plain TCP, as client.
#[test]
fn plain_client() {
    let mut s = Script::client(spec(plain(), 1, None));
    s.expect(want(0, SYN).seq(0).scale(Some(10)).plain());
    s.expect_nothing();
    assert_eq!(s.state(), ConnectionState::Connecting);
    s.after(20);
    s.send(s.syn_ack(0));
    s.expect(want(0, ACK).seq(1).ack(1).at(20.0).plain());
    assert_eq!(s.state(), ConnectionState::Open);
}

/// R61: and as server. No connection is accepted before the third ACK.
#[test]
fn plain_server() {
    let mut s = Script::server(spec(plain(), 1, None));
    let syn = s.syn(0);
    s.send(syn);
    s.expect(want(0, SYN.with(ACK)).seq(0).ack(1).plain());
    assert!(s.endpoint.poll_accept().is_none());
    s.after(20);
    s.send(s.tx(0));
    assert!(s.endpoint.poll_accept().is_some());
    s.expect_nothing();
}

/// R61, R67: the SYN is retransmitted after 1, 2, 4 s ... with the same sequence number.
#[test]
fn syn_and_syn_ack_back_off() {
    let mut s = Script::client(spec(plain(), 1, None));
    for time in [0., 1_000., 3_000., 7_000., 15_000.] {
        s.expect(want(0, SYN).seq(0).at(time));
        s.until(s.endpoint.poll_timeout());
    }
    let mut s = Script::server(spec(plain(), 1, None));
    let syn = s.syn(0);
    s.send(syn);
    for time in [0., 1_000., 3_000., 7_000.] {
        s.expect(want(0, SYN.with(ACK)).seq(0).at(time));
        s.until(s.endpoint.poll_timeout());
    }
}

/// R5, R6, R17: options and keys of SYN, SYN/ACK and third ACK at the client.
#[test]
fn capable_client() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.expect(want(0, SYN).mptcp("capable0"));
    s.after(20);
    s.send(s.syn_ack(0));
    let third = s.expect(want(0, ACK).seq(1).ack(1).mptcp("capable2"));
    let Some(Mptcp::Capable(option)) = third.mptcp else { panic!() };
    assert_eq!(option.receiver_key, Some(KEY));
    assert_eq!(s.state(), ConnectionState::Open);
}

/// R6, R9: the server sends its key. The connection is open when the third ACK echoes it.
#[test]
fn capable_server() {
    let mut s = Script::server(spec(multipath(), 1, None));
    let syn = s.syn(0).mptcp(capable_syn());
    s.send(syn);
    s.expect(want(0, SYN.with(ACK)).mptcp("capable1"));
    s.after(20);
    assert!(s.endpoint.poll_accept().is_none());
    s.send(s.proof(0));
    s.id = s.endpoint.poll_accept().unwrap();
    assert!(s.endpoint.stats(s.id).unwrap().multipath);
}

/// R6: a third ACK with a wrong key opens no connection.
#[test]
fn wrong_echo_is_not_accepted() {
    let mut s = Script::server(spec(multipath(), 1, None));
    let syn = s.syn(0).mptcp(capable_syn());
    s.send(syn);
    let wrong = s.proof(0).mptcp(capable(Some(KEY), Some(Key(1)), None));
    s.send(wrong);
    assert!(s.endpoint.poll_accept().is_none());
}

/// R7, R18, R30, R74: MP_CAPABLE carries the first data, whose DSN follows the IDSN. Data after it
/// has a mapping, even before the peer's first DSS.
#[test]
fn first_data_on_capable_from_the_client() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.after(20);
    s.send(s.syn_ack(0));
    s.lose_all();
    s.write(u64::from(FIRST));
    s.expect(want(0, PSH).seq(1).len(FIRST).mptcp("capable2 100").no_map());
    s.write(50);
    s.expect(want(0, PSH).seq(101).len(50).map(100, 101, 50));
    s.after(20);
    s.ack(0, 151, 150);
    s.write(10);
    s.expect(want(0, PSH).seq(151).dack(0).map(150, 151, 10).mptcp("-"));
}

/// R7: the packet must fit the path. MP_CAPABLE with data takes four bytes more than a DSS.
#[test]
fn a_full_first_segment_fits_the_mtu() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.after(20);
    s.send(s.syn_ack(0));
    s.lose_all();
    s.write(3 * u64::from(MSS));
    let first = s.expect(want(0, PSH).seq(1));
    assert_eq!(first.len, MSS - 4);
}

/// R7: MP_CAPABLE determines the position of the first data. A DSS beside it with another position
/// is ignored, also by `--check`.
#[test]
fn a_mapping_beside_capable_says_nothing() {
    let mut s = Script::open_server(multipath(), 1);
    let told = capable(Some(KEY), s.remote_key, Some(FIRST as u16));
    s.send(s.tx(0).data(0, FIRST).map(700, 1, FIRST as u16).mptcp(told));
    s.expect(want(0, ACK).ack(1 + FIRST).dack(u64::from(FIRST)));
    assert_eq!(s.skip(1_000), u64::from(FIRST));
}

/// R7: MP_CAPABLE maps the first data alone. Data behind that has no mapping.
#[test]
fn capable_maps_the_first_data_alone() {
    let mut s = Script::open_server(multipath(), 1);
    let told = capable(Some(KEY), s.remote_key, Some(FIRST as u16));
    let mut send = || {
        let data = s.tx(0).data(0, FIRST).mptcp(told.clone());
        s.send(Seg { map: None, ..data });
        s.skip(1_000)
    };
    assert_eq!([send(), send()], [FIRST.into(), 0]);
}

/// R7, R10: a server accepts first data on MP_CAPABLE as it does with a DSS.
#[test]
fn first_data_on_capable_to_the_server() {
    for early in [true, false] {
        let mut s = Script::server(spec(multipath(), 1, None));
        let syn = s.syn(0).mptcp(capable_syn());
        s.send(syn);
        s.lose_all();
        s.after(20);
        if !early {
            s.send(s.proof(0));
        }
        let remote = s.remote_key;
        let mut data = s.proof(0).flags(PSH).mptcp(capable(Some(KEY), remote, Some(100)));
        data.len = FIRST;
        s.send(data.clone());
        s.expect(want(0, ACK).ack(101).dack(100));
        s.id = s.endpoint.poll_accept().unwrap();
        assert_eq!(s.skip(1_000), 100);
        // R7: a retransmission of it has no effect.
        s.send(data);
        s.expect(want(0, ACK).ack(101).dack(100).sack(&[(1, 101)]));
        assert_eq!(s.endpoint.readable(s.id).unwrap(), 0);
    }
}

/// R10: the answer to the first data does not wait for a full segment, because the peer may join when it has it.
#[test]
fn the_first_data_is_answered_before_data_is_sent() {
    let mut s = Script::server(spec(multipath(), 1, None));
    let syn = s.syn(0).mptcp(capable_syn());
    s.send(syn);
    s.lose_all();
    s.after(20);
    let mut request = s.proof(0).flags(PSH).mptcp(capable(Some(KEY), s.remote_key, Some(100)));
    request.len = FIRST;
    // The application writes before anything is sent.
    s.arrive(request);
    s.id = s.endpoint.poll_accept().unwrap();
    s.write(2 * u64::from(MSS));
    s.expect(want(0, ACK).ack(101).dack(100));
    s.expect(want(0, PSH).ack(101).dack(100).map(0, 1, MSS as u16));
    s.expect(want(0, PSH).map(u64::from(MSS), 1 + MSS, MSS as u16));
    s.expect_nothing();
}

/// R8: if the third ACK, the first data or both are lost, the keys are repeated until the peer has
/// sent a DSS.
#[test]
fn capable_is_repeated_until_a_dss_comes() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.after(20);
    let answer = s.syn_ack(0);
    s.expect(want(0, SYN));
    s.send(answer.clone());
    s.expect(want(0, ACK).mptcp("capable2"));
    // The third ACK is lost, so the SYN/ACK is retransmitted.
    s.after(1_000);
    s.send(answer);
    s.expect(want(0, ACK).mptcp("capable2"));
    s.write(u64::from(FIRST));
    s.expect(want(0, PSH).mptcp("capable2 100"));
    s.after(2_000);
    while let Some((_, again, _)) = s.out.pop_front() {
        assert_eq!((again.seq, again.len), (1, FIRST));
        assert!(matches!(again.mptcp, Some(Mptcp::Capable(it)) if it.data_len == Some(100)));
    }
    s.ack(0, 101, 100);
    s.write(5);
    s.expect(want(0, PSH).mptcp("-").map(100, 101, 5));
}

/// R8: the other side. Data with a DSS that overtakes the keys opens no connection. When the keys
/// have arrived, its retransmissions are accepted.
#[test]
fn data_before_the_keys_waits() {
    let mut s = Script::server(spec(multipath(), 1, None));
    let syn = s.syn(0).mptcp(capable_syn());
    s.send(syn);
    s.lose_all();
    s.after(20);
    let second = s.tx(0).seq(101).data(100, 50);
    s.send(second.clone());
    assert!(s.endpoint.poll_accept().is_none());
    let remote = s.remote_key;
    let mut first = s.proof(0).flags(PSH).seq(1).mptcp(capable(Some(KEY), remote, Some(100)));
    first.len = FIRST;
    s.send(first);
    s.expect(want(0, ACK).ack(101).dack(100));
    s.send(second);
    s.expect(want(0, ACK).ack(151).dack(150));
}

/// R11, R50, R54: a SYN/ACK without the option means plain TCP without joins.
#[test]
fn fallback_on_the_syn_ack() {
    let mut s = Script::client(spec(multipath(), 2, None));
    s.after(20);
    let bare = s.syn_ack(0).stripped();
    s.send(bare);
    s.lose_all();
    s.write(100);
    s.expect(want(0, PSH).seq(1).len(100).plain());
    s.send(s.tx(0).ack(101).stripped());
    s.write(100);
    s.expect(want(0, PSH).seq(101).plain());
    assert!(!s.endpoint.stats(s.id).unwrap().multipath);
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 100);
}

/// R50: so does a SYN without the option.
#[test]
fn fallback_on_the_syn() {
    let mut s = Script::server(spec(multipath(), 1, None));
    let syn = s.syn(0);
    s.send(syn);
    s.expect(want(0, SYN.with(ACK)).plain());
    s.after(20);
    s.send(s.tx(0).stripped());
    s.id = s.endpoint.poll_accept().unwrap();
    s.write(100);
    s.expect(want(0, PSH).plain());
}

/// R51: the server falls back if the third ACK has lost its option.
#[test]
fn fallback_on_the_third_ack() {
    let mut s = Script::server(spec(multipath(), 1, None));
    let syn = s.syn(0).mptcp(capable_syn());
    s.send(syn);
    s.lose_all();
    s.send(s.tx(0).stripped());
    s.id = s.endpoint.poll_accept().unwrap();
    s.write(100);
    s.expect(want(0, PSH).plain());
}

/// R54: after the fallback, MPTCP options are ignored.
#[test]
fn a_dss_after_the_fallback_is_not_read() {
    let mut s = Script::server(spec(multipath(), 1, None));
    let syn = s.syn(0);
    s.send(syn);
    s.send(s.tx(0).stripped());
    s.id = s.endpoint.poll_accept().unwrap();
    s.lose_all();
    s.write(500);
    s.send(s.tx(0).ack(1).dack(400).data_fin(0));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 500);
    assert_eq!(s.state(), ConnectionState::Open);
}

/// R64: the window of a SYN/ACK is not scaled. Later windows are.
#[test]
fn the_scale_counts_after_the_syn_only() {
    let mut s = Script::client(spec(plain(), 1, None));
    s.after(20);
    let answer = s.syn_ack(0).win(1_448);
    s.send(answer);
    s.lose_all();
    s.write(100_000);
    assert_eq!(s.lose_all(), 1, "a window of 1448 bytes takes one segment");
    s.after(20);
    s.send(s.tx(0).ack(1_449).win(2 * 1_448_u16.div_ceil(1 << SCALE)));
    assert_eq!(s.lose_all(), 2);
}

/// R65: each segment echoes the timestamp of the last segment in order, not of one behind a hole.
#[test]
fn stamps_are_echoed() {
    let mut s = Script::open_server(plain(), 1);
    s.send(s.tx(0).flags(PSH).data(0, 100).stripped().stamp(7_000));
    s.expect(want(0, ACK).echo(7_000));
    let mut late = s.tx(0).seq(201).flags(PSH).stamp(7_500);
    late.len = 100;
    s.send(late);
    s.expect(want(0, ACK).echo(7_000).sack(&[(201, 301)]));
    // An old duplicate does not move the echo back (RFC 7323 section 4.3).
    let mut old = s.tx(0).seq(1).flags(PSH).stamp(6_000);
    old.len = 100;
    s.send(old);
    s.expect(want(0, ACK).echo(7_000));
}

/// R61: a repeated SYN/ACK is answered, and a SYN without a listener is refused.
#[test]
fn repeated_and_unwanted_handshakes() {
    let mut s = Script::open_client(plain(), 1);
    s.send(s.syn_ack(0));
    s.expect(want(0, ACK).seq(1).ack(1));
    let mut s = Script::server(spec(Config::default(), 1, None));
    let syn = s.syn(0);
    s.endpoint = plait_core::Endpoint::new(Box::new(Nothing));
    s.send(syn);
    s.expect(want(0, crate::segment::RST).ack(1));
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
}

struct Nothing;

impl plait_core::Entropy for Nothing {
    fn bits(&mut self) -> u64 {
        0
    }
}
