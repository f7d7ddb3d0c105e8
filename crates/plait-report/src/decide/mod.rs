//! Runs a scheduler or a congestion controller outside any connection. docs/decide.md defines the
//! names and units of the JSON form.

mod answer;
pub mod controller;
#[cfg(test)]
mod fuzz;
mod question;
mod situation;
mod state;
mod words;

use plait_sched::{Outcome, Scheduler, Spec};
use question::{INFINITE_SSTHRESH, MSS};
use serde::de::DeserializeOwned;
use serde_json::Value;
use situation::{GREATEST_COUNT, span};
use std::fmt;

pub use answer::Answer;
pub(crate) use answer::named;
pub use question::Question;
pub use words::plain;

/// The reason why a question cannot be answered.
#[derive(Debug)]
pub struct Refusal(String);

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

impl std::error::Error for Refusal {}

/// Answers questions. It reuses its allocations between questions and keeps no other state.
#[derive(Default)]
pub struct Session {
    /// The scheduler of questions that name none.
    usual: Option<String>,
    outcome: Outcome,
}

impl Session {
    /// A session whose questions need not name a scheduler.
    ///
    /// # Errors
    /// If the scheduler is not known.
    pub fn with_scheduler(text: &str) -> Result<Session, Refusal> {
        let refused = |error| Refusal::new("", &crate::names::spec_problem(&error));
        Spec::parse(text).map_err(refused)?;
        Ok(Session { usual: Some(text.to_owned()), outcome: Outcome::default() })
    }

    /// Answers one question; both are JSON text on one line.
    ///
    /// ```
    /// let question = r#"{"scheduler":"ecf","subflows":[{"id":0,"srtt_ms":9}]}"#;
    /// let answer = plait_report::decide::Session::default().answer(question)?;
    /// assert!(answer.starts_with(r#"{"decision":"send","subflow":0,"what":"new","#));
    /// # Ok::<(), plait_report::decide::Refusal>(())
    /// ```
    ///
    /// # Errors
    /// If the line is not a valid question. The message uses the terms of docs/decide.md.
    pub fn answer(&mut self, line: &str) -> Result<String, Refusal> {
        let mut question: Question = parse(line, SAMPLE, known_scheduler)?;
        question.complete(self.usual.as_deref())?;
        let mut scheduler = build(&question)?;
        let situation = question.situation()?;
        if let Some(notice) = question.notice()? {
            scheduler.on_notice(&situation.view(), notice);
        }
        self.outcome.clear();
        self.outcome.explain = true;
        let decision = scheduler.schedule(&situation.view(), &mut self.outcome);
        let answer = Answer::new(&situation, decision, &self.outcome, scheduler.as_ref());
        serde_json::to_string(&answer).map_err(|error| Refusal::new("", &error.to_string()))
    }
}

/// An example of a question for error messages.
const SAMPLE: &str = r#"{"scheduler":"ecf","subflows":[{"id":0,"srtt_ms":9}]}"#;

/// Parses a question. If parsing fails, `known` checks the names, so that an unknown name is
/// reported.
fn parse<T: DeserializeOwned>(
    line: &str,
    sample: &str,
    known: fn(&Value) -> Result<(), Refusal>,
) -> Result<T, Refusal> {
    let text = line.trim();
    if !text.starts_with('{') {
        let problem = format!("a question is a JSON object on one line\n  such as {sample}");
        return Err(Refusal::new("", &problem));
    }
    let mut json = serde_json::Deserializer::from_str(line);
    let question: T = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = match error.path().to_string() {
            // No path yet, or a key that is not a string.
            path if path == "." || path == "?" => String::new(),
            path => path,
        };
        let inner = error.inner();
        if inner.is_eof() {
            let column = text.chars().count();
            return Refusal::new(
                "",
                &format!(
                    "the JSON is not finished where the line ends (column {column})\n  \
                     a question is one line; `tr -d '\\n'` joins the lines of a file"
                ),
            );
        }
        // An unknown name matters more than a missing field.
        if let Err(unknown) = known(&serde_json::from_str(line).unwrap_or_default()) {
            return unknown;
        }
        Refusal::new(&field, &plain(&inner.to_string()))
    })?;
    json.end().map_err(|_| Refusal::new("", "more than one JSON value on the line"))?;
    Ok(question)
}

/// Returns an error if an invalid question names an unknown scheduler.
fn known_scheduler(value: &Value) -> Result<(), Refusal> {
    let Some(name) = value["scheduler"].as_str() else { return Ok(()) };
    let refused = |error| Refusal::new("scheduler", &crate::names::spec_problem(&error));
    Spec::parse(name).map(drop).map_err(refused)
}

/// Builds the scheduler of a question with the given state.
fn build(question: &Question) -> Result<Box<dyn Scheduler>, Refusal> {
    let text = question.spec()?;
    let spec = Spec::parse(&text)
        .map_err(|error| Refusal::new("scheduler", &crate::names::spec_problem(&error)))?;
    let mut scheduler = spec.build();
    let mut given = Vec::new();
    let words: Vec<(&str, &str)> = {
        let of_base = spec.entry().about.state.iter();
        of_base
            .chain(spec.decorators().iter().flat_map(|it| it.entry().about.state))
            .copied()
            .collect()
    };
    for (name, value) in question.state() {
        let value = value.map_err(|problem| Refusal::new(&format!("state.{name}"), problem))?;
        if !scheduler.load_state(name, value) {
            let known = words.iter().map(|(name, _)| *name);
            return Err(Refusal::new("", &crate::names::unknown("state", name, known)));
        }
        given.push((name, value));
    }
    let mut kept = Vec::new();
    scheduler.save_state(&mut |name, value| kept.push((name.to_owned(), value)));
    let kept = |name: &str| kept.iter().find(|(it, _)| it == name).map(|(_, value)| *value);
    for (name, value) in given {
        state::is_kept("state", (name, value), kept(name), &words)?;
    }
    Ok(scheduler)
}
