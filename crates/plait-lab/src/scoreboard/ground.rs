//! The grounds of a scoreboard: links, each with a load.

use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::{RawScenario, Reader, Scenario, quoted};
use std::fs;
use std::path::{Path, PathBuf};

/// Links and a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ground {
    /// Name of the ground: `A`; for a recording, its pair, start and load.
    pub name: String,
    /// Name that selects the ground: `A`, or the pair.
    pub links: String,
    /// Settings as on a command line, without dashes, paths first.
    pub settings: Vec<(&'static str, String)>,
    /// True if hosts get jitter if nothing else is random, as in `plait compare`.
    pub jitter: bool,
}

/// Ten megabits with 20 ms of delay and 100 ms of queue.
const NEAR: &str = "fast:rate=10mbit,rtt=20ms,queue=100ms";
const FAR: &str = "slow:rate=3mbit,rtt=200ms,queue=600ms";

/// Links and loads of measurements with a stock Linux 6.18: name, fast path, slow path, workload, receive
/// buffer. The length of the measured streams is unknown; after 10 s, plain TCP has the delays that were
/// measured for F. The queue of F's fast link is that of A.
const MEASURED: [(&str, &str, &str, &str, &str); 6] = [
    ("A", NEAR, FAR, "download:8MB", ""),
    ("B", NEAR, "slow:rate=1mbit,rtt=600ms,queue=1500ms", "download:2MB", ""),
    ("C", NEAR, FAR, "download:2MB", "64kB"),
    (
        "D",
        "fast:rate=25mbit,rtt=25ms,queue=25ms",
        "slow:rate=4mbit,rtt=75ms,queue=120ms",
        "download:4MiB",
        "",
    ),
    ("E", NEAR, FAR, "stream:30kB@50ms,for=10s", ""),
    ("F", "fast:rate=8mbit,rtt=20ms,queue=100ms", FAR, "stream:60kB@50ms,for=10s", ""),
];

/// Loads over a recorded pair, with short names.
const LOADS: [(&str, &str); 3] =
    [("download", "download:4MB"), ("bulk", "bulk:10s"), ("stream", "stream:30kB@50ms,for=20s")];
/// Starts within a recording, with short names.
const OFFSETS: [(&str, &str); 2] = [("start", "0s"), ("anywhere", "random")];

/// Returns the links A to F.
#[must_use]
pub fn measured() -> Vec<Ground> {
    let ground = |(name, fast, slow, workload, rcvbuf): &(&str, &str, &str, &str, &str)| {
        let mut settings = vec![
            ("path", (*fast).to_owned()),
            ("path", (*slow).to_owned()),
            ("workload", (*workload).to_owned()),
        ];
        if !rcvbuf.is_empty() {
            settings.push(("rcvbuf", (*rcvbuf).to_owned()));
        }
        let name = (*name).to_owned();
        Ground { links: name.clone(), name, settings, jitter: false }
    };
    MEASURED.iter().map(ground).collect()
}

/// Returns the recorded pairs in the directory `traces` of `data`: WiFi and cellular at the same time and
/// place. Each pair is used from its beginning and from a random start, with each load.
///
/// # Errors
/// If the directory cannot be read, or has no `pair_*_wifi.csv` with its `pair_*_cellular.csv`; in words.
pub fn recorded(data: &Path) -> Result<Vec<Ground>, String> {
    let traces = data.join("traces");
    let absent = |why: &str| format!("recorded pairs: {}: {why}", traces.display());
    let files = fs::read_dir(&traces).map_err(|error| absent(&error.to_string()))?;
    let mut pairs: Vec<String> = files
        .filter_map(|file| {
            let name = file.ok()?.file_name().into_string().ok()?;
            Some(name.strip_prefix("pair_")?.strip_suffix("_wifi.csv")?.to_owned())
        })
        .filter(|pair| cellular(&traces, pair).is_file())
        .collect();
    if pairs.is_empty() {
        return Err(absent("no pair_*_wifi.csv with its pair_*_cellular.csv"));
    }
    pairs.sort();
    Ok(pairs.iter().flat_map(|pair| grounds_of(&traces, pair)).collect())
}

fn cellular(traces: &Path, pair: &str) -> PathBuf {
    traces.join(format!("pair_{pair}_cellular.csv"))
}

fn grounds_of(traces: &Path, pair: &str) -> Vec<Ground> {
    let wifi = traces.join(format!("pair_{pair}_wifi.csv"));
    let cellular = cellular(traces, pair);
    let mut grounds = Vec::new();
    for (begins, offset) in OFFSETS {
        for (load, workload) in LOADS {
            let path = |name: &str, rtt: &str, file: &Path| {
                format!("{name}:rtt={rtt},trace={},offset={offset}", file.display())
            };
            grounds.push(Ground {
                name: format!("{pair} {begins} {load}"),
                links: pair.to_owned(),
                settings: vec![
                    ("path", path("wifi", "20ms", &wifi)),
                    ("path", path("lte", "50ms", &cellular)),
                    ("workload", workload.to_owned()),
                ],
                jitter: false,
            });
        }
    }
    grounds
}

/// Returns the links of `paths`, each in the form of `--path`, with each of `loads`. If `loads` is empty, it
/// uses the loads of recorded pairs. The load is the name of the ground.
///
/// # Errors
/// If there is only one path.
pub fn own(paths: &[String], loads: &[String]) -> Result<Vec<Ground>, ScenarioError> {
    if let [_] = paths {
        let problem = "one path: a scoreboard compares the paths with the best of them alone";
        let place = Place::Argument("--path".to_owned());
        let error = ScenarioError::new(&place, Fault::Invalid, "", problem);
        return Err(error.allow("two and more"));
    }
    let usual: Vec<String> = LOADS.iter().map(|(_, workload)| (*workload).to_owned()).collect();
    let loads = if loads.is_empty() { &usual } else { loads };
    let ground = |load: &String| {
        let settings = paths.iter().map(|path| ("path", path.clone()));
        let settings = settings.chain([("workload", load.clone())]).collect();
        Ground { name: load.clone(), links: OWN.to_owned(), settings, jitter: true }
    };
    Ok(loads.iter().map(ground).collect())
}

impl Ground {
    /// Returns the scenario of the ground with the settings in `more`; `read` returns the traces.
    ///
    /// # Errors
    /// If a setting is refused: the trace, or one of `more`.
    pub fn scenario(
        &self,
        more: &[(&'static str, String)],
        read: Reader<'_>,
    ) -> Result<Scenario, ScenarioError> {
        let mut raw = RawScenario::new();
        for (name, text) in self.settings.iter().chain(more) {
            raw.argument(name, text)?;
        }
        if !self.jitter {
            raw.argument("exact", "on")?;
        }
        Ok(raw.build_with(read)?.compared())
    }

    /// Returns the settings as on a command line.
    #[must_use]
    pub fn command(&self) -> String {
        let flag = |(name, text): &(&str, String)| format!("--{name} {}", quoted(text));
        self.settings.iter().map(flag).collect::<Vec<_>>().join(" ")
    }
}

/// Name of the user's links.
const OWN: &str = "own";
/// Name of the links A to F.
const SIX: &str = "A-F";
/// Name of all recorded pairs.
const RECORDED: &str = "recorded";

/// Returns the grounds that `wanted` selects, in their own order: a list of links, `A-F`, `recorded` or
/// `all`.
///
/// # Errors
/// If a name selects no available links.
pub fn select(grounds: Vec<Ground>, wanted: &str) -> Result<Vec<Ground>, ScenarioError> {
    let is_named = |ground: &Ground, name: &str| {
        let six = MEASURED.iter().any(|(letter, ..)| *letter == ground.links);
        match name {
            "all" => true,
            SIX => six,
            RECORDED => !six,
            name => name == ground.links,
        }
    };
    let names: Vec<&str> = wanted.split(',').collect();
    for name in &names {
        if !grounds.iter().any(|ground| is_named(ground, name)) {
            // Unavailable links are not listed; the caller knows why they are unavailable.
            let mut known = vec!["all", SIX, RECORDED];
            known.retain(|name| grounds.iter().any(|ground| is_named(ground, name)));
            known.extend(grounds.iter().map(|ground| ground.links.as_str()));
            known.dedup();
            let place = Place::Argument("--links".to_owned());
            return Err(ScenarioError::unknown(&place, "links", name, known));
        }
    }
    Ok(grounds
        .into_iter()
        .filter(|ground| names.iter().any(|name| is_named(ground, name)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_ground_is_a_scenario_with_its_queues() {
        let grounds = measured();
        let names: Vec<&str> = grounds.iter().map(|ground| ground.name.as_str()).collect();
        assert_eq!(names, ["A", "B", "C", "D", "E", "F"]);
        for ground in &grounds {
            let scenario = ground.scenario(&[], &plait_app::file::named).unwrap();
            assert_eq!((scenario.paths.len(), scenario.is_random()), (2, false), "{}", ground.name);
            assert!(!scenario.command_line().contains("queue=inf"));
        }
        assert!(grounds[2].command().ends_with("--workload download:2MB --rcvbuf 64kB"));
    }

    #[test]
    fn a_recorded_pair_gives_both_beginnings_and_every_load() {
        let data = std::env::temp_dir().join(format!("plait-ground-{}", std::process::id()));
        let traces = data.join("traces");
        fs::create_dir_all(&traces).unwrap();
        for name in ["pair_9_1_wifi.csv", "pair_9_1_cellular.csv", "pair_9_2_wifi.csv"] {
            fs::write(traces.join(name), "1,1000000\n2,500000\n").unwrap();
        }
        let grounds = recorded(&data).unwrap();
        assert_eq!(grounds.len(), OFFSETS.len() * LOADS.len());
        for ground in &grounds {
            let scenario = ground.scenario(&[], &plait_app::file::named).unwrap();
            assert_eq!(scenario.is_random(), ground.name.contains("anywhere"), "{}", ground.name);
        }
        fs::remove_dir_all(&data).unwrap();
        let why = recorded(&data).unwrap_err();
        assert!(why.starts_with("recorded pairs: ") && why.contains("traces"), "{why}");
    }

    #[test]
    fn own_links_carry_the_loads_that_are_given() {
        let paths = ["a:rtt=20ms,rate=9mbit".to_owned(), "b:rtt=50ms,rate=3mbit".to_owned()];
        let usual = own(&paths, &[]).unwrap();
        assert_eq!(usual.len(), LOADS.len());
        // They have no randomness, so hosts get jitter and a cell is an average.
        assert!(
            usual.iter().all(|ground| ground
                .scenario(&[], &plait_app::file::named)
                .unwrap()
                .effective_runs()
                > 1)
        );
        let [one] = own(&paths, &["upload:2MB".to_owned()]).unwrap().try_into().unwrap();
        assert_eq!(one.name, "upload:2MB");
        assert!(one.command().ends_with("--path b:rtt=50ms,rate=3mbit --workload upload:2MB"));
        assert!(
            own(&paths[..], &["upload".to_owned()]).unwrap()[0]
                .scenario(&[], &plait_app::file::named)
                .is_err()
        );
    }

    #[test]
    fn links_are_selected_by_name_and_by_group() {
        let names = |wanted: &str| -> Vec<String> {
            let found = select(measured(), wanted).unwrap();
            found.into_iter().map(|ground| ground.name).collect()
        };
        assert_eq!(names("E,A"), ["A", "E"]);
        assert_eq!(names("A-F").len(), 6);
        assert_eq!(names("all").len(), 6);
        let refused = select(measured(), "A,G").unwrap_err().to_string();
        assert!(
            refused.contains("--links: `G`: unknown links") && refused.contains("A-F"),
            "{refused}"
        );
        let nothing = select(measured(), RECORDED).unwrap_err();
        assert!(!nothing.allowed.contains(RECORDED), "nothing recorded is there: {nothing}");
    }
}
