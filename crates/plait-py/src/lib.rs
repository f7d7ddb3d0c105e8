//! The Python module `plait._plait`. The package `python/plait` gives it its Python form.
//!
//! * [`draft`] has a scenario under construction. [`comparison`], [`single`] and [`each_run`] run it, and
//!   [`listing`] answers the questions that need no run. [`experiments`] runs experiment files.
//! * [`command`] is the command line, which the command `plait` of the package runs.
//! * [`scheduler`] makes a Python class a scheduler; [`scheduler_view`] has what it sees, and [`contract`] checks it.
//! * [`sweep`] plans sweeps and works on parts of them, [`sweep_source`] makes their cells, and [`run_log`] keeps
//!   their runs. [`episode`] is a run whose decisions a program makes one by one.
//! * [`ending`] keeps the threads of calls away from an interpreter that ends.
//! * [`table`] holds columns, which other libraries take as an Arrow stream.
//! * [`work`] runs a task on a thread of its own. Meanwhile the calling thread waits without the interpreter's
//!   lock, and looks for signals.
//!
//! Errors are `plait.Error` with the texts of the command line.

#![forbid(unsafe_code)]

mod command;
mod comparison;
mod contract;
mod draft;
mod each_run;
mod ending;
mod episode;
mod error;
mod experiments;
mod file;
mod listing;
mod run_log;
mod scheduler;
mod scheduler_view;
mod single;
mod sweep;
mod sweep_source;
mod table;
mod work;

use pyo3::prelude::*;

/// The compiled part of plait.
#[pymodule]
mod _plait {
    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::comparison::{Comparison, compare};
    #[pymodule_export]
    use super::contract::check;
    #[pymodule_export]
    use super::draft::Draft;
    #[pymodule_export]
    use super::each_run::EachRun;
    #[pymodule_export]
    use super::episode::Episode;
    #[pymodule_export]
    use super::experiments::{ExperimentReport, experiment, list_experiments};
    #[pymodule_export]
    use super::listing::{decide, decide_cc, explain, label_of_measure, list_entries};
    #[pymodule_export]
    use super::run_log::RunLog;
    #[pymodule_export]
    use super::scheduler::register;
    #[pymodule_export]
    use super::scheduler_view::{Send, Subflow, View, Wait};
    #[pymodule_export]
    use super::single::{RunReport, run};
    #[pymodule_export]
    use super::sweep::{Plan, Work, program};
    #[pymodule_export]
    use super::table::Table;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::scheduler::find_classes();
        super::ending::expect(module)?;
        module.add("Error", module.py().get_type::<super::error::Error>())?;
        module.add("VERSION", plait_report::VERSION)?;
        module.add("PROGRAM", plait_report::PROGRAM)
    }
}
