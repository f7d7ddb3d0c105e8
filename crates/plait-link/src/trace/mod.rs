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

/// A recorded link. It repeats: what holds at the end of the recording is followed by what holds
/// at its start.
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

/// How a recording is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// One whole number of milliseconds a line, not decreasing, repeats allowed. Each line is an
    /// opportunity to deliver 1500 bytes at that time. It is accounted in bytes: small packets
    /// share one and a large packet takes several; what is not used is lost. A packet must be
    /// there before an opportunity to use it. Repeats with the last stamp as the period.
    Mahimahi,
    /// Rows of a time and a rate. Without a header these are seconds and bytes per second; a header
    /// names other units, such as `time_ms,mbps`. A rate of zero means that nothing is delivered.
    /// Repeats after the last row.
    ///
    /// A rate holds from the previous row's time (0 at first) until its own. If the first row is at
    /// 0, or its time is a date (seconds since 1970), a rate holds from its own time until the next
    /// row's, and the last one as long as the one before.
    Csv,
}

impl TraceFormat {
    /// Every format.
    pub const ALL: [TraceFormat; 2] = [TraceFormat::Mahimahi, TraceFormat::Csv];

    /// The format's name in commands and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TraceFormat::Mahimahi => "mahimahi",
            TraceFormat::Csv => "csv",
        }
    }

    /// One line for lists.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            TraceFormat::Mahimahi => {
                "one millisecond stamp a line, each a chance to deliver 1500 bytes"
            }
            TraceFormat::Csv => "rows of seconds,bytes_per_second, or of the units in a header",
        }
    }
}

impl Trace {
    /// Reads `text`, whose format it recognises by its first line. `name` is for messages, usually
    /// the file's. A byte order mark, blanks around fields, CRLF and empty lines at the end are
    /// accepted.
    ///
    /// # Errors
    /// The first line that is not what the format allows, an empty recording, or one in which
    /// nothing would ever be delivered.
    pub fn parse(name: &str, text: &str) -> Result<Trace, TraceError> {
        Trace::parse_as(parse::sniff(name, text)?, name, text)
    }

    /// Like [`Trace::parse`], with the format given.
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

    /// The name given to [`Trace::parse`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the recording was written.
    #[must_use]
    pub fn format(&self) -> TraceFormat {
        match self.body {
            Body::Opportunities(_) => TraceFormat::Mahimahi,
            Body::Rows(_) => TraceFormat::Csv,
        }
    }

    /// Length of the recording, after which it repeats; above zero.
    #[must_use]
    pub fn duration(&self) -> Span {
        Span::from_nanos(match &self.body {
            Body::Opportunities(stamps) => {
                u64::from(stamps.last().copied().unwrap_or(0)) * NANOS_PER_MILLI
            }
            Body::Rows(schedule) => schedule.period(),
        })
    }

    /// Capacity of one lap over its duration, rounded down to whole bits per second.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let units = match &self.body {
            Body::Opportunities(stamps) => opportunity_units(stamps.len()),
            Body::Rows(schedule) => schedule.lap_units(),
        };
        rate_of(units, self.duration().as_nanos())
    }

    /// The rows of a recording of rates.
    pub(crate) fn schedule(&self) -> Option<Arc<Schedule>> {
        match &self.body {
            Body::Opportunities(_) => None,
            Body::Rows(schedule) => Some(schedule.clone()),
        }
    }

    /// The stamps of a recording of opportunities; none of one of rates.
    pub(crate) fn stamps(&self) -> Arc<[u32]> {
        match &self.body {
            Body::Opportunities(stamps) => stamps.clone(),
            Body::Rows(_) => Arc::new([]),
        }
    }
}

/// Capacity of `count` opportunities, in bits per second times nanoseconds.
fn opportunity_units(count: usize) -> u128 {
    count as u128 * u128::from(OPPORTUNITY_BYTES) * UNITS_PER_BYTE
}

/// The mean rate that passes `units` in `nanos`.
fn rate_of(units: u128, nanos: u64) -> Rate {
    Rate::from_bps(u64::try_from(units / u128::from(nanos.max(1))).unwrap_or(u64::MAX))
}

/// What is wrong with a recording, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    name: Box<str>,
    line: usize,
    found: String,
    allowed: &'static str,
}

impl TraceError {
    /// Name of the recording.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// What stands there.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What may stand there.
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
