//! slot: each segment goes where it arrives first, and a slower path takes the data that arrives with
//! it in order.

mod allowance;
mod backlog;
mod burst;
mod choice;
mod copies;
mod estimate;
mod flights;
mod loss;
mod memory;
mod params;
mod paths;
mod rate;
mod saved;
mod spare;
mod way;

use crate::rules::{self, Task};
use crate::state;
use crate::{About, Decision, Entry, Needs, Notice, Outcome, Params, Scheduler, View};
use alloc::boxed::Box;
use burst::Burst;
use estimate::{Copying, Learning, Rules};
use memory::Memory;
use params::{
    BACKLOG, BURST, CAP, COPIES, DOUBT, EAGER, FULL, GROWTH, HEDGE, HELD, HOLD, LATE, LOST,
    MAIN_CAP, ONCE, PASSED, PATIENT, PROBE, QUEUED, REPAIR, RISK, ROUND, SIDE_CAP, SPARE, WITHIN,
};
use paths::Estimates;
use plait_base::Span;

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "slot",
    aliases: &[],
    idea: "send each segment where it arrives first, and give slower paths the data that arrives with it in order",
    page: "\
For each path, slot predicts when a segment sent now would arrive:

    arrival = min_rtt / 2 + queue
    queue   = max(0, (inflight + queued + segment) / rate - min_rtt)

A path that was idle has no queue. In the first round trip after that, the queue is the data sent since then, less
the data that has left at the rate (`backlog`). If this data fills the window, the next segment leaves with the
first acknowledgement. The queue is at least the wait that the latest RTT sample shows, if the path was not
idle after that sample. A receiver may delay the acknowledgement of a lone segment by 40 ms, but not by more than
the time since the previous one. That delay does not count as a wait in a queue (`held`). Before the first rate
sample, the queue is srtt - min_rtt.

The rate is the largest of the last two intervals of max(5 * srtt, 300 ms). A sample is taken from a run of up
to 16 steps if the link set its pace: the segments left at least twice as fast as they were acknowledged, or
all of them waited in a queue. A wait that is shorter than the time since the previous acknowledgement shows no
such queue, because the queue was empty in between. A step is an acknowledgement, or all those of min(srtt / 16, 0.5 ms),
because hosts and links pass acknowledgements on in bursts. A sample of more than twice the rate counts only if
a later run gives such a sample too. The 40 ms by which a receiver delays the acknowledgement of a lone segment
do not show the pace of the link. So such an acknowledgement ends no run. If all segments of a round trip waited in a queue, their own rate replaces a
rate of more than 1.25 times that (`round`). If the controller has found the bandwidth (bbr), that is the rate. If an
acknowledgement is overdue, the arrival is later by the time beyond two RTT variations and 10 ms. It is due a round trip
after the two oldest segments on the way were sent, and 40 ms later if there is only one.

Its sender spreads bursts that no acknowledgement clocks (`--pacing bursts`). After a stall of the window,
a whole window at once would overrun the queue of a path.

The main path is the tried one that carries most: its rate, but no more than the send window in each round trip (`within`).
A path without a rate counts as tried if it has carried
the connection alone, or has delivered ten segments. An untried path is the main one only if all are untried.
slot takes the paths in the order of arrival. For a path that is not the first, it computes how much the
paths before it deliver until the segment arrives, and sends the unsent data after that. A path takes no more than
its window, and no more than its rate needs.
That is rate * (min_rtt + 2 * v) with v = min(rttvar, min_rtt / 2), of which `main_cap` percent count on the main
path and `side_cap` percent on each other path, and a few segments.

New data goes to another path only if that is worth the risk. A loss on another path delays all data
until it is repaired, less the time for which the window and the unsent data keep the main path busy.
The time that a segment saves must be at least `risk` percent of this delay, times the share of lost data.
The segment saves the difference of the arrivals, or the time of its transmission on the main path if that is
longer. If data waits for the window or the send buffer, a loss stops all of it, so only the time of the
transmission counts. Losses within a round trip are repaired together, so they count once (`once`).
Data that waits for room also waits for the slowest segment before it. So a path with a longer RTT than the main path then gets
no new data (`hold`) if the main path alone would fill that room until the segment has arrived and its
acknowledgement has returned on the main path.
An untried path without a cost carries only copies (`probe`). If paths are remembered, slot begins with the
rate of an earlier connection. Its first own sample replaces that rate.

A receiver passes the data of a subflow on in the order of the subflow. So data behind a loss arrives with the
repair, and a copy on another path may be sooner (`repair`). Data that its subflow has acknowledged, with all
data before it, needs no copy (`passed`).
A segment is late if its acknowledgement is overdue by `late` ms and four RTT variations, or if its subflow counts it as lost. slot
copies a late segment to the path where it arrives first. It waits with the copy (`patient`) if the
segment's own path still makes progress, and the unsent data within the window keeps the paths busy
until that path has repaired the loss. It also waits if the retransmission arrives sooner.
If slot cannot send new data, a copy displaces nothing. slot then copies segments that another path
would deliver sooner. If less than a segment of unsent data fits the window, it also copies those whose acknowledgement is overdue by
the RTT variation (`eager`). If no data is unsent, each path with room copies the first data that it has not
carried (`hedge`). Most data needs no such copies in advance. So each path carries at most `spare` megabytes of copies in a minute, and no more than `full`
of them while the send buffer is full, because the application then has new data. A path may exceed that while its copies have saved 2 % of the time with unacknowledged data. A copy
saves time from when all data sent before it is acknowledged, and the original should have arrived, until the original
is acknowledged. 2 ms, or the RTT variation if it is longer, and a delayed acknowledgement do not count.
If a subflow times out, data of which another live subflow carries a copy is not reinjected, because TCP delivers
the copy.

On a fast path one decision holds for all the segments that leave within 0.1 ms (`burst`), so that a host can send
them at once. It ends with the next acknowledgement.

Numbers  arrival_ms and rate_mbit of each path, ahead_segments (the data left to the paths before it).
Paper    none; the rule is plait's own.
Good at  paths with very different rates or RTTs, streams, and windows that are too small for all paths together.
Bad at   jitter of half the RTT or more, and windows below the bandwidth-delay product of the main path.
         Copies add nearly a fifth to the data of random links. A stream that fits one path is copied as a whole
         until `spare` is used up.
",
    params: &[
        CAP, MAIN_CAP, SIDE_CAP, COPIES, LATE, LOST, PATIENT, EAGER, HEDGE, QUEUED, GROWTH, DOUBT, RISK, PROBE,
        BURST, BACKLOG, ROUND, PASSED, REPAIR, HELD, SPARE, WITHIN, FULL, ONCE, HOLD,
    ],
    state: saved::NAMES,
    },
    queues_ahead: false,
    spreads_bursts: true,
    build: |params| Box::new(Slot::new(params)),
};

/// The scheduler.
#[derive(Debug)]
struct Slot {
    rules: Rules,
    memory: Memory,
}

impl Slot {
    fn new(params: &Params) -> Slot {
        let copying = Copying {
            copies: params.switch(&COPIES),
            late: Span::from_millis(params.whole(&LATE)),
            patient: params.switch(&PATIENT),
            eager: params.switch(&EAGER),
            hedge: params.switch(&HEDGE),
            repair: params.switch(&REPAIR),
            spare: params.whole(&SPARE).saturating_mul(1_000_000),
            full: params.whole(&FULL).saturating_mul(1_000_000),
        };
        let learning = Learning {
            lost: params.switch(&LOST),
            passed: params.switch(&PASSED),
            queued: params.switch(&QUEUED),
            round: params.switch(&ROUND),
            held: params.switch(&HELD),
            once: params.switch(&ONCE),
        };
        let rules = Rules {
            cap: params.switch(&CAP),
            main_percent: params.whole(&MAIN_CAP),
            side_percent: params.whole(&SIDE_CAP),
            growth: params.switch(&GROWTH),
            doubt: params.switch(&DOUBT),
            risk_percent: params.whole(&RISK),
            probe: params.switch(&PROBE),
            burst: Span::from_micros(params.whole(&BURST)),
            backlog: params.switch(&BACKLOG),
            within: params.switch(&WITHIN),
            hold: params.switch(&HOLD),
            copying,
            learning,
        };
        Slot { rules, memory: Memory::default() }
    }
}

impl Scheduler for Slot {
    fn needs(&self) -> Needs {
        Needs { data_acks: true, acks: true, reinjected_copies: false, ..Needs::LEAST }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let task = rules::task(view);
        if let Some(decision) = self.memory.burst.and_then(|it| it.next(view, task)) {
            if out.explain {
                self.memory.paths(&self.rules, view, &mut Estimates::new()).explain(out);
            }
            return decision;
        }
        if view.subflows.len() < 2
            && let Task::Settled(decision) = task
        {
            return self.memory.settled(view, decision);
        }
        let mut list = Estimates::new();
        let paths = self.memory.paths(&self.rules, view, &mut list);
        self.memory.choose(view, &paths, task, out)
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        let Slot { rules, memory } = self;
        state::forget(notice, &mut memory.lanes);
        state::forget(notice, &mut memory.flights.ways);
        memory.end_burst(view);
        match notice {
            Notice::DataAck { new, .. } => memory.on_data_acked(view, new),
            Notice::Lost { subflow, range } => {
                memory.on_lost(rules, view, subflow, range.len());
                if rules.learning.lost {
                    let repair = memory.repair(rules, view, subflow, range.len());
                    memory.flights.lost(view.now, range, subflow, repair);
                }
            }
            Notice::Acked { subflow, bytes, rtt, bandwidth, first_unacked } => {
                if rules.learning.passed {
                    memory.flights.passed_on(subflow, first_unacked.map(|it| it.dsn));
                }
                memory.expect(view, subflow, first_unacked);
                memory.on_acked(rules, view, subflow, bytes, rtt);
                if bandwidth > 0 {
                    memory.lanes[subflow.index()].rate.follow(view.now, bandwidth);
                }
            }
            Notice::Remembered { subflow, rate, min_rtt } => {
                let lane = &mut memory.lanes[subflow.index()];
                lane.rate.recall(view.now, rate);
                lane.min_rtt = min_rtt;
            }
            Notice::SubflowsChanged { began: Some(_), .. } if view.subflows.len() > 1 => {
                memory.catch_up(rules, view);
            }
            _ => {}
        }
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        saved::save(&self.memory, write);
        Burst::save(self.memory.burst.as_ref(), write);
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        Burst::load(&mut self.memory.burst, name, value)
            || saved::load(&mut self.memory, name, value).is_some()
    }
}
