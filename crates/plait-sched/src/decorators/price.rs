//! Goals for subflows with a cost or a quota: when they carry data, and how much of it may be copies.

mod backlog;
mod quota;

use crate::exact;
use crate::{
    About, Decision, Decorator, Needs, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
};
use crate::{SubflowView, View, What, WhenFull, rules};
use alloc::boxed::Box;
use backlog::{Backlog, Unsent, Usage};
use plait_base::{Span, SubflowId, SubflowSet};
use quota::OverQuota;

/// The use of paths with a cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Goal {
    /// If the cheaper paths do not suffice for the application's rate.
    #[default]
    Aggregate,
    /// As [`Goal::Aggregate`], and for data that arrives notably sooner there.
    Interactive,
    /// One path at a time: the cheapest one that is not down.
    Handover,
    /// If the cheaper paths are down, and never for copies.
    Thrifty,
}

impl Goal {
    /// All goals, with their words.
    pub const ALL: &'static [(&'static str, Goal)] = &[
        ("aggregate", Goal::Aggregate),
        ("interactive", Goal::Interactive),
        ("handover", Goal::Handover),
        ("thrifty", Goal::Thrifty),
    ];
    const WORDS: &'static [&'static str] = &["aggregate", "interactive", "handover", "thrifty"];

    /// Returns the goal of this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Goal> {
        Goal::ALL.iter().find(|known| known.0 == word).map(|known| known.1)
    }

    /// Returns the word for the goal.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Goal::Aggregate => "aggregate",
            Goal::Interactive => "interactive",
            Goal::Handover => "handover",
            Goal::Thrifty => "thrifty",
        }
    }
}

const GOAL: Param = Param {
    name: "goal",
    kind: ParamKind::Word { words: Goal::WORDS, default: "aggregate" },
    unit: "",
    help: "when to use a path with a cost",
    clause: "RFC 9622",
};
const COPIES: Param = Param {
    name: "copies",
    kind: ParamKind::Whole { min: 0, max: 100, default: 5 },
    unit: "%",
    help: "maximum copies on paths with a cost or a quota, relative to the payload; none if the goal is thrifty",
    clause: "ours",
};
const WAIT: Param = Param {
    name: "wait",
    kind: ParamKind::Whole { min: 0, max: 10000, default: 100 },
    unit: "ms",
    help: "the cheaper paths do not suffice if data has waited for them for this time",
    clause: "ours",
};
const RTTS: Param = Param {
    name: "rtts",
    kind: ParamKind::Whole { min: 0, max: 100, default: 2 },
    unit: "",
    help: "minimum of that time, in smoothed RTTs of the fastest cheaper path",
    clause: "ours",
};
const IDLE: Param = Param {
    name: "idle",
    kind: ParamKind::Whole { min: 0, max: 100, default: 10 },
    unit: "%",
    help: "the cheapest paths suffice if they were idle for this part of the recent time; 0 is off",
    clause: "ours",
};
const RECENT: Param = Param {
    name: "recent",
    kind: ParamKind::Whole { min: 2, max: 3600, default: 10 },
    unit: "s",
    help: "the recent time; it varies between half of this and all of it",
    clause: "ours",
};
const SOONER: Param = Param {
    name: "sooner",
    kind: ParamKind::Whole { min: 0, max: 10000, default: 20 },
    unit: "ms",
    help: "time by which data must arrive sooner on a path with a cost if the goal is interactive",
    clause: "ours",
};
const OVER_QUOTA: Param = Param {
    name: "over_quota",
    kind: ParamKind::Word { words: OverQuota::WORDS, default: "auto" },
    unit: "",
    help: "data beyond the quota of a path: if all others cannot send (down), or none (never); auto \
           is never if the goal is thrifty, and down otherwise",
    clause: "ours",
};

/// The decorator's entry in the registry.
pub(crate) const ENTRY: Decorator = Decorator {
    about: About {
        name: "price",
        aliases: &[],
        idea: "paths with a cost rest while cheaper ones suffice, and carry few copies; paths keep to quotas",
        page: "\
The base scheduler sees a path that rests as one that cannot send. If no path costs more than another,
nothing rests, except with the goal handover. `--goal` and the path keys `cost` and `quota` add this
decorator.

    aggregate    a path rests until data has waited max(wait, rtts * srtt) for the cheaper paths, or
                 the application was blocked and some data waited for that time; srtt is that of the fastest
                 one
    interactive  as aggregate, but a path does not rest while
                 arrival there + sooner <= arrival of all unsent data on a cheaper path
                 (of the next segment, if the cheapest paths suffice)
    handover     all paths rest but the cheapest one that is not down; among equals, the first one
    thrifty      a path rests unless all cheaper ones are down

Data has waited since t if some data that was unsent at time t still is. If it has waited, the paths of
the next higher cost may send as well, until all of that data is sent. A path is down if it
cannot send or recovers from a timeout. A backup path counts only if no other works.

A full buffer is no reason to use a path with a cost. The send buffer may be full although all its data is
sent, or the receive window may be full. Then no data waits for the paths, and paths with a cost or a
quota carry no copies.

The cheapest paths suffice for the application's rate if they were idle for at least `idle` percent of the
recent time. They are idle while nothing is unsent or in flight on them. If other paths carried data, the time
that the cheapest ones need for that data does not count as idle. If they suffice, waiting data must wait
2 * data / rate longer before other paths may send; rate is that of the cheapest paths while they
were not idle. Without that limit, they would have to carry the data even when they slow down. A new
connection has no recent time, so its paths do not suffice yet.

On paths with a cost or a quota, a copy is sent only if all copies there remain at most `copies` percent
of the payload sent. Data of a failed path is no copy: it has to be sent again.

A path whose quota has no room for a full segment rests with every goal, and the others take its place.
With `over_quota=down`, it carries data again while all other paths cannot send, but no copies. A path
that recovers from a timeout can send, and so can one that has only used up a quota of its own. So nothing
is sent if the quotas of all paths are used up. Data that is assigned ahead counts as sent.

Numbers  rests (1) of each path that rests, copies_left (bytes of copies that the payload allows),
         quota_left (bytes) of each path with a quota, idle_percent (idle part of the recent time).
Source   RFC 9622, which has the first three goals but no prices; the rules are plait's own.
Good at  a second link that costs money, such as LTE beside WiFi.
Bad at   short bursts above the rate of the cheaper paths: they end before the wait does. A long transfer
         on a connection that was idle waits for `recent` before it uses a path with a cost.

A scheduler that assigns data before it is sent may leave some on a path that would rest: the path rests
only when that data is sent.
",
        params: &[GOAL, COPIES, WAIT, RTTS, IDLE, RECENT, SOONER, OVER_QUOTA],
        state: &[
            ("price.from", "start (DSN, bytes) of the data that waits"),
            ("price.mark", "end (DSN, bytes) of the data that waits"),
            ("price.since", "time since which it waits (ms)"),
            ("price.ceiling", "highest cost of a path that need not rest, if above the lowest"),
            ("price.blocked", "1 if data waited and the application was blocked"),
            ("price.until", "end of the recent time (ms)"),
            ("price.idle", "1 if the cheapest paths were idle then"),
            ("price.now.time", "length of the current half of the recent time (ms)"),
            ("price.now.idle", "time of it for which the cheapest paths were idle (ms)"),
            ("price.now.cheap", "new data that the cheapest paths have sent in it (bytes)"),
            ("price.now.costly", "new data that other paths have sent in it (bytes)"),
            ("price.before.time", "the same of the half before"),
            ("price.before.idle", "the same of the half before"),
            ("price.before.cheap", "the same of the half before"),
            ("price.before.costly", "the same of the half before"),
            ("price.copied", "bytes of copies on paths with a cost or a quota"),
        ],
    },
    wrap: |base, params: &Params| {
        let goal = Goal::named(params.word(&GOAL)).unwrap_or_default();
        Box::new(Price {
            base,
            goal,
            over_quota: OverQuota::named(params.word(&OVER_QUOTA), goal),
            percent: params.whole(&COPIES),
            wait: Span::from_millis(params.whole(&WAIT)),
            rtts: params.whole(&RTTS),
            idle_percent: params.whole(&IDLE),
            half: Span::from_secs(params.whole(&RECENT)).over(2),
            sooner: Span::from_millis(params.whole(&SOONER)),
            backlog: Backlog::default(),
            usage: Usage::default(),
            copied: 0,
        })
    },
};

/// If the cheapest paths suffice, waiting data may take this many times as long as at their recent rate.
const SLOWER: u64 = 2;

/// The decorator.
#[derive(Debug)]
struct Price {
    base: Box<dyn Scheduler>,
    goal: Goal,
    over_quota: OverQuota,
    /// Most copies on subflows with a cost or a quota, in percent of the payload.
    percent: u64,
    wait: Span,
    rtts: u64,
    /// Idle part of the recent time with which the cheapest subflows suffice; 0 is off.
    idle_percent: u64,
    /// Half of the recent time.
    half: Span,
    sooner: Span,
    backlog: Backlog,
    usage: Usage,
    /// Bytes of copies on subflows with a cost or a quota.
    copied: u64,
}

/// Returns the subflows that compete: the live regular ones, or the live backup ones if there are none.
fn group<'a>(view: &View<'a>) -> impl Iterator<Item = &'a SubflowView> + Clone {
    let candidates = view.candidates();
    view.subflows.iter().filter(move |it| candidates.contains(it.id))
}

impl Price {
    /// Returns true if the goal, a cost or a quota can change a decision.
    fn acts(&self, view: &View<'_>) -> bool {
        let costs = || view.subflows.iter().any(|it| it.price.cost > 0);
        view.subflows.iter().any(quota::has_quota)
            || view.subflows.len() > 1 && (self.goal == Goal::Handover || costs())
    }

    /// Returns true if data that waits lets costlier subflows send.
    const fn has_ceiling(&self) -> bool {
        matches!(self.goal, Goal::Aggregate | Goal::Interactive)
    }

    /// Returns the subflows that rest now.
    fn resting(&mut self, view: &View<'_>, unsent: Unsent) -> SubflowSet {
        let Some(first) = group(view).min_by_key(|it| (it.price.cost, it.id)) else {
            return SubflowSet::EMPTY;
        };
        let ceiling = match self.has_ceiling() {
            true => self.ceiling(view, unsent, first.price.cost),
            false => first.price.cost,
        };
        let rests = |it: &&SubflowView| match self.goal {
            Goal::Handover => it.id != first.id,
            _ => it.price.cost > ceiling,
        };
        // Data that is assigned to a subflow must be sent there.
        let up = view.subflows.iter().filter(|it| !it.hard_down() && it.backup == first.backup);
        let resting = up.filter(|it| it.queued == 0 && rests(it));
        let mut resting: SubflowSet = resting.map(|it| it.id).collect();
        if self.goal == Goal::Interactive {
            resting = self.without_sooner(view, resting);
        }
        // A backup subflow does not take the place of a regular one that rests.
        if !resting.is_empty() && !first.backup {
            view.subflows.iter().filter(|it| it.backup).for_each(|it| resting.insert(it.id));
        }
        resting
    }

    /// Returns true if the cheapest subflows were idle for so long that they suffice for the application's rate.
    fn suffices(&self) -> bool {
        self.idle_percent > 0 && self.usage.idle_percent() >= self.idle_percent
    }

    /// Returns the highest cost that a subflow may have now, if `least` is the lowest one.
    fn ceiling(&mut self, view: &View<'_>, unsent: Unsent, least: u32) -> u32 {
        self.backlog.note(view, unsent);
        self.usage.note(view, least, self.half);
        let ceiling = least.max(self.backlog.ceiling);
        let Some(next) = group(view).map(|it| it.price.cost).filter(|cost| *cost > ceiling).min()
        else {
            return ceiling;
        };
        let allowed = group(view).filter(|it| it.price.cost <= ceiling);
        let srtt = allowed.filter_map(|it| it.srtt).min().unwrap_or_default();
        let wait = self.wait.max(srtt.times(self.rtts));
        let longer = || match self.suffices() {
            true => self.usage.time_for(self.backlog.bytes()).times(SLOWER),
            false => Span::ZERO,
        };
        // Most data waits for less, and needs no look at the recent time.
        let waited = view.now.since(self.backlog.since);
        if waited < wait || waited < wait + longer() {
            return ceiling;
        }
        (self.backlog.ceiling, self.backlog.since) = (next, view.now);
        next
    }

    /// Returns the resting subflows without those on which the next data arrives notably sooner.
    fn without_sooner(&self, view: &View<'_>, mut resting: SubflowSet) -> SubflowSet {
        // If the cheapest subflows suffice, only their delay counts, and not that of a burst.
        let unsent = if self.suffices() { view.next_len() } else { view.connection.unsent };
        let others = group(view).filter(|it| !resting.contains(it.id) && it.alive());
        let Some(best) = others.filter_map(|it| it.plain_arrival(unsent)).min() else {
            return resting;
        };
        for subflow in group(view).filter(|it| it.alive()) {
            let arrival = subflow.plain_arrival(view.next_len());
            if arrival.is_some_and(|arrival| arrival + self.sooner <= best) {
                resting.remove(subflow.id);
            }
        }
        resting
    }

    /// Notes the new data that a decision sends or assigns, if the recent time counts.
    fn note_sent(&mut self, view: &View<'_>, decision: Decision, out: &Outcome) {
        if !self.has_ceiling() {
            return;
        }
        let cost = |id| view.subflow(id).map_or(u32::MAX, |it| it.price.cost);
        match decision {
            Decision::Send { subflow, what: What::New { .. }, .. } => {
                self.usage.on_sent(view.next_len(), cost(subflow));
            }
            Decision::Assign { .. } => {
                for (range, id) in &out.plan {
                    self.usage.on_sent(range.len(), cost(*id));
                }
            }
            _ => {}
        }
    }

    /// Returns the bytes of copies that subflows with a cost or a quota may still carry.
    fn copies_left(&self, view: &View<'_>) -> u64 {
        let percent = if self.goal == Goal::Thrifty { 0 } else { self.percent };
        let payload = view.connection.snd_nxt.get();
        (payload.saturating_mul(percent) / 100).saturating_sub(self.copied)
    }

    /// Asks the base scheduler. A copy beyond the budget is refused, and the base scheduler is asked
    /// without that subflow.
    fn ask(
        &mut self,
        view: &View<'_>,
        quotas: &mut quota::Limited,
        (resting, unsent): (SubflowSet, Unsent),
        out: &mut Outcome,
    ) -> Decision {
        // Nothing is copied because a buffer is full.
        let left = if unsent.buffer_full { 0 } else { self.copies_left(view) };
        let copies = left >= rules::segment_len(view);
        let limited: SubflowSet =
            view.subflows.iter().filter(|it| quota::has_quota(it)).map(|it| it.id).collect();
        for subflow in quotas.subflows_mut() {
            if resting.contains(subflow.id) {
                subflow.rest();
            }
            // A base scheduler may try a free path by copies alone.
            if limited.contains(subflow.id) {
                subflow.price.cost = subflow.price.cost.max(1);
            }
            subflow.price.copies &= subflow.price.cost == 0 || copies;
        }
        let mut refused = false;
        loop {
            let decision = self.base.schedule(&quotas.view(view), out);
            let Some((id, len)) = copy_of(&decision) else {
                let obstacle = match decision {
                    // With all subflows it had nothing to assign. It would move data back and forth without end.
                    Decision::Assign { .. } if refused => Some(Reason::AllBusy),
                    Decision::Assign { .. } if !quotas.trim(view, &mut out.plan) => {
                        Some(Reason::Quota)
                    }
                    _ => None,
                };
                let Some(reason) = obstacle else { return decision };
                out.plan.clear();
                return Decision::Wait { on: None, reason };
            };
            let mut priced = quotas.view(view).subflows.iter().filter(|it| !it.price.resting);
            let chosen = priced.find(|it| it.id == id && (it.price.cost > 0 || !it.price.copies));
            let Some(chosen) = chosen.copied() else { return decision };
            if len <= left && !quotas.exceeds(id) {
                self.copied = self.copied.saturating_add(len);
                return decision;
            }
            refused = true;
            // A backup subflow does not replace it.
            for other in quotas.subflows_mut() {
                if other.id == id || (other.backup && !chosen.backup) {
                    other.rest();
                }
            }
            out.clear();
        }
    }
}

/// Returns the subflow and the length of a copy.
fn copy_of(decision: &Decision) -> Option<(SubflowId, u64)> {
    match decision {
        Decision::Send { subflow, what: What::Redundant(range) | What::OppRetx(range), .. } => {
            Some((*subflow, range.len()))
        }
        _ => None,
    }
}

/// Returns the decision with the price or the quota as its reason, if only a resting subflow has room.
/// The quotas of `spent` are used up.
fn explained(
    view: &View<'_>,
    resting: SubflowSet,
    spent: SubflowSet,
    decision: Decision,
) -> Decision {
    let rests = |among: SubflowSet| {
        let mut subflows = view.subflows.iter();
        subflows.any(|it| among.contains(it.id) && it.usable(view.next_len(), view.tsq))
    };
    match decision {
        Decision::Wait { on: None, reason: Reason::AllBusy | Reason::NoSubflow } => {
            let reason = match (rests(resting), rests(spent)) {
                (true, _) => Reason::Price,
                (_, true) => Reason::Quota,
                _ => return decision,
            };
            Decision::Wait { on: None, reason }
        }
        other => other,
    }
}

impl Scheduler for Price {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        if !self.acts(view) {
            return self.base.schedule(view, out);
        }
        let Some(mut quotas) = quota::Limited::of(view, self.over_quota) else {
            return self.base.schedule(view, out);
        };
        let spent = quotas.spent();
        let unsent = Unsent::of(view);
        let resting = self.resting(&quotas.view(view), unsent);
        let decision = self.ask(view, &mut quotas, (resting, unsent), out);
        self.note_sent(view, decision, out);
        out.resting = SubflowSet(resting.0 | spent.0);
        for subflow in view.subflows.iter() {
            if out.resting.contains(subflow.id) {
                out.note("rests", Some(subflow.id), 1.0);
            }
            if quota::has_quota(subflow) {
                out.note("quota_left", Some(subflow.id), subflow.price.left as f64);
            }
        }
        out.note("copies_left", None, self.copies_left(view) as f64);
        if out.explain && self.has_ceiling() {
            out.note("idle_percent", None, self.usage.idle_percent() as f64);
        }
        // The next call may come to another answer at another time.
        explained(view, resting, spent, decision).one_segment(rules::segment_len(view))
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        self.base.on_notice(view, notice);
    }

    fn needs(&self) -> Needs {
        Needs { when_full: WhenFull::Always, ..self.base.needs() }
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        self.base.save_state(write);
        self.backlog.save(write);
        self.usage.save(write);
        write("price.copied", self.copied as f64);
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        if name == "price.copied" {
            self.copied = exact::nearest(value);
            return true;
        }
        self.backlog.load(name, value).or_else(|| self.usage.load(name, value)).is_some()
            || self.base.load_state(name, value)
    }
}
