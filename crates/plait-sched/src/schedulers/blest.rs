//! BLEST: blocking estimation.

use crate::exact::{self, MILLION};
use crate::rules::{self, Task};
use crate::state::BySubflow;
use crate::{
    About, Decision, Entry, Needs, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    SubflowView, View, WhenFull,
};
use alloc::boxed::Box;
use core::cmp::Ordering;
use plait_base::{DataRange, Slim, Span, Time};

const MODE: Param = Param {
    name: "mode",
    kind: ParamKind::Word { words: &["code", "paper"], default: "code" },
    unit: "",
    help: "the estimate: as in the authors' kernel code, or as printed in the paper",
    clause: "ToN, section IV.A, Algorithm 1",
};
const LAMBDA: Param = Param {
    name: "lambda",
    kind: ParamKind::Real { min: 0.0, max: 10.0, default: 0.0 },
    unit: "",
    help: "initial correction factor; the first step limits it to 1 to 1.3 (code) or 0.1 to 10 \
           (paper); 0 is the default of the mode: 1.2 (code), 1 (paper)",
    clause: "ToN, section IV.A",
};
const STEP: Param = Param {
    name: "step",
    kind: ParamKind::Real { min: 0.0, max: 10.0, default: 0.01 },
    unit: "",
    help: "change of the correction factor per RTT in paper mode",
    clause: "ToN, section IV.A (gives no value)",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "blest",
    aliases: &[],
    idea: "skip the slow subflow if it would block the send window for the fast one",
    page: "\
F is the subflow with the lowest RTT. S is the subflow with the lowest RTT among those with room.
BLEST uses F while it has room. Otherwise it estimates how much F could send while one segment is
under way on S. It uses S only if that amount and the data held by S fit into the send window SW.
If they do not fit, it waits for F.

    paper mode   r  = srtt_S / srtt_F
                 X  = mss_F * (cwnd_F + (r - 1) / 2) * r
                 S if  X * lambda <= SW - mss_S * (inflight_S + 1)
    code mode    linger = max(srtt_S, min_S + (max_S - min_S) * (inflight_S + 1) / cwnd_S)
                 n  = floor(linger / ((min_F + max_F) / 2)) + 1
                 P  = cwnd_F * (2^n - 1)                              while ssthresh_F is infinite
                    = (max(cwnd_F, ssthresh_F + 1) + (n - 1) / 2) * n otherwise
                 S if  P * mss_F * lambda <= SW - (data held by S + this segment)

Each step of lambda raises it if the send window has blocked since the last step, and lowers it if
not. In code mode the steps are 0.04 up and 0.01 down within 1.0 to 1.3, at most once per lowest srtt
of S. In paper mode they are `step` within 0.1 to 10, at most once per srtt_F.

Numbers  rtts, x_bytes (paper); linger_ms, rounds, packets (code); lambda, x_lambda_bytes,
         room_bytes (both).
Paper    \"Low-Latency Scheduling in MPTCP\" (IEEE/ACM ToN), section IV.A.
Good at  heterogeneous paths with a small receive window; short bursts in slow start (code mode
         expects the window of F to double each RTT, and therefore often waits for F).
Bad at   large windows in paper mode, in which it decides like minrtt. It ignores how much data is
         left to send.
",
    params: &[MODE, LAMBDA, STEP],
    state: &[
        ("lambda_milli", "correction factor times 1000"),
        ("blocked", "1 if the send window has blocked since the last step of lambda"),
        ("last_update_ms", "time of the last step of lambda; absent means the start of the connection"),
        ("min_srtt.ID_ms", "lowest smoothed RTT of the subflow"),
        ("max_srtt.ID_ms", "highest smoothed RTT of the subflow"),
    ],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |params| Box::new(Blest::new(params)),
};

/// The estimate in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Code,
    Paper,
}

/// The correction factor, in millionths.
#[derive(Debug)]
struct Lambda {
    value: u64,
    up: u64,
    down: u64,
    range: (u64, u64),
    /// The send window has blocked since the last step.
    blocked: bool,
    /// Time of the last step; `None` is the start of the connection.
    last: Option<Time>,
}

impl Lambda {
    fn new(mode: Mode, params: &Params) -> Lambda {
        let (start, up, down, range) = match mode {
            Mode::Code => (1_200_000, 40_000, 10_000, (1_000_000, 1_300_000)),
            Mode::Paper => {
                let step = params.millionths(&STEP);
                (MILLION, step, step, (100_000, 10_000_000))
            }
        };
        let given = Some(params.millionths(&LAMBDA)).filter(|given| *given > 0);
        Lambda { value: given.unwrap_or(start), up, down, range, blocked: false, last: None }
    }

    /// Makes one step if the last one is at least `period` ago.
    fn update(&mut self, view: &View<'_>, period: Span) {
        let last = self.last.unwrap_or(view.connection.start);
        if view.now.since(last) < period {
            return;
        }
        let moved = if self.blocked {
            self.value.saturating_add(self.up)
        } else {
            self.value.saturating_sub(self.down)
        };
        self.value = moved.clamp(self.range.0, self.range.1);
        self.blocked = false;
        self.last = Some(view.now);
    }
}

/// Lowest and highest smoothed RTT of a subflow.
#[derive(Clone, Copy, Default, Debug)]
struct Extremes {
    min: Slim<Span>,
    max: Slim<Span>,
}

/// The scheduler.
#[derive(Debug)]
struct Blest {
    mode: Mode,
    lambda: Lambda,
    extremes: BySubflow<Extremes>,
}

impl Blest {
    fn new(params: &Params) -> Blest {
        let mode = if params.word(&MODE) == "paper" { Mode::Paper } else { Mode::Code };
        Blest { mode, lambda: Lambda::new(mode, params), extremes: BySubflow::new() }
    }

    /// Updates the extremes with the smoothed RTTs of the live subflows.
    fn observe(&mut self, view: &View<'_>) {
        for subflow in view.subflows.iter().filter(|subflow| subflow.alive()) {
            let Some(srtt) = subflow.srtt else { continue };
            let known = self.extremes.of(subflow.id);
            known.min = Slim::some(known.min.value().map_or(srtt, |min| min.min(srtt)));
            known.max = Slim::some(known.max.value().map_or(srtt, |max| max.max(srtt)));
        }
    }

    /// Returns the lowest and highest smoothed RTT of a subflow.
    fn extremes(&self, subflow: &SubflowView) -> (Span, Span) {
        let known = self.extremes.find(subflow.id).copied().unwrap_or_default();
        let or_now = |it: Slim<Span>| it.value().unwrap_or(subflow.srtt_or_max());
        (or_now(known.min), or_now(known.max))
    }

    /// Applies Algorithm 1 of the paper. Let f and s be the RTTs, C the window of F in bytes and m
    /// its segment size. Then X = (2Cf + m(s - f)) s / 2f^2, and the comparison needs no division.
    fn fits_paper(
        &self,
        view: &View<'_>,
        f: &SubflowView,
        s: &SubflowView,
        out: &mut Outcome,
    ) -> bool {
        let (fast, slow) = (exact::nanos(f.srtt_or_max()), exact::nanos(s.srtt_or_max()));
        let mss = u128::from(f.mss);
        let window = 2 * exact::bytes(f.cwnd) * fast + mss * slow.saturating_sub(fast);
        let held = u128::from(s.inflight) + u128::from(s.mss);
        let room = i128::from(send_window(view)) - held as i128;
        let lambda = u128::from(self.lambda.value);
        if out.explain {
            let x = window as f64 * slow as f64 / (2.0 * fast as f64 * fast as f64);
            out.note("rtts", None, slow as f64 / fast as f64);
            out.note("x_bytes", Some(f.id), x);
            self.note(x, room as f64, out);
        }
        u128::try_from(room).is_ok_and(|room| {
            let (left, right) = (slow * lambda, fast * 2 * u128::from(MILLION));
            exact::compare(window, left, room * fast, right) != Ordering::Greater
        })
    }

    /// Applies the rule of the kernel code.
    fn fits_code(
        &self,
        view: &View<'_>,
        segment: DataRange,
        f: &SubflowView,
        s: &SubflowView,
        out: &mut Outcome,
    ) -> bool {
        let linger = self.linger(s);
        let (min, max) = self.extremes(f);
        let rounds = exact::quotient(2 * linger, exact::nanos(min) + exact::nanos(max)) + 1;
        let packets = packets_during(f, rounds);
        let held =
            [s.outstanding, s.queued, segment.len()].into_iter().fold(0, u64::saturating_add);
        let room = u128::from(send_window(view).saturating_sub(held));
        let bytes = packets.saturating_mul(u128::from(f.mss));
        if out.explain {
            out.note("linger_ms", Some(s.id), linger as f64 / 1e6);
            out.note("rounds", Some(f.id), rounds as f64);
            out.note("packets", Some(f.id), packets as f64);
            self.note(bytes as f64, room as f64, out);
        }
        // If the left side saturates, it is above the right side, which cannot saturate.
        bytes.saturating_mul(u128::from(self.lambda.value)) <= room * u128::from(MILLION)
    }

    /// Returns how long a segment sent now stays on `s`, in ns: its smoothed RTT, or more if its
    /// window is nearly full.
    fn linger(&self, s: &SubflowView) -> u128 {
        let (min, max) = self.extremes(s);
        let (min, max) = (exact::nanos(min), exact::nanos(max));
        let mss = u64::from(s.mss.max(1));
        let inflight = u128::from(s.inflight.div_ceil(mss)) + 1;
        let cwnd = u128::from(s.cwnd / mss);
        let filled = if inflight >= cwnd {
            max
        } else {
            min + exact::quotient(max.saturating_sub(min) * inflight, cwnd)
        };
        exact::nanos(s.srtt_or_max()).max(filled)
    }

    fn note(&self, x: f64, room: f64, out: &mut Outcome) {
        let lambda = self.lambda.value as f64;
        out.note("lambda", None, lambda / MILLION as f64);
        out.note("x_lambda_bytes", None, x * lambda / MILLION as f64);
        out.note("room_bytes", None, room);
    }
}

/// Returns the send window from the left edge. The fast subflow's bytes in flight are part of the
/// estimate, so they are not subtracted.
fn send_window(view: &View<'_>) -> u64 {
    view.connection.wnd_end.saturating_sub(view.connection.snd_una)
}

/// Returns the segments that a subflow sends in the given number of RTTs if only its window limits
/// it. With an infinite threshold the window doubles each RTT; otherwise it grows by one segment.
fn packets_during(f: &SubflowView, rounds: u128) -> u128 {
    let mss = u64::from(f.mss.max(1));
    let cwnd = u128::from(f.cwnd / mss);
    match f.ssthresh {
        None => cwnd.saturating_mul((1 << rounds.min(16)) - 1),
        Some(ssthresh) => {
            let first = cwnd.max(u128::from(ssthresh / mss) + 1);
            first.saturating_add((rounds - 1) / 2).saturating_mul(rounds)
        }
    }
}

impl Scheduler for Blest {
    fn needs(&self) -> Needs {
        // Each call updates the lowest and highest RTTs.
        Needs { when_full: WhenFull::Anew, ..Needs::LEAST }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        self.observe(view);
        let segment = match rules::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        let Some((f, s)) = rules::fast_and_usable(view, segment.len()) else {
            return rules::none_usable(view);
        };
        if s.id == f.id {
            return rules::run_on(view, f, segment, Reason::FastHasRoom);
        }
        let fits = match self.mode {
            Mode::Code => {
                self.lambda.update(view, self.extremes(s).0);
                self.fits_code(view, segment, f, s, out)
            }
            Mode::Paper => {
                self.lambda.update(view, f.srtt_or_max());
                self.fits_paper(view, f, s, out)
            }
        };
        if fits {
            rules::new_on(view, s.id, segment, Reason::SlowFitsWindow)
        } else {
            Decision::Wait { on: Some(f.id), reason: Reason::SlowBlocksWindow }
        }
    }

    fn on_notice(&mut self, _: &View<'_>, notice: Notice) {
        if notice == Notice::WindowLimited {
            self.lambda.blocked = true;
        }
        crate::state::forget(notice, self.extremes.all_mut());
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        write("lambda_milli", self.lambda.value as f64 / 1e3);
        write("blocked", f64::from(u8::from(self.lambda.blocked)));
        if let Some(last) = self.lambda.last {
            write("last_update_ms", crate::state::millis(last));
        }
        let millis = |span: Slim<Span>| span.value().map(Span::as_millis_f64);
        let known = self.extremes.all();
        crate::state::save_each("min_srtt.", "_ms", known, write, |it| millis(it.min));
        crate::state::save_each("max_srtt.", "_ms", known, write, |it| millis(it.max));
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        match name {
            "lambda_milli" => self.lambda.value = exact::nearest(value * 1e3),
            "blocked" => self.lambda.blocked = value > 0.0,
            "last_update_ms" => self.lambda.last = crate::state::time(value),
            _ => {
                let span = crate::state::time(value).map(|time| time.since(Time::ZERO));
                if let Some(known) = self.extremes.named("min_srtt.", "_ms", name) {
                    known.min = span.into();
                } else if let Some(known) = self.extremes.named("max_srtt.", "_ms", name) {
                    known.max = span.into();
                } else {
                    return false;
                }
            }
        }
        true
    }
}
