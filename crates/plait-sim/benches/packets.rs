//! One run of a bulk transfer, for counting instructions: `packets ROW SECONDS [MBIT]`. ROW is a
//! scheduler with both paths, or `tcp-wifi` or `tcp-lte`. The paths are those of docs/performance.md,
//! or have MBIT each. It prints the number of delivered data packets.

#[path = "../tests/common/mod.rs"]
mod common;

use plait_core::Config;
use plait_link::QueueLimit;
use plait_sim::{PathSetup, run};

fn paths(mbit: Option<u64>) -> [PathSetup; 2] {
    let (fast, slow) = mbit.map_or((25, 4), |mbit| (mbit, mbit));
    let wifi = common::with_loss(common::limited("wifi", fast, common::ms(25)), 10_000);
    let lte = common::limited("lte", slow, common::ms(75));
    [wifi, lte].map(|mut path| {
        path.down.queue = QueueLimit::Bytes(312_500);
        path
    })
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let row = args.first().map_or("minrtt", String::as_str);
    let seconds = args.get(1).map_or("5", String::as_str);
    let [wifi, lte] = paths(args.get(2).map(|mbit| mbit.parse().expect("a rate in Mbit/s")));
    let plain = || Config { multipath: false, ..Config::default() };
    let (paths, config, scheduler) = match row {
        "tcp-wifi" => (vec![wifi], plain(), "minrtt"),
        "tcp-lte" => (vec![lte], plain(), "minrtt"),
        scheduler => (vec![wifi, lte], Config::default(), scheduler),
    };
    let spec = common::spec(scheduler, "cubic", paths.len(), config);
    let mut setup = common::setup(paths, &spec, &format!("bulk:{seconds}s"));
    setup.check = false;
    let outcome = run(&setup);
    let packets: u64 = outcome.links.iter().map(|(down, _)| down.delivered_packets).sum();
    println!("{packets} packets, digest {:016x}", outcome.digest.value());
}
