//! STMS-A: slide together, with a gap that follows the DATA_ACKs.

use super::stms_c::TAIL;
use crate::exact::{self, MILLION};
use crate::gap::{self, Lanes};
use crate::rules::{self, Task};
use crate::state;
use crate::{
    About, Decision, Entry, LeftEdge, Needs, Notice, Outcome, Param, ParamKind, Params, Scheduler,
    SubflowView, View,
};
use alloc::boxed::Box;
use plait_base::{SubflowId, Time};

const GAP0: Param = Param {
    name: "gap0",
    kind: ParamKind::Auto { min: 0, max: 1_000_000 },
    unit: "segments",
    help: "initial gap; auto: the calculated gap of stms-c, once both RTTs are known",
    clause: "left open in STMS, ATC 2018",
};
const THRESHOLD: Param = Param {
    name: "threshold",
    kind: ParamKind::Whole { min: 0, max: 1_000, default: 2 },
    unit: "segments",
    help: "a DATA_ACK that covers at most this many segments is no sample",
    clause: "STMS, ATC 2018, Algorithm 2",
};
const INTERVAL: Param = Param {
    name: "interval",
    kind: ParamKind::Real { min: 0.01, max: 100.0, default: 1.0 },
    unit: "times (srtt_S + srtt_F) / 2",
    help: "adjust_interval: the minimum time between changes of the gap",
    clause: "STMS, ATC 2018, section 3.1 and its evaluation",
};
const LOST: Param = Param {
    name: "count_lost",
    kind: ParamKind::Word { words: &["off", "resting", "on"], default: "off" },
    unit: "",
    help: "on: also take samples whose segment at the left edge was retransmitted; resting: only \
           those that lower the gap of a slow subflow with no outstanding data, down to the \
           calculated gap",
    clause: "STMS, ATC 2018, Algorithm 2 makes no exception",
};
const REST: Param = Param {
    name: "rest",
    kind: ParamKind::Whole { min: 0, max: 1_000_000, default: 16 },
    unit: "intervals",
    help: "time without sent data after which a gap beyond half of the send buffer falls to the calculated gap; 0: never",
    clause: "ours",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "stms-a",
    aliases: &["stms"],
    idea: "as stms-c, with a gap learnt from the number of segments that each DATA_ACK covers",
    page: "\
As stms-c, but the gap is learnt. If data arrives out of order, the DATA_ACK that ends the reordering
covers many segments at once (n). If the segment at the left edge came over the slow subflow S, S was
late and the gap is too small. If it came over the fast subflow F, the gap is too large.

    sample   if n > 2:  delta = +n if the segment at the old left edge was first sent on S, else -n
             a = min(1, time since the last sample / I), 1 at first;  ewma += a * (delta - ewma)
    apply    once per I, if ewma is not 0:  gap += round(ewma), within 0 and the send window;
             ewma = 0
    I        (srtt_S + srtt_F) / 2

The left edge is the one before the DATA_ACK. If its segment was retransmitted, the DATA_ACK is no
sample (our exception; `count_lost=on` is the paper's text). The average is ours too: the paper does
not define it, and the gap diverges if each sample is applied at once.

A gap beyond the send window keeps S idle. Then only a loss on F makes a DATA_ACK cover many
segments, so with `count_lost=off` the gap may never shrink. With `count_lost=resting`, such losses
lower the gap while S has no outstanding data, down to the calculated gap of stms-c. A gap beyond
half of the send buffer falls to the calculated gap at once if S has sent nothing for 16 intervals
(ours; `rest=0` disables it).

With more than two subflows (our extension), each slow one has its own gap and average. A left edge
that came over a still slower subflow is no sample for it.

Measured  docs/stms-gap.md: over 30 Mbit/s with 20 and 200 ms, the right gap is 225 segments. The gap
         settles at 216 within 21 s, from 0 and from 450.
Numbers  gap.ID in segments, of S.
Paper    \"STMS: Improving MPTCP Throughput Under Heterogeneous Networks\" (ATC 2018), section 3.1,
         Algorithm 2.
Good at  bulk transfers over heterogeneous paths with small buffers, even if the one-way delay is not
         half the RTT.
Bad at   short transfers, as stms-c. After a change it needs some seconds to find the gap again.
",
    params: &[GAP0, THRESHOLD, INTERVAL, LOST, REST, TAIL],
    state: &[
        ("gap.ID", "gap of the slow subflow ID, in segments"),
        ("ewma.ID", "average of the samples since the last change of the gap, in segments"),
        ("last_sample.ID_ms", "time of the last sample"),
        ("last_apply.ID_ms", "time of the last change of the gap; absent means the start of the connection"),
    ],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |params| Box::new(StmsA::new(params)),
};

/// One segment in the unit of the average, fine enough to make rounding invisible.
const SEGMENT: i128 = 1_000_000_000;
/// Largest sample in segments; a DATA_ACK that covers more counts as this.
const MAX_SAMPLE_SEGMENTS: u64 = 1 << 32;

/// The treatment of a sample whose segment at the left edge was retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    /// The sample is ignored: the loss delayed the DATA_ACK, not the order of the subflows.
    Ignore,
    /// The sample may lower the gap of a slow subflow with no outstanding data, down to the
    /// calculated gap. A gap beyond the window gets no other sample that lowers it.
    CountResting,
    /// The sample counts as any other.
    Count,
}

/// State for one slow subflow.
#[derive(Clone, Copy, Default, Debug)]
struct Learnt {
    /// In segments.
    gap: Option<u64>,
    /// In billionths of a segment.
    ewma: i64,
    last_sample: Option<Time>,
    /// `None` is the start of the connection.
    last_apply: Option<Time>,
}

/// The scheduler.
#[derive(Debug)]
struct StmsA {
    gap0: Option<u64>,
    threshold: u64,
    /// In millionths.
    interval: u64,
    lost: Lost,
    /// In intervals.
    rest: u64,
    tail: bool,
    learnt: [Learnt; SubflowId::MAX],
}

impl StmsA {
    fn new(params: &Params) -> StmsA {
        StmsA {
            gap0: params.whole_or_auto(&GAP0),
            threshold: params.whole(&THRESHOLD),
            interval: params.millionths(&INTERVAL),
            lost: match params.word(&LOST) {
                "on" => Lost::Count,
                "resting" => Lost::CountResting,
                _ => Lost::Ignore,
            },
            rest: params.whole(&REST),
            tail: params.switch(&TAIL),
            learnt: [Learnt::default(); SubflowId::MAX],
        }
    }

    /// Sets each gap that is not known yet: to `gap0`, or to the calculated gap once all RTTs are
    /// known.
    fn start(&mut self, view: &View<'_>, lanes: Lanes<'_>) {
        for slow in lanes.slow() {
            if let Some(Learnt { gap: gap @ None, .. }) = self.learnt.get_mut(slow.id.index()) {
                *gap = self.gap0.or_else(|| lanes.calculated(view, slow));
            }
        }
    }

    /// Returns the sample for `slow`, in segments, from `segments` that a DATA_ACK covered at once
    /// (Algorithm 2). Returns zero if there is none.
    fn sample(
        &self,
        view: &View<'_>,
        lanes: Lanes<'_>,
        slow: &SubflowView,
        edge: LeftEdge,
        segments: u64,
    ) -> i64 {
        let counts = match self.lost {
            _ if !edge.again => true,
            Lost::Ignore => false,
            Lost::CountResting => slow.outstanding == 0 && edge.first != slow.id,
            Lost::Count => true,
        };
        if segments <= self.threshold || !counts {
            return 0;
        }
        let segments = segments.min(MAX_SAMPLE_SEGMENTS) as i64;
        if edge.first == slow.id {
            return segments;
        }
        let slower = view.subflow(edge.first).is_some_and(|it| !Lanes::is_faster(it, slow));
        if slower && view.candidates().contains(edge.first) {
            return 0;
        }
        if edge.again && self.lost == Lost::CountResting {
            return -segments.min(self.above_calculated(view, lanes, slow));
        }
        -segments
    }

    /// Returns true if `slow` has sent nothing for so long that its gap is out of date. While
    /// `slow` sends nothing, no DATA_ACK shows that the gap is too large. With a gap beyond half of
    /// the send buffer, `slow` can hardly ever send.
    fn has_rested(&self, view: &View<'_>, slow: &SubflowView, interval: u128) -> bool {
        let rests = slow.outstanding == 0
            && twice_micro(view.now, slow.latest.last_send)
                >= interval.saturating_mul(self.rest.into());
        let gap = self.learnt.get(slow.id.index()).and_then(|it| it.gap).unwrap_or_default();
        let reserved = gap.saturating_mul(rules::segment_len(view));
        self.rest > 0 && rests && reserved > view.connection.sndbuf / 2
    }

    /// Returns the segments by which the gap of `slow` exceeds the calculated gap.
    fn above_calculated(&self, view: &View<'_>, lanes: Lanes<'_>, slow: &SubflowView) -> i64 {
        let gap = self.learnt.get(slow.id.index()).and_then(|it| it.gap).unwrap_or_default();
        let calculated = lanes.calculated(view, slow).unwrap_or(u64::MAX);
        i64::try_from(gap.saturating_sub(calculated)).unwrap_or(i64::MAX)
    }
}

impl Learnt {
    /// Adds a sample to the average. The unit of `interval` is nanoseconds times 2 000 000.
    fn average(&mut self, now: Time, delta: i64, interval: u128) {
        let target = i128::from(delta) * SEGMENT;
        let age = self.last_sample.map(|last| twice_micro(now, last));
        let ewma = match age {
            Some(age) if age < interval => {
                let (age, interval) = (age as i128, interval as i128);
                let step = (target - i128::from(self.ewma)).saturating_mul(age);
                i128::from(self.ewma) + divided(step, interval)
            }
            _ => target,
        };
        self.ewma = i64::try_from(ewma).unwrap_or(i64::MAX);
        self.last_sample = Some(now);
    }

    /// Adds the average to the gap, once an interval.
    fn apply(&mut self, view: &View<'_>, interval: u128) {
        let last = self.last_apply.unwrap_or(view.connection.start);
        if self.ewma == 0 || twice_micro(view.now, last) < interval {
            return;
        }
        let window = view.connection.wnd_end.saturating_sub(view.connection.snd_una);
        let most = i128::from(window / rules::segment_len(view));
        let gap = i128::from(self.gap.unwrap_or_default());
        let moved = (gap + divided(i128::from(self.ewma), SEGMENT)).clamp(0, most);
        self.gap = Some(u64::try_from(moved).unwrap_or(u64::MAX));
        self.last_apply = Some(view.now);
        self.ewma = 0;
    }
}

/// Returns the time since `last`, in the unit of an interval.
fn twice_micro(now: Time, last: Time) -> u128 {
    u128::from(now.since(last).as_nanos().min(1 << 60)) * 2 * u128::from(MILLION)
}

/// Divides and rounds to the nearest whole number, halves away from zero. `by` is positive.
fn divided(value: i128, by: i128) -> i128 {
    let half = if value < 0 { -(by / 2) } else { by / 2 };
    // With an odd divisor there are no halves.
    value.saturating_add(half) / by
}

impl Scheduler for StmsA {
    fn needs(&self) -> Needs {
        Needs { pacing_rate: false, ..Needs::ALL }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let segment = match rules::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        let Some(lanes) = Lanes::of(view) else { return rules::none_usable(view) };
        self.start(view, lanes);
        let gap = |slow: &SubflowView| {
            self.learnt.get(slow.id.index()).and_then(|it| it.gap).unwrap_or_default()
        };
        gap::pick(view, lanes, segment, self.tail, gap, out)
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        state::forget(notice, &mut self.learnt);
        let Notice::DataAck { old, new, edge: Some(edge) } = notice else { return };
        let Some(lanes) = Lanes::of(view) else { return };
        let Some(fast) = lanes.fast.srtt else { return };
        self.start(view, lanes);
        let segments = new.saturating_sub(old).div_ceil(rules::segment_len(view));
        for slow in lanes.slow() {
            let Some(srtt) = slow.srtt else { continue };
            let delta = self.sample(view, lanes, slow, edge, segments);
            let interval = (exact::nanos(srtt) + exact::nanos(fast)) * u128::from(self.interval);
            if self.has_rested(view, slow, interval) {
                let above = self.above_calculated(view, lanes, slow).unsigned_abs();
                if let Some(Learnt { gap: Some(gap), .. }) = self.learnt.get_mut(slow.id.index()) {
                    *gap -= above;
                }
            }
            let settled = self.learnt.get(slow.id.index()).is_none_or(|it| it.ewma == 0);
            if delta == 0 && settled {
                continue;
            }
            if let Some(learnt) = self.learnt.get_mut(slow.id.index()) {
                if delta != 0 {
                    learnt.average(view.now, delta, interval);
                }
                learnt.apply(view, interval);
            }
        }
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        state::save_each("gap.", "", &self.learnt, write, |it| it.gap.map(|gap| gap as f64));
        state::save_each("ewma.", "", &self.learnt, write, |it| {
            (it.ewma != 0).then(|| it.ewma as f64 / SEGMENT as f64)
        });
        state::save_each("last_sample.", "_ms", &self.learnt, write, |it| {
            it.last_sample.map(state::millis)
        });
        state::save_each("last_apply.", "_ms", &self.learnt, write, |it| {
            it.last_apply.map(state::millis)
        });
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        if let Some(it) = state::slot("gap.", "", name, &mut self.learnt) {
            it.gap = (value >= 0.0).then(|| exact::nearest(value));
        } else if let Some(it) = state::slot("ewma.", "", name, &mut self.learnt) {
            let size = exact::nearest((value * SEGMENT as f64).abs()).min(i64::MAX as u64) as i64;
            it.ewma = if value < 0.0 { -size } else { size };
        } else if let Some(it) = state::slot("last_sample.", "_ms", name, &mut self.learnt) {
            it.last_sample = state::time(value);
        } else if let Some(it) = state::slot("last_apply.", "_ms", name, &mut self.learnt) {
            it.last_apply = state::time(value);
        } else {
            return false;
        }
        true
    }
}
