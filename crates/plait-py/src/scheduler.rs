//! Schedulers that are Python classes.
//!
//! The list of schedulers has functions without a state, so a class has a number, and each number a function.

use crate::ending::attached;
use crate::error::{Error, refused};
use crate::scheduler_view::{Send, Subflow, View, Wait};
use crate::work::{cancel, expect_classes, failed};
use plait_base::{DataRange, SubflowId, SubflowSet};
use plait_sched::rules::{self, Task};
use plait_sched::{
    About, Decision, Entry, Needs, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    Value,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Classes by number.
static CLASSES: Mutex<Vec<Registered>> = Mutex::new(Vec::new());

/// A class of the list.
struct Registered {
    class: Py<PyAny>,
    listed: Listing,
    hears: Hears,
}

/// What the list of schedulers has of a class.
#[derive(Clone, Copy, PartialEq)]
struct Listing {
    name: &'static str,
    idea: &'static str,
    params: &'static [Param],
    /// The class as `module:Class`.
    text: &'static str,
}

/// Returns a text that is kept for the rest of the program. Equal texts are kept once.
fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(text) {
        return known;
    }
    let new: &'static str = String::from(text).leak();
    all.insert(new);
    new
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

/// Classes of a row of [`BUILDERS`].
const ROW: usize = 16;

macro_rules! builders {
    ($($row:literal)*) => { [$(builders!(@ $row; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)),*] };
    (@ $row:literal; $($place:literal)*) => {
        [$(|given| Box::new(PythonScheduler::new($row * ROW + $place, given))),*]
    };
}

/// The function of each number.
const BUILDERS: [[Build; ROW]; 16] = builders!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

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
            let name = kept(name);
            Ok(Param { name, kind, unit: "", help: "of the Python class", clause: "" })
        }
    }
}

/// Adds a class to the list of schedulers. `params` are the parameters of the class with their defaults, and `text` is the class
/// as `module:Class`. A class with the name of an earlier one takes its place.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes lists so")]
pub(crate) fn register(
    class: Bound<'_, PyAny>,
    text: &str,
    name: &str,
    idea: &str,
    params: Vec<(String, Bound<'_, PyAny>)>,
) -> PyResult<()> {
    let hears = Hears::of(&class)?;
    let params: PyResult<Vec<Param>> =
        params.iter().map(|(param, default)| param_of(name, param, default)).collect();
    let params = params?;
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    let at = classes.iter().position(|known| known.listed.name == name);
    let known = at.and_then(|at| classes.get(at)).map(|known| known.listed);
    let params = match known {
        Some(known) if known.params == params => known.params,
        _ => params.leak(),
    };
    let listed = Listing { name: kept(name), idea: kept(idea), params, text: kept(text) };
    let number = at.unwrap_or(classes.len());
    let Some(build) = BUILDERS.as_flattened().get(number).copied() else {
        let most = BUILDERS.as_flattened().len();
        let text = format!("`{name}`: at most {most} Python classes can be schedulers");
        return Err(Error::new_err(text));
    };
    // Each change of the list costs memory.
    if known != Some(listed) {
        list(listed, build)?;
    }
    let registered = Registered { class: class.unbind(), listed, hears };
    let before = match at.and_then(|at| classes.get_mut(at)) {
        Some(known) => Some(std::mem::replace(known, registered)),
        None => {
            classes.push(registered);
            None
        }
    };
    expect_classes();
    // Python code may run when an object goes, so the lock goes first.
    drop(classes);
    drop(before);
    Ok(())
}

/// Adds a class to the list of schedulers, in the place of an earlier one of this name.
fn list(listed: Listing, build: Build) -> PyResult<()> {
    let Listing { name, idea, params, text } = listed;
    let page = kept(&format!("{idea}\n\nThe Python class `{text}`.\n"));
    let about = About { name, aliases: &[], idea, page, params, state: &[] };
    let entry = Entry { about, queues_ahead: false, spreads_bursts: false, build };
    plait_sched::register_class(entry, text).map_err(refused)
}

/// Returns the class that a scheduler is.
pub(crate) fn class_of(py: Python<'_>, spec: &plait_sched::Spec) -> Option<Py<PyAny>> {
    let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    let name = spec.entry().about.name;
    classes.iter().find(|known| known.listed.name == name).map(|known| known.class.clone_ref(py))
}

/// Lets texts such as those of a scenario file name classes of modules that the program has imported.
pub(crate) fn find_classes() {
    const FIND: plait_sched::FindClass = find;
    plait_sched::find_classes_with(&FIND);
}

/// Registers a class of an imported module, `module:Class`. Returns the name of its scheduler.
fn find(text: &str) -> Result<String, String> {
    let found = attached(|py| {
        let schedulers = py.import("plait.schedulers").map_err(|error| error.to_string())?;
        let found = schedulers.call_method1("found", (text,)).and_then(|name| name.extract());
        found.map_err(|error| error.value(py).to_string())
    });
    found.unwrap_or_else(|| Err("the interpreter ends".to_owned()))
}

/// Registers the classes that a list of schedulers names, if their modules are imported, again: a module may have a newer class.
pub(crate) fn renew(list: &str) {
    for scheduler in plait_sched::split_list(list) {
        let base = scheduler.split('+').next().unwrap_or_default();
        let mut parts = base.split(':');
        if let (Some(module), Some(class)) = (parts.next(), parts.next())
            && !class.contains('=')
        {
            // The text is parsed later, with its error.
            let _ = find(&format!("{module}:{class}"));
        }
    }
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
        let built = attached(|py| {
            let (class, params, built) = {
                let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
                let Registered { class, listed, hears, .. } = classes.get(number)?;
                let built = PythonScheduler { name: listed.name, hears: *hears, object: None };
                (class.clone_ref(py), listed.params, built)
            };
            let object = arguments(py, params, given)
                .and_then(|arguments| class.call(py, (), Some(&arguments)))
                .map_err(|error| failed(py, &error));
            Some(PythonScheduler { object: object.ok(), ..built })
        });
        if built.is_none() {
            cancel();
        }
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
        let told = attached(|py| {
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
        match told {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                attached(|py| failed(py, &error));
                self.object = None;
            }
            None => cancel(),
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
        let decided = attached(|py| {
            let asked = Bound::new(py, View::new(view, segment))?;
            let answer = object.bind(py).call_method1(pyo3::intern!(py, "schedule"), (asked,))?;
            self.decision(view, segment, &answer)
        });
        match decided {
            Some(Ok(decision)) => decision,
            Some(Err(error)) => {
                attached(|py| failed(py, &error));
                self.object = None;
                rules::none_usable(view)
            }
            None => {
                cancel();
                rules::none_usable(view)
            }
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
            return Ok(Decision::Wait { on: None, reason: Reason::Chosen });
        }
        if let Ok(wait) = answer.cast::<Wait>() {
            let on = wait.get().subflow.map(|id| self.known(view, id)).transpose()?;
            return Ok(Decision::Wait { on, reason: Reason::Chosen });
        }
        let (id, room) = if let Ok(subflow) = answer.cast::<Subflow>() {
            (subflow.get().number(), false)
        } else if let Ok(send) = answer.cast::<Send>() {
            (send.get().subflow, send.get().room)
        } else if let Ok(id) = answer.extract() {
            (id, false)
        } else {
            let text = format!(
                "{}.schedule: it returned `{}`\n  allowed: a subflow or its id, Send, Wait, None",
                self.name,
                answer.str()?
            );
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
        Ok(match rules::new_on(view, id, segment, Reason::Chosen) {
            Decision::Send { subflow, what, grant, reason } if room => {
                Decision::Send { subflow, what, grant: chosen.room().max(grant), reason }
            }
            decision => decision,
        })
    }

    fn known(&self, view: &plait_sched::View<'_>, id: u8) -> PyResult<SubflowId> {
        let known = view.subflows.iter().map(|it| it.id).find(|known| known.0 == id);
        let text = || {
            let ids: Vec<String> = view.subflows.iter().map(|it| it.id.0.to_string()).collect();
            let name = self.name;
            format!("{name}.schedule: there is no subflow {id}\n  allowed: {}", ids.join(", "))
        };
        known.ok_or_else(|| Error::new_err(text()))
    }
}
