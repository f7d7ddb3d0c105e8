//! The cells of a scenario or an experiment, from texts alone. A worker on another machine makes the same cells of them.

use crate::error::{Error, refused};
use plait_lab::experiment::{EMBEDDED, Experiment, Looks, Misses, Planned, RunRecord};
use plait_lab::scenario::Reader;
use plait_lab::{
    Address, Cell, Point, RawScenario, ScenarioError, Simulator, Subject, World, cells,
};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The texts from which cells are made.
#[derive(Clone, FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Source {
    /// True for an experiment, false for a scenario.
    pub(crate) experiment: bool,
    /// The name of the file, or of the scenario in a list.
    pub(crate) name: String,
    /// The file (TOML).
    pub(crate) text: String,
    /// The files that it names, by name.
    pub(crate) files: BTreeMap<String, String>,
    /// Seed of an experiment. A scenario has its own.
    pub(crate) seed: u64,
    /// True for a quick run of an experiment.
    pub(crate) quick: bool,
}

/// Refuses a class: its name does not tell what it does.
fn addressed(spec: &plait_sched::Spec) -> PyResult<()> {
    let Some(class) = spec.class() else { return Ok(()) };
    Err(Error::new_err(format!(
        "schedulers: `{}` is a Python class ({class}), which has no content address\n  \
         allowed: the schedulers of `plait list schedulers`",
        spec.entry().about.name
    )))
}

/// A cell with its place in a sweep.
pub(crate) struct Placed {
    /// Values of the varied settings or of the axes, by name.
    pub(crate) values: Vec<(String, String)>,
    /// The row of an experiment.
    pub(crate) row: Option<String>,
    pub(crate) address: Address,
    pub(crate) runs: u32,
    job: Job,
}

/// A cell as its runs need it.
enum Job {
    Plain(Cell),
    Planned(Box<Planned>),
}

impl Placed {
    pub(crate) fn cell(&self) -> &Cell {
        match &self.job {
            Job::Plain(cell) => cell,
            Job::Planned(planned) => &planned.cell,
        }
    }

    /// Makes a run. Returns `None` if it was cancelled.
    pub(crate) fn run(&self, seed: u64, cancelled: &AtomicBool) -> Option<RunRecord> {
        match &self.job {
            Job::Plain(cell) => {
                let outcome = Simulator.run_unless(cell, seed, cancelled)?;
                Some(RunRecord::of(&outcome, &cell.scenario))
            }
            Job::Planned(planned) => planned.run(&Simulator, seed, cancelled),
        }
    }
}

impl Source {
    /// Returns the cells. `read` returns the files that the text names.
    fn cells_with(&self, read: Reader<'_>) -> PyResult<Vec<Placed>> {
        if self.experiment { self.of_experiment(read) } else { self.of_scenario(read) }
    }

    /// Returns the cells, from the texts alone.
    pub(crate) fn cells(&self) -> PyResult<Vec<Placed>> {
        self.cells_with(&|name| {
            let text = self.files.get(name).cloned();
            text.ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, "the sweep has no such file")
            })
        })
    }

    /// Returns the cells, and keeps the files that they name.
    pub(crate) fn cells_and_files(&mut self) -> PyResult<Vec<Placed>> {
        let files = RefCell::new(BTreeMap::new());
        let placed = self.cells_with(&|name| {
            let text = crate::file::named(name)?;
            files.borrow_mut().insert(name.to_owned(), text.clone());
            Ok(text)
        })?;
        self.files = files.into_inner();
        Ok(placed)
    }

    fn of_scenario(&self, read: Reader<'_>) -> PyResult<Vec<Placed>> {
        let raw = RawScenario::from_toml(&self.name, &self.text).map_err(refused)?;
        let scenario = raw.build_with(read).map_err(refused)?.compared();
        if scenario.budget.precision.is_some() {
            let text =
                "until: `ci=` has no fixed number of runs, which a sweep needs\n  allowed: runs";
            return Err(Error::new_err(text));
        }
        scenario.schedulers.iter().try_for_each(addressed)?;
        let mut points = scenario.points(read).map_err(refused)?;
        if points.is_empty() {
            points.push(Point { values: Vec::new(), scenario });
        }
        let mut placed = Vec::new();
        for Point { values, scenario } in points {
            for cell in cells(&scenario.compared()) {
                let address = cell.address(read).map_err(refused)?;
                let (values, runs) = (values.clone(), cell.scenario.effective_runs());
                placed.push(Placed { values, row: None, address, runs, job: Job::Plain(cell) });
            }
        }
        Ok(placed)
    }

    fn of_experiment(&self, read: Reader<'_>) -> PyResult<Vec<Placed>> {
        let made = || -> Result<_, ScenarioError> {
            let experiment = Experiment::from_toml(&self.name, &self.text)?;
            let misses = Misses::embedded()?.of_run(self.quick);
            let looks = Looks {
                seed: self.seed,
                quick: self.quick,
                claims_only: false,
                most: 1,
                misses: &misses,
                read,
            };
            looks.plan(&experiment)
        };
        let plan = made().map_err(refused)?;
        for planned in &plan.cells {
            if let Subject::Scheduler(spec) = &planned.cell.subject {
                addressed(spec)?;
            }
        }
        let experiment = plan.experiment;
        let placed = plan.cells.into_iter().map(|planned| {
            let points = experiment.axes.iter().zip(&planned.at);
            let value = |(axis, at): (&plait_lab::experiment::Axis, &usize)| {
                let point = axis.points.get(*at).map(|point| point.text.clone());
                (axis.name.clone(), point.unwrap_or_default())
            };
            Placed {
                values: points.map(value).collect(),
                row: experiment.rows.get(planned.row).map(|row| row.name.clone()),
                address: planned.address,
                runs: planned.runs,
                job: Job::Planned(Box::new(planned)),
            }
        });
        Ok(placed.collect())
    }

    /// Finds an experiment by its file or its name.
    pub(crate) fn experiment(name: &str, seed: u64, quick: bool) -> PyResult<Source> {
        let stem =
            |file: &str| Path::new(file).file_stem().map(|it| it.to_string_lossy().into_owned());
        let path = Path::new(name);
        let is_file = path.extension().is_some_and(|it| it == "toml") || path.exists();
        let text = if is_file {
            crate::file::settings(path)
                .map_err(|error| refused(format!("{name}: {}", plait_lab::unreadable(&error))))?
        } else {
            let known = || EMBEDDED.iter().filter_map(|(file, text)| Some((stem(file)?, *text)));
            let found = known().find(|(id, _)| id == name).map(|(_, text)| text.to_owned());
            found.ok_or_else(|| {
                let ids: Vec<String> = known().map(|(id, _)| id).collect();
                let ids = ids.iter().map(String::as_str);
                refused(plait_report::names::unknown("experiment", name, ids))
            })?
        };
        let (name, files) = (name.to_owned(), BTreeMap::new());
        Ok(Source { experiment: true, name, text, files, seed, quick })
    }
}
