//! Arrival of the first data on each subflow, as in the table of the scheduler notes (section 5).
//! Paths have neither rate nor queue, the server sends, and every subflow is used as soon as
//! possible.

use crate::common::{ideal, ms, setup, spec, textbook};
use plait_base::{PathId, ServerAddress, Span, Time};
use plait_core::JoinTiming;
use plait_sim::{Direction, Hop, Watch, run_watched};
use plait_wire::Segment;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

/// A client's address, given by its path, and a server's address.
type Pair = (PathId, ServerAddress);

const C1: PathId = PathId(0);
const C2: PathId = PathId(1);
const S1: ServerAddress = ServerAddress(0);
const S2: ServerAddress = ServerAddress(1);

/// First arrival of data at the client, by pair of addresses.
#[derive(Default)]
struct FirstData(BTreeMap<Pair, Time>);

impl Watch for FirstData {
    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        if hop == Hop::Delivered && way == Direction::Down && !segment.payload.is_empty() {
            self.0.entry((path, segment.server)).or_insert(now);
        }
    }
}

/// The set-up, in the words of the table.
#[derive(Clone, Copy)]
enum Case {
    Two(JoinTiming),
    Mesh4,
}

fn first_data((r1, r2): (u64, u64), case: Case) -> BTreeMap<Pair, Span> {
    let paths = vec![ideal("one", ms(r1)), ideal("two", ms(r2))];
    // Constant windows keep the earlier subflows full, so a new subflow is used at once.
    let (join, addresses) = match case {
        Case::Two(join) => (join, vec![]),
        Case::Mesh4 => (JoinTiming::AfterData, vec![IpAddr::from([10, 0, 0, 2])]),
    };
    let config = textbook().with(|it| it.joins.timing = join);
    let mut spec = spec("minrtt", "fixed:cwnd=10seg", 2, config);
    spec.addresses = addresses;
    let mut setup = setup(paths, &spec, "bulk:3s");
    setup.until = Time::ZERO + ms(4 * (r1 + r2));
    let mut first = FirstData::default();
    let outcome = run_watched(&setup, &mut first);
    assert_eq!(outcome.violation, None);
    let server = outcome.pairs[0][0].server.as_ref().expect("a server");
    assert_eq!(server.subflows.len(), if matches!(case, Case::Mesh4) { 4 } else { 2 });
    first.0.into_iter().map(|(pair, at)| (pair, at.since(Time::ZERO))).collect()
}

const RTTS: [(u64, u64); 3] = [(30, 80), (30, 60), (40, 40)];

/// A row: its title, the set-up, the address pair of the first data, and the formula.
type Row = (&'static str, Case, Pair, fn(u64, u64) -> u64);

const ROWS: [Row; 7] = [
    ("first data, path 1", Case::Two(JoinTiming::AfterData), (C1, S1), |r1, _| 2 * r1),
    ("path 2, join after SYN/ACK", Case::Two(JoinTiming::AfterSynAck), (C2, S1), |r1, r2| {
        r1 + 2 * r2
    }),
    ("path 2, join after data", Case::Two(JoinTiming::AfterData), (C2, S1), |r1, r2| {
        2 * r1 + 2 * r2
    }),
    ("path 2, simultaneous", Case::Two(JoinTiming::Simultaneous), (C2, S1), |r1, r2| {
        (2 * r2).max((3 * r1 + r2) / 2)
    }),
    ("mesh4 (C2,S1)", Case::Mesh4, (C2, S1), |r1, r2| 2 * r1 + 2 * r2),
    ("mesh4 (C1,S2), after ADD_ADDR", Case::Mesh4, (C1, S2), |r1, _| 4 * r1),
    ("mesh4 (C2,S2), after ADD_ADDR", Case::Mesh4, (C2, S2), |r1, r2| 2 * r1 + 2 * r2),
];

/// R43, R20: to the nanosecond.
#[test]
fn the_table_of_connection_set_up() {
    let mut table = String::from("ms                             ");
    for (r1, r2) in RTTS {
        write!(table, " {:>7}", format!("{r1}/{r2}")).unwrap();
    }
    for (name, case, pair, formula) in ROWS {
        write!(table, "\n{name:<31}").unwrap();
        for (r1, r2) in RTTS {
            let got = first_data((r1, r2), case)[&pair];
            assert_eq!(got, ms(formula(r1, r2)), "{name} at {r1}/{r2}");
            write!(table, " {:>7}", got.as_millis_f64()).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
