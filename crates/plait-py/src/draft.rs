//! A scenario under construction: settings by the names of scenario files.

use crate::error::refused;
use crate::file;
use crate::scheduler::{class_of, renew};
use plait_lab::scenario::{SETTINGS, Setting};
use plait_lab::{Cell, RawScenario, Scenario};
use pyo3::prelude::*;

/// A scenario under construction.
#[pyclass(module = "plait._plait")]
pub(crate) struct Draft {
    raw: RawScenario,
    /// Paths that replace those of the file, if there are any.
    paths: Vec<String>,
}

#[pymethods]
impl Draft {
    /// Begins with no setting.
    #[new]
    fn new() -> Draft {
        Draft::of(RawScenario::new())
    }

    /// Reads a scenario file (TOML) from a text. Errors name the place `name`.
    #[staticmethod]
    fn from_toml(name: &str, text: &str) -> PyResult<Draft> {
        RawScenario::from_toml(name, text).map(Draft::of).map_err(refused)
    }

    /// Reads a scenario file (TOML).
    #[staticmethod]
    fn from_file(file: &str) -> PyResult<Draft> {
        let read = RawScenario::from_file(file, &|name| file::settings(name));
        read.map(Draft::of).map_err(refused)
    }

    /// The names of the settings.
    #[staticmethod]
    fn settings() -> Vec<&'static str> {
        SETTINGS.iter().map(|setting| setting.name).collect()
    }

    /// Returns a copy.
    pub(crate) fn copy(&self) -> Draft {
        Draft { raw: self.raw.clone(), paths: self.paths.clone() }
    }

    /// Replaces the paths: `wifi:rate=20mbit,rtt=22ms`, or the name of a profile.
    fn set_paths(&mut self, texts: Vec<String>) {
        self.paths = texts;
    }

    /// Sets a setting, spelled with `-` or `_`. Several texts are for a setting that repeats or is a list.
    pub(crate) fn set(&mut self, name: &str, texts: Vec<String>) -> PyResult<()> {
        let known = Setting::named(name);
        if let Some(setting) = known.filter(|_| texts.len() != 1) {
            several(setting, texts.len())?;
        }
        let texts = match known.is_some_and(Setting::repeats) {
            true => texts,
            false => vec![texts.join(",")],
        };
        // The value of a file gives way to this one.
        self.raw.forget(known.map_or(name, |setting| setting.name));
        let name = name.replace('_', "-");
        if name == "schedulers" {
            texts.iter().for_each(|list| renew(list));
        }
        texts.iter().try_for_each(|text| self.raw.argument(&name, text)).map_err(refused)
    }

    /// Returns the scenario file (TOML).
    fn to_toml(&self) -> PyResult<String> {
        Ok(self.compared()?.to_toml())
    }

    /// Returns the classes that its schedulers are.
    fn classes(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        Ok(self.compared()?.schedulers.iter().filter_map(|spec| class_of(py, spec)).collect())
    }

    /// Returns the command line that compares the schedulers of this scenario.
    fn command(&self) -> PyResult<String> {
        Ok(self.compared()?.command_line())
    }
}

/// Refuses several values, or none, for a setting that takes one.
fn several(setting: &Setting, count: usize) -> PyResult<()> {
    let name = setting.name;
    if setting.repeats() || ["schedulers", "cc"].contains(&name) {
        return Ok(());
    }
    let vary = if setting.varies {
        format!("; vary={{{name:?}: [...]}} compares several")
    } else {
        String::new()
    };
    Err(refused(format!(
        "--{name}: it takes one value, {count} are given\n  allowed: one value{vary}"
    )))
}

impl Draft {
    fn of(raw: RawScenario) -> Draft {
        let given = raw.arguments().into_iter();
        given.filter(|(name, _)| *name == "schedulers").for_each(|(_, list)| renew(&list));
        Draft { raw, paths: Vec::new() }
    }

    /// Returns the scenario as the command line would give it.
    pub(crate) fn given(&self) -> PyResult<RawScenario> {
        let mut raw = self.raw.clone();
        for path in &self.paths {
            raw.argument("path", path).map_err(refused)?;
        }
        Ok(raw)
    }

    /// Returns the scenario of `plait compare`.
    pub(crate) fn compared(&self) -> PyResult<Scenario> {
        Ok(self.given()?.build_with(&file::named).map_err(refused)?.compared())
    }

    /// Returns the only run of the scenario for `command`, which errors name.
    pub(crate) fn one(&self, command: &str) -> PyResult<Cell> {
        self.given()?.build_one(command, &file::named).map_err(|error| {
            refused(error.to_string().replacen("--schedulers:", "--scheduler:", 1))
        })
    }

    /// Returns the schedulers of a list such as `ecf,blest`, which errors place at `--compare-with`.
    pub(crate) fn others(&self, list: &str) -> PyResult<Vec<plait_sched::Spec>> {
        let renamed = |error: plait_lab::ScenarioError| {
            refused(error.to_string().replacen("--schedulers", "--compare-with", 1))
        };
        let mut draft = self.given()?;
        draft.forget("schedulers");
        draft.argument("schedulers", list).map_err(renamed)?;
        Ok(draft.build_with(&file::named).map_err(renamed)?.schedulers)
    }
}
