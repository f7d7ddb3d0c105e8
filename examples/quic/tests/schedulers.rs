//! Downloads through the adapter: every scheduler completes them, the chosen path carries the data, and a seed
//! repeats its run.
#![allow(clippy::unwrap_used, reason = "a test")]

use quic::world::{Download, PathConfig, download};

const FAST: PathConfig = PathConfig { bps: 25_000_000, rtt_ms: 25, loss_ppb: 0 };
const SLOW: PathConfig = PathConfig { bps: 4_000_000, rtt_ms: 75, loss_ppb: 0 };
const SCHEDULERS: [&str; 5] = ["minrtt", "roundrobin", "ecf", "blest", quic::SLOT];

fn run(scheduler: Option<&str>, paths: &[PathConfig], bytes: u64, seed: u64) -> Download {
    download(scheduler, paths, bytes, seed).unwrap()
}

#[test]
fn two_equal_paths_take_less_time_than_one() {
    let even = PathConfig { bps: 10_000_000, rtt_ms: 40, loss_ppb: 0 };
    let alone = run(None, &[even], 2_000_000, 1).seconds;
    // No sender is faster than both links together.
    let bound = 2_000_000.0 * 8.0 / 20_000_000.0;
    for scheduler in SCHEDULERS.map(Some).into_iter().chain([None]) {
        let both = run(scheduler, &[even, even], 2_000_000, 1);
        assert!(both.seconds < 0.75 * alone, "{scheduler:?}: {both:?}, alone {alone}");
        assert!(both.seconds > bound, "{scheduler:?}: {both:?}");
    }
}

#[test]
fn the_path_that_the_scheduler_chooses_carries_the_data() {
    // One packet. noq takes the path that was opened first.
    let own = run(None, &[SLOW, FAST], 1_400, 1);
    assert!(own.sent[0] > 1_400 && own.sent[1] < 500, "{own:?}");
    for scheduler in ["minrtt", "ecf", "blest"] {
        let chosen = run(Some(scheduler), &[SLOW, FAST], 1_400, 1);
        assert!(chosen.sent[1] > 1_400 && chosen.sent[0] < 500, "{scheduler}: {chosen:?}");
        assert!(chosen.seconds < own.seconds, "{scheduler}: {chosen:?}, noq {own:?}");
    }
    let turns = run(Some("roundrobin"), &[SLOW, FAST], 2_800, 1);
    assert!(turns.sent.iter().all(|sent| *sent > 1_000), "{turns:?}");
}

#[test]
fn lost_data_is_repaired() {
    let lossy = |path: PathConfig| PathConfig { loss_ppb: 50_000_000, ..path };
    let sent = |scheduler: &str, paths: [PathConfig; 2]| -> u64 {
        run(Some(scheduler), &paths, 256_000, 3).sent.iter().sum()
    };
    for scheduler in SCHEDULERS {
        let (plain, repaired) =
            (sent(scheduler, [FAST, SLOW]), sent(scheduler, [lossy(FAST), lossy(SLOW)]));
        // The queues hold the data of the plain run. Of 181 packets, 9 are lost on average.
        assert!(repaired > plain + 3 * 1_452, "{scheduler}: {plain} and {repaired} bytes");
    }
}

#[test]
fn a_seed_repeats_its_run() {
    let lossy = PathConfig { loss_ppb: 1_000_000, ..FAST };
    for scheduler in [None, Some("minrtt"), Some(quic::SLOT)] {
        let results = [7, 7, 8].map(|seed| run(scheduler, &[lossy, SLOW], 2_000_000, seed));
        assert_eq!(results[0], results[1], "{scheduler:?}");
        assert_ne!(results[0], results[2], "{scheduler:?}");
    }
}

#[test]
fn an_unknown_scheduler_is_an_error() {
    assert!(download(Some("nobody"), &[FAST], 1_000, 1).is_err());
}
