//! STTF: shortest transfer time first.

use crate::ahead::{self, Task};
use crate::exact;
use crate::{
    About, Decision, Entry, Needs, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    SubflowView, View,
};
use alloc::boxed::Box;
use plait_base::{DataRange, Span, SubflowId, SubflowSet};

const RTT: Param = Param {
    name: "rtt",
    kind: ParamKind::Word { words: &["last", "smoothed"], default: "last" },
    unit: "",
    help: "RTT of the estimate: the latest sample (kernel code), or the smoothed RTT (paper)",
    clause: "ToN, section IV.B",
};
const STALE: Param = Param {
    name: "stale",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "use the lowest RTT while the latest sample is older than `age_ms`",
    clause: "ToN, section IV.B (an RTT reset is mentioned, not described)",
};
const AGE: Param = Param {
    name: "age_ms",
    kind: ParamKind::Whole { min: 0, max: 3_600_000, default: 0 },
    unit: "ms",
    help: "maximum age of a sample if `stale` is on; 0 is the subflow's retransmission timeout",
    clause: "ToN, section IV.B (left open there)",
};
const SYMMETRIC: Param = Param {
    name: "symmetric",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "use the lowest-RTT rule if the first RTT samples differ by at most 1 ms or by less than 10 %",
    clause: "ToN, section IV.B, footnote 1; the limits are the kernel code's",
};
const TOLERANCE: Param = Param {
    name: "tolerance",
    kind: ParamKind::Whole { min: 0, max: 1_000_000, default: 1 },
    unit: "segments",
    help: "reassign if a subflow would get or lose more than this (code 1, paper 0)",
    clause: "ToN, section IV.B, Algorithm 2",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "sttf",
    aliases: &[],
    idea: "assign each segment to the subflow on which it arrives first; reassign when conditions change",
    page: "\
STTF predicts when a segment would arrive on each subflow, behind the data already assigned there.
It assigns the segment to the subflow with the earliest arrival. In the prediction windows grow: they
double each RTT up to ssthresh, then grow by one segment each RTT. Let q be the position of the
segment in the queue of the subflow, from 1, and free = max(0, cwnd - inflight), in segments:

    q <= free   T = rtt / 2
    otherwise   n grown windows hold the q - free segments:  T = n * rtt + rtt / 2
    choose      argmin T over the live subflows, without regard to full windows and small queues

A subflow sends its assigned segments in order as its window opens. After an acknowledgement, a loss
or a change of an RTT, STTF computes a new assignment of all data assigned and not sent. It adopts
the new assignment if some subflow then has more than `tolerance` segments more or fewer.

If all first RTT samples lie within 1 ms, or within 10 % of the lowest, the lowest-RTT rule makes all
decisions. The RTT is the latest sample. If that is older than `age_ms`, it is the lowest RTT.

Numbers  arrival_ms of each subflow: T. After a new assignment: now_segments and then_segments of
         each subflow, its queue before and after.
Paper    \"Low-Latency Scheduling in MPTCP\" (IEEE/ACM ToN), section IV.B, Algorithms 2 and 3.
Good at  short transfers over heterogeneous paths, also in slow start: of a burst, only the segments
         that arrive first on the slow path go there.
Bad at   paths with loss, or with a bottleneck that limits before the window does: the prediction
         ignores both. It needs the most work per segment of all schedulers.
",
    params: &[RTT, STALE, AGE, SYMMETRIC, TOLERANCE],
    state: &[
        ("rtt_first.ID_ms", "first RTT sample of the subflow that the scheduler read"),
        (
            "settled",
            "hash of the windows, RTTs and loads when the assignment was last checked",
        ),
    ],
    },
    queues_ahead: true,
    spreads_bursts: false,
    build: |params| Box::new(Sttf::new(params)),
};

/// Largest number of assigned segments that are placed again. If there are more, all stay.
const MOST_PLACED: u128 = 1 << 24;
/// Mask of a mark, which stays exact as a number of a saved state.
const MARK: u64 = (1 << 48) - 1;

/// The scheduler.
#[derive(Debug)]
struct Sttf {
    smoothed: bool,
    stale: bool,
    age: Option<Span>,
    symmetric: bool,
    tolerance: u128,
    first: [Option<Span>; SubflowId::MAX],
    settled: Option<u64>,
}

/// A subflow as the prediction uses it, in segments.
#[derive(Clone, Copy, Default, Debug)]
struct Path {
    id: SubflowId,
    /// RTT in ns; `None` without a sample: a segment never arrives.
    rtt: Option<u128>,
    cwnd: u128,
    ssthresh: Option<u128>,
    free: u128,
    queued: u128,
    inflight_bytes: u64,
    /// Bytes in flight or assigned.
    load: u64,
}

/// Returns the window one RTT later.
fn grow(cwnd: u128, ssthresh: Option<u128>) -> u128 {
    match ssthresh {
        Some(ssthresh) if 2 * cwnd > ssthresh => {
            if cwnd < ssthresh {
                ssthresh
            } else {
                cwnd + 1
            }
        }
        _ => 2 * cwnd,
    }
}

/// Returns the square root, rounded up.
fn isqrt_up(square: u128) -> u128 {
    let root = u64::try_from(square).map_or_else(|_| square.isqrt(), |it| it.isqrt().into());
    root + u128::from(root * root < square)
}

impl Path {
    /// Returns the whole RTTs that the segment at position `q` of the line waits, counted from 1.
    /// Rounds of slow start are counted one by one. For congestion avoidance the sum c + (c + 1) +
    /// ... >= q is solved.
    fn rounds(&self, q: u128) -> u128 {
        let Some(mut q) = q.checked_sub(self.free).filter(|q| *q > 0) else { return 0 };
        let (mut rounds, mut cwnd) = (1, grow(self.cwnd, self.ssthresh));
        while q > cwnd && self.ssthresh.is_none_or(|ssthresh| cwnd < ssthresh) {
            q -= cwnd;
            rounds += 1;
            cwnd = grow(cwnd, self.ssthresh);
        }
        if q <= cwnd {
            return rounds;
        }
        let odd = 2 * cwnd - 1;
        rounds + (isqrt_up(odd * odd + 8 * q) - odd).div_ceil(2) - 1
    }

    /// Returns the transfer time in halves of a nanosecond; the maximum if the RTT is unknown.
    fn transfer(&self, rounds: u128) -> u128 {
        self.rtt.map_or(u128::MAX, |rtt| rtt * (2 * rounds + 1))
    }
}

/// The line of a subflow, filled from its beginning, one window at a time.
#[derive(Clone, Copy, Default, Debug)]
struct Line {
    path: Path,
    rounds: u128,
    /// The window of this round, and the free part of it.
    cwnd: u128,
    left: u128,
    taken: u128,
}

impl Line {
    fn new(path: Path) -> Line {
        let mut line = Line { path, rounds: 0, cwnd: path.cwnd, left: path.free, taken: 0 };
        line.open();
        line
    }

    /// Begins the next round if this one is full.
    fn open(&mut self) {
        if self.left == 0 {
            self.cwnd = grow(self.cwnd, self.path.ssthresh);
            self.left = self.cwnd;
            self.rounds += 1;
        }
    }

    fn take(&mut self, segments: u128) {
        self.left -= segments;
        self.taken += segments;
        self.open();
    }
}

/// The candidates in ascending order of id, in an array that needs no allocation.
#[derive(Debug)]
struct Paths {
    all: [Path; SubflowId::MAX],
    count: usize,
}

impl Paths {
    fn iter(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().take(self.count)
    }

    /// Returns a hash of all inputs of the prediction. It does not change when assigned data is
    /// sent.
    fn mark(&self) -> u64 {
        let mut mark = 0xcbf2_9ce4_8422_2325_u64;
        for path in self.iter() {
            let ssthresh = path.ssthresh.map_or(u64::MAX, |it| it as u64);
            let rtt = path.rtt.unwrap_or(0) as u64;
            for word in [u64::from(path.id.0), rtt, path.cwnd as u64, ssthresh, path.load] {
                mark = (mark ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
            }
        }
        mark & MARK
    }
}

/// The lines of all candidates, filled together: each segment goes to the line on which it arrives
/// first.
#[derive(Debug)]
struct Lines {
    all: [Line; SubflowId::MAX],
    count: usize,
}

impl Lines {
    fn new(paths: &Paths) -> Lines {
        let mut all = [Line::default(); SubflowId::MAX];
        for (line, path) in all.iter_mut().zip(paths.iter()) {
            *line = Line::new(*path);
        }
        Lines { all, count: paths.count }
    }

    /// Places the next segment, and the segments after it in the same round of the same line, at
    /// most `most`. Returns the subflow and the number of segments.
    fn next(&mut self, most: u128) -> Option<(SubflowId, u128)> {
        let lines = self.all.iter_mut().take(self.count);
        // Ids ascend, and `min_by_key` returns the first of equal ones.
        let line = lines.min_by_key(|line| line.path.transfer(line.rounds))?;
        let segments = line.left.min(most);
        line.take(segments);
        Some((line.path.id, segments))
    }

    fn taken(&self, id: SubflowId) -> u128 {
        self.all.iter().take(self.count).find(|it| it.path.id == id).map_or(0, |it| it.taken)
    }
}

impl Sttf {
    fn new(params: &Params) -> Sttf {
        let age = Some(params.whole(&AGE)).filter(|age| *age > 0);
        Sttf {
            smoothed: params.word(&RTT) == "smoothed",
            stale: params.switch(&STALE),
            age: age.map(Span::from_millis),
            symmetric: params.switch(&SYMMETRIC),
            tolerance: params.whole(&TOLERANCE).into(),
            first: [None; SubflowId::MAX],
            settled: None,
        }
    }

    /// Records the first RTT sample of each subflow.
    fn observe(&mut self, view: &View<'_>) {
        for subflow in view.subflows {
            if let Some(first) = self.first.get_mut(subflow.id.index())
                && first.is_none()
            {
                *first = subflow.last_rtt.or(subflow.srtt);
            }
        }
    }

    /// Returns true if the first RTT samples of all `candidates` are known and nearly equal.
    fn near_symmetric(&self, candidates: SubflowSet) -> bool {
        let (mut least, mut greatest) = (Span::MAX, Span::ZERO);
        for id in candidates.iter() {
            let Some(first) = self.first.get(id.index()).copied().flatten() else { return false };
            (least, greatest) = (least.min(first), greatest.max(first));
        }
        let (least, greatest) = (u128::from(least.as_nanos()), u128::from(greatest.as_nanos()));
        greatest <= least + 1_000_000 || greatest * 100 < least * 110
    }

    /// Returns the RTT for the prediction: the present one, or the lowest one if that is stale.
    fn rtt(&self, view: &View<'_>, subflow: &SubflowView) -> Option<Span> {
        let latest = if self.smoothed { subflow.srtt } else { subflow.last_rtt.or(subflow.srtt) };
        let age = self.age.unwrap_or(subflow.rto);
        let stale = self.stale && view.now.since(subflow.rtt_at) > age;
        if stale { subflow.min_rtt.or(latest) } else { latest }
    }

    fn paths(&self, view: &View<'_>, candidates: SubflowSet) -> Paths {
        let mut paths = Paths { all: [Path::default(); SubflowId::MAX], count: 0 };
        let live = view.subflows.iter().filter(|it| candidates.contains(it.id));
        for (path, subflow) in paths.all.iter_mut().zip(live) {
            *path = Path {
                id: subflow.id,
                rtt: self.rtt(view, subflow).map(exact::nanos),
                cwnd: exact::bytes(ahead::window_segments(subflow)),
                ssthresh: subflow.ssthresh.map(|it| exact::bytes(it / ahead::mss(subflow))),
                free: exact::bytes(ahead::free_segments(subflow)),
                queued: exact::bytes(ahead::queued_segments(subflow)),
                inflight_bytes: subflow.inflight,
                load: subflow.inflight.saturating_add(subflow.queued),
            };
            paths.count += 1;
        }
        paths
    }

    /// Places all assigned data again. If the result differs from the present assignment by more
    /// than the tolerance, it becomes the plan.
    fn resched(&mut self, view: &View<'_>, paths: &Paths, out: &mut Outcome) -> Option<Decision> {
        let queued = |subflow: &SubflowView| exact::bytes(ahead::queued_segments(subflow));
        let total: u128 = view.subflows.iter().map(queued).sum();
        if total == 0 || total > MOST_PLACED {
            return None;
        }
        let mut lines = Lines::new(paths);
        let mut left = total;
        while left > 0 {
            left -= lines.next(left)?.1;
        }
        let then = |subflow: &SubflowView| lines.taken(subflow.id);
        if view.subflows.iter().all(|it| queued(it).abs_diff(then(it)) <= self.tolerance) {
            return None;
        }
        if out.explain {
            for subflow in view.subflows {
                out.note("now_segments", Some(subflow.id), queued(subflow) as f64);
                out.note("then_segments", Some(subflow.id), then(subflow) as f64);
            }
        }
        assign_anew(view, Lines::new(paths), total, out);
        (!out.plan.is_empty()).then_some(Decision::Assign { reason: Reason::Rescheduled })
    }

    /// Assigns `segment` to the subflow on which it arrives first.
    fn assign(
        &mut self,
        view: &View<'_>,
        paths: &mut Paths,
        segment: DataRange,
        out: &mut Outcome,
    ) -> Decision {
        let mut best: Option<(u128, usize)> = None;
        for (at, path) in paths.iter().enumerate() {
            let transfer = path.transfer(path.rounds(path.queued + 1));
            if path.rtt.is_some() {
                out.note("arrival_ms", Some(path.id), transfer as f64 / 2e6);
            }
            if best.is_none_or(|(least, _)| transfer < least) {
                best = Some((transfer, at));
            }
        }
        let chosen = best.and_then(|(_, at)| paths.all.get_mut(at));
        let Some((path, subflow)) = chosen.and_then(|it| Some((view.subflow(it.id)?, it))) else {
            return ahead::waits(view);
        };
        subflow.load = subflow.load.saturating_add(segment.len());
        self.settled = Some(paths.mark());
        ahead::place(view, path, segment, Reason::EarliestArrival, out)
    }
}

/// Cuts all assigned data into segments and gives them to the lines in order. The subflows hold
/// `total` segments. If the queue of a view holds more, the view is not consistent. The further
/// segments stay with their subflows, because their number has no bound.
fn assign_anew(view: &View<'_>, mut lines: Lines, total: u128, out: &mut Outcome) {
    let len = u128::from(view.connection.mss.max(1));
    let mut at = view.connection.snd_una;
    let mut left = total;
    while left > 0
        && let Some((range, _)) = view.queue.assigned_from(at)
    {
        let mut range = DataRange::new(range.start.max(at), range.end);
        // The last segment of a range may be short.
        left += 1;
        while !range.is_empty() && left > 0 {
            let most = u128::from(range.len()).div_ceil(len).min(left);
            let Some((id, segments)) = lines.next(most) else { return };
            left -= segments;
            let bytes = u64::try_from(segments * len).unwrap_or(u64::MAX).min(range.len());
            let run = DataRange::new(range.start, range.start + bytes);
            match out.plan.last_mut() {
                Some((last, owner)) if *owner == id && last.end == run.start => last.end = run.end,
                _ => out.plan.push((run, id)),
            }
            range = DataRange::new(run.end, range.end);
        }
        at = range.end;
    }
}

impl Scheduler for Sttf {
    fn needs(&self) -> Needs {
        Needs { pacing_rate: false, ..Needs::ALL }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        self.observe(view);
        let task = ahead::task(view);
        if let Task::Settled(decision @ (Decision::Send { .. } | Decision::Idle)) = task {
            return decision;
        }
        let candidates = view.candidates();
        let alone = candidates.len() < 2 || self.symmetric && self.near_symmetric(candidates);
        if !alone {
            let mut paths = self.paths(view, candidates);
            if self.settled != Some(paths.mark())
                && let Some(decision) = self.resched(view, &paths, out)
            {
                self.settled = Some(settled_after(paths, out));
                return decision;
            }
            self.settled = Some(paths.mark());
            let segment = match task {
                Task::Settled(decision) => return decision,
                Task::Place(segment) => segment,
            };
            return match ahead::beyond_window(view, segment) {
                Some(decision) => decision,
                None => self.assign(view, &mut paths, segment, out),
            };
        }
        match task {
            Task::Settled(decision) => decision,
            Task::Place(segment) => ahead::lowest_rtt_candidate(view, candidates, segment),
        }
    }

    fn on_notice(&mut self, _: &View<'_>, notice: Notice) {
        crate::state::forget(notice, &mut self.first);
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        let millis = |span: &Option<Span>| span.map(Span::as_millis_f64);
        crate::state::save_each("rtt_first.", "_ms", &self.first, write, millis);
        if let Some(settled) = self.settled {
            write("settled", settled as f64);
        }
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        if name == "settled" {
            self.settled = Some(exact::nearest(value));
            return true;
        }
        match crate::state::slot("rtt_first.", "_ms", name, &mut self.first) {
            Some(first) => {
                *first = crate::state::time(value).map(|time| time.since(plait_base::Time::ZERO));
            }
            None => return false,
        }
        true
    }
}

/// Returns the mark after the plan has been carried out.
fn settled_after(mut paths: Paths, out: &Outcome) -> u64 {
    let count = paths.count;
    for path in paths.all.iter_mut().take(count) {
        let planned = out.plan.iter().filter(|(_, id)| *id == path.id).map(|(run, _)| run.len());
        path.load = planned.fold(path.inflight_bytes, u64::saturating_add);
    }
    paths.mark()
}
