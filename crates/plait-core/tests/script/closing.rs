//! Closing: DATA_FIN and FIN, half-closes, resets.

use crate::harness::{MSS, Script, multipath, plain, spec};
use crate::segment::{ACK, FIN, PSH, RST, SYN, want};
use plait_base::{PathId, Span, Time};
use plait_core::{Config, ConnectionState, Detail, Event, MemorySettings, PathName};
use plait_wire::{Flags, Options, Segment};
use std::net::IpAddr;

const FULL: u64 = MSS as u64;

/// R56: DATA_FIN, its DATA_ACK, the peer's DATA_FIN, then a FIN on each subflow.
#[test]
fn the_order_of_the_end() {
    let mut s = Script::open_server(multipath(), 2);
    s.endpoint.record_events(Detail::Everything);
    s.write(100);
    s.expect(want(0, PSH).len(100));
    s.finish();
    s.expect(want(0, ACK).data_fin(100).len(0));
    s.expect_nothing();
    s.after(20);
    s.ack(0, 101, 101);
    s.expect_nothing();
    assert_eq!(s.state(), ConnectionState::Open);
    s.send(s.tx(0).data_fin(0));
    s.expect(want(0, FIN).seq(101).dack(1));
    s.expect(want(1, FIN).seq(1));
    assert_eq!(s.state(), ConnectionState::Closed);
    for (path, ack) in [(0, 102), (1, 2)] {
        s.peers.get_mut(&path).unwrap().rcv = ack;
        s.send(s.tx(path).flags(FIN));
        s.expect(want(path, ACK).ack(2));
    }
    assert!(s.endpoint.is_over());
    // The end of each subflow is reported once.
    let mut events = Vec::new();
    s.endpoint.swap_events(&mut events);
    let gone = events.iter().filter_map(|(_, event)| match event {
        Event::SubflowDown { subflow } => Some(subflow.0),
        _ => None,
    });
    assert_eq!(gone.collect::<Vec<_>>(), [0, 1]);
    // A FIN is not counted as payload.
    let totals = s.endpoint.totals();
    assert_eq!([totals.first.sent, totals.first.received], [100, 0]);
    assert_eq!([totals.joined.sent, totals.joined.received], [0, 0]);
    // R59: TIME-WAIT answers a FIN, and expires.
    s.send(s.tx(0).seq(1).flags(FIN));
    s.expect(want(0, ACK).ack(2));
    s.after(61_000);
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
}

/// R57: after our DATA_FIN the peer still sends, and after the peer's DATA_FIN we do.
#[test]
fn half_close_both_ways() {
    let mut s = Script::open_server(multipath(), 1);
    s.finish();
    s.expect(want(0, ACK).data_fin(0));
    s.data_rcv = 1;
    s.send(s.tx(0).data(0, 500));
    s.expect(want(0, ACK).dack(500).no_map());
    assert_eq!(s.skip(1_000), 500);
    s.send(s.tx(0).data_fin(500));
    s.expect(want(0, FIN).dack(501));

    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data_fin(0));
    s.expect(want(0, ACK).dack(1));
    assert_eq!(s.state(), ConnectionState::PeerDone);
    s.write(500);
    s.expect(want(0, PSH).map(0, 1, 500).dack(1));
    s.finish();
    s.expect(want(0, ACK).data_fin(500));
    s.ack(0, 501, 501);
    s.expect(want(0, FIN));
    assert_eq!(s.state(), ConnectionState::Closed);
}

/// R57: the same with plain TCP and FIN.
#[test]
fn plain_half_close() {
    let mut s = Script::open_server(plain(), 1);
    s.write(100);
    s.finish();
    s.expect(want(0, PSH).seq(1));
    s.expect(want(0, FIN).seq(101));
    s.ack(0, 102, 0);
    let mut data = s.tx(0).flags(PSH);
    data.len = 300;
    s.send(data);
    assert_eq!(s.skip(1_000), 300);
    s.lose_all();
    s.send(s.tx(0).flags(FIN));
    s.expect(want(0, ACK).ack(302));
    assert_eq!(s.state(), ConnectionState::Closed);
    assert!(s.endpoint.is_over());
}

/// R61: both ends close at the same time: CLOSING, then TIME-WAIT.
#[test]
fn simultaneous_close() {
    let mut s = Script::open_server(plain(), 1);
    s.finish();
    s.expect(want(0, FIN).seq(1).ack(1));
    s.send(s.tx(0).flags(FIN));
    s.expect(want(0, ACK).seq(2).ack(2));
    assert!(!s.endpoint.is_over());
    s.ack(0, 2, 0);
    assert!(s.endpoint.is_over());
    assert_eq!(s.state(), ConnectionState::Closed);
    s.after(59_999);
    assert_ne!(s.endpoint.poll_timeout(), Time::NEVER);
    s.after(1);
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
}

/// R56, R59: the peer ends its data and acknowledges our FINs, but never sends its own. Once the
/// application has released the connection, the wait is limited (Linux: tcp_fin_timeout).
#[test]
fn a_subflow_that_the_peer_never_ends_is_left() {
    for early in [true, false] {
        let mut s = Script::open_server(multipath(), 2);
        let release = |s: &mut Script, now| {
            if now {
                s.endpoint.release(s.now, s.id).unwrap();
            }
        };
        s.finish();
        s.data_rcv = 1;
        s.lose_all();
        release(&mut s, early);
        s.send(s.tx(0).data_fin(0));
        for path in [0, 1] {
            s.expect(want(path, FIN).seq(1));
            s.ack(path, 2, 1);
        }
        release(&mut s, !early);
        s.after(59_999);
        // Each subflow is kept as a remnant.
        assert_eq!(s.endpoint.kept(), 2);
        s.after(1);
        assert_eq!((s.endpoint.kept(), s.endpoint.poll_timeout()), (0, Time::NEVER));
        s.expect_nothing();
    }
}

/// R56, R61: after both directions of the data have ended, a subflow in FIN-WAIT-2 is closed after
/// the configured time. This holds even if the application keeps the connection. The peer gets no
/// reset.
#[test]
fn fin_wait_2_ends_without_a_release() {
    let config = multipath().with(|it| it.timeouts.fin = Span::from_secs(7));
    let mut s = Script::open_server(config, 2);
    s.finish();
    s.data_rcv = 1;
    s.send(s.tx(0).data_fin(0));
    s.lose_all();
    s.ack(0, 2, 1);
    s.ack(1, 2, 1);
    s.after(6_999);
    assert!(!s.endpoint.is_over());
    s.after(1);
    assert!(s.endpoint.is_over());
    assert_eq!((s.state(), s.endpoint.poll_timeout()), (ConnectionState::Closed, Time::NEVER));
    s.expect_nothing();
}

/// Returns a server that has closed first, with a released connection. Both FINs are acknowledged.
fn closed_first(config: Config) -> Script {
    let mut s = Script::open_server(config, 1);
    s.finish();
    s.endpoint.release(s.now, s.id).unwrap();
    s.data_rcv = 1;
    if s.config.multipath {
        s.send(s.tx(0).data_fin(0));
    }
    s.lose_all();
    s.ack(0, 2, 1);
    s
}

/// R59, R61: a remnant of a few numbers replaces a released connection. It answers a repeated FIN
/// and a late FIN as the connection would.
#[test]
fn a_remnant_answers_for_its_connection() {
    for config in [multipath(), plain()] {
        let mut s = closed_first(config);
        let dack = if s.config.multipath { "1" } else { "-" };
        s.expect_nothing();
        // With Multipath TCP, FIN-WAIT-2 is already a remnant, because both DATA_FINs have arrived.
        s.after(1_000);
        s.send(s.tx(0).flags(FIN));
        s.expect(want(0, ACK).seq(2).ack(2).set("dack", dack).echo(6_020).len(0));
        assert_eq!(s.endpoint.memory_report().time_wait, 1);
        assert_eq!(s.endpoint.stats(s.id), None);
        s.after(200);
        s.send(s.tx(0).seq(1).flags(FIN));
        s.expect(want(0, ACK).seq(2).ack(2).set("dack", dack).echo(6_220));
        // It answers no pure ACK and limits its answers to a flood. A reset must have the exact
        // sequence number.
        s.after(600);
        s.send(s.tx(0));
        s.expect_nothing();
        (0..50).for_each(|_| s.send(s.tx(0).seq(0)));
        assert_eq!(s.lose_all(), 1);
        s.send(s.tx(0).flags(Flags::RST).seq(1));
        assert_eq!(s.endpoint.kept(), 1);
        s.after(60_000 - 801);
        assert_eq!(s.endpoint.kept(), 1);
        s.after(1);
        assert_eq!((s.endpoint.kept(), s.endpoint.poll_timeout()), (0, Time::NEVER));
        assert!(!s.endpoint.uses_path(PathId(0)));
    }
}

/// R57, R59: the peer's data and FIN on one subflow were lost, and the data has arrived on the other one. The remnant
/// acknowledges what is repeated, so that the peer can close the subflow. The path memory has the values of both
/// subflows, although neither has ended.
#[test]
fn a_remnant_lets_the_peer_repeat_data() {
    let mut s = Script::open_server(multipath(), 2);
    s.endpoint.remember_paths(&MemorySettings::default());
    let memory = s.endpoint.path_memory().unwrap();
    for path in 0..2 {
        let [own, theirs] = [1, 2].map(|last| IpAddr::from([10, 0, path as u8, last]));
        memory.name(PathId(path), PathName { own: Some(own), theirs });
    }
    s.send(s.tx(1).data(0, 200));
    s.send(s.tx(1).seq(201).data_fin(200));
    s.skip(200);
    s.finish();
    s.endpoint.release(s.now, s.id).unwrap();
    s.data_rcv = 1;
    s.lose_all();
    s.ack(0, 1, 1);
    s.ack(1, 1, 1);
    s.lose_all();
    s.ack(0, 2, 1);
    s.ack(1, 2, 1);
    s.expect_nothing();
    assert_eq!(s.endpoint.kept(), 2);
    assert_eq!(s.endpoint.path_memory().unwrap().entries(s.now).len(), 2);
    s.send(s.tx(0).seq(1).data(0, 100));
    s.expect(want(0, ACK).seq(2).ack(101).dack(201).len(0));
    // It keeps no data that is ahead.
    s.after(600);
    s.send(s.tx(0).seq(151).data(150, 50));
    s.expect(want(0, ACK).seq(2).ack(101));
    // The answer comes at once, for progress ends the peer's timeouts.
    s.send(s.tx(0).seq(51).data(50, 100));
    s.expect(want(0, ACK).seq(2).ack(151));
    let mut last = s.tx(0).seq(151).data(150, 50);
    last.flags = FIN;
    s.send(last);
    s.expect(want(0, ACK).seq(2).ack(202).dack(201));
    // The wait begins with the FIN.
    s.after(60_000 - 1);
    assert_eq!(s.endpoint.kept(), 1);
    s.after(1);
    assert_eq!((s.endpoint.kept(), s.endpoint.poll_timeout()), (0, Time::NEVER));
}

/// R59, R60: an exact reset removes a remnant. A newer SYN reuses its address, with sequence
/// numbers beyond the old conversation's (RFC 6191).
#[test]
fn a_remnant_gives_its_address_back() {
    let mut s = closed_first(multipath());
    s.send(s.tx(0).flags(Flags::RST));
    assert_eq!((s.endpoint.kept(), s.endpoint.poll_timeout()), (0, Time::NEVER));
    let mut s = closed_first(plain());
    s.send(s.tx(0).flags(FIN));
    s.lose_all();
    s.after(10);
    let used = s.peers[&0].irs.wrapping_add(2);
    // An old SYN opens no connection.
    let syn = s.syn(0);
    let old = Segment { options: Options::default(), ..s.to_wire(&syn) };
    s.endpoint.handle(s.now, PathId(0), &Segment { seq: old.seq.wrapping_sub(9), ..old });
    assert_eq!(s.endpoint.memory_report().time_wait, 1);
    while s.endpoint.poll_transmit(s.now).is_some() {}
    s.send(syn);
    let answer = s.expect(want(0, SYN.with(ACK)).ack(1));
    let iss = s.peers[&answer.path].irs;
    assert!(iss.wrapping_sub(used) < 1 << 31, "{iss} after {used}");
    assert_eq!(s.endpoint.memory_report().time_wait, 0);
}

/// R57: with plain TCP, FIN-WAIT-2 has no limit while the application reads the peer's data.
#[test]
fn a_half_close_of_plain_tcp_has_no_limit() {
    let mut s = Script::open_server(plain(), 1);
    s.finish();
    s.ack(0, 2, 0);
    s.lose_all();
    s.after(1_000_000);
    let mut data = s.tx(0).flags(PSH);
    data.len = 300;
    s.send(data);
    assert_eq!(s.skip(1_000), 300);
    assert_eq!(s.state(), ConnectionState::Open);
}

/// R61: the retransmission of a FIN is limited in time. The peer's data has ended, so no data is
/// lost.
#[test]
fn a_fin_is_not_retransmitted_for_ever() {
    let mut s = Script::open_server(multipath(), 1);
    s.finish();
    s.data_rcv = 1;
    s.send(s.tx(0).data_fin(0));
    s.lose_all();
    s.after(300_000);
    assert!(s.endpoint.is_over());
    // The retransmission timeout of 200 ms has doubled eight times.
    let reset = s.out.iter().find(|(_, seg, _)| seg.flags.has(RST)).map(|(at, ..)| *at);
    let expected = Time::ZERO + Span::from_secs(60)..Time::ZERO + Span::from_secs(120);
    assert!(reset.is_some_and(|at| expected.contains(&at)), "{reset:?}\n{}", s.log);
}

/// R61: a lost FIN is retransmitted.
#[test]
fn a_lost_fin() {
    let mut s = Script::open_server(plain(), 1);
    s.finish();
    s.expect(want(0, FIN).seq(1));
    s.after(220);
    s.expect(want(0, FIN).seq(1).at(240.0));
    s.ack(0, 2, 0);
    s.send(s.tx(0).flags(FIN));
    assert!(s.endpoint.is_over());
}

/// R22, R56: a subflow sends no FIN before its third ACK is acknowledged.
#[test]
fn no_fin_before_the_fourth_ack() {
    let mut s = Script::client(spec(multipath(), 2, None));
    s.after(20);
    s.send(s.syn_ack(0));
    s.send(s.tx(0));
    s.after(20);
    s.send(s.syn_ack(1));
    s.finish();
    s.data_rcv = 1;
    s.lose_all();
    s.send(s.tx(0).data_fin(0));
    s.expect(want(0, FIN));
    s.expect_nothing();
    s.send(s.tx(1));
    s.expect(want(1, FIN).seq(1));
    // The lost FIN is retransmitted.
    s.lose_all();
    s.after(400);
    assert!(s.out.iter().any(|(_, seg, _)| seg.path == 1 && seg.flags == FIN));
}

/// R41: an early DATA_FIN takes effect when all data has arrived. Repetitions have no effect.
#[test]
fn a_data_fin_that_comes_early() {
    let mut s = Script::open_server(multipath(), 2);
    s.send(s.tx(1).data_fin(200));
    s.expect(want(1, ACK).dack(0));
    s.send(s.tx(0).data(100, 100));
    s.expect(want(0, ACK).dack(0));
    assert_eq!(s.state(), ConnectionState::Open);
    s.send(s.tx(1).data_fin(200));
    s.expect(want(1, ACK).dack(0));
    s.send(s.tx(1).data(0, 100));
    s.expect(want(1, ACK).dack(201));
    s.skip(1_000);
    assert_eq!(s.state(), ConnectionState::PeerDone);
    s.send(s.tx(1).data_fin(200));
    s.expect(want(1, ACK).dack(201));
}

/// R41: a DATA_FIN beside data is counted in the length of the mapping.
#[test]
fn a_data_fin_beside_data() {
    let mut s = Script::open_server(multipath(), 1);
    let mut seg = s.tx(0).data(0, 100).map(0, 1, 101);
    seg.data_fin = true;
    s.send(seg);
    s.expect(want(0, ACK).ack(101).dack(101));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
}

/// R31, R41: a DATA_FIN beside data takes no sequence number of the subflow. A stock kernel uses
/// the next number for later data that it sends again for another subflow.
#[test]
fn a_subflow_goes_on_behind_a_data_fin() {
    let mut s = Script::open_server(multipath(), 2);
    s.send(s.tx(1).data(200, 100).map(200, 1, 101).fin_with_it());
    s.lose_all();
    s.send(s.tx(1).data(0, 100).map(0, 101, 200));
    s.expect(want(1, ACK).ack(201).dack(100));
    s.send(s.tx(1).data(100, 100).map(0, 101, 200));
    s.expect(want(1, ACK).ack(301).dack(301));
}

/// R56: our DATA_FIN is retransmitted until it is DATA_ACKed. The subflow's ACK does not suffice.
#[test]
fn our_data_fin_is_repeated() {
    let mut s = Script::open_server(multipath(), 1);
    s.finish();
    s.expect(want(0, ACK).data_fin(0));
    s.send(s.tx(0));
    s.after(1_000);
    s.expect(want(0, ACK).data_fin(0));
    s.lose_all();
    s.ack(0, 1, 1);
    s.after(60_000);
    s.expect_nothing();
}

/// R41, R56: Linux ignores options of a segment with an old sequence number, so a lost DATA_FIN is
/// retransmitted with the current one. Every second time it has an old one, which is answered even
/// if a middlebox removes the options.
#[test]
fn a_lost_data_fin_is_told_again_in_sequence() {
    let mut s = Script::open_server(multipath(), 1);
    s.finish();
    s.expect(want(0, ACK).seq(1).data_fin(0));
    for seq in [1, 0, 1, 0, 1] {
        while s.out.is_empty() {
            s.until(s.endpoint.poll_timeout());
        }
        s.expect(want(0, ACK).seq(seq).data_fin(0));
    }
}

/// R56: a FIN without DATA_FIN ends only its subflow.
#[test]
fn a_fin_is_not_a_data_fin() {
    let mut s = Script::open_server(multipath(), 2);
    s.send(s.tx(0).flags(FIN));
    s.expect(want(0, ACK).ack(2).dack(0));
    assert_eq!(s.state(), ConnectionState::Open);
    s.write(100);
    s.send(s.tx(1).data(0, 100));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
}

/// R60, R70 (RFC 5961 section 3.2): only a RST with the exact sequence number resets. Another
/// number in the window gets a challenge ACK, and one outside gets no answer.
#[test]
fn resets_must_be_exact() {
    for config in [plain(), multipath()] {
        let mut s = Script::open_server(config, 1);
        s.send(s.tx(0).flags(Flags::RST).seq(2));
        s.expect(want(0, ACK).seq(1).ack(1));
        assert_eq!(s.state(), ConnectionState::Open);
        for outside in [0, u32::MAX - 1_000, 1 << 30] {
            s.send(s.tx(0).flags(Flags::RST).seq(outside));
            s.expect_nothing();
        }
        s.send(s.tx(0).flags(Flags::RST).seq(1));
        s.expect_nothing();
        let gone = s.state() == ConnectionState::Failed;
        assert!(gone || s.endpoint.stats(s.id).unwrap().waits);
    }
}

/// R70 (RFC 5961 section 4): a SYN on an established subflow gets a challenge ACK.
#[test]
fn a_syn_is_challenged() {
    let mut s = Script::open_server(multipath(), 1);
    let seg = s.tx(0).flags(crate::segment::SYN).seq(5_000);
    let nxt = s.peers[&0].nxt;
    s.send(seg);
    s.peers.get_mut(&0).unwrap().nxt = nxt;
    s.expect(want(0, ACK).seq(1).ack(1));
    assert_eq!(s.state(), ConnectionState::Open);
}

/// R60: a reset ends only its subflow. The other subflow carries its data, and nothing more is sent
/// on it.
#[test]
fn a_reset_subflow() {
    let mut s = Script::open_server(multipath(), 2);
    s.write(12 * FULL);
    let first = s.out.iter().filter(|(_, seg, _)| seg.path == 0).count();
    assert_eq!((first, s.lose_all()), (10, 12));
    s.after(20);
    s.send(s.tx(0).flags(Flags::RST));
    assert_eq!(s.state(), ConnectionState::Open);
    let mut reinjected: u64 = 0;
    for round in 0..10 {
        for (_, seg, _) in core::mem::take(&mut s.out) {
            assert_eq!(seg.path, 1, "round {round}");
            reinjected += u64::from(seg.len);
            let peer = s.peers.get_mut(&1).unwrap();
            peer.rcv = peer.rcv.max(seg.seq + seg.len);
        }
        s.after(20);
        s.send(s.tx(1));
    }
    assert!(reinjected >= 10 * FULL, "{reinjected}");
    s.ack(1, s.peers[&1].rcv, 12 * FULL);
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
}

/// A path keeps its number while a connection exists that had a subflow on it. The log names the
/// peer's address by this number, and the peer may join from there again.
#[test]
fn a_path_without_a_subflow_keeps_its_number() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).flags(Flags::RST).seq(1));
    s.expect_nothing();
    assert!(s.endpoint.stats(s.id).unwrap().waits, "the connection waits for a join");
    assert!(s.endpoint.uses_path(PathId(0)) && !s.endpoint.uses_path(PathId(1)));
    let (now, id) = (s.now, s.id);
    s.endpoint.abort(now, id).unwrap();
    s.endpoint.release(now, id).unwrap();
    s.after(60_000);
    assert!(!s.endpoint.uses_path(PathId(0)));
}

/// R30, R40, R60: data acknowledged on the reset subflow but not DATA_ACKed counts as lost, too.
#[test]
fn a_reset_subflow_that_had_acknowledged() {
    let mut s = Script::open_server(multipath(), 2);
    s.write(3 * FULL);
    s.lose_all();
    s.after(20);
    s.send(s.tx(0).ack(1 + 2 * MSS));
    s.send(s.tx(0).flags(Flags::RST));
    for segment in 0..3 {
        s.expect(want(1, PSH).map(segment * FULL, 1 + segment as u32 * MSS, MSS as u16));
    }
}

/// R60: the same if part of the flight was already lost. Nothing is sent on the dead subflow, and
/// the other one probes a closed window.
#[test]
fn a_reset_subflow_with_losses() {
    let mut s = Script::open_server(multipath(), 2);
    s.write(10 * FULL);
    s.lose_all();
    s.after(20);
    // Segments 0 to 2 and 5 are lost. The recovery window permits one segment.
    let at = |segment: u32| 1 + segment * MSS;
    s.send(s.tx(0).sack(&[(at(6), at(10))]));
    s.lose_all();
    s.send(s.tx(0).flags(Flags::RST));
    s.after(5_000);
    for (_, seg, _) in core::mem::take(&mut s.out) {
        assert_eq!(seg.path, 1);
    }
}

/// R61, RFC 9293 section 3.8.3: a subflow whose peer never answers is finally reset.
#[test]
fn a_dead_peer() {
    let mut s = Script::open_server(plain(), 1);
    s.write(100);
    s.after(3_600_000);
    assert_eq!(s.state(), ConnectionState::Failed);
    assert!(s.out.back().unwrap().1.flags.has(Flags::RST));
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
}

/// R61: a FIN that overtakes data takes effect when the data has arrived (RFC 9293 section
/// 3.10.7.4).
#[test]
fn a_fin_ahead_of_data() {
    for config in [plain(), multipath()] {
        let multipath = config.multipath;
        let mut s = Script::open_server(config, 1);
        s.send(s.tx(0).seq(101).flags(FIN));
        s.expect(want(0, ACK).ack(1));
        let data = s.tx(0).seq(1);
        let mut data = if multipath { data.data(0, 100) } else { data.flags(PSH) };
        data.len = 100;
        s.send(data);
        s.expect(want(0, ACK).ack(102));
        assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
        assert_eq!(s.state(), ConnectionState::Open);
        s.skip(100);
        let done = if multipath { ConnectionState::Open } else { ConnectionState::PeerDone };
        assert_eq!(s.state(), done);
    }
}

/// Returns a server with both directions ended. Its last DATA_ACK and its FIN are lost, and the
/// client's only subflow is reset.
fn ended_unheard() -> Script {
    let mut s = Script::open_server(multipath(), 1);
    s.write(100);
    s.finish();
    s.lose_all();
    s.ack(0, 101, 101);
    s.send(s.tx(0).data_fin(0));
    s.expect(want(0, FIN).dack(1));
    s.send(s.tx(0).flags(Flags::RST).stripped());
    s.lose_all();
    assert_eq!(s.state(), ConnectionState::Closed);
    assert!(s.endpoint.is_over());
    s
}

/// R26, R56 (RFC 8684 section 3.3.3): an end that does not know whether its last DATA_ACK arrived
/// accepts a join and sends it again. Once it knows, it refuses joins.
#[test]
fn the_last_data_ack_is_told_on_a_later_subflow() {
    let mut s = ended_unheard();
    s.after(59_000);
    let syn = s.join_syn(1, false);
    s.send(syn);
    s.expect(want(1, SYN.with(ACK)).mptcp("join answer"));
    s.after(20);
    let proof = s.proof(1);
    s.send(proof);
    s.expect(want(1, FIN).seq(1).dack(1));
    s.ack(1, 2, 101);
    let syn = s.join_syn(2, false);
    s.send(syn);
    s.expect(want(2, RST).mptcp("Reset { reason: Mptcp, transient: false }"));
    assert_eq!(s.state(), ConnectionState::Closed);
}

/// R26, R58: no join arrives. The connection stays closed and later refuses joins.
#[test]
fn the_last_data_ack_that_nobody_comes_for() {
    let mut s = ended_unheard();
    s.after(60_000);
    assert_eq!(s.state(), ConnectionState::Closed);
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
    let syn = s.join_syn(1, false);
    s.send(syn);
    s.expect(want(1, RST).mptcp("Reset { reason: Mptcp, transient: false }"));
}

/// R26: an end sent its DATA_FIN together with the DATA_ACK of the peer's DATA_FIN. If that is
/// acknowledged, it knows that the peer has everything.
#[test]
fn the_end_that_answers_knows_at_once() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data_fin(0));
    s.expect(want(0, ACK).dack(1));
    s.finish();
    s.expect(want(0, ACK).data_fin(0).dack(1));
    s.send(s.tx(0).dack(1));
    s.expect(want(0, FIN));
    let syn = s.join_syn(1, false);
    s.send(syn);
    s.expect(want(1, RST).mptcp("Reset { reason: Mptcp, transient: false }"));
}

/// R56, R58: a client's DATA_FIN was not acknowledged before its last subflow was reset. It joins
/// on every path to get the DATA_ACK.
#[test]
fn a_client_fetches_the_last_data_ack() {
    let mut s = Script::open_client(multipath(), 2);
    s.finish();
    s.lose_all();
    s.send(s.tx(0).data_fin(0));
    s.send(s.tx(1).flags(Flags::RST).stripped());
    s.send(s.tx(0).flags(Flags::RST).stripped());
    s.lose_all();
    s.after(1_000);
    s.expect(want(0, SYN).mptcp("join"));
    s.expect(want(1, SYN).mptcp("join"));
    s.send(s.syn_ack(1));
    s.lose_all();
    s.send(s.tx(1).dack(1));
    assert_eq!(s.state(), ConnectionState::Closed);
    s.expect(want(1, FIN));
}

/// R26, R58: a client that has everything joins again for the server. If this join is refused, the
/// connection has not failed.
#[test]
fn a_refusal_after_the_end_is_no_failure() {
    let mut s = Script::open_client(multipath(), 2);
    s.finish();
    s.lose_all();
    s.send(s.tx(0).dack(1).data_fin(0));
    assert_eq!(s.state(), ConnectionState::Closed);
    s.send(s.tx(1).flags(Flags::RST).stripped());
    s.send(s.tx(0).flags(Flags::RST).stripped());
    s.lose_all();
    s.after(1_000);
    s.expect(want(0, SYN).mptcp("join"));
    let reason = plait_wire::ResetReason::Mptcp;
    let refused = plait_wire::Mptcp::Reset { reason, transient: false };
    s.send(s.tx(0).seq(0).flags(RST).stripped().mptcp(refused));
    assert_eq!(s.state(), ConnectionState::Closed);
    s.lose_all();
    s.after(100_000);
    s.expect_nothing();
    assert_eq!(s.endpoint.poll_timeout(), Time::NEVER);
}
