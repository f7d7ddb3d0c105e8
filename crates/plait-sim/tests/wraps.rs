//! Numbers that wrap: sequence numbers and timestamps at 2^32, DSNs at 2^32 and 2^64.

use crate::common::{checked, ideal, limited, ms, setup, spec, with_loss};
use plait_core::{Config, StartOffsets};
use plait_sim::Setup;
use plait_wire::{WireDsn, WireSeq};

/// Transfers 2 MB each way over two lossy paths, with numbers that start at `offsets`.
fn transfer(offsets: StartOffsets, multipath: bool, checksum: bool, seed: u64) -> Setup {
    let path = |name, mbit, rtt| {
        let mut path = with_loss(limited(name, mbit, ms(rtt)), 10_000_000);
        path.down.impairments.jitter = ms(3);
        path
    };
    let paths = vec![path("a", 20, 20), path("b", 8, 60)];
    let config = Config { multipath, checksum, offsets, ..Config::default() };
    let workload = if seed.is_multiple_of(2) { "download:2MB" } else { "upload:2MB" };
    let mut setup = setup(paths, &spec("minrtt", "cubic", 2, config), workload);
    setup.seed = seed;
    setup.linger = true;
    setup
}

/// R29, R30, R65, F20: for every start of the numbers, the same segments leave at the same times,
/// every byte arrives at its place, and both ends close.
#[test]
fn a_transfer_does_not_notice_the_ends_of_its_numbers() {
    let before = |bits: u32, by: u64| (1_u128 << bits).wrapping_sub(u128::from(by)) as u64;
    let offsets = |isn: u64, idsn: u64, timestamp: u64| StartOffsets {
        isn: Some(WireSeq(isn as u32)),
        idsn: Some(WireDsn(idsn)),
        timestamp: timestamp as u32,
    };
    let across = [
        offsets(before(32, 700_000), 5, 0),
        offsets(5, before(64, 900_000), 0),
        offsets(5, before(32, 1_000_000), 0),
        offsets(5, 5, before(32, 300)),
        offsets(before(32, 1), before(64, 1), before(32, 1)),
        offsets(before(32, 0), before(64, 2), before(31, 200)),
        offsets(before(31, 300_000), before(63, 300_000), before(32, 60)),
    ];
    for seed in 1..=6 {
        for (multipath, checksum) in [(true, false), (true, true), (false, false)] {
            let plain = checked(&transfer(offsets(5, 5, 0), multipath, checksum, seed));
            assert!(plain.complete());
            for offsets in across {
                let outcome = checked(&transfer(offsets, multipath, checksum, seed));
                assert!(outcome.complete(), "{offsets:?}, seed {seed}");
                assert_eq!(outcome.ended, plain.ended, "{offsets:?}, seed {seed}");
                assert_eq!(outcome.links, plain.links, "{offsets:?}, seed {seed}");
            }
        }
    }
}

/// R29, R30: numbers of 4 bytes are extended around the expected value, also beyond 2^32 bytes.
#[test]
fn a_transfer_goes_on_beyond_four_gigabytes() {
    for workload in ["download:4400MB", "upload:4400MB"] {
        let config = Config::default().with(|it| it.packets.mtu = 65_535);
        let paths = vec![ideal("a", ms(2)), ideal("b", ms(3))];
        let mut setup = setup(paths, &spec("minrtt", "cubic", 2, config), workload);
        setup.check = false;
        assert!(checked(&setup).complete(), "{workload}");
    }
}
