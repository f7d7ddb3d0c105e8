//! Bufferbloat mitigation: a cap on the bytes in flight of a subflow.

use crate::exact::{self, MILLION};
use crate::rules;
use crate::state;
use crate::{
    About, Decision, Decorator, Effect, Needs, Notice, Outcome, Param, ParamKind, Params,
    Scheduler, SubflowView, View, WhenFull,
};
use alloc::boxed::Box;
use plait_base::{Span, SubflowId, Time};

const LAMBDA: Param = Param {
    name: "lambda",
    kind: ParamKind::Real { min: 0.0, max: 100.0, default: 3.0 },
    unit: "",
    help: "tolerance: the smoothed RTT may be this many times its lowest value",
    clause: "CSWS 2014, section 3.4",
};
const ESTIMATE: Param = Param {
    name: "estimate",
    kind: ParamKind::Word { words: &["formula", "rate"], default: "formula" },
    unit: "",
    help: "factor of lambda * min_srtt: cwnd / srtt, or the delivery rate",
    clause: "CSWS 2014, section 3.4 has the formula only",
};
const WINDOW: Param = Param {
    name: "window",
    kind: ParamKind::Real { min: 0.0, max: 3_600.0, default: 0.0 },
    unit: "s",
    help: "lifetime of a lowest RTT; 0 is the life of the connection",
    clause: "left open in CSWS 2014, section 3.4",
};
const FLOOR: Param = Param {
    name: "floor",
    kind: ParamKind::Whole { min: 1, max: 100, default: 2 },
    unit: "segments",
    help: "minimum cap",
    clause: "left open in CSWS 2014, section 3.4",
};

/// The decorator's entry in the registry.
pub(crate) const ENTRY: Decorator = Decorator {
    about: About {
    name: "bm",
    aliases: &[],
    idea: "cap the bytes in flight of a subflow if a standing queue has raised its RTT",
    page: "\
The smoothed RTT of each subflow is compared with its lowest value so far. If it exceeds lambda times
that value, a queue stands on the path, and the subflow gets a cap.

    limit = lambda * min_srtt / srtt * cwnd        estimate=formula, as in the paper
          = lambda * min_srtt * delivery rate      estimate=rate
    cap   = max(2 segments, min(cwnd, limit))      whole segments

A subflow has room while  inflight + queued + len <= min(cwnd, cap).  The congestion window itself
does not change. While it is above the cap, the sender does not count as limited by it, so it stops
growing. Otherwise the limit of the formula would grow with it without bound.

With the formula, the RTT settles at lambda times the lowest RTT only if cwnd stops at lambda
bandwidth-delay products (BDP). In slow start without loss, cwnd exceeds that before the RTT shows
it. The RTT then settles at sqrt(lambda * cwnd / BDP) times the lowest RTT. The delivery rate has no
such memory: it is the bytes in flight when a segment was sent, divided by its RTT sample.

The mean smoothed RTT was measured over 20 Mbit/s, 30 ms and a queue of 5 MB (cubic). As a multiple
of the lowest smoothed RTT it is 3.0 with `--ssthresh` at one BDP, 3.0 with estimate=rate from slow
start, 4.3 with the formula from slow start, and 60 without +bm. The link is full in all of them.

Numbers  limit_segments, cap_segments, of each subflow that has a limit.
Paper    \"Experimental Evaluation of Multipath TCP Schedulers\" (CSWS 2014), section 3.4. It leaves
         open the lifetime of the lowest RTT, the floor, and whether cwnd is cut.
Good at  deep queues: it lowers the delay and the data in buffers.
Bad at   competition with flows that fill the queue: the cap limits its share. After a change of
         route, an old lowest RTT throttles the subflow for ever, unless `window` is set.
",
    params: &[LAMBDA, ESTIMATE, WINDOW, FLOOR],
    state: &[
        ("bm_min_srtt.ID_ms", "lowest smoothed RTT of the subflow in the current half of `window`"),
        ("bm_min_before.ID_ms", "the same in the half before it"),
        ("bm_half_since.ID_ms", "start of the current half of `window`"),
    ],
    },
    wrap: |base, params| Box::new(Bm::new(base, params)),
};

/// Larger spans in ns (13 days) and byte counts (a petabyte) are cut to this value. The product of
/// two of them and a parameter in millionths then fits in 128 bits.
const LIMIT: u128 = 1 << 50;

/// The decorator.
#[derive(Debug)]
struct Bm {
    base: Box<dyn Scheduler>,
    /// In millionths.
    lambda: u64,
    by_rate: bool,
    /// Half of the time for which a lowest RTT counts; zero means for ever.
    half: Span,
    floor: u64,
    least: [Least; SubflowId::MAX],
}

/// The lowest smoothed RTT of a subflow.
#[derive(Clone, Copy, Default, Debug)]
struct Least {
    now: Option<Span>,
    before: Option<Span>,
    since: Option<Time>,
}

impl Least {
    /// Takes in `srtt`. `half` is half of the time for which a value counts; zero means for ever.
    fn update(&mut self, now: Time, srtt: Span, half: Span) {
        if half > Span::ZERO {
            let age = now.since(*self.since.get_or_insert(now));
            if age >= half {
                self.before = if age < half.times(2) { self.now } else { None };
                self.now = None;
                self.since = Some(now);
            }
        }
        self.now = Some(self.now.map_or(srtt, |least| least.min(srtt)));
    }

    fn value(self) -> Option<Span> {
        match (self.now, self.before) {
            (Some(now), Some(before)) => Some(now.min(before)),
            (now, before) => now.or(before),
        }
    }
}

impl Bm {
    fn new(base: Box<dyn Scheduler>, params: &Params) -> Bm {
        Bm {
            base,
            lambda: params.millionths(&LAMBDA),
            by_rate: params.word(&ESTIMATE) == "rate",
            // Millionths of a second are thousands of nanoseconds.
            half: Span::from_micros(params.millionths(&WINDOW)).over(2),
            floor: params.whole(&FLOOR),
            least: [Least::default(); SubflowId::MAX],
        }
    }

    /// Returns the cap of `subflow` in bytes; `u64::MAX` if the window does not exceed it.
    fn cap(&mut self, now: Time, subflow: &SubflowView, out: &mut Outcome) -> u64 {
        let Some(srtt) = subflow.srtt else { return u64::MAX };
        let Some(least) = self.least.get_mut(subflow.id.index()) else { return u64::MAX };
        least.update(now, srtt, self.half);
        let Some(min) = least.value() else { return u64::MAX };
        let (min, srtt) = (exact::nanos(min).min(LIMIT), exact::nanos(srtt).min(LIMIT));
        let mss = u128::from(subflow.mss.max(1));
        let scale = u128::from(MILLION);
        let (above, below) = if self.by_rate {
            if subflow.latest.delivery_rate == 0 {
                return u64::MAX;
            }
            (u128::from(subflow.latest.delivery_rate).min(LIMIT), scale * 1_000_000_000)
        } else {
            (u128::from(subflow.cwnd).min(LIMIT), scale * srtt)
        };
        let product = u128::from(self.lambda) * min * above;
        let segments = product / (below * mss);
        let cwnd = u128::from(subflow.cwnd);
        let cap = (segments * mss).min(cwnd).max(u128::from(self.floor) * mss);
        if out.explain {
            let raw = product as f64 / below as f64 / mss as f64;
            out.note("limit_segments", Some(subflow.id), raw);
            out.note("cap_segments", Some(subflow.id), cap as f64 / mss as f64);
        }
        if cap >= cwnd { u64::MAX } else { cap as u64 }
    }
}

impl Scheduler for Bm {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        // The cap is calculated again for each segment.
        let segment = rules::segment_len(view);
        let mut changed = false;
        // A view has at most eight subflows. Any further one keeps its cap.
        let mut caps = [u64::MAX; SubflowId::MAX];
        for (subflow, slot) in view.subflows.iter().zip(&mut caps) {
            *slot = self.cap(view.now, subflow, out);
            if *slot != subflow.cap {
                changed = true;
                let bytes = Some(*slot).filter(|cap| *cap != u64::MAX);
                out.effects.push(Effect::Cap { subflow: subflow.id, bytes });
            }
        }
        let count = view.subflows.len();
        let (Some(first), true) = (view.subflows.first(), changed && count <= SubflowId::MAX)
        else {
            return self.base.schedule(view, out).one_segment(segment);
        };
        // The core applies the caps after this decision, but the decision must already respect
        // them.
        let mut subflows = [*first; SubflowId::MAX];
        for ((copy, subflow), cap) in subflows.iter_mut().zip(view.subflows).zip(caps) {
            *copy = SubflowView { cap, ..*subflow };
        }
        let subflows = subflows.get(..count).unwrap_or_default();
        self.base.schedule(&View { subflows, ..*view }, out).one_segment(segment)
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        state::forget(notice, &mut self.least);
        self.base.on_notice(view, notice);
    }

    fn needs(&self) -> Needs {
        Needs { when_full: WhenFull::Always, ..self.base.needs() }
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        self.base.save_state(write);
        let millis = |span: Option<Span>| span.map(Span::as_millis_f64);
        state::save_each("bm_min_srtt.", "_ms", &self.least, write, |it| millis(it.now));
        state::save_each("bm_min_before.", "_ms", &self.least, write, |it| millis(it.before));
        state::save_each("bm_half_since.", "_ms", &self.least, write, |it| {
            it.since.map(state::millis)
        });
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        let time = state::time(value);
        let span = time.map(|time| time.since(Time::ZERO));
        if let Some(least) = state::slot("bm_min_srtt.", "_ms", name, &mut self.least) {
            least.now = span;
        } else if let Some(least) = state::slot("bm_min_before.", "_ms", name, &mut self.least) {
            least.before = span;
        } else if let Some(least) = state::slot("bm_half_since.", "_ms", name, &mut self.least) {
            least.since = time;
        } else {
            return self.base.load_state(name, value);
        }
        true
    }
}
