//! SYN cookies: while the table of half-open connections is full, handshakes need no state.

use crate::harness::{MSS, SCALE, Script, capable_syn, multipath, plain, spec};
use crate::segment::{ACK, PSH, SYN, Seg, want};
use plait_base::{PathId, Span};
use plait_core::{Config, ConnectionState, FallbackCause};
use plait_wire::{Flags, MpCapable, Mptcp, Options, Segment};

/// Most half-open connections of an endpoint.
const HALF_OPEN: usize = 4_096;

/// Fills the table with SYNs of strangers. The answers are lost.
fn fill(s: &mut Script) {
    for port in 0..HALF_OPEN as u16 {
        let options = Options { mss: Some(1_460), ..Options::default() };
        let flags = Flags::SYN;
        let syn = Segment { src_port: port, dst_port: 80, flags, options, ..Segment::default() };
        s.endpoint.handle(s.now, PathId(9), &syn);
    }
    while s.endpoint.poll_transmit(s.now).is_some() {}
    assert_eq!(s.endpoint.kept(), HALF_OPEN);
}

/// Advances time. The answers to strangers are lost.
fn pass(s: &mut Script, millis: u64) {
    let target = s.now + Span::from_millis(millis);
    while s.endpoint.poll_timeout() <= target {
        s.now = s.endpoint.poll_timeout();
        s.endpoint.handle_timeout(s.now);
        while s.endpoint.poll_transmit(s.now).is_some() {}
    }
    s.now = target;
}

/// Returns a server whose table is full.
fn flooded(config: Config) -> Script {
    let mut s = Script::server(spec(config, 1, None));
    fill(&mut s);
    s
}

fn accept(s: &mut Script) {
    s.id = s.endpoint.poll_accept().unwrap_or_else(|| s.fail("nothing to accept"));
}

fn counts(s: &Script) -> [u64; 3] {
    let all = s.endpoint.overflows();
    [all.cookies_sent, all.cookies_accepted, all.cookies_refused]
}

/// R6, R80: the SYN/ACK of Multipath TCP looks like that of any other handshake and leaves no
/// state. The third ACK opens the connection with all options of the SYN.
#[test]
fn multipath_without_state() {
    let mut s = flooded(multipath());
    let syn = s.syn(0).mptcp(capable_syn());
    s.send(syn);
    s.expect(want(0, SYN.with(ACK)).ack(1).mptcp("capable1").scale(Some(10)));
    assert_eq!((s.endpoint.kept(), counts(&s)), (HALF_OPEN, [1, 0, 0]));
    s.after(300);
    s.send(s.proof(0).win(23));
    accept(&mut s);
    assert!(s.endpoint.stats(s.id).unwrap().multipath);
    assert_eq!((s.endpoint.kept(), counts(&s)), (HALF_OPEN + 1, [1, 1, 0]));
    // Segments use the peer's MSS, and its window is scaled.
    s.write(50_000);
    s.expect(want(0, PSH).len(MSS).map(0, 1, MSS as u16));
    s.expect(want(0, PSH).len(MSS).map(u64::from(MSS), 1 + MSS, MSS as u16));
    const { assert!(3 * MSS > 23 << SCALE) };
    s.expect_nothing();
}

/// R7, R80: the same if the third ACK is lost and the first data carries the keys.
#[test]
fn the_first_data_has_the_keys() {
    let mut s = flooded(multipath());
    let syn = s.syn(0).mptcp(capable_syn());
    s.send(syn);
    s.after(300);
    let Some(Mptcp::Capable(keys)) = s.proof(0).mptcp else { panic!() };
    let mut data =
        s.tx(0).flags(PSH).mptcp(Mptcp::Capable(MpCapable { data_len: Some(100), ..keys }));
    (data.len, data.dack) = (100, None);
    s.send(data);
    accept(&mut s);
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
    assert!(s.endpoint.stats(s.id).unwrap().multipath);
}

/// R64, R65, R66, R80: plain TCP. Without timestamps there is no window scaling and no SACK, and
/// the SYN/ACK does not offer them.
#[test]
fn plain_tcp_without_state() {
    for stamps in [true, false] {
        let mut s = flooded(plain());
        let syn = s.syn(0);
        s.send(Seg { stamps: syn.stamps.filter(|_| stamps), ..syn });
        let answer = s.expect(want(0, SYN.with(ACK)).ack(1).plain());
        assert_eq!((answer.scale.is_some(), answer.sack_permitted), (stamps, stamps));
        assert_eq!(answer.stamps.is_some(), stamps);
        s.after(300);
        let ack = s.tx(0);
        s.send(Seg { stamps: ack.stamps.filter(|_| stamps), ..ack });
        accept(&mut s);
        assert_eq!(s.state(), ConnectionState::Open);
        s.write(3_000);
        // The MSS excludes options (RFC 6691).
        s.expect(want(0, PSH).len(1_448));
    }
}

/// R50, R80: a middlebox removes MP_CAPABLE from the third ACK. The connection is plain TCP.
#[test]
fn a_third_ack_without_keys_falls_back() {
    let mut s = flooded(multipath());
    let syn = s.syn(0).mptcp(capable_syn());
    s.send(syn);
    s.send(s.tx(0).stripped());
    accept(&mut s);
    let stats = s.endpoint.stats(s.id).unwrap();
    assert_eq!((stats.multipath, stats.fallback), (false, Some(FallbackCause::ThirdAck)));
}

/// R80, S3: an ACK is reset if it has another number, path, port or key, or if it is later than 128
/// s.
#[test]
fn what_is_not_ours_is_reset() {
    let ask = |wait: u64, change: &dyn Fn(Seg) -> Seg| {
        let mut s = flooded(multipath());
        let syn = s.syn(0).mptcp(capable_syn());
        s.send(syn);
        s.lose_all();
        pass(&mut s, wait);
        // New strangers keep the table full, so that cookies stay in use.
        if wait > 60_000 {
            fill(&mut s);
            let syn = s.syn(1);
            s.send(syn);
            s.lose_all();
        }
        let before = s.endpoint.kept();
        let proof = change(s.proof(0));
        s.send(proof);
        let reset = s.out.iter().any(|(_, seg, _)| seg.flags.has(Flags::RST));
        assert_eq!(reset, s.endpoint.kept() == before, "{}", s.log);
        assert_eq!(counts(&s)[1..], if reset { [0, 1] } else { [1, 0] });
        reset
    };
    assert!(!ask(20, &|seg| seg));
    assert!(!ask(60_000, &|seg| seg));
    assert!(ask(129_000, &|seg| seg));
    assert!(ask(20, &|seg| seg.ack(2)));
    assert!(ask(20, &|seg| seg.seq(2)));
    let wrong = |seg: Seg| {
        let Some(Mptcp::Capable(keys)) = seg.mptcp.clone() else { panic!() };
        let receiver_key = keys.receiver_key.map(|key| plait_wire::Key(key.0 ^ 1));
        seg.mptcp(Mptcp::Capable(MpCapable { receiver_key, ..keys }))
    };
    assert!(ask(20, &wrong));
}

/// R80: a cookie belongs to a client's address, and is invalid from any other address. The number
/// of the client's path may change.
#[test]
fn a_cookie_belongs_to_an_address() {
    for (source, taken) in [([192, 0, 2, 1], true), ([192, 0, 2, 2], false)] {
        let mut s = flooded(plain());
        let syn = s.syn(0);
        let syn = s.to_wire(&syn);
        s.endpoint.handle_from(s.now, [192, 0, 2, 1].into(), PathId(4), &syn);
        let answer = s.endpoint.poll_transmit(s.now).unwrap().segment;
        let ack = Segment {
            seq: syn.seq.wrapping_add(1),
            ack: answer.seq.wrapping_add(1),
            flags: Flags::ACK,
            ..syn
        };
        s.endpoint.handle_from(s.now, source.into(), PathId(7), &ack);
        assert_eq!(s.endpoint.poll_accept().is_some(), taken);
    }
}
