//! Captures of any sender, explained (floor 3 of plait).
//!
//! [`explain`] reads one or more files, pcap or pcapng, as a stream. It joins subflows to connections by their tokens,
//! follows the data sequence numbers, and finds the time that a transfer lost beyond the rates of its paths. Each
//! period of lost time has a [`Cause`] and the packets that show it. Memory is bounded, whatever a file contains.
//!
//! A capture may be made at the sender, at the receiver or between both. The handshakes show the place.
#![forbid(unsafe_code)]

mod capture;
mod cause;
mod connection;
mod data_level;
mod document;
mod fit;
mod half;
mod histogram;
mod incidents;
mod limits;
mod packet;
mod report;
mod sequence;
mod source;
mod subflow;
mod trains;

pub use cause::Cause;
pub use document::{
    BrokenAt, CaptureExplanation, CauseReport, ConnectionReport, DataReport, FileReport, FitReport,
    FittedPath, IncidentReport, PacketId, PathReport, Place, PredictedRow, PredictionReport,
    Protocol, RttReport, SCHEMA, TrafficReport,
};
pub use source::{Broken, is_capture};

use std::path::PathBuf;

/// Reads captures and explains their connections.
///
/// `advance` gets the number of segments so far, from time to time. Reading stops if it returns false. `command` is the
/// command line of the document. If a file is damaged, it counts up to its first damaged packet, and
/// [`FileReport::broken`] has the problem.
///
/// # Errors
/// If a file cannot be opened or is no capture: the index of the file, and the problem.
pub fn explain(
    files: &[PathBuf],
    command: String,
    advance: &mut dyn FnMut(u64) -> bool,
) -> Result<CaptureExplanation, (usize, Broken)> {
    let mut captures = capture::Captures::open(files)?;
    captures.read(advance);
    Ok(report::document(&captures, command))
}
