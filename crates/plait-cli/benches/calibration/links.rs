//! The links whose advice is judged.

use plait_base::RandomStream;
use std::fs;
use std::path::{Path, PathBuf};

/// Rate of the other direction of a recorded pair.
const UP: &str = "20mbit";
/// Time in s at which the measurement of a recorded pair begins, and by which the races begin later.
const MEASURED_AT_S: [u64; 3] = [0, 30, 60];
const LATER_S: u64 = 15;

/// Where links come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Two links with constant values.
    Random,
    /// Two addresses behind one link.
    Shared,
    /// The recorded rates of two links.
    Recorded,
}

impl Kind {
    pub(super) fn named(name: &str) -> Option<Kind> {
        [Kind::Random, Kind::Shared, Kind::Recorded].into_iter().find(|kind| kind.name() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Kind::Random => "random",
            Kind::Shared => "shared",
            Kind::Recorded => "recorded",
        }
    }
}

/// Links to judge.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Its name in the files.
    pub(super) name: String,
    /// The paths during the measurement, and during the races.
    pub(super) measured: Vec<String>,
    pub(super) raced: Vec<String>,
    /// Where the packets of each path start.
    pub(super) from: [&'static str; 2],
}

impl Case {
    /// Returns all cases of a kind.
    pub(super) fn all(kind: Kind, seeds: (u64, u64)) -> Result<Vec<Case>, String> {
        let seeds = seeds.0..seeds.1;
        Ok(match kind {
            Kind::Random => seeds.map(random).collect(),
            Kind::Shared => seeds.map(shared).collect(),
            Kind::Recorded => recorded()?,
        })
    }
}

fn random(seed: u64) -> Case {
    let links = vec![link(seed, "a"), link(seed, "b")];
    let name = format!("random-{seed}");
    Case { name, measured: links.clone(), raced: links, from: ["a", "b"] }
}

/// Both paths are the same device. The first one is its name, and the second one its address.
fn shared(seed: u64) -> Case {
    let name = format!("shared-{seed}");
    Case { name, measured: vec![link(seed, "a")], raced: Vec::new(), from: ["a=a", "b=10.98.1.1"] }
}

/// Draws a link.
fn link(seed: u64, name: &str) -> String {
    let mut dice = RandomStream::new(seed, &["calibration", name]);
    let mut log = |low: f64, high: f64| low * (high / low).powf(dice.unit());
    let (rate, rtt, queue) = (log(3.0, 40.0), log(10.0, 150.0), log(40.0, 300.0));
    let loss = log(0.01, 0.3);
    let lossy = if dice.below(2) == 0 { String::new() } else { format!(",loss={loss:.3}%") };
    format!("{name}:rate={rate:.2}mbit,rtt={rtt:.1}ms,queue={queue:.0}ms{lossy}")
}

/// The pairs in the directory of `PLAIT_DATA`. A pair is measured first, and raced from the end of the measurement on.
fn recorded() -> Result<Vec<Case>, String> {
    let data = std::env::var("PLAIT_DATA").map_err(|_| "PLAIT_DATA is not set")?;
    let traces = PathBuf::from(data).join("traces");
    let entries =
        fs::read_dir(&traces).map_err(|error| format!("{}: {error}", traces.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pair =
        |name: String| Some(name.strip_prefix("pair_")?.strip_suffix("_wifi.csv")?.to_owned());
    let mut pairs: Vec<String> = names.filter_map(pair).collect();
    pairs.sort();
    let cases = pairs.iter().flat_map(|pair| {
        let traces = &traces;
        MEASURED_AT_S.into_iter().map(move |at| recorded_at(traces, pair, at))
    });
    Ok(cases.collect())
}

fn recorded_at(traces: &Path, pair: &str, at_s: u64) -> Case {
    let paths = |at_s: u64| {
        let path = |name: &str, rtt: u32, kind: &str| {
            let file = traces.join(format!("pair_{pair}_{kind}.csv"));
            // The other direction was not recorded. Without a rate, the measurement would load it with gigabits.
            format!("{name}:rtt={rtt}ms,trace={},rate_up={UP},offset={at_s}s", file.display())
        };
        vec![path("a", 20, "wifi"), path("b", 50, "cellular")]
    };
    Case {
        name: format!("recorded-{pair}-{at_s}"),
        measured: paths(at_s),
        raced: paths(at_s + LATER_S),
        from: ["a", "b"],
    }
}
