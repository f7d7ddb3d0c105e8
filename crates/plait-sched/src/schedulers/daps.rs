//! DAPS: delay-aware packet scheduling.

mod plan;

use crate::ahead::{self, Task};
use crate::arrival::{self, Arrival, BACK};
use crate::exact;
use crate::rules;
use crate::{
    About, Decision, Entry, Needs, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    SubflowView, View, What,
};
use alloc::boxed::Box;
use plait_base::{DataRange, Dsn, SubflowId, SubflowSet, Time};
use plan::{Flow, Plan};

const ROUND: Param = Param {
    name: "round",
    kind: ParamKind::Whole { min: 0, max: 1_000, default: 4 },
    unit: "ms",
    help: "multiple to which forward delays are rounded (kernel code); 0: no rounding (paper)",
    clause: "ToN, section III.A; Kuhn et al. 2014",
};
const CAP: Param = Param {
    name: "cap_ms",
    kind: ParamKind::Whole { min: 1, max: 3_600_000, default: 10_000 },
    unit: "ms",
    help: "maximum length of a plan: all delays are halved until their least common multiple fits",
    clause: "none; with exact RTTs the paper's plan has no bound",
};
const PLANNED: Param = Param {
    name: "planned_cwnd",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "on: a run has the window of the time of planning; off: the window when the run begins",
    clause: "ToN, section III.A; off is an option of the kernel code",
};
const SMOOTH: Param = Param {
    name: "smooth",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "on: a run has the smoothed window, 7/8 old and 1/8 new once per RTT; off: the window itself",
    clause: "kernel code",
};
const SLOW_START: Param = Param {
    name: "slow_start",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "on: also plan subflows that are in slow start after a loss; off: leave them out of the plan",
    clause: "kernel code",
};
const RETRANSMIT: Param = Param {
    name: "retransmit",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "if the send window is full, resend the oldest data that a subflow with room has not carried",
    clause: "kernel code",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "daps",
    aliases: &[],
    idea: "plan runs of data so that data on the slow subflow arrives in order",
    page: "\
DAPS plans one period ahead. While data is under way on the slow path, the fast path carries several
windows. The slow path gets the data that follows those windows, so that all data arrives in order.

    d_i   forward delay of subflow i: floor(srtt / 2) in ms, rounded to a multiple of `round`, >= 1
    w_i   its congestion window in segments, smoothed, >= 1
    E     the least common multiple of all d_i
    plan  for t = 1 .. E, for i in the order of srtt:  if d_i divides t, the next w_i segments are
          assigned to i

Each subflow sends its runs in order as its window opens, so full windows do not stop the plan. The
next plan is made when this one is used up, or when a subflow joins, fails or recovers. After such a
change, the data assigned and not sent is planned again. DAPS stores only the next run of each
subflow. A run thus costs the logarithm of the number of subflows, for any E.

Only data within the send window is assigned. If the window is full, `retransmit` resends old data.
If the window of a subflow shrinks to four segments or less, its assigned data may become overdue.
`back` then moves this data to a subflow on which it arrives sooner. Overdue data takes more than
twice the sum of the longest other drain time and the highest RTT. No plan is that uneven while the
windows do not change.

Paths with RTTs of 20 and 60 ms have a plan of 30 ms. With delays rounded to 4 ms (12 and 32), the
plan takes 96 ms. Rounding can lengthen a plan as well as shorten it.

Numbers  delay_ms, window_segments of each planned subflow and plan_ms (E), when a plan is made;
         left_segments of the current run, including this segment.
Papers   Kuhn et al., \"DAPS: Intelligent Delay-Aware Packet Scheduling for Multipath Transport\"
         (ICC 2014); \"Low-Latency Scheduling in MPTCP\" (IEEE/ACM ToN), section III.A.
Good at  large transfers over paths with very different, constant delays and small receive buffers.
Bad at   any change: all data that fits the send window is planned at once, period after period, from
         the delays and windows of that moment. Windows that do not match the delays.
",
    params: &[ROUND, CAP, PLANNED, SMOOTH, SLOW_START, RETRANSMIT, BACK],
    state: &[
        ("plan_ms", "length of the plan; absent if there is none"),
        ("candidates", "the candidates for which the plan was made, as a sum of powers of two"),
        ("delay.ID_ms", "forward delay of the subflow in the plan; 0 if it is not in the plan"),
        ("window.ID", "segments of each of its runs"),
        ("rank.ID", "its position in the order of the smoothed RTTs"),
        ("due.ID_ms", "time of its next or current run within the plan"),
        ("left", "segments left of the current run; absent before it begins"),
        ("smoothed.ID", "smoothed window of the subflow in eighths of a byte"),
        ("sampled.ID_ms", "time of the last sample of its window"),
    ],
    },
    queues_ahead: true,
    spreads_bursts: false,
    build: |params| Box::new(Daps::new(params)),
};

/// The scheduler.
#[derive(Debug)]
struct Daps {
    round: u64,
    cap: u64,
    planned: bool,
    smooth: bool,
    slow_start: bool,
    retransmit: bool,
    takes_back: bool,
    plan: Plan,
    /// Smoothed windows, by id.
    smoothed: [Smoothed; SubflowId::MAX],
    walked: Walked,
}

/// A smoothed congestion window: each sample has a weight of one eighth.
#[derive(Clone, Copy, Default, Debug)]
struct Smoothed {
    /// In eighths of a byte; zero before the first sample.
    eighths: u64,
    at: Option<Time>,
}

impl Smoothed {
    /// Takes one sample per RTT, because a window of data takes one RTT.
    fn observe(&mut self, now: Time, subflow: &SubflowView) {
        if self.eighths == 0 {
            self.eighths = subflow.cwnd.saturating_mul(8);
        } else if self.at.is_none_or(|at| now.since(at) >= subflow.srtt_or_max()) {
            self.eighths = (self.eighths - self.eighths / 8).saturating_add(subflow.cwnd);
        } else {
            return;
        }
        self.at = Some(now);
    }
}

/// Progress of the search for old data to resend. Each subflow in `by` has carried all data sent
/// below the DSN, and no data below it is unsent or assigned.
#[derive(Clone, Copy, Default, Debug)]
struct Walked {
    by: SubflowSet,
    below: Dsn,
}

impl Daps {
    fn new(params: &Params) -> Daps {
        Daps {
            round: params.whole(&ROUND),
            cap: params.whole(&CAP).max(1),
            planned: params.switch(&PLANNED),
            smooth: params.switch(&SMOOTH),
            slow_start: params.switch(&SLOW_START),
            retransmit: params.switch(&RETRANSMIT),
            takes_back: params.switch(&BACK),
            plan: Plan::default(),
            smoothed: [Smoothed::default(); SubflowId::MAX],
            walked: Walked::default(),
        }
    }

    /// Returns the forward delay in ms: half the RTT in whole ms, rounded to a multiple of `round`.
    fn delay(&self, subflow: &SubflowView) -> u64 {
        let exact = exact::nanos(subflow.srtt_or_max()) / 2_000_000;
        let exact = u64::try_from(exact).unwrap_or(u64::MAX);
        let rounded = match self.round {
            0 => exact,
            round => exact.saturating_add(round / 2) / round * round,
        };
        rounded.max(1)
    }

    /// Returns the segments of a run that begins now.
    fn window(&self, subflow: &SubflowView) -> u64 {
        let smoothed = self.smoothed.get(subflow.id.index()).filter(|_| self.smooth);
        let bytes = smoothed.map_or(subflow.cwnd, |it| it.eighths / 8);
        (bytes / ahead::mss(subflow)).max(1)
    }

    /// Takes data back from a subflow whose window has become smaller than planned. It is called if
    /// no more data can be assigned.
    fn take_back(&self, view: &View<'_>, out: &mut Outcome) -> Option<Decision> {
        let overdue =
            |owner: &SubflowView| arrival::is_small(owner) && arrival::is_overdue(view, owner);
        self.takes_back.then(|| arrival::take_back(view, overdue, Arrival::next_on, out)).flatten()
    }

    /// Makes a plan for the candidates that have an RTT sample.
    fn begin(&mut self, view: &View<'_>, candidates: SubflowSet, out: &mut Outcome) {
        let mut flows = [Flow::default(); SubflowId::MAX];
        let mut srtts = [None; SubflowId::MAX];
        let mut count = 0;
        for subflow in view.subflows.iter().filter(|it| candidates.contains(it.id)) {
            let after_loss = subflow.ssthresh.is_some_and(|ssthresh| subflow.cwnd <= ssthresh);
            if subflow.srtt.is_none() || after_loss && !self.slow_start {
                continue;
            }
            // Sort by smoothed RTT. Ids ascend, and equal RTTs keep that order.
            let at = srtts[..count].partition_point(|srtt| *srtt <= subflow.srtt);
            srtts[at..=count].rotate_right(1);
            flows[at..=count].rotate_right(1);
            srtts[at] = subflow.srtt;
            let (delay, window) = (self.delay(subflow), self.window(subflow));
            flows[at] = Flow { id: subflow.id, delay, window, due: delay };
            count += 1;
        }
        self.plan = Plan::new(candidates, &flows[..count], self.cap);
        for flow in self.plan.flows() {
            out.note("delay_ms", Some(flow.id), flow.delay as f64);
            out.note("window_segments", Some(flow.id), flow.window as f64);
        }
        if !self.plan.is_empty() {
            out.note("plan_ms", None, self.plan.length() as f64);
        }
    }

    /// Returns the subflow of the current run and the segments left of it. Makes a new plan if this
    /// one is used up or was made for other candidates.
    fn next<'a>(
        &mut self,
        view: &View<'a>,
        candidates: SubflowSet,
        out: &mut Outcome,
    ) -> Option<(&'a SubflowView, u64)> {
        if !self.plan.serves(candidates) || self.plan.is_used_up() {
            self.begin(view, candidates, out);
        }
        let subflow = view.subflow(self.plan.current()?.id)?;
        let now = (!self.planned).then(|| self.window(subflow));
        Some((subflow, self.plan.left(now)))
    }

    /// Resends the oldest data in flight that some subflow with room has not carried, on the
    /// fastest such subflow.
    fn resend(&mut self, view: &View<'_>, candidates: SubflowSet) -> Option<Decision> {
        let len = rules::segment_len(view);
        let mut usable: SubflowSet = SubflowSet::EMPTY;
        for subflow in view.subflows.iter().filter(|it| candidates.contains(it.id)) {
            if subflow.usable(len, view.tsq) {
                usable.insert(subflow.id);
            }
        }
        if usable.is_empty() {
            return None;
        }
        let known = self.walked.by.0 & usable.0 == usable.0;
        let mut at = view.connection.snd_una.max(if known { self.walked.below } else { Dsn::ZERO });
        let mut found = None;
        while let Some(sent) = view.queue.sent_from(at) {
            let free = SubflowSet(usable.0 & !sent.carried.0);
            let on = view.subflows.iter().filter(|it| free.contains(it.id));
            if let Some(subflow) = rules::fastest(on) {
                let start = sent.range.start.max(at);
                let range = DataRange::new(start, sent.range.end.min(start.saturating_add(len)));
                found = Some((subflow.id, range));
                break;
            }
            at = sent.range.end.max(at.saturating_add(1));
        }
        let unsent = view.queue.unsent_at(0, 1).map_or(Dsn::MAX, |range| range.start);
        let assigned =
            view.queue.assigned_from(Dsn::ZERO).map_or(Dsn::MAX, |(range, _)| range.start);
        self.walked = Walked { by: usable, below: at.min(unsent).min(assigned) };
        let (subflow, range) = found?;
        let (what, grant, reason) = (What::OppRetx(range), range.len(), Reason::Opportunistic);
        Some(Decision::Send { subflow, what, grant, reason })
    }
}

impl Scheduler for Daps {
    fn needs(&self) -> Needs {
        Needs { pacing_rate: false, ..Needs::ALL }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        if self.smooth {
            for subflow in view.subflows {
                if let Some(smoothed) = self.smoothed.get_mut(subflow.id.index()) {
                    smoothed.observe(view.now, subflow);
                }
            }
        }
        let segment = match ahead::task(view) {
            Task::Settled(decision) => {
                match decision {
                    Decision::Send { what: What::Reinject, .. } => self.walked = Walked::default(),
                    Decision::Wait { .. } => {
                        return self.take_back(view, out).unwrap_or(decision);
                    }
                    _ => {}
                }
                // The scheduler samples the windows at each call, so it must be called for each
                // segment.
                return decision.one_segment(rules::segment_len(view));
            }
            Task::Place(segment) => segment,
        };
        let candidates = view.candidates();
        let run = self.next(view, candidates, out);
        if let Some(decision) = ahead::beyond_window(view, segment) {
            if let Some(taken) = self.take_back(view, out) {
                return taken;
            }
            let resent = if self.retransmit { self.resend(view, candidates) } else { None };
            return resent.unwrap_or(decision);
        }
        let Some((subflow, left)) = run else {
            return ahead::lowest_rtt_candidate(view, candidates, segment);
        };
        out.note("left_segments", Some(subflow.id), left as f64);
        self.plan.take_one();
        ahead::place(view, subflow, segment, Reason::Planned, out)
    }

    fn on_notice(&mut self, _: &View<'_>, notice: Notice) {
        if let Notice::SubflowsChanged { began, .. } = notice {
            self.walked = Walked::default();
            if began.is_some() {
                self.plan = Plan::default();
            }
        }
        crate::state::forget(notice, &mut self.smoothed);
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        self.plan.save_state(write);
        crate::state::save_each("smoothed.", "", &self.smoothed, write, |it| {
            (it.eighths > 0).then_some(it.eighths as f64)
        });
        crate::state::save_each("sampled.", "_ms", &self.smoothed, write, |it| {
            it.at.map(crate::state::millis)
        });
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        if let Some(smoothed) = crate::state::slot("smoothed.", "", name, &mut self.smoothed) {
            smoothed.eighths = exact::nearest(value);
        } else if let Some(smoothed) =
            crate::state::slot("sampled.", "_ms", name, &mut self.smoothed)
        {
            smoothed.at = crate::state::time(value);
        } else {
            return self.plan.load_state(name, value);
        }
        true
    }
}
