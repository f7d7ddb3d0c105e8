//! Admission of joins: addresses that deny joins, and limits.

use crate::harness::{SERVER, Script, capable_syn, multipath, spec};
use crate::segment::{ACK, RST, SYN, Seg, want};
use plait_base::Time;
use plait_core::{Config, ConnectionSpec, ConnectionState};
use plait_wire::{AddAddr, Flags, Mptcp, add_addr_hmac};
use std::net::IpAddr;

const LIMIT: &str = "Reset { reason: Prohibited, transient: true }";
const DENIED: &str = "Reset { reason: Prohibited, transient: false }";

fn second() -> IpAddr {
    IpAddr::from([10, 77, 2, 2])
}

fn denying() -> Config {
    multipath().with(|it| it.joins.deny = true)
}

/// Sets flag C in the MP_CAPABLE of a segment.
fn with_denial(mut seg: Seg) -> Seg {
    let Some(Mptcp::Capable(capable)) = &mut seg.mptcp else { panic!("no MP_CAPABLE") };
    capable.joins_denied = true;
    seg
}

fn denies(seg: &Seg) -> bool {
    matches!(&seg.mptcp, Some(Mptcp::Capable(capable)) if capable.joins_denied)
}

/// Returns a client of two paths whose server denies joins. The first DSS has arrived.
fn denied_client() -> Script {
    let mut s = Script::client(spec(multipath(), 2, None));
    assert!(!denies(&s.expect(want(0, SYN))));
    s.after(20);
    s.send(with_denial(s.syn_ack(0)));
    s.expect(want(0, ACK).mptcp("capable2"));
    s.send(s.tx(0));
    s
}

fn send_address(s: &mut Script) {
    let hmac = Some(add_addr_hmac(s.key, s.remote_key.unwrap(), 5, second(), None));
    let add = AddAddr { address_id: 5, address: second(), port: None, hmac };
    s.send(s.tx(0).mptcp(Mptcp::AddAddr(add)));
}

/// R14: a client does not join an address for which the server denies joins. It joins an announced
/// address from every path.
#[test]
fn a_denied_address_is_not_joined() {
    let mut s = denied_client();
    s.after(10_000);
    s.expect_nothing();
    send_address(&mut s);
    s.expect(want(SERVER, SYN).mptcp("join"));
    s.expect(want(SERVER + 1, SYN).mptcp("join"));
    assert!(s.out.iter().all(|(_, seg, _)| !seg.flags.has(SYN)));
}

/// R14, R58: a denied address is not joined after its subflow is gone either. The connection
/// continues at the announced address, and fails if there is none.
#[test]
fn a_denied_address_is_not_joined_again() {
    let mut s = denied_client();
    s.send(s.tx(0).flags(Flags::RST).stripped());
    assert_eq!(s.state(), ConnectionState::Failed);

    let mut s = denied_client();
    send_address(&mut s);
    s.after(20);
    s.send(s.syn_ack(SERVER));
    s.send(s.tx(SERVER));
    s.lose_all();
    s.send(s.tx(0).flags(Flags::RST).stripped());
    s.after(20_000);
    assert!(s.out.iter().all(|(_, seg, _)| seg.path >= SERVER));
    s.send(s.tx(SERVER).flags(Flags::RST).stripped());
    s.lose_all();
    assert!(s.endpoint.stats(s.id).unwrap().waits);
    s.after(5_000);
    assert!(s.out.iter().any(|(_, seg, _)| seg.flags == SYN));
    assert!(s.out.iter().all(|(_, seg, _)| seg.path >= SERVER));
}

/// R14: a client that denies joins sets the flag in its SYN and its third ACK. It refuses joins
/// although its peer allows them.
#[test]
fn a_client_may_deny() {
    let mut s = Script::client(spec(denying(), 1, None));
    assert!(denies(&s.expect(want(0, SYN).mptcp("capable0"))));
    s.after(20);
    s.send(s.syn_ack(0));
    let third = s.expect(want(0, ACK).mptcp("capable2"));
    assert!(denies(&third));
    s.send(s.tx(0));
    let port = s.peers[&0].remote_port;
    let mut syn = s.join_syn(0, false);
    syn.path = 0;
    let peer = s.peers.get_mut(&0).unwrap();
    peer.aim_at(port);
    peer.port = 4_321;
    s.send(syn);
    s.expect(want(0, RST).mptcp(DENIED));
    s.expect_nothing();
}

/// R14: a server that denies joins sets the flag in its SYN/ACK. It refuses joins to its first
/// address and accepts joins to the announced one.
#[test]
fn a_server_may_deny() {
    let mut s =
        Script::server(ConnectionSpec { addresses: vec![second()], ..spec(denying(), 2, None) });
    let syn = s.syn(0);
    s.send(syn.mptcp(capable_syn()));
    assert!(denies(&s.expect(want(0, SYN.with(ACK)))));
    s.after(20);
    let proof = s.proof(0);
    s.send(proof);
    s.id = s.endpoint.poll_accept().unwrap();
    s.expect(want(0, ACK).len(0));
    s.lose_all();
    let syn = s.join_syn(1, false);
    s.send(syn);
    s.expect(want(1, RST).mptcp(DENIED));
    s.join(SERVER + 1, 20, false);
    assert_eq!(s.endpoint.stats(s.id).unwrap().subflows.len(), 2);
    // Joins to the first address stay refused.
    s.send(s.tx(0).flags(Flags::RST).stripped());
    s.send(s.tx(SERVER + 1).flags(Flags::RST).stripped());
    s.lose_all();
    assert!(s.endpoint.stats(s.id).unwrap().waits);
    let syn = s.join_syn(0, false);
    s.send(syn);
    s.expect(want(0, RST).mptcp(DENIED));
}

/// R14, R58: a server that denies joins and has announced no address fails at once.
#[test]
fn a_server_that_denies_waits_for_nobody() {
    let mut s = Script::open_server(denying(), 1);
    s.send(s.tx(0).flags(Flags::RST).stripped());
    assert_eq!(s.state(), ConnectionState::Failed);
}

/// R24: half-open joins of strangers who know the token do not occupy all slots. A valid join
/// succeeds beside any number of them, and they expire.
#[test]
fn half_open_joins_keep_nobody_out() {
    let mut s = Script::open_server(multipath(), 1);
    for path in 1..8 {
        let syn = s.join_syn(path, false);
        s.send(syn);
        s.expect(want(path, SYN.with(ACK)).mptcp("join answer"));
    }
    s.join(8, 20, false);
    let up = |s: &Script| s.endpoint.stats(s.id).unwrap().subflows.iter().filter(|s| s.up).count();
    assert_eq!((up(&s), s.endpoint.overflows().joins_replaced), (2, 4));
    // SYN/ACKs are retransmitted for a minute, then the slots are free.
    s.after(64_000);
    s.lose_all();
    s.after(1_000_000);
    s.expect_nothing();
    assert_eq!(
        (s.endpoint.ports(s.id).unwrap().len(), s.endpoint.poll_timeout()),
        (2, Time::NEVER)
    );
}

/// R61: a SYN with FIN opens nothing and is not answered.
#[test]
fn a_syn_with_fin_is_dropped() {
    let mut s = Script::server(spec(multipath(), 1, None));
    for option in [None, Some(capable_syn())] {
        let syn = s.syn(0).flags(SYN.with(Flags::FIN));
        s.send(Seg { mptcp: option, ..syn });
        s.expect_nothing();
    }
    assert_eq!((s.endpoint.kept(), s.endpoint.overflows().syns_with_fin), (0, 2));
}

/// R24: ten joins are accepted at once, then one every 100 ms. The others are refused as prohibited
/// and leave no state.
#[test]
fn joins_of_a_connection_have_a_rate() {
    let mut s = Script::open_server(multipath(), 1);
    let taken = |s: &mut Script| {
        let mut count = 0;
        loop {
            let syn = s.join_syn(1, false);
            s.send(syn);
            let (_, answer, _) = s.out.pop_front().unwrap();
            if answer.flags.has(Flags::RST) {
                assert_eq!(answer.fields().last().unwrap().1, LIMIT);
                return count;
            }
            // The attacker resets each join at once.
            s.send(Seg { seq: 1, ..s.tx(1).flags(Flags::RST).stripped() });
            s.lose_all();
            count += 1;
        }
    };
    assert_eq!(taken(&mut s), 10);
    s.after(99);
    assert_eq!(taken(&mut s), 0);
    s.after(1);
    assert_eq!(taken(&mut s), 1);
    s.after(1_000);
    assert_eq!(taken(&mut s), 10);
    assert_eq!(s.endpoint.stats(s.id).unwrap().subflows.iter().filter(|s| s.up).count(), 1);
}
