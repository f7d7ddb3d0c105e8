//! Propagation: a delay that may change in steps, and jitter. Packets are not reordered.

use alloc::boxed::Box;
use alloc::vec::Vec;

use plait_base::{RandomStream, Span, Time};

use crate::LinkConfig;

/// Computes arrivals from departures.
#[derive(Clone, Debug)]
pub(crate) struct Propagation {
    /// Delay of a packet that departs now.
    delay: Span,
    /// Later delays; `None` on nearly every link.
    delays: Option<Box<Delays>>,
    jitter: Span,
    jitter_stream: RandomStream,
    /// True if delays differ between packets, so that one might overtake another.
    uneven: bool,
    /// Arrival of the previous packet, which no packet may overtake.
    last_arrival: Time,
}

impl Propagation {
    pub(crate) fn new(config: &LinkConfig, jitter_stream: RandomStream) -> Propagation {
        Propagation {
            delay: config.delay,
            delays: Delays::new(&config.delay_steps).map(Box::new),
            jitter: config.impairments.jitter,
            jitter_stream,
            uneven: config.impairments.jitter > Span::ZERO || !config.delay_steps.is_empty(),
            last_arrival: Time::ZERO,
        }
    }

    /// Returns the arrival of a packet that departs at `departs`, which must not decrease.
    #[inline]
    pub(crate) fn arrival(&mut self, departs: Time) -> Time {
        if self.uneven { self.uneven_arrival(departs) } else { departs + self.delay }
    }

    /// Returns the arrival if delays differ between packets.
    fn uneven_arrival(&mut self, departs: Time) -> Time {
        if let Some(delay) = self.delays.as_mut().and_then(|delays| delays.turn(departs)) {
            self.delay = delay;
        }
        let mut arrives = departs + self.delay;
        if self.jitter > Span::ZERO {
            arrives += Span::from_nanos(self.jitter_stream.within(0, self.jitter.as_nanos()));
        }
        self.last_arrival = self.last_arrival.max(arrives);
        self.last_arrival
    }
}

/// The later delay steps.
#[derive(Clone, Debug)]
struct Delays {
    /// Steps in reverse order of time.
    steps: Vec<(Time, Span)>,
}

impl Delays {
    /// Returns the steps, or `None` if there are none. Of several at one time, the last applies.
    fn new(steps: &[(Time, Span)]) -> Option<Delays> {
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| step.0);
        steps.reverse();
        (!steps.is_empty()).then_some(Delays { steps })
    }

    /// Returns the delay at `departs`, which must not decrease, if it has changed.
    fn turn(&mut self, departs: Time) -> Option<Span> {
        let mut found = None;
        while let Some((_, delay)) = self.steps.pop_if(|(from, _)| *from <= departs) {
            found = Some(delay);
        }
        found
    }
}
