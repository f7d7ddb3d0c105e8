//! Captures of any sender, explained (floor 3 of plait).
//!
//! [`explain`] reads one or more files, pcap or pcapng, as a stream. It joins subflows to connections by their tokens,
//! follows the data sequence numbers, and finds the time that a transfer lost beyond the rates of its paths. Each
//! period of lost time has a [`Cause`] and the packets that show it. Memory is bounded, whatever a file contains.
//!
//! A qlog of plait is read like a capture. It also has the state of the sender, from which `send-buffer`,
//! `application-idle` and `path-unused` follow without a guess. A [`Recording`] takes the same from a run.
//!
//! A capture may be made at the sender, at the receiver or between both. The handshakes show the place.
#![forbid(unsafe_code)]

mod capture;
mod cause;
mod connection;
mod copies;
mod counts;
mod data_level;
mod document;
mod fit;
mod half;
mod held;
mod histogram;
mod incidents;
mod joining;
mod kernel;
mod limits;
mod log;
mod lookup;
mod mappings;
mod notes;
mod opened;
mod order;
mod packet;
mod recording;
mod report;
mod sentence;
mod sequence;
mod source;
mod subflow;
mod trains;
mod transmissions;
mod watch;

pub use cause::Cause;
pub use document::{
    BrokenAt, CaptureExplanation, CauseReport, ConnectionReport, DataReport, FileKind, FileReport,
    FitReport, FittedPath, IncidentReport, KernelPath, KernelReport, PacketId, PathReport, Place,
    PredictedRow, PredictionReport, Protocol, ResetReport, RttReport, SCHEMA, TrafficReport,
};
pub use held::Held;
pub use kernel::KernelDecisions;
pub use recording::Recording;
pub use source::Broken;
pub use watch::{DataKind, Happening, Moment, Watch};

use std::path::PathBuf;

/// Returns true if a file that begins with these bytes is a capture or a qlog, or contains a compressed capture.
#[must_use]
pub fn is_capture(head: &[u8]) -> bool {
    source::is_packets(head) || log::is_log(head)
}

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

/// Why a capture is not explained with decisions of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unexplained {
    /// A file cannot be opened or is no capture: its index, and the problem.
    File(usize, Broken),
    /// The decisions cannot be those of the capture: the reason.
    Unaligned(String),
}

/// Does the same as [`explain`], and adds the decisions of the kernel to the largest connection with MPTCP.
///
/// # Errors
/// If a file cannot be opened or is no capture, or if the decisions cannot be aligned with the capture.
pub fn explain_with(
    files: &[PathBuf],
    kernel: &KernelDecisions,
    command: String,
    advance: &mut dyn FnMut(u64) -> bool,
) -> Result<CaptureExplanation, Unexplained> {
    let captures = capture::Captures::open(files);
    let mut captures = captures.map_err(|(index, broken)| Unexplained::File(index, broken))?;
    captures.keeps_times = true;
    captures.read(advance);
    let mut document = report::document(&captures, command);
    report::add_kernel(&mut document, &captures, kernel).map_err(Unexplained::Unaligned)?;
    Ok(document)
}

/// Does the same as [`explain`] or [`explain_with`], and passes the largest transfer on to `watch`.
///
/// The files are read twice. If the first reading stops, the second one stops at the same packet.
///
/// # Errors
/// As [`explain_with`].
pub fn explain_watched(
    files: &[PathBuf],
    kernel: Option<&KernelDecisions>,
    command: String,
    advance: &mut dyn FnMut(u64) -> bool,
    watch: &mut dyn Watch,
) -> Result<CaptureExplanation, Unexplained> {
    let refused = |(index, broken)| Unexplained::File(index, broken);
    let mut captures = capture::Captures::open(files).map_err(refused)?;
    captures.keeps_times = kernel.is_some();
    let mut stopped = None;
    captures.read(&mut |segments| {
        let goes_on = advance(segments);
        stopped = (!goes_on).then_some(segments);
        goes_on
    });
    let mut document = report::document(&captures, command);
    if let Some(kernel) = kernel {
        report::add_kernel(&mut document, &captures, kernel).map_err(Unexplained::Unaligned)?;
    }
    let largest = report::largest(&captures).first().copied();
    let watched = largest.map(|at| (at, captures.connections[at].main_sender()));
    drop(captures);
    if let Some(connection) = document.connections.first() {
        watch.begin(connection);
        let mut again = capture::Captures::open(files).map_err(refused)?;
        again.watched = watched;
        let mut goes_on = |segments| stopped.map_or_else(|| advance(segments), |at| segments < at);
        again.read_watched(&mut goes_on, Some(watch));
    }
    Ok(document)
}
