//! Keep-alives: an idle connection whose peer is silent.

use crate::harness::{MSS, Script, capable_syn, multipath, plain, spec};
use crate::segment::{ACK, Seg, want};
use plait_base::{Span, Time};
use plait_core::{Config, ConnectionState, TimedOut};
use plait_wire::Flags;

const IDLE: Span = Span::from_secs(120);
/// The check runs eight times per idle time.
const LATEST: Span = Span::from_secs(135);
const DAY: Span = Span::from_secs(86_400);

fn asking(config: Config) -> Config {
    config.with(|it| it.timeouts.keep_alive = Some(IDLE))
}

fn both() -> [Config; 2] {
    [asking(plain()), asking(multipath())]
}

/// Runs until a segment is sent, for at most a day. Returns its time and the segment.
fn next_sent(s: &mut Script) -> Option<(Time, Seg)> {
    let target = s.now + DAY;
    while s.out.is_empty() && s.now < target {
        s.until(s.endpoint.poll_timeout().min(target));
    }
    s.out.pop_front().map(|(at, seg, _)| (at, seg))
}

/// Expects a probe on `path` after the idle time.
fn expect_probe(s: &mut Script, path: u32) -> Time {
    let since = s.now;
    let (at, seg) = next_sent(s).unwrap_or_else(|| s.fail("no probe"));
    let told = (seg.path, seg.flags, seg.len, seg.seq + 1);
    assert_eq!(told, (path, ACK, 0, s.peers[&path].rcv), "{seg:?}");
    assert!(since + IDLE <= at && at <= since + LATEST, "after {:?}", at.since(since));
    at
}

fn ended_as(s: &Script) -> (ConnectionState, Option<TimedOut>) {
    (s.state(), s.endpoint.stats(s.id).unwrap().timed_out)
}

/// R75 (RFC 9293 section 3.8.4): a peer is gone, in one case after acknowledging our end. It is
/// given up after nine unanswered probes. Without keep-alives the connection waits forever.
#[test]
fn a_peer_that_has_vanished_is_given_up() {
    for (config, ends) in both().iter().flat_map(|it| [(it, false), (it, true)]) {
        let open = |config: &Config| {
            let mut s = Script::open_server(config.clone(), 1);
            if ends {
                s.finish();
                let (seq, dack) = if config.multipath { (1, 1) } else { (2, 0) };
                s.ack(0, seq, dack);
            }
            s.lose_all();
            s
        };
        let mut s = open(config);
        let mut at = expect_probe(&mut s, 0);
        for _ in 1..Config::KEEP_ALIVES {
            let (next, seg) = next_sent(&mut s).unwrap();
            assert_eq!(
                (next.since(at), seg.seq + 1),
                (Config::KEEP_ALIVE_INTERVAL, s.peers[&0].rcv)
            );
            assert_ne!(s.state(), ConnectionState::Failed);
            at = next;
        }
        let (ended, told) = next_sent(&mut s).unwrap();
        assert_eq!(ended.since(at), Config::KEEP_ALIVE_INTERVAL);
        assert_eq!(ended_as(&s), (ConnectionState::Failed, Some(TimedOut::KeepAlive)));
        // With Multipath TCP a fast close, with plain TCP a RST.
        let rst = told.flags.has(Flags::RST);
        assert_eq!((told.mptcp.is_some(), rst), (config.multipath, !config.multipath));

        let mut s = open(&config.clone().with(|it| it.timeouts.keep_alive = None));
        assert!(next_sent(&mut s).is_none());
        assert_eq!(ended_as(&s), (ConnectionState::Open, None));
        assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
    }
}

/// R75: a peer lives if it answers, even if only the last probe and with an ACK without news. It is
/// probed again after the idle time.
#[test]
fn a_peer_that_answers_lives() {
    for (config, stamps) in both().into_iter().flat_map(|it| [(it.clone(), true), (it, false)]) {
        let capable = config.multipath;
        let mut s = Script::server(spec(config, 1, None));
        let bare = |seg: Seg| Seg { stamps: seg.stamps.filter(|_| stamps), ..seg };
        let syn = s.syn(0);
        s.send(bare(if capable { syn.mptcp(capable_syn()) } else { syn.stripped() }));
        s.after(20);
        let proof = s.proof(0);
        s.send(bare(if capable { proof } else { proof.stripped() }));
        s.id = s.endpoint.poll_accept().unwrap();
        // The peer has no more data.
        s.send(bare(s.tx(0)));
        s.lose_all();
        for lost in [0, 3, Config::KEEP_ALIVES - 1, 0] {
            let mut at = expect_probe(&mut s, 0);
            for _ in 0..lost {
                let (next, _) = next_sent(&mut s).unwrap();
                assert_eq!(next.since(at), Config::KEEP_ALIVE_INTERVAL);
                at = next;
            }
            s.after(30);
            s.send(bare(s.tx(0)));
            s.expect_nothing();
            assert_eq!(ended_as(&s), (ConnectionState::Open, None));
        }
    }
}

/// R75 (MUST-26): any received segment postpones the probe. There is no probe while data is in
/// flight: its timeouts detect a dead peer.
#[test]
fn only_an_idle_connection_is_asked() {
    for config in both() {
        let mut s = Script::open_server(config.clone(), 1);
        for turn in 0..20 {
            s.after(50_000);
            s.expect_nothing();
            let seg = s.tx(0).data(turn * 10, 10);
            s.send(if config.multipath { seg } else { Seg { map: None, ..seg } });
            s.after(40);
            s.lose_all();
        }
        let start = s.now;
        s.write(u64::from(MSS));
        while s.now < start + Span::from_secs(600) {
            s.until(s.endpoint.poll_timeout());
            assert!(s.out.iter().all(|(_, seg, _)| seg.len > 0), "{:?}", s.out);
        }
        assert_eq!(ended_as(&s).1, None);
    }
}

/// R75: one of two paths answers, so the connection lives. A subflow with nine consecutive
/// unanswered probes is reset.
#[test]
fn a_subflow_that_answers_speaks_for_all() {
    let mut s = Script::open_server(asking(multipath()), 2);
    for _ in 0..Config::KEEP_ALIVES {
        expect_probe(&mut s, 0);
        s.expect(want(1, ACK).seq(0).len(0));
        s.expect_nothing();
        s.after(20);
        s.send(s.tx(0));
    }
    expect_probe(&mut s, 0);
    let told = s.out.pop_front().unwrap().1;
    assert_eq!((told.path, told.flags.has(Flags::RST)), (1, true));
    assert_eq!(ended_as(&s), (ConnectionState::Open, None));
    // Its reset does not count as activity of the peer.
    let mut count = 1;
    while s.state() == ConnectionState::Open {
        count += 1;
        next_sent(&mut s);
    }
    assert_eq!(count, u32::from(Config::KEEP_ALIVES) + 1);
}
