//! One long bulk run for profilers: `perf record target/release/examples/bulk 60`.

#[path = "../tests/common/mod.rs"]
mod common;

use plait_core::Config;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60u64);
    let paths = vec![
        common::limited("wifi", 25, common::ms(25)),
        common::limited("lte", 4, common::ms(75)),
    ];
    let spec = common::spec("minrtt", "cubic", 2, Config::default());
    let mut setup = common::setup(paths, &spec, &format!("bulk:{seconds}s"));
    setup.check = false;
    let outcome = plait_sim::run(&setup);
    let packets: u64 = outcome.links.iter().map(|(down, _)| down.delivered_packets).sum();
    println!("{packets} data packets delivered, digest {:016x}", outcome.digest.value());
}
