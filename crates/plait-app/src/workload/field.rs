//! Fields of a workload's text: quantities above zero, and files.

use super::error::WorkloadError;
use crate::quantity::{self, Size};
use plait_base::{Rate, Span};

/// Returns the text of a file that a workload names.
pub type Files<'a> = &'a dyn Fn(&str) -> std::io::Result<String>;

/// Reads a size above zero.
pub(super) fn size(text: &str) -> Result<Size, WorkloadError> {
    let field = "SIZE";
    let size = quantity::size(text).map_err(|error| WorkloadError::Quantity { field, error })?;
    if size.is_zero() { Err(WorkloadError::Zero { field }) } else { Ok(size) }
}

/// Reads a rate above zero.
pub(super) fn pace(text: &str) -> Result<Rate, WorkloadError> {
    let field = "RATE";
    match quantity::rate(text) {
        Ok(Rate::ZERO) => Err(WorkloadError::Zero { field }),
        rate => rate.map_err(|error| WorkloadError::Quantity { field, error }),
    }
}

/// Reads a number of bytes above zero.
pub(super) fn size_bytes(field: &'static str, text: &str) -> Result<u64, WorkloadError> {
    match quantity::bytes(text) {
        Ok(0) => Err(WorkloadError::Zero { field }),
        bytes => bytes.map_err(|error| WorkloadError::Quantity { field, error }),
    }
}

/// Reads a time above zero.
pub(super) fn time(field: &'static str, text: &str) -> Result<Span, WorkloadError> {
    let time = quantity::time(text).map_err(|error| WorkloadError::Quantity { field, error })?;
    if time == Span::ZERO { Err(WorkloadError::Zero { field }) } else { Ok(time) }
}
