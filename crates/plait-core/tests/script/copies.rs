//! Schedulers that send copies of data.

use crate::harness::{MSS, Script, multipath, spec};
use crate::segment::{PSH, want};
use plait_base::{DataRange, Dsn, SubflowId};
use plait_core::ConnectionSpec;
use plait_sched::rules::{self, Task};
use plait_sched::{Decision, Needs, Outcome, Reason, Scheduler, View, What};
use std::sync::Arc;

/// Sends new data on the first subflow, and a copy of the first segment on the second one.
#[derive(Debug)]
struct OneCopy {
    reinjected_copies: bool,
    copied: bool,
}

impl Scheduler for OneCopy {
    fn needs(&self) -> Needs {
        Needs { reinjected_copies: self.reinjected_copies, ..Needs::ALL }
    }

    fn schedule(&mut self, view: &View<'_>, _: &mut Outcome) -> Decision {
        match rules::task(view) {
            Task::Place(segment) => rules::new_on(view, SubflowId(0), segment, Reason::Turn),
            Task::Settled(Decision::Idle)
                if !self.copied && view.connection.snd_nxt > Dsn::ZERO =>
            {
                self.copied = true;
                let what = What::Redundant(DataRange::between(0, u64::from(MSS)));
                let (subflow, grant) = (SubflowId(1), u64::from(MSS));
                Decision::Send { subflow, what, grant, reason: Reason::Copy }
            }
            Task::Settled(decision) => decision,
        }
    }
}

/// TCP delivers a copy. So after a timeout, a scheduler may leave the data to the subflow that carries its copy.
#[test]
fn data_with_a_copy_on_a_live_subflow_is_reinjected_only_if_the_scheduler_needs_it() {
    for (reinjected_copies, reinjected) in [(true, vec![0, 1]), (false, vec![1])] {
        let scheduler = move || -> Box<dyn Scheduler> {
            Box::new(OneCopy { reinjected_copies, copied: false })
        };
        let mut s = Script::server(ConnectionSpec {
            scheduler: Arc::new(scheduler),
            ..spec(multipath(), 2, None)
        });
        s.establish(2, 20);
        s.write(2 * u64::from(MSS));
        s.expect(want(0, PSH).len(MSS));
        s.expect(want(0, PSH).len(MSS));
        s.expect(want(1, PSH).len(MSS));
        // The peer acknowledges the copy, but no data yet.
        s.ack(1, 1 + MSS, 0);
        s.after(300);
        let again = s.out.iter().filter(|(_, seg, _)| seg.path == 1).filter_map(|it| it.1.map);
        let mut again: Vec<_> = again.map(|(dsn, ..)| dsn / u64::from(MSS)).collect();
        again.dedup();
        assert_eq!(again, reinjected, "{reinjected_copies}");
    }
}
