//! Threads that share a list of tasks.

use std::num::NonZeroUsize;

/// More threads than this are of no use and may be more than the system gives.
const MOST: usize = 256;

/// Calls `worker` on `jobs` threads (as many as there are cores where that is not said), though not
/// on more than there are `tasks`, and waits for all of them.
pub(crate) fn on_threads(jobs: Option<NonZeroUsize>, tasks: usize, worker: impl Fn() + Sync) {
    let threads = jobs.map_or(0, |jobs| jobs.get().min(tasks.max(1)).min(MOST));
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => {
            pool.broadcast(|_| worker());
        }
        // No threads to be had: this one will do.
        Err(_) => worker(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_threads_than_tasks() {
        for (jobs, tasks, expected) in [(1, 9, 1), (3, 9, 3), (100_000, 2, 2), (100_000, 999, MOST)]
        {
            let calls = AtomicUsize::new(0);
            on_threads(NonZeroUsize::new(jobs), tasks, || {
                calls.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(calls.into_inner(), expected, "{jobs} jobs, {tasks} tasks");
        }
    }
}
