//! What ends slow start before the queue overflows.

mod plus;
mod train;

use crate::Ack;
use plait_base::{Span, Time};
use plus::Plus;
use train::{Rule, Train};

/// Whether slow start ends before a loss, and by which rule.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HyStart {
    /// A loss ends it.
    #[default]
    Off,
    /// HyStart++ (RFC 9406): slower where the RTT grows, then at an end. The first slow start alone.
    PlusPlus,
    /// HyStart as in the CUBIC of Linux from 4.0 on: at an end where the acknowledgements of a round
    /// trip come for half of the least RTT in a row, or where the RTT grows by an eighth.
    Linux,
    /// The same in Linux 6.18: times are in microseconds, every sample of a round counts for its least
    /// RTT, and a train may last a millisecond longer.
    Linux6,
    /// The same from 2.6.38 to 3.19, where a sixteenth is enough.
    Linux3,
}

/// What slow start does with an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Growth {
    /// All of it.
    Full,
    /// A part of it (conservative slow start).
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

    /// Takes in an acknowledgement in slow start, with a window of `segments`. `first`: the subflow
    /// has no threshold yet.
    pub(crate) fn on_ack(&mut self, ack: &Ack, segments: u64, first: bool) -> Growth {
        match self {
            // Only for the first slow start (RFC 9406 section 4.3), without a threshold.
            Detector::Plus(plus) if first => plus.on_ack(ack.rtt, ack.round),
            Detector::Plus(_) => Growth::Full,
            Detector::Train(train) => train.on_ack(ack, segments),
        }
    }

    /// Congestion avoidance has begun.
    pub(crate) fn on_avoidance(&mut self, now: Time) {
        if let Detector::Train(train) = self {
            train.on_avoidance(now);
        }
    }

    /// A loss was detected.
    pub(crate) fn on_loss(&mut self) {
        if let Detector::Train(train) = self {
            train.on_loss();
        }
    }

    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        if let Detector::Train(train) = self {
            train.on_timeout(now);
        }
    }
}
