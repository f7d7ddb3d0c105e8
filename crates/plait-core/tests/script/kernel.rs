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
