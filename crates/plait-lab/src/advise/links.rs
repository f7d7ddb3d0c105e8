//! Links that are not exactly known: a value may be a range, and what nobody measured has a wide prior.

use crate::error::{Place, ScenarioError};
use crate::links::amount::{Kind, Range, Unit, amount};
use crate::scenario::{PlacedText, RawScenario};
use crate::stats::deviation;
use plait_base::RandomStream;

/// The share of draws, and of gains, below the upper end of a range. A range is an 80 % interval.
pub(super) const UPPER: f64 = 0.9;
/// Factor of an RTT that is given without a range, from the middle to either end of its 80 % interval.
const RTT_FACTOR: f64 = 1.1;
/// Least and largest queue in ms, if the queue is unknown.
const QUEUES_MS: (f64, f64) = (30.0, 500.0);
/// One of so many links loses nothing but what its queue drops. The others lose a share of [`USUAL_LOSSES`].
pub const LOSSLESS_ONE_OF: u64 = 2;
/// Least and largest share of lost packets in percent, with a uniform logarithm, if the loss is unknown and above zero.
pub const USUAL_LOSSES: (f64, f64) = (0.001, 0.3);

/// A value of a path.
#[derive(Clone, PartialEq, Debug)]
enum Given {
    /// It is used as it is.
    Text(PlacedText),
    /// It is drawn from a log-normal distribution: its median, and the deviation of its logarithm.
    Drawn { place: PlacedText, median: f64, deviation: f64, unit: Unit },
    /// It is drawn from an exponential distribution, because zero is possible. Nine of ten draws are below `high`.
    FromZero { place: PlacedText, high: f64, unit: Unit },
}

/// A path of which some values are uncertain.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct UncertainPath {
    name: String,
    fields: Vec<(String, Given)>,
    /// Whether a queue must be drawn.
    queue_unknown: bool,
    /// Whether a loss must be drawn.
    loss_unknown: bool,
    /// The directions of which nothing says how much the path carries.
    pub(super) unknown: Option<Unknown>,
}

/// The directions of an unknown rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unknown {
    Both,
    /// From server to client.
    Down,
    /// From client to server.
    Up,
}

impl UncertainPath {
    /// Reads the paths of a scenario. `spread` is the factor of a rate that is given without a range, from the
    /// middle to either end of its 80 % interval.
    pub(super) fn all(raw: &RawScenario, spread: f64) -> Result<Vec<UncertainPath>, ScenarioError> {
        let read = |path: &crate::scenario::RawPath| {
            let has = |key: &str| path.fields.iter().any(|(name, _)| name == key);
            let recorded = has("trace") || has("profile");
            let mut fields = Vec::new();
            for (key, given) in &path.fields {
                fields.push((key.clone(), Given::read(key, given, spread)?));
            }
            let known = |one: &str| recorded || has("rate") || has(one);
            Ok(UncertainPath {
                name: path.name.text.clone(),
                fields,
                queue_unknown: !has("queue") && !has("profile"),
                loss_unknown: !has("loss") && !has("profile"),
                unknown: match (known("rate_down"), known("rate_up")) {
                    (true, true) => None,
                    (true, false) => Some(Unknown::Up),
                    (false, true) => Some(Unknown::Down),
                    (false, false) => Some(Unknown::Both),
                },
            })
        };
        raw.paths.iter().map(read).collect()
    }

    /// Returns the name of the path.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the fields of the path in the draw of this seed, as texts.
    pub(super) fn draw(&self, seed: u64) -> Vec<(String, PlacedText)> {
        let stream = |what: &str| RandomStream::new(seed, &["advise", &self.name, what]);
        let mut fields: Vec<(String, PlacedText)> = Vec::new();
        for (key, given) in &self.fields {
            fields.push((key.clone(), given.draw(&mut stream(key))));
        }
        let place = fields.first().map(|(_, given)| given.place.clone());
        let place = place.unwrap_or_else(|| Place::Argument("--path".to_owned()));
        let mut add = |key: &str, text: String| {
            fields.push((key.to_owned(), PlacedText { place: place.clone(), text }));
        };
        let log = |share: f64, (low, high): (f64, f64)| low * libm::pow(high / low, share);
        if self.queue_unknown {
            add("queue", format!("{:.3}ms", log(stream("queue").unit(), QUEUES_MS)));
        }
        if self.loss_unknown {
            let mut dice = stream("loss");
            let lossless = dice.below(LOSSLESS_ONE_OF) == 0;
            let loss = if lossless { 0.0 } else { log(dice.unit(), USUAL_LOSSES) };
            if loss > 0.0 {
                add("loss", format!("{loss:.6}%"));
            }
        }
        fields
    }
}

impl Given {
    fn read(key: &str, given: &PlacedText, spread: f64) -> Result<Given, ScenarioError> {
        let Some(kind) = Kind::of(key) else { return Ok(Given::Text(given.clone())) };
        // A rate in steps, or one that is drawn again over time, says itself how it varies.
        let varies = given.text.contains(['@', '/', '~', ':']);
        let range = match given.text.split_once("..") {
            _ if varies => return Ok(Given::Text(given.clone())),
            Some((low, high)) => Range::read(kind, given, low, high)?,
            None => {
                let factor = match kind {
                    Kind::Rate => spread,
                    Kind::Delay => RTT_FACTOR,
                    Kind::Jitter | Kind::Queue | Kind::Share => 1.0,
                };
                let (middle, unit) = amount(kind, given, &given.text)?;
                if factor == 1.0 || !(middle > 0.0 && middle.is_finite()) {
                    return Ok(Given::Text(given.clone()));
                }
                Range { low: middle / factor, high: middle * factor, unit }
            }
        };
        let Range { low, high, unit } = range;
        if low <= 0.0 {
            return Ok(Given::FromZero { place: given.clone(), high, unit });
        }
        let deviation = libm::log(high / low) / (2.0 * deviation(UPPER));
        Ok(Given::Drawn { place: given.clone(), median: range.middle(), deviation, unit })
    }

    fn draw(&self, stream: &mut RandomStream) -> PlacedText {
        let (place, drawn, unit) = match self {
            Given::Text(text) => return text.clone(),
            Given::Drawn { place, median, deviation: spread, unit } => {
                (place, median * libm::exp(spread * deviation(stream.unit())), unit)
            }
            Given::FromZero { place, high, unit } => {
                let unit_draw = -libm::log1p(-stream.unit());
                (place, high * unit_draw / core::f64::consts::LN_10, unit)
            }
        };
        PlacedText { place: place.place.clone(), text: unit.written(drawn) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_app::quantity;

    fn path(text: &str) -> Result<UncertainPath, ScenarioError> {
        let mut raw = RawScenario::new();
        raw.argument("path", text).unwrap();
        Ok(UncertainPath::all(&raw, 1.25)?.remove(0))
    }

    /// Returns the drawn values of a key in base units, sorted.
    fn draws(path: &UncertainPath, key: &str, read: fn(&str) -> f64) -> Vec<f64> {
        let of =
            |seed| path.draw(seed).into_iter().find(|it| it.0 == key).map(|it| read(&it.1.text));
        let mut values: Vec<f64> = (0..2_000).filter_map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn bps(text: &str) -> f64 {
        quantity::rate(text).unwrap().as_bps() as f64
    }

    #[test]
    fn a_range_holds_eight_of_ten_draws() {
        let wifi = path("wifi:rate=10mbit..40mbit,rtt=20ms,queue=50ms,loss=0%").unwrap();
        let rates = draws(&wifi, "rate", bps);
        let below = rates.iter().filter(|rate| **rate < 10e6).count();
        let above = rates.iter().filter(|rate| **rate > 40e6).count();
        assert!((150..250).contains(&below) && (150..250).contains(&above), "{below} {above}");
        assert!((rates[1_000] / 20e6 - 1.0).abs() < 0.1, "{}", rates[1_000]);
        assert_eq!(wifi.draw(7), wifi.draw(7));
    }

    #[test]
    fn a_value_without_a_range_has_the_spread() {
        let wifi = path("wifi:rate=20mbit,rtt=20ms,queue=50ms,loss=0%").unwrap();
        let rates = draws(&wifi, "rate", bps);
        let outside = rates.iter().filter(|it| **it < 16e6 || **it > 25e6).count();
        assert!((320..480).contains(&outside), "{outside}");
        let queue = wifi.draw(3).into_iter().find(|it| it.0 == "queue").unwrap();
        assert_eq!(queue.1.text, "50ms");
    }

    #[test]
    fn what_nobody_measured_is_drawn_widely() {
        let wifi = path("wifi:rate=20mbit,rtt=20ms").unwrap();
        let queues = draws(&wifi, "queue", |text| quantity::time(text).unwrap().as_millis_f64());
        assert!(queues[0] < 35.0 && queues[1_999] > 450.0, "{} {}", queues[0], queues[1_999]);
        let lossy = (0..1_000).filter(|seed| wifi.draw(*seed).iter().any(|it| it.0 == "loss"));
        assert!((450..550).contains(&lossy.count()));
        for (given, unknown) in [
            ("rtt=20ms", Some(Unknown::Both)),
            ("rate_down=9mbit", Some(Unknown::Up)),
            ("rate_up=9mbit", Some(Unknown::Down)),
            ("rate_up=9mbit,rate_down=9mbit", None),
            ("rate=9mbit", None),
            ("trace=a.csv", None),
        ] {
            assert_eq!(path(&format!("wifi:{given}")).unwrap().unknown, unknown, "{given}");
        }
    }

    #[test]
    fn a_loss_from_zero_has_nine_of_ten_draws_below_its_upper_end() {
        let wifi = path("wifi:rate=20mbit,rtt=20ms,queue=50ms,loss=0%..0.1%").unwrap();
        let read = |text: &str| f64::from(quantity::percent(text).unwrap().as_ppb()) / 1e7;
        let losses = draws(&wifi, "loss", read);
        let above = losses.iter().filter(|loss| **loss > 0.1).count();
        assert!((150..250).contains(&above) && losses[0] < 0.001, "{above} {}", losses[0]);
    }

    #[test]
    fn bad_ranges_are_refused() {
        for (text, problem) in [
            ("w:rate=20mbit..10mbit", "lower end"),
            ("w:queue=20ms..10kB", "different kinds"),
            ("w:rtt=0ms..10ms", "above zero"),
            ("w:rate=20..30mbit", "no unit"),
            ("w:loss=1%..inf", "inf"),
        ] {
            let error = path(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn steps_and_traces_are_left_alone() {
        let wifi = path("wifi:rate=10mbit@0s/4mbit@20s,rtt=20ms@0s/30ms@5s,down=1s..3s").unwrap();
        let texts: Vec<String> = wifi.draw(1).into_iter().map(|it| it.1.text).collect();
        assert_eq!(texts[..3], ["10mbit@0s/4mbit@20s", "20ms@0s/30ms@5s", "1s..3s"]);
    }
}
