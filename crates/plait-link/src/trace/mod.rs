mod bins;
mod columns;
mod opportunities;
mod parse;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use plait_base::{Rate, Span};

use crate::schedule::{Schedule, UNITS_PER_BYTE};
pub(crate) use opportunities::OpportunityCursor;

/// Bytes that one delivery opportunity of a Mahimahi trace carries.
pub const OPPORTUNITY_BYTES: u32 = 1500;

const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A recorded link. It repeats: after its end, it continues at its start.
#[derive(Clone, Debug)]
pub struct Trace {
    name: Box<str>,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    /// Delivery opportunities: milliseconds, not decreasing, the last one above zero.
    Opportunities(Arc<[u32]>),
    Rows(Arc<Schedule>),
}

/// File format of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// One whole number of milliseconds a line, not decreasing; repeats are allowed. Each line is an
    /// opportunity to deliver 1500 bytes at that time. Opportunities are accounted in bytes: small
    /// packets share one and a large packet takes several. Unused bytes are lost. A packet can use an
    /// opportunity only if it was queued before. Repeats with the last stamp as the period.
    Mahimahi,
    /// Rows of a time and a rate, without a header in seconds and bytes per second. A header names other
    /// units, such as `time_ms,mbps`. While the rate is zero, nothing is delivered. Repeats after the last row.
    ///
    /// A rate applies from the previous row's time (0 at first) until its own. If the first row is at
    /// 0, or its time is a date (seconds since 1970), a rate applies from its own time until the next
    /// row's. The last rate then applies as long as the one before.
    Csv,
}

impl TraceFormat {
    /// Every format.
    pub const ALL: [TraceFormat; 2] = [TraceFormat::Mahimahi, TraceFormat::Csv];

    /// Returns the name of the format in commands and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TraceFormat::Mahimahi => "mahimahi",
            TraceFormat::Csv => "csv",
        }
    }

    /// Returns a description of one line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            TraceFormat::Mahimahi => {
                "a line for each time in milliseconds at which 1500 bytes can be delivered"
            }
            TraceFormat::Csv => "rows of seconds,bytes_per_second, or of the units in a header",
        }
    }
}

impl Trace {
    /// Parses `text` and recognises the format by the first line. `name` is used in messages and is
    /// usually the file name. A byte order mark, blanks around fields, CRLF and empty lines at the end are
    /// accepted.
    ///
    /// # Errors
    /// Returns an error for the first line that violates the format, for an empty recording, and for one
    /// that never delivers anything.
    pub fn parse(name: &str, text: &str) -> Result<Trace, TraceError> {
        Trace::parse_as(parse::sniff(name, text)?, name, text)
    }

    /// Parses `text` in the given format.
    ///
    /// # Errors
    /// As [`Trace::parse`].
    pub fn parse_as(format: TraceFormat, name: &str, text: &str) -> Result<Trace, TraceError> {
        let body = match format {
            TraceFormat::Mahimahi => Body::Opportunities(parse::mahimahi(name, text)?.into()),
            TraceFormat::Csv => Body::Rows(Arc::new(parse::csv(name, text)?)),
        };
        Ok(Trace { name: name.into(), body })
    }

    /// Returns the name given to [`Trace::parse`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the file format of the recording.
    #[must_use]
    pub fn format(&self) -> TraceFormat {
        match self.body {
            Body::Opportunities(_) => TraceFormat::Mahimahi,
            Body::Rows(_) => TraceFormat::Csv,
        }
    }

    /// Returns the length of the recording, after which it repeats. It is above zero.
    #[must_use]
    pub fn duration(&self) -> Span {
        Span::from_nanos(match &self.body {
            Body::Opportunities(stamps) => {
                u64::from(stamps.last().copied().unwrap_or(0)) * NANOS_PER_MILLI
            }
            Body::Rows(schedule) => schedule.period(),
        })
    }

    /// Returns the mean capacity of one lap, rounded down to whole bits per second.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let units = match &self.body {
            Body::Opportunities(stamps) => opportunity_units(stamps.len()),
            Body::Rows(schedule) => schedule.lap_units(),
        };
        rate_of(units, self.duration().as_nanos())
    }

    /// Returns the rows of a recording of rates.
    pub(crate) fn schedule(&self) -> Option<Arc<Schedule>> {
        match &self.body {
            Body::Opportunities(_) => None,
            Body::Rows(schedule) => Some(schedule.clone()),
        }
    }

    /// Returns the stamps of a recording of opportunities, or none for a recording of rates.
    pub(crate) fn stamps(&self) -> Arc<[u32]> {
        match &self.body {
            Body::Opportunities(stamps) => stamps.clone(),
            Body::Rows(_) => Arc::new([]),
        }
    }
}

/// Returns the capacity of `count` opportunities, in bits per second times nanoseconds.
fn opportunity_units(count: usize) -> u128 {
    count as u128 * u128::from(OPPORTUNITY_BYTES) * UNITS_PER_BYTE
}

/// Returns the mean rate that sends `units` in `nanos`.
fn rate_of(units: u128, nanos: u64) -> Rate {
    Rate::from_bps(u64::try_from(units / u128::from(nanos.max(1))).unwrap_or(u64::MAX))
}

/// An error in a recording: its line, the text found there, and the allowed text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    name: Box<str>,
    line: usize,
    found: String,
    allowed: &'static str,
}

impl TraceError {
    /// Returns the name of the recording.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the line number, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the text that was found.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Returns a description of the allowed text.
    #[must_use]
    pub fn allowed(&self) -> &'static str {
        self.allowed
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceError { name, line, found, allowed } = self;
        write!(f, "{name}:{line}: found {found}; allowed: {allowed}")
    }
}

impl core::error::Error for TraceError {}
