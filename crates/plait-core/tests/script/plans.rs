//! Schedulers that assign data to subflows before it is sent.

use crate::harness::{Script, multipath, spec};
use crate::segment::{PSH, want};
use plait_base::{DataRange, SubflowId};
use plait_core::ConnectionSpec;
use plait_sched::{Decision, Outcome, Reason, Scheduler, View};
use std::sync::Arc;

/// Assigns the first segment to one subflow, then to the other one, and so on.
#[derive(Default, Debug)]
struct Undecided {
    segment: Option<DataRange>,
    next: u8,
}

impl Scheduler for Undecided {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        if self.segment.is_none() && view.next_len() == 0 {
            return Decision::Idle;
        }
        let first = DataRange::with_len(view.connection.snd_nxt, view.next_len());
        let segment = *self.segment.get_or_insert(first);
        self.next ^= 1;
        out.plan.push((segment, SubflowId(self.next)));
        Decision::Assign { reason: Reason::Turn }
    }
}

#[test]
fn a_plan_that_changes_without_end_is_carried_out() {
    let undecided = ConnectionSpec {
        scheduler: Arc::new(|| Box::new(Undecided::default())),
        ..spec(multipath(), 2, None)
    };
    let mut s = Script::server(undecided);
    s.establish(2, 20);
    s.write(100);
    s.expect(want(0, PSH).len(100));
    s.expect_nothing();
}
