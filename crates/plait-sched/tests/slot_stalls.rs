//! The copies of slot while all data waits for a path that has stopped.
#![allow(clippy::unwrap_used)]

use crate::model::{MSS, Model, path};
use plait_base::{Dsn, Span, SubflowId, SubflowSet, Time};
use plait_sched::{Decision, Notice, Outcome, Scheduler, Spec};

const MAIN: SubflowId = SubflowId(0);
const SIDE: SubflowId = SubflowId(1);
/// Segments that the main path carries when it stops.
const SEGMENTS: u64 = 90;

/// The window of the connection is full with the data of the main path, which has been silent for a second.
fn silent() -> (Box<dyn Scheduler>, Model) {
    let mut scheduler = Spec::parse("slot:hedge=off,probe=off").unwrap().build();
    let mut model = Model::new(vec![path(0, 40, SEGMENTS)], 2 * SEGMENTS * MSS);
    model.connection.wnd_end = Dsn::ZERO + SEGMENTS * MSS;
    assert_eq!(sent(&mut *scheduler, &mut model).len(), SEGMENTS as usize);
    model.subflows.push(path(1, 20, SEGMENTS));
    let notice = Notice::SubflowsChanged { live: SubflowSet(0b11), began: Some(SIDE) };
    scheduler.on_notice(&model.view(), notice);
    model.now = Time::ZERO + Span::from_secs(1);
    (scheduler, model)
}

/// Sends until the scheduler waits. Returns the subflow and the number of each segment.
fn sent(scheduler: &mut dyn Scheduler, model: &mut Model) -> Vec<(SubflowId, u64)> {
    let (mut list, mut out) = (Vec::new(), Outcome::default());
    loop {
        let decision = model.ask(scheduler, &mut out);
        let Decision::Send { subflow, what, .. } = decision else { return list };
        let range = model.range(what).unwrap();
        model.apply(decision, &[]);
        list.push((subflow, range.start.get() / MSS));
        assert!(list.len() <= SEGMENTS as usize, "{what:?} {list:?}");
    }
}

/// The window of the other path decides how fast the stall ends, and not the length of a search.
#[test]
fn all_data_of_a_silent_path_is_copied_once_and_in_order() {
    let (mut scheduler, mut model) = silent();
    let copies: Vec<_> = (0..SEGMENTS).map(|it| (SIDE, it)).collect();
    assert_eq!(sent(&mut *scheduler, &mut model), copies);
}

/// The silent path has timed out, and a reinjection has moved its first segments. A copy of them on the same path would
/// bring nothing.
#[test]
fn data_that_only_the_other_path_carries_is_not_copied_there() {
    let (mut scheduler, mut model) = silent();
    for range in model.queue.sent.iter_mut().filter(|it| it.range.start < Dsn::ZERO + 3 * MSS) {
        (range.carried, range.first) = (SubflowSet::one(SIDE), MAIN);
    }
    let copies: Vec<_> = (3..SEGMENTS).map(|it| (SIDE, it)).collect();
    assert_eq!(sent(&mut *scheduler, &mut model), copies);
}
