use alloc::sync::Arc;

use plait_base::{Rate, Time};

use crate::RateSource;
use crate::config::schedule_of;
use crate::schedule::{ScheduleCursor, UNITS_PER_BYTE};
use crate::trace::OpportunityCursor;

/// The transmitter of a link: it sends packets one after the other, in the order offered, and
/// knows on entry when each departs.
#[derive(Clone, Debug)]
pub struct Service(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// No limit: departs at once.
    Immediate(u64),
    Fixed(FixedRate),
    /// Steps (shift 0) or a CSV trace; the schedule's time runs `shift` ahead of the link's.
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
    /// A transmitter at `source`'s rate that is idle at [`Time::ZERO`].
    #[must_use]
    pub fn new(source: &RateSource) -> Service {
        if let Some(rate) = source.constant() {
            return Service::fixed(rate);
        }
        Service(match source {
            RateSource::Fixed(rate) => Kind::Fixed(FixedRate::new(*rate)),
            RateSource::Steps(steps) => {
                let cursor = ScheduleCursor::new(Arc::new(schedule_of(steps)));
                Kind::Schedule { cursor, shift: 0 }
            }
            RateSource::Trace { trace, offset } => {
                let shift = offset.as_nanos() % trace.duration().as_nanos().max(1);
                match trace.schedule() {
                    Some(schedule) => {
                        Kind::Schedule { cursor: ScheduleCursor::new(schedule), shift }
                    }
                    None => Kind::Opportunities {
                        cursor: OpportunityCursor::new(trace.stamps()),
                        shift,
                    },
                }
            }
        })
    }

    /// A transmitter at one rate.
    #[must_use]
    pub fn fixed(rate: Rate) -> Service {
        Service(match rate {
            Rate::INFINITE => Kind::Immediate(0),
            rate => Kind::Fixed(FixedRate::new(rate)),
        })
    }

    /// Sends `size` bytes that are there from `at` on; returns when the last of them has left,
    /// rounded up to the nanosecond, [`Time::NEVER`] if the rate stays zero. `at` never goes back.
    #[inline(always)]
    pub fn serve(&mut self, at: Time, size: u32) -> Time {
        match &mut self.0 {
            Kind::Fixed(fixed) => Time::from_nanos(fixed.serve(at.as_nanos(), size)),
            _ => self.serve_varying(at.as_nanos(), size),
        }
    }

    /// The same at another rate than a fixed one.
    #[inline(never)]
    fn serve_varying(&mut self, at: u64, size: u32) -> Time {
        match &mut self.0 {
            Kind::Immediate(last) => {
                *last = at.max(*last);
                Time::from_nanos(*last)
            }
            Kind::Fixed(fixed) => Time::from_nanos(fixed.serve(at, size)),
            Kind::Schedule { cursor, shift } => {
                shifted_back(cursor.serve(at.saturating_add(*shift), size), *shift)
            }
            Kind::Opportunities { cursor, shift } => {
                shifted_back(cursor.serve(at.saturating_add(*shift), size), *shift)
            }
        }
    }

    /// When all that was offered has departed.
    #[inline]
    #[must_use]
    pub fn free_at(&self) -> Time {
        match &self.0 {
            Kind::Immediate(last) => Time::from_nanos(*last),
            Kind::Fixed(fixed) => Time::from_nanos(fixed.free_at()),
            Kind::Schedule { cursor, shift } => shifted_back(cursor.free_at(), *shift),
            Kind::Opportunities { cursor, shift } => shifted_back(cursor.free_at(), *shift),
        }
    }
}

/// A time of the recording as a time of the link; never stays never.
#[inline]
fn shifted_back(time: u64, shift: u64) -> Time {
    if time == u64::MAX { Time::NEVER } else { Time::from_nanos(time.saturating_sub(shift)) }
}

/// A transmitter at one finite rate.
#[derive(Clone, Debug)]
struct FixedRate {
    rate: u64,
    /// Free at `end` nanoseconds less `lack / rate` of one, where `lack` is below `rate`.
    end: u64,
    lack: u64,
    /// How long the size served last takes: whole nanoseconds and a rest in units of 1 / rate.
    /// Most packets have the size of the one before, and a division costs as much as all the rest.
    size: u32,
    whole: u64,
    rest: u64,
}

impl FixedRate {
    fn new(rate: Rate) -> FixedRate {
        FixedRate { rate: rate.as_bps(), end: 0, lack: 0, size: 0, whole: 0, rest: 0 }
    }

    /// The first whole nanosecond at which it is free.
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
        // What is lacking to a whole nanosecond is used up first. No size has a rest that would take the
        // whole beyond the last nanosecond.
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
