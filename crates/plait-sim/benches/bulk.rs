//! Simulated MPTCP data packets per CPU second: bulk over 25 Mbit/s at 25 ms and 4 Mbit/s at 75 ms,
//! with measures. One element is one delivered data segment.

#[path = "../tests/common/mod.rs"]
mod common;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plait_core::Config;
use plait_sim::run;
use std::hint::black_box;

fn bulk(c: &mut Criterion) {
    let mut group = c.benchmark_group("bulk 25+4 Mbit/s, 20 s");
    group.sample_size(20);
    for scheduler in ["minrtt", "ecf", "blest"] {
        let paths = vec![
            common::limited("wifi", 25, common::ms(25)),
            common::limited("lte", 4, common::ms(75)),
        ];
        let spec = common::spec(scheduler, "cubic", 2, Config::default());
        let mut setup = common::setup(paths, &spec, "bulk:20s");
        setup.check = false;
        let packets: u64 = run(&setup).links.iter().map(|(down, _)| down.delivered_packets).sum();
        group.throughput(Throughput::Elements(packets));
        group.bench_function(scheduler, |b| b.iter(|| black_box(run(&setup))));
    }
    group.finish();
}

criterion_group!(benches, bulk);
criterion_main!(benches);
