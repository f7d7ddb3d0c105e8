//! MP_FASTCLOSE (RFC 8684 section 3.5), sent and received, and reasons of resets (section 3.6).

use crate::harness::{Script, multipath, plain, spec};
use crate::segment::{ACK, PSH, RST, want};
use plait_base::Time;
use plait_core::ConnectionState;
use plait_wire::{Key, Mptcp};

fn told(key: Key) -> String {
    format!("{:?}", Mptcp::FastClose(key))
}

const UNSPECIFIED: &str = "Reset { reason: Unspecified, transient: false }";

impl Script {
    fn abort(&mut self) {
        self.endpoint.abort(self.now, self.id).unwrap();
        self.drain();
    }

    fn remote(&self) -> Key {
        self.remote_key.unwrap()
    }
}

/// R49, R55: an abort sends MP_FASTCLOSE with the peer's key on one subflow and a RST on the
/// others. The peer's RST completes it.
#[test]
fn an_abort_is_told_on_one_subflow() {
    let mut s = Script::open_server(multipath(), 3);
    s.write(1_000);
    s.lose_all();
    s.abort();
    assert_eq!(s.state(), ConnectionState::Failed);
    s.expect(want(0, ACK).seq(1_001).mptcp(&told(s.key)).len(0));
    s.expect(want(1, RST).mptcp(UNSPECIFIED));
    s.expect(want(2, RST).mptcp(UNSPECIFIED));
    s.expect_nothing();
    assert!(!s.endpoint.is_over());
    s.send(s.tx(0).flags(RST));
    assert!(s.endpoint.is_over());
    s.expect_nothing();
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
}

/// R55: three retransmissions at growing intervals, then a RST with MP_FASTCLOSE.
#[test]
fn an_abort_without_an_answer_ends() {
    let mut s = Script::open_server(multipath(), 1);
    s.abort();
    let option = told(s.key);
    let start = 20.0;
    s.expect(want(0, ACK).mptcp(&option).at(start));
    s.after(60_000);
    // SRTT is 20 ms with a floor of 200 ms, doubled each time.
    for wait in [220.0, 660.0, 1_540.0] {
        s.expect(want(0, ACK).mptcp(&option).at(start + wait));
    }
    s.expect(want(0, RST).mptcp(&option).at(start + 3_300.0));
    s.expect_nothing();
    assert!(s.endpoint.is_over());
}

/// R55: earlier timeouts of data that was never acknowledged do not lengthen those of the abort.
#[test]
fn an_abort_starts_from_the_first_timeout() {
    let mut s = Script::open_server(multipath(), 1);
    s.write(1_000);
    s.after(20_000);
    s.lose_all();
    s.abort();
    let option = told(s.key);
    let start = s.now.as_nanos() as f64 / 1e6;
    s.expect(want(0, ACK).mptcp(&option).at(start));
    s.after(60_000);
    for wait in [220.0, 660.0, 1_540.0] {
        s.expect(want(0, ACK).mptcp(&option).at(start + wait));
    }
    s.expect(want(0, RST).mptcp(&option).at(start + 3_300.0));
    assert!(s.endpoint.is_over());
}

/// R55: data that crosses an abort is neither delivered nor acknowledged. An old RST does not end
/// the wait.
#[test]
fn nothing_is_taken_after_an_abort() {
    let mut s = Script::open_server(multipath(), 1);
    s.abort();
    s.lose_all();
    s.send(s.tx(0).data(0, 500));
    s.expect_nothing();
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 0);
    s.send(s.tx(0).seq(7).flags(RST));
    assert!(!s.endpoint.is_over());
}

/// R55: both ends abort at the same time, and each answers with a RST.
#[test]
fn both_abort_at_once() {
    let mut s = Script::open_server(multipath(), 1);
    s.abort();
    s.lose_all();
    s.send(s.tx(0).mptcp(Mptcp::FastClose(s.remote())));
    s.expect(want(0, RST).mptcp(UNSPECIFIED));
    assert!(s.endpoint.is_over());
}

/// R55: MP_FASTCLOSE with our key on an ACK ends the connection. With another key it is ignored.
#[test]
fn taken_on_an_ack() {
    let mut s = Script::open_server(multipath(), 2);
    s.write(1_000);
    s.lose_all();
    s.send(s.tx(0).mptcp(Mptcp::FastClose(s.key)));
    assert_eq!(s.state(), ConnectionState::Open);
    s.send(s.tx(0).mptcp(Mptcp::FastClose(s.remote())));
    assert_eq!(s.state(), ConnectionState::Failed);
    s.expect(want(0, RST).mptcp(UNSPECIFIED));
    s.expect(want(1, RST).mptcp(UNSPECIFIED));
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
}

/// R55, R60: a RST with our key ends the connection. With another key it ends only its subflow, and
/// without the exact sequence number nothing.
#[test]
fn taken_on_a_reset() {
    let mut s = Script::open_server(multipath(), 3);
    let right = Mptcp::FastClose(s.remote());
    s.send(s.tx(0).seq(9).flags(RST).mptcp(right.clone()));
    assert_eq!(s.state(), ConnectionState::Open);
    s.lose_all();
    s.send(s.tx(0).seq(1).flags(RST).mptcp(Mptcp::FastClose(s.key)));
    assert_eq!(s.state(), ConnectionState::Open);
    s.write(1_000);
    s.expect(want(1, PSH).len(1_000));
    s.send(s.tx(1).flags(RST).mptcp(right));
    assert_eq!(s.state(), ConnectionState::Failed);
    s.expect(want(2, RST).mptcp(UNSPECIFIED));
    s.expect_nothing();
}

/// R55: a client whose key may not have arrived aborts with a RST, which needs no key.
#[test]
fn an_abort_before_the_first_dss() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.after(20);
    s.send(s.syn_ack(0));
    s.lose_all();
    s.abort();
    s.expect(want(0, RST).mptcp(&told(s.key)));
    assert!(s.endpoint.is_over());
}

/// R49, R54: plain TCP sends and accepts no reason and no MP_FASTCLOSE, also after a fallback.
#[test]
fn plain_tcp_is_only_reset() {
    let mut s = Script::open_server(plain(), 1);
    s.abort();
    s.expect(want(0, RST).plain());
    let mut s = Script::open_server(multipath(), 1);
    let mut data = s.tx(0).flags(PSH).stripped();
    data.len = 100;
    s.sent.insert(plait_base::DataRange::between(0, 100));
    s.send(data);
    s.expect(want(0, ACK).ack(101).plain());
    s.send(s.tx(0).stripped().mptcp(Mptcp::FastClose(s.remote())));
    assert_eq!(s.state(), ConnectionState::Open);
    s.abort();
    s.expect(want(0, RST).plain());
}

/// R49: a subflow that is reset after silence gives the reason "unacceptable performance" and is
/// marked transient.
#[test]
fn a_silent_subflow_is_reset_for_its_performance() {
    let mut s = Script::open_server(multipath(), 2);
    s.write(1_000);
    s.lose_all();
    s.after(3_000_000);
    let resets: Vec<_> = s.out.iter().filter(|(_, seg, _)| seg.flags == RST).collect();
    let told: Vec<_> = resets.iter().map(|(_, seg, _)| seg.mptcp.clone()).collect();
    let reason = plait_wire::ResetReason::Performance;
    assert_eq!(told, vec![Some(Mptcp::Reset { reason, transient: true }); 2]);
}
