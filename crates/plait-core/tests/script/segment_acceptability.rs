//! Segments of other conversations: sequence numbers, acknowledgements, simultaneous SYNs, reused
//! addresses.

use crate::harness::{MSS, Script, capable_syn, multipath, plain, spec};
use crate::segment::{ACK, FIN, PSH, SYN, Seg, want};
use plait_core::ConnectionState;
use plait_wire::Flags;

fn data(s: &Script, seq: u32, len: u32) -> Seg {
    let seg = s.tx(0).seq(seq);
    let mut seg = if seg.dack.is_some() { seg.data(u64::from(seq) - 1, len) } else { seg };
    (seg.len, seg.flags) = (len, PSH);
    seg
}

/// R61 (RFC 9293 section 3.10.7.4): with plain TCP, data beyond the window is refused and answered.
/// Data up to its edge is accepted.
#[test]
fn the_window_of_plain_tcp_is_exact() {
    let config = plain().with(|it| it.buffers.rcvbuf = 10_000);
    let mut s = Script::open_server(config, 1);
    for seq in [10_001, 10_002, 1 << 20, 1 << 29, 1 << 31] {
        s.send(data(&s, seq, 100));
        s.expect(want(0, ACK).ack(1).sack(&[]));
    }
    s.send(data(&s, 9_901, 100));
    s.expect(want(0, ACK).ack(1).sack(&[(9_901, 10_001)]));
    for seq in (1..9_901).step_by(100) {
        s.send(data(&s, seq, 100));
    }
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 10_000);
    s.lose_all();
    // The window is closed. An acknowledgement at the edge counts, and one beyond it does not.
    s.write(1_000);
    s.lose_all();
    s.send(s.tx(0).seq(10_002).ack(1_001));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 1_000);
    s.send(s.tx(0).seq(10_001).ack(1_001));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
}

/// R61, R70: a subflow of Multipath TCP uses the shared window. Numbers more than two buffers ahead
/// or behind belong to no conversation.
#[test]
fn numbers_far_from_a_subflows_window_are_refused() {
    let config = multipath().with(|it| it.buffers.rcvbuf = 100_000);
    let mut s = Script::open_server(config, 1);
    for seq in [200_002, 1 << 29, 1 << 31, u32::MAX - 300_000] {
        // The data numbers would fit.
        let seg = s.tx(0).seq(seq).data(0, 100);
        s.send(seg);
        s.expect(want(0, ACK).ack(1).dack(0).sack(&[]));
    }
    s.send(s.tx(0).seq(1).data(0, 100));
    s.expect(want(0, ACK).ack(101).dack(100));
}

/// R61: a segment without ACK on an open subflow is dropped (RFC 9293 section 3.10.7.4, fifth
/// check).
#[test]
fn a_segment_without_ack_is_dropped() {
    let mut s = Script::open_server(plain(), 1);
    let mut seg = data(&s, 1, 100);
    seg.flags = Flags(0x08);
    s.send(seg);
    s.expect_nothing();
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 0);
}

/// R70 (RFC 5961 section 5.2): an acknowledgement is too old if it is further behind than the
/// peer's largest window. Its data is refused with a challenge ACK. Closer behind, it is accepted.
#[test]
fn an_acknowledgement_far_behind_is_challenged() {
    let mut s = Script::open_server(plain(), 1);
    // A window of 65,535 units of 128 bytes.
    s.send(s.tx(0));
    let window: u32 = 65_535 << 7;
    let mut acked = 0;
    while acked < window + 100_000 {
        s.write(1_000_000);
        let sent: u32 = s.out.iter().map(|(_, seg, _)| seg.seq + seg.len).max().unwrap_or(0);
        s.lose_all();
        s.after(5);
        acked = acked.max(sent.saturating_sub(1));
        s.ack(0, 1 + acked, 0);
    }
    s.lose_all();
    let una = 1 + acked;
    for (ack, readable) in [(una - window - 1, 0), (una - window, 100), (una - 1, 200)] {
        let seg = data(&s, 1 + s.endpoint.readable(s.id).unwrap() as u32, 100).ack(ack);
        s.send(seg);
        assert_eq!(s.endpoint.readable(s.id).unwrap(), readable, "ACK {ack}, left edge {una}");
    }
}

/// R70, S7 (RFC 5961 section 7): answers to SYNs, resets, old acknowledgements and unacceptable
/// numbers share one limit. It differs between connections and between seconds.
#[test]
fn the_limit_of_challenges_cannot_be_foretold() {
    let mut limits = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut s = Script::server_drawing(spec(plain(), 1, None), &[seed, 7, seed * 31, seed]);
        s.establish(1, 20);
        for _ in 0..2 {
            let mut count = 0;
            for _ in 0..50 {
                s.send(s.tx(0).flags(Flags::RST).seq(2));
                let nxt = s.peers[&0].nxt;
                s.send(s.tx(0).flags(SYN).seq(9));
                s.peers.get_mut(&0).unwrap().nxt = nxt;
                s.send(s.tx(0).ack(50));
                s.send(s.tx(0).seq(1 << 30));
                count += s.lose_all();
            }
            assert!((40..80).contains(&count), "{count}");
            limits.insert(count);
            s.after(1_001);
        }
    }
    assert!(limits.len() > 5, "{limits:?}");
}

/// R61 (RFC 9293 section 3.10.7.3): a SYN/ACK of another conversation is reset, and the attempt
/// continues.
#[test]
fn an_answer_to_another_syn_is_reset() {
    let mut s = Script::client(spec(plain(), 1, None));
    s.lose_all();
    for ack in [0, 2, 1 << 31] {
        let answer = s.syn_ack(0);
        s.send(answer.ack(ack));
        s.expect(want(0, Flags::RST).seq(ack));
    }
    s.send(s.syn_ack(0));
    s.expect(want(0, ACK).seq(1).ack(1));
    assert_eq!(s.state(), ConnectionState::Open);
}

/// R61 (RFC 9293 section 3.10.7.4, fifth check): the same for a third ACK.
#[test]
fn a_third_ack_of_another_conversation_is_reset() {
    let mut s = Script::server(spec(plain(), 1, None));
    let syn = s.syn(0);
    s.send(syn);
    s.lose_all();
    s.send(s.tx(0).ack(77));
    s.expect(want(0, Flags::RST).seq(77));
    s.send(s.tx(0));
    assert!(s.endpoint.poll_accept().is_some());
}

/// R61 (RFC 9293 section 3.5, figure 8): both ends dial at the same time. With or without an offer
/// of Multipath TCP, the connection is plain. The peer's SYN/ACK or its ACK opens it.
#[test]
fn simultaneous_open() {
    for config in [plain(), multipath()] {
        for answer in [true, false] {
            let mut s = Script::client(spec(config.clone(), 1, None));
            s.expect(want(0, SYN));
            s.after(10);
            let simultaneous = s.syn_ack(0).flags(SYN).ack(0);
            let simultaneous =
                if config.multipath { simultaneous.mptcp(capable_syn()) } else { simultaneous };
            s.send(simultaneous);
            s.expect(want(0, SYN.with(ACK)).seq(0).ack(1).plain());
            assert_eq!(s.state(), ConnectionState::Connecting);
            s.after(10);
            if answer {
                s.send(s.syn_ack(0).stripped());
                s.expect(want(0, ACK).seq(1).ack(1).plain());
            } else {
                s.send(s.tx(0).stripped());
            }
            s.expect_nothing();
            assert_eq!(s.state(), ConnectionState::Open);
            s.write(1_000);
            s.expect(want(0, PSH).seq(1).len(1_000).plain());
            s.send(s.tx(0).stripped().ack(1_001));
            assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
        }
    }
}

/// R61: a lost SYN/ACK is retransmitted, and a reset ends the attempt.
#[test]
fn simultaneous_open_with_losses() {
    let mut s = Script::client(spec(plain(), 1, None));
    s.lose_all();
    let simultaneous = s.syn_ack(0).flags(SYN).ack(0);
    s.send(simultaneous);
    s.expect(want(0, SYN.with(ACK)));
    s.until(s.endpoint.poll_timeout());
    s.expect(want(0, SYN.with(ACK)).seq(0).ack(1));
    s.send(s.tx(0).flags(Flags::RST));
    assert_eq!(s.state(), ConnectionState::Failed);
}

/// Returns a plain TCP server that has closed first and is in TIME-WAIT.
fn in_time_wait() -> Script {
    let mut s = Script::open_server(plain(), 1);
    s.finish();
    s.lose_all();
    s.ack(0, 2, 0);
    s.send(s.tx(0).flags(FIN));
    s.expect(want(0, ACK).ack(2));
    assert!(s.endpoint.is_over());
    s
}

/// R59 (RFC 6191 section 2): a SYN reuses a connection in TIME-WAIT if its timestamp is newer, or
/// equal with a newer sequence number. An older SYN is answered as by the old conversation.
#[test]
fn a_newer_syn_uses_the_address_again() {
    for (later, ahead, opens) in
        [(1, 0, true), (0, 1, true), (0, 0, false), (-1, 1, false), (1, -9_000, true)]
    {
        let mut s = in_time_wait();
        let known = s.tx(0).stamps.unwrap().0;
        let (port, iss) = (s.peers[&0].port, s.peers[&0].iss);
        let last = s.peers[&0].irs.wrapping_add(2);
        let mut syn = s.syn(0);
        let peer = s.peers.get_mut(&0).unwrap();
        (peer.port, peer.iss) = (port, iss.wrapping_add(2).wrapping_add_signed(ahead));
        syn.stamps = Some((known.wrapping_add_signed(later), 0));
        s.send(syn);
        let (_, seg, segment) = s.out.pop_front().expect("an answer");
        if opens {
            assert_eq!(seg.flags, SYN.with(ACK), "{later} {ahead}");
            // Beyond the last number of the old conversation.
            assert!(segment.seq.wrapping_sub(last) < 1 << 31);
            s.send(s.tx(0));
            let id = s.endpoint.poll_accept().expect("a connection");
            assert_ne!(id, s.id);
        } else {
            assert_eq!(seg.flags, ACK, "{later} {ahead}");
            assert!(s.endpoint.poll_accept().is_none());
        }
    }
}

/// R66 (RFC 2018 section 8): a receiver that has discarded SACKed data gets it again after a
/// timeout.
#[test]
fn a_receiver_that_forgets() {
    let full = 1_448;
    let mut s = Script::open_server(plain(), 1);
    s.write(10 * u64::from(full));
    assert_eq!(s.lose_all(), 10);
    s.after(20);
    s.send(s.tx(0).sack(&[(1 + full, 1 + 10 * full)]));
    s.expect(want(0, PSH).seq(1));
    // The first segment arrives, and the others are discarded.
    s.after(20);
    let mut acked = 1 + full;
    s.ack(0, acked, 0);
    for _ in 0..200 {
        if acked == 1 + 10 * full {
            break;
        }
        s.until(s.endpoint.poll_timeout());
        for (_, seg, _) in core::mem::take(&mut s.out) {
            if seg.seq == acked {
                acked += seg.len;
            }
        }
        s.ack(0, acked, 0);
    }
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
    assert!(s.now.as_nanos() < 2_000_000_000, "{:?}", s.now);
}

/// S6, R66, F12: thousands of single bytes with holes between them are kept up to a limit, on a
/// subflow and at the data level. Refused bytes are sent again, and every byte is delivered once.
#[test]
fn crumbs_are_kept_up_to_a_limit() {
    let mut s = Script::open_server(multipath().with(|it| it.buffers.rcvbuf = 65_535), 2);
    for seq in (3..20_003).step_by(2) {
        s.send(s.tx(0).seq(seq).data(u64::from(seq) - 1, 1));
        s.out.clear();
    }
    for first in [2_u32, 1] {
        for seq in (first..20_003).step_by(2) {
            s.send(s.tx(0).seq(seq).data(u64::from(seq) - 1, 1));
            s.out.clear();
        }
    }
    for seq in (1..20_003).step_by(MSS as usize) {
        s.send(s.tx(0).seq(seq).data(u64::from(seq) - 1, MSS.min(20_003 - seq)));
        s.out.clear();
    }
    assert_eq!(s.endpoint.readable(s.id).unwrap(), 20_002);
    // In order on the second subflow, with holes in the data: 4,096 and one for each 256 bytes of
    // the buffer.
    for index in 0..10_000_u32 {
        let seq = s.peers[&1].rcv.max(1 + index);
        s.send(s.tx(1).seq(seq).data(20_003 + 2 * u64::from(index), 1));
    }
    let told = s.out.iter().map(|(_, seg, _)| seg.ack).max();
    assert_eq!(told, Some(1 + 4_096 + 255));
}
