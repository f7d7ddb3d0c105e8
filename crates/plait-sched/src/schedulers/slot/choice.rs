//! Choices: the path for new data, or a copy.

use super::memory::Memory;
use super::paths::Paths;
use crate::rules::{self, Task, segment_len};
use crate::{Decision, Outcome, Reason, View, What};
use plait_base::{DataRange, SubflowId};

/// New data for a path.
struct Placed {
    subflow: SubflowId,
    /// Bytes of the unsent data before it.
    offset: u64,
    grant: u64,
}

impl Memory {
    /// Chooses the path for the task, or a copy.
    #[inline(always)]
    pub(super) fn choose(
        &mut self,
        view: &View<'_>,
        paths: &Paths<'_, '_>,
        task: Task,
        out: &mut Outcome,
    ) -> Decision {
        if out.explain {
            paths.explain(out);
        }
        if paths.rules.copying.copies
            && view.connection.reinject.is_none()
            && let Some(decision) = self.late(view, paths)
        {
            return decision;
        }
        let segment = match task {
            Task::Settled(Decision::Idle) if paths.rules.copying.hedge => {
                return self.hedge(view, paths).unwrap_or(Decision::Idle);
            }
            Task::Settled(decision) => return self.settled(view, decision),
            Task::Place(segment) => segment,
        };
        if let Some(Placed { subflow, offset, grant }) = self.place(view, paths, segment, out) {
            let reason = if offset == 0 { Reason::EarliestArrival } else { Reason::AheadByGap };
            return Decision::Send { subflow, what: What::New { offset }, grant, reason };
        }
        let copy = if paths.rules.copying.copies { self.stalled(view, paths) } else { None };
        let copy = copy.or_else(|| self.probe(view, paths));
        copy.unwrap_or_else(|| match segment.end > view.connection.wnd_end && !is_full(view) {
            true => Decision::Wait { on: None, reason: Reason::SendWindow },
            false => rules::none_usable(view),
        })
    }

    /// Sends the first new data that a path can take in order. Returns `None` if there is none.
    #[inline(always)]
    fn place(
        &mut self,
        view: &View<'_>,
        paths: &Paths<'_, '_>,
        segment: DataRange,
        out: &mut Outcome,
    ) -> Option<Placed> {
        let (mss, unsent) = (segment_len(view), view.connection.unsent);
        for at in 0..paths.len() {
            let Some((path, ahead)) = paths.taking(at, view, segment.len()) else { continue };
            let offset = if ahead < mss { 0 } else { ahead / mss * mss };
            let range = match offset {
                0 => Some(segment),
                _ if offset >= unsent => None,
                _ => view.queue.unsent_at(offset, mss.min(unsent - offset)),
            };
            let Some(range) = range.filter(|it| it.end <= view.connection.wnd_end) else {
                continue;
            };
            let (subflow, len) = (path.view.id, range.len());
            let arrives = self.note(view, path, len);
            self.flights.sent(range, (subflow, self.lanes[subflow.index()].spare.sent), arrives);
            if out.explain {
                out.note("ahead_segments", Some(subflow), (offset / mss) as f64);
            }
            let most = if offset == 0 && len == mss { paths.burst(path) } else { None };
            let burst = most.and_then(|most| self.begin_burst(view, path, most));
            return Some(Placed { subflow, offset, grant: burst.unwrap_or(len) });
        }
        None
    }
}

/// Returns true if no subflow can take the next segment. None can take a copy then.
fn is_full(view: &View<'_>) -> bool {
    !view.subflows.iter().any(|it| it.usable(view.next_len(), view.tsq))
}
