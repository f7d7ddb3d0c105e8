//! A scheduler for measurements with a warm-up: the subflows take strict turns.

use plait_sched::{Decision, Needs, Outcome, Reason, Scheduler, View, What, WhenFull};

/// Gives every subflow the same number of segments, whatever its window.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct StrictTurns {
    next: u8,
}

impl Scheduler for StrictTurns {
    fn schedule(&mut self, view: &View<'_>, _: &mut Outcome) -> Decision {
        let len = view.next_len();
        if len == 0 {
            return Decision::Idle;
        }
        let count = view.subflows.len();
        let Some(turn) = view.subflows.get(usize::from(self.next) % count.max(1)) else {
            return Decision::Idle;
        };
        if !turn.usable(len, false) || view.connection.snd_nxt + len > view.connection.wnd_end {
            return Decision::Wait { on: Some(turn.id), reason: Reason::TurnBusy };
        }
        self.next = ((usize::from(self.next) + 1) % count) as u8;
        let what = What::New { offset: 0 };
        Decision::Send { subflow: turn.id, what, grant: len, reason: Reason::Turn }
    }

    fn needs(&self) -> Needs {
        Needs { when_full: WhenFull::Always, ..Needs::LEAST }
    }
}
