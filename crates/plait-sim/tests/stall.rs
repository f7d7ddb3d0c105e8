//! Opportunistic retransmission and penalisation in a window stall (schedulers 3.3). The slow path
//! holds the head of a small receive window, and the fast path may not send.

use crate::common::{limited, ms, setup, spec};
use plait_base::{Span, Time};
use plait_core::{Block, Carry, Config, Event};
use plait_link::QueueLimit;
use plait_sim::{Who, run_watched};

/// Time during which the receive window blocked the sender, and the segments sent because of it.
#[derive(Default)]
struct Stalls {
    since: Option<Time>,
    total: Span,
    longest: Span,
    opportunistic: u64,
    penalties: u64,
}

impl plait_sim::Watch for Stalls {
    fn on_core(&mut self, now: Time, _: Who, event: &Event) {
        match event {
            Event::Blocked(Some(Block::ReceiveWindow)) => self.since = Some(now),
            Event::Blocked(_) => {
                if let Some(since) = self.since.take() {
                    let stall = now.since(since);
                    self.total += stall;
                    self.longest = self.longest.max(stall);
                }
            }
            Event::DataSent { carry: Carry::Opportunistic, .. } => self.opportunistic += 1,
            Event::Effect(plait_sched::Effect::Penalise { .. }) => self.penalties += 1,
            _ => {}
        }
    }
}

/// Returns the stalls of a transfer, and its duration. `slow` is the RTT of the slow path in ms.
fn transfer(scheduler: &str, slow: u64) -> (Stalls, f64) {
    let mut fast = limited("fast", 20, ms(20));
    // Keeps the fast path's window below the receive window, so that the slow path is used.
    fast.down.queue = QueueLimit::Packets(20);
    let paths = vec![fast, limited("slow", 1, ms(slow))];
    let config = Config::default().with(|it| it.buffers.rcvbuf = 128_000);
    let mut stalls = Stalls::default();
    let setup = setup(paths, &spec(scheduler, "cubic", 2, config), "download:4MB");
    let outcome = run_watched(&setup, &mut stalls);
    assert_eq!(outcome.violation, None);
    assert!(outcome.complete());
    (stalls, outcome.pairs[0][0].measures.completion_ms.expect("it completed"))
}

/// Returns the stalls of nine transfers, and their duration. A few ms decide what the slow path holds, so one
/// transfer says little.
fn transfers(scheduler: &str) -> (Stalls, f64) {
    let (mut all, mut took) = (Stalls::default(), 0.0);
    for slow in (260..=340).step_by(10) {
        let (one, ms) = transfer(scheduler, slow);
        all.total += one.total;
        all.longest = all.longest.max(one.longest);
        all.opportunistic += one.opportunistic;
        all.penalties += one.penalties;
        took += ms;
    }
    (all, took)
}

#[test]
fn rp_clears_a_stall_that_minrtt_suffers() {
    let (plain, plain_ms) = transfers("minrtt");
    let (relieved, relieved_ms) = transfers("minrtt+rp");
    let (resent, resent_ms) = transfers("minrtt+rp:mode=retransmit");
    let told = |name: &str, it: &Stalls, took: f64| {
        format!(
            "{name}: {took} ms, stalled {:?}, longest {:?}, {} resent, {} penalties",
            it.total, it.longest, it.opportunistic, it.penalties
        )
    };
    let all = [
        told("minrtt", &plain, plain_ms),
        told("minrtt+rp", &relieved, relieved_ms),
        told("minrtt+rp:mode=retransmit", &resent, resent_ms),
    ]
    .join("\n");
    assert!(plain.opportunistic == 0 && plain.penalties == 0, "{all}");
    // A stall of minrtt lasts for more than a round trip of the slow path.
    assert!(plain.longest > ms(300), "{all}");
    assert!(relieved.opportunistic > 0 && relieved.penalties > 0, "{all}");
    assert!(resent.opportunistic > 0 && resent.penalties == 0, "{all}");
    for (it, took) in [(&relieved, relieved_ms), (&resent, resent_ms)] {
        assert!(2 * it.longest.as_nanos() < plain.longest.as_nanos(), "{all}");
        assert!(4 * it.total.as_nanos() < 3 * plain.total.as_nanos() && took < plain_ms, "{all}");
    }
}
