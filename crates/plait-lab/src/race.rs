//! A race: the same workload sent by plait, by Multipath TCP of the kernel and by plain TCP, live and in the
//! simulator. The caller makes the live runs; this module lists the senders, predicts their runs and compares.

use crate::compare::{Cell, Subject, cells, run_seed};
use crate::error::{Fault, Place, ScenarioError};
use crate::report::Difference;
use crate::run_setup::Unseen;
use crate::scenario::{RawScenario, Reader, Scenario};
use crate::simulated::simulate_unless;
use crate::stats::{Summary, against};
use plait_app::measure::is_higher_better;
use plait_app::{Measures, Role, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Name and version of the document.
pub const SCHEMA: &str = "plait.race/1";
/// The congestion controller of plain TCP.
const TCP_CC: &str = "cubic";
/// What a text of Multipath TCP of the kernel begins with.
const KERNEL: &str = "kernel";
/// The senders of a usual kernel.
const KERNEL_SENDERS: &str = "kernel:cubic, kernel:reno, kernel:bbr";
/// The model of the kernel in the simulator.
const KERNEL_MODEL: &str = "6.18";
/// The stack that sends in a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Stack {
    /// plait with this scheduler and controller.
    Plait(plait_sched::Spec, plait_cc::Spec),
    /// Multipath TCP of the kernel with this congestion controller.
    Kernel(String),
    /// Plain TCP of the kernel over the path with this number, with this congestion controller.
    Tcp(usize, String),
}

/// A sender of a race.
#[derive(Clone, PartialEq, Debug)]
pub struct Entrant {
    /// Its name: a scheduler, `kernel:CC` or `tcp:PATH`.
    pub name: String,
    /// The stack that sends.
    pub stack: Stack,
    /// Its model in the simulator.
    pub cell: Cell,
}

/// One workload over some links, and its senders.
#[derive(Clone, PartialEq, Debug)]
pub struct Heat {
    /// Its name; empty if it is the only one.
    pub name: String,
    /// The links, the workload, the seed and the number of live runs.
    pub scenario: Scenario,
    /// False if the links are real ones that were not measured. Then the scenario knows only their names.
    pub knows_links: bool,
    /// The senders: plait, the kernel, then plain TCP on each path.
    pub entrants: Vec<Entrant>,
}

/// The values of one run, live or simulated.
#[derive(Clone, PartialEq, Debug)]
pub struct RaceRun {
    /// The measures.
    pub measures: Measures,
    /// IP bytes that each path delivered from the sender of the data; over real links, bytes of frames. Empty if
    /// that is unknown.
    pub delivered: Vec<u64>,
}

/// The live runs of a sender.
#[derive(Clone, Default, Debug)]
pub struct LiveRuns {
    /// Its runs; `None` for a run that does not count.
    pub runs: Vec<Option<RaceRun>>,
    /// Number of runs in which another path joined.
    pub joined: u32,
    /// Number of runs that were repeated because the emulator was late.
    pub repeated: u32,
    /// Greatest lateness of the emulator in a run that counts, in microseconds.
    pub worst_late_us: Option<u64>,
    /// Why runs do not count, in words.
    pub failures: Vec<String>,
}

/// The document that `plait race --json` prints.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RaceDocument {
    /// Always `plait.race/1`.
    pub schema: String,
    /// The command line that runs it again.
    pub command: String,
    /// Seed of the first run; the seeds of the other runs are derived from it.
    pub seed: u64,
    /// Wanted number of live runs of each row.
    pub runs: u32,
    /// Runs of each row in the simulator. Absent if the links are real ones that were not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_runs: Option<u32>,
    /// The far side as given. Absent if the links were emulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The heats, one for each pair of links.
    pub heats: Vec<HeatReport>,
    /// True if the race was interrupted, so that runs are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// The results of a heat.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeatReport {
    /// Its name; empty if it is the only one.
    pub name: String,
    /// The paths as given, the primary first. Real links that were not measured have only names.
    pub paths: Vec<String>,
    /// The workload.
    pub workload: String,
    /// Receive buffer of the kernel's end in bytes, if it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcvbuf_bytes: Option<u64>,
    /// Plain TCP with the best median of the first measure: `tcp:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_path: Option<String>,
    /// The rows: plait, the kernel, then plain TCP on each path.
    pub rows: Vec<RaceRow>,
}

/// The results of a sender.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RaceRow {
    /// The sender: a scheduler of plait, `kernel:CC` or `tcp:PATH`.
    pub sender: String,
    /// Congestion controller.
    pub cc: String,
    /// The measures by which the workload is judged, the first one first.
    pub measures: Vec<RaceMeasure>,
    /// Share of each path in the IP bytes delivered from the sender of the data, live; mean over the runs. Over real
    /// links these are the bytes of all frames of the devices in the direction of the data, also of other programs.
    pub path_share: BTreeMap<String, f64>,
    /// The same share in the simulator.
    pub predicted_path_share: BTreeMap<String, f64>,
    /// Number of live runs that count.
    pub counted: u32,
    /// Number of live runs in which another path joined; absent for plain TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<u32>,
    /// Number of live runs that were repeated because the emulator was late.
    pub repeated: u32,
    /// Greatest lateness of the emulator in a run that counts, in microseconds. Absent over real links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_late_us: Option<u64>,
    /// Why runs do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// A measure of a sender, live and predicted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RaceMeasure {
    /// Its name in `plait list measures`.
    pub name: String,
    /// Statistics over the live runs that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Summary>,
    /// Statistics over the simulated runs that finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Summary>,
    /// Ratio of the live median to the predicted one, less 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_over_predicted: Option<f64>,
    /// The live runs against those of `best_path`, paired by run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_vs_best_path: Option<Difference>,
}

/// Returns the measures by which a race of this workload is judged.
#[must_use]
pub fn measures(workload: &Workload) -> &'static [&'static str] {
    match workload.primary() {
        "completion_ms" => &["completion_ms"],
        "goodput_mbps" => &["goodput_mbps"],
        "bit_rate_mbps" => &["bit_rate_mbps", "rebuffer_s"],
        "page_load_ms" => &["page_load_ms"],
        _ => &["message_delay_median_ms", "message_delay_p99_ms"],
    }
}

impl Heat {
    /// Runs of each sender in the simulator.
    pub const PREDICTED_RUNS: u32 = 30;

    /// Reads the paths, the workload and the senders of a heat. `senders` is a list of schedulers of plait and of
    /// `kernel:CC`.
    ///
    /// # Errors
    /// As [`RawScenario::build_with`]; also for a sender without a controller, or if there are several controllers.
    pub fn build(
        name: &str,
        raw: &RawScenario,
        senders: &str,
        read: Reader<'_>,
    ) -> Result<Heat, ScenarioError> {
        let (kernels, schedulers) = divided(senders)?;
        let of = |settings: &[(&str, &str)]| -> Result<Scenario, ScenarioError> {
            let mut raw = raw.clone();
            for (name, value) in settings {
                raw.forget(name);
                raw.argument(name, value)?;
            }
            Ok(raw.build_with(read)?.compared())
        };
        let shown = if schedulers.is_empty() { plait_sched::DEFAULT } else { schedulers.as_str() };
        let scenario = of(&[("schedulers", shown), ("receiver", KERNEL_MODEL)])?;
        if scenario.ccs.len() > 1 {
            let problem = format!("{} controllers are given", scenario.ccs.len());
            return Err(refuse("cc", &problem).allow("one for all rows of plait"));
        }
        let mut entrants = Vec::new();
        if !schedulers.is_empty() {
            entrants.extend(cells(&scenario).into_iter().filter_map(of_plait));
        }
        for cc in kernels.iter().filter(|_| scenario.paths.len() > 1) {
            let model = of(&[("schedulers", "linux"), ("cc", cc), ("kernel", KERNEL_MODEL)]);
            let model = model.map_err(|error| of_sender(cc, error))?;
            let cell = cells(&model).into_iter().find(Cell::multipath);
            let (name, stack) = (format!("{KERNEL}:{cc}"), Stack::Kernel(cc.clone()));
            entrants.extend(cell.map(|cell| Entrant { name, stack, cell }));
        }
        let plain = of(&[("schedulers", "linux"), ("cc", TCP_CC), ("kernel", KERNEL_MODEL)])?;
        entrants.extend(cells(&plain).into_iter().filter_map(of_tcp));
        Ok(Heat { name: name.to_owned(), scenario, knows_links: true, entrants })
    }

    /// Reads the workload and the senders of a heat over real links that were not measured, which have these names.
    ///
    /// # Errors
    /// As [`Heat::build`].
    pub fn of_unknown_links(
        names: &[String],
        raw: &RawScenario,
        senders: &str,
        read: Reader<'_>,
    ) -> Result<Heat, ScenarioError> {
        let mut raw = raw.clone();
        for name in names {
            // A scenario needs links. No run has these, because there is no prediction.
            raw.argument("path", &format!("{name}:rtt=1ms,rate=1gbit"))?;
        }
        Ok(Heat { knows_links: false, ..Heat::build("", &raw, senders, read)? })
    }

    /// Predicts the runs of a sender. Returns none if the links are unknown, and `None` if `cancelled` becomes true
    /// before the end.
    #[must_use]
    pub fn predict(&self, entrant: &Entrant, cancelled: &AtomicBool) -> Option<Vec<RaceRun>> {
        let upward = self.scenario.workload.sender() == Role::Client;
        let mut runs = Vec::new();
        if !self.knows_links {
            return Some(runs);
        }
        for run in 0..Heat::PREDICTED_RUNS {
            let seed = run_seed(self.scenario.seed, run);
            let outcome = simulate_unless(&entrant.cell, seed, &mut Unseen, cancelled)?;
            let complete = outcome.complete();
            let delivered = outcome
                .links
                .iter()
                .map(|(down, up)| if upward { up.delivered_bytes } else { down.delivered_bytes });
            let delivered = delivered.collect();
            let measures = outcome.pairs.into_iter().flatten().next().map(|it| it.measures);
            let counted = measures.filter(|_| complete);
            runs.extend(counted.map(|measures| RaceRun { measures, delivered }));
        }
        Some(runs)
    }

    /// Returns the report of the heat. `live` and `predicted` have an entry for each sender.
    #[must_use]
    pub fn report(&self, live: &[LiveRuns], predicted: &[Vec<RaceRun>]) -> HeatReport {
        let names = measures(&self.scenario.workload);
        let lanes: Vec<Lane<'_>> = self
            .entrants
            .iter()
            .zip(live)
            .zip(predicted)
            .map(|((entrant, live), predicted)| Lane { entrant, live, predicted })
            .collect();
        let best = self.best_path(&lanes, names[0]);
        let row = |lane: &Lane<'_>| {
            let measure = |name: &&str| self.measure(lane, name, best.map(|at| &lanes[at]));
            let LiveRuns { joined, repeated, worst_late_us, failures, .. } = lane.live;
            RaceRow {
                sender: lane.entrant.name.clone(),
                cc: lane.entrant.cell.cc.name(),
                measures: names.iter().map(measure).collect(),
                path_share: self.shares(lane.live.runs.iter().flatten()),
                predicted_path_share: self.shares(lane.predicted.iter()),
                counted: u32::try_from(lane.live.runs.iter().flatten().count()).unwrap_or(u32::MAX),
                joined: (!matches!(lane.entrant.stack, Stack::Tcp(..))).then_some(*joined),
                repeated: *repeated,
                worst_late_us: *worst_late_us,
                failures: failures.clone(),
            }
        };
        HeatReport {
            name: self.name.clone(),
            paths: self.paths(),
            workload: self.scenario.workload.to_string(),
            rcvbuf_bytes: self.rcvbuf(),
            best_path: best.map(|at| lanes[at].entrant.name.clone()),
            rows: lanes.iter().map(row).collect(),
        }
    }

    /// Returns the receive buffer of the kernel's end in bytes, if the scenario sets a fixed one.
    #[must_use]
    pub fn rcvbuf(&self) -> Option<u64> {
        let given = self.scenario.raw().says("rcvbuf");
        let is_fixed = self.scenario.transport.rcvbuf.first.is_none();
        (given && is_fixed).then(|| self.scenario.connection(true).buffers.rcvbuf)
    }

    fn paths(&self) -> Vec<String> {
        if !self.knows_links {
            return self.scenario.paths.iter().map(|path| path.name.clone()).collect();
        }
        let arguments = self.scenario.raw().arguments().into_iter();
        arguments.filter(|(name, _)| *name == "path").map(|(_, text)| text).collect()
    }

    /// Returns the plain TCP with the best median of a measure.
    fn best_path(&self, lanes: &[Lane<'_>], name: &str) -> Option<usize> {
        let sign = if is_higher_better(name) { -1.0 } else { 1.0 };
        let of = |at: usize| {
            let summary = Summary::of(&lanes[at].values(name), self.scenario.seed, name)?;
            Some((sign * summary.median, at))
        };
        let tcp = |at: &usize| matches!(lanes[*at].entrant.stack, Stack::Tcp(..));
        let found = (0..lanes.len()).filter(tcp).filter_map(of);
        found.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, at)| at)
    }

    fn measure(&self, lane: &Lane<'_>, name: &str, best: Option<&Lane<'_>>) -> RaceMeasure {
        let seed = self.scenario.seed;
        let purpose = |what: &str| format!("race/{}/{name}/{what}", lane.entrant.name);
        let live = Summary::of(&lane.values(name), seed, &purpose("live"));
        let predicted: Vec<f64> =
            lane.predicted.iter().filter_map(|run| run.measures.value(name)).collect();
        let predicted = Summary::of(&predicted, seed, &purpose("predicted"));
        let over = live.zip(predicted).filter(|(_, predicted)| predicted.median > 0.0);
        let best = best.filter(|best| best.entrant.name != lane.entrant.name);
        RaceMeasure {
            name: name.to_owned(),
            live,
            predicted,
            live_over_predicted: over.map(|(live, it)| live.median / it.median - 1.0),
            paired_vs_best_path: best.and_then(|best| lane.against(best, name, seed)),
        }
    }

    /// Returns the share of each path in the delivered bytes; mean over the runs.
    fn shares<'a>(&self, runs: impl Iterator<Item = &'a RaceRun>) -> BTreeMap<String, f64> {
        let mut sums = vec![0.0; self.scenario.paths.len()];
        let mut count = 0.0;
        for run in runs.filter(|run| !run.delivered.is_empty()) {
            let all: u64 = run.delivered.iter().sum();
            let shares = run.delivered.iter().map(|bytes| *bytes as f64 / all.max(1) as f64);
            sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
            count += 1.0;
        }
        let names = self.scenario.paths.iter().map(|path| path.name.clone());
        let shares = names.zip(sums.into_iter().map(|sum| sum / count));
        if count > 0.0 { shares.collect() } else { BTreeMap::new() }
    }
}

/// A sender with its runs.
struct Lane<'a> {
    entrant: &'a Entrant,
    live: &'a LiveRuns,
    predicted: &'a [RaceRun],
}

impl Lane<'_> {
    /// Returns a measure of the live runs that count.
    fn values(&self, name: &str) -> Vec<f64> {
        self.live.runs.iter().flatten().filter_map(|run| run.measures.value(name)).collect()
    }

    /// Compares the runs that both have.
    fn against(&self, best: &Lane<'_>, name: &str, seed: u64) -> Option<Difference> {
        let value = |run: &Option<RaceRun>| run.as_ref()?.measures.value(name);
        let both = self.live.runs.iter().zip(&best.live.runs);
        let (ours, theirs): (Vec<f64>, Vec<f64>) =
            both.filter_map(|(ours, theirs)| value(ours).zip(value(theirs))).unzip();
        let purpose = format!("race/{}/{name}/paired", self.entrant.name);
        let found =
            against(&theirs, &[ours.as_slice()], seed, &purpose).into_iter().next().flatten()?;
        Some(Difference {
            ratio: found.ratio,
            ci95: (ours.len() > 1).then_some(found.ci95),
            told_apart: found.told_apart,
            differing_runs: Some(found.differing).filter(|differing| *differing > 0),
        })
    }
}

fn of_plait(cell: Cell) -> Option<Entrant> {
    let Subject::Scheduler(spec) = &cell.subject else { return None };
    let stack = Stack::Plait(spec.clone(), cell.cc.clone());
    Some(Entrant { name: cell.to_string(), stack, cell })
}

fn of_tcp(cell: Cell) -> Option<Entrant> {
    let Subject::SinglePath(path) = cell.subject else { return None };
    Some(Entrant { name: cell.to_string(), stack: Stack::Tcp(path, TCP_CC.to_owned()), cell })
}

fn refuse(setting: &str, problem: &str) -> ScenarioError {
    let place = Place::Argument(format!("--{setting}"));
    ScenarioError::new(&place, Fault::Conflict, "", problem)
}

/// Changes an error about the controller of a kernel into one about the list of senders, which has it.
fn of_sender(cc: &str, mut error: ScenarioError) -> ScenarioError {
    let of_cc = Place::Argument("--cc".to_owned());
    if error.place == of_cc && error.given.contains(cc) {
        error.place = Place::Argument("--schedulers".to_owned());
        error.given = format!("{KERNEL}:{}", error.given);
        // A controller of plait need not be one of the kernel.
        error.nearest = error
            .nearest
            .take()
            .map(|name| format!("{KERNEL}:{name}"))
            .filter(|sender| KERNEL_SENDERS.split(", ").any(|known| known == sender));
        error = error.allow(KERNEL_SENDERS);
    }
    error
}

/// Divides a list of senders into the controllers of the kernel, and the schedulers of plait.
fn divided(senders: &str) -> Result<(Vec<String>, String), ScenarioError> {
    let (mut kernels, mut schedulers) = (Vec::new(), Vec::new());
    for piece in senders.split(',').map(str::trim) {
        match piece.split_once(':').unwrap_or((piece, "")) {
            (KERNEL, "") => {
                let problem = "`kernel` has no congestion controller";
                return Err(refuse("schedulers", problem).allow(KERNEL_SENDERS));
            }
            (KERNEL, cc) if kernels.iter().any(|known| known == cc) => {
                let problem = format!("`{piece}` is given twice");
                return Err(refuse("schedulers", &problem));
            }
            (KERNEL, cc) => kernels.push(cc.to_owned()),
            _ => schedulers.push(piece),
        }
    }
    Ok((kernels, schedulers.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::no_files;

    fn heat(senders: &str) -> Result<Heat, ScenarioError> {
        let mut raw = RawScenario::new();
        for (name, text) in [
            ("path", "fast:rate=10mbit,rtt=20ms"),
            ("path", "slow:rate=3mbit,rtt=200ms"),
            ("workload", "download:100kB"),
            ("rcvbuf", "64kB"),
            ("seed", "7"),
        ] {
            raw.argument(name, text)?;
        }
        Heat::build("A", &raw, senders, &no_files)
    }

    #[test]
    fn senders_are_plait_the_kernel_and_each_path() {
        let heat = heat("slot,kernel:bbr,ecf:beta=0.25,floor=off,kernel:cubic").unwrap();
        let names: Vec<&str> = heat.entrants.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names[0], "slot");
        assert!(names[1].starts_with("ecf") && names[1].contains("floor=off"), "{names:?}");
        assert_eq!(names[2..], ["kernel:bbr", "kernel:cubic", "tcp:fast", "tcp:slow"]);
        assert_eq!(heat.entrants[2].cell.cc.name(), "bbr");
        assert_eq!(heat.entrants[5].stack, Stack::Tcp(1, "cubic".to_owned()));
        assert_eq!(heat.rcvbuf(), Some(64_000));
        for (senders, problem) in [
            ("slot,kernel", "`kernel` has no congestion controller"),
            ("kernel:bbr,kernel:bbr", "`kernel:bbr` is given twice"),
            ("kernel:nothing", "--schedulers: `kernel:nothing`: unknown congestion controller"),
            ("kernel:cubc", "did you mean `kernel:cubic`?"),
            ("kernel:vegas", "unknown congestion controller\n  allowed:"),
            ("kernel:nothing", "allowed: kernel:cubic, kernel:reno, kernel:bbr"),
            ("slott", "slott"),
        ] {
            let error = heat_error(senders);
            assert!(error.contains(problem), "{senders}: {error}");
        }
    }

    fn heat_error(senders: &str) -> String {
        heat(senders).unwrap_err().to_string()
    }

    fn run(completion_ms: f64, delivered: [u64; 2]) -> RaceRun {
        let measures = Measures { completion_ms: Some(completion_ms), ..Measures::default() };
        RaceRun { measures, delivered: delivered.to_vec() }
    }

    /// Three runs of each: the medians, the ratios by run and the shares are computed by hand.
    #[test]
    fn a_report_compares_runs_and_predictions() {
        let heat = heat("kernel:cubic").unwrap();
        let runs = |times: [Option<f64>; 3], delivered| LiveRuns {
            runs: times.map(|time| time.map(|time| run(time, delivered))).to_vec(),
            joined: 2,
            ..LiveRuns::default()
        };
        let live = [
            runs([Some(50.0), None, Some(55.0)], [300, 100]),
            runs([Some(100.0), Some(120.0), Some(110.0)], [400, 0]),
            runs([Some(300.0), Some(300.0), Some(300.0)], [0, 400]),
        ];
        let predicted = [vec![run(42.0, [200, 200])], Vec::new(), vec![run(300.0, [0, 1])]];
        let report = heat.report(&live, &predicted);
        assert_eq!(report.best_path.as_deref(), Some("tcp:fast"));
        let [kernel, fast, slow] = &report.rows[..] else { panic!("{report:?}") };
        let kernel_time = &kernel.measures[0];
        assert_eq!(kernel_time.live.unwrap().median, 52.5);
        assert!((kernel_time.live_over_predicted.unwrap() - 0.25).abs() < 1e-12);
        let paired = kernel_time.paired_vs_best_path.unwrap();
        assert!((paired.ratio - 0.5).abs() < 1e-12, "{paired:?}");
        assert_eq!((kernel.counted, kernel.joined, slow.joined), (2, Some(2), None));
        assert_eq!(kernel.path_share["slow"], 0.25);
        assert_eq!(kernel.predicted_path_share["slow"], 0.5);
        assert!(fast.measures[0].paired_vs_best_path.is_none());
        assert!(fast.measures[0].predicted.is_none() && fast.predicted_path_share.is_empty());
        assert_eq!(slow.measures[0].live_over_predicted, Some(0.0));
    }

    #[test]
    fn unknown_links_have_names_and_no_predictions() {
        let mut raw = RawScenario::new();
        raw.argument("workload", "download:100kB").unwrap();
        let names = ["wlan0", "wwan0"].map(str::to_owned);
        let heat = Heat::of_unknown_links(&names, &raw, "slot,kernel:cubic", &no_files).unwrap();
        let senders: Vec<&str> = heat.entrants.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(senders, ["slot", "kernel:cubic", "tcp:wlan0", "tcp:wwan0"]);
        assert_eq!(heat.predict(&heat.entrants[0], &AtomicBool::new(false)), Some(Vec::new()));
        // The bytes of the devices are unknown in one run.
        let one =
            |delivered: &[u64]| Some(RaceRun { delivered: delivered.to_vec(), ..run(9.0, [0, 0]) });
        let live = LiveRuns { runs: vec![one(&[]), one(&[30, 10])], ..LiveRuns::default() };
        let unseen = LiveRuns { runs: vec![one(&[]); 2], ..LiveRuns::default() };
        let live = [live.clone(), unseen, live.clone(), live];
        let report = heat.report(&live, &vec![Vec::new(); 4]);
        assert_eq!(report.paths, names);
        assert_eq!(report.rows[0].path_share["wwan0"], 0.25);
        assert!(report.rows[1].path_share.is_empty());
        let text = serde_json::to_string(&report).unwrap();
        assert!(!text.contains("\"predicted\"") && !text.contains("worst_late_us"), "{text}");
    }

    /// The model of the kernel has its own behaviour, and plain TCP uses its path alone.
    #[test]
    fn each_sender_has_a_prediction() {
        let heat = heat("minrtt,kernel:cubic").unwrap();
        let never = AtomicBool::new(false);
        let predict = |at: usize| heat.predict(&heat.entrants[at], &never).unwrap();
        let [minrtt, kernel, fast, slow] = [0, 1, 2, 3].map(predict);
        for runs in [&minrtt, &kernel, &fast, &slow] {
            assert_eq!(runs.len(), Heat::PREDICTED_RUNS as usize);
        }
        assert!(fast.iter().all(|run| run.delivered[1] == 0 && run.delivered[0] > 100_000));
        assert!(slow.iter().all(|run| run.delivered[0] == 0));
        let time = |runs: &[RaceRun]| runs[0].measures.completion_ms.unwrap();
        // 100 kB at 3 Mbit/s, and two round trips.
        assert!(time(&slow) > 100_000.0 * 8.0 / 3e3 + 400.0, "{}", time(&slow));
        assert_ne!(time(&minrtt), time(&kernel));
        assert!(heat.predict(&heat.entrants[0], &AtomicBool::new(true)).is_none());
    }
}
