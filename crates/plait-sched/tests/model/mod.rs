//! A small model of a connection that gives a scheduler its view and applies its decisions.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

pub(crate) mod burst;
pub(crate) mod states;

use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet, Time};
use plait_sched::{
    ConnectionView, Decision, Effect, Number, Outcome, Scheduler, SentRange, StaticQueue,
    SubflowView, View, What,
};
use proptest::prelude::ProptestConfig;

/// Payload bytes of a full segment.
pub(crate) const MSS: u64 = 1460;

/// Returns the number of cases of a property. `PROPTEST_CASES` replaces it, up to ten times as
/// many. The limit exists because each case takes every scheduler through a whole connection.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig { cases: config.cases.min(10 * usual), ..config },
        None => ProptestConfig { cases: usual, ..config },
    }
}

/// A connection: subflows, queues, and the numbers of a view.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) now: Time,
    pub(crate) tsq: bool,
    pub(crate) subflows: Vec<SubflowView>,
    pub(crate) connection: ConnectionView,
    pub(crate) queue: StaticQueue,
    /// Bytes that each subflow has sent, by id.
    pub(crate) sent: [u64; SubflowId::MAX],
    /// The quota of each subflow, by id; `u64::MAX` for none.
    pub(crate) quotas: [u64; SubflowId::MAX],
}

/// Creates an idle subflow that is open and joined.
pub(crate) fn subflow(id: u8, srtt: Span, cwnd: u64) -> SubflowView {
    SubflowView {
        srtt: Some(srtt),
        pacing_rate: cwnd.saturating_mul(1_000_000_000) / srtt.as_nanos().max(1),
        ..SubflowView::new(SubflowId(id), MSS as u32, cwnd)
    }
}

impl Model {
    /// Creates a connection with `unsent` bytes from DSN 0 and an unlimited window.
    pub(crate) fn new(subflows: Vec<SubflowView>, unsent: u64) -> Model {
        let connection = ConnectionView {
            mss: MSS as u32,
            wnd_end: Dsn::MAX,
            unsent,
            sndbuf_free: 1 << 20,
            sndbuf: 4 << 20,
            ..ConnectionView::default()
        };
        let queue = StaticQueue::fresh(DataRange::between(0, unsent));
        let (sent, quotas) = ([0; SubflowId::MAX], [u64::MAX; SubflowId::MAX]);
        Model { now: Time::ZERO, tsq: false, subflows, connection, queue, sent, quotas }
    }

    pub(crate) fn view(&self) -> View<'_> {
        View {
            now: self.now,
            tsq: self.tsq,
            connection: self.connection,
            subflows: &self.subflows,
            queue: &self.queue,
        }
    }

    /// Calls the scheduler, with explanation.
    pub(crate) fn ask(&self, scheduler: &mut dyn Scheduler, out: &mut Outcome) -> Decision {
        out.clear();
        out.explain = true;
        scheduler.schedule(&self.view(), out)
    }

    /// Returns the range that a decision to send would send.
    pub(crate) fn range(&self, what: What) -> Option<DataRange> {
        match what {
            What::New { offset } => self.queue.unsent.nth(offset, self.connection.mss.into()),
            What::Reinject => self.connection.reinject.map(|waiting| {
                let len = waiting.range.len().min(self.connection.mss.into());
                DataRange::with_len(waiting.range.start, len)
            }),
            What::Redundant(range) | What::OppRetx(range) => Some(range),
        }
    }

    /// Applies a decision as the core would. Returns the subflow and the range sent.
    pub(crate) fn apply(
        &mut self,
        decision: Decision,
        effects: &[Effect],
    ) -> Option<(SubflowId, DataRange)> {
        self.apply_effects(effects);
        let Decision::Send { subflow, what, .. } = decision else { return None };
        let range = self.range(what).expect("there is something to send");
        if what == What::Reinject {
            self.connection.reinject = None;
        }
        Some(self.send(range, subflow))
    }

    fn send(&mut self, range: DataRange, subflow: SubflowId) -> (SubflowId, DataRange) {
        self.queue.record(range, subflow);
        self.sent[subflow.index()] += range.len();
        self.count();
        self.connection.snd_nxt = self.connection.snd_nxt.max(range.end);
        let it = self.subflow_mut(subflow);
        it.inflight += range.len();
        it.outstanding += range.len();
        (subflow, range)
    }

    /// Assigns ranges to subflows, as [`Decision::Assign`] requires.
    pub(crate) fn assign(&mut self, plan: &[(DataRange, SubflowId)]) {
        for (range, subflow) in plan {
            self.queue.assign(*range, *subflow);
        }
        self.count();
    }

    /// Takes back all assigned data, as the core does when the set of subflows changes.
    pub(crate) fn unassign(&mut self) {
        for (range, _) in core::mem::take(&mut self.queue.assigned) {
            self.queue.unsent.insert(range);
        }
        self.count();
    }

    /// Sends the next assigned segment, on the first subflow that has assigned data and room for
    /// it.
    pub(crate) fn send_assigned(&mut self) -> Option<(SubflowId, DataRange)> {
        let mss = u64::from(self.connection.mss);
        let ready = self.subflows.iter().find_map(|subflow| {
            let mut own = self.queue.assigned.iter().filter(|(_, id)| *id == subflow.id);
            let (range, _) = own.next()?;
            let segment = DataRange::with_len(range.start, range.len().min(mss));
            let idle = SubflowView { queued: 0, ..*subflow };
            let fits = segment.end <= self.connection.wnd_end;
            (fits && idle.usable(segment.len(), self.tsq)).then_some((segment, subflow.id))
        });
        let (segment, subflow) = ready?;
        Some(self.send(segment, subflow))
    }

    /// Updates the counts of the view from the queues.
    fn count(&mut self) {
        self.connection.unsent = self.queue.unsent.len();
        for subflow in &mut self.subflows {
            let own = self.queue.assigned.iter().filter(|(_, id)| *id == subflow.id);
            subflow.queued = own.map(|(range, _)| range.len()).sum();
            let quota = self.quotas[subflow.id.index()];
            if quota != u64::MAX {
                let used = self.sent[subflow.id.index()] + subflow.queued;
                subflow.price.left = quota.saturating_sub(used);
            }
        }
    }

    /// Sets the quota of a subflow.
    pub(crate) fn set_quota(&mut self, id: SubflowId, bytes: u64) {
        self.quotas[id.index()] = bytes;
        self.count();
    }

    /// Applies the effects of a decision, which come before the decision itself.
    pub(crate) fn apply_effects(&mut self, effects: &[Effect]) {
        for effect in effects {
            match *effect {
                Effect::Penalise { subflow, cwnd, ssthresh } => {
                    let it = self.subflow_mut(subflow);
                    (it.cwnd, it.ssthresh) = (cwnd, ssthresh);
                }
                Effect::Cap { subflow, bytes } => {
                    self.subflow_mut(subflow).cap = bytes.unwrap_or(u64::MAX);
                }
            }
        }
    }

    /// Moves the left edge, and the window with it.
    pub(crate) fn data_ack(&mut self, dsn: Dsn) {
        let old = self.connection.snd_una;
        self.connection.snd_una = dsn.max(old);
        if self.connection.wnd_end != Dsn::MAX {
            self.connection.wnd_end += self.connection.snd_una - old;
        }
        self.queue.ack(self.connection.snd_una);
    }

    pub(crate) fn subflow_mut(&mut self, id: SubflowId) -> &mut SubflowView {
        self.subflows.iter_mut().find(|subflow| subflow.id == id).expect("a known subflow")
    }

    /// Queues the range for reinjection, as carried by `carried`.
    pub(crate) fn reinject(&mut self, range: DataRange, carried: SubflowSet) {
        let first = carried.iter().next().unwrap_or_default();
        self.connection.reinject = Some(SentRange { range, carried, first });
    }
}

/// Creates an idle subflow.
pub(crate) fn path(id: u8, rtt_ms: u64, segments: u64) -> SubflowView {
    subflow(id, Span::from_millis(rtt_ms), segments * MSS)
}

/// Creates two idle subflows with windows of ten segments, and `segments` segments to send.
pub(crate) fn pair(rtts_ms: [u64; 2], segments: u64) -> Model {
    let [first, second] = rtts_ms;
    Model::new(vec![path(0, first, 10), path(1, second, 10)], segments * MSS)
}

/// Returns the number with this name for the subflow.
pub(crate) fn noted(out: &Outcome, name: &str, id: u8) -> Option<f64> {
    let of = |number: &&Number| number.name == name && number.subflow == Some(SubflowId(id));
    out.numbers.iter().find(of).map(|number| number.value)
}

/// Applies a decision. Returns the subflow that got a segment by it.
pub(crate) fn given(model: &mut Model, decision: Decision, out: &Outcome) -> Option<SubflowId> {
    match decision {
        Decision::Send { subflow, what: What::New { .. }, .. } => {
            model.apply(decision, &[]);
            Some(subflow)
        }
        Decision::Assign { .. } => {
            assert_eq!(out.plan.len(), 1);
            model.assign(&out.plan);
            Some(out.plan[0].1)
        }
        _ => None,
    }
}

/// Returns the subflows of the next `segments`, placed in order without acknowledgements.
pub(crate) fn places(model: &mut Model, scheduler: &mut dyn Scheduler, segments: usize) -> Vec<u8> {
    let mut out = Outcome::default();
    let mut next = || {
        let decision = model.ask(scheduler, &mut out);
        given(model, decision, &out).unwrap_or_else(|| panic!("{decision:?}")).0
    };
    (0..segments).map(|_| next()).collect()
}

/// Returns each subflow with the length of its run.
pub(crate) fn runs(places: &[u8]) -> Vec<(u8, usize)> {
    places.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect()
}
