//! Strict priority: the first subflow of a list that has room.

use crate::rules::{self, Task};
use crate::{About, Decision, Entry, Needs, Outcome, Reason, Scheduler, View};
use alloc::boxed::Box;

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
        name: "strict",
        aliases: &["strict-priority"],
        idea: "use the first subflow while it has room, and the next one only when it has none",
        page: "\
Subflows have a rank: their id, which follows the order of the paths. The first path is thus the
preferred one. Each segment goes to the candidate with the highest rank that has room.

    choose  the lowest id among the candidates with  inflight + queued + len <= cwnd
    wait    if none has room, or if the segment ends beyond the send window

RTTs are ignored: a preferred path stays preferred even if it is slow. Backup subflows are used only
if no other subflow is alive, whatever their rank.

Numbers  rank.ID, the position of the chosen one in the list, from 0.
Paper    draft-bonaventure-iccrg-schedulers-02, strict priority.
Good at  paths of different cost: the cheap path is filled first, the expensive one takes the rest.
Bad at   short transfers if the preferred path is the slow one. Their tail goes to any path with
         room, as with minrtt.
",
        params: &[],
        state: &[],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |_| Box::new(Strict),
};

/// The scheduler. It has no state.
#[derive(Debug)]
struct Strict;

impl Scheduler for Strict {
    fn needs(&self) -> Needs {
        Needs::LEAST
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let segment = match rules::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        let candidates = view.candidates();
        let ranked = view.subflows.iter().filter(|it| candidates.contains(it.id)).enumerate();
        let mut free = ranked.filter(|(_, it)| it.usable(segment.len(), view.tsq));
        let Some((rank, subflow)) = free.next() else { return rules::none_usable(view) };
        out.note("rank", Some(subflow.id), rank as f64);
        rules::run_on(view, subflow, segment, Reason::Priority)
    }
}
