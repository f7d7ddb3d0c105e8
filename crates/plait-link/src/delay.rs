//! Propagation: a delay that may change in steps, and jitter. No packet overtakes another.

use alloc::boxed::Box;
use alloc::vec::Vec;

use plait_base::{RandomStream, Span, Time};

use crate::LinkConfig;

/// When packets that depart arrive.
#[derive(Clone, Debug)]
pub(crate) struct Propagation {
    /// That of what departs now.
    delay: Span,
    /// Delays that are still to come; `None` on nearly every link.
    delays: Option<Box<Delays>>,
    jitter: Span,
    jitter_stream: RandomStream,
    /// Packets have delays of their own, so that one might overtake another.
    uneven: bool,
    /// When the packet before arrives, which none may overtake.
    last_arrival: Time,
}

impl Propagation {
    pub(crate) fn new(config: &LinkConfig, jitter_stream: RandomStream) -> Propagation {
        Propagation {
            delay: config.delay,
            delays: Delays::new(&config.delay_steps).map(Box::new),
            jitter: config.jitter,
            jitter_stream,
            uneven: config.jitter > Span::ZERO || !config.delay_steps.is_empty(),
            last_arrival: Time::ZERO,
        }
    }

    /// Whether packets have delays of their own.
    pub(crate) const fn is_uneven(&self) -> bool {
        self.uneven
    }

    /// The delay of a packet of a link on which all have the same.
    #[inline(always)]
    pub(crate) const fn delay(&self) -> Span {
        self.delay
    }

    /// When a packet arrives that departs at `departs`, which never goes back.
    #[inline]
    pub(crate) fn arrival(&mut self, departs: Time) -> Time {
        if self.uneven { self.uneven_arrival(departs) } else { departs + self.delay }
    }

    /// When a packet arrives whose delay is not that of the one before.
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

/// The steps that are still to come.
#[derive(Clone, Debug)]
struct Delays {
    /// The last comes first.
    steps: Vec<(Time, Span)>,
}

impl Delays {
    /// The steps in the order of time, of several at one time the last; `None` where there is none.
    fn new(steps: &[(Time, Span)]) -> Option<Delays> {
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| step.0);
        steps.reverse();
        (!steps.is_empty()).then_some(Delays { steps })
    }

    /// The delay that has come to hold by `departs`, which never goes back, if it is a new one.
    fn turn(&mut self, departs: Time) -> Option<Span> {
        let mut found = None;
        while let Some((_, delay)) = self.steps.pop_if(|(from, _)| *from <= departs) {
            found = Some(delay);
        }
        found
    }
}
