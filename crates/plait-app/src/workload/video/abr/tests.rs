//! Decisions that can be computed by hand.

use super::*;
use crate::workload::video::{CHUNK, LADDER, LENGTH};

fn clip() -> Clip {
    let rates = LADDER.map(|kbps| Rate::from_bps(kbps * 1_000));
    Clip::constant(LENGTH, CHUNK, &rates).unwrap()
}

fn known(level: u64, last: usize) -> PlayerState {
    let mut known = PlayerState::new(Span::from_secs(60));
    (known.level, known.last, known.chunk) = (Span::from_secs(level), last, 20);
    known
}

fn choose(abr: Abr, known: &PlayerState) -> usize {
    abr.choose(&clip(), known)
}

#[test]
fn bba_is_a_line_from_10_to_54_seconds_with_a_step_of_stickiness() {
    // The line is 0.26 + 8.21 (level - 10) / 44 Mbit/s: 2.13 at 20 s, 4.07 at 30.4 s, 4.18 at 31 s.
    let bba = |level, last| choose(Abr::Bba, &known(level, last));
    assert_eq!([bba(0, 3), bba(10, 5)], [0, 0]);
    assert_eq!([bba(54, 0), bba(60, 3)], [5, 5]);
    // From the lowest rate: the line at 20 s is above the next rate, so the highest rate below it
    // is chosen.
    assert_eq!(bba(20, 0), 3);
    // The last rate is 1.60, the next 4.14 and the previous 1.00. The choice stays up to 30 s.
    assert_eq!([bba(20, 3), bba(30, 3), bba(31, 3)], [3, 3, 4]);
    // From 4.14 it falls to the lowest rate above the line when the line falls to 1.60 (17.2 s).
    assert_eq!([bba(18, 4), bba(17, 4)], [4, 3]);
    // From 8.47 it falls when the line falls to 4.14 (30.8 s).
    assert_eq!([bba(31, 5), bba(30, 5)], [5, 4]);
}

#[test]
fn throughput_takes_nine_tenths_of_the_harmonic_mean() {
    let mut now = known(30, 0);
    assert_eq!(choose(Abr::Throughput, &now), 0);
    // 1 and 0.5 MB in one second each: 8 and 4 Mbit/s. The harmonic mean is 5.33, of which 4.8 is
    // used.
    for bytes in [1_000_000, 500_000] {
        now.learn(bytes, Span::from_secs(1));
    }
    assert_eq!(choose(Abr::Throughput, &now), 4);
    // 4.6 Mbit/s is exactly enough for 4.14; a little less is not.
    for (bytes, rung) in [(575_000, 4), (574_900, 3)] {
        let mut now = known(30, 0);
        now.learn(bytes, Span::from_secs(1));
        assert_eq!(choose(Abr::Throughput, &now), rung);
    }
    // Only the last five count.
    for _ in 0..5 {
        now.learn(1_250_000, Span::from_secs(1));
    }
    assert_eq!(choose(Abr::Throughput, &now), 5);
}

#[test]
fn bola_climbs_with_the_buffer() {
    // Utilities 0, 0.901, 1.347, 1.817, 2.768, 3.484; V = 11 / 8.484. If nothing is buffered, the
    // scores are V (v + 5) / S. The lowest rate has the best score, 24.9 per Mbit/s.
    let rungs: Vec<usize> = (0..=59).map(|level| choose(Abr::Bola, &known(level, 0))).collect();
    assert_eq!(rungs[0], 0);
    assert!(rungs.is_sorted(), "{rungs:?}");
    assert_eq!(rungs[59], 5);
    // The choice changes from m to m + 1 when the scores are equal:
    // Q = V (5 + (v_m S_m+1 - v_m+1 S_m) / (S_m+1 - S_m)); 0 to 1: V (5 - 0.901 * 0.26 / 0.38) =
    // 5.68 chunks, 28.4 s.
    assert_eq!([rungs[28], rungs[29]], [0, 1]);
    // 4 to 5: V (5 + (2.768 * 8.47 - 3.484 * 4.14) / 4.33) = 9.19 chunks, 45.9 s.
    assert_eq!([rungs[45], rungs[46]], [4, 5]);
}

#[test]
fn mpc_looks_ahead() {
    // The throughput is always 8 Mbit/s. If nothing is buffered, a chunk of 4.14 takes 2.6 s and
    // causes a stall, and one of 0.26 takes 0.16 s.
    let with = |level, last, kbps: u64| {
        let mut now = known(level, last);
        for _ in 0..5 {
            now.learn(kbps * 125, Span::from_secs(1));
        }
        choose(Abr::Mpc, &now)
    };
    assert_eq!(choose(Abr::Mpc, &known(30, 3)), 0);
    // The throughput is enough for every rate and the buffer is large, so the top rate is chosen.
    assert_eq!(with(50, 5, 20_000), 5);
    // 4.14 never stalls at 5 Mbit/s. A chunk of 8.47 would take 3.47 s longer than it plays, which
    // uses up 10 s before the horizon.
    assert_eq!(with(10, 4, 5_000), 4);
    // With 60 s it does not stall within the horizon.
    assert_eq!(with(59, 4, 5_000), 5);
    assert_eq!(with(0, 0, 200), 0);
}

#[test]
fn the_worst_error_makes_mpc_careful() {
    let mut now = known(8, 4);
    for _ in 0..5 {
        now.learn(625_000, Span::from_secs(1));
    }
    assert_eq!((now.worst_error(), choose(Abr::Mpc, &now)), (0.0, 4));
    // One chunk at a tenth of the rate: predicted 5, actual 0.5.
    now.learn(62_500, Span::from_secs(1));
    assert!((now.worst_error() - 9.0).abs() < 1e-9);
    assert!(choose(Abr::Mpc, &now) < 4);
}

#[test]
fn one_encoding_is_always_the_choice() {
    let clip = Clip::constant(LENGTH, CHUNK, &[Rate::from_bps(1_000_000)]).unwrap();
    for abr in Abr::ALL {
        for level in [0, 10, 30, 60] {
            let mut now = known(level, 0);
            assert_eq!(abr.choose(&clip, &now), 0);
            now.learn(1_000, Span::ZERO);
            assert_eq!(abr.choose(&clip, &now), 0);
        }
    }
}
