//! Receiver: acknowledgements, SACK, order of the data.

use crate::harness::{MSS, Script, multipath, plain};
use crate::segment::{ACK, want};
use plait_core::Config;

/// Receives the segments that are acknowledged one by one. Returns the next DSN.
fn past_quick(s: &mut Script) -> u64 {
    for index in 0..u64::from(Config::QUICK_ACKS) {
        s.send(s.tx(0).data(index * u64::from(MSS), MSS));
        s.expect(want(0, ACK).ack(1 + (index as u32 + 1) * MSS).dack((index + 1) * u64::from(MSS)));
        s.expect_nothing();
    }
    u64::from(Config::QUICK_ACKS) * u64::from(MSS)
}

/// R73: the first 16 segments are acknowledged at once. Then every second full one is, and a single
/// one after 40 ms.
#[test]
fn delayed_acknowledgements() {
    let mut s = Script::open_server(multipath(), 1);
    let dsn = past_quick(&mut s);
    let full = u64::from(MSS);
    s.send(s.tx(0).data(dsn, MSS));
    s.expect_nothing();
    s.send(s.tx(0).data(dsn + full, MSS));
    s.expect(want(0, ACK).dack(dsn + 2 * full));
    s.send(s.tx(0).data(dsn + 2 * full, MSS));
    s.after(39);
    s.expect_nothing();
    s.after(1);
    s.expect(want(0, ACK).dack(dsn + 3 * full).at(60.0));
    // Two small segments are less than two full ones.
    s.send(s.tx(0).data(dsn + 3 * full, 10));
    s.send(s.tx(0).data(dsn + 3 * full + 10, 10));
    s.expect_nothing();
    s.after(40);
    s.expect(want(0, ACK).dack(dsn + 3 * full + 20));
    s.after(500);
    s.expect_nothing();
}

/// R73: data out of order, a filled hole and a DATA_FIN are acknowledged at once.
#[test]
fn what_cannot_wait() {
    let mut s = Script::open_server(multipath(), 1);
    let dsn = past_quick(&mut s);
    let nxt = s.tx(0).seq;
    s.send(s.tx(0).seq(nxt + 100).data(dsn + 100, 100));
    s.expect(want(0, ACK).ack(nxt).dack(dsn).sack(&[(nxt + 100, nxt + 200)]));
    s.send(s.tx(0).seq(nxt).data(dsn, 100));
    s.expect(want(0, ACK).ack(nxt + 200).dack(dsn + 200).sack(&[]));
    s.send(s.tx(0).data_fin(dsn + 200));
    s.expect(want(0, ACK).ack(nxt + 200).dack(dsn + 201));
}

/// R73, stms-u11: disorder of the data alone forces no acknowledgement if each subflow is in order.
#[test]
fn disorder_of_the_data_forces_nothing() {
    let mut s = Script::open_server(multipath(), 2);
    let dsn = past_quick(&mut s);
    let full = u64::from(MSS);
    // The second subflow still acknowledges one by one. The first one delays its ACK, although its
    // data is ahead of the received data.
    s.send(s.tx(0).data(dsn + full, MSS));
    s.expect_nothing();
    s.send(s.tx(1).data(dsn, MSS));
    s.expect(want(1, ACK).ack(1 + MSS).dack(dsn + 2 * full));
    s.expect_nothing();
}

/// R66: the block of the last received segment comes first.
#[test]
fn sack_blocks_most_recent_first() {
    let mut s = Script::open_server(plain(), 1);
    let send = |s: &mut Script, seq: u32| {
        let mut seg = s.tx(0).seq(seq);
        seg.len = 100;
        s.send(seg);
    };
    send(&mut s, 101);
    s.expect(want(0, ACK).ack(1).sack(&[(101, 201)]));
    send(&mut s, 301);
    s.expect(want(0, ACK).ack(1).sack(&[(301, 401), (101, 201)]));
    send(&mut s, 501);
    s.expect(want(0, ACK).ack(1).sack(&[(501, 601), (301, 401), (101, 201)]));
    send(&mut s, 201);
    s.expect(want(0, ACK).ack(1).sack(&[(101, 401), (501, 601)]));
    send(&mut s, 1);
    s.expect(want(0, ACK).ack(401).sack(&[(501, 601)]));
}

/// R66, RFC 2883: a duplicate is reported once, before the other blocks, whether below or above the
/// ACK.
#[test]
fn duplicates_are_told() {
    let mut s = Script::open_server(plain(), 1);
    let send = |s: &mut Script, seq: u32| {
        let mut seg = s.tx(0).seq(seq);
        seg.len = 100;
        s.send(seg);
    };
    send(&mut s, 1);
    s.lose_all();
    send(&mut s, 1);
    s.expect(want(0, ACK).ack(101).sack(&[(1, 101)]));
    send(&mut s, 301);
    s.expect(want(0, ACK).ack(101).sack(&[(301, 401)]));
    send(&mut s, 301);
    s.expect(want(0, ACK).ack(101).sack(&[(301, 401), (301, 401)]));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 100);
}

/// R2, R66: beside a DSS there is room for two blocks.
#[test]
fn sack_gives_way_to_the_dss() {
    let mut s = Script::open_server(multipath(), 1);
    for seq in [101, 301, 501] {
        s.send(s.tx(0).seq(seq).data(u64::from(seq) - 1, 100));
    }
    s.expect(want(0, ACK));
    s.expect(want(0, ACK));
    s.expect(want(0, ACK).dack(0).sack(&[(501, 601), (301, 401)]));
}

/// R35: data received on two subflows is delivered once. The first bytes are used.
#[test]
fn duplicates_of_two_subflows() {
    let mut s = Script::open_server(multipath(), 2);
    let bytes = |path: u32, seg: crate::segment::Seg, fill: u8| {
        let len = seg.len as usize;
        crate::segment::Seg { path, bytes: Some(vec![fill; len]), ..seg }
    };
    s.send(bytes(0, s.tx(0).data(0, 100), b'a'));
    s.send(bytes(1, s.tx(1).data(50, 100), b'b'));
    s.send(bytes(1, s.tx(1).data(250, 50), b'c'));
    s.send(bytes(0, s.tx(0).data(150, 150), b'd'));
    let mut got = [0; 400];
    let count = s.endpoint.read(s.now, s.id, &mut got).unwrap();
    let mut expected = vec![b'a'; 100];
    expected.extend([b'b'; 50]);
    expected.extend([b'd'; 100]);
    expected.extend([b'c'; 50]);
    assert_eq!(&got[..count], &expected[..]);
}

/// R36: every acknowledgement covers all in-order data of any subflow.
#[test]
fn data_ack_follows_the_data() {
    let mut s = Script::open_server(multipath(), 2);
    s.send(s.tx(1).data(100, 100));
    s.expect(want(1, ACK).ack(101).dack(0));
    s.send(s.tx(0).data(0, 100));
    s.expect(want(0, ACK).ack(101).dack(200));
    s.send(s.tx(1).data(100, 100));
    s.expect(want(1, ACK).ack(201).dack(200));
}

/// R29: 8-byte numbers mean the same as 4-byte ones.
#[test]
fn long_numbers() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(0, 100).long());
    s.expect(want(0, ACK).dack(100));
    s.write(100);
    s.lose_all();
    s.send(s.tx(0).ack(101).dack(100).long());
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
    s.send(s.tx(0).data_fin(100).long());
    s.expect(want(0, ACK).dack(101));
}

/// R29: all 8 bytes count. A number 2^32 away with the same low half is a different one.
#[test]
fn long_numbers_are_long() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(1 << 32, 100).long());
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 0);
    s.write(100);
    s.lose_all();
    s.send(s.tx(0).ack(101).dack((1 << 32) + 100).long());
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 100);
}

/// R31: one mapping spans several segments, and each has its place in it.
#[test]
fn a_mapping_that_spans_segments() {
    let mut s = Script::open_server(multipath(), 1);
    for index in [0, 2, 1] {
        s.send(s.tx(0).seq(1 + index * 100).data(0, 100).map(0, 1, 300));
    }
    s.lose_all();
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 300);
    // Bytes beyond the mapping are unmapped.
    s.send(s.tx(0).seq(301).data(0, 100).map(0, 1, 300));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 300);
}

/// R38: data beyond the window is dropped and accepted later.
#[test]
fn data_outside_the_window() {
    let config = multipath().with(|it| it.buffers.rcvbuf = 3_000);
    let mut s = Script::open_server(config, 2);
    s.send(s.tx(0).data(0, MSS));
    s.send(s.tx(0).data(u64::from(MSS), MSS));
    s.lose_all();
    let nxt = s.tx(0).seq;
    s.send(s.tx(0).data(2 * u64::from(MSS), MSS));
    s.expect(want(0, ACK).ack(nxt).dack(2 * u64::from(MSS)).sack(&[]));
    s.send(s.tx(1).data(3_000, 1));
    s.expect(want(1, ACK).ack(1).dack(2 * u64::from(MSS)));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 2 * u64::from(MSS));
    s.skip(10_000);
    s.lose_all();
    s.send(s.tx(0).seq(nxt).data(2 * u64::from(MSS), MSS));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), u64::from(MSS));
}

/// R37, R73, R74: the right edge stays while the buffer fills, and moves after a read. The audit
/// checks every segment.
#[test]
fn the_right_edge() {
    let config = plain().with(|it| it.buffers.rcvbuf = 5_000);
    let mut s = Script::open_server(config, 1);
    let send = |s: &mut Script, len: u32| {
        let mut seg = s.tx(0);
        seg.len = len;
        s.send(seg);
    };
    send(&mut s, 1_448);
    s.expect(want(0, ACK).ack(1_449).win(5_000 - 1_448));
    send(&mut s, 1_448);
    s.expect(want(0, ACK).win(5_000 - 2 * 1_448));
    send(&mut s, 1_448);
    s.expect(want(0, ACK).win(5_000 - 3 * 1_448));
    // A window update is not sent for less than two segments and half of the buffer (RFC 9293
    // section 3.8.6.2.2).
    s.skip(1_000);
    s.expect_nothing();
    s.skip(2_000);
    s.expect(want(0, ACK).win(5_000 - 3 * 1_448 + 3_000));
}

/// R61: data after the FIN is ignored.
#[test]
fn data_after_a_fin_is_ignored() {
    for config in [plain(), multipath()] {
        let mut s = Script::open_server(config, 1);
        s.send(s.tx(0).flags(crate::segment::FIN));
        s.lose_all();
        let mut seg = s.tx(0).flags(ACK);
        seg = if seg.dack.is_some() { seg.data(0, 100) } else { seg };
        seg.len = 100;
        s.send(seg);
        s.expect(want(0, ACK).ack(2));
        assert_eq!(s.endpoint.readable(s.id).unwrap(), 0);
    }
}

/// F19: mappings and DATA_FINs far below or above the data cause no panic and change nothing.
#[test]
fn mappings_out_of_this_world() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).data(0, 100));
    s.lose_all();
    for dsn in [u64::MAX - 5, u64::MAX - 200, (1 << 63) + (1 << 30), 1 << 31, (1 << 32) + (1 << 30)]
    {
        for long in [false, true] {
            let seg = s.tx(0).seq(101).data(dsn, 100);
            s.send(if long { seg.long() } else { seg });
            let fin = s.tx(0).seq(101).data_fin(dsn).map(dsn, 0, 0xffff);
            s.send(if long { fin.long() } else { fin });
        }
    }
    s.lose_all();
    s.send(s.tx(0).seq(101).data(100, 100));
    s.expect(want(0, ACK).ack(201).dack(200));
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 200);
    // None of them has replaced the valid DATA_FIN.
    s.send(s.tx(0).data_fin(200));
    s.expect(want(0, ACK).dack(201));
}
