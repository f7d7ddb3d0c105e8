//! The contract of schedulers, for Python classes: random connections, and a check of each decision.
//!
//! `crates/plait-sched/tests/contract.rs` has it for the schedulers in Rust. A class decides about new data alone, so the
//! connections here lose nothing.

mod connection;

use crate::ending::{self, waiting};
use crate::error::{Error, refused};
use crate::work::Shared;
use connection::{Connection, MSS, any_view};
use plait_base::RandomStream;
use plait_sched::{Decision, Entry, Listed, Notice, Outcome, ParamKind, Reason, Scheduler, Spec};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::fmt::Write;
use std::sync::Arc;

/// Random steps of a connection.
const STEPS: u64 = 60;
/// Decisions after one step. A scheduler that decides more often makes no progress.
const MOST_DECISIONS: usize = 10_000;
/// Decisions about extreme views for each connection.
const EXTREME: usize = 8;

/// Checks the contract of the scheduler `name`, which is a class, with random connections. Returns the number of decisions.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, name: &str, connections: u32, seed: u64) -> PyResult<u64> {
    ending::refuse()?;
    let task = Arc::new(Shared::default());
    let mut decisions = 0;
    for spec in variants(name)? {
        for number in 0..connections {
            py.check_signals()?;
            let check = || Check::new(&spec, number, seed, &task).and_then(Check::run);
            let checked = waiting(py, || task.watch(check));
            decisions += checked.map_err(|broken| broken.into_error(py))?;
        }
    }
    Ok(decisions)
}

/// Returns the scheduler with its defaults, and with each parameter in turn at its limits.
fn variants(name: &str) -> PyResult<Vec<Spec>> {
    let entry = Entry::find(name).ok_or_else(|| refused(format!("unknown scheduler `{name}`")))?;
    let mut texts = vec![name.to_owned()];
    for param in entry.about.params {
        let values = match param.kind {
            ParamKind::Switch { .. } => vec!["on".to_owned(), "off".to_owned()],
            ParamKind::Whole { min, max, .. } => vec![min.to_string(), max.to_string()],
            ParamKind::Real { min, max, .. } => vec![min.to_string(), max.to_string()],
            ParamKind::Auto { .. } | ParamKind::Word { .. } | ParamKind::Window { .. } => vec![],
        };
        texts.extend(values.into_iter().map(|value| format!("{name}:{}={value}", param.name)));
    }
    texts.iter().map(|text| Spec::parse(text).map_err(refused)).collect()
}

/// A broken rule.
struct Broken {
    text: String,
    /// The exception of the class.
    cause: Option<PyErr>,
}

impl Broken {
    fn into_error(self, py: Python<'_>) -> PyErr {
        // Ctrl-C and `sys.exit` are no fault of the class.
        if let Some(cause) = self.cause.as_ref()
            && !cause.is_instance_of::<PyException>(py)
        {
            return cause.clone_ref(py);
        }
        let error = Error::new_err(self.text);
        error.set_cause(py, self.cause);
        error
    }
}

/// A connection with two objects of the class. Both get the same views.
struct Check {
    spec: String,
    number: u32,
    seed: u64,
    objects: [Box<dyn Scheduler>; 2],
    connection: Connection,
    out: Outcome,
    decisions: u64,
    /// The call, which gets the exceptions of the objects.
    task: Arc<Shared>,
}

impl Check {
    fn new(spec: &Spec, number: u32, seed: u64, task: &Arc<Shared>) -> Result<Check, Broken> {
        let connection = Connection::drawn(seed, number);
        let objects = [spec.build(), spec.build()];
        let (spec, out, task) = (spec.to_string(), Outcome::default(), Arc::clone(task));
        let check = Check { spec, number, seed, objects, connection, out, decisions: 0, task };
        check.exception("the object was made")?;
        Ok(check)
    }

    /// Takes a connection through random steps, and then to its end. Returns the number of decisions.
    fn run(mut self) -> Result<u64, Broken> {
        for _ in 0..STEPS {
            let notice = self.connection.step();
            self.notice(notice)?;
            self.decide()?;
        }
        let notice = self.connection.repair();
        self.notice(Some(notice))?;
        self.decide()?;
        while self.connection.in_flight() {
            let notice = self.connection.acknowledge_oldest();
            self.notice(notice)?;
            self.decide()?;
        }
        if let Some(left) = self.connection.left() {
            let text = format!(
                "{left} bytes are never sent, although all subflows are idle\n  allowed: to wait while data of the \
                 connection is in flight"
            );
            return Err(self.broken(&text, None));
        }
        self.extreme()?;
        Ok(self.decisions)
    }

    /// Reports a notice to both objects.
    fn notice(&mut self, notice: Option<Notice>) -> Result<(), Broken> {
        let Some(notice) = notice else { return Ok(()) };
        for object in &mut self.objects {
            object.on_notice(&self.connection.view(), notice);
        }
        self.exception("a notice came")
    }

    /// Decides until there is nothing more to send.
    fn decide(&mut self) -> Result<(), Broken> {
        let mut granted: Option<(Decision, u64)> = None;
        for _ in 0..MOST_DECISIONS {
            let decision = self.ask()?;
            if let Some((before, _)) =
                granted.filter(|(it, left)| self.connection.grants(*it, *left))
                && before.one_segment(MSS) != decision.one_segment(MSS)
            {
                let text = format!(
                    "after `room=True` for {}, the next decision is {}\n  allowed: room=True if the same subflow would \
                     follow while it has room",
                    words(before),
                    words(decision)
                );
                return Err(self.broken(&text, None));
            }
            granted = match (decision, granted) {
                (Decision::Send { grant, .. }, None) => Some((decision, grant.saturating_sub(MSS))),
                (Decision::Send { .. }, Some((before, left))) => {
                    Some((before, left.saturating_sub(MSS)))
                }
                _ => None,
            };
            if let Decision::Wait { on: Some(on), .. } = decision
                && self.connection.view().subflow(on).is_none_or(|it| it.hard_down())
            {
                let text = format!(
                    "it waits for subflow {on}, which is dead\n  allowed: one of view.candidates"
                );
                return Err(self.broken(&text, None));
            }
            if !self.connection.apply(decision) {
                if matches!(decision, Decision::Wait { reason: Reason::SendWindow, .. }) {
                    self.notice(Some(Notice::WindowLimited))?;
                }
                return Ok(());
            }
        }
        Err(self.broken("it decides without an end", None))
    }

    /// Asks both objects.
    fn ask(&mut self) -> Result<Decision, Broken> {
        self.decisions += 1;
        let view = self.connection.view();
        let [first, second] = [0, 1].map(|at| {
            self.out.clear();
            self.objects[at].schedule(&view, &mut self.out)
        });
        self.exception("")?;
        if first == second {
            return Ok(first);
        }
        let text = format!(
            "two objects that got the same views decide differently: {} and {}\n  allowed: no clock, no random \
             numbers, and no state outside the object",
            words(first),
            words(second)
        );
        Err(self.broken(&text, None))
    }

    /// Asks about views with extreme numbers. Only an exception breaks the contract here.
    fn extreme(&mut self) -> Result<(), Broken> {
        let mut random = RandomStream::new(self.seed, &["extreme", &self.number.to_string()]);
        for _ in 0..EXTREME {
            self.connection = any_view(&mut random);
            self.ask()?;
        }
        Ok(())
    }

    /// Fails if the class has raised an exception.
    fn exception(&self, at: &str) -> Result<(), Broken> {
        let Err(error) = self.task.failure() else { return Ok(()) };
        let said = error.to_string();
        let said = if at.is_empty() { said } else { format!("{said} (when {at})") };
        Err(self.broken(&said, Some(error)))
    }

    fn broken(&self, text: &str, cause: Option<PyErr>) -> Broken {
        let Check { spec, number, seed, decisions, .. } = self;
        let (problem, rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut text = format!(
            "{spec}: decision {decisions} of connection {number} (seed {seed}): {problem}\n"
        );
        let _ = write!(text, "{}", self.connection);
        if !rest.is_empty() {
            let _ = write!(text, "\n{rest}");
        }
        Broken { text, cause }
    }
}

/// Returns a decision in words.
fn words(decision: Decision) -> String {
    match decision {
        Decision::Send { subflow, .. } => format!("subflow {subflow}"),
        Decision::Wait { on: Some(on), .. } => format!("to wait for subflow {on}"),
        Decision::Wait { on: None, .. } => "to wait".to_owned(),
        Decision::Assign { .. } => "to assign data".to_owned(),
        Decision::Idle => "idle".to_owned(),
    }
}
