//! Fallback to plain TCP during a connection: MP_FAIL, infinite mappings and missing mappings. It
//! also covers resets instead of a fallback (RFC 8684 section 3.7).

use crate::harness::{MSS, Script, capable_syn, multipath, spec};
use crate::segment::{ACK, FIN, PSH, RST, SYN, Seg, want};
use plait_base::{DataRange, Dsn};
use plait_core::{Config, ConnectionState, FallbackCause};
use plait_wire::{Dss, Mapping, Mptcp, ResetReason};

fn summing() -> Config {
    Config { checksum: true, ..Config::default() }
}

fn reset(reason: ResetReason) -> String {
    format!("{:?}", Mptcp::Reset { reason, transient: false })
}

impl Script {
    /// Returns the endpoint's MP_FAIL for the peer's data at `dsn`.
    fn their_fail(&self, dsn: u64) -> String {
        format!("{:?}", Mptcp::Fail(self.key.idsn().plus(1 + dsn)))
    }

    /// Returns the peer's MP_FAIL for the endpoint's data at `dsn`.
    fn our_fail(&self, dsn: u64) -> Mptcp {
        Mptcp::Fail(self.remote_key.unwrap().idsn().plus(1 + dsn))
    }

    fn fallback(&self) -> Option<FallbackCause> {
        self.endpoint.stats(self.id).unwrap().fallback
    }

    /// Returns data of the peer without any option.
    fn bare(&mut self, seq: u32, len: u32) -> Seg {
        let from = u64::from(seq) - 1;
        self.sent.insert(DataRange::with_len(Dsn::new(from), u64::from(len)));
        Seg { len, ..self.tx(0).seq(seq).flags(PSH).stripped() }
    }
}

/// Returns a server with a single subflow that has received ten bytes and written `written`.
fn exchanging(config: Config, written: u64) -> Script {
    let mut s = Script::open_server(config, 1);
    s.send(s.tx(0).data(0, 10));
    s.write(written);
    s
}

/// R42, R53, R54: the receiver's part. After a wrong checksum on the only subflow, MP_FAIL is sent.
/// The bytes are held and not DATA_ACKed, and this end still sends mappings. The infinite mapping
/// delivers the held bytes, and no options are sent afterwards.
#[test]
fn the_receiver_of_wrong_data() {
    let mut s = Script::open_server(summing(), 1);
    s.send(s.tx(0).data(0, 500));
    s.expect(want(0, ACK).ack(501).dack(500));
    s.send(s.tx(0).data(500, 500).edited());
    let fail = s.their_fail(500);
    s.expect(want(0, ACK).ack(1_001).dack(500).mptcp(&fail));
    s.send(s.tx(0).data(1_000, 500));
    s.expect(want(0, ACK).ack(1_501).dack(500).mptcp("-"));
    assert_eq!(
        (s.endpoint.readable(s.id).unwrap(), s.fallback()),
        (500, Some(FallbackCause::Checksum))
    );
    s.write(100);
    s.expect(want(0, PSH).map(0, 1, 100).dack(500));
    // The infinite mapping starts at the last DATA_ACKed byte, and its checksum is zero.
    let infinite = s.tx(0).mptcp(s.our_fail(0)).map(500, 501, 0);
    s.send(infinite);
    s.expect(want(0, ACK).ack(1_501).map(0, 1, 0).dack_none().mptcp("-"));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 1_500);
    let data = s.bare(1_501, 300);
    s.send(data);
    s.expect(want(0, ACK).ack(1_801).plain());
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 1_800);
    // New data carries the infinite mapping until some of it is acknowledged.
    s.write(200);
    s.expect(want(0, PSH).seq(101).map(0, 1, 0).dack_none());
    s.peers.get_mut(&0).unwrap().rcv = 301;
    s.send(s.tx(0).stripped());
    s.write(50);
    s.expect(want(0, PSH).seq(301).plain());
    s.finish();
    s.expect(want(0, FIN).seq(351).plain());
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 50);
}

/// After the infinite mapping is acknowledged, full segments are as long as in plain TCP. Before
/// that, they leave room for it.
#[test]
fn segments_grow_when_nothing_is_mapped_any_more() {
    let mut s = exchanging(summing(), 500);
    s.peers.get_mut(&0).unwrap().rcv = 501;
    s.send(s.tx(0).dack(0).mptcp(s.our_fail(0)));
    // The peer's infinite mapping.
    s.send(s.tx(0).map(10, 11, 0));
    s.out.clear();
    s.write(u64::from(MSS));
    s.expect(want(0, PSH).seq(501).len(MSS).map(0, 1, 0));
    let rest = s.bare(11, 10);
    s.peers.get_mut(&0).unwrap().rcv = 501 + MSS;
    s.send(Seg { ack: 501 + MSS, ..rest });
    s.out.clear();
    s.write(10_000);
    s.expect(want(0, PSH).plain());
    s.expect(want(0, PSH).len(MSS + 20).plain());
}

/// The peer's MSS limits segments after a fallback as before it: they get only the room of the DSS
/// (RFC 6691). The MSS is that of its SYN, or of its SYN/ACK.
#[test]
fn the_peers_mss_holds_after_a_fallback() {
    const PEER_MSS: u16 = 1_000;
    let options = u32::from(1_460 - PEER_MSS);
    let (mapped, plain) = (MSS - options, MSS - options + 20);
    for client in [false, true] {
        let mut s = if client {
            let mut s = Script::client(spec(summing(), 1, None));
            s.expect(want(0, SYN));
            s.after(20);
            s.send(Seg { mss: Some(PEER_MSS), ..s.syn_ack(0) });
            s.send(s.tx(0));
            s
        } else {
            let mut s = Script::server(spec(summing(), 1, None));
            let syn = s.syn(0).mptcp(capable_syn());
            s.send(Seg { mss: Some(PEER_MSS), ..syn });
            s.expect(want(0, SYN.with(ACK)));
            s.after(20);
            s.send(s.proof(0));
            s.id = s.endpoint.poll_accept().unwrap();
            s
        };
        s.out.clear();
        s.write(100 + 2 * u64::from(mapped));
        s.peers.get_mut(&0).unwrap().rcv = 101 + 2 * mapped;
        s.send(s.tx(0).dack(0).mptcp(s.our_fail(0)));
        // The peer's infinite mapping.
        s.send(s.tx(0).map(0, 1, 0));
        s.out.clear();
        s.write(u64::from(mapped));
        s.expect(want(0, PSH).len(mapped).map(0, 1, 0));
        s.peers.get_mut(&0).unwrap().rcv += mapped;
        let data = s.bare(1, 10);
        s.send(data);
        s.out.clear();
        s.write(10_000);
        s.expect(want(0, PSH).plain());
        for _ in 0..3 {
            s.expect(want(0, PSH).len(plain).plain());
        }
    }
}

/// R42, R53: the sender's part. MP_FAIL is answered with an MP_FAIL for the other direction and an
/// infinite mapping from the last DATA_ACKed byte. Later data has no mapping, and subflow
/// acknowledgements acknowledge data.
#[test]
fn the_sender_of_wrong_data() {
    let mut s = exchanging(summing(), 3_000);
    s.ack(0, MSS + 1, u64::from(MSS));
    s.lose_all();
    s.peers.get_mut(&0).unwrap().rcv = 3_001;
    s.send(s.tx(0).dack(u64::from(MSS)).mptcp(s.our_fail(u64::from(MSS))));
    let fail = s.their_fail(10);
    let told = s.expect(want(0, ACK).mptcp(&fail).map(u64::from(MSS), MSS + 1, 0));
    assert_eq!(told.len, 0);
    assert_eq!(
        (s.endpoint.unacked(s.id).unwrap(), s.fallback()),
        (0, Some(FallbackCause::Checksum))
    );
    s.write(500);
    s.expect(want(0, PSH).seq(3_001).map(u64::from(MSS), MSS + 1, 0).dack(10));
    // The other direction is mapped until its own infinite mapping.
    s.send(s.tx(0).seq(11).data(10, 20));
    s.expect(want(0, ACK).ack(31).dack(30));
    // A repeated MP_FAIL: our answer was lost.
    s.send(s.tx(0).mptcp(s.our_fail(u64::from(MSS))));
    s.expect(want(0, ACK).map(u64::from(MSS), MSS + 1, 0));
    s.peers.get_mut(&0).unwrap().rcv = 3_501;
    let bare = s.bare(31, 40);
    s.send(bare);
    s.expect(want(0, ACK).ack(71).plain());
    assert_eq!((s.endpoint.readable(s.id).unwrap(), s.endpoint.unacked(s.id).unwrap()), (70, 0));
}

/// R53: MP_FAIL is repeated until it is answered. Without an answer the subflow is reset with
/// MP_FAIL.
#[test]
fn an_unanswered_mp_fail() {
    let mut s = Script::open_server(summing(), 1);
    s.send(s.tx(0).data(0, 500).edited());
    s.after(30_000);
    let fail = s.their_fail(0);
    let told: Vec<_> = s.out.iter().filter(|(_, seg, _)| seg.mptcp.is_some()).collect();
    let words: Vec<_> = told
        .iter()
        .map(|(_, seg, _)| (seg.flags, format!("{:?}", seg.mptcp.clone().unwrap())))
        .collect();
    let ack = (ACK, fail.clone());
    assert_eq!(words, [ack.clone(), ack.clone(), ack.clone(), ack, (RST, fail)]);
    assert_eq!(s.state(), ConnectionState::Failed);
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 0);
}

/// R53: held bytes are also delivered if the options of the answer are removed. Plain data shows
/// that the peer has fallen back.
#[test]
fn plain_data_answers_mp_fail() {
    let mut s = Script::open_server(summing(), 1);
    s.send(s.tx(0).data(0, 500).edited());
    s.lose_all();
    let bare = s.bare(501, 100);
    s.send(bare);
    s.expect(want(0, ACK).ack(601).plain());
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 600);
}

/// R53: an MP_FAIL for data that was never sent is ignored.
#[test]
fn an_mp_fail_from_nowhere() {
    let mut s = Script::open_server(summing(), 1);
    s.write(1_000);
    s.lose_all();
    s.send(s.tx(0).mptcp(s.our_fail(1_001)));
    s.send(s.tx(0).mptcp(s.our_fail(u64::MAX - 5)));
    s.expect_nothing();
    assert_eq!(s.fallback(), None);
}

/// R53: if other subflows were used, the data may not be contiguous. MP_FAIL is then answered by a
/// reset with MP_FAIL.
#[test]
fn an_mp_fail_among_subflows() {
    let mut s = Script::open_server(summing(), 2);
    s.write(1_000);
    s.expect(want(0, PSH).len(1_000));
    s.send(s.tx(0).mptcp(s.our_fail(0)));
    let fail = s.their_fail(0);
    s.expect(want(0, RST).mptcp(&fail));
    s.expect(want(1, PSH).map(0, 1, 1_000));
    assert_eq!((s.state(), s.fallback()), (ConnectionState::Open, None));
}

/// R33, R42, R52: an infinite mapping beside data on a single subflow, without MP_FAIL before it.
#[test]
fn an_infinite_mapping_out_of_the_blue() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(0, 500));
    s.lose_all();
    let first = s.bare(501, 100).dack(0).map(500, 501, 0);
    s.send(first);
    s.expect(want(0, ACK).ack(601).plain());
    assert_eq!(
        (s.endpoint.readable(s.id).unwrap(), s.fallback()),
        (600, Some(FallbackCause::Mappings))
    );
    // R49, R54: no more options, not even on a reset, and no joins.
    let join = s.join_syn(1, false);
    s.send(join);
    s.expect(want(1, RST));
    s.endpoint.abort(s.now, s.id).unwrap();
    s.drain();
    s.expect(want(0, RST).plain());
}

/// R33, F19: an infinite mapping is an error if it does not match the received data, or if there is
/// another subflow.
#[test]
fn an_infinite_mapping_that_cannot_be() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(0, 500));
    s.lose_all();
    s.send(s.tx(0).map(700, 501, 0));
    s.expect(want(0, RST).mptcp(&reset(ResetReason::Mptcp)));
    let mut s = Script::open_server(multipath(), 2);
    s.send(s.tx(0).map(0, 1, 0));
    s.expect(want(0, RST).mptcp(&reset(ResetReason::Mptcp)));
    assert_eq!((s.state(), s.fallback()), (ConnectionState::Open, None));
}

/// R33: a mapping of 65,535 bytes, sent once.
#[test]
fn the_longest_mapping() {
    let mut s = Script::open_server(multipath(), 1);
    s.sent.insert(DataRange::between(0, 65_535));
    for seq in (0..65_535).step_by(1_428) {
        let len = (65_535 - seq).min(1_428);
        let piece = Seg { len, ..s.tx(0).seq(seq + 1).flags(PSH) };
        s.send(if seq == 0 { piece.map(0, 1, 65_535) } else { piece });
    }
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 65_535);
}

/// R52: data without a mapping on a single subflow is plain data.
#[test]
fn mappings_vanish_on_the_only_subflow() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(0, 500));
    s.write(100);
    s.lose_all();
    // Behind a hole, it may be part of a segment that carries its mapping.
    let late = s.bare(701, 100);
    s.send(late);
    assert_eq!(s.fallback(), None);
    s.lose_all();
    let bare = s.bare(501, 200);
    s.send(bare);
    s.expect(want(0, ACK).ack(701).plain());
    assert_eq!(
        (s.endpoint.readable(s.id).unwrap(), s.fallback()),
        (700, Some(FallbackCause::Mappings))
    );
    let late = s.bare(701, 100);
    s.send(late);
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 800);
    s.write(300);
    s.lose_all();
    let mut end = s.tx(0).seq(801).flags(FIN).stripped();
    end.ack = 401;
    s.send(end);
    assert_eq!((s.state(), s.endpoint.unacked(s.id).unwrap()), (ConnectionState::Open, 0));
    s.skip(1_000);
    assert_eq!(s.state(), ConnectionState::PeerDone);
}

/// R52: several consecutive acknowledgements of data without DATA_ACKs count as DATA_ACKs.
#[test]
fn data_acks_vanish_on_the_only_subflow() {
    let mut s = exchanging(multipath(), 5_000);
    for (count, unacked) in [(1, 5_000), (2, 5_000), (3, 5_000 - 3 * u64::from(MSS))] {
        s.peers.get_mut(&0).unwrap().rcv = count * MSS + 1;
        s.send(s.tx(0).stripped());
        assert_eq!(s.endpoint.unacked(s.id).unwrap(), unacked);
    }
    assert_eq!(s.fallback(), Some(FallbackCause::Mappings));
}

/// R52: after a single such acknowledgement, the timer decides.
#[test]
fn one_data_ack_vanishes() {
    let mut s = exchanging(multipath(), 100);
    s.peers.get_mut(&0).unwrap().rcv = 101;
    s.send(s.tx(0).stripped());
    assert_eq!((s.endpoint.unacked(s.id).unwrap(), s.fallback()), (100, None));
    s.after(1_000);
    assert_eq!(
        (s.endpoint.unacked(s.id).unwrap(), s.fallback()),
        (0, Some(FallbackCause::Mappings))
    );
    s.lose_all();
    s.finish();
    // The peer's data may still be mapped, so the end is sent in both forms.
    s.expect(want(0, FIN).seq(101).data_fin(100).dack(10));
}

/// R32, R49, R52: beside another subflow, in-order data without a mapping is not accepted. If its
/// retransmissions have no mapping either, the subflow is reset with reason 6. Data continues on
/// the other subflow.
#[test]
fn mappings_vanish_beside_another_subflow() {
    let mut s = Script::open_server(multipath(), 2);
    s.send(s.tx(0).data(0, 500));
    s.lose_all();
    for _ in 0..2 {
        let bare = Seg { len: 500, ..s.tx(0).seq(501).flags(PSH).stripped() };
        s.send(bare);
        s.expect_nothing();
    }
    // A mapping in time repairs it.
    s.send(s.tx(0).seq(501).data(500, 500));
    s.expect(want(0, ACK).dack(1_000));
    for _ in 0..3 {
        let bare = Seg { len: 500, ..s.tx(0).seq(1_001).flags(PSH).stripped() };
        s.send(bare);
    }
    s.expect(want(0, RST).mptcp(&reset(ResetReason::Middlebox)));
    s.send(s.tx(1).data(1_000, 100));
    s.expect(want(1, ACK).dack(1_100));
    assert_eq!((s.endpoint.readable(s.id).unwrap(), s.fallback()), (1_100, None));
}

/// R52: a path is not joined again if the peer reset its subflow because of a middlebox.
#[test]
fn a_path_with_a_middlebox_is_left_alone() {
    let mut s = Script::open_client(multipath(), 2);
    let option = Mptcp::Reset { reason: ResetReason::Middlebox, transient: false };
    s.send(s.tx(1).flags(RST).mptcp(option));
    s.after(120_000);
    s.expect_nothing();
}

/// R31: a mapping that differs from an earlier one of the same bytes is an error. A repeated
/// mapping is none.
#[test]
fn mappings_that_contradict() {
    let good = |s: &Script| s.tx(1).seq(1).data(0, 100).map(0, 1, 300);
    type Bad = fn(&Script) -> Seg;
    let cases: [(&str, Bad); 3] = [
        ("a longer one told", |s| Seg {
            len: 100,
            ..s.tx(1).seq(101).flags(PSH).map(5_000, 101, 300)
        }),
        ("the last byte in order", |s| Seg {
            len: 100,
            ..s.tx(1).seq(51).flags(PSH).map(9_000, 51, 100)
        }),
        ("bytes behind a hole", |s| Seg {
            len: 100,
            ..s.tx(1).seq(551).flags(PSH).map(9_000, 551, 100)
        }),
    ];
    for (what, bad) in cases {
        let mut s = Script::open_server(multipath(), 2);
        s.send(good(&s));
        s.send(good(&s));
        s.send(s.tx(1).seq(501).data(500, 100));
        assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
        s.lose_all();
        s.send(bad(&s));
        s.expect(want(1, RST).mptcp(&reset(ResetReason::Mptcp)));
        s.sent.insert(DataRange::between(0, 200));
        s.send(s.tx(0).data(0, 200));
        assert_eq!(
            (s.endpoint.readable(s.id).unwrap(), s.state()),
            (200, ConnectionState::Open),
            "{what}"
        );
    }
}

/// F19: a DATA_FIN below the received data or beyond the window is ignored, and so is a DATA_ACK of
/// unsent data.
#[test]
fn numbers_that_cannot_be() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(0, 500));
    s.write(100);
    s.lose_all();
    for dsn in [0, 499, 1 << 30] {
        s.send(s.tx(0).data_fin(dsn));
        assert_eq!(s.state(), ConnectionState::Open, "{dsn}");
    }
    s.data_fin = None;
    s.send(s.tx(0).dack(101));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 100);
}

/// R33: the format of our infinite mapping: length 0, and checksum 0 if checksums are in use.
#[test]
fn our_infinite_mapping_on_the_wire() {
    for (config, checksum) in [(summing(), Some(0)), (multipath(), None)] {
        let mut s = Script::open_server(config, 1);
        s.send(s.tx(0).data(0, 10));
        s.lose_all();
        s.send(s.tx(0).mptcp(s.our_fail(0)));
        let (_, _, segment) = s.out.pop_front().unwrap();
        let dsn = s.remote_key.unwrap().idsn().plus(1).field(false);
        let mapping = Mapping { dsn, long: false, ssn: 1, len: 0, checksum };
        let dss = Dss { data_ack: None, mapping: Some(mapping), data_fin: false };
        assert_eq!(segment.options.dss, Some(dss));
        assert!(segment.options.fits());
    }
}
