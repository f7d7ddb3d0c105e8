//! Rules of stock kernels: TCP small queues, and [`KernelRules`].

use crate::harness::{MSS, Script, multipath, spec};
use crate::segment::{ACK, PSH, want};
use plait_base::SubflowId;
use plait_core::{Config, ConnectionSpec, KernelBuffers, KernelRules};
use plait_sched::{Decision, Outcome, Reason, Scheduler, Spec, View, What};
use std::sync::Arc;

/// Payload of full segments beside a DSS with 64-bit numbers.
const FULL: u32 = 1_420;

/// Grants ten segments to the subflows in turn.
#[derive(Debug, Default)]
struct Turns {
    next: u8,
}

impl Scheduler for Turns {
    fn schedule(&mut self, view: &View<'_>, _: &mut Outcome) -> Decision {
        let len = view.next_len();
        if len == 0 {
            return Decision::Idle;
        }
        let subflow = SubflowId(self.next);
        if !view.subflow(subflow).is_some_and(|it| it.usable(len, view.tsq)) {
            return Decision::Wait { on: None, reason: Reason::TurnBusy };
        }
        self.next ^= 1;
        let what = What::New { offset: 0 };
        Decision::Send { subflow, what, grant: 10 * len, reason: Reason::Turn }
    }
}

/// With small queues another subflow becomes free as time passes, and a grant of several segments
/// would be outdated. The scheduler decides for each segment.
#[test]
fn no_grant_of_several_segments_under_small_queues() {
    let turns = ConnectionSpec {
        scheduler: Arc::new(|| Box::new(Turns::default())),
        ..spec(Config { tsq: true, ..multipath() }, 2, None)
    };
    let mut s = Script::server(turns);
    s.establish(2, 20);
    s.write(6 * u64::from(MSS));
    for path in [0, 1, 0, 1, 0, 1] {
        s.expect(want(path, PSH).len(MSS));
    }
}

fn linux(kernel_rules: KernelRules) -> Script {
    let linux = Spec::parse("linux").unwrap();
    let kernel_buffers = Some(KernelBuffers::LINUX_6_18);
    let mut s = Script::server(ConnectionSpec {
        scheduler: Arc::new(move || linux.build()),
        ..spec(
            multipath().with(|it| {
                it.buffers.kernel = kernel_buffers;
                it.kernel_rules = kernel_rules;
            }),
            1,
            None,
        )
    });
    s.establish(1, 20);
    s
}

/// Linux sends the SYNs of a silent path so (`net.ipv4.tcp_syn_linear_timeouts` is 4, `tcp_syn_retries` 6). The first
/// three have MP_CAPABLE.
#[test]
fn the_first_four_timeouts_of_a_syn_are_not_doubled() {
    let times = |rules: KernelRules| -> Vec<f64> {
        let mut s = Script::client(spec(multipath().with(|it| it.kernel_rules = rules), 1, None));
        s.after(200_000);
        let plain = s.out.iter().position(|(_, seg, _)| seg.mptcp.is_none());
        assert_eq!(plain, Some(3));
        s.out.iter().map(|(at, _, _)| at.as_nanos() as f64 / 1e9).collect()
    };
    let linux = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0, 19.0, 35.0, 67.0];
    assert_eq!(times(KernelRules::LINUX_6_18), linux);
    assert_eq!(times(KernelRules::default()), [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0]);
}

/// The SYN/ACK of Linux has doubled timeouts.
#[test]
fn the_timeouts_of_a_syn_ack_are_doubled() {
    let config = multipath().with(|it| it.kernel_rules = KernelRules::LINUX_6_18);
    let mut s = Script::server(spec(config, 1, None));
    let syn = s.syn(0);
    s.send(syn);
    s.after(8_000);
    let times: Vec<f64> = s.out.iter().map(|(at, _, _)| at.as_nanos() as f64 / 1e9).collect();
    assert_eq!(times, [0.0, 1.0, 3.0, 7.0]);
}

/// `tcp_nagle_check` of Linux: with one short segment in flight, a second one waits for the
/// acknowledgement.
#[test]
fn a_second_short_segment_waits_for_the_first() {
    let mut s = linux(KernelRules { nagle: true, ..KernelRules::default() });
    s.write(u64::from(FULL) + 700);
    s.expect(want(0, PSH).len(FULL));
    s.expect(want(0, PSH).len(700));
    s.write(100);
    s.expect_nothing();
    // Full segments are sent, and the rest of the data waits.
    s.write(u64::from(FULL));
    s.expect(want(0, PSH).len(FULL));
    s.expect_nothing();
    s.after(20);
    s.ack(0, 1 + 2 * FULL + 700, u64::from(2 * FULL) + 700);
    s.expect(want(0, PSH).len(100));
}

#[test]
fn without_the_rule_short_segments_go_at_once() {
    let mut s = linux(KernelRules::default());
    for len in [700, 100, 50] {
        s.write(u64::from(len));
        s.expect(want(0, PSH).len(len));
    }
}

/// A peer that sends short DSSs has its segments predicted, unless their memory counts. The window of
/// the subflow then grows by 2,896 bytes for each segment.
#[test]
fn the_window_grows_with_segments_that_could_be_predicted() {
    let mut s = Script::open_server(
        multipath().with(|it| {
            it.buffers.kernel = Some(KernelBuffers::LINUX_6_18);
            it.buffers.rcvbuf = KernelBuffers::LINUX_6_18.most_rcvbuf;
        }),
        1,
    );
    let full = u64::from(MSS);
    for (index, window) in (0..).zip([66_984_u32, 69_880, 72_776]) {
        s.send(s.tx(0).data(index * full, MSS));
        // The window scale of 32 MiB is 10.
        s.expect(want(0, ACK).dack((index + 1) * full).win((window >> 10) as u16));
    }
}
