//! Asking a scheduler outside any connection. The names and units of the JSON form are those of
//! docs/decide.md; this module is that page in code.

mod answer;
mod question;

use plait_sched::{Outcome, Scheduler, Spec};
pub(crate) use question::Question;
use std::fmt;

pub(crate) use answer::Answer;

/// Why a question cannot be answered.
#[derive(Debug)]
pub(crate) struct Refusal(String);

impl Refusal {
    fn new(field: &str, problem: &str) -> Refusal {
        let place = if field.is_empty() { String::new() } else { format!("{field}: ") };
        Refusal(format!("{place}{problem}"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Answers questions; keeps its memory between them, and nothing else.
#[derive(Default)]
pub(crate) struct Session {
    outcome: Outcome,
}

impl Session {
    /// One question, one answer, both JSON text on one line.
    pub(crate) fn answer(&mut self, line: &str) -> Result<String, Refusal> {
        let question = parse(line)?;
        let mut scheduler = build(&question)?;
        let situation = question.situation()?;
        self.outcome.clear();
        self.outcome.explain = true;
        let decision = scheduler.schedule(&situation.view(), &mut self.outcome);
        let answer = Answer::new(&situation, decision, &self.outcome, scheduler.as_ref());
        serde_json::to_string(&answer).map_err(|error| Refusal::new("", &error.to_string()))
    }
}

fn parse(line: &str) -> Result<Question, Refusal> {
    let mut json = serde_json::Deserializer::from_str(line);
    let question: Question = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = match error.path().to_string() {
            path if path == "." => String::new(),
            path => path,
        };
        Refusal::new(&field, &with_nearest(&error.inner().to_string()))
    })?;
    json.end().map_err(|_| Refusal::new("", "more than one JSON value on the line"))?;
    Ok(question)
}

/// Adds "did you mean" to serde's "unknown field `a`, expected one of `b`, `c` at line 1 column 9",
/// and leaves the line to the caller, who knows it.
fn with_nearest(message: &str) -> String {
    let (text, column) = message.split_once(" at line 1 column ").unwrap_or((message, ""));
    let mut quoted = text.split('`').skip(1).step_by(2);
    let near = match (text.starts_with("unknown"), quoted.next()) {
        (true, Some(given)) => {
            let mut longer = quoted.clone().filter(|name| name.starts_with(given));
            longer.next().or_else(|| plait_app::name::nearest(given, quoted))
        }
        _ => None,
    };
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let column = if column.is_empty() { String::new() } else { format!(" (column {column})") };
    format!("{text}{near}{column}")
}

/// The scheduler that a question names, in the state that it gives.
fn build(question: &Question) -> Result<Box<dyn Scheduler>, Refusal> {
    let text = question.spec()?;
    let spec = Spec::parse(&text)
        .map_err(|error| Refusal::new("scheduler", &crate::commands::list::spec_problem(&error)))?;
    let mut scheduler = spec.build();
    for (name, value) in question.state() {
        let value = value.map_err(|problem| Refusal::new(&format!("state.{name}"), problem))?;
        if !scheduler.load_state(name, value) {
            let of_base = spec.entry().state.iter();
            let all = of_base.chain(spec.decorators().iter().flat_map(|(it, _)| it.state));
            let known = all.map(|(name, _)| *name);
            return Err(Refusal::new("", &crate::failure::unknown("state", name, known)));
        }
    }
    Ok(scheduler)
}
