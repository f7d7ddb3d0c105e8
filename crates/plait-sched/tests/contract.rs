//! The contract of every scheduler: alone, under every decorator, and with every parameter at its
//! limits. Random connections have acknowledgements, losses, dead and backup subflows, and stalled
//! windows.
#![allow(clippy::unwrap_used, clippy::panic)]

mod model;

use model::{MSS, Model, subflow};
use plait_base::{DataRange, DataRangeSet, Dsn, Span, SubflowId, SubflowSet, Time};
use plait_sched::{
    CaState, ConnectionView, DECORATORS, Decision, LatestView, LeftEdge, Notice, Outcome, Param,
    ParamKind, QueueView, Reason, SCHEDULERS, Scheduler, SentRange, Spec, StaticQueue, SubflowView,
    View, What, WhenFull,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::collections::{BTreeMap, VecDeque};

/// Returns the one scheduler to test, if `PLAIT_SCHEDULER` names one.
fn only() -> Option<String> {
    std::env::var("PLAIT_SCHEDULER").ok()
}

/// Returns every scheduler, also with each parameter in turn at its limits and under every
/// decorator.
fn specs() -> Vec<String> {
    let mut specs = Vec::new();
    let only = only();
    for entry in
        SCHEDULERS.iter().filter(|it| only.as_ref().is_none_or(|only| it.about.name == only))
    {
        specs.push(entry.about.name.to_owned());
        specs.extend(
            variants(entry.about.params).map(|given| format!("{}:{given}", entry.about.name)),
        );
        for decorator in DECORATORS {
            let decorated = format!("{}+{}", entry.about.name, decorator.about.name);
            // The price has many parameters: its words, and the least value of the others. With the goal
            // of these runs, `over_quota=auto` is `down`.
            let wanted = |it: &String| {
                let words = it.starts_with("goal=") || it.starts_with("over_quota=");
                let words = words && it != "over_quota=auto";
                decorator.about.name != "price" || words || it.ends_with("=0")
            };
            let given = variants(decorator.about.params).filter(wanted);
            specs.extend(given.map(|given| format!("{decorated}:{given}")));
            specs.push(decorated);
        }
    }
    assert!(!specs.is_empty(), "PLAIT_SCHEDULER={}: no such scheduler", only.unwrap_or_default());
    specs
}

fn variants(params: &'static [Param]) -> impl Iterator<Item = String> {
    params.iter().flat_map(|param| {
        let values: Vec<String> = match param.kind {
            ParamKind::Real { min, max, .. } => vec![min.to_string(), max.to_string()],
            ParamKind::Whole { min, max, .. } => {
                vec![min.to_string(), 3.clamp(min, max).to_string(), max.to_string()]
            }
            ParamKind::Auto { min, max } => {
                vec![min.to_string(), 3.clamp(min, max).to_string(), max.to_string()]
            }
            ParamKind::Switch { .. } => vec!["on".into(), "off".into()],
            ParamKind::Word { .. } | ParamKind::Window { .. } => {
                param.kind.words().iter().map(ToString::to_string).collect()
            }
        };
        values.into_iter().map(|value| format!("{}={value}", param.name))
    })
}

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

/// An event of the connection. Subflows are given by index, modulo their number.
#[derive(Clone, Debug)]
enum Step {
    Write(u64),
    Ack(usize),
    Lose(usize),
    Rtt(usize, u64),
    Cwnd(usize, u64),
    Threshold(usize, Option<u64>),
    Health(usize, Health),
    Backup(usize, bool),
    Tsq(usize, bool),
    Window(u64),
    AppBlocked(bool),
    Pass(u64),
    /// The scheduler is replaced by a new one that loads its state, in the second run only.
    Restore,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Health {
    Well,
    Disorder,
    Loss,
    PotentiallyFailed,
    Closed,
    NotJoined,
}

fn any_step() -> impl Strategy<Value = Step> {
    use Health::{Closed, Disorder, Loss, NotJoined, PotentiallyFailed, Well};
    let health = prop::sample::select(vec![
        Well,
        Well,
        Well,
        Disorder,
        Loss,
        PotentiallyFailed,
        Closed,
        NotJoined,
    ]);
    let at = 0..8_usize;
    prop_oneof![
        2 => (1..40_000_u64).prop_map(Step::Write),
        8 => at.clone().prop_map(Step::Ack),
        2 => at.clone().prop_map(Step::Lose),
        1 => (at.clone(), 0..400_u64).prop_map(|(at, rtt)| Step::Rtt(at, rtt)),
        1 => (at.clone(), 0..60_000_u64).prop_map(|(at, cwnd)| Step::Cwnd(at, cwnd)),
        1 => (at.clone(), any::<Option<u16>>()).prop_map(|(at, it)| Step::Threshold(at, it.map(u64::from))),
        2 => (at.clone(), health).prop_map(|(at, health)| Step::Health(at, health)),
        1 => (at.clone(), any::<bool>()).prop_map(|(at, on)| Step::Backup(at, on)),
        1 => (at, any::<bool>()).prop_map(|(at, on)| Step::Tsq(at, on)),
        2 => prop_oneof![0..60_000_u64, Just(1 << 40)].prop_map(Step::Window),
        1 => any::<bool>().prop_map(Step::AppBlocked),
        2 => (0..300_u64).prop_map(Step::Pass),
        1 => Just(Step::Restore),
    ]
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    (20_000..200_000_u64, prop::collection::vec(any_step(), 1..80)).prop_map(
        |(first, mut steps)| {
            steps.insert(0, Step::Write(first));
            steps
        },
    )
}

/// Creates idle subflows of 10 segments each with these RTTs; zero means no sample.
fn idle_paths(rtts_ms: &[u64]) -> Vec<SubflowView> {
    let rtts = rtts_ms.iter().zip(0..);
    rtts.map(|(rtt, id)| {
        let mut it = subflow(id, Span::from_millis(*rtt), 10 * MSS);
        it.rttvar = Span::from_millis(rtt / 7);
        it.srtt = it.srtt.filter(|_| *rtt > 0);
        it
    })
    .collect()
}

/// A connection whose subflows deliver the data given to them.
struct Run {
    spec: String,
    model: Model,
    scheduler: Box<dyn Scheduler>,
    out: Outcome,
    /// Segments in flight on each subflow.
    flight: Vec<VecDeque<DataRange>>,
    lost: VecDeque<DataRange>,
    received: DataRangeSet,
    written: u64,
    log: Vec<Decision>,
    plans: Vec<(DataRange, SubflowId)>,
    /// The scheduler gets only the calls and values that it declares as needed.
    frugal: bool,
}

impl Run {
    fn new(spec: &str, rtts_ms: &[u64]) -> Run {
        let mut model = Model::new(idle_paths(rtts_ms), 0);
        model.tsq = true;
        model.connection.wnd_end = Dsn::new(1 << 40);
        if spec.contains("+price") {
            let costs = [0, 2, 1].into_iter().cycle();
            model
                .subflows
                .iter_mut()
                .zip(costs)
                .for_each(|(subflow, cost)| subflow.price.cost = cost);
        }
        if spec.contains("over_quota=") {
            // One subflow without a quota carries the rest.
            for id in 1..model.subflows.len() as u8 {
                model.set_quota(SubflowId(id), 20_000 * u64::from(id % 3));
            }
        }
        Run {
            flight: vec![VecDeque::new(); model.subflows.len()],
            model,
            spec: spec.to_owned(),
            scheduler: build(spec),
            out: Outcome::default(),
            lost: VecDeque::new(),
            received: DataRangeSet::new(),
            written: 0,
            log: Vec::new(),
            plans: Vec::new(),
            frugal: false,
        }
    }

    /// Creates a run whose scheduler gets only what it needs.
    fn frugal(spec: &str, rtts_ms: &[u64]) -> Run {
        let mut run = Run::new(spec, rtts_ms);
        run.frugal = true;
        if !run.scheduler.needs().pacing_rate {
            run.model.subflows.iter_mut().for_each(|subflow| subflow.pacing_rate = 0);
        }
        run
    }

    /// Applies one event, then decisions until there is nothing more to send. `restored` is set in
    /// the run that saves and loads states.
    fn step(&mut self, step: &Step, spec: &str, restored: bool) {
        let count = self.model.subflows.len();
        match *step {
            Step::Write(len) => {
                let end = self.written + len;
                self.model.queue.unsent.insert(DataRange::between(self.written, end));
                self.written = end;
                self.model.connection.unsent = self.model.queue.unsent.len();
            }
            Step::Ack(at) => self.acknowledge(at % count),
            Step::Lose(at) => {
                if let Some(range) = self.flight[at % count].pop_front() {
                    self.model.subflows[at % count].inflight -= range.len();
                    self.model.subflows[at % count].outstanding -= range.len();
                    self.lost.push_back(range);
                }
            }
            Step::Rtt(at, rtt) => {
                let (subflow, rtt) = (&mut self.model.subflows[at % count], Span::from_millis(rtt));
                (subflow.srtt, subflow.last_rtt) = (Some(rtt), Some(rtt + rtt.over(3)));
                subflow.min_rtt = Some(subflow.min_rtt.map_or(rtt, |least| least.min(rtt)));
                subflow.rtt_at = self.model.now;
                subflow.latest.delivery_rate =
                    subflow.inflight * 1_000 / (rtt.as_nanos() / 1_000_000 + 1);
            }
            Step::Cwnd(at, cwnd) => self.model.subflows[at % count].cwnd = cwnd,
            Step::Threshold(at, ssthresh) => self.model.subflows[at % count].ssthresh = ssthresh,
            Step::Health(at, health) => {
                set_health(&mut self.model.subflows[at % count], health);
                self.subflows_changed();
            }
            Step::Backup(at, on) => {
                self.model.subflows[at % count].backup = on;
                self.subflows_changed();
            }
            Step::Tsq(at, on) => self.model.subflows[at % count].tsq_blocked = on,
            Step::Window(len) => {
                // A window never moves back below data that is sent or assigned.
                let assigned =
                    self.model.queue.assigned.last().map_or(0, |(range, _)| range.end.get());
                let connection = &mut self.model.connection;
                let least = connection.snd_nxt.max(Dsn::new(assigned));
                connection.wnd_end = least.max(connection.snd_una + len);
            }
            Step::AppBlocked(on) => {
                self.model.connection.app_blocked = on;
                self.model.connection.sndbuf_free = if on { 0 } else { 1 << 20 };
            }
            Step::Pass(millis) => self.model.now += Span::from_millis(millis),
            Step::Restore if restored => {
                let mut fresh = build(spec);
                self.scheduler.save_state(&mut |name, value| {
                    assert!(fresh.load_state(name, value), "{spec}: {name}");
                });
                self.scheduler = fresh;
            }
            Step::Restore => {}
        }
        self.decide();
    }

    /// Takes back assigned data, as the core does: it was planned for other subflows.
    fn subflows_changed(&mut self) {
        self.model.unassign();
        let live = self.model.subflows.iter().filter(|it| it.alive()).map(|it| it.id).collect();
        self.scheduler.on_notice(&self.model.view(), Notice::SubflowsChanged { live, began: None });
    }

    /// Delivers and acknowledges the oldest segment in flight on a subflow.
    fn acknowledge(&mut self, at: usize) {
        let Some(range) = self.flight[at].pop_front() else { return };
        let subflow = &mut self.model.subflows[at];
        subflow.inflight -= range.len();
        subflow.outstanding -= range.len();
        subflow.cwnd = (subflow.cwnd + MSS).min(1 << 20);
        self.received.insert(range);
        let first = self.received.first().filter(|first| first.start == Dsn::ZERO);
        let (old, head) = (self.model.connection.snd_una, self.model.queue.sent.first().copied());
        self.model.data_ack(first.map_or(Dsn::ZERO, |first| first.end));
        let una = self.model.connection.snd_una;
        if una > old && (!self.frugal || self.scheduler.needs().data_acks) {
            let edge = head.map(|it| LeftEdge { first: it.first, again: it.carried.len() > 1 });
            let notice = Notice::DataAck { old, new: una, edge };
            self.scheduler.on_notice(&self.model.view(), notice);
        }
        if self.model.connection.reinject.is_some_and(|waiting| waiting.range.end <= una) {
            self.model.connection.reinject = None;
        }
    }

    /// Queues the next lost range for reinjection.
    fn offer_reinjection(&mut self) {
        while self.model.connection.reinject.is_none() {
            let Some(range) = self.lost.pop_front() else { return };
            let sent = self.model.queue.sent.iter().find(|sent| sent.range.end == range.end);
            if let Some(SentRange { range, carried, .. }) = sent.copied() {
                self.model.reinject(range, carried);
            }
        }
    }

    fn decide(&mut self) {
        let mut granted = None;
        for _ in 0..10_000 {
            while let Some((id, range)) = self.model.send_assigned() {
                self.flight[id.index()].push_back(range);
            }
            self.offer_reinjection();
            let before = granted.map(|_| state(&*self.scheduler));
            let decision = self.model.ask(&mut *self.scheduler, &mut self.out);
            if let Some(granted) = granted.take().filter(|it| self.grants_still(*it)) {
                assert_eq!(decision.one_segment(MSS), granted.one_segment(MSS), "{}", self.spec);
                let after = Some(state(&*self.scheduler));
                assert_eq!(after, before, "{}: asked in vain", self.spec);
            }
            granted = one_segment_less(decision);
            self.model.apply_effects(&self.out.effects);
            check(&self.model, decision);
            self.log.push(decision);
            if self.spec.contains("over_quota=") {
                check_quotas(&self.model, decision, &self.out.plan, self.spec.ends_with("never"));
            }
            if let Decision::Assign { .. } = decision {
                check_plan(&self.model, &self.spec, &self.out.plan);
                self.plans.extend_from_slice(&self.out.plan);
                self.model.assign(&self.out.plan);
                continue;
            }
            match self.model.apply(decision, &[]) {
                Some((id, range)) => self.flight[id.index()].push_back(range),
                None => {
                    if let Decision::Wait { reason: Reason::SendWindow, .. } = decision {
                        self.scheduler.on_notice(&self.model.view(), Notice::WindowLimited);
                    }
                    return;
                }
            }
        }
        panic!("no end of decisions: {:?}", self.log.last());
    }

    /// Returns true if the core would send another full segment by this decision without a further
    /// call.
    fn grants_still(&self, decision: Decision) -> bool {
        let Model { connection, queue, subflows, .. } = &self.model;
        let Decision::Send { subflow, grant, .. } = decision else { return false };
        let takes = |it: &SubflowView| it.id == subflow && it.usable(MSS, self.model.tsq);
        grant >= MSS
            && connection.unsent >= MSS
            && connection.reinject.is_none()
            && connection.snd_nxt + MSS <= connection.wnd_end
            && queue.assigned.is_empty()
            && subflows.iter().any(takes)
    }

    /// Repairs all subflows. Then all data must be sent and delivered, driven by acknowledgements
    /// alone.
    fn finish(&mut self) {
        for subflow in &mut self.model.subflows {
            set_health(subflow, Health::Well);
            subflow.tsq_blocked = false;
            subflow.cwnd = subflow.cwnd.max(10 * MSS);
        }
        self.subflows_changed();
        self.model.connection.wnd_end = Dsn::new(1 << 40);
        for _ in 0..100_000 {
            self.decide();
            let Some(at) = self.flight.iter().position(|flight| !flight.is_empty()) else { break };
            self.acknowledge(at);
        }
        assert_eq!(self.model.connection.snd_una, Dsn::new(self.written), "{:?}", self.log.last());
    }
}

/// Returns the decision with the rest of its grant after the first segment is sent.
fn one_segment_less(decision: Decision) -> Option<Decision> {
    let Decision::Send { subflow, what: What::New { offset: 0 }, grant, reason } = decision else {
        return None;
    };
    let grant = grant.saturating_sub(MSS);
    Some(Decision::Send { subflow, what: What::New { offset: 0 }, grant, reason })
}

fn set_health(subflow: &mut SubflowView, health: Health) {
    subflow.open = health != Health::Closed;
    subflow.joined = health != Health::NotJoined;
    subflow.pf = health == Health::PotentiallyFailed;
    // So many timeouts that the subflow is stale for any limit.
    subflow.timeouts = if subflow.pf { 100 } else { 0 };
    subflow.ca = match health {
        Health::Disorder => CaState::Disorder,
        Health::Loss => CaState::Loss,
        _ => CaState::Open,
    };
}

/// Checks the conditions on any decision.
fn check(model: &Model, decision: Decision) {
    let view = model.view();
    match decision {
        Decision::Send { subflow, what, grant, reason } => {
            let chosen = view.subflow(subflow).expect("one of the subflows");
            let range = model.range(what).expect("something to send");
            assert!(grant > 0 && !range.is_empty());
            assert!(chosen.usable(range.len(), model.tsq), "{reason:?} on {chosen:?}");
            let tried = match what {
                What::New { .. } => {
                    assert!(range.end <= model.connection.wnd_end, "beyond the window");
                    SubflowSet::EMPTY
                }
                What::Reinject => model.connection.reinject.unwrap().carried,
                What::Redundant(range) | What::OppRetx(range) => {
                    let owner = model.queue.assigned_from(range.start);
                    let owner = owner.filter(|(held, _)| held.start <= range.start);
                    let waits = owner.filter(|_| matches!(what, What::OppRetx(_)));
                    let waits = waits.map(|(_, owner)| SubflowSet::one(owner));
                    let sent = carried(&model.queue, range);
                    sent.or(waits).expect("a range that was sent, or assigned to one")
                }
            };
            // Without a quota that is used up, unless that of the chosen one is.
            let least = chosen.price.left.min(MSS);
            let better = |s: &&SubflowView| {
                !s.backup && s.alive() && !tried.contains(s.id) && s.price.left >= least
            };
            assert!(!chosen.backup || !view.subflows.iter().any(|s| better(&s)), "{reason:?}");
        }
        Decision::Wait { on: Some(on), reason } => {
            let awaited = view.subflow(on).expect("one of the subflows");
            assert!(!awaited.hard_down(), "{reason:?} for a dead subflow");
            assert!(awaited.alive() || reason == Reason::UntriedBusy);
        }
        Decision::Wait { on: None, reason } => {
            let nobody = matches!(
                reason,
                Reason::NoSubflow | Reason::AllBusy | Reason::Price | Reason::Quota
            );
            // The awaited subflow recovers from a timeout.
            let kernel = matches!(reason, Reason::SendMemory | Reason::SendWindow);
            assert!(nobody || kernel, "{reason:?}");
        }
        Decision::Idle => {
            assert!(model.connection.unsent == 0 && model.connection.reinject.is_none());
            assert!(model.queue.assigned.is_empty());
        }
        Decision::Assign { .. } => {}
    }
}

/// Checks the conditions on any plan: data to send, within the window, on candidates. The kernel
/// also assigns data to a subflow that recovers from a timeout, and to backup subflows.
fn check_plan(model: &Model, spec: &str, plan: &[(DataRange, SubflowId)]) {
    assert!(!plan.is_empty());
    let candidates = within_quotas(model).view().candidates();
    let mut end = 0;
    for (range, subflow) in plan {
        let live = !model.view().subflow(*subflow).expect("one of the subflows").hard_down();
        let allowed = if is_kernel(spec) { live } else { candidates.contains(*subflow) };
        assert!(allowed, "{subflow:?} is no candidate");
        assert!(
            !range.is_empty()
                && range.start >= Dsn::new(end)
                && range.end <= model.connection.wnd_end
        );
        end = range.end.get();
        let mut waiting = model.queue.unsent.clone();
        for (held, _) in &model.queue.assigned {
            waiting.insert(*held);
        }
        assert!(waiting.covers(*range), "{range:?} is not there to be assigned");
    }
}

/// Returns true if the quota of the subflow is used up.
fn is_spent(subflow: &SubflowView) -> bool {
    subflow.price.left.saturating_add(subflow.queued) < MSS
}

/// Returns the connection with the subflows at rest whose quotas are used up, if another one can send.
fn within_quotas(model: &Model) -> Model {
    let mut limited = model.clone();
    for it in limited.subflows.iter_mut().filter(|it| is_spent(it)) {
        if model.subflows.iter().any(|other| other.id != it.id && !other.hard_down()) {
            it.rest();
        }
    }
    limited
}

/// Checks that a decision keeps to the quotas: data beyond one is sent only if all other subflows cannot
/// send, and never if `never` is true.
fn check_quotas(model: &Model, decision: Decision, plan: &[(DataRange, SubflowId)], never: bool) {
    let left: Vec<u64> = model.subflows.iter().map(|it| it.price.left).collect();
    let takes: Vec<bool> = model.subflows.iter().map(|it| !it.hard_down()).collect();
    let mut given: Vec<(SubflowId, u64)> = Vec::new();
    if let Decision::Send { subflow, what, .. } = decision {
        // Data that was assigned to the subflow counts already.
        let range = model.range(what).expect("something to send");
        let own = model.queue.assigned.iter().filter(|(_, id)| *id == subflow);
        let own = own.map(|(held, _)| held.intersect(range).len()).sum::<u64>();
        given.push((subflow, range.len() - own));
        if let What::Redundant(_) | What::OppRetx(_) = what {
            assert!(range.len() - own <= left[subflow.index()], "a copy beyond the quota");
        }
    }
    if let Decision::Assign { .. } = decision {
        let mut after = model.clone();
        after.assign(plan);
        let pairs = after.subflows.iter().zip(&model.subflows);
        given.extend(pairs.map(|(it, before)| (it.id, it.queued.saturating_sub(before.queued))));
    }
    for (id, len) in given {
        let others = takes.iter().enumerate().any(|(at, takes)| at != id.index() && *takes);
        let within = len <= left[id.index()];
        assert!(within || !others && !never, "{len} bytes of {left:?} on {id:?}");
    }
}

/// Returns true if the scheduler uses the kernel's own test, which allows more than the candidates.
fn is_kernel(spec: &str) -> bool {
    Spec::parse(spec).unwrap().entry().about.name == "linux"
}

/// Returns true if the scheduler declares that it assigns data before sending.
fn queues_ahead(spec: &str) -> bool {
    // With `tsq=off`, data waits for the host's queue.
    Spec::parse(spec).unwrap().entry().queues_ahead || spec.starts_with("minrtt:tsq=off")
}

fn carried(queue: &StaticQueue, range: DataRange) -> Option<SubflowSet> {
    queue.sent.iter().find(|sent| sent.range.covers(range)).map(|sent| sent.carried)
}

proptest! {
    #![proptest_config(model::cases(200))]

    #[test]
    fn decisions_are_valid_and_repeatable_and_all_data_arrives(
        rtts in prop::collection::vec(0..300_u64, 1..5),
        steps in any_steps(),
    ) {
        for spec in specs() {
            // The second run saves and loads states, and hides calls and values that are not
            // needed.
            let made: [fn(&str, &[u64]) -> Run; 2] = [Run::new, Run::frugal];
            let mut runs = made.map(|made| {
                let mut run = made(&spec, &rtts);
                let restored = run.frugal;
                for step in &steps {
                    run.step(step, &spec, restored);
                }
                run
            });
            prop_assert_eq!(&runs[0].log, &runs[1].log, "{}", spec);
            prop_assert_eq!(&runs[0].plans, &runs[1].plans, "{}", spec);
            prop_assert!(runs[0].plans.is_empty() || queues_ahead(&spec), "{}", spec);
            runs[0].finish();
        }
    }

    #[test]
    fn with_one_subflow_every_scheduler_decides_as_minrtt_does(
        rtt in 0..300_u64,
        steps in any_steps(),
    ) {
        let log = |spec: &str| {
            let mut run = Run::new(spec, &[rtt]);
            for step in &steps {
                run.step(step, spec, false);
            }
            // Some schedulers grant one segment at a time.
            run.log.into_iter().map(|it| it.one_segment(MSS)).collect::<Vec<_>>()
        };
        // A decorator may hold back the only subflow too, but it does the same for any scheduler.
        let mut expected: BTreeMap<String, Vec<Decision>> = BTreeMap::new();
        for spec in specs() {
            let decorators = spec.split_once('+').map_or("", |(_, decorators)| decorators);
            let plain = format!("minrtt+{decorators}");
            let plain = plain.trim_end_matches('+');
            let expected = expected.entry(plain.to_owned()).or_insert_with(|| log(plain));
            prop_assert_eq!(&log(&spec), &*expected, "{}", spec);
        }
    }

    #[test]
    fn a_dead_fast_subflow_holds_nobody_up(
        rtts in prop::collection::vec(2..300_u64, 1..4),
        health in prop::sample::select(vec![
            Health::Loss, Health::PotentiallyFailed, Health::Closed, Health::NotJoined,
        ]),
        full in any::<bool>(),
        segments in 1..200_u64,
    ) {
        let rtts: Vec<u64> = std::iter::once(1).chain(rtts).collect();
        for spec in specs() {
            let mut model = Model::new(idle_paths(&rtts), segments * MSS);
            model.connection.wnd_end = Dsn::new(20 * MSS);
            set_health(&mut model.subflows[0], health);
            if full {
                model.subflows[0].inflight = model.subflows[0].cwnd;
            }
            let mut out = Outcome::default();
            let decision = model.ask(&mut *build(&spec), &mut out);
            check(&model, decision);
            if is_kernel(&spec) && matches!(decision, Decision::Assign { .. }) {
                // A subflow that recovers from a timeout is not stale and may get data.
                let (range, subflow) = out.plan[0];
                prop_assert!(range.start == Dsn::ZERO && (subflow.0 > 0 || health == Health::Loss), "{}", spec);
                continue;
            }
            prop_assert!(
                matches!(decision, Decision::Send { what: What::New { offset: 0 }, .. }),
                "{}: {:?}", spec, decision
            );
        }
    }

    #[test]
    fn no_view_panics(
        subflows in prop::collection::vec(any_subflow(), 0..8),
        connection in any_connection(),
        now in any_number(),
        sent in prop::collection::vec((any_number(), any_number(), any::<u8>()), 0..4),
        unsent in (any_number(), any_number()),
        states in prop::collection::vec((0..40_usize, any::<f64>()), 0..10),
    ) {
        let subflows: Vec<SubflowView> = subflows
            .into_iter()
            .zip(0..)
            .map(|(subflow, id)| SubflowView { id: SubflowId(id), ..subflow })
            .collect();
        let mut queue = StaticQueue::default();
        queue.unsent.insert(DataRange::between(unsent.0, unsent.1));
        queue.assigned.push((DataRange::between(unsent.1, unsent.1.saturating_add(unsent.0)), SubflowId(1)));
        let mut above = 0;
        for (start, end, mask) in sent {
            let range = DataRange::between(start.max(above), end);
            above = range.end.get();
            if !range.is_empty() {
                let carried = SubflowSet(mask);
                queue.sent.push(SentRange { range, carried, first: SubflowId(0) });
            }
        }
        let now = Time::from_nanos(now);
        let view = View { now, tsq: true, connection, subflows: &subflows, queue: &queue };
        let names = state_names();
        let edge = Some(LeftEdge { first: SubflowId(1), again: false });
        for spec in specs() {
            let (mut scheduler, mut out) = (build(&spec), Outcome { explain: true, ..Outcome::default() });
            for (name, value) in &states {
                scheduler.load_state(&names[name % names.len()], *value);
            }
            let gone = Notice::SubflowsChanged { live: SubflowSet::EMPTY, began: Some(SubflowId(1)) };
            for notice in [None, Some(Notice::WindowLimited), Some(Notice::DataAck { old: Dsn::ZERO, new: Dsn::MAX, edge }), Some(gone)] {
                if let Some(notice) = notice {
                    scheduler.on_notice(&view, notice);
                }
                out.clear();
                let before = state(&*scheduler);
                let decision = scheduler.schedule(&view, &mut out);
                let when_full = scheduler.needs().when_full;
                if when_full != WhenFull::Always && is_full(&view) {
                    prop_assert!(matches!(decision, Decision::Wait { on: None, .. }), "{spec}");
                    let asked = state(&*scheduler);
                    prop_assert!(when_full == WhenFull::Anew || before == asked, "{spec}");
                    out.clear();
                    prop_assert_eq!(decision, scheduler.schedule(&view, &mut out));
                    prop_assert_eq!(asked, state(&*scheduler));
                }
                if let Decision::Send { subflow, .. } = decision {
                    let chosen = view.subflow(subflow).unwrap();
                    prop_assert!(chosen.alive() && !chosen.tsq_blocked);
                }
            }
        }
    }
}

/// Returns true if there is only new data to send and no subflow can take a segment of it.
fn is_full(view: &View<'_>) -> bool {
    let first = view.queue.unsent_at(0, u64::from(view.connection.mss.max(1)));
    let len = first.map_or(0, |range| range.len());
    view.connection.unsent > 0
        && view.connection.reinject.is_none()
        && len > 0
        && !view.subflows.iter().any(|it| it.usable(len.min(view.connection.unsent), view.tsq))
}

/// Returns the names and values of a state, each name with its length and the bits of its value.
fn state(scheduler: &dyn Scheduler) -> (String, Vec<(usize, u64)>) {
    let mut saved = (String::with_capacity(1 << 12), Vec::with_capacity(1 << 8));
    scheduler.save_state(&mut |name, value| {
        saved.0.push_str(name);
        saved.1.push((name.len(), value.to_bits()));
    });
    saved
}

/// The random steps above must reach every reason, or they test too little.
#[test]
fn random_connections_meet_every_reason() {
    if only().is_some() {
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (prop::collection::vec(0..300_u64, 1..5), any_steps());
    let mut met = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let (rtts, steps) = strategy.new_tree(&mut runner).unwrap().current();
        for spec in specs() {
            let mut run = Run::new(&spec, &rtts);
            for step in &steps {
                run.step(step, &spec, false);
            }
            met.extend(run.log.iter().filter_map(|decision| match *decision {
                Decision::Send { reason, .. }
                | Decision::Assign { reason }
                | Decision::Wait { reason, .. } => Some(reason),
                Decision::Idle => None,
            }));
        }
    }
    let missed: Vec<Reason> = Reason::ALL.iter().copied().filter(|it| !met.contains(it)).collect();
    // Only a class or an agent in Python has that one.
    assert_eq!(missed, [Reason::Chosen]);
}

/// Returns the name of a value of the subflow `id`, or of the first element of a list.
fn named(pattern: &str, id: &str) -> String {
    pattern.replace("ID", id).replace(".N.", ".0.")
}

/// Returns every name that a state may hold, and some that no state holds.
fn state_names() -> Vec<String> {
    let lists = SCHEDULERS
        .iter()
        .map(|it| it.about.state)
        .chain(DECORATORS.iter().map(|it| it.about.state));
    let names = lists
        .flatten()
        .flat_map(|(name, _)| ["0", "1", "7", "8", "-1", ""].map(|id| named(name, id)));
    names.chain(["", "quota", "ptr.x"].map(String::from)).collect()
}

#[test]
fn saved_states_use_the_documented_names() {
    for entry in SCHEDULERS {
        for decorator in DECORATORS {
            let mut scheduler = build(&format!("{}+{}", entry.about.name, decorator.about.name));
            for (name, meaning) in entry.about.state.iter().chain(decorator.about.state) {
                assert!(!meaning.is_empty());
                let name = named(name, "3");
                assert!(scheduler.load_state(&name, 1.0), "{}: {name}", entry.about.name);
                let mut found = false;
                scheduler.save_state(&mut |saved, value| found |= saved == name && value == 1.0);
                assert!(found, "{}: {name}", entry.about.name);
            }
            assert!(!scheduler.load_state("no such name", 1.0));
        }
    }
}

/// A reconnect, and a join after a subflow has closed, reuse an id.
#[test]
fn nothing_is_remembered_of_the_one_that_had_the_id_before() {
    let model = Model::new(idle_paths(&[10, 20, 30]), 0);
    let began = Notice::SubflowsChanged { live: SubflowSet(7), began: Some(SubflowId(1)) };
    for entry in SCHEDULERS {
        for decorator in DECORATORS {
            let spec = format!("{}+{}", entry.about.name, decorator.about.name);
            let mut scheduler = build(&spec);
            let names =
                || entry.about.state.iter().chain(decorator.about.state).map(|(name, _)| *name);
            for name in names().filter(|it| it.contains(".ID")) {
                for id in ["1", "2"] {
                    assert!(scheduler.load_state(&named(name, id), 3.0), "{spec}: {name}");
                }
            }
            scheduler.on_notice(&model.view(), began);
            let mut left = Vec::new();
            scheduler.save_state(&mut |name, _| left.push(name.to_owned()));
            let is_of = |id: &str, name: &String| name.split(['.', '_']).any(|part| part == id);
            left.retain(|name| is_of("1", name) && names().any(|it| named(it, "1") == *name));
            assert_eq!(left, [""; 0], "{spec}");
            // A plan covers all subflows; other state belongs to one subflow.
            let mut kept = 0;
            scheduler.save_state(&mut |name, _| kept += usize::from(is_of("2", &name.to_owned())));
            let learns = names().any(|it| it.contains(".ID"));
            assert!(kept > 0 || !learns, "{spec}");
        }
    }
}

/// Small, ordinary and extreme numbers.
fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, 1_000..100_000_u64, any::<u64>(), Just(u64::MAX), Just(1 << 60)]
}

fn any_span() -> impl Strategy<Value = Span> {
    any_number().prop_map(Span::from_nanos)
}

prop_compose! {
    fn any_subflow()(
        (open, joined, pf, backup, tsq_blocked) in
            (prop::bool::weighted(0.9), prop::bool::weighted(0.9), prop::bool::weighted(0.1), any::<bool>(), prop::bool::weighted(0.1)),
        loss in prop::bool::weighted(0.1),
        mss in prop::sample::select(vec![0, 1, 1460, u32::MAX]),
        (cwnd, inflight, queued, rec_cwnd) in (any_number(), any_number(), any_number(), any_number()),
        ssthresh in prop::option::of(any_number()),
        (srtt, last_rtt, min_rtt) in
            (prop::option::of(any_span()), prop::option::of(any_span()), prop::option::of(any_span())),
        (rttvar, rto, rtt_at) in (any_span(), any_span(), any_number().prop_map(Time::from_nanos)),
        cap in any_number(),
        (outstanding, pacing_rate, delivery_rate) in (any_number(), any_number(), any_number()),
        timeouts in prop_oneof![3 => Just(0), 1 => 1..8_u32, 1 => any::<u32>()],
    ) -> SubflowView {
        SubflowView {
            open, joined, pf, backup, tsq_blocked, mss, cwnd, inflight, queued, rec_cwnd, ssthresh,
            srtt, last_rtt, min_rtt, rttvar, rto, rtt_at, cap, outstanding, pacing_rate,
            latest: LatestView { delivery_rate, ..LatestView::default() }, timeouts,
            ca: if loss { CaState::Loss } else { CaState::Open },
            ..subflow(0, Span::ZERO, 0)
        }
    }
}

prop_compose! {
    fn any_connection()(
        mss in prop::sample::select(vec![0, 1, 1460, u32::MAX]),
        (snd_una, snd_nxt, wnd_end, unsent) in (any_number(), any_number(), any_number(), any_number()),
        start in any_number(),
        reinject in prop::option::of((any_number(), any_number(), any::<u8>())),
        app_blocked in any::<bool>(),
        (sndbuf_free, sndbuf) in (any_number(), any_number()),
    ) -> ConnectionView {
        ConnectionView {
            snd_una: Dsn::new(snd_una), snd_nxt: Dsn::new(snd_nxt), wnd_end: Dsn::new(wnd_end),
            mss, unsent, app_blocked, sndbuf_free, sndbuf,
            start: Time::from_nanos(start),
            reinject: reinject.map(|(start, end, mask)| SentRange {
                range: DataRange::between(start, end),
                carried: SubflowSet(mask),
                first: SubflowId(0),
            }),
        }
    }
}

/// Regression: these steps once sent 9,120 segments of one byte each.
#[test]
fn the_last_segment_is_not_cut_at_a_hole() {
    for spec in ["stms-c:tail_use_slow=on", "stms-a:tail_use_slow=on"] {
        let mut run = Run::new(spec, &[0, 1, 3, 5]);
        for step in [Step::Write(67_161), Step::Write(2_919), Step::Cwnd(2, 18 * MSS)] {
            run.step(&step, spec, false);
        }
        let short = run.model.queue.sent.iter().filter(|sent| sent.range.len() < MSS);
        assert!(short.count() <= 3, "{spec}: {:?}", run.model.queue.sent);
    }
}
