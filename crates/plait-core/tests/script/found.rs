//! Bugs found by the swarm (`plait swarm`), each as the shortest script that shows it.

use crate::harness::{Script, multipath, plain, spec};
use crate::segment::{ACK, FIN, PSH, RST, SYN, want};
use plait_core::{ConnectionState, JoinTiming};

/// R61: a client without data may send its FIN with the last ACK of the handshake. Its connection
/// is still accepted.
#[test]
fn the_end_comes_with_the_third_ack() {
    let mut s = Script::server(spec(plain(), 1, None));
    let syn = s.syn(0);
    s.send(syn);
    s.expect(want(0, SYN.with(ACK)));
    s.after(20);
    s.send(s.tx(0).flags(FIN).stripped());
    s.id = s.endpoint.poll_accept().expect("accepted");
    assert_eq!(s.state(), ConnectionState::PeerDone);
    s.expect(want(0, ACK).ack(2));
    s.finish();
    s.expect(want(0, FIN).seq(1));
}

/// R26, R50: joins sent with the first SYN are reset if the peer turns out to use plain TCP.
/// Otherwise it would keep answering them.
#[test]
fn simultaneous_joins_end_with_a_fallback() {
    let config = multipath().with(|it| it.joins.timing = JoinTiming::Simultaneous);
    let mut s = Script::client(spec(config, 2, None));
    s.expect(want(0, SYN));
    s.expect(want(1, SYN).mptcp("join"));
    s.after(20);
    s.send(s.syn_ack(0).stripped());
    s.expect(want(1, RST));
    s.write(10);
    s.lose_all();
    s.after(10_000);
    assert!(s.out.iter().all(|(_, seg, _)| seg.path == 0));
}

/// RFC 8684 section 3.3.6: data was acknowledged on a subflow that is now gone, but not DATA_ACKed.
/// It is sent elsewhere although a silent subflow has carried it.
#[test]
fn a_silent_subflow_is_no_keeper_of_what_another_had() {
    let mut s = Script::open_server(multipath(), 3);
    s.write(100);
    let first = s.expect(want(0, PSH).seq(1).len(100));
    s.lose_all();
    s.after(230);
    s.expect(want(0, PSH).seq(1).len(100));
    let again = s.expect(want(1, PSH).seq(1).len(100));
    assert_eq!(again.map, first.map);
    s.lose_all();
    s.ack(1, 101, 0);
    s.send(s.tx(1).flags(RST).stripped());
    let third = s.expect(want(2, PSH).seq(1).len(100));
    assert_eq!(third.map, first.map);
}
