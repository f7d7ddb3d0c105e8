//! The steady state allocates nothing: over two lossy paths, with measures and without, what grows
//! with the windows has grown after a few seconds, and segments are used again.

mod common;

use common::{at, limited, ms, setup, spec, with_loss};
use libtest_mimic::{Arguments, Failed, Trial};
use plait_base::{PathId, Time};
use plait_core::{Config, Detail};
use plait_sim::{Direction, Hop, Watch, run_watched};
use plait_wire::Segment;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations of the process so far, those that only move what is there included.
fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

const WARM_UP_MS: u64 = 5_000;
const SECONDS: u64 = 35;
const FEWEST_PACKETS: u64 = 10_000;

/// Counts data packets and allocations from the end of the warm-up to the last data packet.
struct Count {
    detail: Detail,
    /// Allocates once for each so many packets, to see that it is counted.
    careless: Option<u64>,
    packets: u64,
    at_start: Option<usize>,
    at_end: usize,
}

impl Watch for Count {
    fn on_segment(&mut self, now: Time, hop: Hop, _: PathId, way: Direction, segment: &Segment) {
        let data = hop == Hop::Delivered && way == Direction::Down && !segment.payload.is_empty();
        if !data || now < at(WARM_UP_MS) {
            return;
        }
        self.at_end = allocations();
        self.at_start.get_or_insert(self.at_end);
        self.packets += 1;
        if self.careless.is_some_and(|every| self.packets.is_multiple_of(every)) {
            drop(std::hint::black_box(Box::new(self.packets)));
        }
    }

    fn detail(&self) -> Detail {
        self.detail
    }
}

/// Data packets after the warm-up, and allocations among them.
fn steady(
    scheduler: &str,
    controller: &str,
    detail: Detail,
    careless: Option<u64>,
) -> (u64, usize) {
    let lossy = |name, mbit, rtt| with_loss(limited(name, mbit, ms(rtt)), 10_000_000);
    let paths = vec![lossy("wifi", 25, 25), lossy("lte", 4, 75)];
    let spec = spec(scheduler, controller, 2, Config::default());
    let mut setup = setup(paths, &spec, &format!("bulk:{SECONDS}s"));
    // The invariants put together what they compare.
    setup.check = false;
    let mut count = Count { detail, careless, packets: 0, at_start: None, at_end: 0 };
    let outcome = run_watched(&setup, &mut count);
    assert!(outcome.complete());
    (count.packets, count.at_end - count.at_start.unwrap_or(0))
}

fn expect(seen: (u64, usize), expected: usize) -> Result<(), Failed> {
    let (packets, allocations) = seen;
    if packets < FEWEST_PACKETS {
        return Err(format!("{packets} packets are too few").into());
    }
    if allocations != expected {
        return Err(format!("{allocations} allocations in {packets} packets").into());
    }
    Ok(())
}

fn main() {
    let mut trials = Vec::new();
    for scheduler in ["minrtt", "ecf", "blest", "roundrobin", "redundant"] {
        for controller in ["cubic", "lia"] {
            for (detail, name) in [(Detail::Measures, "measures"), (Detail::Nothing, "nothing")] {
                let name =
                    format!("{scheduler}_over_{controller}_telling_{name}_allocates_nothing");
                let check = move || expect(steady(scheduler, controller, detail, None), 0);
                trials.push(Trial::test(name, check));
            }
        }
    }
    trials.push(Trial::test("an_allocation_now_and_then_is_counted", || {
        let seen = steady("minrtt", "cubic", Detail::Measures, Some(1_000));
        // What the last packet allocates comes after the count.
        expect(seen, (seen.0 - 1) as usize / 1_000)
    }));
    // All allocations of the process are counted, so one at a time, and on this thread.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials).exit();
}
