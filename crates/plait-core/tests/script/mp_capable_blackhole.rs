//! SYNs with MP_CAPABLE are lost, and the endpoint remembers it.

use crate::harness::{PORT, Script, multipath, plain, spec};
use crate::segment::{ACK, RST, SYN, Seg, want};
use plait_base::Span;
use plait_core::{Config, ConnectionState, Dial, FallbackCause};
use plait_wire::Flags;

impl Script {
    fn cause(&self) -> Option<FallbackCause> {
        self.endpoint.stats(self.id).unwrap().fallback
    }

    fn dial(&mut self, config: Config) {
        self.id = self.endpoint.connect(self.now, PORT, spec(config, 1, None)).unwrap();
        self.drain();
    }

    /// Runs the SYNs of a connection whose MP_CAPABLE is lost, and its first answer.
    fn meet_silence(&mut self) {
        self.after(7_000);
        for _ in 0..3 {
            self.expect(want(0, SYN).mptcp("capable0"));
        }
        self.expect(want(0, SYN).plain());
        self.send(self.syn_ack(0).stripped());
        self.expect(want(0, ACK).plain());
    }
}

/// R19: three SYNs have MP_CAPABLE, and the fourth has none and opens plain TCP.
#[test]
fn the_fourth_syn_is_plain() {
    let mut s = Script::client(spec(multipath(), 1, None));
    s.expect(want(0, SYN).mptcp("capable0").at(0.0));
    s.after(7_500);
    s.expect(want(0, SYN).mptcp("capable0").at(1_000.0));
    s.expect(want(0, SYN).mptcp("capable0").at(3_000.0));
    s.expect(want(0, SYN).plain().at(7_000.0));
    assert_eq!(s.cause(), Some(FallbackCause::Silence));
    s.send(s.syn_ack(0).stripped());
    s.expect(want(0, ACK).plain());
    s.write(100);
    s.expect(want(0, crate::segment::PSH).len(100).plain());
}

/// R19: the number is a setting. With zero, MP_CAPABLE is always offered.
#[test]
fn how_many_is_a_setting() {
    for (plain_after, capable) in [(1, 1), (2, 2), (0, 7)] {
        let mut s = Script::client(spec(
            multipath().with(|it| it.fallback.plain_after = plain_after),
            1,
            None,
        ));
        s.after(200_000);
        let offers = s.out.iter().filter(|(_, seg, _)| seg.mptcp.is_some()).count();
        assert_eq!((offers, s.out.len()), (capable, 7), "{plain_after}");
    }
}

/// R19: the endpoint remembers the loss for one hour and then offers MP_CAPABLE again. After the
/// next loss it waits two hours. An answer with MP_CAPABLE clears it.
#[test]
fn silence_is_remembered() {
    let hour = 3_600_000;
    let mut s = Script::client(spec(multipath(), 1, None));
    s.meet_silence();
    for (wait, again) in [(hour, true), (2 * hour, false)] {
        s.after(wait - 1_000);
        s.lose_all();
        s.dial(multipath());
        s.expect(want(0, SYN).plain());
        assert_eq!(s.cause(), Some(FallbackCause::Silence));
        s.endpoint.abort(s.now, s.id).unwrap();
        s.drain();
        s.after(1_000);
        s.lose_all();
        s.dial(multipath());
        if again {
            s.meet_silence();
        }
    }
    s.expect(want(0, SYN).mptcp("capable0"));
    s.send(s.syn_ack(0));
    s.lose_all();
    assert_eq!(s.cause(), None);
    s.dial(multipath());
    s.meet_silence();
    s.after(hour);
    s.lose_all();
    s.dial(multipath());
    s.expect(want(0, SYN).mptcp("capable0"));
}

/// R19: lost SYNs of plain TCP are not remembered.
#[test]
fn plain_silence_says_nothing() {
    let mut s = Script::client(spec(plain(), 1, None));
    s.after(7_000);
    s.lose_all();
    s.send(s.syn_ack(0));
    s.lose_all();
    s.config = multipath();
    s.dial(multipath());
    s.expect(want(0, SYN).mptcp("capable0"));
}

/// With two paths, the first has 250 ms to answer. Afterwards each path has its timeout, doubled in
/// every round. Without probes all paths have their timeout. A host that dials on one path
/// retransmits its SYN there.
#[test]
fn the_first_syn_soon_gives_way_to_another_path() {
    let times = |config: Config| -> Vec<(u32, f64)> {
        let mut s = Script::client(spec(config, 2, None));
        s.after(3_300);
        let sent = s.out.iter().filter(|(_, seg, _)| seg.flags == SYN);
        sent.map(|(at, seg, _)| (seg.path, at.as_nanos() as f64 / 1e6)).collect()
    };
    let soon = [(0, 0.0), (1, 250.0), (0, 1_250.0), (1, 3_250.0)];
    assert_eq!(times(multipath()), soon);
    assert_eq!(
        times(multipath().with(|it| it.joins.probe = None)),
        [(0, 0.0), (1, 1_000.0), (0, 2_000.0)]
    );
    assert_eq!(
        times(multipath().with(|it| it.joins.dial = Dial::Primary)),
        [(0, 0.0), (0, 1_000.0), (0, 3_000.0)]
    );
}

/// R19: with one dialled path, the fourth SYN has no MP_CAPABLE, however many paths there are.
#[test]
fn the_fourth_syn_is_plain_on_the_only_path_that_is_dialled() {
    let mut s = Script::client(spec(multipath().with(|it| it.joins.dial = Dial::Primary), 2, None));
    s.after(7_500);
    for at in [0.0, 1_000.0, 3_000.0] {
        s.expect(want(0, SYN).mptcp("capable0").at(at));
    }
    s.expect(want(0, SYN).plain().at(7_000.0));
}

/// An answer after the change of path opens the connection on the first path, with its key. The
/// other path's answer is refused, and the path is joined.
#[test]
fn an_answer_after_the_path_was_changed_is_used() {
    let mut s = Script::client(spec(multipath(), 2, None));
    s.expect(want(0, SYN).mptcp("capable0"));
    s.after(300);
    let late = s.syn_ack(0);
    s.expect(want(1, SYN).mptcp("capable0").at(250.0));
    s.send(late);
    s.expect(want(0, ACK).mptcp("capable2"));
    assert_eq!(s.state(), ConnectionState::Open);
    let subflows = s.endpoint.stats(s.id).unwrap().subflows;
    assert_eq!(subflows.len(), 1);
    // The SYN was sent once, so its answer gives an RTT.
    assert_eq!(subflows[0].srtt, Some(Span::from_millis(300)));
    s.send(Seg { path: 1, ..s.syn_ack(0) });
    s.expect(want(1, Flags::RST));
    s.write(100);
    s.expect(want(0, crate::segment::PSH).len(100));
    s.ack(0, 101, 100);
    s.expect(want(1, SYN).mptcp("join"));
}

/// If the second path answers first, the first path's answer is refused.
#[test]
fn the_first_answer_wins() {
    let mut s = Script::client(spec(multipath(), 2, None));
    let late = s.syn_ack(0);
    s.after(300);
    s.lose_all();
    s.send(Seg { path: 1, ..s.syn_ack(0) });
    s.expect(want(1, ACK).mptcp("capable2"));
    s.send(late);
    s.expect(want(0, Flags::RST));
    assert_eq!(s.state(), ConnectionState::Open);
}

/// Each path repeats its own SYN, with the same port and sequence number.
#[test]
fn each_path_repeats_its_own_syn() {
    let mut s = Script::client(spec(multipath(), 2, None));
    s.after(3_300);
    let numbers = s.out.iter().map(|(_, seg, raw)| (seg.path, raw.src_port, raw.seq));
    let numbers: Vec<_> = numbers.collect();
    assert_eq!(numbers.len(), 4);
    assert_eq!(numbers[0], numbers[2]);
    assert_eq!(numbers[1], numbers[3]);
    assert_ne!(numbers[0].1, numbers[1].1);
}

/// If the first path refuses the connection late, the dial goes on elsewhere.
#[test]
fn a_late_refusal_ends_one_attempt() {
    let mut s = Script::client(spec(multipath(), 2, None));
    let refusal = Seg { flags: RST, ..s.syn_ack(0) }.stripped();
    s.after(300);
    s.lose_all();
    s.send(refusal);
    s.expect_nothing();
    s.send(Seg { path: 1, ..s.syn_ack(0) });
    s.expect(want(1, ACK).mptcp("capable2"));
}
