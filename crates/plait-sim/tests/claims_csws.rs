//! Claims of "Experimental Evaluation of Multipath TCP Schedulers" (CSWS 2014) about its framework:
//! the loop around the two callbacks of a scheduler, and one scheduler for each connection.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::common::{ideal, ms, setup, spec, textbook};
use plait_app::{AppEvent, Role};
use plait_base::{SubflowId, Time};
use plait_core::{ConnectionSpec, Event};
use plait_sched::{Decision, Outcome, Reason, Scheduler, View, What};
use plait_sim::{ConnectionSetup, Watch, Who, run_watched};
use std::sync::{Arc, Mutex};

/// A call of the paper's framework and its result; `None` is the paper's NULL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Subflow(Option<SubflowId>),
    /// Request for data for this subflow; the result is the DSN of the first byte.
    Data(SubflowId, Option<u64>),
}

type Log = Arc<Mutex<Vec<(Time, Call)>>>;

/// Figure 2 of the paper as a scheduler. It picks a subflow and assigns data to it until no data is
/// left for it, then picks the next. It ends when it finds no subflow. The caller performs
/// `send_data`.
#[derive(Debug)]
struct Frame {
    /// Order in which subflows are considered.
    order: [u8; 2],
    picked: Option<SubflowId>,
    log: Log,
}

impl Frame {
    /// Returns the DSN of the next data if it fits on `id`.
    fn data(view: &View<'_>, id: SubflowId) -> Option<u64> {
        let next = view.queue.unsent_at(0, view.next_len())?;
        let subflow = view.subflow(id)?;
        let fits = next.end <= view.connection.wnd_end && subflow.usable(next.len(), view.tsq);
        fits.then_some(next.start.get())
    }

    fn get_subflow(&self, view: &View<'_>) -> Option<SubflowId> {
        let found =
            self.order.map(SubflowId).into_iter().find(|id| Frame::data(view, *id).is_some());
        self.log.lock().unwrap().push((view.now, Call::Subflow(found)));
        found
    }

    fn get_data(&self, view: &View<'_>, id: SubflowId) -> Option<u64> {
        let data = Frame::data(view, id);
        self.log.lock().unwrap().push((view.now, Call::Data(id, data)));
        data
    }
}

impl Scheduler for Frame {
    fn schedule(&mut self, view: &View<'_>, _: &mut Outcome) -> Decision {
        loop {
            if self.picked.is_none() {
                self.picked = self.get_subflow(view);
            }
            let Some(subflow) = self.picked else {
                return Decision::Wait { on: None, reason: Reason::AllBusy };
            };
            if self.get_data(view, subflow).is_some() {
                let (what, grant) = (What::New { offset: 0 }, view.next_len());
                return Decision::Send { subflow, what, grant, reason: Reason::Priority };
            }
            self.picked = None;
        }
    }
}

/// Segments that each connection's server sent from its burst on: time, subflow, DSN.
#[derive(Default)]
struct Sent {
    from: [Option<Time>; 3],
    sent: [Vec<(Time, SubflowId, u64)>; 3],
}

impl Watch for Sent {
    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        if let (Role::Server, AppEvent::MeasureFrom { .. }) = (who.host, event) {
            self.from[who.connection] = Some(now);
        }
    }

    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if let (Role::Server, Event::DataSent { subflow, data, .. }) = (who.host, event)
            && self.from[who.connection].is_some()
        {
            self.sent[who.connection].push((now, *subflow, data.start.get()));
        }
    }
}

/// Returns the sending end, whose scheduler considers subflows in this order.
fn server(order: [u8; 2], log: &Log) -> ConnectionSpec {
    let log = Arc::clone(log);
    let build = move || -> Box<dyn Scheduler> {
        Box::new(Frame { order, picked: None, log: Arc::clone(&log) })
    };
    ConnectionSpec { scheduler: Arc::new(build), ..spec("minrtt", "cubic", 2, textbook()) }
}

/// Returns true if the calls are complete passes through figure 2, each from its first line to the
/// end of its loop.
fn are_passes(calls: &[Call]) -> bool {
    let mut picked = None;
    for call in calls {
        match (*call, picked) {
            (Call::Subflow(found), None) => picked = found,
            (Call::Data(id, Some(_)), Some(of)) if id == of => {}
            (Call::Data(id, None), Some(of)) if id == of => picked = None,
            _ => return false,
        }
    }
    calls.last() == Some(&Call::Subflow(None))
}

/// csws-u1: two connections use the default scheduler of their host, and the third its own. Each
/// scheduler is called until it returns no subflow, each time within the same instant. The server
/// sends exactly the data that the scheduler returned.
#[test]
fn csws_u1_each_connection_loops_over_the_callbacks_of_its_own_scheduler() {
    let logs: [Log; 3] = Default::default();
    let orders = [[0, 1], [0, 1], [1, 0]];
    let paths = vec![ideal("a", ms(10)), ideal("b", ms(40))];
    let client = spec("minrtt", "cubic", 2, textbook());
    let mut setup = setup(paths, &client, "burst:45seg");
    let one = setup.pairs[0].connections[0].clone();
    let with = |(order, log): ([u8; 2], &Log)| ConnectionSetup {
        server: server(order, log),
        ..one.clone()
    };
    setup.pairs[0].connections = orders.into_iter().zip(&logs).map(with).collect();
    let mut seen = Sent::default();
    let outcome = run_watched(&setup, &mut seen);
    assert_eq!(outcome.violation, None);
    assert!(outcome.complete());
    for (at, log) in logs.iter().enumerate() {
        let (from, sent) = (seen.from[at].unwrap(), &seen.sent[at]);
        let log = log.lock().unwrap();
        let calls: Vec<(Time, Call)> =
            log.iter().filter(|(now, _)| *now >= from).copied().collect();
        let instants = calls.chunk_by(|a, b| a.0 == b.0);
        assert!(instants.clone().count() > 2);
        for instant in instants {
            let calls: Vec<Call> = instant.iter().map(|(_, call)| *call).collect();
            assert!(are_passes(&calls), "{calls:?}");
        }
        let data = calls.iter().filter_map(|(now, call)| match call {
            Call::Data(id, Some(start)) => Some((*now, *id, *start)),
            _ => None,
        });
        assert_eq!(data.collect::<Vec<_>>(), *sent);
        assert_eq!(sent.len(), 45);
        // With windows of ten segments, the subflow that the scheduler prefers is filled first.
        let first: Vec<u8> = sent[..20].iter().map(|(_, id, _)| id.0).collect();
        let [one, two] = orders[at];
        assert_eq!(first, [[one; 10], [two; 10]].concat(), "{at}");
    }
}
