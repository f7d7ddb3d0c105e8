//! The path memories that an earlier connection has left (`--path-memory`).

use crate::compare::Cell;
use crate::run_setup::{Unseen, setup_with};
use crate::scenario::MemoryUse;
use plait_base::RandomStream;
use plait_sim::{PairMemory, Setup};
use std::sync::atomic::AtomicBool;

/// Gives the hosts of a run the memories of an earlier connection, if its scenario has them. The earlier
/// connection has the same links, workload and scheduler, but randomness of its own. It begins with empty
/// memories and runs until it has closed, or to the end of the workload's time. Returns `None` if `cancelled`
/// becomes true.
pub(crate) fn with_memory(
    cell: &Cell,
    seed: u64,
    mut setup: Setup,
    cancelled: &AtomicBool,
) -> Option<Setup> {
    if cell.scenario.transport.path_memory != MemoryUse::Off
        && let Some(pair) = setup.pairs.first_mut()
    {
        pair.memory = Some(left_by_earlier(cell, seed, cancelled)?);
    }
    Some(setup)
}

/// Runs the earlier connection.
fn left_by_earlier(cell: &Cell, seed: u64, cancelled: &AtomicBool) -> Option<PairMemory> {
    let seed = RandomStream::new(seed, &["path memory"]).bits();
    let mut setup = setup_with(cell, seed, &[]);
    setup.linger = true;
    for pair in setup.pairs.iter_mut().take(1) {
        let ssthresh = cell.scenario.transport.path_memory == MemoryUse::Ssthresh;
        pair.memory = Some(PairMemory { ssthresh, ..PairMemory::default() });
    }
    let outcome = plait_sim::run_unless(&setup, &mut Unseen, cancelled)?;
    Some(outcome.memories.into_iter().flatten().next().unwrap_or_default())
}
