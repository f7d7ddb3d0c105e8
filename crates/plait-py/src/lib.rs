//! The Python module `plait._plait`. The package `python/plait` gives it its Python form.
//!
//! * [`draft`] has a scenario under construction. [`comparison`], [`single`] and [`each_run`] run it, and
//!   [`listing`] answers the questions that need no run.
//! * [`table`] holds columns, which other libraries take as an Arrow stream.
//! * [`work`] runs a task on a thread of its own. Meanwhile the calling thread waits without the interpreter's
//!   lock, and looks for signals.
//!
//! Errors are `plait.Error` with the texts of the command line.

#![forbid(unsafe_code)]

mod comparison;
mod draft;
mod each_run;
mod listing;
mod single;
mod table;
mod work;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    plait,
    Error,
    PyValueError,
    "An invalid argument: the place, the reason, the allowed values and the nearest name."
);

/// Converts an error with a text into `plait.Error`.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it so")]
fn refused(error: impl ToString) -> PyErr {
    Error::new_err(error.to_string())
}

/// The compiled part of plait.
#[pymodule]
mod _plait {
    #[pymodule_export]
    use super::comparison::{Comparison, compare};
    #[pymodule_export]
    use super::draft::Draft;
    #[pymodule_export]
    use super::each_run::EachRun;
    #[pymodule_export]
    use super::listing::{decide, decide_cc, explain, list_entries};
    #[pymodule_export]
    use super::single::{RunReport, run};
    #[pymodule_export]
    use super::table::Table;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("Error", module.py().get_type::<super::Error>())?;
        module.add("VERSION", plait_report::VERSION)?;
        module.add("PROGRAM", plait_report::PROGRAM)
    }
}
