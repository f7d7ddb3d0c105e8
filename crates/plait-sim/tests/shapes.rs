//! Decision shapes and effects that no listed scheduler uses yet, executed by the core: data
//! assigned ahead, data from further back in the queue, and a cap on data in flight.

use crate::common::{at, limited, ms, setup, silent, spec, with_loss};
use plait_base::SubflowId;
use plait_core::{Config, Event};
use plait_sched::{Decision, Effect, Outcome as Out, Reason, Scheduler, View, What};
use plait_sim::{Outcome, Setup, Watch, Who, run, run_watched};
use std::sync::Arc;

/// Assigns all unsent bytes at once, in runs that alternate between the subflows.
#[derive(Debug)]
struct Planner {
    run: u64,
}

impl Scheduler for Planner {
    fn schedule(&mut self, view: &View<'_>, out: &mut Out) -> Decision {
        let live = view.candidates();
        if live.is_empty() {
            return Decision::Wait { on: None, reason: Reason::NoSubflow };
        }
        if let Some(range) = view.connection.reinject {
            let free = live.iter().find(|id| {
                let subflow = view.subflow(*id);
                subflow.is_some_and(|s| {
                    s.usable(range.range.len(), false) && !range.carried.contains(*id)
                })
            });
            if let Some(subflow) = free {
                let reason = Reason::Reinjection;
                return Decision::Send { subflow, what: What::Reinject, grant: 0, reason };
            }
        }
        if view.connection.unsent == 0 {
            return Decision::Idle;
        }
        let (mut offset, mut turn) = (0, 0u32);
        while let Some(range) = view.queue.unsent_at(offset, self.run) {
            let nth = (turn % live.len()) as usize;
            out.plan.push((range, live.iter().nth(nth).unwrap_or(SubflowId(0))));
            (offset, turn) = (offset + range.len(), turn + 1);
        }
        Decision::Assign { reason: Reason::Planned }
    }
}

/// The fast subflow takes the front of the queue, and the slow one takes data a fixed gap ahead.
#[derive(Debug)]
struct Gap(u64);

impl Scheduler for Gap {
    fn schedule(&mut self, view: &View<'_>, _out: &mut Out) -> Decision {
        let len = view.next_len();
        if view.connection.reinject.is_some() || len == 0 {
            let Some(range) = view.connection.reinject else { return Decision::Idle };
            let free = view
                .subflows
                .iter()
                .find(|s| s.usable(range.range.len(), false) && !range.carried.contains(s.id));
            return match free {
                Some(s) => Decision::Send {
                    subflow: s.id,
                    what: What::Reinject,
                    grant: 0,
                    reason: Reason::Reinjection,
                },
                None => Decision::Wait { on: None, reason: Reason::UntriedBusy },
            };
        }
        for (position, subflow) in view.subflows.iter().enumerate() {
            let alone = view.subflows.iter().filter(|s| s.alive()).count() == 1;
            let offset = if position == 0 || alone { 0 } else { self.0 };
            let fits = view.queue.unsent_at(offset, len).is_some_and(|range| {
                range.end <= view.connection.wnd_end && subflow.usable(range.len(), false)
            });
            if fits {
                let what = What::New { offset };
                let reason = Reason::FastHasRoom;
                return Decision::Send { subflow: subflow.id, what, grant: len, reason };
            }
        }
        Decision::Wait { on: None, reason: Reason::AllBusy }
    }
}

/// minrtt with at most four segments in flight on each subflow.
#[derive(Debug)]
struct Capped(Box<dyn Scheduler>);

impl Scheduler for Capped {
    fn schedule(&mut self, view: &View<'_>, out: &mut Out) -> Decision {
        let decision = self.0.schedule(view, out);
        for subflow in view.subflows {
            let bytes = Some(4 * u64::from(subflow.mss));
            out.effects.push(Effect::Cap { subflow: subflow.id, bytes });
        }
        decision
    }
}

fn with(make: impl Fn() -> Box<dyn Scheduler> + Send + Sync + 'static, lossy: bool) -> Setup {
    let mut wifi = limited("wifi", 20, ms(20));
    if lossy {
        wifi = silent(with_loss(wifi, 10_000_000), at(700), at(1_500));
    }
    let paths = vec![wifi, limited("lte", 8, ms(60))];
    let mut spec = spec("minrtt", "cubic", 2, Config::default());
    spec.scheduler = Arc::new(make);
    setup(paths, &spec, "download:3MB")
}

fn assert_whole(outcome: &Outcome) {
    assert_eq!(outcome.violation, None);
    assert!(outcome.complete(), "ended at {:?}", outcome.ended);
}

#[test]
fn a_plan_ahead_of_the_windows_delivers_everything() {
    for lossy in [false, true] {
        let outcome = run(&with(|| Box::new(Planner { run: 14_280 }), lossy));
        assert_whole(&outcome);
        let share = outcome.pairs[0][0].measures.paths[1].path_share;
        // Equal turns: half of the data sent after the join, whatever the rates.
        assert!(lossy || share.is_some_and(|share| (0.3..0.55).contains(&share)), "{share:?}");
    }
}

#[test]
fn data_from_further_back_leaves_no_hole() {
    for lossy in [false, true] {
        assert_whole(&run(&with(|| Box::new(Gap(40 * 1_428)), lossy)));
    }
}

#[test]
fn a_cap_holds_the_flight_and_not_the_window() {
    struct Peak(u64);
    impl Watch for Peak {
        fn on_core(&mut self, _now: plait_base::Time, _who: Who, event: &Event) {
            if let Event::Acked { inflight, .. } = event {
                self.0 = self.0.max(*inflight);
            }
        }
    }
    let base = plait_sched::Spec::parse("minrtt").expect("minrtt");
    let setup = with(move || Box::new(Capped(base.build())), false);
    let mut peak = Peak(0);
    let outcome = run_watched(&setup, &mut peak);
    assert_whole(&outcome);
    assert!(peak.0 <= 4 * 1_428, "{} bytes in flight", peak.0);
    // Four segments per round trip of 20 and 60 ms are far below the links' rates.
    let goodput = outcome.pairs[0][0].measures.goodput_mbps.unwrap_or(0.0);
    assert!((2.0..3.2).contains(&goodput), "{goodput} Mbit/s");
}
