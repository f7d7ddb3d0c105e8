//! Copies of unacknowledged data while there is no new data to send.

use crate::exact::{self, MILLION};
use crate::{
    About, Decision, Decorator, Needs, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
};
use crate::{SubflowView, View, What, rules, state};
use alloc::boxed::Box;
use plait_base::{DataRange, Dsn, SubflowId};

const QUEUE: Param = Param {
    name: "queue",
    kind: ParamKind::Real { min: 1.0, max: 1000.0, default: 2.0 },
    unit: "",
    help: "a queue stands on a path if the latest RTT is above this many times the lowest one",
    clause: "none: no paper has such copies",
};

/// The decorator's entry in the registry.
pub(crate) const ENTRY: Decorator = Decorator {
    about: About {
    name: "copy",
    aliases: &[],
    idea: "while no new data waits, subflows with room send copies of unacknowledged data",
    page: "\
The base scheduler places new data. When all of it is sent, subflows with room send copies of
unacknowledged data that other subflows carry, from the left edge on:

    subflow   the candidate with the lowest RTT that has room and something left to copy
    segment   the first range from snd_una on that it has neither carried nor skipped
    unless    inflight > 0  and  last_rtt > queue * min_rtt   a queue stands before the candidate,
              and  last_rtt > last_rtt of the live carrier    which does not delay the original

If a path becomes silent or slow, the message on it arrives over the other path one one-way delay
later, without a timeout. The same holds for the end of a transfer. While there is always more data
than the windows allow, nothing is copied, and each path carries data of its own. A backup gets no
copies while a regular subflow is alive.

Source   opportunistic redundancy, as in the ReMP family; none of the five papers has it.
Good at  messages over intermittent links; the last segments of a download.
Bad at   metered data plans and batteries: a stream that fits one path is sent on both.

Without the last rule (`queue=1000`), copies fill the queue of a path that is slower than the stream,
up to its window. If the other path then falls silent, its data waits behind those copies.
",
    params: &[QUEUE],
    state: &[("copied.ID", "end (DSN, bytes) of the data that the subflow has copied or skipped")],
    },
    wrap: |base, params: &Params| {
        let queue = params.millionths(&QUEUE);
        Box::new(Copy { base, queue, passed: [Dsn::ZERO; SubflowId::MAX] })
    },
};

/// The decorator.
#[derive(Debug)]
struct Copy {
    base: Box<dyn Scheduler>,
    /// In millionths.
    queue: u64,
    /// End (DSN) of the data that each subflow has copied or skipped, by id.
    passed: [Dsn; SubflowId::MAX],
}

impl Copy {
    /// Returns the next range, at most a segment, that `subflow` has not carried, and its first
    /// carrier.
    fn next(&mut self, view: &View<'_>, subflow: &SubflowView) -> Option<(DataRange, SubflowId)> {
        let passed = self.passed.get_mut(subflow.id.index())?;
        loop {
            let from = (*passed).max(view.connection.snd_una);
            let sent = view.queue.sent_from(from)?;
            if !sent.carried.contains(subflow.id) {
                let start = sent.range.start.max(from);
                let end = sent.range.end.min(start.saturating_add(rules::segment_len(view)));
                return Some((DataRange::new(start, end), sent.first));
            }
            *passed = sent.range.end;
        }
    }

    /// Returns true if a copy on `subflow` would wait in a queue, and longer than the original on
    /// `carrier`.
    fn lags(&self, view: &View<'_>, subflow: &SubflowView, carrier: SubflowId) -> bool {
        let (Some(last), Some(least)) = (subflow.last_rtt, subflow.min_rtt) else { return false };
        let (last_nanos, least) = (exact::nanos(last), exact::nanos(least));
        let stands = subflow.inflight > 0
            && last_nanos * u128::from(MILLION) > least * u128::from(self.queue);
        let original = view.subflow(carrier).filter(|it| it.alive()).and_then(|it| it.last_rtt);
        stands && original.is_some_and(|original| original < last)
    }

    /// Sends a copy if any subflow has room for one.
    fn copy(&mut self, view: &View<'_>) -> Option<Decision> {
        let candidates = view.candidates();
        let mut best: Option<(&SubflowView, DataRange)> = None;
        for subflow in
            view.subflows.iter().filter(|it| it.price.copies && candidates.contains(it.id))
        {
            if best.is_some_and(|(best, _)| best.srtt_or_max() <= subflow.srtt_or_max()) {
                continue;
            }
            let Some((range, carrier)) = self.next(view, subflow) else { continue };
            if subflow.usable(range.len(), view.tsq) && !self.lags(view, subflow, carrier) {
                best = Some((subflow, range));
            }
        }
        let (subflow, range) = best?;
        if let Some(passed) = self.passed.get_mut(subflow.id.index()) {
            *passed = range.end;
        }
        let (what, grant) = (What::Redundant(range), range.len());
        Some(Decision::Send { subflow: subflow.id, what, grant, reason: Reason::Copy })
    }
}

impl Scheduler for Copy {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let decision = self.base.schedule(view, out);
        if decision != Decision::Idle || view.subflows.len() < 2 {
            return decision;
        }
        self.copy(view).unwrap_or(decision)
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        state::forget(notice, &mut self.passed);
        self.base.on_notice(view, notice);
    }

    fn needs(&self) -> Needs {
        self.base.needs()
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        self.base.save_state(write);
        state::save_each("copied.", "", &self.passed, write, |end| {
            (*end > Dsn::ZERO).then_some(end.get() as f64)
        });
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        match state::slot("copied.", "", name, &mut self.passed) {
            Some(end) => {
                *end = Dsn::new(exact::nearest(value));
                true
            }
            None => self.base.load_state(name, value),
        }
    }
}
