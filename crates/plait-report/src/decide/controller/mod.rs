//! Runs a congestion controller outside any connection. A question has the flows and an event, the
//! answer has the flows after it. docs/decide.md defines the names and units of the JSON form.

mod answer;
mod question;

use super::{Refusal, parse};
pub use answer::Answer;
use plait_base::Span;
use plait_cc::{Ack, Congestion, Flow, Flows, IdleRestart, Spec, View};
pub use question::Question;
use question::{FlowState, Happens};
use serde_json::{Map, Value};

/// An example of a question for error messages.
const SAMPLE: &str = r#"{"cc":"lia","flows":[{"cwnd":20,"srtt_ms":20}],"event":{"ack":1460}}"#;

/// Answers one question; both are JSON text on one line.
///
/// # Errors
/// If the line is not a valid question. The message uses the terms of docs/decide.md.
pub fn answer(line: &str) -> Result<String, Refusal> {
    let question: Question = parse(line, SAMPLE, known_controller)?;
    let spec = spec(&question)?;
    let known = question.known()?;
    let own = question.event.flow;
    let happens = question.event.happens(known[own].settings.mss)?;
    let now = question.event.now()?;
    let mut windows = Vec::with_capacity(known.len());
    for (nth, known) in known.iter().enumerate() {
        windows.push(window(&spec, known, &question.flows[nth].state, nth)?);
    }
    if windows[own].is_rated() {
        let problem =
            "sets its rate by samples of the delivery rate, which a question does not have";
        return Err(Refusal::new("cc", &format!("`{}` {problem}", spec.name())));
    }
    let mut all: Vec<Flow> = known.iter().map(FlowState::flow).collect();
    // The parameter of a fixed window overrides the given window.
    for (flow, window) in all.iter_mut().zip(&windows) {
        flow.cwnd = window.cwnd();
    }
    let mut numbers = Map::new();
    if let Some(view) = View::of(Flows { all: &all, own }) {
        windows[own].algorithm().numbers(now, &view, &mut |name, value| {
            // Undefined numbers (no flow has an RTT) are omitted.
            if value.is_finite() {
                numbers.insert(name.to_owned(), super::answer::rounded_number(value));
            }
        });
    }
    let before = windows[own].books();
    for _ in 0..question.event.times {
        let flows = Flows { all: &all, own };
        apply(&mut windows[own], happens, now, &known[own], flows, question.idle_restart());
        all[own] = windows[own].flow(known[own].srtt, true);
    }
    let answer = Answer::new(&known, &windows, own, &before, numbers);
    serde_json::to_string(&answer).map_err(|error| Refusal::new("", &error.to_string()))
}

fn apply(
    window: &mut Congestion,
    happens: Happens,
    now: plait_base::Time,
    known: &FlowState,
    flows: Flows<'_>,
    idle_restart: IdleRestart,
) {
    match happens {
        Happens::Ack { bytes, rtt, cwnd_limited, round } => {
            let srtt = known.srtt.or(rtt).unwrap_or(Span::ZERO);
            let min_rtt = rtt.map_or(srtt, |rtt| rtt.min(srtt));
            let ack =
                Ack { now, bytes, rtt, srtt, min_rtt, cwnd_limited, round, acked: 0, sent: 0 };
            window.on_ack(&ack, flows);
        }
        Happens::Loss { inflight } => {
            window.on_loss(now, inflight.unwrap_or(window.cwnd()), flows);
        }
        Happens::Timeout { inflight, first } => {
            window.on_timeout(now, inflight.unwrap_or(window.cwnd()), first, flows);
        }
        Happens::Recovered => window.on_recovered(now),
        Happens::Idle { idle, rto } => {
            window.idle(now, idle, rto, idle_restart);
        }
    }
}

/// Returns an error if an invalid question names an unknown controller.
fn known_controller(value: &Value) -> Result<(), Refusal> {
    match value["cc"].as_str() {
        Some(name) => Spec::parse(name).map(drop).map_err(|error| refused(&error)),
        None => Ok(()),
    }
}

/// Returns the controller with its parameters.
fn spec(question: &Question) -> Result<Spec, Refusal> {
    let mut text = question.cc.clone();
    for (key, value) in &question.params {
        let place = format!("params.{key}");
        let value = super::question::param_text(value)
            .ok_or_else(|| Refusal::new(&place, "expected a number, a word, true or false"))?;
        let joint = if text.contains(':') { ',' } else { ':' };
        text.push_str(&format!("{joint}{key}={value}"));
    }
    Spec::parse(&text).map_err(|error| refused(&error))
}

fn refused(error: &plait_cc::SpecError) -> Refusal {
    Refusal::new("cc", &crate::names::spec_problem(error))
}

/// Returns the window of a flow in its given state.
fn window(
    spec: &Spec,
    known: &FlowState,
    state: &Map<String, Value>,
    nth: usize,
) -> Result<Congestion, Refusal> {
    let mut algorithm = spec.build();
    for (name, value) in state {
        let place = format!("flows[{nth}].state.{name}");
        let number = value.as_f64().ok_or_else(|| Refusal::new(&place, "expected a number"))?;
        if number < 0.0 {
            return Err(Refusal::new(&place, "must be 0 or more"));
        }
        if !algorithm.load_state(name, number) {
            let names = spec.entry().about.state.iter().map(|(name, _)| *name);
            if spec.entry().about.state.is_empty() {
                let problem = format!("`{}` remembers nothing", spec.entry().about.name);
                return Err(Refusal::new(&place, &problem));
            }
            return Err(Refusal::new("", &crate::names::unknown("state", name, names)));
        }
    }
    let mut kept = Vec::new();
    algorithm.save_state(&mut |name, value| kept.push((name.to_owned(), value)));
    for (name, value) in state {
        let Some(value) = value.as_f64() else { continue };
        let kept = kept.iter().find(|(it, _)| it == name).map(|(_, value)| *value);
        let place = format!("flows[{nth}].state");
        super::state::is_kept(&place, (name, value), kept, spec.entry().about.state)?;
    }
    Ok(Congestion::continued(known.settings, algorithm, &known.books))
}
