//! Loss recovery of a sender: RACK, tail loss probes, timeouts, the recovery window.

use crate::harness::{MSS, Script, multipath, plain};
use crate::segment::{ACK, PSH, SYN, Seg, want};
use plait_base::{Span, Time};
use plait_core::Config;

const FULL: u32 = 1_448;

/// Returns a plain TCP server of 20 ms with `segments` in flight.
fn sending(segments: u64) -> Script {
    let mut s = Script::open_server(plain(), 1);
    s.write(segments * u64::from(FULL));
    for index in 0..segments as u32 {
        s.expect(want(0, PSH).seq(1 + index * FULL).len(FULL));
    }
    s.expect_nothing();
    s
}

/// Settings that always retransmit a segment whole.
fn whole() -> Config {
    multipath().with(|it| it.recovery.black_holes = false)
}

fn seq(segment: u32) -> u32 {
    1 + segment * FULL
}

fn sack(s: &mut Script, blocks: &[(u32, u32)]) {
    let blocks: Vec<(u32, u32)> = blocks.iter().map(|(l, r)| (seq(*l), seq(*r))).collect();
    s.send(s.tx(0).sack(&blocks));
}

fn cwnd(s: &Script) -> u64 {
    s.endpoint.stats(s.id).unwrap().subflows[0].cwnd
}

fn rto(s: &Script) -> Span {
    s.endpoint.stats(s.id).unwrap().subflows[0].rto
}

/// R69: without reordering so far, three segments above a hole make it a loss at once. One or two
/// do not.
#[test]
fn three_segments_above_a_hole() {
    let mut s = sending(10);
    s.after(20);
    sack(&mut s, &[(1, 2)]);
    sack(&mut s, &[(1, 3)]);
    s.expect_nothing();
    sack(&mut s, &[(1, 4)]);
    s.expect(want(0, PSH).seq(seq(0)).len(FULL).at(40.0));
    s.expect_nothing();
}

/// R69: with fewer segments above it, a hole is lost a quarter of the least RTT after its turn (RFC
/// 8985 section 6.2).
#[test]
fn a_hole_below_one_segment() {
    let mut s = sending(10);
    s.after(20);
    sack(&mut s, &[(1, 2)]);
    s.after(4);
    s.expect_nothing();
    s.after(1);
    s.expect(want(0, PSH).seq(seq(0)).at(45.0));
    s.expect_nothing();
}

/// R69, F2: a slightly late segment is not retransmitted. Afterwards three segments above a hole do
/// not make it a loss.
#[test]
fn reordering_is_tolerated() {
    let mut s = sending(10);
    s.after(20);
    sack(&mut s, &[(1, 3)]);
    s.after(4);
    s.ack(0, seq(3), 0);
    s.after(1);
    s.expect_nothing();
    sack(&mut s, &[(4, 8)]);
    s.expect_nothing();
    s.ack(0, seq(8), 0);
    assert!(cwnd(&s) >= 10 * u64::from(FULL));
    s.after(20);
    s.expect_nothing();
}

/// R69: a lost retransmission is detected by segments sent after it.
#[test]
fn a_retransmission_that_is_lost_too() {
    let mut s = sending(10);
    s.write(20 * u64::from(FULL));
    s.after(20);
    sack(&mut s, &[(1, 4)]);
    s.expect(want(0, PSH).seq(seq(0)));
    sack(&mut s, &[(1, 10)]);
    s.expect(want(0, PSH).seq(seq(10)));
    s.lose_all();
    s.after(20);
    sack(&mut s, &[(1, 11)]);
    s.after(6);
    s.expect(want(0, PSH).seq(seq(0)));
}

/// R69, RFC 6937: SACKed data permits as many bytes as bring the flight to ssthresh.
#[test]
fn proportional_rate_reduction() {
    let mut s = sending(10);
    s.write(20 * u64::from(FULL));
    s.lose_all();
    s.after(20);
    let mut sent = Vec::new();
    for top in 2..=10 {
        sack(&mut s, &[(1, top)]);
        sent.push(s.lose_all());
    }
    // Limited transmit sends two (RFC 3042). The third SACK starts recovery with the
    // retransmission: 12 segments in flight, ssthresh 5, 9 in the network. No segment is sent until
    // the flight is below 5, then one for each.
    assert_eq!(sent, [1, 1, 1, 0, 0, 0, 0, 1, 1]);
    s.ack(0, seq(10), 0);
    s.lose_all();
    let stats = s.endpoint.stats(s.id).unwrap().subflows[0];
    assert_eq!(stats.ssthresh, Some(5 * u64::from(FULL)));
    assert!(stats.cwnd <= 5 * u64::from(FULL) + u64::from(FULL), "{}", stats.cwnd);
}

/// R69, RFC 8985 section 7: without an acknowledgement, the last segment is sent again after two
/// RTTs, once. Then the timeout follows.
#[test]
fn one_tail_probe() {
    let mut s = sending(3);
    s.after(40);
    s.expect(want(0, PSH).seq(seq(2)).at(60.0));
    s.after(170);
    s.expect_nothing();
    s.after(50);
    s.expect(want(0, PSH).seq(seq(0)).at(240.0));
}

/// R69: with one segment in flight, a probe leaves time for a delayed acknowledgement. It would
/// come after 240 ms, later than the timeout of 220 ms, so it is not sent.
#[test]
fn no_probe_later_than_the_timeout() {
    let mut s = sending(1);
    s.after(219);
    s.expect_nothing();
    s.after(1);
    s.expect(want(0, PSH).seq(seq(0)).at(240.0));
}

/// R69: the acknowledgement of a probe reveals the losses of the tail.
#[test]
fn a_tail_probe_reveals_the_loss() {
    let mut s = sending(4);
    s.after(20);
    s.ack(0, seq(1), 0);
    s.after(40);
    s.expect(want(0, PSH).seq(seq(3)).at(80.0));
    s.after(20);
    sack(&mut s, &[(3, 4)]);
    s.after(5);
    s.expect(want(0, PSH).seq(seq(1)));
    assert!(s.now.as_nanos() <= 105_000_000);
}

/// Returns a server that sent four segments and a probe for the last. Two are acknowledged.
fn probed() -> Script {
    let mut s = sending(4);
    s.after(20);
    s.ack(0, seq(2), 0);
    s.after(40);
    s.expect(want(0, PSH).seq(seq(3)).at(80.0));
    s.after(20);
    s
}

/// R69, RFC 8985 section 7.4: if the probe was the only copy to arrive, it has repaired a loss. The
/// window is halved once new data is acknowledged without a report of a duplicate.
#[test]
fn a_loss_that_a_probe_repaired_reduces_the_window() {
    let mut s = probed();
    let before = cwnd(&s);
    s.ack(0, seq(4), 0);
    assert!(cwnd(&s) >= before, "it may have been late only");
    s.write(2 * u64::from(FULL));
    s.expect(want(0, PSH).seq(seq(4)).len(FULL));
    s.expect(want(0, PSH).seq(seq(5)).len(FULL));
    let before = cwnd(&s);
    s.after(20);
    s.ack(0, seq(6), 0);
    let stats = s.endpoint.stats(s.id).unwrap().subflows[0];
    assert_eq!(stats.ssthresh, Some(before / 2));
    assert_eq!(stats.cwnd, before / 2);
    s.expect_nothing();
    // The window is reduced only once.
    s.write(u64::from(FULL));
    s.expect(want(0, PSH).seq(seq(6)).len(FULL));
    s.after(20);
    s.ack(0, seq(7), 0);
    assert!(cwnd(&s) >= before / 2);
}

/// R69, RFC 8985 section 7.4: a probe has repaired nothing if the original arrived as well. The
/// duplicate is reported, or acknowledged separately.
#[test]
fn a_probe_that_was_not_needed_reduces_nothing() {
    for told in [true, false] {
        let mut s = probed();
        s.ack(0, seq(4), 0);
        if told {
            let report = [(seq(3), seq(4))];
            s.send(s.tx(0).sack(&report));
        } else {
            s.ack(0, seq(4), 0);
        }
        s.write(u64::from(FULL));
        s.expect(want(0, PSH).seq(seq(4)).len(FULL));
        let before = cwnd(&s);
        s.after(20);
        s.ack(0, seq(5), 0);
        let stats = s.endpoint.stats(s.id).unwrap().subflows[0];
        assert_eq!(stats.ssthresh, None, "{told}");
        assert!(stats.cwnd >= before, "{told}");
    }
}

/// R69, RFC 8985 section 7.3: no further probe is sent until the outcome of the last one is known.
#[test]
fn a_probe_waits_until_the_last_one_is_explained() {
    let mut s = probed();
    s.ack(0, seq(4), 0);
    s.write(4 * u64::from(FULL));
    for index in 4..8 {
        s.expect(want(0, PSH).seq(seq(index)).len(FULL));
    }
    // Another probe would be sent 40 ms later.
    let timeout = rto(&s).as_millis_f64() as u64;
    assert!(timeout > 4 * 40);
    s.after(timeout - 1);
    s.expect_nothing();
    s.after(2);
    s.expect(want(0, PSH).seq(seq(4)).len(FULL));
}

/// R67, R68: the timeout doubles with each expiry and sends one segment. An acknowledgement of new
/// data resets it.
#[test]
fn timeouts_back_off() {
    // Retransmission in pieces is tested in `pmtu_black_hole.rs`.
    let mut s = Script::open_server(plain().with(|it| it.recovery.black_holes = false), 1);
    s.write(u64::from(FULL));
    s.expect(want(0, PSH).seq(1).len(FULL));
    assert_eq!(rto(&s), Span::from_millis(220));
    for at in [240.0, 680.0, 1_560.0, 3_320.0] {
        s.until(s.endpoint.poll_timeout());
        s.expect(want(0, PSH).seq(seq(0)).at(at));
        s.expect_nothing();
    }
    assert_eq!(cwnd(&s), u64::from(FULL));
    assert_eq!(rto(&s), Span::from_millis(220 * 16));
    s.after(20);
    s.ack(0, seq(1), 0);
    let stats = s.endpoint.stats(s.id).unwrap().subflows[0];
    assert_eq!(stats.srtt, Some(Span::from_millis(20)));
    assert_eq!(stats.rto, Span::from_millis(220));
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
    s.after(10_000);
    s.expect_nothing();
}

/// R67 (RFC 7323 section 4): the timestamp gives the RTT of a retransmission. Without timestamps
/// there is no sample (Karn's rule), and SRTT stays. It also stays if the echoed time is in the
/// future.
#[test]
fn a_timestamp_tells_the_rtt_of_a_retransmission() {
    let bare = Script::plain_server(|syn| Seg { stamps: None, ..syn });
    let stamped = || Script::open_server(plain(), 1);
    let sampled = (7 * 20_000 + 100_000) / 8;
    for (mut s, ahead_ms, after_us) in
        [(bare, 0, 20_000), (stamped(), 0, sampled), (stamped(), 1_000, 20_000)]
    {
        assert_eq!(s.endpoint.stats(s.id).unwrap().subflows[0].srtt, Some(Span::from_millis(20)));
        s.write(u64::from(FULL));
        s.lose_all();
        s.until(s.endpoint.poll_timeout());
        s.expect(want(0, PSH));
        s.after(100);
        s.peers.get_mut(&0).unwrap().heard += ahead_ms;
        s.ack(0, seq(1), 0);
        let srtt = s.endpoint.stats(s.id).unwrap().subflows[0].srtt;
        assert_eq!(srtt, Some(Span::from_micros(after_us)));
    }
}

/// R66, R67: without timestamps, there is no RTT sample if all acknowledged segments were
/// retransmitted, including the SYN (Karn's rule). Slow start continues nevertheless.
#[test]
fn a_window_grows_without_an_rtt() {
    let mut s = Script::server(crate::harness::spec(plain(), 1, None));
    let syn = Seg { stamps: None, ..s.syn(0) };
    s.send(syn.stripped());
    for _ in 0..2 {
        s.expect(want(0, SYN.with(ACK)));
        s.until(s.endpoint.poll_timeout());
    }
    s.send(s.tx(0));
    s.id = s.endpoint.poll_accept().unwrap();
    s.lose_all();
    s.write(10 * u64::from(FULL));
    assert_eq!(s.lose_all(), 10);
    s.until(s.endpoint.poll_timeout());
    s.expect(want(0, PSH).seq(seq(0)).len(FULL));
    s.expect_nothing();
    // The window grows by one segment per acknowledgement (RFC 3465 section 2.3).
    for (acked, more) in [(1, 2), (3, 3)] {
        s.after(20);
        s.ack(0, seq(acked), 0);
        for index in acked..acked + more {
            s.expect(want(0, PSH).seq(seq(index)).len(FULL));
        }
        s.expect_nothing();
    }
    assert_eq!(s.endpoint.stats(s.id).unwrap().subflows[0].srtt, None);
}

/// R67 (RFC 6298 section 3): the timeout stays doubled until the next sample. A segment that was
/// sent once and arrived out of order gives one.
#[test]
fn a_selective_acknowledgement_ends_the_backoff() {
    let mut s = Script::open_server(plain().with(|it| it.recovery.black_holes = false), 1);
    s.write(3 * u64::from(FULL));
    s.lose_all();
    for _ in 0..5 {
        s.until(s.endpoint.poll_timeout());
        s.lose_all();
    }
    assert_eq!(rto(&s), Span::from_millis(220 * 16));
    s.after(20);
    sack(&mut s, &[(1, 2)]);
    // The sample is the whole time since the start. RTTVAR is a quarter of it, and the timeout is
    // the sample plus an eighth.
    let sample = s.now.since(Time::ZERO).minus(Span::from_millis(20));
    assert!(rto(&s) < sample.times(5).over(4), "{} after {sample}", rto(&s));
}

/// R67 (RFC 6298 section 5.3): an acknowledgement that moves the left edge restarts the timer. A
/// duplicate one does not.
#[test]
fn the_timer_starts_afresh() {
    let mut s = sending(2);
    s.after(100);
    s.lose_all();
    s.ack(0, seq(1), 0);
    let rto = rto(&s);
    s.after(50);
    s.send(s.tx(0));
    s.lose_all();
    s.until(s.now + rto.minus(Span::from_millis(51)));
    s.lose_all();
    s.after(1);
    s.expect(want(0, PSH).seq(seq(1)));
}

/// R66, R68: after a timeout, slow start retransmits lost segments in order, and no delivered ones.
#[test]
fn go_back_over_what_was_lost() {
    let mut s = sending(10);
    s.after(20);
    s.send(s.tx(0).sack(&[(seq(5), seq(6))]));
    s.lose_all();
    s.after(400);
    let (_, first, _) = s.out.pop_front().unwrap();
    assert_eq!(first.seq, seq(0));
    s.lose_all();
    s.after(20);
    let mut ack = s.tx(0).ack(seq(1)).sack(&[(seq(5), seq(6))]);
    ack.stamps = None;
    s.send(ack);
    let sent: Vec<u32> = s.out.iter().map(|(_, seg, _)| (seg.seq - 1) / FULL).collect();
    assert_eq!(sent[..2], [1, 2]);
    s.lose_all();
    s.ack(0, seq(5), 0);
    let sent: Vec<u32> = s.out.iter().map(|(_, seg, _)| (seg.seq - 1) / FULL).collect();
    assert!(!sent.contains(&5) && sent[..2] == [6, 7], "{sent:?}");
}

/// R40: after a timeout the other subflow sends the data. The first one still retransmits its own
/// mapping.
#[test]
fn reinjection_beside_the_retransmission() {
    let mut s = Script::open_server(whole(), 2);
    s.write(2 * u64::from(MSS));
    s.expect(want(0, PSH).seq(1).map(0, 1, MSS as u16));
    s.expect(want(0, PSH).map(u64::from(MSS), 1 + MSS, MSS as u16));
    s.after(215);
    s.lose_all();
    s.after(200);
    let of = |s: &Script, path: u32| -> Vec<(u64, u32, u16)> {
        s.out
            .iter()
            .filter(|(_, seg, _)| seg.path == path)
            .filter_map(|(_, seg, _)| seg.map)
            .collect()
    };
    let full = u64::from(MSS);
    assert_eq!(of(&s, 1)[..2], [(0, 1, MSS as u16), (full, 1 + MSS, MSS as u16)]);
    assert_eq!(of(&s, 0)[0], (0, 1, MSS as u16));
    s.lose_all();
    s.ack(1, 1 + 2 * MSS, 2 * full);
    assert_eq!(s.endpoint.unacked(s.id).unwrap(), 0);
    // All data has arrived, but not all sequence numbers of the first subflow.
    s.after(2_000);
    assert!(of(&s, 0).contains(&(0, 1, MSS as u16)));
    s.lose_all();
    s.ack(0, 1 + 2 * MSS, 2 * full);
    s.after(60_000);
    s.expect_nothing();
}

/// R40: a retransmission has its original bytes, even if the other subflow has delivered the data
/// meanwhile.
#[test]
fn a_retransmission_has_its_own_bytes() {
    let mut s = Script::open_server(whole(), 2);
    let (first, second) = ([b'x'; 600], [b'y'; 600]);
    s.endpoint.write_bytes(s.now, s.id, &first).unwrap();
    s.endpoint.write_bytes(s.now, s.id, &second).unwrap();
    s.drain();
    let sent = s.expect(want(0, PSH).map(0, 1, 1_200));
    let original = sent.bytes.unwrap();
    s.after(230);
    s.lose_all();
    // The peer has received the first half on the other subflow.
    s.data_rcv = 600;
    s.send(s.tx(1).ack(1));
    s.after(2_000);
    let again = s.out.iter().find(|(_, seg, _)| seg.path == 0 && seg.len == 1_200).unwrap();
    let bytes = again.1.bytes.clone().expect("real bytes");
    assert_eq!(bytes[600..], original[600..]);
}

/// R67, Config: the timeout of each mode after one sample of 20 ms.
#[test]
fn timeout_modes() {
    use plait_core::RtoMode;
    for (mode, millis) in [(RtoMode::Linux, 220), (RtoMode::Rfc, 1_000), (RtoMode::Rfc200, 200)] {
        let s = Script::open_server(plain().with(|it| it.recovery.rto = mode), 1);
        assert_eq!(rto(&s), Span::from_millis(millis), "{mode:?}");
    }
}
