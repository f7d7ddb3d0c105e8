//! The kernel's own decisions: the tracepoint `mptcp:mptcp_subflow_get_send`.
//!
//! The scheduler of Linux writes one line for each subflow that it considers, in the order in which the subflows
//! joined. A line names neither the connection nor the subflow, and its clock is not that of a capture. The clocks
//! are aligned ([`align`]), and the lines of a decision are given to the paths in their order ([`tally`]).

mod align;
mod parse;
mod tally;

pub(crate) use tally::attach;

use crate::source::Broken;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A line: the state of one subflow in one decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// Time by the clock of the trace, in nanoseconds.
    pub(crate) at_ns: i64,
    pub(crate) cpu: u16,
    pub(crate) active: bool,
    /// The send buffer of the subflow has room.
    pub(crate) free: bool,
    pub(crate) backup: bool,
    /// Send window of the subflow in bytes.
    pub(crate) snd_wnd: u32,
    /// Pacing rate in bytes per second.
    pub(crate) pace: u32,
    /// Time in which the queued data leaves at the pacing rate, in seconds times 2^32.
    pub(crate) ratio: u64,
}

/// The decisions of a kernel, from the text of a trace.
#[derive(Clone, Debug)]
pub struct KernelDecisions {
    file: PathBuf,
    /// Lines in the order of time.
    lines: Vec<Line>,
    /// True if the file has more lines than plait keeps.
    more: bool,
    /// Notices of lost events.
    lost: u64,
}

impl KernelDecisions {
    /// Reads the text of `perf script`, of `trace-cmd report`, or of the file `trace` of tracefs.
    ///
    /// # Errors
    /// If the file cannot be read, has no line of the tracepoint, or has a damaged one. [`Broken::packet`] is the
    /// number of the line, from 1; zero if the problem is that of the whole file.
    pub fn read(file: &Path) -> Result<KernelDecisions, Broken> {
        let opened = File::open(file).map_err(|error| Broken {
            packet: 0,
            problem: format!("it cannot be opened: {error}"),
        })?;
        let parse::Parsed { mut lines, more, lost } = parse::read(BufReader::new(opened))?;
        lines.sort_by_key(|line| line.at_ns);
        Ok(KernelDecisions { file: file.to_owned(), lines, more, lost })
    }
}
