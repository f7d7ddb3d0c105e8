//! Schedulers that are Python classes.
//!
//! The list of schedulers has functions without a state, so a class has a number, and each number a function.

use crate::error::{Error, refused};
use crate::scheduler_view::{Send, Subflow, View, Wait};
use crate::work::{expect_classes, failed};
use plait_base::{DataRange, SubflowId, SubflowSet};
use plait_sched::rules::{self, Task};
use plait_sched::{
    About, Decision, Entry, Needs, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    Value,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt};
use std::sync::{Mutex, PoisonError};

/// Classes by number.
static CLASSES: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

/// A class of the list.
struct Registered {
    name: &'static str,
    class: Py<PyAny>,
    params: &'static [Param],
    hears: Hears,
    build: Build,
}

/// The notices for which a class has a method.
#[derive(Clone, Copy, Default, Debug)]
struct Hears {
    data_acks: bool,
    subflows: bool,
    window: bool,
}

impl Hears {
    fn of(class: &Bound<'_, PyAny>) -> PyResult<Hears> {
        Ok(Hears {
            data_acks: class.hasattr("on_data_ack")?,
            subflows: class.hasattr("on_subflows_changed")?,
            window: class.hasattr("on_window_limited")?,
        })
    }
}

/// Builds a scheduler.
type Build = fn(&Params) -> Box<dyn Scheduler>;

macro_rules! builders {
    ($($number:literal)*) => { [$(|given| Box::new(PythonScheduler::new($number, given))),*] };
}

/// The function of each number.
const BUILDERS: [Build; 32] = builders!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
);

/// Largest value of a parameter that is a number.
const MAX_PARAM_VALUE: u32 = 1_000_000_000;

/// Returns the declaration of a parameter with this default.
fn param_of(owner: &str, name: &str, default: &Bound<'_, PyAny>) -> PyResult<Param> {
    let refused = || {
        let text = format!("{owner}: parameter `{name}`: the default is `{default}`");
        Error::new_err(text + "\n  allowed: True, False, or a number from 0 to 1000000000")
    };
    let kind = if default.is_instance_of::<PyBool>() {
        ParamKind::Switch { default: default.extract()? }
    } else if default.is_instance_of::<PyInt>() {
        let default: u32 = default.extract().map_err(|_| refused())?;
        ParamKind::Whole { min: 0, max: MAX_PARAM_VALUE.into(), default: default.into() }
    } else {
        let default: f64 = default.extract().map_err(|_| refused())?;
        ParamKind::Real { min: 0.0, max: MAX_PARAM_VALUE.into(), default }
    };
    match kind {
        ParamKind::Real { default, .. } if !(0.0..=MAX_PARAM_VALUE.into()).contains(&default) => {
            Err(refused())
        }
        ParamKind::Whole { default, .. } if default > MAX_PARAM_VALUE.into() => Err(refused()),
        kind => {
            let name = String::from(name).leak();
            Ok(Param { name, kind, unit: "", help: "of the Python class", clause: "" })
        }
    }
}

/// Adds a class to the list of schedulers. `params` are the parameters of the class with their defaults. A class with the
/// name of an earlier one takes its place.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes lists so")]
pub(crate) fn register(
    class: Bound<'_, PyAny>,
    name: &str,
    idea: &str,
    params: Vec<(String, Bound<'_, PyAny>)>,
) -> PyResult<()> {
    let hears = Hears::of(&class)?;
    let params: PyResult<Vec<Param>> =
        params.iter().map(|(param, default)| param_of(name, param, default)).collect();
    let params = params?;
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = classes.iter_mut().find(|known| known.name == name) {
        if known.params != params {
            known.params = params.leak();
            list(known.name, idea, known.params, known.build)?;
        }
        let before = std::mem::replace(&mut known.class, class.unbind());
        known.hears = hears;
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
    let params: &'static [Param] = params.leak();
    list(name, idea, params, build)?;
    classes.push(Registered { name, class: class.unbind(), params, hears, build });
    expect_classes();
    Ok(())
}

/// Adds a class to the list of schedulers, in the place of an earlier one of this name.
fn list(name: &'static str, idea: &str, params: &'static [Param], build: Build) -> PyResult<()> {
    let idea: &'static str = String::from(idea).leak();
    let page: &'static str = format!("{idea}\n\nA Python class of this process.\n").leak();
    let about = About { name, aliases: &[], idea, page, params, state: &[] };
    let entry = Entry { about, queues_ahead: false, spreads_bursts: false, build };
    plait_sched::register_apart(&[entry]).map_err(refused)
}

/// Returns the name of a Python class that a scheduler in canonical form uses.
pub(crate) fn class_in(scheduler: &str) -> Option<&'static str> {
    let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut words =
        scheduler.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'));
    words.find_map(|word| classes.iter().map(|known| known.name).find(|name| *name == word))
}

/// An object of a Python class.
#[derive(Debug)]
struct PythonScheduler {
    name: &'static str,
    hears: Hears,
    /// `None` after an exception: the run is over, and the scheduler waits.
    object: Option<Py<PyAny>>,
}

/// Returns the parameters that differ from their defaults, as arguments.
fn arguments<'py>(
    py: Python<'py>,
    params: &'static [Param],
    given: &Params,
) -> PyResult<Bound<'py, PyDict>> {
    let arguments = PyDict::new(py);
    for param in params {
        match given.value(param) {
            // The default of the class, which has more digits.
            value if value == param.kind.default_value() => {}
            Value::Switch(on) => arguments.set_item(param.name, on)?,
            Value::Real(millionths) => arguments.set_item(param.name, millionths as f64 / 1e6)?,
            Value::Whole(value) => arguments.set_item(param.name, value)?,
            // No parameter of a class is of another kind.
            Value::Word(_) | Value::Window(_) => {}
        }
    }
    Ok(arguments)
}

impl PythonScheduler {
    fn new(number: usize, given: &Params) -> PythonScheduler {
        let built = Python::try_attach(|py| {
            let (class, params, built) = {
                let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
                let Registered { name, class, params, hears, .. } = classes.get(number)?;
                let built = PythonScheduler { name, hears: *hears, object: None };
                (class.clone_ref(py), *params, built)
            };
            let object = arguments(py, params, given)
                .and_then(|arguments| class.call(py, (), Some(&arguments)))
                .map_err(|error| failed(py, &error));
            Some(PythonScheduler { object: object.ok(), ..built })
        });
        let none = PythonScheduler { name: "", hears: Hears::default(), object: None };
        built.flatten().unwrap_or(none)
    }
}

/// Returns the ids of a set.
fn ids(set: SubflowSet) -> Vec<u8> {
    set.iter().map(|id| id.0).collect()
}

impl Scheduler for PythonScheduler {
    // The class decides only about new data, and only while a subflow has room.
    fn needs(&self) -> Needs {
        Needs { pacing_rate: true, data_acks: self.hears.data_acks, ..Needs::LEAST }
    }

    fn on_notice(&mut self, view: &plait_sched::View<'_>, notice: Notice) {
        let Some(object) = &self.object else { return };
        let heard = match notice {
            Notice::DataAck { .. } => self.hears.data_acks,
            Notice::SubflowsChanged { .. } => self.hears.subflows,
            Notice::WindowLimited => self.hears.window,
            Notice::Acked { .. } | Notice::Lost { .. } | Notice::Remembered { .. } => false,
        };
        if !heard {
            return;
        }
        let told = Python::try_attach(|py| {
            let segment = rules::next_segment(view).unwrap_or_default();
            let view = Bound::new(py, View::new(view, segment))?;
            let object = object.bind(py);
            let heard = match notice {
                Notice::DataAck { old, new, .. } => {
                    object.call_method1("on_data_ack", (view, old.get(), new.get()))
                }
                Notice::SubflowsChanged { live, began } => {
                    let began = began.map(|id| id.0);
                    object.call_method1("on_subflows_changed", (view, ids(live), began))
                }
                _ => object.call_method1("on_window_limited", (view,)),
            };
            heard.map(drop)
        });
        if let Some(Err(error)) = told {
            Python::try_attach(|py| failed(py, &error));
            self.object = None;
        }
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
            return Ok(Decision::Wait { on: None, reason: Reason::FastFinishesSooner });
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
        let allowed = view.candidates().contains(id);
        let takes = |it: &&plait_sched::SubflowView| allowed && it.usable(segment.len(), view.tsq);
        let chosen = chosen.filter(takes).ok_or_else(|| {
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
