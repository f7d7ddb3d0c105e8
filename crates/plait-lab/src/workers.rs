//! Threads that share a list of tasks.

use std::num::NonZeroUsize;

/// Limit of threads; more are useless and may exceed the limit of the system.
const MAX_THREADS: usize = 256;

/// Calls `worker` on `jobs` threads, but at most `tasks`, and waits for all of them. Without `jobs` there is
/// one thread for each core, but at most `tasks`.
pub(crate) fn on_threads(jobs: Option<NonZeroUsize>, tasks: usize, worker: impl Fn() + Sync) {
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok());
    let threads = jobs.map_or(1, NonZeroUsize::get).min(tasks.max(1)).min(MAX_THREADS);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => {
            pool.broadcast(|_| worker());
        }
        // If no threads can be created, the current thread does all the work.
        Err(_) => worker(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_threads_than_tasks() {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        for (jobs, tasks, expected) in [
            (1, 9, 1),
            (3, 9, 3),
            (100_000, 2, 2),
            (100_000, 999, MAX_THREADS),
            (3, 0, 1),
            // Without a number of jobs.
            (0, 0, 1),
            (0, 1, 1),
            (0, 999, cores.min(MAX_THREADS)),
        ] {
            let calls = AtomicUsize::new(0);
            on_threads(NonZeroUsize::new(jobs), tasks, || {
                calls.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(calls.into_inner(), expected, "{jobs} jobs, {tasks} tasks");
        }
    }
}
