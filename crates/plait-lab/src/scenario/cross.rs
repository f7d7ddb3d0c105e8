//! UDP cross traffic beside the connection: `poisson:rate=3mbit`, `pareto:rate=1mbit,on=500ms`.

use super::placed_text::PlacedText;
use crate::error::{Fault, ScenarioError};
use plait_app::quantity;
use plait_base::{Rate, Span};
use plait_link::{Arrivals, CrossTraffic};
use std::fmt;

/// Default packet size in bytes.
const SIZE: u64 = 1_000;
/// Defaults of on-off sources, as in ns-2.
const MEAN: Span = Span::from_millis(500);
const SHAPE_MILLI: u32 = 1_500;
const MAX_PHASE: Span = Span::from_secs(600);
/// The names of the sources.
pub(super) const UDP: [&str; 2] = ["poisson", "pareto"];
const ALLOWED: &str = "poisson:rate=RATE[,size=SIZE] or \
     pareto:rate=RATE[,on=TIME][,off=TIME][,shape=1.5][,size=SIZE]";

/// A source of UDP cross traffic in a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Udp(pub CrossTraffic);

/// Returns true if `name` is one of these sources.
pub(super) fn is_udp(name: &str) -> bool {
    UDP.contains(&name)
}

impl Udp {
    /// Reads `poisson:KEY=VALUE,...` or `pareto:KEY=VALUE,...`.
    pub(super) fn parse(given: &PlacedText) -> Result<Udp, ScenarioError> {
        let refused = |problem: &str| given.error(Fault::Invalid, problem).allow(ALLOWED);
        let (name, fields) = given.text.split_once(':').unwrap_or((&given.text, ""));
        let on_off = name.trim() == "pareto";
        let (mut rate, mut size, mut on, mut off, mut shape) = (None, None, None, None, None);
        for field in fields.split(',').map(str::trim).filter(|field| !field.is_empty()) {
            let (key, value) = field.split_once('=').ok_or_else(|| refused("no KEY=VALUE"))?;
            let value = PlacedText::new(&given.place, value);
            let time = |value: &PlacedText| value.quantity(quantity::time);
            let again = match key.trim() {
                "rate" => rate.replace(value.quantity(quantity::rate)?).is_some(),
                "size" => size.replace(value.quantity(quantity::bytes)?).is_some(),
                "on" if on_off => on.replace(time(&value)?).is_some(),
                "off" if on_off => off.replace(time(&value)?).is_some(),
                "shape" if on_off => shape.replace(read_shape(&value)?).is_some(),
                key => {
                    let keys = if on_off { &KEYS[..] } else { &KEYS[..2] };
                    let names = keys.iter().copied();
                    return Err(ScenarioError::unknown(&given.place, "key", key, names));
                }
            };
            if again {
                return Err(refused(&format!("{key} is given twice")));
            }
        }
        let Some(rate) = rate else { return Err(refused("its rate is missing")) };
        if rate == Rate::ZERO || rate.is_infinite() {
            return Err(refused("a mean rate must be above zero and finite"));
        }
        let size = size.unwrap_or(SIZE);
        if !(28..=65_535).contains(&size) {
            let allowed = "28B to 65535B, IP and UDP headers included";
            return Err(given.error(Fault::Invalid, "not a packet size").allow(allowed));
        }
        let (on, off) = (on.unwrap_or(MEAN), off.unwrap_or(MEAN));
        if on < Span::from_millis(1) || on.max(off) > MAX_PHASE {
            return Err(refused("times are 1ms to 600s, and off may be 0s"));
        }
        let arrivals = match on_off {
            false => Arrivals::Poisson,
            true => Arrivals::ParetoOnOff { on, off, shape_milli: shape.unwrap_or(SHAPE_MILLI) },
        };
        Ok(Udp(CrossTraffic { rate, size: size as u32, arrivals }))
    }
}

const KEYS: [&str; 5] = ["rate", "size", "on", "off", "shape"];

/// Reads a shape from 1.001 to 10, in thousandths.
fn read_shape(given: &PlacedText) -> Result<u32, ScenarioError> {
    let shape = given.text.trim().parse::<f64>().ok();
    match shape.filter(|it| (1.001..=10.0).contains(it)) {
        Some(shape) => Ok(libm::round(shape * 1_000.0) as u32),
        None => {
            let problem = "this shape has no mean";
            Err(given.error(Fault::Invalid, problem).allow("a number from 1.001 to 10"))
        }
    }
}

/// Writes it as `--compete` has it.
impl fmt::Display for Udp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CrossTraffic { rate, size, arrivals } = self.0;
        match arrivals {
            Arrivals::Poisson => write!(f, "poisson:rate={rate}")?,
            Arrivals::ParetoOnOff { on, off, shape_milli } => {
                let shape = f64::from(shape_milli) / 1_000.0;
                write!(f, "pareto:rate={rate},on={on},off={off},shape={shape}")?;
            }
        }
        match u64::from(size) {
            SIZE => Ok(()),
            size => write!(f, ",size={size}B"),
        }
    }
}
