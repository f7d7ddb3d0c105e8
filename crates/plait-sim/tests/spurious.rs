//! Late segments are not declared lost, or the sender undoes a spurious recovery.

use crate::common::{limited, ms, setup, spec};
use plait_base::{Chance, PathId, Time};
use plait_core::{Config, SubflowStats};
use plait_link::Reorder;
use plait_sim::{Direction, Hop, Watch, run_watched};
use plait_wire::Segment;

/// Counts data segments, and the duplicates that the receiver reports.
#[derive(Default)]
struct Told {
    segments: u64,
    duplicates: u64,
}

impl Watch for Told {
    fn on_segment(&mut self, _: Time, hop: Hop, _: PathId, way: Direction, segment: &Segment) {
        if hop != Hop::Delivered {
            return;
        }
        if way == Direction::Down {
            self.segments += u64::from(!segment.payload.is_empty());
            return;
        }
        // RFC 2883 section 4: a D-SACK's first block is below the acknowledgement, or inside the
        // second block.
        let after = |a: u32, b: u32| a != b && a.wrapping_sub(b) < 1 << 31;
        self.duplicates += u64::from(match segment.options.sack.as_slice() {
            [first, ..] if !after(first.1, segment.ack) => true,
            [first, second, ..] => !after(second.0, first.0) && !after(first.1, second.1),
            _ => false,
        });
    }
}

struct Run {
    stats: SubflowStats,
    told: Told,
    goodput_mbps: f64,
}

/// A download of 20 MB over 20 Mbit/s and 40 ms. One packet in twenty is held back by `by` ms.
fn reordered(by: u64, undo: bool) -> Run {
    let mut path = limited("a", 20, ms(40));
    path.down.impairments.reorder = Reorder { chance: Chance::from_ppb(50_000_000), by: ms(by) };
    let config = Config::default().with(|it| {
        it.multipath = false;
        it.recovery.undo = undo;
    });
    let setup = setup(vec![path], &spec("minrtt", "cubic", 1, config), "download:20MB");
    let mut told = Told::default();
    let outcome = run_watched(&setup, &mut told);
    assert_eq!(outcome.violation, None);
    assert!(outcome.complete());
    let connection = &outcome.pairs[0][0];
    let stats = connection.server.as_ref().expect("a server").subflows[0];
    Run { stats, told, goodput_mbps: connection.measures.goodput_mbps.unwrap_or(0.0) }
}

/// F2, R66, R69: packets are held back by up to a round trip (a bandwidth-delay product of
/// packets). Less than one segment in a hundred is retransmitted spuriously. The sender detects
/// these retransmissions and restores its window.
#[test]
fn reordering_up_to_a_round_trip_costs_little() {
    for by in [1, 5, 10, 20, 40] {
        let run = reordered(by, true);
        let (again, segments) = (run.told.duplicates, run.told.segments);
        assert!(100 * again < segments, "{by} ms: {again} of {segments}");
        assert_eq!(run.stats.carried.counters.spurious, again, "{by} ms");
        let without = reordered(by, false);
        let (with, without) = (run.goodput_mbps, without.goodput_mbps);
        assert!(with >= without, "{by} ms: {with} Mbit/s, {without} without undo");
    }
}
