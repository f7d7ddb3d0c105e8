use super::*;
use plait_base::{Dsn, SubflowSet};
use plait_sched::Reason;

const FAST: SubflowId = SubflowId(0);
const SLOW: SubflowId = SubflowId(1);
const MSS: u64 = 1_000;

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn segment(nth: u64) -> DataRange {
    DataRange::with_len(Dsn::new(nth * MSS), MSS)
}

/// Returns the results for a download of four segments, the second of which takes the slow path.
fn told() -> (Ledger, Foretold, Vec<Regret>) {
    let size = crate::Size::Bytes(4 * MSS);
    let (mut ledger, mut foretold) =
        (Ledger::new(&Workload::Download { size }), Foretold::default());
    let mut regrets = Vec::new();
    let mut tell = |at: u64, host: Role, event: Event| {
        ledger.on_core(ms(at), host, &event);
        regrets.extend(foretold.on_core(ms(at), host, &event));
    };
    for (id, path) in [(FAST, PathId(0)), (SLOW, PathId(1))] {
        let up = Event::SubflowUp { subflow: id, path, server: Default::default() };
        tell(0, Role::Server, up);
    }
    for (nth, chosen) in [(0, FAST), (1, SLOW), (2, FAST), (3, FAST)] {
        for (subflow, owd) in [(FAST, 10), (SLOW, 50)] {
            tell(
                100,
                Role::Server,
                Event::Considered {
                    subflow,
                    srtt: Some(Span::from_millis(2 * owd)),
                    cwnd: 10 * MSS,
                    inflight: 0,
                    room: 10 * MSS,
                    arrival: ms(100 + owd),
                },
            );
        }
        let value = nth as f64;
        tell(100, Role::Server, Event::Weighed(Number { name: "nth", subflow: None, value }));
        let both: SubflowSet = [FAST, SLOW].into_iter().collect();
        tell(
            100,
            Role::Server,
            Event::Decision {
                number: nth + 1,
                data: segment(nth),
                chosen: Some(chosen),
                waits_for: None,
                candidates: both,
                usable: both,
                reason: Reason::LowestRtt,
            },
        );
        let carry = Carry::New;
        let data = segment(nth);
        tell(100, Role::Server, Event::DataSent { subflow: chosen, data, carry });
    }
    let readable = |nth: u64, waited: u64| {
        let waited = Span::from_millis(waited);
        Event::DataReadable { data: segment(nth), waited, subflow: FAST }
    };
    let arrived = |nth: u64| Event::DataArrived { subflow: FAST, data: segment(nth), duplicate: 0 };
    tell(110, Role::Client, readable(0, 0));
    for nth in [0, 2, 3] {
        tell(110 + nth, Role::Client, arrived(nth));
    }
    for (nth, waited) in [(1, 0), (2, 48), (3, 47)] {
        tell(160, Role::Client, readable(nth, waited));
    }
    tell(160, Role::Client, arrived(1));
    let data = DataRange::between(0, 4 * MSS);
    let due = AppEvent::MessageDue { id: 0, data, due: ms(100) };
    ledger.on_app(ms(100), Role::Server, &due);
    (ledger, foretold, regrets)
}

#[test]
fn the_segment_that_is_waited_for_and_its_decision_are_found() {
    let (ledger, _, _) = told();
    let stalls = ledger.stalls();
    // The tail is the same wait but shorter, because the last arrival on the other subflow is at
    // 113 ms.
    let [stall] = stalls.as_slice() else { panic!("{stalls:?}") };
    assert_eq!((stall.kind, stall.from, stall.to), (StallKind::OutOfOrder, ms(112), ms(160)));
    assert_eq!((stall.blocking, stall.data), (segment(1), DataRange::between(MSS, 4 * MSS)));
    let (decided, sent) = ledger.placed(stall.blocking.start).unwrap();
    assert_eq!((decided.number, sent.subflow), (2, SLOW));
    assert_eq!(ledger.path(SLOW), Some(PathId(1)));
    assert_eq!(ledger.considered(decided).len(), 2);
    assert_eq!(ledger.considered(decided)[1].arrival, Some(ms(150)));
    assert_eq!(ledger.numbers(decided)[0].value, 1.0);
    assert_eq!(ledger.arrival(Dsn::new(MSS)), Some(ms(160)));
    assert_eq!(ledger.readable_at(Dsn::new(4 * MSS)), Some(ms(160)));
    assert_eq!(ledger.readable_at(Dsn::new(MSS)), Some(ms(110)));
    assert_eq!(ledger.readable_at(Dsn::new(4 * MSS + 1)), None);
    assert_eq!(ledger.choice_before(ms(99)), None);
    assert_eq!(ledger.choice_before(ms(100)).map(|it| it.number), Some(4));
}

#[test]
fn regret_holds_the_arrival_against_the_estimates() {
    let (_, _, regrets) = told();
    assert_eq!(regrets.len(), 4);
    let late = regrets.iter().find(|it| it.number == 2).unwrap();
    assert_eq!((late.foretold, late.earliest, late.arrived), (ms(150), ms(110), ms(160)));
    assert_eq!((late.subflow, late.sender), (SLOW, Role::Server));
    let first = regrets.iter().find(|it| it.number == 1).unwrap();
    assert_eq!((first.foretold, first.earliest, first.arrived), (ms(110), ms(110), ms(110)));
}
