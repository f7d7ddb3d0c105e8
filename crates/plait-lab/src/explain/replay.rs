//! Repeats runs, with a ledger or with one decision changed.

use super::counterfactual::{self, Change};
use crate::compare::Cell;
use crate::simulated::setup_unless;
use plait_app::provenance::Ledger;
use plait_app::{AppEvent, Measures, Role};
use plait_base::{Dsn, PathId, Span, Time};
use plait_core::{Detail, Event, SchedulerFactory};
use plait_sim::{Direction, Hop, Outcome, Setup, Snapshot, Watch, Who};
use plait_wire::Segment;
use std::sync::atomic::{AtomicBool, Ordering};

/// Records a run in a ledger, and passes events to another watcher.
pub(super) struct Bookkeeper<'a> {
    pub(super) ledger: Ledger,
    pub(super) beside: Option<&'a mut dyn Watch>,
}

impl Watch for Bookkeeper<'_> {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        self.ledger.on_core(now, who.host, event);
        self.beside.iter_mut().for_each(|watch| watch.on_core(now, who, event));
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        self.ledger.on_app(now, who.host, event);
        self.beside.iter_mut().for_each(|watch| watch.on_app(now, who, event));
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        self.beside.iter_mut().for_each(|it| it.on_segment(now, hop, path, way, segment));
    }

    fn interval(&self) -> Option<Span> {
        self.beside.as_ref().and_then(|watch| watch.interval())
    }

    fn on_sample(&mut self, at: Time, snapshot: &Snapshot) {
        self.beside.iter_mut().for_each(|watch| watch.on_sample(at, snapshot));
    }
}

/// Records when data up to some positions is readable in order.
pub(super) struct Frontier {
    pub(super) reader: Role,
    /// Each position, and when it was reached.
    pub(super) ends: Vec<(Dsn, Option<Time>)>,
}

impl Watch for Frontier {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if let Event::DataReadable { data, .. } = event
            && who.host == self.reader
        {
            for (_, reached) in self.ends.iter_mut().filter(|(end, _)| *end <= data.end) {
                reached.get_or_insert(now);
            }
        }
    }

    fn detail(&self) -> Detail {
        Detail::Measures
    }
}

/// The result of a replay.
#[derive(Clone, PartialEq, Debug)]
pub struct Replay {
    /// True if the decision was found and could be changed.
    pub changed: bool,
    /// For each requested position, the time at which all data below it was readable in order.
    pub readable: Vec<Option<Time>>,
    /// The measures of the connection.
    pub measures: Measures,
}

/// Runs a cell with one decision of its scheduler changed (`None`: unchanged). Records when all data below
/// each of `ends` is readable in order. If `cancelled` becomes true, the run stops within
/// [`plait_sim::EVENTS_BETWEEN_LOOKS`] events and returns `None`.
#[must_use]
pub fn replay(
    cell: &Cell,
    seed: u64,
    change: Option<Change>,
    ends: &[Dsn],
    cancelled: &AtomicBool,
) -> Option<Replay> {
    let sender = cell.scenario.workload.sender();
    let mut setup = setup_unless(cell, seed, cancelled)?;
    let made = change.and_then(|change| {
        let scheduler = scheduler_of(&mut setup, sender)?;
        let (factory, made) = counterfactual::overridden(scheduler.clone(), change);
        *scheduler = factory;
        Some(made)
    });
    let reader = if sender == Role::Server { Role::Client } else { Role::Server };
    let ends = ends.iter().map(|end| (*end, None)).collect();
    let mut frontier = Frontier { reader, ends };
    let outcome = plait_sim::run_unless(&setup, &mut frontier, cancelled)?;
    Some(Replay {
        changed: made.is_some_and(|made| made.load(Ordering::Relaxed)),
        readable: frontier.ends.into_iter().map(|(_, reached)| reached).collect(),
        measures: measures(outcome),
    })
}

/// Returns the scheduler of the sending end.
pub(super) fn scheduler_of(setup: &mut Setup, sender: Role) -> Option<&mut SchedulerFactory> {
    let connection = setup.pairs.first_mut()?.connections.first_mut()?;
    Some(match sender {
        Role::Server => &mut connection.server.scheduler,
        Role::Client => &mut connection.client.scheduler,
    })
}

/// Returns the measures of the connection.
pub(super) fn measures(outcome: Outcome) -> Measures {
    let connection = outcome.pairs.into_iter().flatten().next();
    connection.map(|connection| connection.measures).unwrap_or_default()
}
