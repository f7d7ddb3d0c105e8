//! The live runs of a race over emulated links.

use super::kernel::check_controllers;
use super::rounds::{Race, Turn, count, deadline, direction, failed, sender, unfinished};
use super::view::{Gauge, View};
use crate::commands::live::emulated::{lines, not_made};
use crate::failure::Failure;
use plait_base::Span;
use plait_lab::race::{Heat, LiveRuns};
use plait_live::emulate::{Direction, Gauges, Network, PerDirection, Reading, TimeZero};
use plait_live::transfer::{Transfer, Transferred};
use std::sync::atomic::Ordering;

/// Most tries of a run.
const TRIES: u32 = 8;

/// Makes the live runs.
pub(super) struct Track {
    /// Greatest lateness of the emulator in a run that counts.
    late: Span,
}

impl Track {
    /// Checks that this host can run the heats.
    pub(super) fn prepare(heats: &[Heat], late: Span) -> Result<Track, Failure> {
        if let Some(heat) = heats.first() {
            let lines = lines(&heat.scenario, heat.scenario.seed)?;
            drop(Network::build(&lines, 1, TimeZero::FirstSyn).map_err(|error| not_made(&error))?);
        }
        heats.iter().try_for_each(|heat| check_controllers(&heat.entrants))?;
        Ok(Track { late })
    }

    /// Makes the runs of each sender.
    pub(super) fn run(&self, race: Race<'_>) -> Result<Vec<Vec<LiveRuns>>, Failure> {
        let view = View::start(race.console);
        race.run(&view, |turn| self.one(race, turn, &view))
    }

    /// Makes one run of a sender, and repeats it if the emulator was late. Returns its result in words, or `None`
    /// if it was cancelled.
    fn one(
        &self,
        Race { cancelled, .. }: Race<'_>,
        Turn { heat, entrant, seed, live }: Turn<'_>,
        view: &View,
    ) -> Result<Option<String>, Failure> {
        let lines = lines(&heat.scenario, seed)?;
        let sender = sender(&entrant.stack);
        let transfer = Transfer {
            workload: &heat.scenario.workload,
            sender: &sender,
            rcvbuf: heat.rcvbuf(),
            deadline: deadline(heat),
        };
        let names: Vec<_> = lines.iter().map(|it| it.name.clone()).collect();
        let direction = direction(heat);
        let watch = |gauges: Gauges| view.watch(&names, move || readings(&gauges, direction));
        let mut late = Span::ZERO;
        for _ in 0..TRIES {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match transfer.run(&lines, seed, cancelled, watch) {
                Ok(Some(run)) => {
                    late = run.report.lateness.worst();
                    if late <= self.late {
                        return Ok(Some(counted(heat, run, live)));
                    }
                    live.repeated += 1;
                }
                Ok(None) if cancelled.load(Ordering::Relaxed) => return Ok(None),
                Ok(None) => {
                    let why = unfinished(heat);
                    return Ok(Some(failed(live, why)));
                }
                Err(error) => return Ok(Some(failed(live, error.to_string()))),
            }
        }
        let why = format!("the emulator was late in each of {TRIES} tries, the last time {late}");
        Ok(Some(failed(live, why)))
    }
}

/// Returns the readings of the links in one direction.
fn readings(gauges: &Gauges, direction: Direction) -> Vec<Gauge> {
    let gauge = |both: PerDirection<Reading>| {
        let Reading { left_bytes, queued_bytes } = both[direction];
        Gauge { bytes: left_bytes, queued_bytes: Some(queued_bytes) }
    };
    gauges.read().into_iter().map(gauge).collect()
}

/// Adds a run that counts, and returns its result in words.
fn counted(heat: &Heat, run: Transferred, live: &mut LiveRuns) -> String {
    let Transferred { measures, report, joins } = run;
    let delivered = report.links.iter().map(|link| link[direction(heat)].delivered_bytes).collect();
    let late_us = report.lateness.worst().as_micros();
    live.worst_late_us = live.worst_late_us.max(Some(late_us));
    let said = count(heat, (measures, delivered), joins, live);
    format!("{said}, at most {late_us} us late")
}
