//! Schedulers that are Python classes.
//!
//! The list of schedulers has functions without a state, so a class has a number, and each number a function.

use crate::error::{Error, refused};
use crate::scheduler_view::{Send, Subflow, View, Wait};
use crate::work::{expect_classes, failed};
use plait_base::{DataRange, SubflowId};
use plait_sched::rules::{self, Task};
use plait_sched::{About, Decision, Entry, Needs, Outcome, Params, Reason, Scheduler};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Classes by number, each with its name.
static CLASSES: Mutex<Vec<(&'static str, Py<PyAny>)>> = Mutex::new(Vec::new());

/// Builds a scheduler.
type Build = fn(&Params) -> Box<dyn Scheduler>;

macro_rules! builders {
    ($($number:literal)*) => { [$(|_| Box::new(PythonScheduler::new($number))),*] };
}

/// The function of each number.
const BUILDERS: [Build; 32] = builders!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
);

/// Adds a class to the list of schedulers. A class with the name of an earlier one takes its place.
#[pyfunction]
pub(crate) fn register(class: Bound<'_, PyAny>, name: &str, idea: &str) -> PyResult<()> {
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = classes.iter_mut().find(|known| known.0 == name) {
        let before = std::mem::replace(&mut known.1, class.unbind());
        // Python code may run when an object goes, so the lock goes first.
        drop(classes);
        drop(before);
        return Ok(());
    }
    let Some(build) = BUILDERS.get(classes.len()).copied() else {
        let text = format!("`{name}`: at most {} Python classes can be schedulers", BUILDERS.len());
        return Err(Error::new_err(text));
    };
    let name: &'static str = String::from(name).leak();
    let idea: &'static str = String::from(idea).leak();
    let page: &'static str = format!("{idea}\n\nA Python class of this process.\n").leak();
    let about = About { name, aliases: &[], idea, page, params: &[], state: &[] };
    plait_sched::register(&[Entry { about, queues_ahead: false, build }]).map_err(refused)?;
    classes.push((name, class.unbind()));
    expect_classes();
    Ok(())
}

/// An object of a Python class.
#[derive(Debug)]
struct PythonScheduler {
    name: &'static str,
    /// `None` after an exception: the run is over, and the scheduler waits.
    object: Option<Py<PyAny>>,
}

impl PythonScheduler {
    fn new(number: usize) -> PythonScheduler {
        let built = Python::try_attach(|py| {
            let class = {
                let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
                classes.get(number).map(|(name, class)| (*name, class.clone_ref(py)))
            };
            let (name, class) = class?;
            let object = class.call0(py).map_err(|error| failed(py, &error)).ok();
            Some(PythonScheduler { name, object })
        });
        built.flatten().unwrap_or(PythonScheduler { name: "", object: None })
    }
}

impl Scheduler for PythonScheduler {
    // The class decides only about new data, and only while a subflow has room.
    fn needs(&self) -> Needs {
        Needs { pacing_rate: true, ..Needs::LEAST }
    }

    fn schedule(&mut self, view: &plait_sched::View<'_>, _: &mut Outcome) -> Decision {
        let segment = match rules::task(view) {
            Task::Settled(decision) => return decision,
            Task::Place(segment) => segment,
        };
        let candidates = view.candidates();
        let usable = |subflow: &plait_sched::SubflowView| {
            candidates.contains(subflow.id) && subflow.usable(segment.len(), view.tsq)
        };
        if !view.subflows.iter().any(usable) {
            return rules::none_usable(view);
        }
        let Some(object) = &self.object else { return rules::none_usable(view) };
        let decided = Python::try_attach(|py| {
            let asked = Bound::new(py, View::new(view, segment))?;
            let answer = object.bind(py).call_method1(pyo3::intern!(py, "schedule"), (asked,))?;
            self.decision(view, segment, &answer)
        });
        match decided {
            Some(Ok(decision)) => decision,
            Some(Err(error)) => {
                Python::try_attach(|py| failed(py, &error));
                self.object = None;
                rules::none_usable(view)
            }
            // The interpreter ends.
            None => rules::none_usable(view),
        }
    }
}

impl PythonScheduler {
    /// Converts the answer of the class.
    fn decision(
        &self,
        view: &plait_sched::View<'_>,
        segment: DataRange,
        answer: &Bound<'_, PyAny>,
    ) -> PyResult<Decision> {
        if answer.is_none() {
            return Ok(Decision::Wait { on: None, reason: Reason::AllBusy });
        }
        if let Ok(wait) = answer.cast::<Wait>() {
            let on = wait.get().subflow.map(|id| self.known(view, id)).transpose()?;
            return Ok(Decision::Wait { on, reason: Reason::FastFinishesSooner });
        }
        let (id, room) = if let Ok(subflow) = answer.cast::<Subflow>() {
            (subflow.get().number(), false)
        } else if let Ok(send) = answer.cast::<Send>() {
            (send.get().subflow, send.get().room)
        } else if let Ok(id) = answer.extract() {
            (id, false)
        } else {
            let name = self.name;
            let text = format!("{name}.schedule: a subflow, Send, Wait or None is allowed");
            return Err(Error::new_err(text));
        };
        let id = self.known(view, id)?;
        let chosen = view.subflows.iter().find(|subflow| subflow.id == id);
        let chosen = chosen.filter(|it| it.usable(segment.len(), view.tsq)).ok_or_else(|| {
            let text = format!("{}.schedule: subflow {id} cannot take the segment", self.name);
            Error::new_err(text + "\n  allowed: one of view.usable")
        })?;
        Ok(match rules::new_on(view, id, segment, Reason::Priority) {
            Decision::Send { subflow, what, grant, reason } if room => {
                Decision::Send { subflow, what, grant: chosen.room().max(grant), reason }
            }
            decision => decision,
        })
    }

    fn known(&self, view: &plait_sched::View<'_>, id: u8) -> PyResult<SubflowId> {
        let known = view.subflows.iter().map(|it| it.id).find(|known| known.0 == id);
        let text = || format!("{}.schedule: there is no subflow {id}", self.name);
        known.ok_or_else(|| Error::new_err(text()))
    }
}
