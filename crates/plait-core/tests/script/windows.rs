//! The peer's window: closed windows, tiny windows, and impossible acknowledgements.

use crate::harness::{MSS, Script, capable_syn, multipath, plain, spec};
use crate::segment::{ACK, PSH, Seg, want};
use plait_core::{Config, MemoryLimit};

const FULL: u32 = 1_448;

/// R39: a closed window is probed at growing intervals, with segments without data. An update opens
/// it.
#[test]
fn a_closed_window() {
    let mut s = Script::open_server(multipath(), 1);
    s.send(s.tx(0).win(0));
    s.write(3 * u64::from(MSS));
    let all = s.lose_all();
    // The window of the handshake (65,535, unscaled and scaled) stays (R37).
    assert_eq!(all, 3);
    for (config, full) in [(plain(), FULL), (multipath(), MSS)] {
        let mut s = two_segments_of_window(config, full);
        let mut gaps = Vec::new();
        let mut last = s.now;
        for _ in 0..5 {
            while s.out.is_empty() {
                s.until(s.endpoint.poll_timeout());
            }
            s.expect(want(0, ACK).len(0).seq(2 * full));
            s.expect_nothing();
            gaps.push(s.now.since(last));
            last = s.now;
            s.send(s.tx(0).win(0));
        }
        assert!(gaps.windows(2).all(|pair| pair[1] == pair[0].times(2)), "{gaps:?}");
        s.send(s.tx(0).win(1_000));
        let sent: u32 = s.out.iter().map(|(_, seg, _)| seg.len).sum();
        assert_eq!(sent, 3 * full);
    }
}

/// Returns a server that has filled a window of two segments, which the peer then closed.
pub(crate) fn two_segments_of_window(config: Config, full: u32) -> Script {
    let capable = config.multipath;
    let mut s = Script::server(spec(config, 1, None));
    let syn = s.syn(0).win(2 * full as u16);
    s.send(if capable { syn.mptcp(capable_syn()) } else { syn });
    s.lose_all();
    s.after(20);
    let proof = s.proof(0).win(0);
    s.send(if capable { proof } else { proof.stripped() });
    s.id = s.endpoint.poll_accept().unwrap();
    s.write(5 * u64::from(full));
    assert_eq!(s.lose_all(), 2);
    s.after(20);
    s.data_rcv = 2 * u64::from(full);
    s.ack_window(1 + 2 * full, 0);
    s.expect_nothing();
    s
}

/// Returns the bytes that a connection with a send buffer of 16,000 to 60,000 bytes accepts at first,
/// and after its ten segments were acknowledged.
fn accepted(limit: Option<MemoryLimit>, writes: u64, slow_start: bool) -> (u64, u64) {
    let config = plain().with(|it| {
        (it.buffers.sndbuf_first, it.buffers.sndbuf) = (Some(16_000), 60_000);
        it.window.ssthresh = (!slow_start).then_some(10 * u64::from(FULL));
    });
    let mut s = Script::open_server(config, 1);
    s.endpoint.limit_buffers(limit);
    s.write(writes);
    let before = s.endpoint.unacked(s.id).unwrap();
    s.lose_all();
    s.after(20);
    s.ack_window(1 + 10 * FULL, 60_000);
    s.lose_all();
    s.write(1 << 20);
    (before, s.endpoint.unacked(s.id).unwrap())
}

/// A send buffer grows to twice the congestion window if a writer waits and the window is not full,
/// to the window itself in slow start. One ACK adds a segment to the window, and two in slow start.
/// If memory is short, the buffer grows no further than the share.
#[test]
fn a_send_buffer_grows_if_a_writer_waits() {
    let full = u64::from(FULL);
    assert_eq!(accepted(None, 1 << 20, false), (16_000, 2 * 11 * full));
    assert_eq!(accepted(None, 1 << 20, true), (16_000, 12 * full));
    // This writer has not waited before.
    assert_eq!(accepted(None, 15_000, false), (15_000, 16_000));
    let limit = MemoryLimit { unread: 10_000, unsent: 10_000, max_unsent: 22_000 };
    assert_eq!(accepted(Some(limit), 1 << 20, false), (16_000, 22_000));
}

/// A send buffer grows to twice the data that all windows carry in the longest RTT (RFC 6182 section 5.3). One
/// subflow has a window of 11 segments and 20 ms, the other one 10 segments and 80 ms.
#[test]
fn a_send_buffer_holds_the_longest_rtt() {
    let config = multipath().with(|it| {
        (it.buffers.sndbuf_first, it.buffers.sndbuf) = (Some(16_000), 1 << 20);
        it.window.ssthresh = Some(10 * u64::from(MSS));
    });
    let mut s = Script::server(spec(config, 2, None));
    s.establish(1, 20);
    s.join(1, 80, false);
    s.write(1 << 20);
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 16_000);
    s.lose_all();
    s.after(20);
    s.ack(0, 1 + 10 * MSS, 1 + 10 * u64::from(MSS));
    s.write(1 << 20);
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 2 * (4 * 11 + 10) * u64::from(MSS));
}

/// R74: a sender does not fill a small window with small segments. It sends a full segment or the
/// rest of the data.
#[test]
fn a_sender_is_not_silly() {
    let mut s = Script::server(spec(plain(), 1, None));
    let syn = s.syn(0).win(2 * FULL as u16);
    s.send(syn);
    s.lose_all();
    s.after(20);
    s.send(s.tx(0).win(0));
    s.id = s.endpoint.poll_accept().unwrap();
    s.write(10 * u64::from(FULL));
    assert_eq!(s.lose_all(), 2);
    s.after(20);
    // In units of 128 bytes: room for 0.9 segments, then for 1.06.
    s.ack_window(1 + 2 * FULL, 10);
    s.expect_nothing();
    s.ack_window(1 + 2 * FULL, 12);
    s.expect(want(0, PSH).len(FULL));
    s.expect_nothing();
}

/// R74: if the peer's whole buffer is smaller than a segment, segments are shorter.
#[test]
fn a_tiny_buffer() {
    let mut s = Script::server(spec(plain(), 1, None));
    let syn = s.syn(0).win(500);
    let syn = Seg { scale: Some(0), ..syn };
    s.send(syn);
    s.lose_all();
    s.after(20);
    s.send(s.tx(0).win(500));
    s.id = s.endpoint.poll_accept().unwrap();
    s.write(1_200);
    for (seq, len) in [(1, 500), (501, 500), (1_001, 200)] {
        s.expect(want(0, PSH).seq(seq).len(len));
        s.expect_nothing();
        s.after(20);
        s.peers.get_mut(&0).unwrap().rcv = seq + len;
        s.send(s.tx(0).win(500));
    }
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
}

/// R36: a DATA_ACK of unsent data is ignored, and so is the window beside it. An older DATA_ACK has
/// no effect.
#[test]
fn impossible_data_acks() {
    let mut s = Script::open_server(multipath(), 1);
    s.write(1_000);
    s.lose_all();
    s.send(s.tx(0).dack(1_001));
    s.send(s.tx(0).dack(1 << 31).long());
    s.send(s.tx(0).dack(u64::MAX).long());
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 1_000);
    s.send(s.tx(0).dack(600));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 400);
    s.send(s.tx(0).dack(200));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 400);
    s.send(s.tx(0).ack(1_001).dack(1_000));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
}

/// The same for the subflow's numbers in plain TCP: below the first byte and above the last.
#[test]
fn impossible_acks() {
    let mut s = Script::open_server(plain(), 1);
    s.write(1_000);
    s.lose_all();
    for ack in [0, u32::MAX, 1_002, 1 << 31, u32::MAX / 2] {
        s.send(s.tx(0).ack(ack));
        assert_eq!(s.endpoint.unacked(s.id).unwrap(), 1_000, "ACK {ack}");
    }
    s.send(s.tx(0).ack(1_001));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
}

/// R40: an acknowledgement on the subflow alone frees no data.
#[test]
fn data_is_kept_until_the_data_ack() {
    let mut s = Script::open_server(multipath(), 1);
    s.write(1_000);
    s.lose_all();
    s.send(s.tx(0).ack(1_001));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 1_000);
}

/// R37 (RFC 8684 section 3.3.1): a window without a DATA_ACK is ignored.
#[test]
fn a_window_without_a_data_ack_is_not_used() {
    let mut s = two_segments_of_window(multipath(), MSS);
    s.send(s.tx(0).win(1_000).stripped());
    let mut mapped_only = s.tx(0).win(1_000).data(0, 100);
    mapped_only.dack = None;
    s.send(mapped_only);
    assert!(s.out.iter().all(|(_, seg, _)| seg.len == 0));
    s.lose_all();
    s.send(s.tx(0).win(1_000));
    s.expect(want(0, PSH).len(MSS));
}

/// R37: any subflow can update the window, and an older update cannot reduce it.
#[test]
fn the_window_is_one_pool() {
    let mut s = Script::open_server(multipath(), 2);
    s.write(300 * u64::from(MSS));
    s.lose_all();
    s.send(s.tx(1).win(0xffff));
    s.send(s.tx(0).win(0));
    s.after(20);
    s.ack(1, 1 + MSS, 0);
    assert!(s.out.iter().any(|(_, seg, _)| seg.path == 1 && seg.len > 0));
}

/// R37: a stock kernel drops data beyond the window that it advertised on the subflow, even if the
/// shared window is wider. Here another subflow, which is gone, has delivered data that is missing
/// on this one.
#[test]
fn a_subflow_has_a_window_of_its_own() {
    for enforced in [false, true] {
        let config = multipath().with(|it| it.buffers.subflow_windows = enforced);
        let mut s = Script::server(spec(config, 1, None));
        let syn = s.syn(0).win(10 * MSS as u16).mptcp(capable_syn());
        s.send(syn);
        s.lose_all();
        s.after(20);
        // In units of 128 bytes: ten segments again.
        s.send(s.proof(0).win((10 * MSS).div_ceil(128) as u16));
        s.id = s.endpoint.poll_accept().unwrap();
        s.write(20 * u64::from(MSS));
        assert_eq!(s.lose_all(), 10);
        s.after(20);
        // The subflow's window is no further than before, but the shared one has room for four more
        // segments.
        let window = (4 * MSS).div_ceil(128) as u16;
        s.send(s.tx(0).ack(1 + MSS).dack(10 * u64::from(MSS)).win(window));
        assert_eq!(s.lose_all() == 0, enforced);
        // An acknowledgement without news opens the window further.
        s.send(s.tx(0).ack(1 + MSS).dack(10 * u64::from(MSS)).win(4 * window));
        assert_eq!(s.lose_all() == 0, !enforced);
    }
}

/// R37: during a shortage of memory, the window reaches at most the share beyond the read data. An
/// advertised edge stays. After the shortage, the whole buffer is advertised again.
#[test]
fn short_memory_makes_new_windows_small() {
    const SHARE: u64 = 20_000;
    for config in [plain(), multipath()] {
        let full = if config.multipath { MSS } else { FULL };
        let mut s = Script::open_server(config, 1);
        let memory_limit = MemoryLimit { unread: SHARE, unsent: SHARE, max_unsent: SHARE };
        s.endpoint.limit_buffers(Some(memory_limit));
        let edge = |s: &mut Script| {
            let (_, told, _) = s.out.pop_back().unwrap();
            s.lose_all();
            u64::from(told.ack - 1) + (u64::from(told.win) << s.peers[&0].remote_scale)
        };
        // The field counts in these units. The SYN/ACK has advertised 64 KiB.
        let unit = 1 << s.peers[&0].remote_scale;
        let mut sent = 0;
        let mut send = |s: &mut Script| {
            let seg = s.tx(0).seq(1 + sent);
            let seg =
                if s.config.multipath { seg.data(u64::from(sent), full) } else { seg.flags(PSH) };
            s.send(Seg { len: full, ..seg });
            sent += full;
        };
        for _ in 0..10 {
            send(&mut s);
        }
        let told = edge(&mut s);
        assert!((65_536 - unit..=65_535).contains(&told), "{told}");
        // All data is read. 14,280 bytes plus the share are less than the advertised window.
        s.skip(u64::MAX);
        send(&mut s);
        send(&mut s);
        assert!((65_536 - unit..=65_535).contains(&edge(&mut s)));
        for _ in 0..28 {
            s.skip(u64::MAX);
            send(&mut s);
        }
        send(&mut s);
        // The last two segments were not read.
        let read = 39 * u64::from(full);
        let told = edge(&mut s);
        assert!(
            (read + SHARE + 1 - unit..=read + SHARE).contains(&told),
            "{told}, {read} was read"
        );
        s.endpoint.limit_buffers(None);
        s.skip(u64::MAX);
        send(&mut s);
        send(&mut s);
        assert!(edge(&mut s) > 6 << 20);
    }
}

/// R37: during a shortage of memory, a segment far ahead is dropped. It is accepted if the next byte
/// of the connection waits behind it on its subflow: the peer does not retransmit that byte.
#[test]
fn short_memory_keeps_no_gap_before_the_next_byte() {
    const SHARE: u64 = 20_000;
    let far = 2 * SHARE;
    let mut s = Script::open_server(multipath(), 1);
    let memory_limit = MemoryLimit { unread: SHARE, unsent: SHARE, max_unsent: SHARE };
    s.endpoint.limit_buffers(Some(memory_limit));
    let acknowledged = |s: &mut Script| {
        let (_, told, _) = s.out.pop_back().unwrap();
        s.lose_all();
        told.ack
    };
    let behind = s.tx(0).seq(1 + MSS).data(0, MSS);
    let ahead = s.tx(0).seq(1).data(far, MSS);
    s.send(ahead.clone());
    assert_eq!(acknowledged(&mut s), 1);
    s.send(behind);
    assert_eq!(acknowledged(&mut s), 1);
    s.send(ahead);
    assert_eq!(acknowledged(&mut s), 1 + 2 * MSS);
    assert_eq!(s.endpoint.readable(s.id).unwrap(), u64::from(MSS));
}
