//! Rules that end slow start before the queue overflows.

mod plus;
mod train;

use crate::Ack;
use plait_base::{Span, Time};
use plus::Plus;
use train::{Rule, Train};

/// The rule that ends slow start before a loss.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HyStart {
    /// Only a loss ends slow start.
    #[default]
    Off,
    /// HyStart++ (RFC 9406), in the first slow start alone. If the RTT grows, slow start becomes
    /// slower and ends some rounds later.
    PlusPlus,
    /// HyStart of CUBIC in Linux since 4.0. Slow start ends if a train of acknowledgements lasts
    /// half of the lowest RTT, or if the RTT grows by an eighth.
    Linux,
    /// The same in Linux 6.18. Times are in microseconds, and every sample of a round counts for
    /// its lowest RTT. The limit of a train is half of the sum of the lowest RTT and 1 ms.
    Linux6,
    /// The same in Linux 2.6.38 to 3.19, with a sixteenth.
    Linux3,
}

/// The growth of slow start for an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Growth {
    /// The whole growth.
    Full,
    /// The growth divided by this value (conservative slow start).
    Part(u64),
    /// Slow start is over.
    End,
}

/// State of the rule.
#[derive(Debug)]
pub(crate) enum Detector {
    Plus(Plus),
    Train(Train),
}

impl Detector {
    pub(crate) fn of(hystart: HyStart) -> Option<Detector> {
        match hystart {
            HyStart::Off => None,
            HyStart::PlusPlus => Some(Detector::Plus(Plus::new())),
            HyStart::Linux => Some(Detector::Train(Train::new(Rule::LINUX_4))),
            HyStart::Linux6 => Some(Detector::Train(Train::new(Rule::LINUX_6))),
            HyStart::Linux3 => Some(Detector::Train(Train::new(Rule::LINUX_3))),
        }
    }

    /// Takes in an acknowledgement in slow start, with a window of `segments`. `first` is true if
    /// the subflow has no threshold yet.
    pub(crate) fn on_ack(&mut self, ack: &Ack, segments: u64, first: bool) -> Growth {
        match self {
            // RFC 9406 section 4.3 applies it to the first slow start only, which has no threshold.
            Detector::Plus(plus) if first => plus.on_ack(ack.rtt, ack.round),
            Detector::Plus(_) => Growth::Full,
            Detector::Train(train) => train.on_ack(ack, segments),
        }
    }

    /// Takes in the begin of congestion avoidance.
    pub(crate) fn on_avoidance(&mut self, now: Time) {
        if let Detector::Train(train) = self {
            train.on_avoidance(now);
        }
    }

    /// Takes in a detected loss.
    pub(crate) fn on_loss(&mut self) {
        if let Detector::Train(train) = self {
            train.on_loss();
        }
    }

    /// Takes in an expired retransmission timer.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        if let Detector::Train(train) = self {
            train.on_timeout(now);
        }
    }
}
