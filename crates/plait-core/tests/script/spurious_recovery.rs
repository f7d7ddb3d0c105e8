//! Spurious reductions of the window are undone, and the pending retransmissions are dropped.

use crate::harness::{MSS, Script, multipath, plain};
use crate::segment::{PSH, Seg, want};
use plait_core::{Config, SubflowStats};

const FULL: u32 = 1_448;

fn seq(segment: u32) -> u32 {
    1 + segment * FULL
}

/// Returns a server of 20 ms with ten segments in flight, sent at 20 ms.
fn sending(config: Config) -> Script {
    let mut s = Script::open_server(config, 1);
    s.write(10 * u64::from(FULL));
    assert_eq!(s.lose_all(), 10);
    s
}

fn stats(s: &Script) -> SubflowStats {
    s.endpoint.stats(s.id).unwrap().subflows[0]
}

/// Acknowledges up to `segment` and echoes the endpoint's timestamp of `millis`.
fn echoing(s: &mut Script, segment: u32, millis: u32) {
    s.peers.get_mut(&0).unwrap().rcv = seq(segment);
    let ack = s.tx(0);
    let stamps = ack.stamps.map(|(value, _)| (value, millis));
    s.send(Seg { stamps, ..ack });
}

/// Returns a server whose first segment counts as lost at 40 ms and is retransmitted, because three
/// above it have arrived.
fn fast_retransmission(config: Config) -> Script {
    let mut s = sending(config);
    s.after(20);
    s.send(s.tx(0).sack(&[(seq(1), seq(4))]));
    s.expect(want(0, PSH).seq(seq(0)).at(40.0));
    assert!(stats(&s).ssthresh.is_some());
    s
}

/// Runs to the first timeout, 240 ms after the first segment was sent, which retransmits it. The
/// peer is silent.
fn time_out(s: &mut Script) {
    s.after(219);
    s.lose_all();
    s.until(s.endpoint.poll_timeout());
    s.expect(want(0, PSH).seq(seq(0)));
}

fn unstamped(seg: Seg) -> Seg {
    Seg { stamps: None, ..seg }
}

/// R66, R69 (RFC 2883, RFC 3708): both copies arrived, and a D-SACK reports the second one. The
/// window and ssthresh are restored.
#[test]
fn a_fast_retransmission_that_is_reported_as_a_duplicate() {
    let mut s = fast_retransmission(plain());
    s.after(1);
    s.ack(0, seq(4), 0);
    assert!(stats(&s).ssthresh.is_some());
    s.after(1);
    s.send(s.tx(0).sack(&[(seq(0), seq(1))]));
    let now = stats(&s);
    assert_eq!((now.ssthresh, now.carried.counters.undone), (None, 1));
    assert!(now.cwnd >= 10 * u64::from(FULL), "{}", now.cwnd);
    let counters = now.carried.counters;
    assert_eq!((counters.retransmissions, counters.spurious), (1, 1));
    s.expect_nothing();
}

/// The same after recovery has ended.
#[test]
fn a_report_that_comes_after_recovery() {
    let mut s = fast_retransmission(plain());
    s.after(20);
    s.ack(0, seq(10), 0);
    assert!(stats(&s).ssthresh.is_some());
    s.send(s.tx(0).sack(&[(seq(0), seq(1))]));
    assert_eq!((stats(&s).ssthresh, stats(&s).carried.counters.undone), (None, 1));
}

/// R65, R69 (RFC 3522): the acknowledgement of the retransmitted segment echoes the original's
/// timestamp.
#[test]
fn a_fast_retransmission_that_the_echo_shows_unneeded() {
    for (echo, undone) in [(20, 1), (40, 0)] {
        let mut s = fast_retransmission(plain());
        s.after(1);
        echoing(&mut s, 4, echo);
        let now = stats(&s);
        assert_eq!(
            (now.ssthresh.is_none(), now.carried.counters.undone),
            (undone == 1, undone),
            "echo {echo}"
        );
    }
}

/// R69: `--undo off`.
#[test]
fn nothing_is_taken_back_when_off() {
    let mut s = fast_retransmission(plain().with(|it| it.recovery.undo = false));
    s.after(1);
    echoing(&mut s, 4, 20);
    s.after(20);
    s.send(s.tx(0).sack(&[(seq(0), seq(1))]));
    let now = stats(&s);
    assert_eq!((now.ssthresh.is_none(), now.carried.counters.undone), (false, 0));
}

/// R67, R69 (RFC 3522, RFC 4015): a pause of the path caused the timeout. Its lost segments are not
/// retransmitted.
#[test]
fn a_timeout_that_the_echo_shows_too_soon() {
    let mut s = sending(plain());
    time_out(&mut s);
    assert_eq!(stats(&s).cwnd, u64::from(FULL));
    s.after(30);
    echoing(&mut s, 1, 20);
    let now = stats(&s);
    assert_eq!((now.ssthresh, now.carried.counters.undone), (None, 1));
    assert_eq!(now.inflight, 9 * u64::from(FULL));
    s.expect_nothing();
    s.write(3 * u64::from(FULL));
    s.expect(want(0, PSH).seq(seq(10)));
    s.lose_all();
    for segment in 2..=13 {
        echoing(&mut s, segment, 20);
    }
    assert_eq!(s.lose_all(), 1);
    s.after(1_000);
    s.expect_nothing();
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
}

/// R67: the same timeout if only acknowledgements were lost. The D-SACK shows it.
#[test]
fn a_timeout_after_lost_acknowledgements() {
    let mut s = sending(plain());
    time_out(&mut s);
    s.after(20);
    s.peers.get_mut(&0).unwrap().rcv = seq(10);
    s.send(s.tx(0).sack(&[(seq(0), seq(1))]));
    assert_eq!((stats(&s).ssthresh, stats(&s).carried.counters.undone), (None, 1));
}

/// R69 (RFC 5682 section 3.1): without timestamps, two new segments are sent instead of
/// retransmissions. The next acknowledgement decides.
#[test]
fn new_data_shows_what_a_timeout_was() {
    for spurious in [true, false] {
        let mut s = Script::plain_server(unstamped);
        s.lose_all();
        // The MSS excludes options, but plait's segments leave room for timestamps.
        s.write(20 * u64::from(FULL));
        assert_eq!(s.lose_all(), 10);
        time_out(&mut s);
        s.after(10);
        s.peers.get_mut(&0).unwrap().rcv = seq(1);
        s.send(unstamped(s.tx(0)));
        s.expect(want(0, PSH).seq(seq(10)));
        s.expect(want(0, PSH).seq(seq(11)));
        s.expect_nothing();
        if spurious {
            s.peers.get_mut(&0).unwrap().rcv = seq(2);
            s.send(unstamped(s.tx(0)));
            assert_eq!((stats(&s).ssthresh, stats(&s).carried.counters.undone), (None, 1));
            assert!(s.out.iter().all(|(_, seg, _)| seg.seq >= seq(12)));
        } else {
            s.send(Seg { sack: vec![(seq(10), seq(11))], ..unstamped(s.tx(0)) });
            assert_eq!(stats(&s).carried.counters.undone, 0);
            s.expect(want(0, PSH).seq(seq(1)));
        }
    }
}

/// R69: without new data, retransmissions continue.
#[test]
fn without_new_data_retransmissions_go_on() {
    let mut s = Script::plain_server(unstamped);
    s.write(5 * u64::from(FULL));
    time_out(&mut s);
    s.peers.get_mut(&0).unwrap().rcv = seq(1);
    s.send(unstamped(s.tx(0)));
    s.expect(want(0, PSH).seq(seq(1)));
}

/// R40: a timeout assigned data to another subflow. If the timeout was spurious, the unsent part of
/// it stays on its subflow.
#[test]
fn reinjections_are_withdrawn() {
    let mut s = Script::open_server(multipath(), 2);
    let full = u64::from(MSS);
    s.write(20 * full);
    s.lose_all();
    // The second subflow is full and answers; the first is silent.
    for _ in 0..9 {
        s.after(20);
        s.send(s.tx(1));
    }
    s.lose_all();
    let first_due = s.endpoint.poll_timeout();
    s.until(first_due);
    let resent = |s: &Script, path: u32| {
        s.out.iter().filter(|(_, seg, _)| seg.path == path && seg.len > 0).count()
    };
    assert!(resent(&s, 0) + resent(&s, 1) > 0);
    s.lose_all();
    s.after(1);
    s.peers.get_mut(&0).unwrap().rcv = 1 + MSS;
    let ack = s.tx(0);
    let stamps = ack.stamps.map(|(value, _)| (value, 20));
    s.send(Seg { stamps, ..ack });
    s.lose_all();
    assert_eq!(stats(&s).carried.counters.undone, 1);
    // The second has room again, but gets none of the first's data.
    s.peers.get_mut(&1).unwrap().rcv = 1 + 10 * MSS;
    s.send(s.tx(1));
    assert_eq!(resent(&s, 1), 0, "{}", s.log);
}

/// R67: an acknowledgement that arrives after the timeout of its segment lengthens the timeout,
/// with and without undo. A subflow with one segment in flight has no other sample.
#[test]
fn a_timeout_that_was_too_short_grows() {
    for undo in [true, false] {
        let mut s = Script::open_server(multipath().with(|it| it.recovery.undo = undo), 1);
        s.write(u64::from(FULL));
        s.lose_all();
        let rto = stats(&s).rto;
        time_out(&mut s);
        s.after(100);
        s.lose_all();
        echoing(&mut s, 1, 20);
        assert!(stats(&s).rto > rto, "{rto} {}", stats(&s).rto);
    }
}
