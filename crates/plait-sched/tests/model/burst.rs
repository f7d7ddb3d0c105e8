//! A burst on idle paths without a rate limit: segments in slow start, each acknowledged on its
//! own.

use super::{MSS, Model, subflow};
use plait_base::{DataRange, DataRangeSet, Dsn, Span, SubflowId, Time};
use plait_sched::{Decision, Outcome, Spec};
use std::collections::BTreeMap;

/// Send windows in bytes: one that never limits the burst, and one that may.
pub(crate) const LARGE: u64 = 6 * 1024 * 1024;
pub(crate) const SMALL: u64 = 64 * 1024;

/// Segments in flight, by the return time of the acknowledgement and the sending order.
type Flight = BTreeMap<(u64, u64), (SubflowId, DataRange)>;

/// A segment that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) at_ms: u64,
    pub(crate) subflow: SubflowId,
    pub(crate) range: DataRange,
    pub(crate) arrives_ms: u64,
    pub(crate) acked_ms: u64,
}

/// All sent segments, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Burst {
    pub(crate) sent: Vec<Sent>,
}

impl Burst {
    /// Returns when the last byte arrives.
    pub(crate) fn delay_ms(&self) -> u64 {
        self.sent.iter().map(|it| it.arrives_ms).max().unwrap_or(0)
    }

    /// Returns when the last acknowledgement returns.
    pub(crate) fn completion_ms(&self) -> u64 {
        self.sent.iter().map(|it| it.acked_ms).max().unwrap_or(0)
    }

    pub(crate) fn share(&self, subflow: SubflowId) -> f64 {
        self.on(subflow).count() as f64 / self.sent.len() as f64
    }

    pub(crate) fn on(&self, subflow: SubflowId) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |it| it.subflow == subflow)
    }

    /// Returns the milliseconds, until the completion, in which the subflow has nothing in flight.
    pub(crate) fn idle_ms(&self, subflow: SubflowId) -> u64 {
        let busy = |at: &u64| self.on(subflow).any(|it| (it.at_ms..it.acked_ms).contains(at));
        (0..self.completion_ms()).filter(|at| !busy(at)).count() as u64
    }
}

/// Writes `segments` at once, and runs until all are acknowledged.
pub(crate) fn burst(spec: &str, rtts_ms: &[u64], window: u64, segments: u64) -> Burst {
    let paths = rtts_ms.iter().zip(0..);
    let subflows = paths.map(|(rtt, id)| subflow(id, Span::from_millis(*rtt), 10 * MSS)).collect();
    let mut model = Model::new(subflows, segments * MSS);
    model.connection.wnd_end = Dsn::new(window);
    let (mut scheduler, mut out) =
        (Spec::parse(spec).expect("a scheduler").build(), Outcome::default());
    let (mut flight, mut received) = (Flight::new(), DataRangeSet::new());
    let mut sent = Vec::new();
    let millis = |time: Time| time.as_nanos() / 1_000_000;
    loop {
        let mut next = model.send_assigned();
        if next.is_none() {
            let decision = model.ask(&mut *scheduler, &mut out);
            next = model.apply(decision, &out.effects);
            if let Decision::Assign { .. } = decision {
                model.assign(&out.plan);
                continue;
            }
        }
        if let Some((subflow, range)) = next {
            let rtt = Span::from_millis(rtts_ms[subflow.index()]);
            let acked = model.now + rtt;
            flight.insert((acked.as_nanos(), sent.len() as u64), (subflow, range));
            sent.push(Sent {
                at_ms: millis(model.now),
                subflow,
                range,
                arrives_ms: millis(model.now + rtt.over(2)),
                acked_ms: millis(acked),
            });
            continue;
        }
        // An acknowledgement covers the data that has arrived when it leaves. Acknowledgements are
        // processed one at a time, each followed by calls of the scheduler.
        let Some(((back, _), (id, range))) = flight.pop_first() else { break };
        model.now = Time::from_nanos(back);
        received.insert(range);
        let subflow = model.subflow_mut(id);
        subflow.inflight -= range.len();
        subflow.cwnd += MSS;
        model.data_ack(
            received.first().filter(|first| first.start == Dsn::ZERO).map_or(Dsn::ZERO, |r| r.end),
        );
    }
    assert_eq!(sent.len() as u64, segments, "all of it is sent, once");
    Burst { sent }
}
