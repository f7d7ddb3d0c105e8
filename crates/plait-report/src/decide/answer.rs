//! Answers: the decision with its effects, its reason, its numbers and the state after it.

use super::situation::Situation;
use plait_base::SubflowId;
use plait_sched::{Decision, Effect, Number, Outcome, Reason, Scheduler, What};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// One answer.
#[derive(Serialize, JsonSchema, Debug)]
pub struct Answer {
    /// send, wait, idle or assign.
    decision: &'static str,
    /// The subflow to send on or to wait for, or the only subflow of a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    subflow: Option<u8>,
    /// For send: new, reinject, redundant or opportunistic.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'static str>,
    /// For new data: segments at the front of the unsent queue to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<Value>,
    /// For a copy: its first segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    dsn: Option<Value>,
    /// For assign: ranges in segments and their subflows, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    plan: Vec<Planned>,
    /// Further actions of the sender.
    effects: Vec<Effected>,
    /// The reason, as a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<&'static str>")]
    reason: Option<Reason>,
    /// The numbers behind the decision. The number of a subflow is named `name.ID`.
    numbers: Map<String, Value>,
    /// State after the decision. A later question with this state continues the run.
    state: Map<String, Value>,
}

/// A range assigned ahead of sending, in segments.
#[derive(Serialize, JsonSchema, Debug)]
struct Planned {
    subflow: u8,
    dsn: Value,
    len: Value,
}

/// An effect; windows are in segments, null is none.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(tag = "effect", rename_all = "lowercase")]
enum Effected {
    /// Set the window and the threshold of the subflow.
    Penalise { subflow: u8, cwnd: Value, ssthresh: Option<Value> },
    /// Limit the segments in flight on the subflow.
    Cap { subflow: u8, limit: Option<Value> },
}

impl Answer {
    /// Creates the answer for a decision.
    pub(super) fn new(
        situation: &Situation,
        decision: Decision,
        outcome: &Outcome,
        scheduler: &dyn Scheduler,
    ) -> Answer {
        let segments = |bytes: u64| number(situation.segments(bytes));
        let (word, subflow, reason, what) = match decision {
            Decision::Send { subflow, what, reason, .. } => {
                ("send", Some(subflow), Some(reason), Some(what))
            }
            Decision::Assign { reason } => ("assign", sole(outcome), Some(reason), None),
            Decision::Wait { on, reason } => ("wait", on, Some(reason), None),
            Decision::Idle => ("idle", None, None, None),
        };
        let (what, offset, dsn) = match what {
            Some(What::New { offset }) => (Some("new"), Some(segments(offset)), None),
            Some(What::Reinject) => (Some("reinject"), None, None),
            Some(What::Redundant(range)) => {
                (Some("redundant"), None, Some(segments(range.start.get())))
            }
            Some(What::OppRetx(range)) => {
                (Some("opportunistic"), None, Some(segments(range.start.get())))
            }
            None => (None, None, None),
        };
        let plan = outcome.plan.iter().map(|(range, subflow)| Planned {
            subflow: subflow.0,
            dsn: segments(range.start.get()),
            len: segments(range.end.saturating_sub(range.start)),
        });
        let effects = outcome.effects.iter().map(|effect| match *effect {
            Effect::Penalise { subflow, cwnd, ssthresh } => Effected::Penalise {
                subflow: subflow.0,
                cwnd: segments(cwnd),
                ssthresh: ssthresh.map(segments),
            },
            Effect::Cap { subflow, bytes } => {
                Effected::Cap { subflow: subflow.0, limit: bytes.map(segments) }
            }
        });
        let mut state = Map::new();
        scheduler.save_state(&mut |name, value| {
            state.insert(name.to_owned(), number(value));
        });
        Answer {
            decision: word,
            subflow: subflow.map(|id| id.0),
            what,
            offset,
            dsn,
            plan: plan.collect(),
            effects: effects.collect(),
            reason,
            numbers: outcome.numbers.iter().map(named).collect(),
            state,
        }
    }
}

/// Returns the subflow if a plan assigns all data to the same one.
fn sole(outcome: &Outcome) -> Option<SubflowId> {
    let (_, first) = outcome.plan.first()?;
    outcome.plan.iter().all(|(_, subflow)| subflow == first).then_some(*first)
}

/// Returns a number's name and value. The name ends in the subflow's id if the number belongs to
/// one.
pub(crate) fn named(entry: &Number) -> (String, Value) {
    let name = match entry.subflow {
        Some(id) => format!("{}.{}", entry.name, id.0),
        None => entry.name.to_owned(),
    };
    (name, rounded_number(entry.value))
}

/// Returns a number of a decision, rounded.
pub(super) fn rounded_number(value: f64) -> Value {
    number(rounded(value))
}

/// Rounds to twelve significant digits; later digits are rounding noise. The state is never
/// rounded.
fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// Returns a JSON number: an integer if the value is whole, `null` if JSON cannot represent it.
pub(super) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        Value::from(value as i64)
    } else {
        serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
    }
}
