use alloc::sync::Arc;

use plait_base::{Rate, Time};

use crate::RateSource;
use crate::config::schedule_of;
use crate::schedule::{ScheduleCursor, UNITS_PER_BYTE};
use crate::trace::OpportunityCursor;

/// The transmitter of a link. It sends packets one at a time in the order offered, and returns their
/// departure on entry.
#[derive(Clone, Debug)]
pub struct Service(RateModel);

#[derive(Clone, Debug)]
enum RateModel {
    /// No limit: packets depart at once.
    Immediate(u64),
    Fixed(FixedRate),
    /// Steps (shift 0) or a CSV trace. The schedule's time is `shift` ahead of the link's time.
    Schedule {
        cursor: ScheduleCursor,
        shift: u64,
    },
    Opportunities {
        cursor: OpportunityCursor,
        shift: u64,
    },
}

impl Service {
    /// Creates a transmitter with the rate of `source` that is idle at [`Time::ZERO`].
    #[must_use]
    pub fn new(source: &RateSource) -> Service {
        if let Some(rate) = source.constant() {
            return Service::fixed(rate);
        }
        Service(match source {
            RateSource::Fixed(rate) => RateModel::Fixed(FixedRate::new(*rate)),
            RateSource::Steps(steps) => {
                let cursor = ScheduleCursor::new(Arc::new(schedule_of(steps)));
                RateModel::Schedule { cursor, shift: 0 }
            }
            RateSource::Trace { trace, offset } => {
                let shift = offset.as_nanos() % trace.duration().as_nanos().max(1);
                match trace.schedule() {
                    Some(schedule) => {
                        RateModel::Schedule { cursor: ScheduleCursor::new(schedule), shift }
                    }
                    None => RateModel::Opportunities {
                        cursor: OpportunityCursor::new(trace.stamps()),
                        shift,
                    },
                }
            }
        })
    }

    /// Creates a transmitter with a fixed rate.
    #[must_use]
    pub fn fixed(rate: Rate) -> Service {
        Service(match rate {
            Rate::INFINITE => RateModel::Immediate(0),
            rate => RateModel::Fixed(FixedRate::new(rate)),
        })
    }

    /// Sends `size` bytes that are available from `at` on. Returns the departure of the last byte, rounded up
    /// to the nanosecond, or [`Time::NEVER`] if the rate stays zero. `at` must not decrease.
    #[inline(always)]
    pub fn serve(&mut self, at: Time, size: u32) -> Time {
        match &mut self.0 {
            RateModel::Fixed(fixed) => Time::from_nanos(fixed.serve(at.as_nanos(), size)),
            _ => self.serve_varying(at.as_nanos(), size),
        }
    }

    /// Like [`Service::serve`], for rates that are not fixed.
    #[inline(never)]
    fn serve_varying(&mut self, at: u64, size: u32) -> Time {
        match &mut self.0 {
            RateModel::Immediate(last) => {
                *last = at.max(*last);
                Time::from_nanos(*last)
            }
            RateModel::Fixed(fixed) => Time::from_nanos(fixed.serve(at, size)),
            RateModel::Schedule { cursor, shift } => {
                shifted_back(cursor.serve(at.saturating_add(*shift), size), *shift)
            }
            RateModel::Opportunities { cursor, shift } => {
                shifted_back(cursor.serve(at.saturating_add(*shift), size), *shift)
            }
        }
    }

    /// Returns the time at which the last offered packet has departed.
    #[inline]
    #[must_use]
    pub fn free_at(&self) -> Time {
        match &self.0 {
            RateModel::Immediate(last) => Time::from_nanos(*last),
            RateModel::Fixed(fixed) => Time::from_nanos(fixed.free_at()),
            RateModel::Schedule { cursor, shift } => shifted_back(cursor.free_at(), *shift),
            RateModel::Opportunities { cursor, shift } => shifted_back(cursor.free_at(), *shift),
        }
    }
}

/// Converts a time of the recording to a time of the link. `u64::MAX` becomes [`Time::NEVER`].
#[inline]
fn shifted_back(time: u64, shift: u64) -> Time {
    if time == u64::MAX { Time::NEVER } else { Time::from_nanos(time.saturating_sub(shift)) }
}

/// A transmitter at one finite rate.
#[derive(Clone, Debug)]
struct FixedRate {
    rate: u64,
    /// The transmitter is free at `end` ns minus `lack / rate` ns; `lack` is less than `rate`.
    end: u64,
    lack: u64,
    /// Transmission time of `size`: whole nanoseconds, and a rest in units of 1 / rate. It is cached,
    /// because most packets have the size of the previous one and the division dominates the cost.
    size: u32,
    whole: u64,
    rest: u64,
}

impl FixedRate {
    fn new(rate: Rate) -> FixedRate {
        FixedRate { rate: rate.as_bps(), end: 0, lack: 0, size: 0, whole: 0, rest: 0 }
    }

    /// Returns the first whole nanosecond at which the transmitter is free.
    #[inline]
    fn free_at(&self) -> u64 {
        self.end
    }

    #[inline(always)]
    fn serve(&mut self, at: u64, size: u32) -> u64 {
        if at >= self.end {
            self.end = at;
            self.lack = 0;
        }
        if size != self.size {
            self.measure(size);
        }
        // The fraction up to `end` is used first. No size has a rest that would exceed the last
        // nanosecond.
        let (lack, more) = self.lack.overflowing_sub(self.rest);
        self.lack = if more { lack.wrapping_add(self.rate) } else { lack };
        self.end = self.end.saturating_add(self.whole + u64::from(more));
        self.end
    }

    #[inline(never)]
    fn measure(&mut self, size: u32) {
        self.size = size;
        let units = u128::from(size) * UNITS_PER_BYTE;
        (self.whole, self.rest) = match (self.rate, u64::try_from(units)) {
            (0, _) => (u64::MAX, 0),
            (rate, Ok(units)) => (units / rate, units % rate),
            (rate, Err(_)) => {
                let rate = u128::from(rate);
                u64::try_from(units / rate)
                    .map_or((u64::MAX, 0), |whole| (whole, (units % rate) as u64))
            }
        };
    }
}
