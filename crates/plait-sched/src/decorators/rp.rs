//! Opportunistic retransmission and penalisation.

use crate::exact;
use crate::rules::{self, Place};
use crate::{
    About, CaState, Decision, Decorator, Effect, Needs, Notice, Outcome, Param, ParamKind, Params,
    Reason, Scheduler, SentRange, SubflowView, View, What, WhenFull,
};
use alloc::boxed::Box;
use plait_base::{DataRange, SubflowId, SubflowSet, Time};

const MODE: Param = Param {
    name: "mode",
    kind: ParamKind::Word { words: &["both", "retransmit", "off"], default: "both" },
    unit: "",
    help: "retransmit and penalise, retransmit only, or neither",
    clause: "CSWS 2014, section 3.3",
};
const STRICT: Param = Param {
    name: "strict",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "retransmit only if the holder is over 4 times slower or has a window of 4 segments or less (kernel)",
    clause: "CSWS 2014, section 3.3 has no such limit",
};
const HOLDERS: Param = Param {
    name: "holders",
    kind: ParamKind::Word { words: &["first", "every"], default: "first" },
    unit: "",
    help: "penalise the first subflow that holds the head, or every one of them",
    clause: "CSWS 2014, section 3.3 has one; BLEST's kernel v0.95 has every one",
};

/// The decorator's entry in the registry.
pub(crate) const ENTRY: Decorator = Decorator {
    about: About {
    name: "rp",
    aliases: &[],
    idea: "when the send window stalls, resend the blocking data on a free subflow and penalise its holder",
    page: "\
Let s be a subflow with room while the next segment lies beyond the send window. The oldest
unacknowledged range H then blocks all subflows. If H is assigned and not sent, the subflow to which
it is assigned counts as its carrier.

    penalise    the first other subflow that carried H, if it is slower than s and Open:
                cwnd = cwnd / 2 in whole segments, and ssthresh / 2 if it was reached; once per srtt_s;
                with `holders=every`, each such subflow that is slower and Open
    retransmit  H on s, unless s has carried it; with `strict`, only if 4 * srtt_s < srtt of the
                holder, or the holder's window is 4 segments or less. If its holder has not sent H,
                H is taken from the holder's queue and sent on s alone

The same rules apply if all data is sent or assigned and the application waits for room in the send
buffer. There is then no penalty while the send buffer has any free byte.

Numbers  four_srtt_ms (of s), holder_srtt_ms.
Papers   \"Experimental Evaluation of Multipath TCP Schedulers\" (CSWS 2014), section 3.3, after
         \"How Hard Can It Be? Designing and Implementing a Deployable Multipath TCP\" (NSDI 2012).
Good at  small receive windows over heterogeneous paths.
Bad at   avoiding stalls: it acts only after one, and a penalised path stays slow for long. The authors
         of minrtt and ECF ran them with it. Use mode=retransmit with BLEST.
",
    params: &[MODE, STRICT, HOLDERS],
    state: &[("last_pen.ID_ms", "time of the last penalty for the free subflow ID")],
    },
    wrap: |base, params| Box::new(Rp::new(base, params)),
};

/// The decorator.
#[derive(Debug)]
struct Rp {
    base: Box<dyn Scheduler>,
    retransmit: bool,
    penalise: bool,
    strict: bool,
    every: bool,
    /// Time of the last penalty that was made for each free subflow, by id.
    last_pen: [Option<Time>; SubflowId::MAX],
}

/// The segment that blocks the window, and the subflows that hold it.
struct Head {
    range: DataRange,
    carried: SubflowSet,
}

impl Rp {
    fn new(base: Box<dyn Scheduler>, params: &Params) -> Rp {
        let mode = params.word(&MODE);
        Rp {
            base,
            retransmit: mode != "off",
            penalise: mode == "both",
            strict: params.switch(&STRICT),
            every: params.word(&HOLDERS) == "every",
            last_pen: [None; SubflowId::MAX],
        }
    }

    /// Penalises the holders of the head and retransmits the head on `s`, as far as the rules
    /// allow.
    fn relieve(
        &mut self,
        view: &View<'_>,
        s: &SubflowView,
        penal: bool,
        out: &mut Outcome,
    ) -> Option<Decision> {
        let head = head(view)?;
        let mut cut = SubflowSet::EMPTY;
        if self.penalise
            && (penal || view.connection.sndbuf_free == 0)
            && self.may_penalise(view, s)
        {
            for holder in holders(view, s, &head).take(if self.every { usize::MAX } else { 1 }) {
                if s.srtt_or_max() < holder.srtt_or_max() && holder.ca == CaState::Open {
                    out.effects.push(penalty(holder));
                    cut.insert(holder.id);
                }
            }
        }
        if let (false, Some(last)) = (cut.is_empty(), self.last_pen.get_mut(s.id.index())) {
            *last = Some(view.now);
        }
        if head.carried.contains(s.id)
            || !s.usable(head.range.len(), view.tsq)
            || !self.worth(view, s, &head, cut, out)
        {
            return None;
        }
        let (subflow, what, grant) = (s.id, What::OppRetx(head.range), head.range.len());
        Some(Decision::Send { subflow, what, grant, reason: Reason::Opportunistic })
    }

    /// Returns true if the holders of the head are slow enough, or their windows small enough, for
    /// a retransmission on `s`. For a subflow in `penalised` the window after the penalty counts.
    fn worth(
        &self,
        view: &View<'_>,
        s: &SubflowView,
        head: &Head,
        penalised: SubflowSet,
        out: &mut Outcome,
    ) -> bool {
        let mut any = false;
        for holder in holders(view, s, head) {
            let cwnd = if penalised.contains(holder.id) { halved(holder) } else { holder.cwnd };
            if !self.strict || cwnd <= 4 * u64::from(holder.mss) {
                return true;
            }
            let four = 4 * exact::nanos(s.srtt_or_max());
            let other = exact::nanos(holder.srtt_or_max());
            out.note("four_srtt_ms", Some(s.id), four as f64 / 1e6);
            out.note("holder_srtt_ms", Some(holder.id), other as f64 / 1e6);
            if four >= other {
                return false;
            }
            any = true;
        }
        any
    }

    /// Returns true if the last penalty for `s` is at least one RTT of `s` ago.
    fn may_penalise(&self, view: &View<'_>, s: &SubflowView) -> bool {
        match self.last_pen.get(s.id.index()).copied().flatten() {
            Some(last) => view.now.since(last) >= s.srtt_or_max(),
            None => true,
        }
    }
}

/// Returns the first segment that is sent or assigned, and not DATA_ACKed. Data in the queue of a
/// subflow is included, because the kernel's rule counts it as sent.
fn head(view: &View<'_>) -> Option<Head> {
    let una = view.connection.snd_una;
    let sent = view.queue.sent_from(una).map(|SentRange { range, carried, .. }| (range, carried));
    let waits = view.queue.assigned_from(una).map(|(range, to)| (range, SubflowSet::one(to)));
    let before = |a: &(DataRange, SubflowSet), b: &(DataRange, SubflowSet)| a.0.start < b.0.start;
    let (range, carried) = match (sent, waits) {
        (Some(sent), Some(waits)) => {
            if before(&waits, &sent) {
                waits
            } else {
                sent
            }
        }
        (sent, waits) => sent.or(waits)?,
    };
    let end = range.end.min(range.start.saturating_add(rules::segment_len(view)));
    Some(Head { range: DataRange::new(range.start, end), carried })
}

/// Returns true if `decision` shows that all data is sent or assigned.
fn is_all_given(view: &View<'_>, decision: Decision) -> bool {
    match decision {
        Decision::Idle => true,
        Decision::Wait { reason: Reason::AssignedBusy, .. } => view.connection.unsent == 0,
        _ => false,
    }
}

/// Returns the subflows other than `s` that have carried the head, in ascending order of id.
fn holders<'a>(
    view: &View<'a>,
    s: &SubflowView,
    head: &Head,
) -> impl Iterator<Item = &'a SubflowView> {
    let (carried, free) = (head.carried, s.id);
    view.subflows.iter().filter(move |t| t.id != free && carried.contains(t.id))
}

/// Returns half of a window in whole segments, at least one. The kernel counts windows in segments,
/// so 9 become 4.
fn halved(subflow: &SubflowView) -> u64 {
    halved_segments(subflow.cwnd, subflow, 1)
}

fn halved_segments(bytes: u64, subflow: &SubflowView, least: u64) -> u64 {
    let mss = u64::from(subflow.mss).max(1);
    (bytes / mss / 2).max(least) * mss
}

/// Returns the penalty. The threshold does not change if slow start has not reached it.
fn penalty(holder: &SubflowView) -> Effect {
    let ssthresh = holder.ssthresh.map(|ssthresh| {
        if holder.cwnd >= ssthresh { halved_segments(ssthresh, holder, 2) } else { ssthresh }
    });
    Effect::Penalise { subflow: holder.id, cwnd: halved(holder), ssthresh }
}

impl Scheduler for Rp {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let decision = self.base.schedule(view, out);
        if !self.retransmit || view.subflows.len() < 2 {
            return decision;
        }
        let all_given = is_all_given(view, decision);
        let free = match decision {
            Decision::Wait { on: Some(on), reason: Reason::SendWindow } => view.subflow(on),
            _ if all_given && view.connection.app_blocked => {
                match rules::lowest_rtt(view, rules::segment_len(view), SubflowSet::EMPTY) {
                    Place::On(subflow) | Place::Again(subflow) => Some(subflow),
                    Place::Untried(_) | Place::None => None,
                }
            }
            _ => None,
        };
        // The base may wait for a subflow that is not a candidate: `linux` has its own test.
        let free = free.filter(|s| view.candidates().contains(s.id));
        let penal = !all_given;
        free.and_then(|s| self.relieve(view, s, penal, out)).unwrap_or(decision)
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        crate::state::forget(notice, &mut self.last_pen);
        self.base.on_notice(view, notice);
    }

    fn needs(&self) -> Needs {
        Needs { when_full: WhenFull::Always, ..self.base.needs() }
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        self.base.save_state(write);
        crate::state::save_each("last_pen.", "_ms", &self.last_pen, write, |last| {
            last.map(crate::state::millis)
        });
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        match crate::state::slot("last_pen.", "_ms", name, &mut self.last_pen) {
            Some(last) => {
                *last = crate::state::time(value);
                true
            }
            None => self.base.load_state(name, value),
        }
    }
}
