//! What the swarm (`plait swarm`) found, as the shortest script that shows it.

use crate::harness::{Script, multipath, plain, spec};
use crate::segment::{ACK, FIN, RST, SYN, want};
use plait_core::{Config, ConnectionState, JoinTiming};

/// R61: a client without data may end with the last ACK of the handshake; its server is accepted
/// all the same.
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

/// R26, R50: joins that were begun with the first SYN end where the peer turns out to speak plain
/// TCP; it would go on answering them.
#[test]
fn simultaneous_joins_end_with_a_fallback() {
    let config = Config { join: JoinTiming::Simultaneous, ..multipath() };
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
