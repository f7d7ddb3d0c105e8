//! Runs the cells of plans in parallel, each cell once.

use super::extra::Collector;
use super::plan::{Plan, Planned};
use super::results::{Results, RunRecord};
use super::store::Store;
use crate::compare::{World, run_seed};
use crate::simulated::{run_outcome, simulate_unless};
use crate::workers::on_threads;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Reports the progress of plans and stops them.
pub struct Progress<'a> {
    /// Called after every run, from several threads: number of ended runs, total, and name of the experiment.
    pub told: &'a (dyn Fn(usize, usize, &str) + Sync),
    /// Once true, no further run begins, and a run in the simulator stops within
    /// [`plait_sim::EVENTS_BETWEEN_LOOKS`] events.
    pub cancelled: &'a AtomicBool,
    /// Number of parallel runs; `None` for one on each core.
    pub jobs: Option<NonZeroUsize>,
}

/// Makes the runs that the store lacks, and returns the results of each plan. The results depend neither on the
/// store nor on the number of parallel runs. After a cancellation, the runs that were not made are `None`.
///
/// # Errors
/// If the store cannot be written. It keeps the runs that were made before.
pub fn run<W: World>(
    plans: Vec<Plan>,
    world: &W,
    store: &Store,
    progress: &Progress<'_>,
) -> std::io::Result<Vec<Results>> {
    let mut jobs = Vec::new();
    let mut results: Vec<Results> = plans
        .into_iter()
        .map(|plan| {
            let runs = plan.cells.iter().map(|cell| vec![None; cell.runs as usize]).collect();
            Results { plan, runs }
        })
        .collect();
    for (at, one) in results.iter_mut().enumerate() {
        for (cell, planned) in one.plan.cells.iter().enumerate() {
            for run in 0..planned.runs {
                let seed = run_seed(planned.cell.scenario.seed, run);
                let key = store.key(planned, seed);
                match store.find(&key) {
                    Some(record) => one.runs[cell][run as usize] = Some(record),
                    None => jobs.push((at, cell, run, seed, key)),
                }
            }
        }
    }
    let made: Vec<Mutex<Option<RunRecord>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let trouble = Mutex::new(None);
    let worker = || {
        while !progress.cancelled.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((at, cell, _, seed, key)) = jobs.get(index) else { return };
            let plan = &results[*at].plan;
            let planned = &plan.cells[*cell];
            // Two experiments may share a cell.
            let made_now = || {
                let record = planned.run(world, *seed, progress.cancelled)?;
                if let Err(error) = store.keep(planned, key, &record)
                    && let Ok(mut trouble) = trouble.lock()
                {
                    *trouble = Some(error);
                }
                Some(record)
            };
            let Some(record) = store.find(key).or_else(made_now) else { return };
            if let Ok(mut slot) = made[index].lock() {
                *slot = Some(record);
            }
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            (progress.told)(count, jobs.len(), &plan.experiment.id);
        }
    };
    on_threads(progress.jobs, jobs.len(), worker);
    for ((at, cell, run, ..), slot) in jobs.iter().zip(made) {
        results[*at].runs[*cell][*run as usize] = slot.into_inner().unwrap_or(None);
    }
    match trouble.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(results),
    }
}

impl Planned {
    /// Runs the cell once: in `world`, or in the simulator with a collector if extra measures are needed. Returns
    /// `None` if `cancelled` becomes true before the end.
    pub fn run<W: World>(&self, world: &W, seed: u64, cancelled: &AtomicBool) -> Option<RunRecord> {
        let cell = &self.cell;
        let scenario = &cell.scenario;
        if !self.extra {
            return Some(RunRecord::of(&world.run_unless(cell, seed, cancelled)?, scenario));
        }
        let config = cell.connection();
        let mut collector =
            Collector::new(scenario.workload.sender(), &config, scenario.paths.len());
        let outcome = simulate_unless(cell, seed, &mut collector, cancelled)?;
        let mut record = RunRecord::of(&run_outcome(cell, seed, outcome), scenario);
        let names = scenario.paths.iter().map(|path| path.name.as_str());
        record.values.extend(collector.finish(names));
        Some(record)
    }
}
