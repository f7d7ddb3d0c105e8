//! From a raw scenario to a scenario: every text is read, everything that must fit together is checked.

use super::path_parse::{self, Reader, no_files};
use super::profile::{PROFILES, Profile};
use super::raw_scenario::{PlacedText, RawPath, RawScenario};
use super::specs::{controllers, schedulers, twice};
use super::{
    Competition, HostJitter, Kernel, MAX_HOST_JITTER, Path, Scenario, Subflows, Transport,
};
use crate::error::{Fault, Place, ScenarioError};
use crate::expect::{Expectation, Names};
use crate::report::COMPETING;
use plait_app::measure::Value;
use plait_app::quantity::{self, Size};
use plait_app::workload::WorkloadError;
use plait_app::{MEASURES, WORKLOADS, Workload};
use plait_base::{Span, SubflowId};
use plait_cc::{HyStart, IdleRestart};
use plait_core::{Dial, JoinTiming, LossDetection, Prr, RtoMode};
use std::num::NonZeroUsize;

/// End of a run that has not finished, where `--until` says nothing: an hour of virtual time.
pub const DEFAULT_DEADLINE: Span = Span::from_secs(3_600);

/// The longest that a host may work on a segment.
const MOST_WORK: Span = Span::from_millis(1);

/// Most transfers that may have been done before.
const MAX_EARLIER_TRANSFERS: u64 = 1_000;

/// The most that a window field with its largest scale can advertise (RFC 7323 section 2.3).
const LARGEST_WINDOW: u64 = 65_535 << 14;

pub(super) const JOINS: &[(&str, JoinTiming)] = &[
    ("after-data", JoinTiming::AfterData),
    ("after-synack", JoinTiming::AfterSynAck),
    ("simultaneous", JoinTiming::Simultaneous),
];
/// L of RFC 3465: segments that slow start grows by for an ACK, at most.
pub(super) const HYSTARTS: &[(&str, HyStart)] = &[
    ("off", HyStart::Off),
    ("on", HyStart::PlusPlus),
    ("linux", HyStart::Linux),
    ("linux3", HyStart::Linux3),
    ("linux6", HyStart::Linux6),
];
pub(super) const KERNELS: &[(&str, Kernel)] =
    &[("none", Kernel::None), ("6.18", Kernel::Linux6_18)];
pub(super) const SLOW_STARTS: &[(&str, u32)] =
    &[("rfc3465", 2), ("rfc5681", 1), ("linux", u32::MAX)];
pub(super) const IDLE_RESTARTS: &[(&str, IdleRestart)] =
    &[("linux", IdleRestart::Linux), ("rfc5681", IdleRestart::Rfc5681), ("off", IdleRestart::Off)];
pub(super) const DIALS: &[(&str, Dial)] = &[("any", Dial::Any), ("primary", Dial::Primary)];
pub(super) const LOSS_DETECTIONS: &[(&str, LossDetection)] = &[
    ("rack", LossDetection::Rack),
    ("sack-probe", LossDetection::SackProbe),
    ("sack", LossDetection::Sack),
];
pub(super) const PRRS: &[(&str, Prr)] = &[("rfc6937", Prr::Rfc6937), ("rfc9937", Prr::Rfc9937)];
pub(super) const RTOS: &[(&str, RtoMode)] =
    &[("linux", RtoMode::Linux), ("rfc", RtoMode::Rfc), ("rfc200", RtoMode::Rfc200)];

type Result<T> = core::result::Result<T, ScenarioError>;

impl RawScenario {
    /// Reads a raw scenario that names no file.
    ///
    /// # Errors
    /// At the first text that cannot be taken.
    pub fn build(&self) -> Result<Scenario> {
        self.build_with(&no_files)
    }

    /// Reads the raw scenario, with the files that it names (traces, pages, descriptions of videos) from
    /// `read`.
    ///
    /// # Errors
    /// As [`RawScenario::build`].
    pub fn build_with(&self, read: Reader<'_>) -> Result<Scenario> {
        let scenario = self.build_point(read)?;
        self.check_links(&scenario)?;
        scenario.check_window(&self.must("cc")?.place)?;
        Ok(scenario)
    }

    /// Refuses a link that no path goes through: whoever wrote it meant something by it. A sweep may
    /// lead a path through one after the other.
    fn check_links(&self, scenario: &Scenario) -> Result<()> {
        if self.values("vary").iter().any(|given| given.text.contains(".via=")) {
            return Ok(());
        }
        let used = |link: &Path| {
            scenario.paths.iter().any(|path| path.via.as_deref() == Some(link.name.as_str()))
        };
        let links = self.values("link").iter().zip(&scenario.shared);
        let Some((given, link)) = links.into_iter().find(|(_, link)| !used(link)) else {
            return Ok(());
        };
        let error = given.error(Fault::Conflict, "no path goes through it");
        Err(error.allow(&format!("via={} of one or more paths", link.name)))
    }

    /// Reads a point of a sweep, in which a link may be unused.
    pub(crate) fn build_point(&self, read: Reader<'_>) -> Result<Scenario> {
        match self.with_kernel()? {
            Some(raw) => raw.build_plain(self, read),
            None => self.build_plain(self, read),
        }
    }

    /// Reads a raw scenario whose kernel is no profile. A sweep varies `written`, which may name one.
    fn build_plain(&self, written: &RawScenario, read: Reader<'_>) -> Result<Scenario> {
        let ideal = self.switch("ideal")?;
        let shared = self.read_links(ideal, read)?;
        let paths = self.read_paths(&shared, ideal, read)?;
        let compete = self.compete(&paths, &shared, ideal)?;
        let workload = self.workload(read)?;
        let schedulers = schedulers(&self.must("schedulers")?)?;
        let ccs = controllers(&self.must("cc")?)?;
        let transport = self.transport(&workload)?;
        let mut scenario = Scenario {
            paths,
            shared,
            compete,
            workload,
            schedulers,
            ccs,
            runs: self.runs()?,
            seed: self.seed()?,
            transport,
            ideal,
            exact: self.switch("exact")?,
            host_jitter: self.host_jitter()?,
            check: self.switch("check")?,
            wire: self.switch("wire")?,
            until: self.until()?,
            precision: self.precision()?,
            jobs: self.jobs()?,
            vary: Vec::new(),
            expect: Vec::new(),
        };
        let names = names(&scenario);
        for given in self.values("expect") {
            scenario.expect.push(Expectation::parse(&given.text, &given.place, &names)?);
        }
        scenario.vary = written.varied(&scenario, read)?;
        Ok(scenario)
    }

    pub(super) fn must(&self, name: &'static str) -> Result<PlacedText> {
        self.value(name).ok_or_else(|| {
            let place = Place::Argument(format!("--{name}"));
            ScenarioError::new(&place, Fault::Missing, "", "required")
        })
    }

    fn switch(&self, name: &'static str) -> Result<bool> {
        self.must(name)?.switch()
    }

    /// Where something is missing: the file as a whole, or the flag.
    fn nowhere(&self, field: &str) -> Place {
        match &self.file {
            Some(file) => {
                Place::File { file: file.clone(), line: 1, column: 1, field: field.to_owned() }
            }
            None => Place::Argument(format!("--{field}")),
        }
    }

    /// That there is no path; or what is wrong in the file, where something is: that stands somewhere.
    fn without_paths(&self, read: Reader<'_>) -> ScenarioError {
        let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        let names = names.join(", ");
        let place = self.nowhere("path");
        let allowed = match &self.file {
            Some(_) => format!(
                "[[path]] tables with name = \"wifi\", rtt = \"25ms\" and rate = \"25mbit\", or --path \
                 NAME:rtt=25ms,rate=25mbit, or a profile: {names}"
            ),
            None => format!("--path NAME:rtt=25ms,rate=25mbit, or a profile: {names}"),
        };
        let missing =
            ScenarioError::new(&place, Fault::Missing, "", "no path is given").allow(&allowed);
        let wrong = [
            self.workload(read).err(),
            self.must("schedulers").and_then(|given| schedulers(&given)).err(),
            self.must("cc").and_then(|given| controllers(&given)).err(),
            self.runs().err(),
            self.seed().err(),
            self.until().err(),
            self.jobs().err(),
        ];
        let at = |error: &ScenarioError| match &error.place {
            Place::File { line, column, .. } => Some((*line, *column)),
            Place::Argument(_) => None,
        };
        let stands = |error: &ScenarioError| error.fault != Fault::Missing && at(error).is_some();
        wrong.into_iter().flatten().filter(stands).min_by_key(at).unwrap_or(missing)
    }

    fn runs(&self) -> Result<u32> {
        Ok(narrow(self.must("runs")?.count(1, 1_000_000)?))
    }

    fn seed(&self) -> Result<u64> {
        self.must("seed")?.count(0, u64::MAX)
    }

    fn read_paths(&self, shared: &[Path], ideal: bool, read: Reader<'_>) -> Result<Vec<Path>> {
        let Some(first) = self.paths.first() else {
            return Err(self.without_paths(read));
        };
        if self.paths.len() > SubflowId::MAX {
            let problem = format!("{} paths are given", self.paths.len());
            return Err(ScenarioError::new(&first.name.place, Fault::Invalid, "", &problem)
                .allow(&most_paths()));
        }
        let mut paths: Vec<Path> = Vec::new();
        for raw in &self.paths {
            let bare = matches!(raw.fields.as_slice(), [(key, _)] if key == "profile");
            if bare && raw.fields[0].1 == raw.name && Profile::named(&raw.name.text).is_none() {
                let names = PROFILES.iter().map(|profile| profile.name);
                let mut error = raw.name.unknown("profile", names);
                error.allowed = format!("NAME:key=value,... or a profile: {}", error.allowed);
                return Err(error);
            }
            if paths.iter().any(|path| path.name == raw.name.text) {
                let error = raw.name.error(Fault::Conflict, "two paths have this name");
                return Err(error.allow("a name of its own for each path"));
            }
            if shared.iter().any(|link| link.name == raw.name.text) {
                let error = raw.name.error(Fault::Conflict, "a link has this name");
                return Err(error.allow("a name of its own for each path and link"));
            }
            let path = path_parse::path(raw, ideal, read)?;
            if let (Some(given), Some(via)) = (raw.field("via"), &path.via)
                && !shared.iter().any(|link| link.name == *via)
            {
                let names = shared.iter().map(|link| link.name.as_str());
                let error = given.unknown("link", names);
                let missing = shared.is_empty();
                return Err(if missing { error.allow("--link NAME:rate=20mbit") } else { error });
            }
            paths.push(path);
        }
        Ok(paths)
    }

    fn read_links(&self, ideal: bool, read: Reader<'_>) -> Result<Vec<Path>> {
        let mut links: Vec<Path> = Vec::new();
        for given in self.values("link") {
            let raw = RawPath::parse(&given.text, &given.place);
            if links.iter().any(|link| link.name == raw.name.text) {
                let error = raw.name.error(Fault::Conflict, "two links have this name");
                return Err(error.allow("a name of its own for each link"));
            }
            links.push(path_parse::link(&raw, ideal, read)?);
        }
        Ok(links)
    }

    fn compete(&self, paths: &[Path], shared: &[Path], ideal: bool) -> Result<Vec<Competition>> {
        // A sweep may have points with nobody beside.
        let nobody = |given: &&PlacedText| given.text.trim() == "none";
        let given: Vec<&PlacedText> =
            self.values("compete").iter().filter(|it| !nobody(it)).collect();
        if let Some(first) = given.first().filter(|_| ideal) {
            let problem = "an ideal path has no rate to compete for";
            return Err(first.error(Fault::Conflict, problem).allow("--compete without --ideal"));
        }
        let mut list: Vec<Competition> = Vec::new();
        for given in given {
            let flows = Competition::parse(given, paths, shared)?;
            if list.iter().any(|known| known.sender == flows.sender && known.over == flows.over) {
                let error = twice(given, given.text.trim());
                return Err(error.allow("CC@PATH_OR_LINK*N for N flows"));
            }
            list.push(flows);
        }
        Ok(list)
    }

    fn workload(&self, read: Reader<'_>) -> Result<Workload> {
        let Some(given) = self.value("workload") else {
            let grammars: Vec<&str> = WORKLOADS.iter().map(|entry| entry.grammar).collect();
            let problem = "no workload is given";
            return Err(ScenarioError::new(&self.nowhere("workload"), Fault::Missing, "", problem)
                .allow(&grammars.join(", ")));
        };
        let workload =
            Workload::parse_with(given.text.trim(), read).map_err(|error| match error {
                WorkloadError::UnknownName { .. } => {
                    let name = given.text.split(':').next().unwrap_or_default();
                    let names = WORKLOADS.iter().map(|entry| entry.name);
                    ScenarioError::unknown(&given.place, "workload", name, names)
                }
                _ => given.error(Fault::Invalid, &error.to_string()),
            })?;
        if workload.duration().is_some_and(|lasts| lasts > DEFAULT_DEADLINE) {
            let problem = "longer than a run can be";
            return Err(given
                .error(Fault::Invalid, problem)
                .allow("at most 60min of virtual time"));
        }
        Ok(workload)
    }

    fn transport(&self, workload: &Workload) -> Result<Transport> {
        let ssthresh = self.must("ssthresh")?;
        let ssthresh = match ssthresh.text.trim() {
            "inf" => None,
            _ => Some(positive_size(&ssthresh, u64::MAX)?),
        };
        let (rcvbuf, rcvbuf_auto) = self.rcvbuf()?;
        let window = self.must("initial-window")?;
        let bare = window.text.trim().trim_end_matches("seg");
        Ok(Transport {
            subflows: self.subflows()?,
            join: self.choice("join", JOINS)?,
            dial: self.choice("dial", DIALS)?,
            checksum: self.switch("checksum")?,
            ssthresh,
            earlier_transfers: self.earlier_transfers(workload)?,
            initial_window: narrow(PlacedText::new(&window.place, bare).count(1, 1_000)?),
            slow_start: self.choice("slow-start", SLOW_STARTS)?,
            tsq: self.switch("tsq")?,
            send_cost: self.send_cost()?,
            pacing: self.switch("pacing")?,
            hystart: self.choice("hystart", HYSTARTS)?,
            kernel: self.choice("kernel", KERNELS)?,
            undo: self.switch("undo")?,
            probes: self.switch("probes")?,
            delayed_ack: self.switch("delayed-ack")?,
            idle_restart: self.choice("idle-restart", IDLE_RESTARTS)?,
            prr: self.choice("prr", PRRS)?,
            loss_detection: self.choice("loss-detection", LOSS_DETECTIONS)?,
            rto: self.choice("rto", RTOS)?,
            mtu: self.mtu()?,
            rcvbuf,
            rcvbuf_auto,
            sndbuf: positive_size(&self.must("sndbuf")?, LARGEST_WINDOW)?,
        })
    }

    /// `6MiB`, `auto` or `auto:6MiB`: the size, and whether the window follows what is read.
    fn rcvbuf(&self) -> Result<(Size, bool)> {
        let given = self.must("rcvbuf")?;
        let Some(rest) = given.text.trim().strip_prefix("auto") else {
            return Ok((positive_size(&given, LARGEST_WINDOW)?, false));
        };
        let most = match rest.strip_prefix(':') {
            Some(most) => most,
            None if rest.is_empty() => "6MiB",
            None => return Err(given.unknown("value", ["auto", "auto:6MiB"])),
        };
        Ok((positive_size(&PlacedText::new(&given.place, most), LARGEST_WINDOW)?, true))
    }

    fn host_jitter(&self) -> Result<HostJitter> {
        let given = self.must("host-jitter")?;
        if given.text.trim() == "auto" {
            return Ok(HostJitter::Auto);
        }
        let jitter = given.quantity(quantity::time)?;
        if jitter > MAX_HOST_JITTER {
            let error = given.error(Fault::Invalid, "too long for a host");
            return Err(error.allow("auto, or a time of at most 10ms"));
        }
        if self.switch("exact")? {
            let error = given.error(Fault::Conflict, "an exact run has no jitter");
            return Err(error.allow("--exact or --host-jitter"));
        }
        Ok(HostJitter::Fixed(jitter))
    }

    fn send_cost(&self) -> Result<Span> {
        let given = self.must("send-cost")?;
        let cost = given.quantity(quantity::time)?;
        if cost > MOST_WORK {
            let problem = "too long for a segment";
            return Err(given.error(Fault::Invalid, problem).allow("at most 1ms"));
        }
        Ok(cost)
    }

    /// How many transfers were done before; what else there is has no end that a peer sees, or not the
    /// same one each time.
    fn earlier_transfers(&self, workload: &Workload) -> Result<u32> {
        let given = self.must("earlier")?;
        let earlier = narrow(given.count(0, MAX_EARLIER_TRANSFERS)?);
        if earlier > 0 && !matches!(workload, Workload::Download { .. } | Workload::Upload { .. }) {
            let problem = "this workload is not one that is done several times in a row";
            return Err(given.error(Fault::Conflict, problem).allow("a download or an upload"));
        }
        Ok(earlier)
    }

    fn mtu(&self) -> Result<u32> {
        let given = self.must("mtu")?;
        let bare = given.text.trim().trim_end_matches('B');
        Ok(narrow(PlacedText::new(&given.place, bare).count(576, 65_535)?))
    }

    fn choice<T: Copy>(&self, name: &'static str, words: &[(&'static str, T)]) -> Result<T> {
        let given = self.must(name)?;
        let found = words.iter().find(|(word, _)| *word == given.text.trim());
        let names = || words.iter().map(|(word, _)| *word);
        found.map(|(_, value)| *value).ok_or_else(|| given.unknown("value", names()))
    }

    fn subflows(&self) -> Result<Subflows> {
        let given = self.must("subflows")?;
        let paths = self.paths.len();
        if given.text.trim() == "mesh4" {
            return match paths {
                2 => Ok(Subflows::Mesh4),
                _ => Err(given
                    .error(Fault::Conflict, &format!("mesh4 takes two paths, {paths} given"))
                    .allow("two paths, or a number of subflows a path")),
            };
        }
        let most = SubflowId::MAX;
        let each = given.count(1, most as u64).map_err(|error| error.allow("1 to 8, or mesh4"))?;
        let subflows = Subflows::EachPath(each as u8);
        if subflows.count(paths) > most {
            let problem = format!("{} subflows in all", subflows.count(paths));
            return Err(given.error(Fault::Invalid, &problem).allow("at most 8 in all"));
        }
        Ok(subflows)
    }

    fn jobs(&self) -> Result<Option<NonZeroUsize>> {
        let Some(given) = self.value("jobs") else { return Ok(None) };
        let jobs = given.count(1, MOST_JOBS)?;
        Ok(usize::try_from(jobs).ok().and_then(NonZeroUsize::new))
    }
}

/// A size above zero of at most `most` bytes, where a segment counts at its largest.
fn positive_size(given: &PlacedText, most: u64) -> Result<Size> {
    let size = given.quantity(quantity::size)?;
    if size.is_zero() {
        return Err(given.error(Fault::Invalid, "zero").allow("a size above zero"));
    }
    if size.bytes(65_535) > most {
        let allowed = format!("at most {most}B, what a TCP window can advertise");
        return Err(given.error(Fault::Invalid, "too large").allow(&allowed));
    }
    Ok(size)
}

/// The range was checked before.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// How many paths a scenario may have.
pub(super) fn most_paths() -> String {
    format!("at most {} paths", SubflowId::MAX)
}

/// Most runs at a time that may be asked for.
pub const MOST_JOBS: u64 = 1_024;

/// The names that an expectation about this scenario may use.
fn names(scenario: &Scenario) -> Names {
    let paths: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
    let single = paths.iter().map(|path| format!("tcp:{path}"));
    Names {
        rows: scenario.schedulers.iter().map(ToString::to_string).chain(single).collect(),
        ccs: scenario.ccs.iter().map(plait_cc::Spec::name).collect(),
        measures: MEASURES
            .iter()
            .filter(|entry| matches!(entry.value, Value::Run(_)))
            .filter(|entry| entry.applies_to(&scenario.workload))
            .map(|entry| entry.name.to_owned())
            .chain((!scenario.compete.is_empty()).then(|| COMPETING.to_owned()))
            .collect(),
        paths,
        canonical: Some(|row| Some(plait_sched::Spec::parse(row).ok()?.to_string())),
    }
}
