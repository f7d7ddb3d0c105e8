//! The exception of the package.

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
pub(crate) fn refused(error: impl ToString) -> PyErr {
    Error::new_err(error.to_string())
}
