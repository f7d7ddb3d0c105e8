//! ECF: earliest completion first.

use crate::exact::{self, MILLION};
use crate::rules::{self, Task};
use crate::{
    About, Decision, Entry, Needs, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    SubflowView, View,
};
use alloc::boxed::Box;
use core::cmp::Ordering;

const BETA: Param = Param {
    name: "beta",
    kind: ParamKind::Real { min: 0.0, max: 100.0, default: 0.25 },
    unit: "",
    help: "hysteresis: while ECF waits, the slow subflow must be better by this fraction",
    clause: "ECF, CoNEXT 2017, Algorithm 1",
};
const M: Param = Param {
    name: "m",
    kind: ParamKind::Whole { min: 1, max: 4, default: 1 },
    unit: "",
    help: "factor of the RTT variation in delta: 1 formula, 2 kernel v0.95, 4 authors' text",
    clause: "ECF, CoNEXT 2017, sections 4 and 5",
};
const FLOOR: Param = Param {
    name: "floor",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "count the remaining data as at least one round (kernel); off: as printed in the paper",
    clause: "ECF, CoNEXT 2017, section 3.2 against Algorithm 1",
};
const REC_CWND: Param = Param {
    name: "rec_cwnd",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "after an idle reset, use the window from before it until the window exceeds that",
    clause: "ECF, CoNEXT 2017, section 5.2",
};
const COUNT_QUEUED: Param = Param {
    name: "count_queued",
    kind: ParamKind::Switch { default: false },
    unit: "",
    help: "add the queued data of a subflow to the remaining data",
    clause: "the port of ECF in xquic",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "ecf",
    aliases: &[],
    idea: "send no data on the slow subflow that the fast one would finish sooner",
    page: "\
F is the subflow with the lowest RTT. S is the subflow with the lowest RTT among those with room.
ECF uses F while it has room. Otherwise it estimates when F, once it has room again, would finish all
remaining data (k bytes, this segment included). If that is before S could deliver its first segment,
ECF waits for F.

    delta = m * max(rttvar_F, rttvar_S)        k_x = max(1, k / CWND_x)
    wait if  (1 + k_F) * srtt_F <  (1 + beta * waiting) * (srtt_S + delta)
        and        k_S * srtt_S >= 2 * srtt_F + delta

ECF sets `waiting` when it waits, and clears it when the first test fails. CWND is the congestion
window, or the one before the last idle reset while that is larger. With `floor=off`, k_x is
k / CWND_x, as printed. This sends the last segment of the paper's own example over the slow path.

Numbers  k_bytes, delta_ms, lhs_ms, rhs_ms (first test), lhs2_ms, rhs2_ms (second).
Paper    \"ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths\" (CoNEXT 2017).
Good at  on-off traffic and downloads over heterogeneous paths: no tail on the slow path.
Bad at   paths with loss, which the estimate ignores. At the end of the data it waits for the fast
         path even when using both paths would be slightly faster.
",
    params: &[BETA, M, FLOOR, REC_CWND, COUNT_QUEUED],
    state: &[("waiting", "1 after a wait, until the first test fails")],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |params| Box::new(Ecf::new(params)),
};

/// A change of a congestion window, the input of [`rec_cwnd_after`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowChange {
    /// An idle period has reset the window; it was `before` bytes.
    IdleReset {
        /// The window before the reset.
        before: u64,
    },
    /// The window has become `cwnd` bytes for any other reason.
    Moved {
        /// The window now.
        cwnd: u64,
    },
}

/// Returns the recorded window after a change of the congestion window (ECF, section 5.2). An idle
/// reset records the window before it if that is larger than the record. Growth above the record
/// clears it. The core keeps the record. Congestion control does not use it, and no more than the
/// congestion window is sent.
#[must_use]
pub const fn rec_cwnd_after(rec_cwnd: u64, change: WindowChange) -> u64 {
    match change {
        WindowChange::IdleReset { before } if before > rec_cwnd => before,
        WindowChange::Moved { cwnd } if cwnd > rec_cwnd => 0,
        _ => rec_cwnd,
    }
}

/// The scheduler.
#[derive(Debug)]
struct Ecf {
    /// In millionths.
    beta: u64,
    m: u64,
    floor: bool,
    rec_cwnd: bool,
    count_queued: bool,
    waiting: bool,
}

/// The bytes left and the window in bytes. Their ratio is the number of rounds that a subflow
/// needs.
struct Rounds {
    left: u128,
    window: u128,
}

impl Ecf {
    fn new(params: &Params) -> Ecf {
        Ecf {
            beta: params.millionths(&BETA),
            m: params.whole(&M),
            floor: params.switch(&FLOOR),
            rec_cwnd: params.switch(&REC_CWND),
            count_queued: params.switch(&COUNT_QUEUED),
            waiting: false,
        }
    }

    fn rounds(&self, view: &View<'_>, subflow: &SubflowView) -> Rounds {
        let recorded = if self.rec_cwnd { subflow.rec_cwnd } else { 0 };
        let window = exact::bytes(subflow.cwnd.max(recorded)).max(1);
        let queued = if self.count_queued { subflow.queued } else { 0 };
        let left = exact::bytes(view.connection.unsent.saturating_add(queued));
        Rounds { left: if self.floor { left.max(window) } else { left }, window }
    }

    /// Returns true if the scheduler waits for `f` although `s` has room (Algorithm 1).
    fn waits(
        &mut self,
        view: &View<'_>,
        f: &SubflowView,
        s: &SubflowView,
        out: &mut Outcome,
    ) -> bool {
        let (fast, slow) = (exact::nanos(f.srtt_or_max()), exact::nanos(s.srtt_or_max()));
        let rttvar = f.rttvar.max(s.rttvar);
        let delta = u128::from(self.m) * u128::from(rttvar.as_nanos().min(1 << 60));
        let patience = MILLION + if self.waiting { self.beta } else { 0 };
        let (on_f, on_s) = (self.rounds(view, f), self.rounds(view, s));
        if out.explain {
            let lhs = (on_f.left as f64 / on_f.window as f64 + 1.0) * fast as f64;
            let rhs = (slow + delta) as f64 * (patience as f64 / MILLION as f64);
            out.note("k_bytes", None, view.connection.unsent as f64);
            out.note("delta_ms", None, delta as f64 / 1e6);
            out.note("lhs_ms", Some(f.id), lhs / 1e6);
            out.note("rhs_ms", Some(s.id), rhs / 1e6);
        }
        let finish = (on_f.window + on_f.left) * fast;
        let limit = (slow + delta) * on_f.window;
        if exact::compare(finish, MILLION.into(), limit, patience.into()) != Ordering::Less {
            self.waiting = false;
            return false;
        }
        if out.explain {
            let lhs = on_s.left as f64 / on_s.window as f64 * slow as f64;
            out.note("lhs2_ms", Some(s.id), lhs / 1e6);
            out.note("rhs2_ms", Some(f.id), (2 * fast + delta) as f64 / 1e6);
        }
        // If the second test fails, `waiting` does not change.
        let worth = on_s.left * slow >= (2 * fast + delta) * on_s.window;
        self.waiting |= worth;
        worth
    }
}

impl Scheduler for Ecf {
    fn needs(&self) -> Needs {
        Needs::LEAST
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
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
        if self.waits(view, f, s, out) {
            return Decision::Wait { on: Some(f.id), reason: Reason::FastFinishesSooner };
        }
        rules::new_on(view, s.id, segment, Reason::SlowFinishesSooner)
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        write("waiting", f64::from(u8::from(self.waiting)));
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        if name == "waiting" {
            self.waiting = value > 0.0;
        }
        name == "waiting"
    }
}
