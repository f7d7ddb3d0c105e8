//! The slow start thresholds that a host remembers from earlier transfers to the same peer.

use crate::compare::Cell;
use crate::run_setup::{Unseen, setup_with};
use plait_app::Role;
use plait_base::RandomStream;
use std::sync::atomic::AtomicBool;

/// Returns the slow start threshold of each path, in bytes, that the sender remembers when the run of `seed`
/// begins. It runs the [`earlier_transfers`](crate::scenario::Transport::earlier_transfers) one after the
/// other, each over a new connection with its own randomness. The list has `None` for a path without a
/// remembered threshold. Returns `None` in place of the list if `cancelled` becomes true.
pub(crate) fn thresholds(
    cell: &Cell,
    seed: u64,
    cancelled: &AtomicBool,
) -> Option<Vec<Option<u64>>> {
    let scenario = &cell.scenario;
    let mut known = vec![None; scenario.paths.len()];
    for nth in 0..scenario.transport.earlier_transfers {
        let seed = RandomStream::new(seed, &["earlier", &nth.to_string()]).bits();
        let before = known.clone();
        transfer(cell, seed, &mut known, cancelled)?;
        // Without randomness, the next transfers would change nothing either.
        if known == before && !scenario.is_random() {
            break;
        }
    }
    Some(known)
}

/// Runs one transfer to the end of its connection, because a host stores the threshold only then.
fn transfer(
    cell: &Cell,
    seed: u64,
    known: &mut [Option<u64>],
    cancelled: &AtomicBool,
) -> Option<()> {
    let mut setup = setup_with(cell, seed, known);
    setup.linger = true;
    let outcome = plait_sim::run_unless(&setup, &mut Unseen, cancelled)?;
    let Some(connection) = outcome.pairs.into_iter().flatten().next().filter(|_| outcome.over)
    else {
        return Some(());
    };
    let sender = match cell.scenario.workload.sender() {
        Role::Server => connection.server,
        Role::Client => connection.client,
    };
    for subflow in sender.iter().flat_map(|stats| &stats.subflows) {
        if let Some(entry) = known.get_mut(subflow.path.index()) {
            *entry = kept(*entry, subflow.cwnd, subflow.ssthresh);
        }
    }
    Some(())
}

/// Returns the threshold that Linux stores at the end of a subflow, by `tcp_update_metrics` of version 3.14,
/// the base of the MPTCP kernel 0.89. If the window is above the threshold, it stores the threshold, or half
/// the window if that is more. Otherwise it only raises a value that is already stored. The key is the pair of
/// addresses, so all subflows of a path share one threshold.
fn kept(before: Option<u64>, cwnd: u64, threshold: Option<u64>) -> Option<u64> {
    match threshold {
        Some(threshold) if cwnd > threshold => Some(threshold.max(cwnd / 2)),
        Some(threshold) => before.map(|before| before.max(threshold)),
        None => before.map(|before| before.max(cwnd / 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_congestion_avoidance_tells_a_threshold() {
        assert_eq!(kept(None, 30_000, Some(20_000)), Some(20_000));
        assert_eq!(kept(None, 50_000, Some(20_000)), Some(25_000), "half the window");
        assert_eq!(kept(Some(90_000), 30_000, Some(20_000)), Some(20_000), "lower as well");
    }

    #[test]
    fn any_other_window_only_raises_what_is_known() {
        for (cwnd, ssthresh) in [(20_000, Some(20_000)), (10_000, Some(20_000)), (40_000, None)] {
            assert_eq!(kept(None, cwnd, ssthresh), None);
            assert_eq!(kept(Some(15_000), cwnd, ssthresh), Some(20_000));
            assert_eq!(kept(Some(30_000), cwnd, ssthresh), Some(30_000));
        }
    }
}
