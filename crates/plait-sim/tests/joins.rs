//! Arrival of the first data on each path for the three join timings (schedulers, section 5).
//!
//! Checks the vectors `join R1/R2` (imc-u3: 150 and 120 ms over 30/60), and the formulas for other
//! pairs, to the nanosecond.

mod common;

use common::{ideal, ms, setup, spec, textbook};
use libtest_mimic::{Arguments, Failed, Trial};
use plait_base::{PathId, Span, Time};
use plait_core::JoinTiming;
use plait_sim::{Direction, Hop, Watch, run_watched};
use plait_wire::Segment;
use serde_json::Value;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/schedulers.json");

/// First arrival of data at the client, by path.
#[derive(Default)]
struct FirstData([Option<Time>; 2]);

impl Watch for FirstData {
    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        if hop == Hop::Delivered && way == Direction::Down && !segment.payload.is_empty() {
            self.0[path.index()].get_or_insert(now);
        }
    }
}

fn first_data(r1: u64, r2: u64, join: JoinTiming) -> [Option<Span>; 2] {
    // A constant window keeps the first path full, so the second path is used at once.
    let paths = vec![ideal("one", ms(r1)), ideal("two", ms(r2))];
    let config = textbook().with(|it| it.joins.timing = join);
    let mut setup = setup(paths, &spec("minrtt", "fixed:cwnd=10seg", 2, config), "bulk:3s");
    setup.until = Time::ZERO + ms(4 * (r1 + r2));
    let mut first = FirstData::default();
    let outcome = run_watched(&setup, &mut first);
    assert_eq!(outcome.violation, None);
    first.0.map(|at| at.map(|at| at.since(Time::ZERO)))
}

fn expect(what: &str, got: Option<Span>, expected: Span) -> Result<(), Failed> {
    if got == Some(expected) {
        Ok(())
    } else {
        Err(format!("{what}: {got:?}, not {expected}").into())
    }
}

fn check_vector(vector: &Value) -> Result<(), Failed> {
    let number = |of: &Value, key: &str| of[key].as_u64().ok_or(format!("no {key}"));
    let (r1, r2) = (number(&vector["inputs"], "R1")?, number(&vector["inputs"], "R2")?);
    let expected = |key| number(&vector["expect"], key).map(ms);
    let late = first_data(r1, r2, JoinTiming::AfterData);
    expect("first path", late[0], expected("first_data_p1")?)?;
    expect("after-data", late[1], expected("p2_delayed_rfc8684")?)?;
    let early = first_data(r1, r2, JoinTiming::AfterSynAck);
    expect("after-synack", early[1], expected("p2_delayed_v086")?)?;
    let together = first_data(r1, r2, JoinTiming::Simultaneous);
    expect("simultaneous", together[1], expected("p2_simultaneous")?)
}

/// Checks the formulas, also with a faster second path. A join sent right after the SYN/ACK then
/// arrives before the third ACK and waits for it.
fn check_formulas() -> Result<(), Failed> {
    for (r1, r2) in [(10, 10), (10, 400), (80, 30), (100, 10), (26, 98)] {
        let (one, two) = (ms(r1), ms(r2));
        expect(
            "after-data",
            first_data(r1, r2, JoinTiming::AfterData)[1],
            one.times(2) + two.times(2),
        )?;
        let synack = (one + two.times(2)).max((one.times(3) + two.times(3)).over(2));
        expect("after-synack", first_data(r1, r2, JoinTiming::AfterSynAck)[1], synack)?;
        let together = two.times(2).max((one.times(3) + two).over(2));
        expect("simultaneous", first_data(r1, r2, JoinTiming::Simultaneous)[1], together)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Arguments::from_args();
    let vectors: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(FILE)?)?;
    let mut trials = vec![Trial::test("formulas_on_other_pairs", check_formulas)];
    for (index, vector) in vectors.into_iter().enumerate() {
        let name = vector["name"].as_str().unwrap_or_default().to_owned();
        if name.starts_with("join ") {
            trials.push(Trial::test(format!("{name}#{index}"), move || check_vector(&vector)));
        }
    }
    assert!(trials.len() > 1, "the file holds no join vector");
    libtest_mimic::run(&args, trials).exit()
}
