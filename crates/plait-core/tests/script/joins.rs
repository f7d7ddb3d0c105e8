//! MP_JOIN: the four segments, correct and wrong HMACs, priorities.

use crate::harness::{MSS, Script, capable_syn, multipath, spec};
use crate::segment::{ACK, PSH, RST, SYN, Seg, want};
use plait_base::{PathId, SubflowId};
use plait_core::{JoinTiming, Quota};
use plait_wire::{Flags, JoinAck, JoinSynAck, Mptcp};

fn up(s: &Script, subflow: usize) -> bool {
    s.endpoint.stats(s.id).unwrap().subflows.get(subflow).is_some_and(|subflow| subflow.up)
}

/// R20, R8: the client joins after the first DSS of the peer, not before.
#[test]
fn the_join_waits_for_a_dss() {
    let mut s = Script::client(spec(multipath(), 2, None));
    s.after(20);
    s.send(s.syn_ack(0));
    s.lose_all();
    s.after(30);
    s.expect_nothing();
    s.send(s.tx(0));
    let syn = s.expect(want(1, SYN).mptcp("join").at(50.0));
    let Some(Mptcp::JoinSyn(join)) = syn.mptcp else { panic!() };
    assert_eq!(join.token, s.key.token());
}

/// The quota of the first path is used up after the SYN. Its data waits, so a DSS may never arrive.
#[test]
fn the_join_does_not_wait_for_a_dss_if_the_first_path_may_carry_no_data() {
    for quota in [0, 10_000] {
        let mut spec = spec(multipath(), 2, None);
        let thrifty = plait_sched::Spec::parse("minrtt+price:goal=thrifty").unwrap();
        spec.scheduler = std::sync::Arc::new(move || thrifty.build());
        let mut s = Script::client(spec);
        s.endpoint.set_price(PathId(0), 0, Some(Quota::new(quota)));
        s.after(20);
        s.send(s.syn_ack(0));
        s.lose_all();
        s.write(1_000);
        s.after(1);
        if quota == 0 {
            s.expect(want(1, SYN).mptcp("join"));
        } else {
            s.expect(want(0, ACK.with(PSH)).len(1_000));
        }
        s.expect_nothing();
    }
}

/// With another setting, the client joins after the SYN/ACK.
#[test]
fn the_join_may_follow_the_syn_ack() {
    let config = multipath().with(|it| it.joins.timing = JoinTiming::AfterSynAck);
    let mut s = Script::client(spec(config, 2, None));
    s.after(20);
    s.expect(want(0, SYN));
    s.send(s.syn_ack(0));
    s.expect(want(1, SYN).mptcp("join").at(20.0));
    s.expect(want(0, ACK).mptcp("capable2"));
}

fn agreeing() -> plait_core::Config {
    multipath().with(|it| it.joins.timing = JoinTiming::Agreed)
}

/// Returns a server that has answered the first SYN and waits for the third ACK.
fn half_open(config: plait_core::Config) -> Script {
    let mut s = Script::server(spec(config, 2, None));
    let syn = s.syn(0).mptcp(capable_syn());
    s.send(syn);
    s.expect(want(0, SYN.with(ACK)));
    s
}

/// The client offers joins right after the SYN/ACK. It sends them then only if the peer agrees.
#[test]
fn both_ends_may_agree_on_early_joins() {
    for agrees in [true, false] {
        let mut s = Script::client(spec(agreeing(), 2, None));
        assert!(s.expect(want(0, SYN)).early_joins);
        s.after(20);
        s.send(Seg { early_joins: agrees, ..s.syn_ack(0) });
        let early = agrees.then(|| s.expect(want(1, SYN).mptcp("join").at(20.0)));
        s.expect(want(0, ACK).mptcp("capable2"));
        s.expect_nothing();
        s.after(30);
        s.send(s.tx(0));
        let join = early.unwrap_or_else(|| s.expect(want(1, SYN).mptcp("join").at(50.0)));
        assert!(!join.early_joins);
    }
}

/// An agreement that the client has not offered has no effect, and neither has one in a SYN/ACK of plain TCP.
#[test]
fn an_agreement_without_an_offer_changes_nothing() {
    let mut s = Script::client(spec(multipath(), 2, None));
    assert!(!s.expect(want(0, SYN)).early_joins);
    s.after(20);
    s.send(Seg { early_joins: true, ..s.syn_ack(0) });
    s.expect(want(0, ACK).mptcp("capable2"));
    s.expect_nothing();
    let mut s = Script::client(spec(agreeing(), 2, None));
    s.lose_all();
    s.after(20);
    s.send(Seg { early_joins: true, ..s.syn_ack(0).stripped() });
    s.expect(want(0, ACK));
    s.expect_nothing();
}

/// The SYN that a middlebox might drop for its options is repeated without any of them.
#[test]
fn a_syn_without_mptcp_offers_no_early_joins() {
    let mut s = Script::client(spec(agreeing(), 1, None));
    let mut last = s.expect(want(0, SYN));
    while last.mptcp.is_some() {
        assert!(last.early_joins);
        s.after(60_000);
        while !s.out.is_empty() {
            last = s.expect(want(0, SYN));
        }
    }
    assert!(!last.early_joins);
}

/// A server agrees only if it was asked, and only with Multipath TCP.
#[test]
fn a_server_agrees_if_it_is_asked() {
    for (config, asked, agrees) in
        [(agreeing(), true, true), (agreeing(), false, false), (multipath(), true, false)]
    {
        let mut s = Script::server(spec(config, 2, None));
        let syn = Seg { early_joins: asked, ..s.syn(0).mptcp(capable_syn()) };
        s.send(syn);
        assert_eq!(s.expect(want(0, SYN.with(ACK))).early_joins, agrees);
    }
    let mut s = Script::server(spec(agreeing(), 2, None));
    let syn = Seg { early_joins: true, ..s.syn(0) };
    s.send(syn);
    assert!(!s.expect(want(0, SYN.with(ACK))).early_joins);
}

/// A join that arrives before the third ACK is answered once that has arrived. Its repetition changes nothing.
#[test]
fn a_server_keeps_an_early_join_until_the_third_ack() {
    let mut s = Script::server(spec(agreeing(), 2, None));
    let syn = Seg { early_joins: true, ..s.syn(0).mptcp(capable_syn()) };
    s.send(syn);
    s.expect(want(0, SYN.with(ACK)));
    s.after(5);
    let join = s.join_syn(1, false);
    s.send(join.clone());
    s.expect_nothing();
    s.after(400);
    s.lose_all();
    s.send(join);
    s.expect_nothing();
    s.send(s.proof(0));
    let answer = s.expect(want(1, SYN.with(ACK)).at(405.0));
    assert!(answer.mptcp.is_some());
    s.lose_all();
    s.send(s.proof(1));
    s.id = s.endpoint.poll_accept().expect("accepted");
    assert_eq!(s.endpoint.stats(s.id).unwrap().subflows.len(), 2);
    assert!(up(&s, 1));
}

/// If the third ACK is still missing when the client repeats its join, the join is reset. The client then dials on that
/// path.
#[test]
fn a_repeated_early_join_is_reset() {
    let mut s = half_open(agreeing());
    let join = s.join_syn(1, false);
    s.send(join.clone());
    s.expect_nothing();
    s.after(600);
    s.lose_all();
    s.send(join);
    s.expect(want(1, RST).mptcp("Reset { reason: Mptcp, transient: true }"));
}

/// If the third ACK falls back to plain TCP, a kept join is refused.
#[test]
fn an_early_join_is_refused_after_a_fallback() {
    let mut s = half_open(agreeing());
    let join = s.join_syn(1, false);
    s.send(join);
    s.expect_nothing();
    s.send(s.tx(0).stripped());
    s.expect(want(1, RST));
}

/// A server that accepts joins after data only refuses one that arrives before the third ACK. So does any server
/// whose half-open connection has ended.
#[test]
fn an_early_join_ends_with_its_connection() {
    let mut s = half_open(multipath());
    let join = s.join_syn(1, false);
    s.send(join);
    s.expect(want(1, RST));
    let mut s = half_open(agreeing());
    let join = s.join_syn(1, false);
    s.send(join.clone());
    assert!(s.endpoint.uses_path(plait_base::PathId(1)));
    s.send(s.tx(0).flags(RST).stripped());
    assert!(!s.endpoint.uses_path(plait_base::PathId(1)));
    s.send(join);
    s.expect(want(1, RST));
}

/// The joins that a server keeps are bounded. The oldest one gives way, and its client repeats it.
#[test]
fn early_joins_are_bounded() {
    let mut s = Script::server(spec(agreeing(), 1, None));
    let mut keys = Vec::new();
    for path in 0..257 {
        let syn = Seg { early_joins: true, ..s.syn(path).mptcp(capable_syn()) };
        s.send(syn);
        let answer = s.expect(want(path, SYN.with(ACK)));
        let Some(Mptcp::Capable(capable)) = answer.mptcp else { panic!() };
        s.remote_key = capable.sender_key;
        keys.push(capable.sender_key);
        let join = s.join_syn(1_000 + path, false);
        s.send(join);
    }
    s.expect_nothing();
    assert_eq!(s.endpoint.overflows().joins_replaced, 1);
    for path in [0, 1, 256] {
        s.remote_key = keys[path as usize];
        // The keys are those of a first subflow on any path.
        let proof = Seg { mptcp: s.proof(0).mptcp, dack: None, ..s.tx(path) };
        s.send(proof);
        match path {
            0 => s.expect_nothing(),
            _ => drop(s.expect(want(1_000 + path, SYN.with(ACK)))),
        }
    }
}

/// R21, R22: the client repeats the third ACK with its HMAC until the fourth ACK. It sends no data
/// before that.
#[test]
fn the_client_waits_for_the_fourth_ack() {
    let mut s = Script::joining_client(spec(multipath(), 2, None));
    s.expect(want(1, SYN));
    s.after(20);
    s.send(s.syn_ack(1));
    let proof = s.expect(want(1, ACK).seq(1).ack(1).mptcp("join proof"));
    let Some(Mptcp::JoinAck(JoinAck { hmac })) = proof.mptcp else { panic!() };
    let peer = &s.peers[&1];
    let (own, nonces) = (s.remote_key.unwrap(), (peer.remote_nonce, peer.nonce));
    assert_eq!(hmac, plait_wire::join_hmac(own, s.key, nonces.0, nonces.1).left160());
    assert!(!up(&s, 1));
    // With an SRTT of 20 ms and a variance of 10 ms, the RTO is 220, 440 and 880 ms.
    s.after(220);
    s.expect(want(1, ACK).seq(1).mptcp("join proof").at(260.0));
    s.after(440);
    s.expect(want(1, ACK).seq(1).mptcp("join proof").at(700.0));
    // More than the window of the first subflow. The second one gets none of it.
    s.write(40 * u64::from(MSS));
    assert!(s.out.iter().all(|(_, seg, _)| seg.path == 0));
    s.lose_all();
    s.send(s.tx(1));
    assert!(up(&s, 1));
    assert!(s.out.iter().any(|(_, seg, _)| seg.path == 1 && seg.len > 0));
    s.after(100);
    assert!(!s.out.iter().any(|(_, seg, _)| seg.mptcp.is_some()));
}

/// R22: a repeated SYN/ACK is answered with the HMAC.
#[test]
fn a_repeated_syn_ack_gets_the_proof_again() {
    let mut s = Script::joining_client(spec(multipath(), 2, None));
    s.lose_all();
    s.after(20);
    for _ in 0..2 {
        s.send(s.syn_ack(1));
        s.expect(want(1, ACK).mptcp("join proof"));
    }
}

/// R23: a SYN/ACK with a wrong HMAC is answered with RST and MP_TCPRST. The connection stays.
#[test]
fn a_wrong_answer_is_refused() {
    let mut s = Script::joining_client(spec(multipath(), 2, None));
    s.lose_all();
    s.after(20);
    let mut answer = s.syn_ack(1);
    let Some(Mptcp::JoinSynAck(option)) = &mut answer.mptcp else { panic!() };
    option.hmac ^= 1;
    s.send(answer);
    s.expect(want(1, RST).seq(1).mptcp("Reset { reason: Mptcp, transient: false }"));
    s.expect_nothing();
    s.write(10);
    s.expect(want(0, PSH));
}

/// R21: a SYN/ACK without MP_JOIN is refused, too.
#[test]
fn an_answer_without_the_option_is_refused() {
    let mut s = Script::joining_client(spec(multipath(), 2, None));
    s.lose_all();
    s.send(s.syn_ack(1).stripped());
    s.expect(want(1, RST));
}

/// R21, R10: the server's SYN/ACK carries its HMAC, and a correct third ACK gets the fourth ACK.
/// Data is sent only afterwards.
#[test]
fn the_server_accepts_a_proof() {
    let mut s = Script::open_server(multipath(), 1);
    let syn = s.join_syn(1, false);
    s.send(syn);
    let answer = s.expect(want(1, SYN.with(ACK)).mptcp("join answer"));
    let Some(Mptcp::JoinSynAck(JoinSynAck { hmac, nonce, .. })) = answer.mptcp else { panic!() };
    let expected = plait_wire::join_hmac(s.remote_key.unwrap(), s.key, nonce, 77).left64();
    assert_eq!(hmac, expected);
    s.write(40 * u64::from(MSS));
    assert!(s.out.iter().all(|(_, seg, _)| seg.path == 0));
    s.lose_all();
    s.after(20);
    s.send(s.proof(1));
    assert!(up(&s, 1));
    s.expect(want(1, PSH).ack(1));
}

/// R22: each third ACK is answered, so a lost fourth ACK does no harm.
#[test]
fn every_proof_is_acknowledged() {
    let mut s = Script::open_server(multipath(), 2);
    for _ in 0..3 {
        s.send(s.proof(1));
        s.expect(want(1, ACK).ack(1));
    }
}

/// R23: a wrong HMAC is answered with RST and MP_TCPRST reason 1.
#[test]
fn the_server_refuses_a_wrong_proof() {
    let mut s = Script::open_server(multipath(), 1);
    let syn = s.join_syn(1, false);
    s.send(syn);
    s.expect(want(1, SYN.with(ACK)));
    let wrong = s.proof(1).mptcp(Mptcp::JoinAck(JoinAck { hmac: [7; 20] }));
    s.send(wrong);
    s.expect(want(1, RST).seq(1).mptcp("Reset { reason: Mptcp, transient: false }"));
    assert!(!up(&s, 1) && up(&s, 0));
}

/// R21: an ACK without an HMAC does not complete a join.
#[test]
fn the_server_waits_for_the_proof() {
    let mut s = Script::open_server(multipath(), 1);
    let syn = s.join_syn(1, false);
    s.send(syn);
    s.lose_all();
    s.send(s.tx(1));
    s.send(s.tx(1).data(0, 100));
    s.expect_nothing();
    assert!(!up(&s, 1));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 0);
}

/// R20, R26: an unknown token is refused and leaves no state.
#[test]
fn an_unknown_token_is_refused() {
    let mut s = Script::open_server(multipath(), 1);
    let mut syn = s.join_syn(1, false);
    let Some(Mptcp::JoinSyn(join)) = &mut syn.mptcp else { panic!() };
    join.token ^= 1;
    s.send(syn);
    s.expect(want(1, RST).seq(0).ack(1));
    assert_eq!(s.endpoint.stats(s.id).unwrap().subflows.len(), 1);
}

/// R26: joins are refused once both ends know that both directions have ended.
#[test]
fn joins_that_come_too_late_are_refused() {
    let mut s = Script::open_server(multipath(), 1);
    s.finish();
    s.lose_all();
    s.send(s.tx(0).dack(1).data_fin(0));
    s.lose_all();
    // The FIN beside the last DATA_ACK has arrived.
    s.ack(0, 2, 1);
    let syn = s.join_syn(1, false);
    s.send(syn);
    s.expect(want(1, RST));
}

/// R48: a backup subflow is unused while a regular one is alive, even if that is full. It is used
/// after the regular one has timed out.
#[test]
fn backup_is_for_emergencies() {
    let mut s = Script::open_server(multipath(), 1);
    s.join(1, 20, true);
    s.lose_all();
    s.write(40 * u64::from(MSS));
    assert_eq!(s.out.iter().filter(|(_, seg, _)| seg.path == 1).count(), 0);
    assert_eq!(s.lose_all(), 10);
    s.after(150);
    assert!(s.out.iter().all(|(_, seg, _)| seg.path == 0), "no timeout yet");
    s.after(200);
    s.lose_all();
    let stats = s.endpoint.stats(s.id).unwrap();
    assert!(stats.subflows[0].potentially_failed && !stats.subflows[1].potentially_failed);
    assert!(s.log_has_data_on(1));
    assert_eq!(stats.subflows[1].subflow, SubflowId(1));
}

/// R20, R48: the same for a path that this end configures as backup.
#[test]
fn a_backup_path_is_told_to_the_peer() {
    let mut s = Script::joining_client(spec(multipath(), 2, Some(1)));
    s.expect(want(1, SYN).mptcp("join backup"));
}

/// A join that reuses the slot of a reset first subflow is still a join. Its SYN is retransmitted,
/// and no new attempt starts.
#[test]
fn a_join_in_the_place_of_the_first_subflow() {
    let mut s = Script::client(spec(multipath(), 2, None));
    s.after(20);
    s.send(s.syn_ack(0));
    // The peer's own join keeps the connection alive when the first subflow is reset.
    let syn = s.join_syn(2, false);
    s.peers.get_mut(&2).unwrap().aim_at(s.out[0].2.src_port);
    s.send(syn);
    s.after(20);
    s.send(s.proof(2));
    s.lose_all();
    s.send(s.tx(0).flags(Flags::RST).stripped());
    assert!(up(&s, 1) && !up(&s, 0));
    s.send(s.tx(2));
    s.after(10_000);
    let syns: Vec<u32> =
        s.out.iter().filter(|(_, seg, _)| seg.path == 1).map(|(_, seg, _)| seg.seq).collect();
    assert!(syns.len() > 2 && syns.iter().all(|seq| *seq == 0), "{syns:?}");
    assert!(s.out.iter().all(|(_, seg, _)| !matches!(seg.mptcp, Some(Mptcp::Capable(_)))));
    assert!(up(&s, 1));
}
