//! Data of a client on a join before the fourth ACK, between two ends that agree on early joins.

use crate::harness::{MSS, Script, capable_syn, multipath, spec};
use crate::segment::{ACK, PSH, RST, Seg, want};
use plait_core::{Config, FallbackCause, JoinTiming};
use plait_wire::{JoinAck, Mptcp};

fn agreeing() -> Config {
    multipath().with(|it| it.joins.timing = JoinTiming::Agreed)
}

/// Returns a client whose peer agrees on early joins. Its first window of data is sent on the first
/// subflow, and more waits. The answer to its join is not sent yet.
fn uploading() -> Script {
    let mut s = Script::client(spec(agreeing(), 2, None));
    s.after(20);
    s.send(Seg { early_joins: true, ..s.syn_ack(0) });
    s.write(60 * u64::from(MSS));
    s.lose_all();
    s
}

/// Returns that client after a DATA_ACK of the first segment and the answer to its join: the third ACK and
/// the first window of data are sent on the second subflow.
fn early() -> Script {
    let mut s = uploading();
    s.after(20);
    s.ack(0, 1 + MSS, u64::from(MSS));
    s.lose_all();
    s.send(s.syn_ack(1));
    s
}

fn data_on(s: &Script, path: u32) -> u32 {
    s.out.iter().filter(|(_, seg, _)| seg.path == path).map(|(_, seg, _)| seg.len).sum()
}

fn proofs(s: &Script) -> usize {
    let proof = |seg: &Seg| matches!(seg.mptcp, Some(Mptcp::JoinAck(_)));
    s.out.iter().filter(|(_, seg, _)| proof(seg)).count()
}

/// Returns a server that agreed on early joins and has answered one, with `len` bytes received on the
/// first subflow.
fn joined_server(len: u32) -> Script {
    let mut s = Script::server(spec(agreeing(), 2, None));
    let syn = Seg { early_joins: true, ..s.syn(0).mptcp(capable_syn()) };
    s.send(syn);
    s.after(20);
    s.send(s.proof(0));
    s.id = s.endpoint.poll_accept().expect("accepted");
    if len > 0 {
        s.send(s.tx(0).data(0, len));
    }
    let join = s.join_syn(1, false);
    s.send(join);
    s.lose_all();
    s
}

/// R22: the client sends its third ACK alone, and its data right after it.
#[test]
fn data_follows_the_third_ack() {
    let mut s = early();
    s.expect(want(1, ACK).seq(1).len(0).mptcp("join proof").at(40.0));
    let first = s.expect(want(1, PSH).seq(1).at(40.0));
    assert!(first.map.is_some() && first.mptcp.is_none());
    assert_eq!(data_on(&s, 1) + first.len, 10 * MSS);
    // The fourth ACK ends the handshake, and acknowledgements release more.
    s.lose_all();
    s.after(20);
    s.ack(1, 1, u64::from(MSS));
    s.after(1);
    s.ack(1, 1 + 2 * MSS, u64::from(MSS));
    assert_eq!((data_on(&s, 1), proofs(&s)), (4 * MSS, 0));
}

/// The peer has not acknowledged any data when it answers the join. It may still fall back, so the data waits for
/// a DATA_ACK.
#[test]
fn data_waits_for_the_first_data_ack() {
    let mut s = uploading();
    s.after(10);
    s.send(s.syn_ack(1));
    s.expect(want(1, ACK).mptcp("join proof").at(30.0));
    s.expect_nothing();
    s.after(10);
    s.ack(0, 1 + MSS, u64::from(MSS));
    assert_eq!(data_on(&s, 1), 10 * MSS);
    assert!(s.out.iter().all(|(time, seg, _)| seg.path == 0 || time.as_nanos() == 40_000_000));
}

/// R22: without the agreement, and with an offer that only one end makes, data waits for the fourth ACK.
#[test]
fn without_an_agreement_data_waits_for_the_fourth_ack() {
    for (config, agrees) in [(agreeing(), false), (multipath(), true), (multipath(), false)] {
        let mut s = Script::client(spec(config, 2, None));
        s.after(20);
        s.send(Seg { early_joins: agrees, ..s.syn_ack(0) });
        s.write(60 * u64::from(MSS));
        s.after(20);
        s.ack(0, 1 + MSS, u64::from(MSS));
        s.lose_all();
        s.send(s.syn_ack(1));
        s.expect(want(1, ACK).mptcp("join proof"));
        s.expect_nothing();
        s.after(20);
        s.send(s.tx(1));
        assert_eq!(data_on(&s, 1), 10 * MSS);
    }
}

/// The third ACK and all data behind it are lost. The tail loss probe repeats the HMAC, too.
#[test]
fn a_probe_repeats_the_proof() {
    let mut s = early();
    s.lose_all();
    s.after(60);
    let probe = s.out.iter().position(|(_, seg, _)| seg.path == 1).expect("a probe");
    s.out.drain(..probe);
    s.expect(want(1, ACK).len(0).mptcp("join proof"));
    s.expect(want(1, PSH).seq(1 + 9 * MSS));
}

/// R22: nothing of the second subflow arrives. After the timeout, the HMAC precedes the retransmitted data, and the
/// other subflow carries the data, too. The wait for the fourth ACK ends with a reset.
#[test]
fn a_timeout_repeats_the_proof_and_moves_the_data() {
    let mut s = early();
    let (_, lost, _) = s.out[1].clone();
    s.after(200);
    s.ack(0, 1 + 10 * MSS, 10 * u64::from(MSS));
    s.lose_all();
    s.after(60);
    let again: Vec<Seg> = s.out.iter().map(|it| it.1.clone()).filter(|it| it.path == 1).collect();
    assert!(matches!(again[0].mptcp, Some(Mptcp::JoinAck(_))), "{:?}", again[0]);
    assert_eq!((again[1].seq, again[1].len, again.len()), (1, MSS, 2));
    assert!(s.endpoint.stats(s.id).unwrap().subflows[1].potentially_failed);
    // Acknowledgements of the first subflow make room there.
    s.ack(0, 1 + 20 * MSS, 10 * u64::from(MSS));
    let moved = |seg: &Seg| seg.path == 0 && seg.map.map(|it| it.0) == lost.map.map(|it| it.0);
    assert!(s.out.iter().any(|(_, seg, _)| moved(seg)));
    s.after(60_000);
    assert!(s.out.iter().any(|(_, seg, _)| seg.path == 1 && seg.flags.has(RST)));
}

/// An idle subflow whose third ACK has no answer counts as silent until the fourth ACK arrives.
#[test]
fn an_unanswered_proof_is_a_silent_path() {
    let mut s = Script::client(spec(agreeing(), 2, None));
    s.after(20);
    s.send(Seg { early_joins: true, ..s.syn_ack(0) });
    s.write(10);
    s.after(20);
    s.ack(0, 11, 10);
    s.send(s.syn_ack(1));
    s.lose_all();
    let failed = |s: &Script| s.endpoint.stats(s.id).unwrap().subflows[1].potentially_failed;
    assert!(!failed(&s));
    s.after(300);
    assert_eq!(proofs(&s), 1);
    assert!(failed(&s));
    s.send(s.tx(1));
    assert!(!failed(&s));
    s.lose_all();
    s.after(60_000);
    s.expect_nothing();
}

/// A repeated SYN/ACK gets the HMAC again, even if data is sent at the same time.
#[test]
fn a_repeated_syn_ack_gets_the_proof_before_data() {
    let mut s = early();
    s.lose_all();
    s.after(5);
    s.send(s.syn_ack(1));
    s.expect(want(1, ACK).len(0).mptcp("join proof").at(45.0));
}

/// R21: the server ignores and counts data that arrives before the third ACK. It acknowledges it only when it is
/// retransmitted after that ACK.
#[test]
fn the_server_ignores_data_before_the_third_ack() {
    let mut s = joined_server(100);
    let proof = s.proof(1);
    let data = s.tx(1).data(100, 100);
    for _ in 0..2 {
        s.send(data.clone());
        s.expect_nothing();
    }
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
    assert_eq!(s.endpoint.overflows().unproven_data, 2);
    s.send(proof.seq(101));
    s.expect(want(1, ACK).ack(1).dack(100));
    s.send(data);
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 200);
    assert_eq!(s.endpoint.overflows().unproven_data, 2);
}

/// R21, R23: a third ACK with a wrong HMAC resets the subflow. Data before and after it is not delivered.
#[test]
fn a_forged_third_ack_delivers_nothing() {
    let mut s = joined_server(100);
    let forged = s.proof(1).mptcp(Mptcp::JoinAck(JoinAck { hmac: [7; 20] }));
    let data = s.tx(1).data(100, 100);
    s.send(data.clone());
    s.expect_nothing();
    // The forger may add data to the third ACK itself.
    s.send(Seg { mptcp: forged.mptcp, ..data.clone() });
    s.expect(want(1, RST).mptcp("Reset { reason: Mptcp, transient: false }"));
    s.send(data);
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
    let counts = s.endpoint.overflows();
    assert_eq!((counts.joins_forged, counts.unproven_data), (1, 1));
    assert!(s.out.iter().all(|(_, seg, _)| seg.dack != Some(200)));
}

/// After a DATA_ACK and the answer to a join, the client may use both subflows. Sequence numbers then say nothing
/// about DSNs, so the server does not fall back. Without a DATA_ACK or without the agreement it does.
#[test]
fn a_server_falls_back_only_if_data_was_not_sent_early() {
    for (received, falls) in [(0, Some(FallbackCause::FirstData)), (100, None)] {
        let mut s = joined_server(received);
        s.send(Seg { len: 100, flags: PSH, ..s.tx(0).stripped() });
        assert_eq!(s.endpoint.stats(s.id).unwrap().fallback, falls);
        assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
    }
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(0, 100));
    let join = s.join_syn(1, false);
    s.send(join);
    s.send(Seg { len: 100, flags: PSH, ..s.tx(0).stripped() });
    assert_eq!(s.endpoint.stats(s.id).unwrap().fallback, Some(FallbackCause::Mappings));
}
