//! The turns of a race: each round has one run of each sender.

use super::view::View;
use crate::console::Console;
use crate::failure::Failure;
use plait_app::{Measures, Role};
use plait_base::Span;
use plait_core::{Config, ConnectionSpec, JoinTiming, Pacing};
use plait_lab::race::{Entrant, Heat, LiveRuns, RaceRun, Stack};
use plait_lab::run_seed;
use plait_live::emulate::Direction;
use plait_live::transfer::Sender;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Longest time that a run may take beyond the duration of its workload.
const LONGEST_REST: Span = Span::from_secs(300);

/// One run of a sender.
pub(super) struct Turn<'a> {
    pub(super) heat: &'a Heat,
    pub(super) entrant: &'a Entrant,
    pub(super) seed: u64,
    pub(super) live: &'a mut LiveRuns,
}

/// A race whose runs are made.
#[derive(Clone, Copy)]
pub(super) struct Race<'a> {
    pub(super) heats: &'a [Heat],
    pub(super) runs: u64,
    pub(super) cancelled: &'a AtomicBool,
    pub(super) console: Console,
}

impl Race<'_> {
    /// Makes the runs by `one`, which returns the result in words, or `None` if the race must end. In each round,
    /// every heat and every sender has one run, so that changes of the machine and of the links over time affect all
    /// alike. The order of the senders changes from round to round.
    pub(super) fn run(
        self,
        view: &View,
        mut one: impl FnMut(Turn<'_>) -> Result<Option<String>, Failure>,
    ) -> Result<Vec<Vec<LiveRuns>>, Failure> {
        let Race { heats, runs, console, .. } = self;
        let mut live = none(heats);
        'rounds: for round in 0..runs {
            for (heat, live) in heats.iter().zip(&mut live) {
                let seed = run_seed(heat.scenario.seed, u32::try_from(round).unwrap_or(u32::MAX));
                let count = heat.entrants.len();
                for turn in 0..count {
                    let at = (turn + round as usize) % count;
                    let entrant = &heat.entrants[at];
                    let place = if heat.name.is_empty() { "" } else { " " };
                    let (name, sender, round) = (&heat.name, &entrant.name, round + 1);
                    let heading = format!("{round}/{runs}{place}{name} {sender}");
                    view.head(format!("{heading}, {}", heat.scenario.workload));
                    view.stand(heat, live);
                    let turn = Turn { heat, entrant, seed, live: &mut live[at] };
                    let Some(said) = one(turn)? else { break 'rounds };
                    view.remark(console, &format!("{heading}: {said}"));
                }
            }
        }
        Ok(live)
    }
}

/// Returns no runs of the senders of the heats.
pub(super) fn none(heats: &[Heat]) -> Vec<Vec<LiveRuns>> {
    heats.iter().map(|heat| vec![LiveRuns::default(); heat.entrants.len()]).collect()
}

/// Returns the time after which an unfinished run is aborted.
pub(super) fn deadline(heat: &Heat) -> Span {
    let workload = heat.scenario.workload.duration().unwrap_or(Span::ZERO);
    heat.scenario.deadline().min(workload + LONGEST_REST)
}

/// Explains that a run has not ended in time.
pub(super) fn unfinished(heat: &Heat) -> String {
    format!("not finished after {}; take a smaller workload", deadline(heat))
}

/// Returns the direction of the data.
pub(super) fn direction(heat: &Heat) -> Direction {
    match heat.scenario.workload.sender() {
        Role::Server => Direction::Down,
        Role::Client => Direction::Up,
    }
}

/// Adds a run that counts, and returns its result in words.
pub(super) fn count(
    heat: &Heat,
    (measures, delivered): (Measures, Vec<u64>),
    joins: u64,
    live: &mut LiveRuns,
) -> String {
    live.joined += u32::from(joins > 0);
    let names = plait_lab::race::measures(&heat.scenario.workload);
    let value = |name: &&str| {
        let value = measures.value(name).map_or_else(|| "-".to_owned(), |it| format!("{it:.1}"));
        format!("{name}={value}")
    };
    let said: Vec<String> = names.iter().map(value).collect();
    live.runs.push(Some(RaceRun { measures, delivered }));
    format!("{}, {joins} joins", said.join(" "))
}

/// Adds a run that does not count.
pub(super) fn failed(live: &mut LiveRuns, why: String) -> String {
    live.runs.push(None);
    live.failures.push(why.clone());
    why
}

/// Returns the sender of a transfer.
pub(super) fn sender(stack: &Stack) -> Sender {
    match stack {
        Stack::Plait(scheduler, cc) => Sender::Plait(Box::new(settings(scheduler, cc))),
        Stack::Kernel(cc) => Sender::Kernel(cc.clone()),
        Stack::Tcp(path, cc) => Sender::Tcp(*path, cc.clone()),
    }
}

/// Returns the settings of connections of plait, as those of `plait serve` and `plait get`.
pub(super) fn settings(scheduler: &plait_sched::Spec, cc: &plait_cc::Spec) -> ConnectionSpec {
    let (scheduler, cc) = (scheduler.clone(), cc.clone());
    ConnectionSpec {
        config: Config::default().with(|it| {
            it.packets.superpacket = Config::SUPERPACKET;
            it.joins.timing = JoinTiming::Agreed;
            it.window.pacing = Pacing::asked_by(&scheduler);
        }),
        paths: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| cc.build()),
        addresses: Vec::new(),
    }
}
