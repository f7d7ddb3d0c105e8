//! Runs one case and judges it.

use super::case::{Case, End};
use super::fault::{FaultKind, Traces};
use super::swarm_app::SwarmApp;
use plait_app::AppEvent;
use plait_base::{PathId, Span, Time};
use plait_core::{ConnectionStats, Detail, Event};
use plait_sim::{Direction, Hop, Outcome, Watch, Who};
use plait_wire::{Flags, Segment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The kinds of violations.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Broken {
    /// An invariant that must hold after every event was broken.
    Invariant,
    /// The connection failed.
    Failed,
    /// The data was not delivered in time after the faults had healed.
    Stuck,
    /// The data was delivered, but an end had not closed.
    Lingering,
    /// The program panicked.
    Panic,
}

/// A violation in a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// Kind of the violation.
    pub broken: Broken,
    /// The invariant, or the state of both ends, in words.
    pub what: String,
    /// Virtual time, in nanoseconds from the start.
    pub at_ns: u64,
    /// Number of segments sent, delivered and dropped.
    pub segments: u64,
}

impl Violation {
    /// Returns true if `other` is the same violation: the same words, with any numbers.
    #[must_use]
    pub fn is_like(&self, other: &Violation) -> bool {
        let words = |it: &Violation| -> String {
            it.what.chars().filter(|c| !c.is_ascii_digit()).collect()
        };
        let same_words = || words(self) == words(other);
        self.broken == other.broken
            && (!matches!(self.broken, Broken::Invariant | Broken::Panic) || same_words())
    }
}

/// The verdict on a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Running hash over every segment sent and delivered.
    pub hash: u64,
    /// End of the run.
    pub ended: Time,
    /// Segments sent, delivered and dropped.
    pub segments: u64,
    /// Bit n is set if the run met a fault of kind n of [`super::KINDS`].
    pub met: u32,
    /// True if a connection was given up because the faults left no alternative.
    pub given_up: bool,
    /// The violation, if there was one.
    pub violation: Option<Violation>,
}

/// Runs a case and judges it.
#[must_use]
pub fn run_case(case: &Case) -> Verdict {
    let mut quick = Quick::default();
    judge(case, &mut quick)
}

/// Runs a case and returns the last `keep` events, one a line.
#[must_use]
pub fn replay(case: &Case, keep: usize) -> (Verdict, Vec<String>) {
    let names = (0..case.paths.len()).map(|index| format!("p{index}")).collect();
    let mut trail = Trail { quick: Quick::default(), names, keep, lines: VecDeque::new() };
    let verdict = judge(case, &mut trail);
    (verdict, trail.lines.into())
}

/// A watcher with counters.
trait Witness: Watch {
    fn quick(&self) -> &Quick;
}

/// Counters for the verdict.
#[derive(Debug, Default)]
struct Quick {
    now: Time,
    segments: u64,
    zero_window: [bool; 2],
    complete: usize,
}

impl Watch for Quick {
    fn on_segment(&mut self, now: Time, hop: Hop, _: PathId, way: Direction, segment: &Segment) {
        self.now = now;
        self.segments += 1;
        let plain = !segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::RST);
        if segment.window == 0 && plain && hop == Hop::Sent {
            self.zero_window[usize::from(way == Direction::Down)] = true;
        }
    }

    fn on_app(&mut self, _: Time, _: Who, event: &AppEvent) {
        self.complete += usize::from(*event == AppEvent::Complete);
    }

    fn detail(&self) -> Detail {
        Detail::Nothing
    }
}

impl Witness for Quick {
    fn quick(&self) -> &Quick {
        self
    }
}

/// Keeps the last events as lines.
struct Trail {
    quick: Quick,
    names: Vec<String>,
    keep: usize,
    lines: VecDeque<String>,
}

impl Trail {
    fn note(&mut self, now: Time, line: &str) {
        if self.keep == 0 {
            return;
        }
        if self.lines.len() >= self.keep {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:>14.6} s  {line}", now.as_nanos() as f64 / 1e9));
    }
}

impl Watch for Trail {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        self.note(now, &format!("{:<6} {event:?}", format!("{:?}", who.host).to_lowercase()));
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        self.quick.on_app(now, who, event);
        self.note(now, &format!("{:<6} app {event:?}", format!("{:?}", who.host).to_lowercase()));
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        self.quick.on_segment(now, hop, path, way, segment);
        let arrow = if way == Direction::Up { "client > server" } else { "server > client" };
        let name = self.names.get(path.index()).map_or("?", String::as_str);
        let line = format!("{arrow} on {name} {hop:?}: {}", segment_line(segment));
        self.note(now, &line);
    }
}

impl Witness for Trail {
    fn quick(&self) -> &Quick {
        &self.quick
    }
}

/// Returns a segment on one line.
pub(super) fn segment_line(segment: &Segment) -> String {
    let Segment { server, src_port, dst_port, seq, ack, flags, window, options, payload } = segment;
    let mut line = format!(
        "{src_port}>{dst_port} {flags:?} seq {seq} ack {ack} win {window} len {}",
        payload.len()
    );
    if server.0 > 0 {
        line.push_str(&format!(" server {}", server.0));
    }
    if let Some(dss) = &options.dss {
        if let Some(data_ack) = dss.data_ack {
            line.push_str(&format!(" data_ack {}", data_ack.value.0));
        }
        if let Some(map) = dss.mapping {
            line.push_str(&format!(" dsn {} ssn {} map {}", map.dsn.0, map.ssn, map.len));
        }
        if dss.data_fin {
            line.push_str(" DATA_FIN");
        }
    }
    if let Some(mptcp) = options.mptcp.as_deref() {
        line.push_str(&format!(" {mptcp:?}"));
    }
    if options.sack.count() > 0 {
        line.push_str(&format!(" sack {:?}", options.sack.as_slice()));
    }
    line
}

fn judge(case: &Case, witness: &mut impl Witness) -> Verdict {
    let setup = match case.setup() {
        Ok(setup) => setup,
        Err(error) => return broken(Broken::Failed, error.to_string(), &Quick::default()),
    };
    let held_back = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let apps = |_: usize, _: usize| -> Vec<plait_sim::Ends> {
        let app = |end: End| {
            let held = &held_back[usize::from(end == End::Server)];
            Box::new(SwarmApp::new(case.plan(end), Arc::clone(held)))
        };
        vec![(app(End::Client), app(End::Server))]
    };
    let run = AssertUnwindSafe(|| plait_sim::run_apps(&setup, &apps, &mut *witness));
    let outcome = match catch_unwind(run) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("a panic without a message").to_owned();
            return broken(Broken::Panic, text, witness.quick());
        }
    };
    let quick = witness.quick();
    let traces = Traces {
        links: outcome.links.clone(),
        zero_window: quick.zero_window,
        ended: outcome.ended,
        middlebox_counters: outcome.middlebox_counters.clone(),
        held_back: held_back.map(|held| held.load(Ordering::Relaxed)),
    };
    let mut violation = violation(&outcome, quick, case.grace());
    let failed = violation.as_ref().is_some_and(|it| it.broken == Broken::Failed);
    let given_up = failed && may_be_given_up(case, &outcome);
    if given_up {
        violation = None;
    }
    let met = case.faults.iter().filter(|fault| fault.was_met(&traces));
    Verdict {
        hash: outcome.digest.value(),
        ended: outcome.ended,
        segments: quick.segments,
        met: met.fold(0, |set, fault| set | 1 << FaultKind::index(fault.kind())),
        given_up,
        violation,
    }
}

/// Returns true if the faults may force an end to give the connection up. If options vanish from one of
/// several subflows, fallback is impossible (RFC 8684 section 3.7), and the last subflow may be among the
/// reset ones. Plain TCP does not survive the loss of its address, and Multipath TCP not the loss of its only
/// address.
fn may_be_given_up(case: &Case, outcome: &Outcome) -> bool {
    let has = |kind: &str| case.faults.iter().any(|fault| fault.kind() == kind);
    let plain = |end: &Option<ConnectionStats>| end.as_ref().is_some_and(|end| !end.multipath);
    let mut connections = outcome.pairs.iter().flatten();
    let alone = case.paths.len() == 1
        || connections.any(|it| !it.complete && (plain(&it.client) || plain(&it.server)));
    let settings = &case.settings;
    let several = case.paths.len() > 1 || settings.subflows > 1 || settings.second_address;
    several && has("strip") || alone && has("address-removed")
}

/// Returns the verdict on a run without an outcome.
fn broken(broken: Broken, what: String, quick: &Quick) -> Verdict {
    let (at_ns, segments) = (quick.now.as_nanos(), quick.segments);
    let violation = Violation { broken, what, at_ns, segments };
    Verdict {
        hash: 0,
        ended: quick.now,
        segments,
        met: 0,
        given_up: false,
        violation: Some(violation),
    }
}

fn violation(outcome: &Outcome, quick: &Quick, grace: Span) -> Option<Violation> {
    let (broken, what) = if let Some(text) = &outcome.violation {
        // The time at the start of the text has a member of its own.
        let what = text.split_once(": ").map_or(text.as_str(), |(_, what)| what);
        (Broken::Invariant, what.to_owned())
    } else if !outcome.complete() {
        (Broken::Failed, format!("the connection failed: {}", standing(outcome)))
    } else if !outcome.over {
        let grace = grace.as_secs_f64();
        let ends = 2 * outcome.pairs.iter().map(Vec::len).sum::<usize>();
        let all = quick.complete >= ends;
        let (broken, which) =
            if all { (Broken::Lingering, "not closed") } else { (Broken::Stuck, "not done") };
        let what = format!("{which} {grace} s after the faults healed: {}", standing(outcome));
        (broken, what)
    } else {
        return None;
    };
    let (at_ns, segments) = (outcome.ended.as_nanos(), quick.segments);
    Some(Violation { broken, what, at_ns, segments })
}

/// Returns the state of the two ends.
fn standing(outcome: &Outcome) -> String {
    let end = |stats: &Option<ConnectionStats>| {
        let Some(stats) = stats else { return "none".to_owned() };
        let flows: String = stats
            .subflows
            .iter()
            .map(|flow| {
                let up = if flow.up { " up" } else { "" };
                let silent = if flow.potentially_failed { " silent" } else { "" };
                format!(
                    " [{} on path {}{up}{silent}, {} of {} in flight]",
                    flow.subflow, flow.path.0, flow.inflight, flow.cwnd
                )
            })
            .collect();
        format!("{:?}, {} not acknowledged{flows}", stats.state, stats.unacked)
    };
    let connections = outcome.pairs.iter().flatten();
    let line = |it: &plait_sim::ConnectionOutcome| {
        format!("client {}; server {}", end(&it.client), end(&it.server))
    };
    connections.map(line).collect::<Vec<_>>().join("; ")
}
