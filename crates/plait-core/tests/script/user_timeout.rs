//! The user timeout: the peer accepts no data although some is pending.

use crate::harness::{MSS, Script, multipath, plain};
use crate::segment::{ACK, FIN, want};
use crate::windows::two_segments_of_window;
use plait_base::{Span, Time};
use plait_core::{Config, ConnectionState, TimedOut};
use plait_wire::Flags;

const TIMEOUT: Span = Span::from_secs(60);
/// The check runs eight times per timeout.
const LATEST: Span = Span::from_millis(67_500);
const USER: Option<TimedOut> = Some(TimedOut::User);
const HOUR: Span = Span::from_secs(3_600);

fn patient(config: Config) -> Config {
    config.with(|it| it.timeouts.user = Some(TIMEOUT))
}

/// Advances time. The peer answers each probe and keeps its window closed. Returns the number of
/// answers.
fn answer_probes(s: &mut Script, time: Span) -> usize {
    let (target, mut answered) = (s.now + time, 0);
    while s.now < target && s.state() != ConnectionState::Failed {
        s.until(s.endpoint.poll_timeout().min(target));
        let probed = s.out.iter().any(|(_, seg, _)| seg.len == 0 && seg.flags == ACK);
        if probed && s.state() != ConnectionState::Failed {
            s.lose_all();
            s.send(s.tx(0).win(0));
            answered += 1;
        }
    }
    answered
}

fn timed_out(s: &Script) -> Option<TimedOut> {
    s.endpoint.stats(s.id).unwrap().timed_out
}

/// Expects that data pending from now on ends the connection in time.
fn expect_timeout(s: &mut Script) {
    let start = s.now;
    s.until(start + TIMEOUT - Span::from_millis(1));
    assert_eq!((s.state(), timed_out(s)), (ConnectionState::Open, None));
    s.until(start + LATEST);
    assert_eq!((s.state(), timed_out(s)), (ConnectionState::Failed, USER));
}

/// R75 (RFC 9293 sections 3.8.3 and 3.8.6.1): the peer answers every probe of its closed window.
/// The connection waits for the user timeout, or forever without one.
#[test]
fn a_closed_window_is_not_waited_for_beyond_the_timeout() {
    for (config, full) in [(plain(), 1_448), (multipath(), MSS)] {
        let mut s = two_segments_of_window(patient(config.clone()), full);
        let start = s.now;
        assert!(answer_probes(&mut s, HOUR) > 3);
        let ended = s.now.since(start);
        assert_eq!((s.state(), timed_out(&s)), (ConnectionState::Failed, USER));
        assert!(TIMEOUT <= ended && ended <= LATEST, "{ended:?}");
        let told = &s.out.back().unwrap().1;
        let fast = told.mptcp.is_some() && !told.flags.has(Flags::RST);
        assert_eq!((fast, told.flags.has(Flags::RST)), (config.multipath, !config.multipath));

        let mut s = two_segments_of_window(config, full);
        assert!(answer_probes(&mut s, HOUR) > 10);
        assert_eq!((s.state(), timed_out(&s)), (ConnectionState::Open, None));
    }
}

/// R75: a peer that makes some progress restarts the timeout: its window opens, or it acknowledges
/// data.
#[test]
fn a_slow_peer_is_waited_for() {
    for (config, full) in [(plain(), 1_448), (multipath(), MSS)] {
        let mut s = two_segments_of_window(patient(config), full);
        answer_probes(&mut s, Span::from_secs(50));
        s.lose_all();
        // Room for the remaining three. Two of them are acknowledged, each within the timeout.
        s.send(s.tx(0).win(100));
        assert_eq!(s.out.iter().map(|(_, seg, _)| seg.len).sum::<u32>(), 3 * full);
        for _ in 0..2 {
            s.after(50_000);
            assert_eq!(s.state(), ConnectionState::Open);
            s.peers.get_mut(&0).unwrap().rcv += full;
            s.data_rcv += u64::from(full);
            s.send(s.tx(0).win(100));
        }
        expect_timeout(&mut s);
    }
}

/// R75: a connection without pending data has no timeout, even if data was pending before.
#[test]
fn an_idle_connection_stays() {
    for config in [plain(), multipath()] {
        let mut s = Script::open_server(patient(config), 1);
        s.after(3_600_000);
        s.write(100);
        s.after(5);
        s.ack(0, 101, 100);
        s.after(3_600_000);
        assert_eq!(s.state(), ConnectionState::Open);
        assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
        // Later data has the whole timeout.
        s.write(100);
        expect_timeout(&mut s);
    }
}

/// R75: the peer is gone. The timeout ends the connection earlier than fifteen retransmissions
/// would. Our DATA_FIN or FIN counts as pending data.
#[test]
fn a_dead_peer_is_given_up_in_time() {
    for config in [plain(), multipath()] {
        let mut s = Script::open_server(patient(config), 1);
        s.finish();
        expect_timeout(&mut s);
    }
    // An acknowledged end is not pending, although the peer does not end its direction.
    let mut s = Script::open_server(patient(plain()), 1);
    s.finish();
    s.expect(want(0, FIN));
    s.ack(0, 2, 0);
    s.after(3_600_000);
    assert_eq!(s.state(), ConnectionState::Open);
}
