//! The steady state allocates nothing over two lossy paths, with and without measures. Buffers that
//! grow with the windows have grown after a few seconds. Segments are reused, including the
//! segments of duplicated packets.

mod common;

use common::{at, limited, ms, setup, spec, with_loss};
use libtest_mimic::{Arguments, Failed, Trial};
use plait_base::{Chance, PathId, Time};
use plait_core::{Config, Detail};
use plait_link::Reorder;
use plait_sim::{Direction, Hop, PathSetup, Setup, Watch, run_watched};
use plait_wire::Segment;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the allocations of the process so far, including reallocations.
fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

const WARM_UP_MS: u64 = 5_000;
const SECONDS: u64 = 35;
const FEWEST_PACKETS: u64 = 10_000;

/// Counts data packets and allocations between the end of the warm-up and the last data packet.
struct Count {
    detail: Detail,
    /// Allocates once per this many packets, to verify that allocations are counted.
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

/// Faults of paths in addition to loss.
#[derive(Clone, Copy, Default)]
struct Faults {
    duplicate: bool,
    reorder: bool,
}

/// One in a hundred.
const RARELY: u32 = 10_000_000;

/// Creates a path with loss and further faults.
fn bad(name: &str, mbit: u64, rtt: u64, faults: Faults) -> PathSetup {
    let mut path = with_loss(limited(name, mbit, ms(rtt)), RARELY);
    for link in [&mut path.down, &mut path.up] {
        if faults.duplicate {
            link.impairments.duplicate = Chance::from_ppb(2 * RARELY);
        }
        if faults.reorder {
            link.impairments.reorder = Reorder { chance: Chance::from_ppb(2 * RARELY), by: ms(20) };
        }
    }
    path
}

/// A run in which allocations are counted.
#[derive(Clone, Copy)]
struct Case {
    scheduler: &'static str,
    controller: &'static str,
    detail: Detail,
    careless: Option<u64>,
    faults: Faults,
    seed: u64,
}

const CASE: Case = Case {
    scheduler: "minrtt",
    controller: "cubic",
    detail: Detail::Measures,
    careless: None,
    faults: Faults { duplicate: false, reorder: false },
    seed: 1,
};

/// Returns the data packets after the warm-up, and the allocations during this time.
fn steady(case: Case) -> (u64, usize) {
    let Case { scheduler, controller, detail, careless, faults, seed } = case;
    let paths = vec![bad("wifi", 25, 25, faults), bad("lte", 4, 75, faults)];
    let spec = spec(scheduler, controller, 2, Config::default());
    let mut setup = Setup { seed, ..setup(paths, &spec, &format!("bulk:{SECONDS}s")) };
    // The invariants allocate their comparison data.
    setup.check = false;
    let mut count = Count { detail, careless, packets: 0, at_start: None, at_end: 0 };
    let outcome = run_watched(&setup, &mut count);
    assert!(outcome.complete());
    let links = || outcome.links.iter().flat_map(|(down, up)| [down, up]);
    // A scheduler may not use one of the paths.
    assert!(!faults.duplicate || links().map(|link| link.duplicated_packets).sum::<u64>() > 40);
    assert!(!faults.reorder || links().map(|link| link.reordered_packets).sum::<u64>() > 40);
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

const SCHEDULERS: &[&str] = &[
    "minrtt",
    "ecf",
    "blest",
    "roundrobin",
    "redundant",
    "strict",
    "rtt-threshold",
    "minrtt:tsq=off",
    "stms-c",
    "stms-a",
    "minrtt+rp",
    "minrtt+bm",
    "stms-a+bm:estimate=rate",
];
const AHEAD: [&str; 4] = ["otias", "sttf", "daps", "linux"];
const CONTROLLERS: [&str; 2] = ["cubic", "lia"];

/// Number of seeds for each kind of faults. Consecutive seeds use different schedulers, out of the
/// first five.
fn seeds() -> u64 {
    if std::env::var_os("PLAIT_SOAK").is_some() { 200 } else { 20 }
}

/// One connection in this many may reach a new peak after the warm-up, which doubles a list.
const SELDOM: usize = 50;

fn every_seed(faults: Faults) -> Result<(), Failed> {
    let mut all = Vec::new();
    for seed in 1..=seeds() {
        let scheduler = SCHEDULERS[(seed % 5) as usize];
        let controller = CONTROLLERS[(seed / 5 % 2) as usize];
        let case = Case { scheduler, controller, faults, seed, ..CASE };
        // Coupled flows behind the queue of a slow path carry less than other flows.
        let fewest = if controller == "lia" { FEWEST_PACKETS / 2 } else { FEWEST_PACKETS };
        let (packets, allocations) = steady(case);
        let text =
            format!("seed {seed}, {scheduler} over {controller}: {allocations} of {packets}");
        if packets < fewest {
            return Err(format!("{text}: too few packets").into());
        }
        all.extend((0..allocations).map(|_| text.clone()));
    }
    match all.len() > seeds() as usize / SELDOM {
        true => {
            Err(format!("{} allocations in {} connections: {all:?}", all.len(), seeds()).into())
        }
        false => Ok(()),
    }
}

/// Schedulers that assign ahead fill windows and buffers of megabytes behind a lost segment. A new
/// peak doubles a list, a few times in a connection. This limits the mean over all seeds.
const FEW: usize = 4;
/// Limit for one connection. With a buffer of 4 MB and a window of sixteen segments, a list can
/// double eight times. There are two lists: of the subflow and of the data level.
const PEAKS: usize = 16;

fn for_peaks_only(scheduler: &'static str) -> Result<(), Failed> {
    let mut all = 0;
    for seed in 1..=seeds() {
        let controller = CONTROLLERS[(seed % 2) as usize];
        let (packets, allocations) = steady(Case { scheduler, controller, seed, ..CASE });
        // Coupled flows behind the queue of a slow path carry less than other flows.
        if packets < FEWEST_PACKETS / 2 || allocations > PEAKS {
            let text = format!("seed {seed}: {allocations} allocations in {packets} packets");
            return Err(text.into());
        }
        all += allocations;
    }
    if all > FEW * seeds() as usize {
        return Err(format!("{all} allocations in {} connections", seeds()).into());
    }
    Ok(())
}

/// Its probes for bandwidth reach new peaks after the warm-up.
fn bbr_for_peaks_only(scheduler: &'static str) -> Result<(), Failed> {
    let case = Case { scheduler, controller: "bbr", detail: Detail::Nothing, ..CASE };
    let (packets, allocations) = steady(case);
    if packets < FEWEST_PACKETS || allocations > FEW {
        return Err(format!("{allocations} allocations in {packets} packets").into());
    }
    Ok(())
}

fn main() {
    let mut trials = Vec::new();
    for scheduler in AHEAD {
        let name = format!("{scheduler}_allocates_for_peaks_only");
        trials.push(Trial::test(name, move || for_peaks_only(scheduler)));
    }
    for &scheduler in SCHEDULERS {
        for controller in CONTROLLERS {
            for (detail, name) in [(Detail::Measures, "measures"), (Detail::Nothing, "nothing")] {
                let name =
                    format!("{scheduler}_over_{controller}_telling_{name}_allocates_nothing");
                let case = Case { scheduler, controller, detail, ..CASE };
                trials.push(Trial::test(name, move || expect(steady(case), 0)));
            }
        }
    }
    for scheduler in ["minrtt", "ecf", "roundrobin"] {
        let name = format!("{scheduler}_over_bbr_allocates_for_peaks_only");
        trials.push(Trial::test(name, move || bbr_for_peaks_only(scheduler)));
    }
    for (name, duplicate, reorder) in [
        ("losses", false, false),
        ("duplicates", true, false),
        ("reordering", false, true),
        ("duplicates_and_reordering", true, true),
    ] {
        let faults = Faults { duplicate, reorder };
        let name = format!("no_seed_allocates_with_{name}");
        trials.push(Trial::test(name, move || every_seed(faults)));
    }
    trials.push(Trial::test("an_allocation_now_and_then_is_counted", || {
        let seen = steady(Case { careless: Some(1_000), ..CASE });
        // Allocations after the last packet are not counted.
        expect(seen, (seen.0 - 1) as usize / 1_000)
    }));
    // The counter covers the whole process, so the tests run one at a time and on this thread.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials).exit();
}
