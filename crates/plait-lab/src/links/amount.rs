//! Values of a link with their kinds, and ranges of them.

use crate::error::{Fault, ScenarioError};
use crate::scenario::PlacedText;
use plait_app::quantity::{self, Limit};

/// Bytes of a packet in a queue that is given in packets.
const PACKET_BYTES: f64 = 1_500.0;

/// The keys whose value may be a range, each with the kind of its values.
const RANGES: [(&str, Kind); 10] = [
    ("rate", Kind::Rate),
    ("rate_down", Kind::Rate),
    ("rate_up", Kind::Rate),
    ("rtt", Kind::Delay),
    ("owd_down", Kind::Delay),
    ("owd_up", Kind::Delay),
    ("jitter", Kind::Jitter),
    ("queue", Kind::Queue),
    ("loss", Kind::Share),
    ("loss_up", Kind::Share),
];

/// What a value measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Rate,
    Delay,
    Jitter,
    Queue,
    Share,
}

/// The unit in which a value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Bits,
    Nanoseconds,
    Bytes,
    Percent,
}

/// Both ends of a range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) unit: Unit,
}

impl Kind {
    /// Returns the kind of a key whose value may be a range.
    pub(crate) fn of(key: &str) -> Option<Kind> {
        RANGES.iter().find(|(name, _)| *name == key).map(|(_, kind)| *kind)
    }

    /// Returns true if the value of a key is one of a rate.
    pub(crate) fn is_rate(key: &str) -> bool {
        Kind::of(key) == Some(Kind::Rate)
    }
}

impl Unit {
    /// Writes an amount in this unit.
    pub(crate) fn written(self, amount: f64) -> String {
        match self {
            Unit::Bits => format!("{}bit", amount.max(1.0) as u64),
            Unit::Nanoseconds => format!("{}ns", amount.max(1.0) as u64),
            Unit::Bytes => format!("{}B", amount.max(1.0) as u64),
            Unit::Percent => format!("{:.6}%", amount.min(100.0)),
        }
    }
}

impl Range {
    /// Reads `LOW..HIGH` with values above zero. A loss may begin at zero.
    pub(crate) fn read(
        kind: Kind,
        given: &PlacedText,
        low: &str,
        high: &str,
    ) -> Result<Range, ScenarioError> {
        Range::of(kind, given, amount(kind, given, low)?, amount(kind, given, high)?)
    }

    /// Checks both ends.
    pub(crate) fn of(
        kind: Kind,
        given: &PlacedText,
        (low, unit): (f64, Unit),
        (high, other): (f64, Unit),
    ) -> Result<Range, ScenarioError> {
        let refused = |problem: &str| {
            let example = match kind {
                Kind::Rate => "values above zero, such as 18mbit..22mbit",
                Kind::Delay | Kind::Jitter => "times above zero, such as 20ms..25ms",
                Kind::Queue => "times or sizes above zero, such as 50ms..200ms",
                Kind::Share => "shares, such as 0.1%..0.5%",
            };
            let allowed = format!("an 80 % interval LOW..HIGH of {example}");
            Err(given.error(Fault::Invalid, problem).allow(&allowed))
        };
        if unit != other {
            return refused("the ends of the range have different kinds of units");
        }
        let above_zero = low > 0.0 || (kind == Kind::Share && high > 0.0);
        if !(above_zero && high.is_finite()) {
            return refused("a range needs two values above zero");
        }
        if low > high {
            return refused("the lower end of the range is above its upper end");
        }
        Ok(Range { low, high, unit })
    }

    /// Returns the middle: the geometric mean, or the median of the distribution that a loss from zero has.
    pub(crate) fn middle(self) -> f64 {
        match self.low > 0.0 {
            true => libm::sqrt(self.low * self.high),
            // Of the exponential distribution with 90 % below the upper end.
            false => self.high * std::f64::consts::LN_2 / std::f64::consts::LN_10,
        }
    }
}

/// Reads an amount, such as one end of a range.
pub(crate) fn amount(
    kind: Kind,
    given: &PlacedText,
    text: &str,
) -> Result<(f64, Unit), ScenarioError> {
    let wrong = |error: &dyn ToString| given.error(Fault::Invalid, &error.to_string());
    Ok(match kind {
        Kind::Rate if text.trim() == "inf" => (f64::INFINITY, Unit::Bits),
        Kind::Rate => {
            (quantity::rate(text).map_err(|error| wrong(&error))?.as_bps() as f64, Unit::Bits)
        }
        Kind::Delay | Kind::Jitter => {
            let time = quantity::time(text).map_err(|error| wrong(&error))?;
            (time.as_nanos() as f64, Unit::Nanoseconds)
        }
        Kind::Share => {
            let share = quantity::percent(text).map_err(|error| wrong(&error))?;
            (f64::from(share.as_ppb()) / 1e7, Unit::Percent)
        }
        Kind::Queue => match quantity::limit(text).map_err(|error| wrong(&error))? {
            Limit::Time(time) => (time.as_nanos() as f64, Unit::Nanoseconds),
            Limit::Bytes(bytes) => (bytes as f64, Unit::Bytes),
            Limit::Packets(packets) => (f64::from(packets) * PACKET_BYTES, Unit::Bytes),
            Limit::Infinite => (f64::INFINITY, Unit::Bytes),
        },
    })
}
