//! Compares the event queues by the hold model: takes the first entry and sets its source again.
//!
//! One element is one entry taken. With "timers", every fourth step also sets another source. Every
//! 64th step sets it 50 times as far ahead.

#[allow(dead_code, unused_imports, reason = "of the simulator's queue only the parts are measured")]
#[path = "../src/queue/mod.rs"]
mod queue;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use plait_base::{RandomStream, Time};
use queue::heap::Heap;
use queue::{Calendar, Few, Stamp};
use std::hint::black_box;

const STEPS: u64 = 10_000;

/// Number of spans drawn in advance, a power of two.
const DRAWN: usize = 4096;

trait Queue {
    const MOST: usize;
    fn new(sources: usize) -> Self;
    fn set(&mut self, source: usize, stamp: Stamp);
    fn pop(&mut self) -> Option<(Stamp, usize)>;
}

macro_rules! queues {
    ($($name:ident $most:expr,)*) => {$(
        impl Queue for $name {
            const MOST: usize = $most;
            fn new(sources: usize) -> Self {
                $name::new(sources)
            }
            fn set(&mut self, source: usize, stamp: Stamp) {
                self.set(source, stamp);
            }
            fn pop(&mut self) -> Option<(Stamp, usize)> {
                self.pop()
            }
        }
    )*};
}
queues!(Heap usize::MAX, Calendar usize::MAX, Few Few::MAX_SOURCES,);

/// A queue in use, with the spans for its sources drawn in advance.
struct Hold<Q> {
    queue: Q,
    /// Spans in nanoseconds.
    after: Vec<u64>,
    sources: usize,
    order: u64,
    timers: bool,
}

impl<Q: Queue> Hold<Q> {
    fn new(sources: usize, timers: bool) -> Hold<Q> {
        let mut stream = RandomStream::new(1, &["hold"]);
        let after = (0..DRAWN).map(|_| stream.below(20_000_000)).collect();
        let mut hold = Hold { queue: Q::new(sources), after, sources, order: 0, timers };
        for source in 0..sources {
            hold.set(source, 0, 1);
        }
        hold.run(100_000);
        hold
    }

    fn set(&mut self, source: usize, now: u64, factor: u64) {
        self.order += 1;
        let after = self.after[self.order as usize & (DRAWN - 1)] * factor;
        let stamp = Stamp { at: Time::from_nanos(now + after), order: self.order };
        self.queue.set(source, stamp);
    }

    fn run(&mut self, steps: u64) -> usize {
        let mut last = 0;
        for step in 0..steps {
            let Some((stamp, source)) = self.queue.pop() else { break };
            let now = stamp.at.as_nanos();
            self.set(source, now, 1);
            if self.timers && step.is_multiple_of(4) {
                let other = (source + step as usize / 4) % self.sources;
                self.set(other, now, if step.is_multiple_of(64) { 50 } else { 1 });
            }
            last = source;
        }
        last
    }
}

fn measure<Q: Queue>(c: &mut Criterion, name: &str, timers: bool) {
    let mut group = c.benchmark_group(if timers { "hold, timers" } else { "hold" });
    group.throughput(Throughput::Elements(STEPS)).sample_size(30);
    for sources in [6, 8, 12, 16, 24, 32, 48, 64, 100, 1000] {
        if sources > Q::MOST {
            continue;
        }
        let mut hold = Hold::<Q>::new(sources, timers);
        group.bench_function(BenchmarkId::new(name, sources), |b| {
            b.iter(|| black_box(hold.run(STEPS)));
        });
    }
    group.finish();
}

fn queues(c: &mut Criterion) {
    for timers in [false, true] {
        measure::<Heap>(c, "heap", timers);
        measure::<Calendar>(c, "calendar", timers);
        measure::<Few>(c, "few", timers);
    }
}

criterion_group!(benches, queues);
criterion_main!(benches);
