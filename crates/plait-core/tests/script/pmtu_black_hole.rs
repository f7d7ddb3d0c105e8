//! A path that delivers short packets and silently drops long ones (R63; RFC 4821 section 7.7, RFC
//! 8899 section 4.3). Full segments have 1,428 bytes here. In packets of 1,200 bytes they have
//! 1,128, and in packets of 576 bytes 504.

use crate::harness::{MSS, Script, multipath, plain};
use crate::segment::{PSH, want};
use plait_core::{Config, Sizes};
use plait_wire::Segment;

/// The piece that every path delivers. Four bytes stay free for our keys.
const SMALL: u32 = 500;
const BASE: u32 = 1_128;

/// Returns a server with `segments` of data in flight on a single subflow. Sent segments are
/// dropped.
fn sending(config: Config, segments: u64) -> Script {
    let mut s = Script::open_server(config, 1);
    s.write(segments * u64::from(MSS));
    s.lose_all();
    s
}

fn next_timeout(s: &mut Script) {
    let rto = s.endpoint.stats(s.id).unwrap().subflows[0].rto.as_millis_f64();
    s.after(rto.ceil() as u64);
}

/// Runs two consecutive timeouts. The segments of the first one are lost.
fn two_timeouts(s: &mut Script) {
    s.after(240);
    s.lose_all();
    s.after(440);
}

/// Returns the lengths of the sent segments, which are lost.
fn lengths(s: &mut Script) -> Vec<u32> {
    let list = s.out.iter().map(|(_, seg, _)| seg.len).collect();
    s.lose_all();
    list
}

fn size(s: &Script) -> u64 {
    s.endpoint.segment_payload(s.id).unwrap()
}

/// R63: the second consecutive timeout sends the first segment in pieces, each with its own
/// mapping.
#[test]
fn the_second_timeout_asks_with_short_segments() {
    let mut s = sending(multipath(), 10);
    s.after(240);
    assert_eq!(lengths(&mut s).last(), Some(&MSS));
    s.after(440);
    s.expect(want(0, PSH).seq(1).map(0, 1, SMALL as u16));
    s.expect(want(0, PSH).map(u64::from(SMALL), 1 + SMALL, (MSS - SMALL) as u16));
    s.expect_nothing();
    // This does not lower the size. A silent path gets the same pieces again.
    assert_eq!(size(&s), u64::from(MSS));
    // The first of the three is the probe that a silent path gets every second.
    s.after(880);
    assert_eq!(lengths(&mut s), [SMALL, SMALL, MSS - SMALL]);
}

/// R63: short segments arrive twice, and long ones before and between do not. From then on segments
/// have the base size, because a piece longer than the least size arrived.
#[test]
fn what_passes_twice_is_the_size() {
    let mut s = sending(multipath(), 10);
    two_timeouts(&mut s);
    s.lose_all();
    s.ack(0, 1 + MSS, u64::from(MSS));
    let more = lengths(&mut s);
    assert!(!more.is_empty() && more.iter().all(|len| *len == MSS), "{more:?}");
    assert_eq!(size(&s), u64::from(MSS));
    let before = s.endpoint.stats(s.id).unwrap().subflows[0].ssthresh;
    next_timeout(&mut s);
    assert_eq!(lengths(&mut s)[..2], [SMALL, MSS - SMALL]);
    s.ack(0, 1 + 2 * MSS, 2 * u64::from(MSS));
    assert_eq!(size(&s), u64::from(BASE));
    let after = s.endpoint.stats(s.id).unwrap().subflows[0];
    assert_eq!(after.ssthresh, before, "the size is no sign of congestion");
    // Data in flight is split into 1,128 bytes and the rest of the segment.
    let sent = lengths(&mut s);
    assert_eq!(sent[..2], [BASE, MSS - BASE]);
    s.ack(0, 1 + 10 * MSS, 10 * u64::from(MSS));
    s.write(20_000);
    let all = lengths(&mut s);
    assert!(all[0] == BASE && all.iter().all(|len| *len <= BASE), "{all:?}");
}

/// R63: if the base size does not pass either, the least packet size is used.
#[test]
fn the_least_packet_where_no_more_passes() {
    let mut s = sending(multipath(), 10);
    two_timeouts(&mut s);
    s.lose_all();
    s.ack(0, 1 + SMALL, u64::from(SMALL));
    s.lose_all();
    next_timeout(&mut s);
    // The rest of the first segment is sent first: 928 bytes.
    assert_eq!(lengths(&mut s)[..2], [SMALL, MSS - 2 * SMALL]);
    s.ack(0, 1 + 2 * SMALL, 2 * u64::from(SMALL));
    assert_eq!(size(&s), 504);
    assert!(lengths(&mut s).iter().all(|len| *len <= 504));
}

/// R63: after an outage, long segments arrive again and the size stays.
#[test]
fn a_long_segment_that_arrives_clears_the_path() {
    let mut s = sending(multipath(), 10);
    two_timeouts(&mut s);
    s.after(880);
    s.lose_all();
    s.ack(0, 1 + MSS, u64::from(MSS));
    s.ack(0, 1 + 3 * MSS, 3 * u64::from(MSS));
    s.lose_all();
    // The next silence starts from zero: its first timeout sends no pieces.
    next_timeout(&mut s);
    assert!(lengths(&mut s).contains(&MSS));
    s.ack(0, 1 + 4 * MSS, 4 * u64::from(MSS));
    assert_eq!(size(&s), u64::from(MSS));
}

/// R63: plain TCP does the same. If the detection is off, it does not.
#[test]
fn plain_tcp_asks_and_whoever_does_not_want_to_does_not() {
    let full = MSS + 20;
    for (config, first) in
        [(plain(), SMALL + 20), (plain().with(|it| it.recovery.black_holes = false), full)]
    {
        let mut s = Script::open_server(config, 1);
        s.write(10 * u64::from(full));
        s.lose_all();
        two_timeouts(&mut s);
        assert_eq!(lengths(&mut s)[0], first);
    }
}

/// R12, R63: a piece has the checksum of its own mapping (verified by the audit).
#[test]
fn pieces_have_checksums_of_their_own() {
    let mut s = sending(Config { checksum: true, ..multipath() }, 3);
    two_timeouts(&mut s);
    let pieces: Vec<_> = s.out.iter().rev().take(2).map(|(_, seg, _)| seg.map).collect();
    let rest = (u64::from(SMALL), 1 + SMALL, (MSS - SMALL) as u16);
    assert_eq!(pieces, [Some(rest), Some((0, 1, SMALL as u16))]);
}

/// Passes a router's "packet too big" message about the segment at `seq`.
fn too_big(s: &mut Script, seq: u32, mtu: u32) {
    let subflow = s.endpoint.stats(s.id).unwrap().subflows[0].path;
    let peer = &s.peers[&0];
    let (src_port, dst_port) = (peer.remote_port, peer.port);
    let seq = peer.irs.wrapping_add(seq);
    let quoted = Segment { src_port, dst_port, seq, ..Segment::default() };
    s.endpoint.on_too_big(s.now, subflow, &quoted, mtu);
    s.drain();
}

/// R63, S10: a router's message counts if it quotes a segment in flight. Segments fit at once, too
/// long ones are retransmitted, and the window stays.
#[test]
fn a_router_is_believed_of_what_is_in_flight() {
    let mut s = sending(multipath(), 10);
    let stats = |s: &Script| s.endpoint.stats(s.id).unwrap().subflows[0];
    let before = stats(&s);
    // Below the data in flight, above it, and MTUs that no link has.
    for (seq, mtu) in [(0, 1_280), (1 + 10 * MSS, 1_280), (1, 551), (1, 0)] {
        too_big(&mut s, seq, mtu);
    }
    assert_eq!((s.endpoint.sizes().too_big_refused, size(&s)), (4, u64::from(MSS)));
    s.expect_nothing();
    // An MTU of 1,500 bytes changes nothing.
    too_big(&mut s, 1, 1_500);
    assert_eq!((s.endpoint.sizes().too_big_refused, size(&s)), (4, u64::from(MSS)));
    // The first segment has arrived. The others are retransmitted in pieces.
    too_big(&mut s, 1 + MSS, 1_280);
    assert_eq!(size(&s), 1_208);
    s.expect(want(0, PSH).seq(1 + MSS).map(u64::from(MSS), 1 + MSS, 1_208));
    s.expect(want(0, PSH).seq(1 + MSS + 1_208).len(MSS - 1_208));
    // An initial window is ten segments of any size. Other windows keep their bytes.
    assert_eq!(lengths(&mut s).iter().sum::<u32>(), 6 * MSS);
    let after = stats(&s);
    assert_eq!((after.cwnd, after.ssthresh), (12_080, before.ssthresh));
    // Messages about other segments change nothing.
    too_big(&mut s, 1 + 2 * MSS, 1_280);
    s.expect_nothing();
    s.after(20);
    s.ack(0, 1 + 10 * MSS, 10 * u64::from(MSS));
    assert!(stats(&s).cwnd >= 12_080 && s.endpoint.sizes().too_big_refused == 4);
    // A smaller MTU counts as the smallest that every host accepts.
    s.write(3_000);
    s.lose_all();
    too_big(&mut s, 1 + 10 * MSS, 560);
    assert_eq!(size(&s), 504);
    // Every message and every reduction is counted.
    let Sizes { too_big_believed, lowered_as_told, lowered_by_hole, .. } = s.endpoint.sizes();
    assert_eq!((too_big_believed, lowered_as_told, lowered_by_hole), (4, 2, 0));
}
