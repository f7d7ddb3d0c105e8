//! From a raw scenario to a scenario: every text is read, everything that must fit together is checked.

use super::kind::Said;
use super::path_parse::{self, Reader, no_files};
use super::profile::{PROFILES, Profile};
use super::raw_scenario::{PlacedText, RawPath, RawScenario};
use super::settings::{SETTINGS, Setting};
use super::specs::twice;
use super::{Competition, HostJitter, MAX_HOST_JITTER, Path, Scenario, Subflows, raw_path};
use crate::error::{Fault, Place, ScenarioError};
use crate::expect::{Expectation, Names};
use crate::report::COMPETING;
use plait_app::measure::Value;
use plait_app::quantity::{self, Bytes, Size};
use plait_app::workload::WorkloadError;
use plait_app::{MEASURES, WORKLOADS, Workload};
use plait_base::{Span, SubflowId};
use std::num::NonZeroUsize;

/// End of a run that has not finished, where `--until` says nothing: an hour of virtual time.
pub const DEFAULT_DEADLINE: Span = Span::from_secs(3_600);

/// Most transfers that may have been done before.
const MAX_EARLIER_TRANSFERS: u64 = 1_000;

/// The most that a window field with its largest scale can advertise (RFC 7323 section 2.3).
const LARGEST_WINDOW: u64 = 65_535 << 14;

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
        let place = self.value("cc").map_or_else(|| self.nowhere("cc"), |given| given.place);
        scenario.check_window(&place)?;
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
        let mut scenario = Scenario::blank();
        // What paths look at comes before them, and what looks at paths after.
        scenario.ideal = self.switch("ideal")?;
        scenario.shared = self.read_links(scenario.ideal, read)?;
        scenario.paths = self.read_paths(&scenario.shared, scenario.ideal, read)?;
        if self.value("workload").is_none() {
            let grammars: Vec<&str> = WORKLOADS.iter().map(|entry| entry.grammar).collect();
            let problem = "no workload is given";
            return Err(ScenarioError::new(&self.nowhere("workload"), Fault::Missing, "", problem)
                .allow(&grammars.join(", ")));
        }
        let said = Said { raw: self, read };
        SETTINGS.iter().try_for_each(|setting| setting.read(&mut scenario, &said))?;
        scenario.vary = written.varied(&scenario, read)?;
        Ok(scenario)
    }

    fn switch(&self, name: &str) -> Result<bool> {
        self.value(name).map_or(Ok(false), |given| given.switch())
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
        let said = Said { raw: self, read };
        let without_path = ["workload", "schedulers", "cc", "runs", "seed", "until", "jobs"];
        let wrong = without_path
            .into_iter()
            .filter_map(|name| Setting::named(name)?.read(&mut Scenario::blank(), &said).err());
        let at = |error: &ScenarioError| match &error.place {
            Place::File { line, column, .. } => Some((*line, *column)),
            Place::Argument(_) => None,
        };
        let stands = |error: &ScenarioError| error.fault != Fault::Missing && at(error).is_some();
        wrong.filter(stands).min_by_key(at).unwrap_or(missing)
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
}

impl Setting {
    /// Reads what is said of the setting, or its default.
    fn read(&self, scenario: &mut Scenario, said: &Said<'_>) -> Result<()> {
        match said.raw.values(self.name) {
            [] => said
                .raw
                .value(self.name)
                .iter()
                .try_for_each(|it| (self.field.set)(scenario, it, said)),
            given => given.iter().try_for_each(|it| (self.field.set)(scenario, it, said)),
        }
    }
}

pub(super) fn link_texts(it: &Scenario) -> Vec<String> {
    it.shared.iter().map(|link| raw_path(link, "--link").to_string()).collect()
}

pub(super) fn set_competition(it: &mut Scenario, given: &PlacedText, _: &Said<'_>) -> Result<()> {
    if given.text.trim() == "none" {
        // A sweep may have points with nobody beside.
        return Ok(());
    }
    if it.ideal {
        let problem = "an ideal path has no rate to compete for";
        return Err(given.error(Fault::Conflict, problem).allow("--compete without --ideal"));
    }
    let flows = Competition::parse(given, &it.paths, &it.shared)?;
    if it.compete.iter().any(|known| known.sender == flows.sender && known.over == flows.over) {
        let error = twice(given, given.text.trim());
        return Err(error.allow("CC@PATH_OR_LINK*N for N flows"));
    }
    it.compete.push(flows);
    Ok(())
}

pub(super) fn set_workload(it: &mut Scenario, given: &PlacedText, said: &Said<'_>) -> Result<()> {
    let read = Workload::parse_with(given.text.trim(), said.read);
    it.workload = read.map_err(|error| match error {
        WorkloadError::UnknownName { .. } => {
            let name = given.text.split(':').next().unwrap_or_default();
            let names = WORKLOADS.iter().map(|entry| entry.name);
            ScenarioError::unknown(&given.place, "workload", name, names)
        }
        _ => given.error(Fault::Invalid, &error.to_string()),
    })?;
    if it.workload.duration().is_some_and(|lasts| lasts > DEFAULT_DEADLINE) {
        let error = given.error(Fault::Invalid, "longer than a run can be");
        return Err(error.allow("at most 60min of virtual time"));
    }
    Ok(())
}

/// `all`, or the list of schedulers.
pub(super) fn scheduler_texts(it: &Scenario) -> Vec<String> {
    let names: Vec<String> = it.schedulers.iter().map(ToString::to_string).collect();
    let all = plait_sched::SCHEDULERS.iter().map(|entry| entry.name);
    vec![if all.eq(names.iter().map(String::as_str)) { "all".to_owned() } else { names.join(",") }]
}

pub(super) fn set_subflows(it: &mut Scenario, given: &PlacedText, _: &Said<'_>) -> Result<()> {
    let paths = it.paths.len();
    it.transport.subflows = if given.text.trim() == "mesh4" {
        if paths != 2 {
            return Err(given
                .error(Fault::Conflict, &format!("mesh4 takes two paths, {paths} given"))
                .allow("two paths, or a number of subflows a path"));
        }
        Subflows::Mesh4
    } else {
        let most = SubflowId::MAX as u64;
        let each = given.count(1, most).map_err(|error| error.allow("1 to 8, or mesh4"))?;
        Subflows::EachPath(each as u8)
    };
    let count = it.transport.subflows.count(paths);
    if count > SubflowId::MAX {
        let problem = format!("{count} subflows in all");
        return Err(given.error(Fault::Invalid, &problem).allow("at most 8 in all"));
    }
    Ok(())
}

pub(super) fn set_ssthresh(it: &mut Scenario, given: &PlacedText, _: &Said<'_>) -> Result<()> {
    it.transport.ssthresh = match given.text.trim() {
        "inf" => None,
        _ => Some(positive_size(given, u64::MAX)?),
    };
    Ok(())
}

/// How many transfers were done before. Other workloads have no end that a peer sees, or not the same
/// one each time.
pub(super) fn set_earlier(it: &mut Scenario, given: &PlacedText, _: &Said<'_>) -> Result<()> {
    let earlier = given.count(0, MAX_EARLIER_TRANSFERS)? as u32;
    let repeats = matches!(it.workload, Workload::Download { .. } | Workload::Upload { .. });
    if earlier > 0 && !repeats {
        let problem = "this workload is not one that is done several times in a row";
        return Err(given.error(Fault::Conflict, problem).allow("a download or an upload"));
    }
    it.transport.earlier_transfers = earlier;
    Ok(())
}

/// `6MiB`, `auto` or `auto:6MiB`: the size, and whether the window follows what is read.
pub(super) fn set_rcvbuf(it: &mut Scenario, given: &PlacedText, _: &Said<'_>) -> Result<()> {
    let (most, auto) = match given.text.trim().strip_prefix("auto") {
        None => (given.text.as_str(), false),
        Some("") => ("6MiB", true),
        Some(rest) => match rest.strip_prefix(':') {
            Some(most) => (most, true),
            None => return Err(given.unknown("value", ["auto", "auto:6MiB"])),
        },
    };
    it.transport.rcvbuf = window_size(&PlacedText::new(&given.place, most))?;
    it.transport.rcvbuf_auto = auto;
    Ok(())
}

/// As [`set_rcvbuf`] reads it.
pub(super) fn rcvbuf_text(it: &Scenario) -> Vec<String> {
    let auto = if it.transport.rcvbuf_auto { "auto:" } else { "" };
    vec![format!("{auto}{}", size_text(it.transport.rcvbuf))]
}

pub(super) fn set_host_jitter(
    it: &mut Scenario,
    given: &PlacedText,
    said: &Said<'_>,
) -> Result<()> {
    if given.text.trim() == "auto" {
        it.host_jitter = HostJitter::Auto;
        return Ok(());
    }
    let jitter = given.quantity(quantity::time)?;
    if jitter > MAX_HOST_JITTER {
        let error = given.error(Fault::Invalid, "too long for a host");
        return Err(error.allow("auto, or a time of at most 10ms"));
    }
    if said.raw.switch("exact")? {
        let error = given.error(Fault::Conflict, "an exact run has no jitter");
        return Err(error.allow("--exact or --host-jitter"));
    }
    it.host_jitter = HostJitter::Fixed(jitter);
    Ok(())
}

pub(super) fn set_jobs(it: &mut Scenario, given: &PlacedText, _: &Said<'_>) -> Result<()> {
    let jobs = given.count(1, MOST_JOBS)?;
    it.jobs = usize::try_from(jobs).ok().and_then(NonZeroUsize::new);
    Ok(())
}

pub(super) fn set_expectation(it: &mut Scenario, given: &PlacedText, _: &Said<'_>) -> Result<()> {
    it.expect.push(Expectation::parse(&given.text, &given.place, &names(it))?);
    Ok(())
}

/// The size of a buffer: one that a window can advertise.
pub(super) fn window_size(given: &PlacedText) -> Result<Size> {
    positive_size(given, LARGEST_WINDOW)
}

/// A size in the unit of its default, so that `6MiB` stays `6MiB`.
pub(super) fn size_text(size: Size) -> String {
    match size {
        Size::Bytes(bytes) if bytes != 0 && bytes.is_multiple_of(1 << 20) => {
            format!("{}MiB", bytes >> 20)
        }
        Size::Bytes(bytes) => Bytes(bytes).to_string(),
        Size::Segments(_) => size.to_string(),
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
