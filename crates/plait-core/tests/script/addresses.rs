//! Addresses: identifiers, ADD_ADDR, REMOVE_ADDR, and connections without subflows.

use crate::harness::{KEY, MSS, SERVER, Script, multipath, plain, spec};
use crate::segment::{ACK, PSH, RST, SYN, Seg, want};
use plait_base::{PathId, ServerAddress, Span, Time};
use plait_core::{ConnectionSpec, ConnectionState, Error};
use plait_wire::{AddAddr, Flags, Key, Mptcp, ResetReason, add_addr_hmac};
use std::net::IpAddr;

const FULL: u64 = MSS as u64;

fn second() -> IpAddr {
    IpAddr::from([10, 77, 2, 2])
}

/// Returns a server with a second address and one established subflow. The announcement is sent.
fn announcing(address: IpAddr) -> Script {
    let mut s =
        Script::server(ConnectionSpec { addresses: vec![address], ..spec(multipath(), 1, None) });
    let syn = s.syn(0);
    s.send(syn.mptcp(crate::harness::capable_syn()));
    s.expect(want(0, SYN.with(ACK)));
    s.after(20);
    let proof = s.proof(0);
    s.send(proof);
    s.id = s.endpoint.poll_accept().unwrap();
    s
}

fn told(seg: &Seg) -> AddAddr {
    match &seg.mptcp {
        Some(Mptcp::AddAddr(add)) => add.clone(),
        other => panic!("no ADD_ADDR: {other:?}"),
    }
}

/// Returns an ADD_ADDR of the script.
fn add_addr(s: &Script, id: u8, address: IpAddr, port: Option<u16>) -> AddAddr {
    let hmac = add_addr_hmac(s.key, s.remote_key.unwrap(), id, address, port);
    AddAddr { address_id: id, address, port, hmac: Some(hmac) }
}

fn send_address(s: &mut Script, add: AddAddr) {
    s.send(s.tx(0).mptcp(Mptcp::AddAddr(add)));
}

fn echo_of(add: &AddAddr) -> String {
    format!("{:?}", Mptcp::AddAddr(AddAddr { hmac: None, ..add.clone() }))
}

/// Returns the address identifier in the SYN of a join.
fn join_id(seg: &Seg) -> u8 {
    match &seg.mptcp {
        Some(Mptcp::JoinSyn(join)) => join.address_id,
        other => panic!("no join: {other:?}"),
    }
}

fn up(s: &Script, subflow: usize) -> bool {
    s.endpoint.stats(s.id).unwrap().subflows.get(subflow).is_some_and(|subflow| subflow.up)
}

/// R43, R45: the server announces its second address on a pure ACK beside a DATA_ACK, with the
/// HMAC. It repeats it after 120 s until it is echoed.
#[test]
fn an_address_is_announced_until_it_is_echoed() {
    for address in [second(), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2])] {
        let mut s = announcing(address);
        let first = s.expect(want(0, ACK).len(0).at(20.0));
        let add = told(&first);
        let hmac = add_addr_hmac(s.remote_key.unwrap(), KEY, add.address_id, address, None);
        assert_eq!((add.address_id, add.address, add.hmac), (1, address, Some(hmac)));
        // An IPv6 address leaves no room for the DATA_ACK, which is sent separately.
        assert_eq!(first.dack.is_some(), address.is_ipv4());
        if address.is_ipv6() {
            s.expect(want(0, ACK).len(0).dack(0).mptcp("-"));
        }
        s.expect_nothing();
        s.after(119_999);
        s.expect_nothing();
        s.after(1);
        assert_eq!(told(&s.expect(want(0, ACK).at(120_020.0))), add);
        s.lose_all();
        // An echo of another address does not count.
        let wrong = AddAddr { address: IpAddr::from([10, 1, 1, 1]), hmac: None, ..add.clone() };
        send_address(&mut s, wrong);
        s.after(120_000);
        assert_eq!(told(&s.expect(want(0, ACK))), add);
        s.lose_all();
        send_address(&mut s, AddAddr { hmac: None, ..add });
        s.after(1_000_000);
        s.expect_nothing();
    }
}

/// R43, R20, R25: the client verifies the announcement, echoes it, and joins the new address from
/// all its paths. Each join has the identifier of its own address.
#[test]
fn an_announced_address_is_joined_from_every_path() {
    let mut s = Script::joining_client(spec(multipath(), 2, None));
    assert_eq!(join_id(&s.expect(want(1, SYN))), 2);
    let add = add_addr(&s, 5, second(), Some(4433));
    send_address(&mut s, add.clone());
    let first = s.expect(want(SERVER, SYN).mptcp("join"));
    assert_eq!((join_id(&first), s.endpoint.address(ServerAddress(1))), (0, Some(second())));
    assert_eq!(join_id(&s.expect(want(SERVER + 1, SYN).mptcp("join"))), 2);
    s.expect(want(0, ACK).mptcp(&echo_of(&add)).dack(0));
    s.expect_nothing();
    // The echo was lost and the address is announced again: it is only echoed.
    send_address(&mut s, add.clone());
    s.expect(want(0, ACK).mptcp(&echo_of(&add)));
    s.expect_nothing();
}

/// R44: an announcement with a wrong HMAC, or with the HMAC of another address, is ignored.
#[test]
fn a_wrong_hmac_is_ignored() {
    let mut s = Script::joining_client(spec(multipath(), 1, None));
    let right = add_addr(&s, 5, second(), None);
    let own = add_addr_hmac(s.remote_key.unwrap(), s.key, 5, second(), None);
    for wrong in [
        AddAddr { hmac: right.hmac.map(|hmac| hmac ^ 1), ..right.clone() },
        AddAddr { hmac: Some(own), ..right.clone() },
        AddAddr { address_id: 6, ..right.clone() },
        AddAddr { port: Some(1), ..right.clone() },
        AddAddr { address: IpAddr::from([10, 77, 2, 3]), ..right.clone() },
    ] {
        send_address(&mut s, wrong);
        s.expect_nothing();
    }
    send_address(&mut s, right);
    s.expect(want(SERVER, SYN));
}

/// R44: addresses beyond the limit and unroutable ones are echoed, but not joined. A server joins
/// none.
#[test]
fn not_every_address_is_joined() {
    let config = multipath().with(|it| it.joins.peer_addresses = 1);
    let mut s = Script::joining_client(spec(config, 1, None));
    let texts = ["127.0.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0", "::1", "ff02::1"];
    for (id, text) in texts.iter().enumerate() {
        let add = add_addr(&s, 10 + id as u8, text.parse().unwrap(), None);
        send_address(&mut s, add.clone());
        s.expect(want(0, ACK).mptcp(&echo_of(&add)));
        s.lose_all();
    }
    let add = add_addr(&s, 1, second(), None);
    send_address(&mut s, add);
    s.expect(want(SERVER, SYN));
    s.lose_all();
    for n in 2..250 {
        let add = add_addr(&s, n, IpAddr::from([10, 9, 9, n]), None);
        send_address(&mut s, add.clone());
        s.expect(want(0, ACK).mptcp(&echo_of(&add)));
        s.expect_nothing();
    }
    let mut s = Script::open_server(multipath(), 1);
    let add = add_addr(&s, 1, second(), None);
    send_address(&mut s, add.clone());
    s.expect(want(0, ACK).mptcp(&echo_of(&add)));
    s.expect_nothing();
}

/// R25: an identifier in use keeps its address.
#[test]
fn an_identifier_in_use_keeps_its_address() {
    let mut s = Script::joining_client(spec(multipath(), 2, None));
    s.lose_all();
    s.after(20);
    s.send(s.syn_ack(1));
    s.send(s.tx(1));
    s.lose_all();
    // The script's join answers use the path number as identifier.
    let add = add_addr(&s, 1, second(), None);
    send_address(&mut s, add.clone());
    s.expect(want(0, ACK).mptcp(&echo_of(&add)));
    s.expect_nothing();
}

/// R25: identifiers belong to addresses. A subflow that is opened again has the same identifier, in
/// any slot.
#[test]
fn a_subflow_that_comes_again_has_its_identifier() {
    let mut s = Script::joining_client(spec(multipath(), 3, None));
    let ids = [s.expect(want(1, SYN)), s.expect(want(2, SYN))].map(|seg| join_id(&seg));
    assert!(ids[0] != 0 && ids[1] != 0 && ids[0] != ids[1], "{ids:?}");
    s.after(20);
    for path in [1, 2] {
        s.send(s.syn_ack(path));
        s.send(s.tx(path));
    }
    s.lose_all();
    s.send(s.tx(0).flags(Flags::RST).stripped());
    s.send(s.tx(2).flags(Flags::RST).stripped());
    s.after(1_000);
    assert_eq!(join_id(&s.expect(want(0, SYN))), 0);
    assert_eq!(join_id(&s.expect(want(2, SYN))), ids[1]);
}

/// R46: after REMOVE_ADDR the subflow is probed three times and then reset. Its data is sent
/// elsewhere at once.
#[test]
fn a_removed_address_is_checked_and_closed() {
    let mut s = Script::open_server(multipath(), 2);
    s.write(5 * FULL);
    s.lose_all();
    let remove = Mptcp::RemoveAddr(vec![7, 0, 200].into());
    s.send(s.tx(1).mptcp(remove));
    // A keep-alive, one below the acknowledged sequence number.
    s.expect(want(0, ACK).seq(0).len(0));
    s.expect(want(1, PSH).map(0, 1, MSS as u16));
    assert!(s.endpoint.stats(s.id).unwrap().subflows[0].potentially_failed);
    s.after(500);
    let on_first: Vec<u32> =
        s.out.iter().filter(|(_, seg, _)| seg.path == 0).map(|(_, seg, _)| seg.len).collect();
    assert!(on_first.iter().filter(|len| **len == 0).count() >= 2, "{on_first:?}");
    s.after(200);
    assert!(s.out.iter().any(|(_, seg, _)| seg.path == 0 && seg.flags.has(Flags::RST)));
    assert_eq!(s.endpoint.stats(s.id).unwrap().subflows.iter().filter(|s| s.up).count(), 1);
}

/// R46: a subflow that answers the probe stays, because the option has no HMAC and anyone may have
/// sent it. An unknown identifier has no effect.
#[test]
fn a_subflow_that_answers_stays() {
    for id in [0, 99] {
        let mut s = Script::open_server(multipath(), 2);
        s.send(s.tx(1).mptcp(Mptcp::RemoveAddr(vec![id].into())));
        if id == 0 {
            s.expect(want(0, ACK).seq(0));
            s.after(20);
            s.send(s.tx(0));
        }
        s.after(10_000);
        s.expect_nothing();
        assert!(up(&s, 0) && up(&s, 1));
        s.write(FULL);
        s.expect(want(0, PSH));
    }
}

/// R46, R58: the last subflow is also closed if it does not answer. The connection then waits.
#[test]
fn the_last_subflow_may_be_removed() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).mptcp(Mptcp::RemoveAddr(vec![0].into())));
    s.after(5_000);
    let stats = s.endpoint.stats(s.id).unwrap();
    assert!(stats.waits && stats.state == ConnectionState::Open && !up(&s, 0));
    s.after(60_000);
    assert_eq!(s.state(), ConnectionState::Failed);
}

/// R46: an own address disappears and returns. Nothing more is sent from it, and another subflow
/// informs the peer. The subflow is then opened again with the same identifier.
#[test]
fn an_address_of_ours_goes_away_and_comes_back() {
    let mut s = Script::open_client(multipath(), 2);
    s.write(30 * FULL);
    s.lose_all();
    s.endpoint.lose_address(s.now, PathId(0));
    s.drain();
    s.expect(want(1, ACK).mptcp("RemoveAddr([0])"));
    s.after(5_000);
    for (_, seg, _) in core::mem::take(&mut s.out) {
        assert_eq!(seg.path, 1);
    }
    s.endpoint.regain_address(s.now, PathId(0));
    s.drain();
    assert_eq!(join_id(&s.expect(want(0, SYN).mptcp("join"))), 0);
}

/// R46: an own address disappears while the connection is being dialled. The attempt continues on
/// another path.
#[test]
fn an_address_goes_away_before_the_answer() {
    let mut s = Script::client(spec(multipath(), 2, None));
    s.expect(want(0, SYN).mptcp("capable0"));
    s.endpoint.lose_address(s.now, PathId(0));
    s.drain();
    s.expect(want(1, SYN).mptcp("capable0"));
    s.after(10_000);
    assert!(s.out.iter().all(|(_, seg, _)| seg.path == 1));
}

/// The same with plain TCP while no SYN is answered. After that, the connection is lost with the
/// address.
#[test]
fn plain_tcp_dials_elsewhere_without_its_address() {
    let mut s = Script::client(spec(plain(), 2, None));
    s.expect(want(0, SYN).plain());
    s.endpoint.lose_address(s.now, PathId(0));
    s.drain();
    s.expect(want(1, SYN).plain());
    s.after(20);
    s.send(Seg { path: 1, ..s.syn_ack(0) });
    s.endpoint.lose_address(s.now, PathId(1));
    assert_eq!(s.state(), ConnectionState::Failed);
}

/// R46: a server withdraws an announced address. Its subflows are closed, and no new ones are
/// opened there.
#[test]
fn an_announced_address_is_taken_back() {
    let mut s = announcing(second());
    s.lose_all();
    let other = IpAddr::from([10, 1, 1, 1]);
    assert_eq!(s.endpoint.withdraw(s.now, s.id, other), Err(Error::NotAnnounced(other)));
    assert_eq!(s.endpoint.withdraw(s.now, s.id, second()), Ok(()));
    s.drain();
    s.expect(want(0, ACK).mptcp("RemoveAddr([1])"));
    s.after(1_000_000);
    s.expect_nothing();

    let mut s = Script::joining_client(spec(multipath(), 1, None));
    let add = add_addr(&s, 5, second(), None);
    send_address(&mut s, add);
    s.after(20);
    let mut answer = s.syn_ack(SERVER);
    let Some(Mptcp::JoinSynAck(option)) = &mut answer.mptcp else { panic!() };
    option.address_id = 5;
    s.send(answer);
    s.send(s.tx(SERVER));
    assert!(up(&s, 1));
    s.lose_all();
    s.send(s.tx(0).mptcp(Mptcp::RemoveAddr(vec![5].into())));
    s.after(100_000);
    assert!(!up(&s, 1));
    assert!(s.out.iter().all(|(_, seg, _)| !seg.flags.has(SYN)), "nothing is opened there");
}

/// R58: without a subflow, the server waits for the client. The next subflow carries the
/// outstanding data.
#[test]
fn a_server_waits_for_another_subflow() {
    let mut s = Script::open_server(multipath(), 1);
    s.write(3 * FULL);
    s.finish();
    s.lose_all();
    s.send(s.tx(0).flags(Flags::RST).stripped());
    assert_eq!(s.state(), ConnectionState::Open);
    assert!(s.endpoint.stats(s.id).unwrap().waits && !s.endpoint.is_over());
    s.after(59_000);
    s.expect_nothing();
    let syn = s.join_syn(1, false);
    s.send(syn);
    s.expect(want(1, SYN.with(ACK)));
    s.after(20);
    let proof = s.proof(1);
    s.send(proof);
    for segment in 0..3 {
        s.expect(want(1, PSH).map(segment * FULL, 1 + segment as u32 * MSS, MSS as u16));
    }
    s.expect(want(1, ACK).data_fin(3 * FULL));
    s.after(5_000);
    assert_eq!(s.state(), ConnectionState::Open);
}

/// R58: after the close timeout the connection fails, and a late join is refused.
#[test]
fn a_server_that_waited_in_vain() {
    let mut s = Script::open_server(multipath(), 2);
    s.send(s.tx(0).flags(Flags::RST));
    s.send(s.tx(1).flags(Flags::RST));
    assert_eq!(s.state(), ConnectionState::Open);
    s.after(59_999);
    assert_eq!(s.state(), ConnectionState::Open);
    s.after(1);
    assert_eq!(s.state(), ConnectionState::Failed);
    s.expect_nothing();
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
    let syn = s.join_syn(1, false);
    s.send(syn);
    s.expect(want(1, RST).mptcp("Reset { reason: Mptcp, transient: false }"));
}

/// R58: it fails at once if the timeout is zero, with plain TCP, and before both ends have the
/// keys.
#[test]
fn where_there_is_nothing_to_wait_for() {
    let hasty = multipath().with(|it| it.timeouts.close = Span::ZERO);
    for config in [hasty, plain()] {
        let mut s = Script::open_server(config, 1);
        s.send(s.tx(0).flags(Flags::RST).stripped());
        assert_eq!(s.state(), ConnectionState::Failed);
        assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
    }
    let mut s = Script::client(spec(multipath(), 1, None));
    s.after(20);
    s.send(s.syn_ack(0));
    s.send(s.tx(0).flags(Flags::RST).stripped());
    assert_eq!(s.state(), ConnectionState::Failed);
}

/// R58: the client tries another subflow about once a second. It ends the connection if the peer no
/// longer knows it.
#[test]
fn a_client_comes_back() {
    let mut s = Script::open_client(multipath(), 2);
    s.write(2 * FULL);
    s.lose_all();
    s.send(s.tx(0).flags(Flags::RST).stripped());
    s.send(s.tx(1).flags(Flags::RST).stripped());
    s.lose_all();
    assert_eq!(s.state(), ConnectionState::Open);
    s.after(1_000);
    s.expect(want(0, SYN).mptcp("join"));
    s.expect(want(1, SYN).mptcp("join"));
    // The first path answers. Nonce and HMAC are as in any join.
    s.after(20);
    let refused = Mptcp::Reset { reason: ResetReason::Mptcp, transient: false };
    s.send(s.tx(1).seq(0).flags(RST).stripped().mptcp(refused));
    assert_eq!(s.state(), ConnectionState::Failed);
    s.after(100_000);
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
}

/// R58: the client gives up after a minute without an answer.
#[test]
fn a_client_that_tries_in_vain() {
    let mut s = Script::open_client(multipath(), 2);
    s.send(s.tx(0).flags(Flags::RST).stripped());
    s.send(s.tx(1).flags(Flags::RST).stripped());
    s.after(59_999);
    assert_eq!(s.state(), ConnectionState::Open);
    assert!(s.out.iter().filter(|(_, seg, _)| seg.flags == SYN).count() > 20);
    s.after(1);
    assert_eq!(s.state(), ConnectionState::Failed);
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
}

/// R16: a new attempt uses a key whose token is unique.
#[test]
fn a_new_attempt_takes_a_token_of_its_own() {
    let (used, fresh) = (0x1111_2222_3333_4444, 0x5555_6666_7777_8888);
    // Key, port and ISN of two connections, then the ISN and keys of the second's next attempt.
    let draws = [used, 1, 0x9999, 2, 3, used, 0x9999, fresh];
    let mut s = Script::client_drawing(spec(multipath(), 1, None), &draws);
    let second = s.endpoint.connect(s.now, 81, spec(multipath(), 2, None)).unwrap();
    s.drain();
    s.id = second;
    s.after(500);
    let syn = s.out.iter().find(|(_, seg, _)| seg.path == 1 && seg.flags == SYN);
    assert!(syn.is_some());
    s.peers.get_mut(&1).unwrap().port = 81;
    s.send(Seg { path: 1, ..s.syn_ack(0) });
    let told = s.out.iter().rev().find_map(|(_, seg, _)| match &seg.mptcp {
        Some(Mptcp::Capable(it)) => it.sender_key,
        _ => None,
    });
    assert_eq!(told, Some(Key(fresh)));
}

/// R9, R26: a join to a half-open connection is refused, because there are no keys to verify it.
#[test]
fn a_half_open_connection_takes_no_join() {
    let mut s = Script::server(spec(multipath(), 2, None));
    let syn = s.syn(0);
    s.send(syn.mptcp(crate::harness::capable_syn()));
    s.expect(want(0, SYN.with(ACK)));
    let join = s.join_syn(1, false);
    s.send(join);
    s.expect(want(1, RST).mptcp("Reset { reason: Mptcp, transient: false }"));
    s.expect_nothing();
    assert_eq!(s.endpoint.stats(s.id).unwrap().subflows.len(), 1);
}

/// R26, R54: a join to a connection that fell back to plain TCP is refused.
#[test]
fn a_connection_that_fell_back_takes_no_join() {
    let mut s = Script::server(spec(multipath(), 2, None));
    let syn = s.syn(0);
    s.send(syn.mptcp(crate::harness::capable_syn()));
    s.after(20);
    s.send(s.tx(0).stripped());
    s.lose_all();
    s.id = s.endpoint.poll_accept().unwrap();
    assert!(!s.endpoint.stats(s.id).unwrap().multipath);
    let join = s.join_syn(1, false);
    s.send(join);
    s.expect(want(1, RST).mptcp("Reset { reason: Mptcp, transient: false }"));
    assert_eq!(s.endpoint.stats(s.id).unwrap().subflows.len(), 1);
}

/// R24: a ninth subflow is refused as prohibited.
#[test]
fn a_ninth_subflow_is_refused() {
    let mut s = Script::open_server(multipath(), 8);
    let syn = s.join_syn(8, false);
    s.send(syn);
    s.expect(want(8, RST).mptcp("Reset { reason: Prohibited, transient: true }"));
    assert_eq!(s.endpoint.stats(s.id).unwrap().subflows.len(), 8);
}

/// R41, R56: a new attempt sends the end of the data again.
#[test]
fn a_new_attempt_tells_the_end_again() {
    let mut s = Script::client(spec(multipath(), 2, None));
    s.after(20);
    s.send(s.syn_ack(0));
    s.finish();
    assert!(s.out.iter().any(|(_, seg, _)| seg.data_fin));
    s.lose_all();
    s.endpoint.lose_address(s.now, PathId(0));
    s.drain();
    s.expect(want(1, SYN).mptcp("capable0"));
    s.after(20);
    s.send(Seg { path: 1, ..s.syn_ack(0) });
    assert!(s.out.iter().any(|(_, seg, _)| seg.path == 1 && seg.data_fin));
}
